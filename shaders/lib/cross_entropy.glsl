/* The weight of a row, shared by the calls of softmax_cross_entropy. Labels are buffer 1, weights
 * buffer 2 of each row. */
#include "lib/presence.glsl"
#define HAS_LABELS pm_has(1)
#define HAS_WEIGHTS pm_has(2)

float weight_of(uint row)
{
    if (HAS_LABELS && labels.v[row] == p.ignore)
        return 0.0;
    return HAS_WEIGHTS ? weights.v[row] : 1.0;
}

/* Whether a row counts in the divisor of the sum. */
bool counts(uint row)
{
    if (HAS_LABELS && p.count_kept != 0)
        return labels.v[row] != p.ignore;
    return weight_of(row) != 0.0;
}
