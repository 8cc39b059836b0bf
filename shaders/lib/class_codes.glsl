/* The class whose codes count for a row; -1: none. Twin of src/layers/class_codes.c. */
int class_of(uint row)
{
    int g = matches.v[row], found = 0;

    if (g < 0 || g >= p.m)
        return -1;
    uint truth = row / uint(p.per) * uint(p.m) + uint(g);

    if (p.labels > 0) {
        uint at = truth * uint(p.labels);

        for (int i = 1; i < p.labels; i++)
            if (intBitsToFloat(classes.v[at + uint(i)]) >
                intBitsToFloat(classes.v[at + uint(found)]))
                found = i;
        if (p.labels == p.classes && !(intBitsToFloat(classes.v[at + uint(found)]) > 0.0))
            return -1; /* the background, whose target is 0, is the first of the largest */
        return found - (p.labels - p.classes);
    }
    found = classes.v[truth];
    return found < p.classes ? found : -1;
}
