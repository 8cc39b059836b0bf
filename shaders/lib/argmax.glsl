/* Twin of key_of() in src/layers/argmax.c. Returns integers in the order of the floats with these
 * bits; both zeros are equal, NaN is below everything. */
int key_of(int bits)
{
    int magnitude = bits & 0x7fffffff;

    return magnitude > 0x7f800000 ? int(0x80000000u) : bits < 0 ? -magnitude : bits;
}
