/* Returns the place in x of an output or of a term of a reduction. */
uint place_of(uint i, int size[3], int stride[3])
{
    uint at = i % uint(size[2]) * uint(stride[2]);

    i /= uint(size[2]);
    at += i % uint(size[1]) * uint(stride[1]);
    return at + i / uint(size[1]) * uint(stride[0]);
}

/* Returns the larger (KIND 1) or smaller (2) of both; NaN wins. */
float winner(float a, float b)
{
    return isnan(a) || (KIND == 1 ? a > b : a < b) ? a : b;
}
