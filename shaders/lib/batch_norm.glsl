/* The gradient at batch norm's sum, g = dy act'(z), shared by the two backward calls. The including
 * shader's Push has x, y, dy, residual, mean, rstd, gamma, beta and p. Index c counts channels
 * (vectors of channels with VEC = 4), i elements. */
layout(constant_id = 3) const int ACT = 0;
layout(constant_id = 4) const int FLAGS = 0;

T bn_scale(uint c)
{
    return (FLAGS & BN_GAMMA) != 0 ? rstd.v[c] * gamma.v[c] : rstd.v[c];
}

T bn_beta(uint c)
{
    return (FLAGS & BN_BETA) != 0 ? beta.v[c] : T(0);
}

T bn_gradient(uint i, uint c)
{
    T g = dy.v[i];

    if (pm_act_takes_z(ACT)) {
        T z = (x.v[i] - mean.v[c]) * bn_scale(c) + bn_beta(c);

        if ((FLAGS & BN_RESIDUAL) != 0)
            z += residual.v[i];
        return g * pm_act_slope(ACT, p.slope, z);
    }
    return ACT == PM_ACT_NONE ? g : g * pm_act_slope(ACT, p.slope, y.v[i]);
}
