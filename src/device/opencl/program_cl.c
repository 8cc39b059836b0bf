/* program_cl: makes a program: a kernel with arguments for every dispatch, in the order that
 * arrangement.c gives. A kernel's arguments belong to its object, so every dispatch has its own.
 * In-order queues need no barriers. */
#include "device/opencl/device_cl.h"

#include <string.h>

struct maker {
    struct cl_device *d;
    struct cl_program *p;
    const struct pm_program_desc *desc;
    const struct pm_picked *picked;
    struct pm_arrangement arrangement;
    size_t *constants; /* per call: offset in p->constants; then the sum of bytes */
};

static cl_mem memory_of(const struct pm_place *p)
{
    return p->buffer ? ((const struct cl_buffer *)p->buffer)->block.memory : NULL;
}

/* ---- arguments ---------------------------------------------------------------------- */

static int set(struct cl_device *d, cl_kernel k, cl_uint *index, const void *value, size_t size)
{
    return cl(d->cl.SetKernelArg(k, (*index)++, size, value));
}

/* An address: the memory object, or NULL, and an offset. Sub-buffers would not do, because some
 * drivers align them to more than 256 bytes. */
static int set_address(struct cl_device *d, cl_kernel k, cl_uint *index, cl_mem memory,
                       size_t offset)
{
    int err = PM_OK;
    const cl_ulong at = offset;

    PM_TRY(set(d, k, index, memory ? &memory : NULL, sizeof memory));
    PM_TRY(set(d, k, index, &at, sizeof at));
out:
    return err;
}

/* Sets a kernel's arguments: the row's addresses, then the params or their address, then the first
 * workgroup. */
static int set_arguments(struct maker *m, const struct pm_arranged *x,
                         const struct cl_pipeline *pipe, cl_kernel k)
{
    int err = PM_OK;
    const struct pm_bound_call *c = &m->desc->calls[x->call];
    struct pm_buf_spec spec[PM_MAX_BUFS];
    const int bufs = pm_kernel_bufs(c->kernel, spec), wanted = pipe->kernel.addresses;
    const cl_uint3 base = { { x->base[0], x->base[1], x->base[2] } };
    cl_uint index = 0;

    for (int i = 0; i < bufs && i < wanted; i++)
        PM_TRY(set_address(m->d, k, &index, memory_of(&c->buf[i]), c->buf[i].offset));
    if (wanted > bufs)
        PM_TRY(set_address(m->d, k, &index, m->p->constants.memory,
                           m->constants[x->call]));
    if (pipe->kernel.params_bytes)
        PM_TRY(set(m->d, k, &index, c->params, c->kernel->params_size));
    PM_TRY(set(m->d, k, &index, &base, sizeof base));
out:
    return err;
}

/* Whether the row's buffers and params are what the kernel takes. */
static int check_arguments(const struct pm_kernel *row, const struct cl_pipeline *pipe)
{
    struct pm_buf_spec spec[PM_MAX_BUFS];
    const int bufs = pm_kernel_bufs(row, spec);
    const struct pm_cl_kernel *k = &pipe->kernel;
    bool by_address;

    pm_push_bytes(row, bufs, &by_address);
    if (k->addresses == 0 && k->params_bytes == 0) /* it reads no push block */
        return PM_OK;
    if (k->addresses == bufs + by_address &&
        k->params_bytes == (by_address ? 0 : row->params_size))
        return PM_OK;
    return pm_fail(PM_EFAIL, "%s: shader %s takes %d addresses and %u bytes of params; the row has "
                   "%d and %zu", row->name, pipe->base.shader->name, k->addresses, k->params_bytes,
                   bufs + by_address, by_address ? 0 : row->params_size);
}

static int make_dispatch(struct maker *m, const struct pm_arranged *x, struct cl_dispatch *out)
{
    int err = PM_OK;
    const struct cl_pipeline *pipe;
    cl_int r;

    *out = (struct cl_dispatch){ .call = x->call, .begins = x->begins, .ends = x->ends };
    if (x->dispatch < 0)
        return PM_OK;
    pipe = (const struct cl_pipeline *)m->picked[x->call].pipeline[x->dispatch];
    PM_TRY(check_arguments(m->desc->calls[x->call].kernel, pipe));
    out->kernel = m->d->cl.CreateKernel(pipe->program, "pm_kernel", &r);
    PM_TRY(pm_cl_result(r, "CreateKernel"));
    for (int i = 0; i < 3; i++) {
        out->local[i] = pipe->kernel.local[i];
        out->global[i] = (size_t)x->groups[i] * out->local[i];
    }
    PM_TRY(set_arguments(m, x, pipe, out->kernel));
out:
    return err;
}

/* ---- params in device memory ---------------------------------------------------------- */

/* Makes one block for the params of all calls whose kernels take them by address. */
static int make_constants(struct maker *m)
{
    int err = PM_OK;
    const size_t n = m->desc->calls_count;
    char *copy = NULL;
    struct cl_buffer buffer = { 0 };

    m->constants = pm_calloc(n + 1, sizeof *m->constants);
    for (size_t i = 0; i < n; i++)
        m->constants[i + 1] = m->constants[i] + pm_wide_params(m->desc->calls[i].kernel);
    if (m->constants[n] == 0)
        return PM_OK;
    copy = pm_calloc(1, m->constants[n]);
    for (size_t i = 0; i < n; i++)
        if (m->constants[i + 1] > m->constants[i])
            memcpy(copy + m->constants[i], m->desc->calls[i].params,
                   m->desc->calls[i].kernel->params_size);
    PM_TRY(pm_cl_block_create(m->d, m->constants[n], CL_USE_DEVICE, &m->p->constants));
    buffer.block = m->p->constants;
    PM_TRY(pm_cl_buffer_write(&m->d->shared.base, &buffer.base, 0, copy, m->constants[n]));
out:
    pm_free(copy);
    return err;
}

/* ---- the program -------------------------------------------------------------------- */

static int make_dispatches(struct maker *m)
{
    int err = PM_OK;
    struct cl_program *p = m->p;
    const struct pm_arrangement *a = &m->arrangement;

    p->dispatches = pm_arena_alloc(p->arena, (a->count + 1) * sizeof *p->dispatches);
    for (size_t i = 0; i < a->count; i++) {
        p->dispatch_count = i + 1;
        PM_TRY(make_dispatch(m, &a->list[i], &p->dispatches[i]));
    }
    p->segments = pm_arena_copy(p->arena, a->segments, a->segment_count * sizeof *p->segments);
    p->segment_count = a->segment_count;
out:
    return err;
}

static void lay_out(struct maker *m, size_t *in_bytes, size_t *out_bytes)
{
    const struct pm_program_desc *desc = m->desc;
    struct cl_program *p = m->p;

    p->ins = pm_arena_alloc(p->arena, (desc->in_count + 1) * sizeof *p->ins);
    p->outs = pm_arena_alloc(p->arena, (desc->out_count + 1) * sizeof *p->outs);
    *in_bytes = *out_bytes = 0;
    for (size_t i = 0; i < desc->in_count; i++) {
        const struct pm_place *x = &desc->in[i];

        p->ins[i] = (struct cl_copy){ memory_of(x), x->offset, x->size, .at = *in_bytes };
        *in_bytes += pm_align_place(x->size);
    }
    for (size_t i = 0; i < desc->out_count; i++) {
        const struct pm_place *x = &desc->out[i];

        p->outs[i] = (struct cl_copy){ memory_of(x), x->offset, x->size, .at = *out_bytes,
                                       .segment = m->arrangement.out_segment[i],
                                       .transfer = pm_copied_beside(desc, i) };
        *out_bytes += pm_align_place(x->size);
    }
    p->pairs = desc->timed ? desc->calls_count + 1 + desc->out_count : 0;
}

static int make_slot(struct cl_program *p, size_t in_bytes, size_t out_bytes, struct cl_slot *s)
{
    int err = PM_OK;
    const size_t n = p->segment_count + 1;

    *s = (struct cl_slot){ 0 };
    s->value = pm_arena_alloc(p->arena, n * sizeof *s->value);
    s->transfer_value = pm_arena_alloc(p->arena, n * sizeof *s->transfer_value);
    s->clock.events = pm_arena_alloc(p->arena, (2 * p->pairs + 1) * sizeof *s->clock.events);
    s->clock.stamps = pm_arena_alloc(p->arena, (2 * p->pairs + 1) * sizeof *s->clock.stamps);
    if (in_bytes)
        PM_TRY(pm_cl_block_create(p->device, in_bytes, CL_USE_HOST, &s->in));
    if (out_bytes)
        PM_TRY(pm_cl_block_create(p->device, out_bytes, CL_USE_HOST, &s->out));
out:
    return err;
}

static int make_all(struct maker *m, struct pm_picked *picked)
{
    int err = PM_OK;
    struct cl_program *p = m->p;
    size_t in_bytes, out_bytes;

    PM_TRY(pm_pick_all(&m->d->shared, m->desc, picked));
    pm_name_calls(p->arena, m->desc, picked, &p->names);
    pm_arrange_picked(&m->d->shared, m->desc, picked, &m->arrangement, &p->base.counts);
    PM_TRY(make_constants(m));
    PM_TRY(make_dispatches(m));
    lay_out(m, &in_bytes, &out_bytes);
    p->slots = pm_arena_alloc(p->arena, (size_t)m->desc->slots * sizeof *p->slots);
    while (p->slot_count < m->desc->slots)
        PM_TRY(make_slot(p, in_bytes, out_bytes, &p->slots[p->slot_count++]));
    PM_DEBUG("opencl", "%s: %s: %zu calls in %zu segments, %zu dispatches",
             m->d->shared.base.info.address, p->names.program, m->desc->calls_count,
             p->segment_count, p->dispatch_count);
out:
    return err;
}

int pm_cl_program_create(struct pm_device *base, const struct pm_program_desc *desc,
                         struct pm_program **out)
{
    struct cl_device *d = (struct cl_device *)base;
    struct cl_program *p = pm_calloc(1, sizeof *p);
    struct pm_picked *picked = pm_calloc(desc->calls_count + 1, sizeof *picked);
    struct maker m = { .d = d, .p = p, .desc = desc, .picked = picked };
    int err;

    p->device = d;
    p->arena = pm_arena_create();
    err = make_all(&m, picked);
    if (err == PM_OK)
        *out = &p->base;
    else
        pm_cl_program_destroy(&p->base);
    pm_arrangement_free(&m.arrangement);
    pm_free(m.constants);
    pm_free(picked);
    return err;
}

/* Destroys a program, also one whose creation failed half-way. */
void pm_cl_program_destroy(struct pm_program *base)
{
    struct cl_program *p = (struct cl_program *)base;
    struct cl_device *d = p->device;
    const bool idle = pm_cl_idle(d);

    for (int i = 0; i < p->slot_count; i++) {
        if (idle)
            pm_cl_clock_release(p, &p->slots[i].clock);
        pm_cl_block_destroy(d, &p->slots[i].in);
        pm_cl_block_destroy(d, &p->slots[i].out);
    }
    pm_cl_block_destroy(d, &p->constants);
    for (size_t i = 0; i < p->dispatch_count; i++)
        if (idle && p->dispatches[i].kernel)
            d->cl.ReleaseKernel(p->dispatches[i].kernel);
    pm_arena_destroy(&p->arena);
    pm_free(p);
}
