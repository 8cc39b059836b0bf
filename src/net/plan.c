/* plan: turns calls into a memory layout. It adds scratch values and, if requested, calls that
 * recompute values (recompute.c). An output reuses the memory of an input that dies in the same
 * call if the row allows it. All other values are laid out by lifetime. */
#include "net/plan_private.h"

#include "net/layout.h"
#include "net/share_moments.h"

#include <assert.h>
#include <string.h>

/* ---- scratch ---------------------------------------------------------------------------- */

static int add_scratch(struct pm_plan *p, int index)
{
    struct pm_calls *c = p->calls;
    struct pm_planned_call *call = &c->calls[index];
    struct pm_buf_spec spec[PM_MAX_BUFS];
    size_t bytes[PM_MAX_BUFS];
    int err = PM_OK;

    pm_kernel_bufs(call->kernel, spec);
    PM_TRY(pm_call_scratch(p->device, call->kernel, call->params, call->count, 0, bytes));
    for (int i = 0; i < call->bufs; i++) {
        struct pm_value v = { .kind = PM_VALUE_SCRATCH, .name = call->label, .type = PM_U8,
                              .first = index, .last = index, .alias = -1, .within = -1,
                              .variable = -1, .slot = -1, .bytes = bytes[i] };

        if (bytes[i] == 0)
            continue;
        if (spec[i].access == 'z')
            v.kind = PM_VALUE_COUNTER;
        v.shape = PM_SHAPE1((int)(bytes[i] > INT32_MAX ? INT32_MAX : bytes[i]));
        PM_GROW(c->values, c->value_count, c->value_capacity);
        c->values[c->value_count] = v;
        call->buf[i] = c->value_count++;
    }
out:
    return err;
}

/* ---- lifetimes -------------------------------------------------------------------------- */

static bool is_placed(const struct pm_value *v)
{
    return v->kind == PM_VALUE_ACTIVATION || v->kind == PM_VALUE_SCRATCH ||
           v->kind == PM_VALUE_INPUT || v->kind == PM_VALUE_OUTPUT;
}

/* Extends lifetimes: inputs are live from the first call, outputs until the last, a block as long
 * as any of its parts. */
static void stretch_lifetimes(struct pm_calls *c)
{
    for (int i = 0; i < c->value_count; i++) {
        struct pm_value *v = &c->values[i];

        if (v->kind == PM_VALUE_INPUT) {
            v->first = 0;
            if (v->last < 0)
                v->last = 0;
        } else if (v->kind == PM_VALUE_OUTPUT) {
            assert(v->first >= 0); /* at least one call writes it */
            v->last = c->call_count - 1;
        }
        if (v->within >= 0 && v->first >= 0) {
            struct pm_value *block = &c->values[v->within];

            block->first = v->first < block->first ? v->first : block->first;
            block->last = v->last > block->last ? v->last : block->last;
        }
    }
}

/* Whether y may reuse x's memory. Both must be activations, y must start and x end at this call, no
 * other buffer of the call may use x's memory, and x must be large enough. */
static bool may_merge(const struct pm_calls *c, const struct pm_planned_call *call, int index,
                      int y, int x)
{
    int vy = call->buf[y], vx = call->buf[x], root;

    if (vy < 0 || vx < 0 || c->values[vy].kind != PM_VALUE_ACTIVATION ||
        c->values[vy].alias >= 0 || c->values[vy].within >= 0 || c->values[vx].within >= 0 ||
        c->values[vy].first != index)
        return false;
    root = pm_calls_root(c, vx);
    if (c->values[root].kind != PM_VALUE_ACTIVATION || c->values[root].last != index ||
        c->values[root].bytes < c->values[vy].bytes)
        return false;
    for (int i = 0; i < call->bufs; i++)
        if (i != x && call->buf[i] >= 0 && pm_calls_root(c, call->buf[i]) == root)
            return false;
    return true;
}

static void merge_in_place(struct pm_calls *c, int index)
{
    struct pm_planned_call *call = &c->calls[index];
    int pair[PM_MAX_INPLACE][2], pairs = pm_kernel_inplace(call->kernel, pair);

    for (int i = 0; i < pairs; i++) {
        int y = pair[i][0], x = pair[i][1];

        if (may_merge(c, call, index, y, x)) {
            int root = pm_calls_root(c, call->buf[x]);

            c->values[call->buf[y]].alias = root;
            if (c->values[call->buf[y]].last > c->values[root].last)
                c->values[root].last = c->values[call->buf[y]].last;
        }
    }
}

/* Places a value behind those at 0 .. *at - 1 of its class. */
static void append_value(struct pm_value *v, size_t *at)
{
    v->offset = *at;
    *at += (v->bytes + PM_LAYOUT_ALIGNMENT - 1) / PM_LAYOUT_ALIGNMENT * PM_LAYOUT_ALIGNMENT;
}

/* ---- layout ----------------------------------------------------------------------------- */

static int too_large(const struct pm_plan *p, const struct pm_value *v)
{
    const struct pm_device_info *info = pm_device_get_info(p->device);
    char want[24], limit[24], shape[64];

    return pm_fail(PM_EMEMORY,
                   "%s: a value of shape %s (%s) exceeds the largest buffer of %s, %s; make "
                   "run.batch_size or the input smaller, or raise run.micro_batches",
                   v->name, pm_shape_text(v->shape, shape), pm_bytes_text(v->bytes, want),
                   info->address, pm_bytes_text(info->caps.max_buffer_bytes, limit));
}

static int lay_out(struct pm_plan *p)
{
    struct pm_calls *c = p->calls;
    size_t limit = pm_device_caps(p->device)->max_buffer_bytes, constants = 0;
    size_t counters = 0;
    struct pm_interval *v = pm_calloc((size_t)c->value_count + 1, sizeof *v);
    int *value = pm_calloc((size_t)c->value_count + 1, sizeof *value);
    int count = 0, err = PM_OK;

    for (int i = 0; i < c->value_count; i++) {
        struct pm_value *x = &c->values[i];

        if (x->kind == PM_VALUE_CONSTANT)
            append_value(x, &constants);
        else if (x->kind == PM_VALUE_COUNTER)
            append_value(x, &counters);
        if (!is_placed(x) || x->alias >= 0 || x->within >= 0 || x->first < 0)
            continue;
        if (x->bytes > limit)
            PM_TRY(too_large(p, x));
        v[count] = (struct pm_interval){ .bytes = x->bytes, .first = x->first, .last = x->last };
        value[count++] = i;
    }
    p->constant_bytes = constants;
    p->counter_bytes = counters;
    p->peak_live = pm_layout_peak(v, count);
    p->blocks = pm_layout(v, count, limit, p->block_bytes, PM_MAX_BLOCKS);
    if (p->blocks < 0) {
        char each[24];

        PM_TRY(pm_fail(PM_EMEMORY, "%s: the plan needs more than %d buffers of %s; make "
                       "run.batch_size smaller or raise run.micro_batches",
                       pm_device_get_info(p->device)->address, PM_MAX_BLOCKS,
                       pm_bytes_text(limit, each)));
    }
    for (int i = 0; i < count; i++) {
        c->values[value[i]].block = v[i].block;
        c->values[value[i]].offset = v[i].offset;
    }
out:
    pm_free(v);
    pm_free(value);
    return err;
}

/* ---- making ----------------------------------------------------------------------------- */

/* Returns the device memory for this plan's activations. One eighth is reserved for others. */
static size_t room_for_activations(const struct pm_plan *p)
{
    const struct pm_variables *v = p->variables;
    uint64_t used = pm_device_memory_used(p->device);
    uint64_t room = pm_device_get_info(p->device)->memory_bytes / 8 * 7;

    if (room == 0)
        return SIZE_MAX / 2; /* unknown: returns a size that sums in double can represent */
    if (v && !v->values)
        used += v->bytes + v->gradient_bytes + v->average_bytes +
                (uint64_t)v->slot_count * v->trainable_bytes;
    return room > used ? (size_t)(room - used) : 0;
}

static size_t total_of(const struct pm_plan *p)
{
    size_t total = 0;

    for (int i = 0; i < p->blocks; i++)
        total += p->block_bytes[i];
    return total;
}

static void free_calls(struct pm_plan *p)
{
    if (p->calls) {
        pm_free(p->calls->values);
        pm_free(p->calls->calls);
    }
    p->calls = NULL;
}

/* Builds and lays out the calls. squeeze scales the memory limit that recomputing aims for. */
static int arrange(struct pm_plan *p, double squeeze)
{
    enum pm_recompute recompute = p->options.train ? p->options.recompute : PM_RECOMPUTE_OFF;
    int err = PM_OK;

    free_calls(p);
    PM_TRY(pm_calls_build(p->net, p->variables, &p->options, p->transposes ? p->device : NULL,
                          p->arena, &p->calls));
    /* On the CPU the convolution would need a pass of its own for them, which saves nothing. */
    if (pm_device_caps(p->device)->runs_shaders)
        pm_share_moments(p->calls);
    for (int i = 0; i < p->calls->call_count; i++)
        PM_TRY(add_scratch(p, i));
    if (recompute == PM_RECOMPUTE_AUTO)
        pm_recompute(p->calls, (size_t)(squeeze * (double)room_for_activations(p)), 0,
                     &p->recomputed);
    else if (recompute == PM_RECOMPUTE_HALF)
        pm_recompute(p->calls, SIZE_MAX, 0.5 * squeeze, &p->recomputed);
    else if (recompute == PM_RECOMPUTE_MOST)
        pm_recompute(p->calls, 0, 0, &p->recomputed);
    stretch_lifetimes(p->calls);
    for (int i = 0; i < p->calls->call_count; i++)
        merge_in_place(p->calls, i);
    PM_TRY(lay_out(p));
out:
    return err;
}

/* Copies the names of the outputs to the plan's arena. */
static void copy_outputs(struct pm_plan *p, const char *const *outputs)
{
    const char **copy;
    size_t count = 0;

    while (outputs && outputs[count])
        count++;
    copy = pm_arena_alloc(p->arena, (count + 1) * sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = pm_arena_strdup(p->arena, outputs[i]);
    p->options.outputs = copy;
}

int pm_plan_create(struct pm_net *net, struct pm_device *d, struct pm_variables *v,
                   const struct pm_plan_options *o, struct pm_plan **out)
{
    int err = PM_OK;
    double squeeze = 1;
    struct pm_plan *p = pm_calloc(1, sizeof *p);

    p->arena = pm_arena_create();
    p->net = net;
    p->device = d;
    p->variables = v;
    p->options = *o;
    copy_outputs(p, o->outputs);
    if (p->options.micro_batches < 1)
        p->options.micro_batches = 1;
    if (p->options.slots < 1)
        p->options.slots = 2;
    if (!p->options.name)
        p->options.name = "plan";
    PM_TRY(net->error);
    p->transposes =
        pm_device_caps(d)->runs_shaders && !o->no_copies &&
        (!o->train || o->recompute == PM_RECOMPUTE_OFF || o->recompute == PM_RECOMPUTE_AUTO);
    PM_TRY(arrange(p, squeeze));
    /* If memory is short, the plan first gives up these copies. Only then does it compute values
     * again. */
    if (p->transposes && (p->recomputed.again > 0 || total_of(p) > room_for_activations(p))) {
        p->transposes = false;
        PM_TRY(arrange(p, squeeze));
    }
    /* Gaps between values can push the memory above a limit that the values alone would respect. */
    for (int i = 0; i < 3 && p->recomputed.peak <= p->recomputed.limit; i++) {
        size_t total = total_of(p), limit = (size_t)((double)p->recomputed.limit / squeeze);

        if (p->recomputed.limit == 0 || total <= limit)
            break;
        squeeze *= (double)limit / (double)total;
        PM_TRY(arrange(p, squeeze));
    }
    pm_plan_list_transfers(p);
    *out = p, p = NULL;
out:
    pm_plan_destroy(&p);
    return err;
}

void pm_plan_destroy(struct pm_plan **p)
{
    if (*p) {
        struct pm_plan *q = *p;

        pm_plan_unload(q);
        pm_free(q->inputs);
        pm_free(q->outputs);
        pm_free(q->loss_names);
        pm_free(q->loss_of);
        pm_free(q->buckets);
        free_calls(q);
        pm_arena_destroy(&q->arena);
        pm_free(q);
    }
    *p = NULL;
}

const struct pm_planned_call *pm_plan_calls(const struct pm_plan *p, size_t *count)
{
    *count = (size_t)p->calls->call_count;
    return p->calls->calls;
}

const struct pm_value *pm_plan_values(const struct pm_plan *p, size_t *count)
{
    *count = (size_t)p->calls->value_count;
    return p->calls->values;
}
