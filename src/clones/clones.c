/* clones: see clones.h. Everything is allocated here once. */
#include "clones/clones_parts.h"

#include "verify/verified_plan.h"

#include <pumice/trace.h>

#include <math.h>
#include <string.h>

enum { BUCKET_BYTES = 4 << 20 };

/* ---- shares ----------------------------------------------------------------------------- */

/* Whole micro-batches, at least one example each, by the largest remainders: the parts add up to
 * the batch. */
static int share_out(struct pm_clones *c)
{
    int unit = c->o.micro_batches, units = c->o.batch / unit, given = 0;
    double total = 0;

    if (c->o.batch % unit != 0 || units < c->o.count)
        return pm_fail(PM_ECONFIG, "run.batch_size: %d cannot be shared by %d clone%s in %d "
                       "micro-batches; it must be a multiple of run.micro_batches and hold one of "
                       "each for every clone", c->o.batch, c->o.count,
                       c->o.count == 1 ? "" : "s", unit);
    for (int i = 0; i < c->o.count; i++)
        total += c->specs[i].share;
    for (int i = 0; i < c->o.count; i++) {
        int part = (int)floor(units * c->specs[i].share / total);

        c->clone[i].count = part < 1 ? 1 : part;
        given += c->clone[i].count;
    }
    while (given != units) { /* the one farthest from its due gets or gives one */
        int best = -1, sign = given < units ? 1 : -1;
        double worst = 0;

        for (int i = 0; i < c->o.count; i++) {
            double off = sign * (units * c->specs[i].share / total - c->clone[i].count);

            if ((sign > 0 || c->clone[i].count > 1) && (best < 0 || off > worst))
                best = i, worst = off;
        }
        c->clone[best].count += sign;
        given += sign;
    }
    for (int i = 0, first = 0; i < c->o.count; i++) {
        c->clone[i].count *= unit;
        c->clone[i].first = first;
        first += c->clone[i].count;
    }
    return PM_OK;
}

/* ---- making ----------------------------------------------------------------------------- */

/* With several clones the others' memory does not help: which part is too large, and what to do. */
static int explain(const struct pm_clones *c, int i, int err)
{
    if (err != PM_EMEMORY || pm_clones_alone(c))
        return err;
    return pm_fail(err, "%s; clone %d of %d (%s) takes %d of the batch's %d examples: a smaller "
                   "devices[%d].share also needs less", pm_error_text(), i + 1, c->o.count,
                   c->specs[i].info.name, c->clone[i].count, c->o.batch, c->specs[i].place);
}

static int make_clone(struct pm_clones *c, int i)
{
    const struct pm_clone_spec *s = &c->specs[i];
    struct clone *k = &c->clone[i];
    bool one = pm_clones_alone(c);
    struct pm_device_options options = c->o.device;
    const char *const *slots = pm_optimizer_slots(c->o.update.optimizer, c->o.update.cfg);
    char trace[320];
    const struct pm_verification verification = {
        .on = c->o.verify && !c->o.dry_run, .build = c->o.build, .ctx = c->o.ctx,
        .batch = k->count / c->o.micro_batches, .integers = c->o.integers };
    int err = PM_OK;

    snprintf(trace, sizeof trace, "clone %d: %s, %s", i, s->info.address, s->info.name);
    options.trace = trace;
    options.threads = s->threads;
    options.slow = s->slow;
    options.hang_at = s->hang_at;
    options.lose_at = s->losses < s->lose_times ? s->lose_at : 0;
    if (s->segment_ms > 0)
        options.segment_ms = s->segment_ms;
    PM_TRY(pm_device_open(&s->info, &options, &k->device));
    PM_TRY(c->o.build(c->o.ctx, k->count / c->o.micro_batches, &k->net));
    PM_TRY(pm_variables_create(k->device, k->net, true,
                               one ? slots : NULL, &k->variables));
    if (c->o.update.averages && i == 0)
        pm_variables_keep_averages(k->variables);
    if (!c->o.dry_run)
        PM_TRY(pm_variables_allocate(k->variables));
    PM_TRY(pm_verified_plan_create(&verification, k->net, k->device, k->variables,
                                   &(struct pm_plan_options){
        .name = "train", .train = true, .first_example = k->first,
        .loss_share = (float)k->count / (float)c->o.batch, .micro_batches = c->o.micro_batches,
        .recompute = c->o.recompute, .outputs = c->o.outputs,
        .bucket_bytes = one ? 0 : BUCKET_BYTES,
        .frozen = pm_update_frozen, .frozen_ctx = &c->o.update,
        .update = one                          ? pm_update_append
                  : i == 0 || pm_clones_share_moving(c) ? pm_update_layers_only : NULL,
        .update_ctx = &c->o.update, .slots = c->o.slots, .timed = c->o.timed,
        .timeable = c->o.timeable }, one ? slots : NULL, &k->plan));
    if (c->o.dry_run)
        return PM_OK;
    PM_TRY(pm_plan_load(k->plan));
    if (!one) {
        const struct pm_variables *v = k->variables;
        const size_t bytes = pm_clones_share_moving(c) ? v->bytes : v->trainable_bytes;
        struct pm_place all = { v->values, 0, bytes };

        PM_TRY(pm_program_create(k->device, &(struct pm_program_desc){
            .name = "values", .in = &all, .in_count = 1, .slots = 2 }, &k->push));
    }
out:
    return err;
}

static int make_host(struct pm_clones *c)
{
    struct pm_device_info *list = NULL;
    struct pm_device_info info;
    size_t count, index;
    int err = PM_OK;

    PM_TRY(pm_device_list(&list, &count));
    PM_TRY(pm_device_find(list, count, "cpu", "host", &index));
    info = list[index];
    PM_TRY(pm_device_open(&info, &(struct pm_device_options){
        .hang_seconds = c->o.device.hang_seconds, .trace = "host: optimizer" }, &c->host));
    PM_TRY(c->o.build(c->o.ctx, 1, &c->host_net));
    PM_TRY(pm_variables_create(c->host, c->host_net, true,
                               pm_optimizer_slots(c->o.update.optimizer, c->o.update.cfg),
                               &c->host_variables));
    if (c->o.update.averages)
        pm_variables_keep_averages(c->host_variables);
    PM_TRY(pm_variables_allocate(c->host_variables));
    PM_TRY(pm_plan_create(c->host_net, c->host, c->host_variables, &(struct pm_plan_options){
        .name = "update", .update_only = true, .update = pm_update_append,
        .update_ctx = &c->o.update, .slots = 1, .timed = c->o.timed,
        .timeable = c->o.timeable }, &c->host_plan));
    PM_TRY(pm_plan_load(c->host_plan));
    c->sum = pm_calloc(1, c->host_variables->trainable_bytes + 1);
    if (!pm_clones_share_moving(c))
        goto out;
    pm_moving_create(c->host_net, c->host_variables, c->o.count, &c->moving);
    for (int i = 0; i < c->o.count; i++)
        PM_TRY(pm_moving_join(&c->moving, c->clone[i].variables));
out:
    pm_free(list);
    return err;
}

static struct pm_clone_failure failure_of(const struct pm_clones *c, int i)
{
    const struct pm_device *d = c->clone[i].device; /* NULL: it could not even be opened */

    return (struct pm_clone_failure){ .clone = i, .hung = d && pm_device_hung(d),
                                      .caught = d && pm_device_caught(d),
                                      .ran = d && pm_device_ran(d) };
}

int pm_clones_create(const struct pm_clones_options *o, struct pm_clones **out)
{
    struct pm_clones *c = pm_calloc(1, sizeof *c);
    int err = PM_OK;

    c->o = *o;
    c->o.update.layers = o->count == 1;
    c->o.update.all = o->count > 1 && o->batch_norm_all;
    c->lane = pm_trace_lane("host", "gradient average");
    c->specs = pm_calloc((size_t)o->count, sizeof *c->specs);
    memcpy(c->specs, o->specs, (size_t)o->count * sizeof *c->specs);
    c->fields = pm_calloc((size_t)o->fields_count, sizeof *c->fields);
    memcpy(c->fields, o->fields, (size_t)o->fields_count * sizeof *c->fields);
    c->clone = pm_calloc((size_t)o->count, sizeof *c->clone);
    c->result = pm_calloc((size_t)o->slots, sizeof *c->result);
    c->pending = pm_calloc((size_t)o->slots, sizeof *c->pending);
    if (o->failed)
        o->failed->clone = -1;
    PM_TRY(share_out(c));
    for (int i = 0; i < o->count; i++) {
        err = make_clone(c, i);
        if (err < 0 && o->failed)
            *o->failed = failure_of(c, i);
        PM_TRY(explain(c, i, err));
    }
    if (!pm_clones_alone(c) && !o->dry_run)
        PM_TRY(make_host(c));
    *out = c, c = NULL;
out:
    pm_clones_destroy(&c);
    return err;
}

void pm_clones_destroy(struct pm_clones **clones)
{
    struct pm_clones *c = *clones;

    if (!c)
        return;
    pm_moving_free(&c->moving);
    for (int i = 0; i < c->o.count; i++) {
        struct clone *k = &c->clone[i];

        pm_program_destroy(&k->push);
        pm_plan_destroy(&k->plan);
        pm_variables_destroy(&k->variables);
        pm_net_destroy(&k->net);
        pm_device_close(&k->device);
    }
    pm_plan_destroy(&c->host_plan);
    pm_variables_destroy(&c->host_variables);
    pm_net_destroy(&c->host_net);
    pm_device_close(&c->host);
    pm_free(c->sum);
    pm_free(c->clone);
    pm_free(c->specs);
    pm_free(c->fields);
    pm_free(c->result);
    pm_free(c->pending);
    pm_free(c);
    *clones = NULL;
}

/* ---- values ----------------------------------------------------------------------------- */

struct pm_variables *pm_clones_master(const struct pm_clones *c)
{
    return pm_clones_alone(c) ? c->clone[0].variables : c->host_variables;
}

/* The same range of two blocks. */
struct range {
    size_t at, size;
};

static int copy(struct pm_device *from, struct pm_buffer *source, struct pm_device *to,
                struct pm_buffer *target, struct range r)
{
    char *buf = pm_malloc(r.size + 1);
    int err = PM_OK;

    if (r.size == 0)
        goto out;
    PM_TRY(pm_buffer_read(from, source, r.at, buf, r.size));
    PM_TRY(pm_buffer_write(to, target, r.at, buf, r.size));
out:
    pm_free(buf);
    return err;
}

/* Moving averages lie behind the trainable part of the block. */
int pm_clones_gather(struct pm_clones *c)
{
    struct pm_variables *from = c->clone[0].variables, *to = c->host_variables;
    struct range rest = { from->trainable_bytes, from->bytes - from->trainable_bytes };
    int err = PM_OK;

    if (pm_clones_alone(c) || pm_clones_share_moving(c))
        return PM_OK;
    PM_TRY(copy(from->device, from->values, to->device, to->values, rest));
    if (from->average_bytes)
        PM_TRY(copy(from->device, from->averages, to->device, to->averages, rest));
out:
    return err;
}

int pm_clones_scatter(struct pm_clones *c)
{
    struct pm_variables *from = c->host_variables;
    int err = PM_OK;

    for (int i = 0; !pm_clones_alone(c) && i < c->o.count; i++) {
        struct pm_variables *to = c->clone[i].variables;
        struct range all = { 0, from->bytes };

        PM_TRY(copy(from->device, from->values, to->device, to->values, all));
        if (to->average_bytes)
            PM_TRY(copy(from->device, from->averages, to->device, to->averages, all));
    }
out:
    return err;
}

int pm_clones_averaged(struct pm_clones *c, struct pm_variables **out)
{
    struct pm_variables *from = c->host_variables, *to = c->clone[0].variables;
    int err = PM_OK;

    if (!pm_clones_alone(c))
        PM_TRY(copy(from->device, from->averages, to->device, to->averages,
                    (struct range){ 0, pm_clones_share_moving(c) ? from->bytes : from->trainable_bytes }));
    c->averaged = pm_variables_averaged(to);
    *out = &c->averaged;
out:
    return err;
}

/* ---- looking ---------------------------------------------------------------------------- */

struct pm_clone_failure pm_clones_lost(const struct pm_clones *c)
{
    for (int i = 0; i < c->o.count; i++)
        if (pm_device_lost(c->clone[i].device))
            return failure_of(c, i);
    return (struct pm_clone_failure){ .clone = -1 };
}

int pm_clones_examples(const struct pm_clones *c, int i)
{
    return c->clone[i].count;
}

struct pm_device *pm_clones_device(const struct pm_clones *c, int i)
{
    return c->clone[i].device;
}

struct pm_plan *pm_clones_plan(const struct pm_clones *c, int i)
{
    return c->clone[i].plan;
}

struct pm_variables *pm_clones_variables(const struct pm_clones *c, int i)
{
    return c->clone[i].variables;
}

void pm_clones_set_timed(struct pm_clones *c, bool on)
{
    for (int i = 0; i < c->o.count; i++)
        pm_plan_set_timed(c->clone[i].plan, on);
    if (c->host_plan)
        pm_plan_set_timed(c->host_plan, on);
}

struct pm_plan *pm_clones_update_plan(const struct pm_clones *c)
{
    return c->host_plan;
}

int pm_clones_part(const struct pm_clones *c, int i)
{
    const int clone = i / c->o.micro_batches;

    return clone < c->o.count ? c->clone[clone].count / c->o.micro_batches : 0;
}

const void *pm_clones_output(const struct pm_clones *c, int i, int slot, const char *node)
{
    return pm_plan_output(c->clone[i / c->o.micro_batches].plan, slot, node, i % c->o.micro_batches);
}

double pm_clones_seconds(const struct pm_clones *c, int i)
{
    return c->clone[i].seconds;
}
