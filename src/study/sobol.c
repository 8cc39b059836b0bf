/* sobol: the Sobol sequence (Sobol, 1967) with direction numbers of Joe and Kuo, "Constructing
 * Sobol sequences with better two-dimensional projections" (2008). */
#include "study/study.h"

#include <assert.h>

enum { BITS = 32, DEGREE = 7 };

/* Dimensions 1, 2, ...: degree and inner coefficients of the primitive polynomial, and the first
 * direction numbers. Dimension 0 is the van der Corput sequence. */
static const struct {
    int degree, coefficients, m[DEGREE];
} rows[] = {
    { 1, 0, { 1 } },
    { 2, 1, { 1, 3 } },
    { 3, 1, { 1, 3, 1 } },
    { 3, 2, { 1, 1, 1 } },
    { 4, 1, { 1, 1, 3, 3 } },
    { 4, 4, { 1, 3, 5, 13 } },
    { 5, 2, { 1, 1, 5, 5, 17 } },
    { 5, 4, { 1, 1, 5, 5, 5 } },
    { 5, 7, { 1, 1, 7, 11, 19 } },
    { 5, 11, { 1, 1, 5, 1, 1 } },
    { 5, 13, { 1, 1, 1, 3, 11 } },
    { 5, 14, { 1, 3, 5, 5, 31 } },
    { 6, 1, { 1, 3, 3, 9, 7, 49 } },
    { 6, 13, { 1, 1, 1, 15, 21, 21 } },
    { 6, 16, { 1, 3, 1, 13, 27, 49 } },
    { 6, 19, { 1, 1, 1, 15, 7, 5 } },
    { 6, 22, { 1, 3, 1, 15, 13, 25 } },
    { 6, 25, { 1, 1, 5, 5, 19, 61 } },
    { 7, 1, { 1, 3, 7, 11, 23, 15, 103 } },
    { 7, 4, { 1, 3, 7, 13, 13, 15, 69 } },
};

static_assert(PM_COUNT(rows) + 1 == PM_STUDY_PARTS, "a row for each part of a study");

/* Fills in the direction numbers, with the first one in the highest bits. */
static void directions(int dim, uint32_t v[BITS])
{
    const int degree = dim > 0 ? rows[dim - 1].degree : 0;

    for (int i = 0; i < BITS; i++) {
        if (dim == 0) {
            v[i] = UINT32_C(1) << (BITS - 1 - i);
        } else if (i < degree) {
            v[i] = (uint32_t)rows[dim - 1].m[i] << (BITS - 1 - i);
        } else {
            v[i] = v[i - degree] ^ v[i - degree] >> degree;
            for (int k = 1; k < degree; k++)
                if (rows[dim - 1].coefficients >> (degree - 1 - k) & 1)
                    v[i] ^= v[i - k];
        }
    }
}

uint32_t pm_sobol(uint32_t index, int dim)
{
    const uint32_t gray = index ^ index >> 1;
    uint32_t v[BITS], x = 0;

    assert(dim >= 0 && dim < PM_STUDY_PARTS);
    directions(dim, v);
    for (int i = 0; i < BITS; i++)
        if (gray >> i & 1)
            x ^= v[i];
    return x;
}
