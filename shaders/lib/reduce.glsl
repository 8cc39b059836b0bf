/* Sum and maximum over a one-dimensional workgroup of 64 lanes, in a fixed order. Every lane gets
 * the same result, with the same bits every time. All lanes must call them. */
shared float reduce_scratch[64];

float group_sum(float value)
{
    uint lane = gl_LocalInvocationID.x;

    barrier(); /* all lanes have read the previous result */
    reduce_scratch[lane] = value;
    barrier();
    for (uint half_size = 32; half_size > 0; half_size /= 2) {
        if (lane < half_size)
            reduce_scratch[lane] += reduce_scratch[lane + half_size];
        barrier();
    }
    return reduce_scratch[0];
}

float group_max(float value)
{
    uint lane = gl_LocalInvocationID.x;

    barrier();
    reduce_scratch[lane] = value;
    barrier();
    for (uint half_size = 32; half_size > 0; half_size /= 2) {
        if (lane < half_size)
            reduce_scratch[lane] = max(reduce_scratch[lane], reduce_scratch[lane + half_size]);
        barrier();
    }
    return reduce_scratch[0];
}
