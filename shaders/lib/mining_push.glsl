#define HAS_WEIGHTS pm_has(1)
layout(push_constant, scalar) uniform Push {
    InF32 losses;
    InF32 weights;
    InI32 keep;
    InStep step;
    InOutU32 work;
    OutF32 mined;
    OutF32 mined_losses;
    mining_params p;
};
