/* Overlaps of rotated boxes for suppression, after lib/overlap.glsl. */
#include "lib/rotated_clip.h"

/* Stores intersection and union; 0 and 1 if the boxes are too far from each other. */
void box_overlap(rotated a, rotated b, out float inner, out float joined)
{
    inner = 0.0;
    joined = 1.0;
    if (!rotated_apart(a, b)) {
        shared_area both = rotated_overlap(a, b);

        inner = both.inner;
        joined = both.joined;
    }
}

bool boxes_exceed(rotated a, rotated b, float limit)
{
    if (overlap_below(a.y - b.y, a.x - b.x, rotated_reach(a), rotated_reach(b), rotated_area(a),
                      rotated_area(b), limit))
        return false;
    shared_area both = rotated_overlap(a, b);

    return quotient_above(both.inner, both.joined, limit);
}
