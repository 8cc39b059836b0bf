/* Returns s^-beta for s > 0. The usual exponents 3/4 and 1/2 are computed by square roots, which
 * are accurate enough on every driver. */
float pm_power(float s, float beta)
{
    if (beta == 0.75) {
        float root = inversesqrt(s);
        return root * sqrt(root);
    }
    return beta == 0.5 ? inversesqrt(s) : pow(s, -beta);
}
