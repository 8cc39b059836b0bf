/* The weight of a row, shared by the calls of softmax_cross_entropy. */
float weight_of(uint row)
{
    return labels.v[row] == p.ignore ? 0.0 : p.weighted != 0 ? weights.v[row] : 1.0;
}
