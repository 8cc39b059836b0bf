/* The rows of an image that count, if only the first crops of each example are valid: the twin of
 * src/layers/valid_rows.h. The including shader's Push has InI32 count, and the macro VALID names
 * its params, which have crops and crop_rows. */

/* The rows of an example that count. They are its first ones. */
uint valid_of(uint example)
{
    return uint(clamp(count.v[example], 0, VALID.crops) * VALID.crop_rows);
}

bool is_valid(uint row)
{
    uint size = uint(VALID.crops * VALID.crop_rows), example = row / size;

    return row - example * size < valid_of(example);
}

/* The rows of the image that count. */
uint valid_total(uint examples)
{
    uint total = 0, i = 0;

    do {
        total += valid_of(i);
    } while (++i < examples);
    return total;
}

/* Chunks of an example: at most `length` rows each. */
uint valid_chunks(uint length)
{
    return (uint(VALID.crops * VALID.crop_rows) + length - 1u) / length;
}

/* The rows of a chunk that count, x to y - 1. They are its first ones. */
uvec2 valid_chunk(uint chunk, uint length)
{
    uint per = valid_chunks(length), example = chunk / per, from = chunk % per * length;
    uint first = example * uint(VALID.crops * VALID.crop_rows) + from, valid = valid_of(example);

    return uvec2(first, first + (valid > from ? min(valid - from, length) : 0u));
}
