layout(push_constant, scalar) uniform Push {
    InF32 losses;
    InF32 weights;
    InI32 keep;
    InStep step;
    InOutU32 work;
    OutF32 kept;
    OutF32 kept_losses;
    mining_params p;
};
