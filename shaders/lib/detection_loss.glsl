/* Places of an anchor's values, shared by the shaders of detection_loss. */
const int MATCH_NEGATIVE = -1, MATCH_IGNORED = -2;

/* Index of a level's row among the anchors of all examples. */
uint detection_place(uint row)
{
    return row / uint(p.per) * uint(p.anchors) + uint(p.first) + row % uint(p.per);
}

/* Index of the true box g of the example that a level's row belongs to. */
uint detection_truth(uint row, int g)
{
    return row / uint(p.per) * uint(p.m) + uint(g);
}
