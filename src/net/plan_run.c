/* plan_run: creates the buffers and the program of a plan, and runs one step. */
#include "net/plan_private.h"

#include <assert.h>
#include <string.h>

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
    if (p->counter_bytes) {
        PM_TRY(pm_buffer_create(p->device, p->counter_bytes, &p->counters));
        PM_TRY(pm_buffer_fill(p->device, p->counters, 0, p->counter_bytes, 0));
    }
    for (int i = 0; i < p->calls->value_count; i++) {
        const struct pm_value *v = &p->calls->values[i];

        if (v->kind == PM_VALUE_CONSTANT)
            PM_TRY(pm_buffer_write(p->device, p->constants, v->offset, v->constant, v->bytes));
    }
out:
    return err;
}

static int make_program(struct pm_plan *p, bool timed, struct pm_program **made)
{
    struct pm_plan_program program;
    int err = PM_OK;

    pm_plan_describe(p, &program);
    program.desc.timed = timed;
    PM_TRY(pm_program_create(p->device, &program.desc, made));
out:
    pm_plan_program_free(&program);
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
    p->loaded = true;
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
    pm_buffer_destroy(p->device, &p->counters);
    p->loaded = false;
}

int pm_plan_refresh(struct pm_plan *p)
{
    int err = PM_OK;

    if (!p->loaded)
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
