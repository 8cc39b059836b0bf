/* row_moments: see row_moments.h. Within a chunk it sums d = x - (the chunk's first row) and d * d,
 * so that a large mean does not cancel. */
#include "layers/row_moments.h"

#include <pumice/thread.h>

#include <string.h>

#include "base/vector.h"
#include "moments.params.h"

_Static_assert(MOMENT_ROWS == PM_MOMENT_ROWS, "shaders and C disagree");

enum { BLOCK = 512 }; /* channels whose sums are held at a time */

struct task {
    const float *x;
    struct pm_rows size;
    int length;
    float *part;
};

/* Adds d = x - shift and d * d over rows of `c` floats to sum and square, `width` channels. */
PM_INLINE void add_rows(const float *x, size_t c, int rows, int width, const float *shift,
                        float *sum, float *square)
{
    const size_t ahead = pm_row_ahead(4 * c);
    int r = 0;

    for (; r + 4 <= rows; r += 4, x += 4 * c) {
        for (int i = 0; i < 4; i++)
            pm_prefetch(x + ahead + (size_t)i * c, width, 0);
        PM_SIMD
        for (int k = 0; k < width; k++) {
            float a = x[k] - shift[k], b = x[c + k] - shift[k];
            float e = x[2 * c + k] - shift[k], f = x[3 * c + k] - shift[k];
            sum[k] += (a + b) + (e + f);
            square[k] += (a * a + b * b) + (e * e + f * f);
        }
    }
    for (; r < rows; r++, x += c) {
        PM_SIMD
        for (int k = 0; k < width; k++) {
            float a = x[k] - shift[k];
            sum[k] += a;
            square[k] += a * a;
        }
    }
}

PM_CLONES static void add_chunks(void *ctx, size_t begin, size_t end)
{
    const struct task *t = ctx;
    int length = t->length, c = t->size.channels;
    float shift[BLOCK], sum[BLOCK], square[BLOCK];

    for (size_t chunk = begin; chunk < end; chunk++) {
        size_t first = chunk * (size_t)length, left = t->size.rows - first;
        int rows = left < (size_t)length ? (int)left : length;
        float *part = t->part + chunk * 2 * (size_t)c;

        for (int block = 0; block < c; block += BLOCK) {
            const float *x = t->x + first * (size_t)c + block;
            int width = c - block < BLOCK ? c - block : BLOCK;
            float inv = 1.0f / (float)rows;

            memcpy(shift, x, sizeof *shift * width);
            memset(sum, 0, sizeof sum);
            memset(square, 0, sizeof square);
            add_rows(x, c, rows, width, shift, sum, square);
            for (int k = 0; k < width; k++) {
                float m2 = square[k] - sum[k] * sum[k] * inv;
                part[block + k] = shift[k] + sum[k] * inv;
                part[c + block + k] = m2 < 0 ? 0 : m2;
            }
        }
    }
}

void pm_row_moments(const float *x, struct pm_rows size, int length, float *part)
{
    struct task t = { x, size, length, part };

    pm_parallel((size.rows + length - 1) / length, 1, add_chunks, &t);
}
