#include "lib/target_class.glsl"

/* The class whose codes count for a row; -1: none. Twin of src/layers/class_codes.c. */
int class_of(uint row)
{
    int g = matches.v[row];

    if (g < 0 || g >= p.m)
        return -1;
    uint truth = row / uint(p.per) * uint(p.m) + uint(g);

    if (p.labels > 0)
        return target_class(truth * uint(p.labels), p.labels, p.classes);
    int own = classes.v[truth];

    return own < p.classes ? own : -1;
}
