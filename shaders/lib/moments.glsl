/* Mean, and sum of squared distances from it, of chunks of `length` rows of x [rows][c] for each
 * channel, written to part [chunk][2][c]. The moments of four rows are added to those of the rows
 * before by Chan's formula, M2 += M2_4 + 4 n / (n + 4) (mean_4 - mean)^2, so nothing cancels. They
 * are those of x - (the chunk's first row), because these differences are almost exact where the
 * mean is large. The includer's push block has x and part; c counts T's (lib/vector.glsl). */

/* One channel of a chunk: rows first to last - 1, at least one. */
void row_moments(uint first, uint last, uint c, uint chunk, uint channel)
{
    uint row = first;
    T mean = T(0), m2 = T(0), shift = x.v[first * c + channel];

    for (; row + 4u <= last; row += 4u) {
        uint at = row * c + channel;
        float n = float(row - first), share = 4.0 / (n + 4.0);
        T a = x.v[at] - shift, b = x.v[at + c] - shift;
        T d = x.v[at + 2u * c] - shift, e = x.v[at + 3u * c] - shift;
        T four = ((a + b) + (d + e)) * 0.25, step = four - mean;

        a -= four, b -= four, d -= four, e -= four;
        mean += step * share;
        m2 += ((a * a + b * b) + (d * d + e * e)) + step * step * (n * share);
    }
    for (; row < last; row++) {
        float n = float(row - first), share = 1.0 / (n + 1.0);
        T step = x.v[row * c + channel] - shift - mean;

        mean += step * share;
        m2 += step * step * (n * share);
    }
    part.v[chunk * 2 * c + channel] = shift + mean;
    part.v[(chunk * 2 + 1) * c + channel] = m2;
}

void chunk_moments(uint rows, uint c, uint length)
{
    uint chunks = (rows + length - 1u) / length;

    for (uint i = pm_first(); i < chunks * c; i += pm_stride()) {
        uint chunk = i / c, first = chunk * length;

        row_moments(first, min(first + length, rows), c, chunk, i % c);
    }
}
