/* The weight of a cell in sample e of crop_places. The shader declares `place` and `weight` as
 * buffers. Samples outside the map have place -1 and weight 0. */
float crop_weight(uint e, int cell)
{
    int low = place.v[e];
    float next = weight.v[e];

    return low == cell ? 1.0 - next : low + 1 == cell ? next : 0.0;
}
