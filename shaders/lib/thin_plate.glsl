/* The pixels around a sample of thin_plate_sampler, as thin_plate_places wrote them. The shader
 * declares `place` and `weight` as buffers, and p. */

/* Returns the pixel of an axis with `size` pixels. The limit holds for what no lane has written. */
int pixel_of(int at, int size)
{
    return clamp(at < 0 ? -1 - at : at, 0, size - 2);
}

/* Returns x and y of the first of the four pixels of sample i. */
ivec2 pixel_at(uint i)
{
    return ivec2(pixel_of(place.v[2u * i], p.w), pixel_of(place.v[2u * i + 1u], p.h));
}

/* Returns the weights of the next pixel, across and down. */
vec2 weights_at(uint i)
{
    return vec2(weight.v[2u * i], weight.v[2u * i + 1u]);
}
