/* dropout: the mask from Philox4x32-10 as published (constants of the paper, 64-bit products), keyed
 * by FNV-1a of the layer's name. */
#include "check.h"

static uint64_t fnv1a(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

/* Word `element` of the stream of one example. */
static uint32_t word_of(uint32_t example, uint32_t element)
{
    const uint64_t stream = fnv1a(CHECK_NAME);
    uint32_t c[4] = { element / 4, example, CHECK_STEP, (uint32_t)(stream >> 32) };
    uint32_t k[2] = { (uint32_t)(CHECK_SEED ^ stream), (uint32_t)(CHECK_SEED >> 32) };

    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)c[0] * 0xD2511F53u, b = (uint64_t)c[2] * 0xCD9E8D57u;
        const uint32_t next[4] = { (uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b,
                                   (uint32_t)(a >> 32) ^ c[3] ^ k[1], (uint32_t)a };
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    return c[element % 4];
}

static void dropout(struct ref *r)
{
    const struct ref_array *x = &r->in[0];
    const size_t per = x->count / (size_t)x->shape.dim[0];
    const float keep = (float)ref_number(r, "keep", 0.5);

    ref_output(r, x->shape);
    for (size_t i = 0; i < x->count; i++) {
        const uint32_t example = CHECK_FIRST_EXAMPLE + (uint32_t)(i / per);
        /* The sum is made in float32, as is the mask's definition: floor(keep + U). */
        const float u = (float)(word_of(example, (uint32_t)(i % per)) >> 8) / 16777216.0f;
        const double mask = r->train ? floorf(keep + u) / keep : 1;

        r->y.v[i] = x->v[i] * mask;
        r->y.mag[i] = fabs(x->v[i] * mask);
    }
}

static const struct check_case cases[] = {
    { "dropout", "3x7", .train = true },
    { "dropout keep=0.8", "2x5x4x3", .train = true },
    { "dropout keep=0.999", "4x1024", .train = true },
    { "dropout keep=1", "2x9", .train = true },
    { "dropout keep=0.25", "40x30", .train = true },
    { "dropout", "2x5" },
    { "dropout keep=0.9", "4x33x33x256", .train = true, .large = true },
    { "dropout", "3x300001", .train = true, .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_dropout = { cases, dropout };
