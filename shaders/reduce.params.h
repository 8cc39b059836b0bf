/* reduce: output [k0][k1][k2] is made from the terms [r0][r1][r2] of x. ks and rs are the strides
 * of these axes in x. */
struct reduce_params {
    int outputs, terms, kind; /* kind: an enum pm_reduce */
    float scale;              /* factor of sums */
    int k[3], ks[3], r[3], rs[3];
};
/* reduce_bwd: dx = dy / ties where x = y, else 0. x is row-major with sizes d; y's strides are
 * s. */
struct reduce_bwd_params {
    int count;
    int d[6], s[6];
};
