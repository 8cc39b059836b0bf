#define HAS_VALID pm_has(2)
/* The push block of the row suppress. Lanes read what other lanes of the group kept before, so
 * `kept` is coherent. */
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer KeptI32 { int v[]; };
layout(push_constant, scalar) uniform Push {
    InF32 boxes;
    InF32 scores;
    InI32 valid;
    InOutU32 work;
    KeptI32 kept;
    OutF32 kept_scores;
    suppress_params p;
};

#ifdef ROTATED
#include "lib/rotated_pairs.glsl"
#define BOX rotated

/* Boxes are prepared: eight numbers each. */
rotated box_at(uint list, uint i)
{
    uint at = list / uint(p.classes) * uint(p.n) + i;
    rotated r;

    at = 8 * (at * uint(p.boxes) + (p.boxes > 1 ? list % uint(p.classes) : 0));
    r.y = boxes.v[at];
    r.x = boxes.v[at + 1];
    r.h = boxes.v[at + 2];
    r.w = boxes.v[at + 3];
    r.c = boxes.v[at + 4];
    r.c_low = boxes.v[at + 5];
    r.s = boxes.v[at + 6];
    r.s_low = boxes.v[at + 7];
    return r;
}
#else
#define BOX vec4

vec4 box_at(uint list, uint i)
{
    uint at = list / uint(p.classes) * uint(p.n) + i;

    at = 4 * (at * uint(p.boxes) + (p.boxes > 1 ? list % uint(p.classes) : 0));

    return box_ordered(vec4(boxes.v[at], boxes.v[at + 1], boxes.v[at + 2], boxes.v[at + 3]));
}
#endif

uint score_at(uint list, uint i)
{
    uint classes = uint(p.classes);

    return (list / classes * uint(p.n) + i) * classes + list % classes;
}

/* Boxes of a list that are not padding. */
uint boxes_in(uint list)
{
    if (HAS_VALID)
        return uint(clamp(valid.v[list / uint(p.classes)], 0, p.n));
    return uint(p.n);
}
