/* Parts of golden_test for detectors: targets, losses and weight decay as in
 * tests/golden/tfod_nets.py. */
#ifndef GOLDEN_DETECTORS_H
#define GOLDEN_DETECTORS_H

#include "../base/unit.h"

#include "layers/anchors.h"

#include <pumice/net.h>
#include <pumice/plan.h>
#include <pumice/rng.h>

#include <cjson/cJSON.h>

static inline bool is_anchors(const struct pm_head *h)
{
    return strcmp(h->name, "anchors") == 0;
}

/* Adds the loss: the sum over heads of the mean of (x - t)^2. */
static inline void add_detector_losses(struct pm_net *net, const struct pm_heads *heads)
{
    for (int i = 0; i < heads->count; i++) {
        struct pm_node *both[2] = { heads->list[i].node };

        if (is_anchors(&heads->list[i]))
            continue;
        both[1] = pm_net_input(net, pm_arena_printf(net->arena, "target_%s", heads->list[i].name),
                               both[0]->out_shape, PM_F32);
        pm_net_add_many(net, pm_arena_printf(net->arena, "loss_%s", heads->list[i].name), both, 2,
                        "squared_error");
    }
}

/* Draws the targets, -1..1. */
static inline void fill_detector_targets(struct pm_plan *plan, uint64_t seed,
                                         const struct pm_heads *heads)
{
    for (int i = 0; i < heads->count; i++) {
        const size_t count = pm_shape_count(heads->list[i].node->out_shape);
        char name[64];

        if (is_anchors(&heads->list[i]))
            continue;
        snprintf(name, sizeof name, "golden/target_%s", heads->list[i].name);
        struct pm_rng r = pm_rng_make(seed, pm_hash(name), 0, 0);
        float *target = pm_plan_input(plan, 0, name + strlen("golden/"), 0);
        for (size_t k = 0; k < count; k++)
            target[k] = (float)(2 * pm_rng_uniform(&r) - 1);
    }
}

/* The variables with weight decay are those of the list. */
static inline void expect_regularized(const struct pm_net *net, const cJSON *list)
{
    int count = 0;

    for (int k = 0; k < net->var_count; k++) {
        const cJSON *v;
        bool listed = false;

        cJSON_ArrayForEach(v, list)
            listed |= strcmp(v->valuestring, net->vars[k]->name) == 0;
        if (listed != net->vars[k]->regularize)
            fail_msg("weight decay of %s is %s", net->vars[k]->name, listed ? "missing" : "wrong");
        count += listed;
    }
    assert_int_equal(count, cJSON_GetArraySize(list));
}

#endif
