/* plan_program: describes a plan's program, with its inputs, outputs and gradient buckets, and
 * counts its dispatches, barriers and bytes. It allocates no device memory. */
#include "net/plan_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- places ----------------------------------------------------------------------------- */

/* Returns the buffer, or before it is made the address of its field: counting compares buffers
 * and does not use them. */
static struct pm_buffer *identity(struct pm_buffer *const *field)
{
    return *field ? *field : (struct pm_buffer *)(uintptr_t)field;
}

static struct pm_place variable_place(const struct pm_plan *p, const struct pm_value *v)
{
    const struct pm_variables *vars = p->variables;
    struct pm_buffer *b;

    if (!vars) /* a dry run without variables: each has a buffer of its own */
        return (struct pm_place){ (struct pm_buffer *)(uintptr_t)v, 0, v->bytes };
    b = identity(v->kind == PM_VALUE_VARIABLE   ? &vars->values
                 : v->kind == PM_VALUE_GRADIENT ? &vars->grads
                 : v->kind == PM_VALUE_AVERAGE  ? &vars->averages
                                                : &vars->slots[v->slot]);
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
    case PM_VALUE_COUNTER:
        return (struct pm_place){ identity(&p->counters), v->offset, v->bytes };
    case PM_VALUE_CONSTANT:
        return (struct pm_place){ identity(&p->constants), v->offset, v->bytes };
    default: {
        const struct pm_value *root = &p->calls->values[pm_calls_root(p->calls, value)];

        return (struct pm_place){ identity(&p->block[root->block]),
                                  root->offset + pm_calls_at(p->calls, value), v->bytes };
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

/* ---- inputs and outputs ----------------------------------------------------------------- */

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

void pm_plan_list_transfers(struct pm_plan *p)
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
    if (p->options.bucket_bytes > 0 && p->variables)
        make_buckets(p);
}

/* ---- the program ------------------------------------------------------------------------ */

static struct pm_bound_call bound(const struct pm_plan *p, const struct pm_planned_call *c)
{
    struct pm_bound_call b = { .kernel = c->kernel, .label = c->label, .count = c->count,
                               .params = c->params };

    for (int k = 0; k < c->bufs; k++)
        b.buf[k] = place_of(p, c->buf[k]);
    return b;
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

void pm_plan_describe(const struct pm_plan *p, struct pm_plan_program *out)
{
    const struct pm_calls *c = p->calls;
    const size_t outs = p->output_count + p->bucket_count;
    struct pm_bound_call *calls = pm_calloc((size_t)c->call_count + 1, sizeof *calls);
    struct pm_place *in = pm_calloc(p->input_count + 1, sizeof *in);
    struct pm_place *places = pm_calloc(outs + 1, sizeof *places);
    size_t *after = pm_calloc(outs + 1, sizeof *after);

    for (int i = 0; i < c->call_count; i++)
        calls[i] = bound(p, &c->calls[i]);
    for (size_t i = 0; i < p->input_count; i++)
        in[i] = place_of(p, p->inputs[i]);
    for (size_t i = 0; i < p->output_count; i++) {
        places[i] = place_of(p, p->outputs[i]);
        after[i] = written_after(c, p->outputs[i]);
    }
    for (size_t i = 0; i < p->bucket_count; i++) {
        places[p->output_count + i] = (struct pm_place){ identity(&p->variables->grads),
                                                         p->buckets[i].offset,
                                                         p->buckets[i].bytes };
        after[p->output_count + i] = p->buckets[i].after;
    }
    *out = (struct pm_plan_program){ calls, in, places, after, {
        .name = p->options.name, .calls = calls, .calls_count = (size_t)c->call_count,
        .in = in, .in_count = p->input_count, .out = places, .out_after = after,
        .out_count = outs, .slots = p->options.slots } };
}

void pm_plan_program_free(struct pm_plan_program *p)
{
    pm_free(p->calls);
    pm_free(p->in);
    pm_free(p->out);
    pm_free(p->after);
}

/* ---- counts ----------------------------------------------------------------------------- */

int pm_plan_counts(const struct pm_plan *p, struct pm_counts *out)
{
    struct pm_plan_program program;
    int err = PM_OK;

    if (p->program) {
        pm_program_counts(p->program, out);
        return PM_OK;
    }
    pm_plan_describe(p, &program);
    PM_TRY(pm_program_count(p->device, &program.desc, out));
out:
    pm_plan_program_free(&program);
    return err;
}

uint64_t pm_plan_call_bytes(const struct pm_plan *p, size_t call)
{
    const struct pm_bound_call c = bound(p, &p->calls->calls[call]);

    return pm_call_bytes(&c, NULL);
}
