/* add: y = act(a + scale (b + c + ..)); g = dy act', dfirst = g, dothers = scale g. */
struct add_params {
    int count, inputs;
    int act;
    float slope, scale;
};
