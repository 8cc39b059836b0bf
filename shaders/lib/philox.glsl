/* Philox4x32-10 (Salmon et al. 2011), the twin of pm_philox in include/pumice/rng.h. It gives the
 * same words for the same counter and key, so masks do not depend on the device. */
#ifndef PM_PHILOX_GLSL
#define PM_PHILOX_GLSL

uvec4 pm_philox(uvec4 counter, uvec2 key)
{
    for (int i = 0; i < 10; i++) {
        uint high0, low0, high1, low1;

        umulExtended(0xD2511F53u, counter.x, high0, low0);
        umulExtended(0xCD9E8D57u, counter.z, high1, low1);
        counter = uvec4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
        key += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return counter;
}

/* Returns words 4 * block .. 4 * block + 3 of the sequence of pm_rng_make(seed, stream, step,
 * example). seed and stream: low word, high word. */
uvec4 pm_random(uvec2 seed, uvec2 stream, uint step, uint example, uint block)
{
    return pm_philox(uvec4(block, example, step, stream.y), uvec2(seed.x ^ stream.x, seed.y));
}

/* Returns a multiple of 2^-24 in [0, 1), like pm_rng_uniform. */
float pm_uniform(uint word)
{
    return float(word >> 8) * 5.9604644775390625e-8;
}

#endif
