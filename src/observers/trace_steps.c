/* trace_steps: trace_steps.h has the contract. */
#include "observers/trace_steps.h"

#include "base/pack.h"
#include "formats/xplane.h"

#include <pumice/replicas.h>
#include <pumice/trace.h>

/* Whether a step is traced. Step n is the n-th update. */
static bool is_chosen(const struct pm_run_facts *run, uint64_t step)
{
    const struct pm_ints *list = &run->c->run.trace_steps;

    return list->count > 0 && step >= (uint64_t)list->v[0] &&
           step <= (uint64_t)list->v[list->count - 1];
}

/* Returns at the same time in all processes. */
static int meet(const struct pm_run_facts *run)
{
    const char own = 0;
    char *all;
    int err;

    if (!run->replicas)
        return PM_OK;
    all = pm_malloc((size_t)pm_replicas_count(run->replicas));
    err = pm_replicas_allgather(run->replicas, &own, sizeof own, all);
    pm_free(all);
    return err;
}

bool pm_trace_steps_due(const struct pm_trace_steps *t, const struct pm_run_facts *run)
{
    return is_chosen(run, run->step + 1) != t->on;
}

int pm_trace_steps_switch(struct pm_trace_steps *t, const struct pm_run_facts *run)
{
    int err = PM_OK;

    if (t->on) {
        PM_TRY(pm_trace_steps_end(t, run));
        pm_clones_set_timed(run->clones, false);
        return PM_OK;
    }
    PM_TRY(meet(run)); /* all processes begin at the same time */
    pm_clones_set_timed(run->clones, true);
    t->on = true;
    t->from = run->step + 1;
    pm_trace_open();
    t->opened_at = pm_seconds();
out:
    return err;
}

/* ---- spans of all processes -------------------------------------------------------------- */

static void pack_span(void *ctx, const struct pm_trace_event *e)
{
    pm_pack_text(ctx, e->group);
    pm_pack_text(ctx, e->lane);
    pm_pack_text(ctx, e->name);
    pm_pack_text(ctx, e->detail);
    pm_pack_double(ctx, e->begin);
    pm_pack_double(ctx, e->end);
}

/* Records a packed span of another process. The time of its trace began with the chief's. */
static void record(struct pm_unpack *u, const struct pm_trace_steps *t, int rank, const char *host)
{
    char *group = pm_unpack_text(u), *lane = pm_unpack_text(u);
    char *name = pm_unpack_text(u), *detail = pm_unpack_text(u), whose[64];
    const double begin = pm_unpack_double(u), end = pm_unpack_double(u);

    if (!u->damaged && group && lane && name) {
        snprintf(whose, sizeof whose, "rank %d (%.20s): %s", rank, host, group);
        pm_trace_span(pm_trace_lane(whose, lane), name, detail, t->opened_at + begin,
                      t->opened_at + end);
    }
    pm_free(group);
    pm_free(lane);
    pm_free(name);
    pm_free(detail);
}

/* Sends the spans of this process to the chief, which records them. */
static int gather(struct pm_trace_steps *t, const struct pm_run_facts *run)
{
    struct pm_replicas *r = run->replicas;
    const int ranks = pm_replicas_count(r);
    size_t *sizes = pm_calloc((size_t)ranks, sizeof *sizes);
    struct pm_str own = { 0 };
    char *all = NULL;
    size_t at;
    int err = PM_OK;

    if (pm_replicas_rank(r) > 0)
        pm_trace_each(pack_span, &own);
    PM_TRY(pm_replicas_gather_bytes(r, false, own.text, own.length, &all, sizes));
    at = sizes[0];
    for (int k = 1; all && k < ranks; at += sizes[k++]) {
        struct pm_unpack u = { (const uint8_t *)all + at, sizes[k], false };

        while (u.left > 0 && !u.damaged)
            record(&u, t, k, pm_replicas_host(r, k));
        if (u.damaged)
            PM_WARN("train", "run.trace_steps: rank %d (%s) sent damaged spans", k,
                    pm_replicas_host(r, k));
    }
out:
    pm_str_free(&own);
    pm_free(all);
    pm_free(sizes);
    return err;
}

/* ---- files ------------------------------------------------------------------------------- */

static void add_span(void *ctx, const struct pm_trace_event *e)
{
    pm_xplane_span(ctx, e->group, e->lane, e->name, e->detail, e->begin, e->end);
}

/* Writes the same timeline for TensorBoard's profiler. */
static void write_profile(const struct pm_trace_steps *t, const struct pm_run_facts *run)
{
    struct pm_xplane *x = pm_xplane_create();
    char name[32];

    snprintf(name, sizeof name, "step-%06llu", (unsigned long long)t->from);
    pm_trace_each(add_span, x);
    if (pm_xplane_write(x, run->c->run.folder, name) < 0)
        PM_WARN("train", "run.trace_steps: %s", pm_error_text());
    pm_xplane_destroy(&x);
}

void pm_trace_steps_close(struct pm_trace_steps *t, const struct pm_run_facts *run)
{
    char path[4096];

    if (!t->on)
        return;
    t->on = false;
    if (pm_replicas_rank(run->replicas) > 0) {
        pm_trace_close(NULL);
        return;
    }
    write_profile(t, run);
    snprintf(path, sizeof path, "%s/trace-%06llu.json", run->c->run.folder,
             (unsigned long long)t->from);
    if (pm_trace_close(path) < 0)
        PM_WARN("train", "run.trace_steps: %s", pm_error_text());
    else
        PM_INFO("train", "steps %llu to %llu: %s", (unsigned long long)t->from,
                (unsigned long long)run->collected, path);
}

int pm_trace_steps_end(struct pm_trace_steps *t, const struct pm_run_facts *run)
{
    int err = PM_OK;

    if (!t->on)
        return PM_OK;
    if (run->replicas)
        PM_TRY(gather(t, run));
    pm_trace_steps_close(t, run);
out:
    return err;
}
