/* clones: clones.h has the contract. Everything is allocated here once. */
#include "clones/clones_parts.h"

#include "verify/verified_plan.h"

#include <math.h>
#include <string.h>

enum { BUCKET_BYTES = 4 << 20 };

/* ---- shares ----------------------------------------------------------------------------- */

/* Returns the share of clone i of all clones. */
static double share_of(const struct pm_clones *c, int i)
{
    return c->o.among.replicas ? c->o.among.shares[i] : c->specs[i].share;
}

/* Shares out whole micro-batches to all clones by largest remainders, at least one to each clone.
 * The parts add up to the batch. */
static int share_out(struct pm_clones *c)
{
    const int count = c->among.count, unit = c->o.micro_batches, units = c->o.batch / unit;
    int *part = c->among.examples, given = 0;
    double total = 0;

    if (c->o.batch % unit != 0 || units < count)
        return pm_fail(PM_ECONFIG,
                       "run.batch_size: %d cannot be shared by %d clone%s in %d micro-batches; it "
                       "must be a multiple of run.micro_batches and give every clone at least one "
                       "example per micro-batch",
                       c->o.batch, count, count == 1 ? "" : "s", unit);
    for (int i = 0; i < count; i++)
        total += share_of(c, i);
    for (int i = 0; i < count; i++) {
        part[i] = (int)floor(units * share_of(c, i) / total);
        part[i] = part[i] < 1 ? 1 : part[i];
        given += part[i];
    }
    while (given != units) { /* the clone farthest from its exact share gains or loses one */
        int best = -1, sign = given < units ? 1 : -1;
        double worst = 0;

        for (int i = 0; i < count; i++) {
            double off = sign * (units * share_of(c, i) / total - part[i]);

            if ((sign > 0 || part[i] > 1) && (best < 0 || off > worst))
                best = i, worst = off;
        }
        part[best] += sign;
        given += sign;
    }
    for (int i = 0; i < count; i++)
        part[i] *= unit;
    return PM_OK;
}

/* Gives this process's clones their parts of the batch, and finds its slice. */
static void take_parts(struct pm_clones *c)
{
    const int *part = c->among.examples;
    int first = 0;

    for (int i = 0; i < c->among.first; i++)
        first += part[i];
    c->slice = (struct pm_batch_slice){ .first = first };
    for (int i = 0; i < c->o.count; i++) {
        c->clone[i].count = part[c->among.first + i];
        c->clone[i].first = first + c->slice.count;
        c->slice.count += c->clone[i].count;
    }
}

/* ---- making ----------------------------------------------------------------------------- */

/* Adds to a memory error which clone's part of the batch is too large, and what to do. With several
 * clones the others' memory does not help. */
static int explain(const struct pm_clones *c, int i, int err)
{
    if (err != PM_EMEMORY || c->among.count == 1)
        return err;
    return pm_fail(err,
                   "%s; clone %d of %d (%s) gets %d of the batch's %d examples: a smaller "
                   "devices[%d].share also needs less memory",
                   pm_error_text(), i + 1, c->o.count, c->specs[i].info.name, c->clone[i].count,
                   c->o.batch, c->specs[i].place);
}

static int index_of(const struct clone *k)
{
    return (int)(k - k->of->clone);
}

/* Returns the names of the optimizer's slots on the clones, or NULL. */
static const char *const *slots_of(const struct pm_clones *c)
{
    return c->row->on_clones ? pm_optimizer_slots(c->o.update.optimizer, c->o.update.cfg) : NULL;
}

static int make_variables(struct clone *k, const struct pm_net *net)
{
    const struct pm_clones *c = k->of;
    int err = PM_OK;

    PM_TRY(pm_variables_create(k->device, net, true, slots_of(c), &k->variables));
    if (c->o.update.averages && index_of(k) == 0)
        pm_variables_keep_averages(k->variables);
    if (!c->o.dry_run)
        PM_TRY(pm_variables_allocate(k->variables));
out:
    return err;
}

/* Checks that a net for another size of pictures has the same variables. */
static int check_variables(const struct clone *k, const struct pm_net *net, int height, int width)
{
    const struct pm_variables *v = k->variables;
    const struct pm_frame first = k->of->frames[0].frame;
    char is[64], wanted[64];

    for (int i = 0; i < v->count && i < net->var_count; i++)
        if (strcmp(v->list[i].name, net->vars[i]->name) != 0 ||
            !pm_shape_equal(v->list[i].shape, net->vars[i]->shape))
            return pm_fail(
                PM_ECONFIG,
                "input.buckets: the variables of this net depend on the size of pictures: %s %s "
                "for %d x %d, %s %s for %d x %d. Remove input.buckets",
                net->vars[i]->name, pm_shape_text(net->vars[i]->shape, is), height, width,
                v->list[i].name, pm_shape_text(v->list[i].shape, wanted), first.height,
                first.width);
    if (v->count == net->var_count)
        return PM_OK;
    return pm_fail(PM_ECONFIG,
                   "input.buckets: the number of variables of this net depends on the size of "
                   "pictures: %d for %d x %d, %d for %d x %d. Remove input.buckets",
                   net->var_count, height, width, v->count, first.height, first.width);
}

int pm_clones_find_frame(const struct pm_clones *c, struct pm_frame frame)
{
    for (int i = 0; i < c->o.frames_count; i++)
        if (c->frames[i].frame.height == frame.height && c->frames[i].frame.width == frame.width)
            return i;
    return -1;
}

static const char *name_of(const struct pm_clones *c, int height, int width)
{
    return c->frames[pm_clones_find_frame(c, (struct pm_frame){ height, width })].name;
}

/* pm_sizes_options.make. The first net, that of frames[0], supplies the variables. */
static int make_plan(void *ctx, int height, int width, struct pm_shared_memory *shared,
                     struct pm_sized *out)
{
    struct clone *k = ctx;
    struct pm_clones *c = k->of;
    const bool updates = c->row->on_clones;
    const struct pm_verification verification = {
        .on = c->o.verify && !c->o.dry_run, .build = c->o.build, .ctx = c->o.ctx,
        .batch = k->count / c->o.micro_batches, .height = height, .width = width };
    struct pm_net *net = NULL;
    int err = PM_OK;

    PM_TRY(c->o.build(c->o.ctx, verification.batch, height, width, &net));
    PM_TRY(k->variables ? check_variables(k, net, height, width) : make_variables(k, net));
    PM_TRY(pm_verified_plan_create(&verification, net, k->device, k->variables,
                                   &(struct pm_plan_options){
        .name = name_of(c, height, width), .train = true, .first_example = k->first,
        .loss_share = (float)k->count / (float)c->o.batch, .micro_batches = c->o.micro_batches,
        .recompute = c->o.recompute, .outputs = k->observing ? c->o.observed : c->o.outputs,
        .bucket_bytes = updates ? 0 : BUCKET_BYTES,
        .frozen = pm_update_frozen, .frozen_ctx = &c->o.update,
        .update = updates ? pm_update_append
                  : pm_clones_moves(c, index_of(k)) ? pm_update_layers_only : NULL,
        .update_ctx = &c->o.update, .slots = c->o.slots, .timed = c->o.timed,
        .timeable = c->o.timeable, .shared = shared }, slots_of(c), &out->plan));
    out->net = net, net = NULL;
out:
    pm_net_destroy(&net);
    return err;
}

static void release_net(void *ctx, struct pm_net *net)
{
    (void)ctx;
    pm_net_destroy(&net);
}

/* Makes the plans of observed steps. */
static int make_observed(struct clone *k, const int (*sizes)[2], int count)
{
    const struct pm_clones *c = k->of;
    int err = PM_OK;

    k->observed = pm_sizes_create(&(struct pm_sizes_options){
        .device = k->device, .keep = 1, .make = make_plan, .release = release_net, .ctx = k });
    k->observing = true;
    err = c->o.dry_run ? pm_sizes_plan(k->observed, sizes, count)
                       : pm_sizes_prepare(k->observed, sizes, count);
    k->observing = false;
    return err;
}

/* Makes the plans of all frames. They are loaded unless this is a dry run. */
static int make_plans(struct clone *k)
{
    const struct pm_clones *c = k->of;
    const int count = c->o.frames_count;
    int (*sizes)[2] = pm_calloc((size_t)count, sizeof *sizes), err = PM_OK;

    for (int i = 0; i < count; i++)
        sizes[i][0] = c->frames[i].frame.height, sizes[i][1] = c->frames[i].frame.width;
    k->sizes = pm_sizes_create(&(struct pm_sizes_options){
        .device = k->device, .keep = 1, .make = make_plan, .release = release_net, .ctx = k });
    if (c->o.dry_run)
        PM_TRY(pm_sizes_plan(k->sizes, sizes, count));
    else
        PM_TRY(pm_sizes_prepare(k->sizes, sizes, count));
    for (int i = 0; i < count; i++)
        k->plan[i] = pm_sizes_prepared(k->sizes, sizes[i][0], sizes[i][1]).plan;
    if (c->o.observed && index_of(k) == 0)
        PM_TRY(make_observed(k, (const int (*)[2])sizes, count));
out:
    pm_free(sizes);
    return err;
}

static int make_clone(struct pm_clones *c, int i)
{
    const struct pm_clone_spec *s = &c->specs[i];
    struct clone *k = &c->clone[i];
    struct pm_device_options options = c->o.device;
    char trace[320];
    int err = PM_OK;

    k->of = c;
    k->plan = pm_calloc((size_t)c->o.frames_count, sizeof *k->plan);

    snprintf(trace, sizeof trace, "clone %d: %s, %s", i, s->info.address, s->info.name);
    options.trace = trace;
    options.threads = s->threads;
    options.slow = s->slow;
    options.hang_at = s->hang_at;
    if (s->losses < s->lose_times)
        options.lose_at = s->lose_at, options.lose_after = s->lose_after;
    if (s->segment_ms > 0)
        options.segment_ms = s->segment_ms;
    PM_TRY(pm_device_open(&s->info, &options, &k->device));
    PM_TRY(make_plans(k));
    if (!c->o.dry_run)
        PM_TRY(c->row->join(c->exchange, i));
out:
    return err;
}

static struct pm_clone_failure failure_of(const struct pm_clones *c, int i)
{
    const struct pm_device *d = c->clone[i].device; /* NULL: could not be opened */

    return (struct pm_clone_failure){ .clone = i, .hung = d && pm_device_hung(d),
                                      .caught = d && pm_device_caught(d),
                                      .ran = d && pm_device_ran(d) };
}

/* Copies the frames, and names their plans. */
static void copy_frames(struct pm_clones *c)
{
    const int count = c->o.frames_count;

    c->frames = pm_calloc((size_t)count, sizeof *c->frames);
    for (int i = 0; i < count; i++) {
        struct clones_frame *f = &c->frames[i];

        f->frame = c->o.frames[i];
        f->bytes = pm_calloc((size_t)c->o.fields_count, sizeof *f->bytes);
        if (count == 1)
            snprintf(f->name, sizeof f->name, "train");
        else
            snprintf(f->name, sizeof f->name, "train %dx%d", f->frame.height, f->frame.width);
    }
}

/* Sets the bytes of one example of each field, by the net's inputs. */
static void measure_fields(struct pm_clones *c)
{
    for (int i = 0; i < c->o.frames_count; i++) {
        struct clones_frame *f = &c->frames[i];
        const struct pm_net *net = pm_sizes_prepared(c->clone[0].sizes, f->frame.height,
                                                     f->frame.width).net;

        for (int k = 0; k < c->o.fields_count; k++) {
            const struct pm_node *n = pm_net_find(net, c->fields[k].name);

            f->bytes[k] = pm_shape_count(n->out_shape) / (size_t)n->out_shape.dim[0] *
                          pm_type_size(n->out_type);
        }
    }
}

int pm_clones_create(const struct pm_clones_options *o, struct pm_clones **out)
{
    struct pm_clones *c = pm_calloc(1, sizeof *c);
    int err = PM_OK;

    c->o = *o;
    c->row = o->count == 1 && !o->among.replicas && !o->among.servers ? &pm_exchange_none
                                                                      : &pm_exchange_host;
    c->among.count = o->among.replicas ? o->among.count : o->count;
    c->among.first = o->among.first;
    c->among.examples = pm_calloc((size_t)c->among.count, sizeof *c->among.examples);
    c->among.seconds = pm_calloc((size_t)c->among.count, sizeof *c->among.seconds);
    c->among.lost_rank = -1;
    c->o.update.layers = c->row->on_clones;
    c->o.update.all = o->among.replicas || o->among.servers ||
                      (!c->row->on_clones && o->batch_norm_update != PM_BATCH_NORM_FIRST);
    c->specs = pm_calloc((size_t)o->count, sizeof *c->specs);
    memcpy(c->specs, o->specs, (size_t)o->count * sizeof *c->specs);
    c->fields = pm_calloc((size_t)o->fields_count, sizeof *c->fields);
    memcpy(c->fields, o->fields, (size_t)o->fields_count * sizeof *c->fields);
    copy_frames(c);
    c->frame_at = pm_calloc((size_t)o->slots, sizeof *c->frame_at);
    c->observed_at = pm_calloc((size_t)o->slots, sizeof *c->observed_at);
    c->observed_slot = -1;
    c->clone = pm_calloc((size_t)o->count, sizeof *c->clone);
    c->result = pm_calloc((size_t)o->slots, sizeof *c->result);
    c->pending = pm_calloc((size_t)o->slots, sizeof *c->pending);
    c->exchange = c->row->create(c);
    if (o->failed)
        o->failed->clone = -1;
    PM_TRY(share_out(c));
    take_parts(c);
    for (int i = 0; i < o->count; i++) {
        err = make_clone(c, i);
        if (err < 0 && o->failed)
            *o->failed = failure_of(c, i);
        PM_TRY(explain(c, i, err));
    }
    measure_fields(c);
    if (!o->dry_run) {
        c->losses = pm_plan_loss_count(c->clone[0].plan[0]);
        c->parts = pm_calloc((size_t)(o->slots + 1) * (size_t)c->losses, sizeof *c->parts);
        c->loss = pm_calloc((size_t)o->count * (size_t)(1 + c->losses), sizeof *c->loss);
        PM_TRY(c->row->open(c->exchange));
    }
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
    c->row->destroy(c->exchange);
    for (int i = 0; i < c->o.count; i++) {
        struct clone *k = &c->clone[i];

        pm_sizes_destroy(&k->observed);
        pm_sizes_destroy(&k->sizes);
        pm_free(k->plan);
        pm_variables_destroy(&k->variables);
        pm_device_close(&k->device);
    }
    for (int i = 0; i < c->o.frames_count; i++)
        pm_free(c->frames[i].bytes);
    pm_free(c->frames);
    pm_free(c->frame_at);
    pm_free(c->observed_at);
    pm_free(c->clone);
    pm_free(c->specs);
    pm_free(c->fields);
    pm_free(c->result);
    pm_free(c->parts);
    pm_free(c->loss);
    pm_free(c->among.examples);
    pm_free(c->among.seconds);
    pm_free(c->pending);
    pm_free(c);
    *clones = NULL;
}

/* ---- values ----------------------------------------------------------------------------- */

struct pm_variables *pm_clones_master(const struct pm_clones *c)
{
    return c->row->master(c->exchange);
}

int pm_clones_gather(struct pm_clones *c)
{
    return c->row->gather(c->exchange);
}

int pm_clones_scatter(struct pm_clones *c)
{
    return c->row->scatter(c->exchange);
}

int pm_clones_averaged(struct pm_clones *c, struct pm_variables **out)
{
    int err = PM_OK;

    PM_TRY(c->row->give_averages(c->exchange));
    c->averaged = pm_variables_averaged(c->clone[0].variables);
    *out = &c->averaged;
out:
    return err;
}

/* ---- queries ---------------------------------------------------------------------------- */

struct pm_clone_failure pm_clones_lost(const struct pm_clones *c)
{
    for (int i = 0; i < c->o.count; i++)
        if (pm_device_lost(c->clone[i].device))
            return failure_of(c, i);
    return (struct pm_clone_failure){ .clone = -1 };
}

int pm_clones_lost_rank(const struct pm_clones *c)
{
    return c->among.lost_rank;
}

struct pm_batch_slice pm_clones_slice(const struct pm_clones *c)
{
    return c->slice;
}

bool pm_clones_wait(const struct pm_clones *c)
{
    return c->row->waits;
}

int pm_clones_examples(const struct pm_clones *c, int i)
{
    return c->clone[i].count;
}

int pm_clones_count(const struct pm_clones *c)
{
    return c->among.count;
}

int pm_clones_examples_of(const struct pm_clones *c, int i)
{
    return c->among.examples[i];
}

int pm_clones_of_rank(const struct pm_clones *c, int rank)
{
    return c->o.among.replicas ? c->o.among.of_rank[rank] : c->o.count;
}

struct pm_device *pm_clones_device(const struct pm_clones *c, int i)
{
    return c->clone[i].device;
}

struct pm_plan *pm_clones_plan(const struct pm_clones *c, int i, int frame)
{
    return c->clone[i].plan[frame];
}

/* Returns the net and the plan of the observed step in a slot. */
static struct pm_sized observed_of(const struct pm_clones *c, int slot)
{
    const struct pm_frame f = c->frames[c->frame_at[slot]].frame;

    return pm_sizes_prepared(c->clone[0].observed, f.height, f.width);
}

struct pm_plan *pm_clones_slot_plan(const struct pm_clones *c, int i, int slot)
{
    return i == 0 && c->observed_at[slot] ? observed_of(c, slot).plan
                                          : c->clone[i].plan[c->frame_at[slot]];
}

void pm_clones_observe(struct pm_clones *c)
{
    c->observe = c->clone[0].observed != NULL;
}

const float *pm_clones_observed(const struct pm_clones *c, const char *node,
                                struct pm_shape *shape)
{
    struct pm_sized of;

    if (c->observed_slot < 0 || !c->observed_at[c->observed_slot])
        return NULL;
    of = observed_of(c, c->observed_slot);
    *shape = pm_net_find(of.net, node)->out_shape;
    return pm_plan_output(of.plan, c->observed_slot, node, 0);
}

struct pm_plan_memory pm_clones_memory(const struct pm_clones *c, int i)
{
    struct pm_plan_memory m = pm_plan_memory(c->clone[i].plan[0]);

    for (int k = 1; k < c->o.frames_count; k++) {
        const struct pm_plan_memory other = pm_plan_memory(c->clone[i].plan[k]);

        m.constants += other.constants;
        m.staging += other.staging;
    }
    m.activations = pm_sizes_need(c->clone[i].sizes);
    for (int k = 0; c->clone[i].observed && k < c->o.frames_count; k++) {
        const struct pm_frame f = c->frames[k].frame;
        const struct pm_plan_memory other = pm_plan_memory(
            pm_sizes_prepared(c->clone[i].observed, f.height, f.width).plan);

        m.constants += other.constants;
        m.staging += other.staging;
    }
    if (c->clone[i].observed)
        m.activations += pm_sizes_need(c->clone[i].observed);
    m.total = m.activations + m.constants + m.variables + m.gradients + m.slots + m.averages;
    return m;
}

int pm_clones_frames(const struct pm_clones *c)
{
    return c->o.frames_count;
}

struct pm_frame pm_clones_frame(const struct pm_clones *c, int frame)
{
    return c->frames[frame].frame;
}

struct pm_variables *pm_clones_variables(const struct pm_clones *c, int i)
{
    return c->clone[i].variables;
}

void pm_clones_set_timed(struct pm_clones *c, bool on)
{
    for (int i = 0; i < c->o.count; i++)
        for (int k = 0; k < c->o.frames_count; k++)
            pm_plan_set_timed(c->clone[i].plan[k], on);
    for (int k = 0; c->clone[0].observed && k < c->o.frames_count; k++) {
        const struct pm_frame f = c->frames[k].frame;

        pm_plan_set_timed(pm_sizes_prepared(c->clone[0].observed, f.height, f.width).plan, on);
    }
    if (pm_clones_update_plan(c))
        pm_plan_set_timed(pm_clones_update_plan(c), on);
}

struct pm_plan *pm_clones_update_plan(const struct pm_clones *c)
{
    return c->row->update_plan(c->exchange);
}

struct pm_step_word *pm_clones_word(struct pm_clones *c)
{
    return c->row->word(c->exchange);
}

const struct pm_step_word *pm_clones_word_of(const struct pm_clones *c, int rank)
{
    return c->row->word_of(c->exchange, rank);
}

int pm_clones_part(const struct pm_clones *c, int i)
{
    const int clone = i / c->o.micro_batches;

    return clone < c->o.count ? c->clone[clone].count / c->o.micro_batches : 0;
}

const void *pm_clones_output(const struct pm_clones *c, int i, int slot, const char *node)
{
    return pm_plan_output(pm_clones_slot_plan(c, i / c->o.micro_batches, slot), slot, node,
                          i % c->o.micro_batches);
}

double pm_clones_seconds(const struct pm_clones *c, int i)
{
    return c->clone[i].seconds;
}

double pm_clones_seconds_of(const struct pm_clones *c, int i)
{
    return c->o.among.replicas ? c->among.seconds[i] : c->clone[i].seconds;
}
