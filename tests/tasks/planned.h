/* Plans a net on the CPU, for tests of tasks. */
#ifndef PUMICE_TESTS_PLANNED_H
#define PUMICE_TESTS_PLANNED_H

#include <pumice/plan.h>

#include "base/unit.h"

#include <math.h>

/* A plan on the CPU and the objects that it needs. */
struct planned {
    struct pm_device *device;
    struct pm_variables *variables; /* initial values from a seed */
    struct pm_plan *plan;
};

/* Creates and loads the plan; the caller writes its inputs. outputs: as in pm_plan_options. */
static inline struct planned planned(struct pm_net *net, const char *const *outputs)
{
    const struct pm_plan_options options = { .name = "test", .outputs = outputs, .slots = 1,
                                             .loss_share = 1 };
    struct pm_device_info *list = NULL;
    struct planned p = { 0 };
    size_t count, index;

    if (pm_device_list(&list, &count) < 0 ||
        pm_device_find(list, count, "cpu", "test", &index) < 0 ||
        pm_device_open(&list[index], &(struct pm_device_options){ .hang_seconds = INFINITY },
                       &p.device) < 0 ||
        pm_variables_create(p.device, net, false, NULL, &p.variables) < 0 ||
        pm_variables_allocate(p.variables) < 0 || pm_variables_init(p.variables, 5, NULL) < 0 ||
        pm_plan_create(net, p.device, p.variables, &options, &p.plan) < 0 ||
        pm_plan_load(p.plan) < 0)
        fail_msg("%s", pm_error_text());
    pm_free(list);
    return p;
}

static inline void run_plan(struct pm_plan *plan)
{
    assert_int_equal(pm_plan_submit(plan, 0), PM_OK);
    assert_int_equal(pm_plan_wait(plan, 0), PM_OK);
}

static inline void drop_plan(struct planned *p)
{
    pm_plan_destroy(&p->plan);
    pm_variables_destroy(&p->variables);
    pm_device_close(&p->device);
}

#endif
