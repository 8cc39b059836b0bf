/* exchange_none: one clone. Its variables are the master copy, and its plan contains the
 * optimizer. */
#include "clones/clones_parts.h"

struct pm_exchange {
    struct pm_clones *c; /* borrowed */
};

static struct pm_exchange *create(struct pm_clones *c)
{
    struct pm_exchange *x = pm_calloc(1, sizeof *x);

    x->c = c;
    return x;
}

static int join(struct pm_exchange *x, int i)
{
    (void)x, (void)i;
    return PM_OK;
}

static int nothing(struct pm_exchange *x)
{
    (void)x;
    return PM_OK;
}

static void destroy(struct pm_exchange *x)
{
    pm_free(x);
}

static int update(struct pm_exchange *x, int slot, const struct pm_step *step,
                  struct pm_step_result *r)
{
    (void)x, (void)slot, (void)step, (void)r;
    return PM_OK;
}

static int collect(struct pm_exchange *x, int slot, struct pm_step_result *r)
{
    int err = PM_OK;

    PM_TRY(pm_clones_finish_all(x->c, slot, r));
    pm_clones_read_update(pm_clones_slot_plan(x->c, 0, slot), slot, r);
out:
    return err;
}

static struct pm_variables *master(const struct pm_exchange *x)
{
    return x->c->clone[0].variables;
}

static struct pm_plan *update_plan(const struct pm_exchange *x)
{
    (void)x;
    return NULL;
}

const struct pm_exchange_row pm_exchange_none = {
    .name = "none", .on_clones = true, .create = create, .join = join, .open = nothing,
    .destroy = destroy, .update = update, .collect = collect, .master = master,
    .update_plan = update_plan, .gather = nothing, .scatter = nothing, .give_averages = nothing,
};
