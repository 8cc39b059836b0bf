#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/philox.glsl"
#include "lib/step.glsl"
#define unsigned uint
#include "sample_proposals.params.h"
layout(local_size_x_id = 0) in;
/* 0: match and draw; 1: choose; 2: write the rows; 3 (rotated boxes only, runs first): prepare the
 * true boxes. */
layout(constant_id = 3) const uint PART = 0;
layout(push_constant, scalar) uniform Push {
    InF32 proposals;
    InI32 count;
    InF32 truth_boxes;
    InF32 truth_weights;
    InStep step;
    InOutU32 work; /* kinds of all candidates, then their random words, then 1 if chosen; then the
                    * bits of the prepared true boxes, 8 each */
    OutF32 boxes;
    OutI32 matches;
    OutI32 y_count;
    OutF32 y_positives;
    OutF32 y_negatives;
    sample_proposals_params p;
};
#include "lib/overlap.glsl"
#ifdef ROTATED
#include "lib/rotated_pairs.glsl"
#include "lib/rotated_prepare.h"
#define BOX rotated
#define NUMBERS 5
#else
#define BOX vec4
#define NUMBERS 4
#endif

#ifdef ROTATED
/* Where the bits of a prepared true box begin. */
uint prepared(uint truth)
{
    return 3 * uint(p.images) * uint(p.candidates) + 8 * truth;
}

void prepare(uint truth)
{
    uint at = 5 * truth, to = prepared(truth);
    rotated r = rotated_prepare(truth_boxes.v[at], truth_boxes.v[at + 1], truth_boxes.v[at + 2],
                                truth_boxes.v[at + 3], truth_boxes.v[at + 4]);

    work.v[to] = floatBitsToUint(r.y);
    work.v[to + 1] = floatBitsToUint(r.x);
    work.v[to + 2] = floatBitsToUint(r.h);
    work.v[to + 3] = floatBitsToUint(r.w);
    work.v[to + 4] = floatBitsToUint(r.c);
    work.v[to + 5] = floatBitsToUint(r.c_low);
    work.v[to + 6] = floatBitsToUint(r.s);
    work.v[to + 7] = floatBitsToUint(r.s_low);
}
#endif

BOX truth_box(uint image, uint g)
{
#ifdef ROTATED
    uint from = prepared(image * uint(p.m) + g);
    rotated r;

    r.y = uintBitsToFloat(work.v[from]);
    r.x = uintBitsToFloat(work.v[from + 1]);
    r.h = uintBitsToFloat(work.v[from + 2]);
    r.w = uintBitsToFloat(work.v[from + 3]);
    r.c = uintBitsToFloat(work.v[from + 4]);
    r.c_low = uintBitsToFloat(work.v[from + 5]);
    r.s = uintBitsToFloat(work.v[from + 6]);
    r.s_low = uintBitsToFloat(work.v[from + 7]);
    return r;
#else
    uint at = 4 * (image * uint(p.m) + g);

    return vec4(truth_boxes.v[at], truth_boxes.v[at + 1], truth_boxes.v[at + 2],
                truth_boxes.v[at + 3]);
#endif
}

/* Whether the true box is one to learn. */
bool is_box(uint image, uint g)
{
    return truth_weights.v[image * uint(p.m) + g] > 0.0;
}

BOX candidate_box(uint image, uint i)
{
    if (i >= uint(p.p))
        return truth_box(image, i - uint(p.p));
    uint at = NUMBERS * (image * uint(p.p) + i);

#ifdef ROTATED
    return rotated_prepare(proposals.v[at], proposals.v[at + 1], proposals.v[at + 2],
                           proposals.v[at + 3], proposals.v[at + 4]);
#else
    return vec4(proposals.v[at], proposals.v[at + 1], proposals.v[at + 2], proposals.v[at + 3]);
#endif
}

/* Number k of a candidate's box. */
float candidate_number(uint image, uint i, uint k)
{
    if (i >= uint(p.p))
        return truth_boxes.v[NUMBERS * (image * uint(p.m) + i - uint(p.p)) + k];
    return proposals.v[NUMBERS * (image * uint(p.p) + i) + k];
}

bool is_candidate(uint image, uint i)
{
    if (truth_weights.v[image * uint(p.m)] < 0.0)
        return false; /* the example is absent */
    return i < uint(p.p) ? int(i) < count.v[image] : is_box(image, i - uint(p.p));
}

/* The true box that overlaps most, the first of equal ones; else the background. A match with a
 * box of weight 0 makes the candidate absent. */
uint kind_of(uint image, BOX box)
{
    float best_inner = 0.0, best_joined = 1.0;
    uint best = 0;

    for (uint g = 0; g < uint(p.m); g++) {
        float inner, joined;

        box_overlap(box, truth_box(image, g), inner, joined);
        /* From the least normal to the largest float: not 0, infinite or NaN. */
        if (!(inner >= 1.17549435e-38 && joined <= 3.4028235e38))
            continue;
        if (best_inner == 0.0 || quotient_exceeds(inner, joined, best_inner, best_joined))
            best_inner = inner, best_joined = joined, best = g;
    }
    if (!quotient_above(best_inner, best_joined, p.below))
        return SAMPLE_BACKGROUND;
    return is_box(image, best) ? SAMPLE_MATCHED + best : SAMPLE_ABSENT;
}

void match_and_draw(uint at, uint all)
{
    uint image = at / uint(p.candidates), i = at % uint(p.candidates);

    work.v[at] = is_candidate(image, i) ? kind_of(image, candidate_box(image, i)) : SAMPLE_ABSENT;
    if (p.positives < 0)
        return; /* nothing is drawn */
    uvec4 words = pm_random(uvec2(step.seed_low, step.seed_high),
                            uvec2(p.stream_low, p.stream_high), step.step,
                            uint(p.first_example) + image, i / 4);

    work.v[all + at] = words[i % 4];
}

/* A candidate is chosen if few of its kind have larger words. Equal words count by number. */
void choose(uint at, uint all)
{
    uint first = at - at % uint(p.candidates), kind = min(work.v[at], uint(SAMPLE_MATCHED));

    if (p.positives < 0) {
        work.v[2 * all + at] = is_candidate(at / uint(p.candidates), at - first) ? 1 : 0;
        return;
    }
    uint word = work.v[all + at], before = 0, positives = 0;

    for (uint j = first; j < first + uint(p.candidates); j++) {
        uint other = min(work.v[j], uint(SAMPLE_MATCHED)), its = work.v[all + j];

        positives += other == SAMPLE_MATCHED ? 1 : 0;
        before += other == kind && (its > word || (its == word && j < at)) ? 1 : 0;
    }
    uint most = kind == SAMPLE_MATCHED ? uint(p.positives)
                                       : uint(p.rows) - min(positives, uint(p.positives));
    work.v[2 * all + at] = kind != SAMPLE_ABSENT && before < most ? 1 : 0;
}

/* Counts the chosen candidates of an image by kind. */
void write_numbers(uint image, uint all)
{
    uint first = image * uint(p.candidates), positives = 0, negatives = 0;

    for (uint i = 0; i < uint(p.candidates); i++) {
        uint is = work.v[2 * all + first + i], kind = work.v[first + i];

        positives += kind >= SAMPLE_MATCHED ? is : 0;
        negatives += kind == SAMPLE_BACKGROUND ? is : 0;
    }
    y_positives.v[image] = float(positives);
    y_negatives.v[image] = float(negatives);
}

/* Row r of an image is its r-th chosen candidate. */
void write_row(uint row, uint all)
{
    uint image = row / uint(p.rows), r = row % uint(p.rows), chosen = 0, found = 0;
    uint first = image * uint(p.candidates);

    for (uint i = 0; i < uint(p.candidates); i++) {
        uint is = work.v[2 * all + first + i];

        if (is != 0 && chosen == r)
            found = i;
        chosen += is;
    }
    for (uint k = 0; k < NUMBERS; k++)
        boxes.v[NUMBERS * row + k] = r < chosen ? candidate_number(image, found, k) : 0.0;
    matches.v[row] = r < chosen ? int(work.v[first + found]) - SAMPLE_MATCHED : -2;
    if (r == 0) {
        y_count.v[image] = int(chosen);
        write_numbers(image, all);
    }
}

void main()
{
    uint all = uint(p.images) * uint(p.candidates);
    uint items = PART == 2 ? uint(p.images) * uint(p.rows)
                 : PART == 3 ? uint(p.images) * uint(p.m)
                             : all;

    for (uint i = pm_first(); i < items; i += pm_stride()) {
#ifdef ROTATED
        if (PART == 3) {
            prepare(i);
            continue;
        }
#endif
        if (PART == 0)
            match_and_draw(i, all);
        else if (PART == 1)
            choose(i, all);
        else
            write_row(i, all);
    }
}
