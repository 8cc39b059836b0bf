/* Returns the place in x of element i of a row-major tensor of sizes d. s[k] is the stride in x of
 * the index along axis k. RANK, a specialization constant of the including shader, is the number of
 * trailing axes in use. The leading axes have size 1, and their divisions are skipped. With VEC=4
 * the last axis consists of vectors: its size and the other strides are multiples of 4, and s[5] is
 * 1. */
#ifndef PM_STRIDED_GLSL
#define PM_STRIDED_GLSL

uint pm_at(uint i, int d[6], int s[6])
{
    uint at;

    if (RANK == 1)
        return i * uint(s[5]);
    at = (i % uint(d[5] / VEC)) * uint(s[5]);
    i /= uint(d[5] / VEC);
    [[unroll]] for (int k = 4; k >= 0; k--) {
        if (RANK > 5 - k) {
            at += (i % uint(d[k])) * uint(s[k] / VEC);
            i /= uint(d[k]);
        }
    }
    return at;
}

#endif
