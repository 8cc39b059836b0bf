/* Mean, and sum of squared distances from it, of chunks of `length` rows of x [rows][c] for each
 * channel, written to part [chunk][2][c]. The sums are those of d = x - (the chunk's first row), so
 * that a large mean does not cancel. The includer's push block has x and part; c counts T's
 * (lib/vector.glsl). */
void chunk_moments(uint rows, uint c, uint length)
{
    uint chunks = (rows + length - 1u) / length;

    for (uint i = pm_first(); i < chunks * c; i += pm_stride()) {
        uint chunk = i / c, channel = i % c, first = chunk * length;
        uint last = min(first + length, rows);
        T sum = T(0), square = T(0), shift = x.v[first * c + channel];

        for (uint row = first; row < last; row++) {
            T d = x.v[row * c + channel] - shift;

            sum += d;
            square += d * d;
        }
        float inv = 1.0 / float(last - first);
        part.v[chunk * 2 * c + channel] = shift + sum * inv;
        part.v[(chunk * 2 + 1) * c + channel] = max(square - sum * sum * inv, T(0));
    }
}
