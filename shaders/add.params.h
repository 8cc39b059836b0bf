/* add: y = act(a + scale (b + c + ..)); g = dy act'. want: 1 = dfirst (g), 2 = dothers (scale
 * g). */
struct add_params {
    int count, inputs;
    int act, want;
    float slope, scale;
};
