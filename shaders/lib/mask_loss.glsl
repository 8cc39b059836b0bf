/* The target of a pixel: the true mask's value at the pixel's sample. Twin of targets_of() in
 * src/layers/mask_loss.c. Indices are limited to the buffers for rows that do not count. */
float bit_of(uint line, int column)
{
    return float((masks.v[line + uint(column >> 5)] >> uint(column & 31)) & 1u);
}

/* truth: index of the true mask among those of all examples. */
float target_of(uint row, uint truth, uint y, uint x)
{
    uint at = row * uint(p.h + p.w), lines = truth * uint(p.mask_h), words = uint(p.words);
    int top = place.v[at + y], left = place.v[at + uint(p.h) + x];
    float fy = part.v[at + y], fx = part.v[at + uint(p.h) + x];
    bool inside = top >= 0 && left >= 0;

    top = max(top, 0), left = max(left, 0);
    int after = min(left + 1, p.mask_w - 1);
    uint line = (lines + uint(top)) * words;
    uint next = (lines + uint(min(top + 1, p.mask_h - 1))) * words;
    float above = (1.0 - fx) * bit_of(line, left) + fx * bit_of(line, after);
    float below = (1.0 - fx) * bit_of(next, left) + fx * bit_of(next, after);

    return inside ? (1.0 - fy) * above + fy * below : 0.0;
}
