/* The weight of a row, shared by the calls of softmax_cross_entropy. */
float weight_of(uint row)
{
    if (p.unlabelled == 0 && labels.v[row] == p.ignore)
        return 0.0;
    return p.weighted != 0 ? weights.v[row] : 1.0;
}
