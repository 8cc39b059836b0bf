/* state: one host copy of the value block, of each slot block and of the averages; a checkpoint's
 * tensors point into it. Slots and averages have TensorFlow's names,
 * "LeNet/conv1/weights/Momentum". */
#include "checkpoints/state.h"

#include "optim/averages.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct pm_state {
    struct pm_arena *arena;
    char *values, *slots[PM_MAX_SLOTS], *averages;
    size_t bytes, trainable_bytes, average_bytes;
    int slot_count;
    struct pm_state_tensor *tensors; /* averages last */
    size_t count, averages_from;
};

static void add_averages(struct pm_state *s, const struct pm_variables *v)
{
    s->average_bytes = v->average_bytes;
    s->averages = pm_calloc(1, v->average_bytes + 1);
    s->averages_from = s->count;
    for (int i = 0; s->average_bytes && i < v->count; i++)
        s->tensors[s->count++] = (struct pm_state_tensor){
            pm_arena_printf(s->arena, "%s/" PM_AVERAGE_SUFFIX, v->list[i].name), v->list[i].shape,
            (float *)(void *)(s->averages + v->offset[i]) };
}

struct pm_state *pm_state_create(const struct pm_variables *v)
{
    struct pm_state *s = pm_calloc(1, sizeof *s);

    s->arena = pm_arena_create();
    s->bytes = v->bytes;
    s->trainable_bytes = v->trainable_bytes;
    s->slot_count = v->slot_count;
    s->values = pm_calloc(1, v->bytes + 1);
    s->tensors = pm_calloc((size_t)(v->count * (2 + v->slot_count)) + 1, sizeof *s->tensors);
    for (int k = 0; k < v->slot_count; k++)
        s->slots[k] = pm_calloc(1, v->trainable_bytes + 1);
    for (int i = 0; i < v->count; i++) {
        const struct pm_variable *x = &v->list[i];

        s->tensors[s->count++] = (struct pm_state_tensor){
            pm_arena_strdup(s->arena, x->name), x->shape,
            (float *)(void *)(s->values + v->offset[i]) };
        for (int k = 0; x->trainable && k < v->slot_count; k++)
            s->tensors[s->count++] = (struct pm_state_tensor){
                pm_arena_printf(s->arena, "%s/%s", x->name, v->slot_names[k]), x->shape,
                (float *)(void *)(s->slots[k] + v->offset[i]) };
    }
    add_averages(s, v);
    return s;
}

void pm_state_destroy(struct pm_state **s)
{
    if (*s) {
        pm_free((*s)->values);
        for (int k = 0; k < PM_MAX_SLOTS; k++)
            pm_free((*s)->slots[k]);
        pm_free((*s)->averages);
        pm_free((*s)->tensors);
        pm_arena_destroy(&(*s)->arena);
        pm_free(*s);
    }
    *s = NULL;
}

bool pm_state_block(struct pm_state *s, int i, void **data, size_t *bytes)
{
    const bool slot = i >= 1 && i <= s->slot_count;

    if (i > s->slot_count + 1)
        return false;
    *data = i == 0 ? s->values : slot ? s->slots[i - 1] : s->averages;
    *bytes = i == 0 ? s->bytes : slot ? s->trainable_bytes : s->average_bytes;
    return true;
}

const float *pm_state_value(const struct pm_state *s, const struct pm_variables *v, int i)
{
    return (const float *)(const void *)(s->values + v->offset[i]);
}

int pm_state_read(struct pm_state *s, struct pm_variables *v)
{
    int err = PM_OK;

    if (s->bytes)
        PM_TRY(pm_buffer_read(v->device, v->values, 0, s->values, s->bytes));
    for (int k = 0; s->trainable_bytes && k < s->slot_count; k++)
        PM_TRY(pm_buffer_read(v->device, v->slots[k], 0, s->slots[k], s->trainable_bytes));
    if (s->average_bytes)
        PM_TRY(pm_buffer_read(v->device, v->averages, 0, s->averages, s->average_bytes));
out:
    return err;
}

int pm_state_write(const struct pm_state *s, struct pm_variables *v)
{
    int err = PM_OK;

    if (s->bytes)
        PM_TRY(pm_buffer_write(v->device, v->values, 0, s->values, s->bytes));
    for (int k = 0; s->trainable_bytes && k < s->slot_count; k++)
        PM_TRY(pm_buffer_write(v->device, v->slots[k], 0, s->slots[k], s->trainable_bytes));
    if (s->average_bytes)
        PM_TRY(pm_buffer_write(v->device, v->averages, 0, s->averages, s->average_bytes));
out:
    return err;
}

int pm_state_save(const struct pm_state *s, const char *run, uint64_t step, const char *json,
                  const struct pm_keep *keep)
{
    return pm_checkpoint_save(run, step, s->tensors, s->count, json, keep);
}

/* Warns if the optimizer made another number of updates than the file's step, as after a change of
 * the optimizer. TensorFlow keeps beta^(updates + 1); here the power follows from the step. */
static void check_power(const struct pm_checkpoint *from, const char *name, double beta)
{
    const struct pm_file_tensor *t = pm_tensor_file_find(from->tensors, name);
    float power;
    double updates;

    if (!t || t->count != 1 || beta <= 0 || pm_tensor_file_floats(from->tensors, t, 0, 1, &power))
        return;
    updates = log((double)power) / log(beta) - 1;
    if (power > FLT_MIN && fabs(updates - (double)from->step) > 0.5 + 1e-3 * (double)from->step)
        PM_WARN("init",
                "%s: %s is %g, the value after %.0f updates, but the step is %llu: the optimizer's "
                "bias correction continues from the step",
                from->path, name, (double)power, updates, (unsigned long long)from->step);
}

int pm_state_check(const struct pm_state *s, const struct pm_checkpoint *from, const char *where,
                   const double betas[2])
{
    static const char only[] = "set init.restore to \"variables\" to take the variables only";
    const char *missing = NULL;
    int count = 0;

    for (size_t i = 0; i < s->averages_from; i++)
        if (!pm_tensor_file_find(from->tensors, s->tensors[i].name)) {
            missing = count++ ? missing : s->tensors[i].name;
        }
    if (missing)
        return pm_fail(PM_EDATA,
                       "%s: init.restore is \"all\", but %d of %zu variables and optimizer slots "
                       "are not in %s, the first is '%s': is it a checkpoint of the same net and "
                       "the same optimizer (optim.name)? Else %s",
                       where, count, s->averages_from, from->path, missing, only);
    if (!from->has_step)
        return pm_fail(PM_EDATA,
                       "%s: init.restore is \"all\", but %s has no step (TensorFlow's "
                       "global_step): %s",
                       where, from->path, only);
    check_power(from, "beta1_power", betas[0]);
    check_power(from, "beta2_power", betas[1]);
    return PM_OK;
}

int pm_state_load(struct pm_state *s, const struct pm_checkpoint *from)
{
    bool has = pm_checkpoint_averages(from) > 0;
    int err = PM_OK;

    for (size_t i = 0; i < (has ? s->count : s->averages_from); i++)
        PM_TRY(pm_checkpoint_read(from, s->tensors[i].name, s->tensors[i].shape,
                                  s->tensors[i].data));
    if (s->average_bytes && !has) {
        memcpy(s->averages, s->values, s->average_bytes);
        PM_WARN("train", "%s has no moving averages: they start from its variables", from->path);
    }
    if (!s->average_bytes && has)
        PM_WARN("train",
                "%s has moving averages, which this run does not continue "
                "(optim.moving_average_decay is 0)",
                from->path);
out:
    return err;
}
