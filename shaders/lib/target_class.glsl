/* The class with the largest target, the first of equal ones; -1: the background. Targets begin at
 * classes.v[at], as bits of floats. labels: their number; one more than `count`, the number of
 * classes, if the first is that of the background. Otherwise the background has the target 0. Twin
 * of pm_target_class() in src/layers/detection_rows.h. */
int target_class(uint at, int labels, int count)
{
    int found = 0;

    for (int i = 1; i < labels; i++)
        if (intBitsToFloat(classes.v[at + uint(i)]) > intBitsToFloat(classes.v[at + uint(found)]))
            found = i;
    if (labels == count && !(intBitsToFloat(classes.v[at + uint(found)]) > 0.0))
        return -1;
    return found - (labels - count);
}
