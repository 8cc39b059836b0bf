/* plan_run: creates the buffers and the program with its inputs, outputs and gradient buckets, and
 * runs one step. */
#include "net/plan_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- places ----------------------------------------------------------------------------- */

static struct pm_place variable_place(const struct pm_plan *p, const struct pm_value *v)
{
    const struct pm_variables *vars = p->variables;
    struct pm_buffer *b = v->kind == PM_VALUE_VARIABLE   ? vars->values
                          : v->kind == PM_VALUE_GRADIENT ? vars->grads
                          : v->kind == PM_VALUE_AVERAGE  ? vars->averages
                                                         : vars->slots[v->slot];

    if (v->variable < 0)
        return (struct pm_place){ b, v->offset, v->bytes };
    return (struct pm_place){ b, vars->offset[v->variable], v->bytes };
}

static struct pm_place place_of(const struct pm_plan *p, int value)
{
    const struct pm_value *v;

    if (value < 0)
        return (struct pm_place){ 0 };
    v = &p->calls->values[value];
    switch (v->kind) {
    case PM_VALUE_VARIABLE:
    case PM_VALUE_GRADIENT:
    case PM_VALUE_SLOT:
    case PM_VALUE_AVERAGE:
        return variable_place(p, v);
    case PM_VALUE_CONSTANT:
        return (struct pm_place){ p->constants, v->offset, v->bytes };
    default: {
        const struct pm_value *root = &p->calls->values[pm_calls_root(p->calls, value)];

        return (struct pm_place){ p->block[root->block], root->offset, v->bytes };
    }
    }
}

/* ---- gradient buckets ------------------------------------------------------------------- */

/* Returns the number of calls after which a variable's gradient is complete, 0 if no call writes
 * it. */
static size_t ready_after(const struct pm_plan *p, int variable)
{
    int value = p->calls->gradient_value[variable];

    return value < 0 ? 0 : (size_t)p->calls->values[value].last + 1;
}

static int by_after(const void *a, const void *b)
{
    const struct pm_plan_bucket *x = a, *y = b;

    if (x->after != y->after)
        return x->after < y->after ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Cuts the gradient block into buckets. The backward pass goes from the last variable to the first,
 * so ranges are cut from the block's end. */
static void make_buckets(struct pm_plan *p)
{
    const struct pm_variables *v = p->variables;
    size_t end = v->trainable_bytes;
    struct pm_plan_bucket b = { .offset = end };

    p->buckets = pm_calloc((size_t)v->count + 1, sizeof *p->buckets);
    for (int i = v->count; i-- > 0;) {
        size_t after;

        if (!v->list[i].trainable)
            continue;
        after = ready_after(p, i);
        b.offset = v->offset[i];
        b.after = after > b.after ? after : b.after;
        if (end - b.offset < p->options.bucket_bytes && b.offset > 0)
            continue;
        b.bytes = end - b.offset;
        p->buckets[p->bucket_count++] = b;
        end = b.offset;
        b.after = 0;
    }
    qsort(p->buckets, p->bucket_count, sizeof *p->buckets, by_after);
}

/* ---- loading ---------------------------------------------------------------------------- */

/* Compares the memory of the whole plan with the device's memory. shared: bytes already
 * allocated. */
static int check_memory(const struct pm_plan *p, uint64_t shared)
{
    const struct pm_device_info *info = pm_device_get_info(p->device);
    struct pm_plan_memory m = pm_plan_memory(p);
    uint64_t used = pm_device_memory_used(p->device) - shared, want = m.activations + m.constants;
    char a[24], b[24], c[24];

    if (info->memory_bytes && used + want > info->memory_bytes)
        return pm_fail(
            PM_EMEMORY,
            "%s: the %s plan needs %s for activations; %s are in use, and the device has %s; set "
            "run.recompute to auto, raise run.micro_batches or make run.batch_size smaller",
            info->address, p->options.name, pm_bytes_text(want, a), pm_bytes_text(used, b),
            pm_bytes_text(info->memory_bytes, c));
    return PM_OK;
}

struct pm_shared_memory *pm_shared_memory_create(struct pm_device *d)
{
    struct pm_shared_memory *a = pm_calloc(1, sizeof *a);

    a->device = d;
    return a;
}

void pm_shared_memory_destroy(struct pm_shared_memory **a)
{
    if (*a) {
        for (int i = 0; i < PM_MAX_BLOCKS; i++)
            pm_buffer_destroy((*a)->device, &(*a)->block[i]);
        pm_free(*a);
    }
    *a = NULL;
}

uint64_t pm_shared_memory_bytes(const struct pm_shared_memory *a)
{
    uint64_t bytes = 0;

    for (int i = 0; i < PM_MAX_BLOCKS; i++)
        bytes += a->bytes[i];
    return bytes;
}

int pm_shared_memory_reserve(struct pm_shared_memory *a, const struct pm_plan *p)
{
    int err = PM_OK;

    PM_TRY(check_memory(p, pm_shared_memory_bytes(a)));
    for (int i = 0; i < p->blocks; i++) {
        if (a->bytes[i] >= p->block_bytes[i])
            continue;
        a->moves++;
        a->bytes[i] = 0;
        pm_buffer_destroy(a->device, &a->block[i]);
        PM_TRY(pm_buffer_create(a->device, p->block_bytes[i], &a->block[i]));
        a->bytes[i] = p->block_bytes[i];
    }
out:
    return err;
}

static void take_shared(struct pm_plan *p)
{
    memcpy(p->block, p->options.shared->block, sizeof p->block);
    p->moves = p->options.shared->moves;
}

static int allocate(struct pm_plan *p)
{
    int err = PM_OK;

    if (p->options.shared) {
        PM_TRY(pm_shared_memory_reserve(p->options.shared, p));
        take_shared(p);
    } else {
        PM_TRY(check_memory(p, 0));
        for (int i = 0; i < p->blocks; i++)
            PM_TRY(pm_buffer_create(p->device, p->block_bytes[i], &p->block[i]));
    }
    if (p->constant_bytes)
        PM_TRY(pm_buffer_create(p->device, p->constant_bytes, &p->constants));
    for (int i = 0; i < p->calls->value_count; i++) {
        const struct pm_value *v = &p->calls->values[i];

        if (v->kind == PM_VALUE_CONSTANT)
            PM_TRY(pm_buffer_write(p->device, p->constants, v->offset, v->constant, v->bytes));
    }
out:
    return err;
}

/* Finds the loss layer of each output. Every micro-batch has an output of its own. */
static void list_losses(struct pm_plan *p)
{
    p->loss_names = pm_calloc(p->output_count + 1, sizeof *p->loss_names);
    p->loss_of = pm_calloc(p->output_count + 1, sizeof *p->loss_of);
    for (size_t i = 0; i < p->output_count; i++) {
        const struct pm_value *v = &p->calls->values[p->outputs[i]];
        int k = 0;

        while (v->loss && k < p->loss_count && strcmp(p->loss_names[k], v->name) != 0)
            k++;
        if (v->loss && k == p->loss_count)
            p->loss_names[p->loss_count++] = v->name;
        p->loss_of[i] = v->loss ? k : -1;
    }
}

static void list_transfers(struct pm_plan *p)
{
    struct pm_calls *c = p->calls;
    size_t room = (size_t)c->value_count + 1;

    p->inputs = pm_calloc(room, sizeof *p->inputs);
    p->outputs = pm_calloc(room, sizeof *p->outputs);
    for (int i = 0; i < c->value_count; i++) {
        if (c->values[i].kind == PM_VALUE_INPUT)
            p->inputs[p->input_count++] = i;
        else if (c->values[i].kind == PM_VALUE_OUTPUT)
            p->outputs[p->output_count++] = i;
    }
    list_losses(p);
}

/* Returns the number of calls after which a value has its final content. */
static size_t written_after(const struct pm_calls *c, int value)
{
    size_t after = 0;

    for (int i = 0; i < c->call_count; i++) {
        struct pm_buf_spec spec[PM_MAX_BUFS];
        int bufs = pm_kernel_bufs(c->calls[i].kernel, spec);

        for (int k = 0; k < bufs; k++)
            if (c->calls[i].buf[k] == value && spec[k].access != 'r')
                after = (size_t)i + 1;
    }
    return after;
}

static int make_program(struct pm_plan *p, bool timed, struct pm_program **made)
{
    struct pm_calls *c = p->calls;
    size_t outs = p->output_count + p->bucket_count;
    struct pm_bound_call *calls = pm_calloc((size_t)c->call_count + 1, sizeof *calls);
    struct pm_place *in = pm_calloc(p->input_count + 1, sizeof *in);
    struct pm_place *out = pm_calloc(outs + 1, sizeof *out);
    size_t *after = pm_calloc(outs + 1, sizeof *after);
    int err = PM_OK;

    for (int i = 0; i < c->call_count; i++) {
        calls[i].kernel = c->calls[i].kernel;
        calls[i].label = c->calls[i].label;
        calls[i].count = c->calls[i].count;
        calls[i].params = c->calls[i].params;
        for (int k = 0; k < c->calls[i].bufs; k++)
            calls[i].buf[k] = place_of(p, c->calls[i].buf[k]);
    }
    for (size_t i = 0; i < p->input_count; i++)
        in[i] = place_of(p, p->inputs[i]);
    for (size_t i = 0; i < p->output_count; i++) {
        out[i] = place_of(p, p->outputs[i]);
        after[i] = written_after(c, p->outputs[i]);
    }
    for (size_t i = 0; i < p->bucket_count; i++) {
        out[p->output_count + i] = (struct pm_place){ p->variables->grads, p->buckets[i].offset,
                                                      p->buckets[i].bytes };
        after[p->output_count + i] = p->buckets[i].after;
    }
    PM_TRY(pm_program_create(p->device, &(struct pm_program_desc){
        .name = p->options.name, .calls = calls, .calls_count = (size_t)c->call_count,
        .in = in, .in_count = p->input_count, .out = out, .out_after = after, .out_count = outs,
        .slots = p->options.slots, .timed = timed }, made));
out:
    pm_free(calls);
    pm_free(in);
    pm_free(out);
    pm_free(after);
    return err;
}

/* Creates the programs. Timing prevents calls from overlapping, so not every step is timed. A plan
 * that is timed only in some steps has a second recording for them. */
static int make_programs(struct pm_plan *p)
{
    const bool costly = pm_device_caps(p->device)->timed_by_queries;
    int err = PM_OK;

    p->is_timed = p->options.timed || (p->options.timeable && !costly);
    PM_TRY(make_program(p, p->is_timed, &p->program));
    if (p->options.timeable && !p->is_timed)
        PM_TRY(make_program(p, true, &p->other));
out:
    if (err < 0)
        pm_program_destroy(&p->program);
    return err;
}

static void tell_recomputed(const struct pm_plan *p)
{
    struct pm_plan_memory m = pm_plan_memory(p);
    const char *where = pm_device_get_info(p->device)->address;
    char now[24], without[24];

    if (m.again > 0)
        PM_INFO("plan", "%s: %d calls run again in the backward pass, about %.0f %% more work: "
                "activations take %s instead of %s", where, m.again, 100 * m.again_work,
                pm_bytes_text(m.activations, now),
                pm_bytes_text(m.live_without_recompute, without));
    if (p->options.recompute == PM_RECOMPUTE_HALF && m.live_without_recompute / 2 < m.peak_live)
        PM_WARN("plan",
                "%s: run.recompute=half: recomputation alone cannot halve the memory of "
                "activations; raise run.micro_batches",
                where);
}

int pm_plan_load(struct pm_plan *p)
{
    int err = PM_OK;

    assert(!p->program && (p->variables || p->net->var_count == 0));
    tell_recomputed(p);
    PM_TRY(allocate(p));
    list_transfers(p);
    if (p->options.bucket_bytes > 0)
        make_buckets(p);
    PM_TRY(make_programs(p));
out:
    if (err < 0)
        pm_plan_unload(p);
    return err;
}

void pm_plan_unload(struct pm_plan *p)
{
    pm_program_destroy(&p->program);
    pm_program_destroy(&p->other);
    for (int i = 0; i < PM_MAX_BLOCKS && !p->options.shared; i++)
        pm_buffer_destroy(p->device, &p->block[i]);
    pm_buffer_destroy(p->device, &p->constants);
    pm_free(p->inputs);
    pm_free(p->outputs);
    pm_free(p->loss_names);
    pm_free(p->loss_of);
    pm_free(p->buckets);
    p->inputs = p->outputs = p->loss_of = NULL;
    p->loss_names = NULL;
    p->buckets = NULL;
    p->input_count = p->output_count = p->bucket_count = 0;
    p->loss_count = 0;
}

int pm_plan_refresh(struct pm_plan *p)
{
    const bool loaded = p->inputs != NULL; /* the programs are missing if a refresh has failed */
    int err = PM_OK;

    if (!loaded)
        return pm_plan_load(p);
    if (p->program && (!p->options.shared || p->moves == p->options.shared->moves))
        return PM_OK;
    assert(p->options.shared);
    pm_program_destroy(&p->program);
    pm_program_destroy(&p->other);
    PM_TRY(pm_shared_memory_reserve(p->options.shared, p));
    take_shared(p);
    PM_TRY(make_programs(p));
out:
    return err;
}

/* ---- running ---------------------------------------------------------------------------- */

static size_t find_value(const struct pm_plan *p, const int *list, size_t count, const char *name,
                         int m)
{
    for (size_t i = 0; i < count; i++) {
        const struct pm_value *v = &p->calls->values[list[i]];

        if (v->micro_batch == m && strcmp(v->name, name) == 0)
            return i;
    }
    return count;
}

void *pm_plan_input(struct pm_plan *p, int slot, const char *name, int m)
{
    size_t i = find_value(p, p->inputs, p->input_count, name, m);

    assert(i < p->input_count);
    return pm_program_in(p->program, slot, i);
}

struct pm_step *pm_plan_step(struct pm_plan *p, int slot)
{
    size_t i = find_value(p, p->inputs, p->input_count, "step", 0);

    return i < p->input_count ? pm_program_in(p->program, slot, i) : NULL;
}

int pm_plan_submit(struct pm_plan *p, int slot)
{
    return pm_program_submit(p->program, slot);
}

int pm_plan_wait(struct pm_plan *p, int slot)
{
    return pm_program_wait(p->program, slot);
}

/* Returns the contents of a constant node that is an output of the plan, such as anchors. */
static const void *constant_output(const struct pm_plan *p, const char *name)
{
    for (const char *const *o = p->options.outputs; o && *o; o++)
        for (int i = 0; strcmp(*o, name) == 0 && i < p->calls->value_count; i++) {
            const struct pm_value *v = &p->calls->values[i];

            if (v->kind == PM_VALUE_CONSTANT && strcmp(v->name, name) == 0)
                return v->constant;
        }
    return NULL;
}

const void *pm_plan_output(const struct pm_plan *p, int slot, const char *name, int m)
{
    size_t i = find_value(p, p->outputs, p->output_count, name, m);

    return i < p->output_count ? pm_program_out(p->program, slot, i) : constant_output(p, name);
}

double pm_plan_loss(const struct pm_plan *p, int slot)
{
    double sum = 0;

    for (size_t i = 0; i < p->output_count; i++)
        if (p->calls->values[p->outputs[i]].loss)
            sum += *(const float *)pm_program_out(p->program, slot, i);
    return sum;
}

int pm_plan_loss_count(const struct pm_plan *p)
{
    return p->loss_count;
}

void pm_plan_losses(const struct pm_plan *p, int slot, struct pm_loss_part *out)
{
    for (int k = 0; k < p->loss_count; k++)
        out[k] = (struct pm_loss_part){ p->loss_names[k], 0 };
    for (size_t i = 0; i < p->output_count; i++)
        if (p->loss_of[i] >= 0)
            out[p->loss_of[i]].value += *(const float *)pm_program_out(p->program, slot, i);
}

size_t pm_plan_buckets(const struct pm_plan *p)
{
    return p->bucket_count;
}

void pm_plan_bucket(const struct pm_plan *p, size_t i, size_t *offset, size_t *size)
{
    *offset = p->buckets[i].offset;
    *size = p->buckets[i].bytes;
}

int pm_plan_wait_bucket(struct pm_plan *p, int slot, size_t i, const float **out)
{
    int err = PM_OK;

    PM_TRY(pm_program_wait_out(p->program, slot, p->output_count + i));
    *out = pm_program_out(p->program, slot, p->output_count + i);
out:
    return err;
}

double pm_plan_seconds(const struct pm_plan *p, int slot)
{
    return pm_program_seconds(p->program, slot);
}

double pm_plan_begun(const struct pm_plan *p, int slot)
{
    return pm_program_begun(p->program, slot);
}

int pm_plan_call_times(const struct pm_plan *p, int slot, double *begin, double *end)
{
    return pm_program_call_times(p->program, slot, begin, end);
}

const char *pm_plan_variant(const struct pm_plan *p, size_t call)
{
    return pm_program_variant(p->program, call);
}

void pm_plan_set_timed(struct pm_plan *p, bool on)
{
    struct pm_program *program = p->program;

    assert(p->options.timeable);
    if (!p->other || on == p->is_timed)
        return;
    p->program = p->other;
    p->other = program;
    p->is_timed = on;
}

struct pm_device *pm_plan_device(const struct pm_plan *p)
{
    return p->device;
}
