#define HAS_NORMALIZER pm_has(4)
#define HAS_KEPT pm_has(5)
layout(push_constant, scalar) uniform Push {
    InF32 loc;
    InF32 cls;
    InI32 matches;
    InF32 weights;
    InF32 normalizer;
    InF32 kept;
    InOutF32 part; /* per group: sum of loc, of cls, of the matches' weights */
    OutF32 loc_loss;
    OutF32 cls_loss;
    OutF32 factors;
    detection_sum_params p;
};
