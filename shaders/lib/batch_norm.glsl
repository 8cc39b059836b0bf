/* z = (x - mean) rstd gamma + beta + residual, shared by the forward and the backward calls. The
 * including shader's Push has x, mean, rstd, gamma, beta, residual and p, and it defines HAS_GAMMA,
 * HAS_BETA and HAS_RESIDUAL. Index c counts channels (vectors of channels with VEC = 4), i counts
 * elements. The backward calls compute z again instead of reading y. `precise` makes their z
 * bit-identical to the forward call's, so the activation's slope belongs to the same side of its
 * corner. */
layout(constant_id = 3) const int ACT = 0;

T bn_scale(uint c)
{
    precise T scale = rstd.v[c];

    if (HAS_GAMMA)
        scale *= gamma.v[c];
    return scale;
}

T bn_z(uint i, uint c)
{
    precise T z = (x.v[i] - mean.v[c]) * bn_scale(c);

    if (HAS_BETA)
        z += beta.v[c];
    if (HAS_RESIDUAL)
        z += residual.v[i];
    return z;
}
