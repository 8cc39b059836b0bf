/* row_moments: see row_moments.h. Within a chunk it adds the moments of GROUP rows to those of the
 * rows before by Chan's formula, M2 += M2_group + n GROUP / (n + GROUP) (mean_group - mean)^2, so
 * nothing cancels. It does so with x - (the chunk's first row), because these differences are
 * almost exact where the mean is large. */
#include "layers/row_moments.h"

#include <pumice/thread.h>

#include <string.h>

#include "base/vector.h"
#include "moments.params.h"

_Static_assert(MOMENT_ROWS == PM_MOMENT_ROWS, "shaders and C disagree");

enum { BLOCK = 512 }; /* channels whose moments are held at a time */
enum { GROUP = 4 };

struct task {
    const float *x;
    struct pm_rows size;
    int length;
    float *part;
};

/* Computes the moments of x - shift: `width` channels of rows of `c` floats. mean and m2 are zero
 * before. */
PM_INLINE void add_rows(const float *x, size_t c, int rows, int width, const float *shift,
                        float *mean, float *m2)
{
    const size_t ahead = pm_row_ahead(GROUP * c);
    int r = 0;

    for (; r + GROUP <= rows; r += GROUP, x += GROUP * c) {
        const float share = (float)GROUP / (float)(r + GROUP), both = (float)r * share;

        for (int i = 0; i < GROUP; i++)
            pm_prefetch(x + ahead + (size_t)i * c, width, 0);
        PM_SIMD
        for (int k = 0; k < width; k++) {
            float d = x[k] - shift[k], e = x[c + k] - shift[k];
            float f = x[2 * c + k] - shift[k], g = x[3 * c + k] - shift[k];
            float group = ((d + e) + (f + g)) * (1.0f / GROUP), step = group - mean[k];
            d -= group, e -= group, f -= group, g -= group;
            mean[k] += step * share;
            m2[k] += ((d * d + e * e) + (f * f + g * g)) + step * step * both;
        }
    }
    for (; r < rows; r++, x += c) {
        const float share = 1.0f / (float)(r + 1), both = (float)r * share;

        PM_SIMD
        for (int k = 0; k < width; k++) {
            float step = x[k] - shift[k] - mean[k];
            mean[k] += step * share;
            m2[k] += step * step * both;
        }
    }
}

PM_CLONES static void add_chunk(const float *x, int rows, int c, float *part)
{
    float mean[BLOCK], m2[BLOCK];

    for (int block = 0; block < c; block += BLOCK, x += BLOCK) {
        int width = c - block < BLOCK ? c - block : BLOCK;

        memset(mean, 0, sizeof mean);
        memset(m2, 0, sizeof m2);
        add_rows(x, (size_t)c, rows, width, x, mean, m2);
        for (int k = 0; k < width; k++)
            part[block + k] = x[k] + mean[k];
        memcpy(part + c + block, m2, sizeof *m2 * (size_t)width);
    }
}

void pm_chunk_moments(const float *x, int rows, int c, float *part)
{
    add_chunk(x, rows, c, part);
}

static void add_chunks(void *ctx, size_t begin, size_t end)
{
    const struct task *t = ctx;
    const size_t length = (size_t)t->length, c = (size_t)t->size.channels;

    for (size_t chunk = begin; chunk < end; chunk++) {
        const size_t first = chunk * length, left = t->size.rows - first;

        add_chunk(t->x + first * c, (int)(left < length ? left : length), (int)c,
                  t->part + chunk * 2 * c);
    }
}

void pm_row_moments(const float *x, struct pm_rows size, int length, float *part)
{
    struct task t = { x, size, length, part };

    pm_parallel((size.rows + length - 1) / length, 1, add_chunks, &t);
}
