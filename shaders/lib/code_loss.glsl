/* The loss of a code and its gradient. d is the code minus its target, w the weight of the matched
 * box. p, the params of the push block, has kind and delta. Twins of pm_code_loss() and
 * pm_code_slope() in src/layers/detection_rows.h. */
float code_loss(float w, float d)
{
    if (p.kind == DETECTION_L2)
        return 0.5 * (w * d) * (w * d);
    if (p.kind == DETECTION_L1)
        return w * abs(d);
    return w * (abs(d) <= p.delta ? 0.5 * d * d : p.delta * (abs(d) - 0.5 * p.delta));
}

float code_slope(float w, float d)
{
    if (p.kind == DETECTION_L2)
        return w * w * d;
    if (p.kind == DETECTION_L1)
        return w * sign(d);
    return w * clamp(d, -p.delta, p.delta);
}
