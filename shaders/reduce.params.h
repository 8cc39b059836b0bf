/* reduce: output [k0][k1][k2] of x is made of the terms [r0][r1][r2]; an index along an axis counts
 * for ks, rs in x. */
struct reduce_params {
    int outputs, terms, kind; /* of enum pm_reduce */
    float scale;              /* of sums */
    int k[3], ks[3], r[3], rs[3];
    int keep_ties;            /* write how many terms are the maximum or minimum */
};
/* reduce_bwd: dx = dy / ties where x = y, else 0; x is row-major of sizes d, y's strides are s. */
struct reduce_bwd_params {
    int count;
    int d[6], s[6];
};
