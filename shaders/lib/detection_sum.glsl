#define HAS_NORMALIZER pm_has(4)
#define HAS_KEPT pm_has(5)
layout(push_constant, scalar) uniform Push {
    InF32 loc;
    InF32 cls;
    InI32 matches;
    InF32 weights;
    InI32 normalizer; /* bits of floats, except for DETECTION_BY_COUNT. A device may flush small
                         integers to 0 if it reads them as floats. */
    InF32 kept;
    InOutF32 part; /* per group: sum of loc, of cls, of the matches' weights */
    OutF32 loc_loss;
    OutF32 cls_loss;
    OutF32 factors;   /* of each example: of loc, of cls */
    detection_sum_params p;
};

bool is_absent(uint image)
{
    return weights.v[image * uint(p.m)] < 0.0;
}

/* 1 / divisor of one example; 1 if the sum has one divisor for all. */
float own_factor(uint image)
{
    if (HAS_NORMALIZER && p.divisor == DETECTION_BY_IMAGE)
        return 1.0 / intBitsToFloat(normalizer.v[image]);
    if (HAS_NORMALIZER && p.divisor == DETECTION_BY_COUNT && is_absent(image))
        return 0.0;
    if (HAS_NORMALIZER && p.divisor == DETECTION_BY_COUNT)
        return 1.0 / float(max(normalizer.v[image], 1));
    return 1.0;
}
