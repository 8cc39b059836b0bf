/* orthonormal: Gram and Schmidt's method in its modified form: the parts of the vectors before are
 * subtracted from a vector one after the other. A block of vectors is handled together, so that
 * they stay in the cache while the vectors before are read. In double precision, the product of two
 * results stays below 1e-16 times the ratio of the largest and the smallest singular value of the
 * vectors. It is about 1e3 for a square matrix of 1,000 normal numbers a side. float32 needs 6e-8.
 */
#include "net/orthonormal.h"

#include <math.h>

#include <pumice/thread.h>

enum { BLOCK = 32 };
enum { LANES = 8 }; /* partial sums, so that the compiler can use vectors */

static double product(const double *a, const double *b, size_t length)
{
    double part[LANES] = { 0 }, sum = 0;
    size_t i = 0;

    for (; i + LANES <= length; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            part[k] += a[i + k] * b[i + k];
    for (; i < length; i++)
        part[i % LANES] += a[i] * b[i];
    for (size_t k = 0; k < LANES; k++)
        sum += part[k];
    return sum;
}

static void subtract(const double *unit, size_t length, double *v)
{
    const double part = product(unit, v, length);

    for (size_t k = 0; k < length; k++)
        v[k] -= part * unit[k];
}

struct block {
    double *vectors, *first; /* all, and the block's first */
    size_t length;
};

/* Subtracts the parts of all vectors before the block. */
static void subtract_earlier(void *ctx, size_t begin, size_t end)
{
    const struct block *b = ctx;

    for (const double *unit = b->vectors; unit < b->first; unit += b->length)
        for (size_t i = begin; i < end; i++)
            subtract(unit, b->length, b->first + i * b->length);
}

static void finish_block(const struct block *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double *own = b->first + i * b->length;

        for (const double *unit = b->first; unit < own; unit += b->length)
            subtract(unit, b->length, own);
        const double size = sqrt(product(own, own, b->length));

        for (size_t k = 0; k < b->length; k++)
            own[k] /= size;
    }
}

void pm_orthonormalise(double *vectors, size_t count, size_t length)
{
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t size = count - at < BLOCK ? count - at : BLOCK;
        struct block b = { vectors, vectors + at * length, length };

        pm_parallel(size, 4, subtract_earlier, &b);
        finish_block(&b, size);
    }
}
