/* Anchors and true boxes for the tests of matching. */
#ifndef TESTS_MATCHING_SCENE_H
#define TESTS_MATCHING_SCENE_H

#include "base/golden_file.h"
#include "tasks/detection/matching.h"

enum { MOST_ANCHORS = 2000, MOST_TRUTHS = 300 };

static const struct pm_matcher plain = {
    .matched_threshold = 0.5f, .unmatched_threshold = 0.5f, .iou_threshold = 0.25f,
    .negatives_lower_than_unmatched = true,
};

struct scene {
    int anchors;
    struct pm_truths t;
    float anchor[MOST_ANCHORS][4], box[MOST_TRUTHS][4], weight[MOST_TRUTHS], score[MOST_TRUTHS];
};

static inline void point(struct scene *s)
{
    s->t.boxes = s->box[0];
    s->t.weights = s->weight;
    s->t.scores = s->score;
}

static inline void match(const struct pm_matcher *m, const struct scene *s, int32_t *out,
                  struct pm_truth_best *best)
{
    struct pm_anchor_index *x = pm_anchor_index_create(s->anchor[0], s->anchors);

    assert_int_equal(pm_anchor_index_count(x), s->anchors);
    pm_match(m, x, &s->t, out, best);
    pm_anchor_index_destroy(&x);
    assert_null(x);
}

#endif
