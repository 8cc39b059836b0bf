/* The losses of class scores. x is a score, z its target. */
#include "lib/detection_loss.glsl"
#include "lib/log1p.glsl"

/* The weight of an anchor: 0 if it is ignored; NaN if its match is not valid. */
float anchor_weight(uint row, int g)
{
    if (g == MATCH_NEGATIVE)
        return p.negative;
    if (g == MATCH_IGNORED)
        return 0.0;
    if (g < 0 || g >= p.m)
        return uintBitsToFloat(0x7fc00000u);
    float w = weights.v[detection_truth(row, g)];

    return (p.flags & DETECTION_EQUAL) != 0 && w > 0.0 ? 1.0 : w;
}

/* Whether g, which is not negative, has a class that exists. */
bool valid_class(uint row, int g)
{
    int k = classes.v[detection_truth(row, g)] + (p.flags & DETECTION_BACKGROUND);

    return p.labels > 0 || (k >= (p.flags & DETECTION_BACKGROUND) && k < p.columns);
}

/* The target of a column. */
float target_of(uint row, int g, int column)
{
    int background = p.flags & DETECTION_BACKGROUND;

    if (g < 0)
        return background != 0 && (p.flags & DETECTION_ZEROS) == 0 && column == 0 ? 1.0 : 0.0;
    uint truth = detection_truth(row, g);
    if (p.labels == 0)
        return column == classes.v[truth] + background ? 1.0 : 0.0;
    column -= p.columns - p.labels;
    return column < 0 ? 0.0 : intBitsToFloat(classes.v[truth * uint(p.labels) + uint(column)]);
}

/* The logarithm of the sum of exponentials of targets that are logits; else 0. */
float target_lse(uint row, int g)
{
    float largest, sum = 0.0;

    if ((p.flags & DETECTION_LOGITS) == 0)
        return 0.0;
    largest = target_of(row, g, 0);
    for (int i = 1; i < p.columns; i++)
        largest = max(largest, target_of(row, g, i));
    for (int i = 0; i < p.columns; i++)
        sum += exp((target_of(row, g, i) - largest) * p.a);
    return largest * p.a + log(sum);
}

/* The target of a column for the softmax. lse: of target_lse. */
float softmax_target(uint row, int g, int column, float lse)
{
    float z = target_of(row, g, column);

    return (p.flags & DETECTION_LOGITS) != 0 ? exp(z * p.a - lse) : z;
}

struct Score {
    float p, q; /* probability and 1 - probability */
    float entropy;
    float target; /* of the cross entropy */
};

Score score_of(float x, float z)
{
    float e = exp(-abs(x)), r = 1.0 / (1.0 + e);
    Score s = Score(x >= 0.0 ? r : e * r, x >= 0.0 ? e * r : r, 0.0, z);

    if (p.kind == DETECTION_BOOTSTRAPPED)
        s.target = p.a * z + (1.0 - p.a) * s.p;
    if (p.kind == DETECTION_BOOTSTRAPPED_HARD)
        s.target = p.a * z + (1.0 - p.a) * (x > 0.0 ? 1.0 : 0.0);
    s.entropy = max(x, 0.0) - x * s.target + log1p(e);
    return s;
}

float focal_alpha(float z)
{
    return p.b < 0.0 ? 1.0 : z * p.b + (1.0 - z) * (1.0 - p.b);
}

/* m^gamma, m in 0..1. */
float focal_power(float m)
{
    return p.a == 2.0 ? m * m : p.a == 0.0 ? 1.0 : m > 0.0 ? pow(m, p.a) : 0.0;
}

float score_loss(float x, float z)
{
    Score s = score_of(x, z);

    return p.kind != DETECTION_FOCAL
               ? s.entropy
               : focal_alpha(z) * focal_power(z * s.q + (1.0 - z) * s.p) * s.entropy;
}

float score_slope(float x, float z)
{
    Score s = score_of(x, z);
    float slope = s.p - s.target;

    if (p.kind == DETECTION_BOOTSTRAPPED)
        return slope - x * (1.0 - p.a) * s.p * s.q;
    if (p.kind == DETECTION_FOCAL) {
        float m = z * s.q + (1.0 - z) * s.p;
        float ratio = m > 0.0 ? (1.0 - 2.0 * z) * s.p * s.q / m : 0.0; /* m' / m */

        return focal_alpha(z) * focal_power(m) * (p.a * ratio * s.entropy + slope);
    }
    return slope;
}
