/* walk: runs a plan's calls in order on the CPU, so each call has the inputs that it has in
 * training. On the way, the wanted calls are verified. Values are kept on the host from their first
 * call to their last. */
#include "verify/verify_private.h"

#include <pumice/rng.h>

#include <math.h>
#include <string.h>

struct walk {
    struct pm_verify *v;
    const struct pm_verify_source *source;
    struct pm_net *net;
    struct pm_variables *variables;
    struct pm_plan *plan;
    const struct pm_planned_call *calls;
    const struct pm_value *values;
    size_t call_count, value_count;
    void **value;     /* host memory of values; NULL if not in use */
    char *block, *grads, *averages, *slot[PM_MAX_SLOTS];
    uint32_t *levels; /* per call: the levels to run, as bits */
};

/* ---- contents --------------------------------------------------------------------------- */

static float between(struct pm_rng *r, double low, double high)
{
    return (float)(low + (high - low) * pm_rng_uniform(r));
}

/* Fills the variables with initial values. Constant ones (biases, gains, averages) are varied by a
 * tenth; otherwise a kernel that omits a zero bias would pass. Slots are positive, because some are
 * mean squares. */
static int fill_variables(struct walk *w)
{
    const struct pm_variables *v = w->variables;
    struct pm_rng r = pm_rng_make(1, pm_hash("verify"), 0, 0);
    int err = PM_OK;

    w->block = pm_calloc(1, v->bytes + 4);
    w->grads = pm_calloc(1, v->trainable_bytes + 4);
    for (int i = 0; i < v->count; i++) {
        const struct pm_variable *x = &v->list[i];
        float *at = (void *)(w->block + v->offset[i]);

        PM_TRY(pm_variable_initial(x, 1, at));
        for (size_t k = 0; x->init.kind == PM_INIT_CONSTANT && k < pm_shape_count(x->shape); k++)
            at[k] += between(&r, -0.1, 0.1);
    }
    float *average = pm_calloc(1, v->average_bytes + 4);

    w->averages = (char *)average;
    for (size_t k = 0; k < v->average_bytes / sizeof(float); k++)
        average[k] = between(&r, -1, 1);
    for (int s = 0; s < v->slot_count; s++) {
        float *at = pm_calloc(1, v->trainable_bytes + 4);

        w->slot[s] = (char *)at;
        for (size_t k = 0; k < v->trainable_bytes / sizeof(float); k++)
            at[k] = between(&r, 0.1, 0.6);
    }
out:
    return err;
}

static void fill_input(const struct walk *w, const struct pm_value *x, void *data)
{
    const struct pm_step step = { .step = 3, .seed_low = 0x12345678, .seed_high = 0x9abcdef0,
                                  .lr = 0.1f, .loss_scale = 1, .beta1_power = 0.5f,
                                  .beta2_power = 0.75f, .ema_decay = 0.875f };
    struct pm_rng r = pm_rng_make(2, pm_hash(x->name), 0, 0);

    if (strcmp(x->name, "step") == 0) {
        memcpy(data, &step, sizeof step);
        return;
    }
    pm_values_draw(pm_net_values(pm_net_find(w->net, x->name)), x->type, pm_shape_count(x->shape),
                   &r, data);
}

/* Returns the address of a value and stores its length in bytes. */
static void *locate(struct walk *w, int index, size_t *bytes)
{
    const struct pm_value *x = &w->values[index];
    const struct pm_variables *v = w->variables;
    char *block = x->kind == PM_VALUE_VARIABLE   ? w->block
                  : x->kind == PM_VALUE_GRADIENT ? w->grads
                  : x->kind == PM_VALUE_SLOT     ? w->slot[x->slot]
                  : x->kind == PM_VALUE_AVERAGE  ? w->averages
                                                 : NULL;

    *bytes = x->bytes;
    if (block)
        return block + (x->variable >= 0 ? v->offset[x->variable] : x->offset);
    return x->within >= 0 ? (char *)w->value[x->within] + x->at : w->value[index];
}

static void make_value(struct walk *w, int index)
{
    const struct pm_value *x = &w->values[index];

    if (x->within >= 0)
        index = x->within, x = &w->values[index];
    if (w->value[index] || x->kind == PM_VALUE_VARIABLE || x->kind == PM_VALUE_GRADIENT ||
        x->kind == PM_VALUE_SLOT || x->kind == PM_VALUE_AVERAGE || x->kind == PM_VALUE_SCRATCH ||
        x->kind == PM_VALUE_COUNTER)
        return;
    w->value[index] = pm_calloc(1, x->bytes + 4);
    if (x->kind == PM_VALUE_CONSTANT)
        memcpy(w->value[index], x->constant, x->bytes);
    else if (x->kind == PM_VALUE_INPUT)
        fill_input(w, x, w->value[index]);
}

static void drop_values(struct walk *w, int call)
{
    for (size_t i = 0; i < w->value_count; i++)
        if (w->values[i].last == call && w->value[i]) {
            pm_free(w->value[i]);
            w->value[i] = NULL;
        }
}

/* ---- which calls ------------------------------------------------------------------------ */

/* Returns a hash of everything that distinguishes one call from another. */
static uint64_t hash_call(const struct walk *w, const struct pm_planned_call *c)
{
    uint64_t h = pm_hash_bytes(c->params, c->kernel->params_size, pm_hash(c->kernel->name));

    h = pm_hash_bytes(&c->count, sizeof c->count, h);
    for (int i = 0; i < c->bufs; i++) {
        size_t bytes = c->buf[i] < 0 ? 0 : w->values[c->buf[i]].bytes;

        h = pm_hash_bytes(&bytes, sizeof bytes, h);
    }
    return h;
}

/* Chooses every call that differs from all earlier calls, of this net or another. */
static void choose_all(struct walk *w)
{
    for (size_t i = 0; i < w->call_count; i++) {
        const struct pm_planned_call *c = &w->calls[i];

        if (pm_verify_first(w->v, hash_call(w, c)))
            w->levels[i] = pm_verify_mask(w->v, c->kernel, c->params, c->count);
    }
}

static double work(const struct pm_planned_call *c)
{
    return c->kernel->flops ? c->kernel->flops(c->params, c->count) : (double)c->count;
}

/* Returns the first level of a call that gives this variant, or -1. */
static int level_of(const struct walk *w, const struct pm_planned_call *c, const char *name)
{
    const char *variant;

    for (int level = 0; level < 32; level++) {
        if (pm_call_variant(w->v->device, c->kernel, c->params, c->count, level, &variant) < 0 ||
            !variant)
            break;
        if (strcmp(variant, name) == 0)
            return level;
    }
    return -1;
}

/* Whether a call of work x is a better test than one of work best (negative: none yet). Preferred
 * is the largest call of at most `quick` operations, else the smallest one up to `most`. */
static bool is_better(double x, double best)
{
    const double quick = 1e8, most = 2e9;

    if (x > most)
        return false;
    return best < 0 || (x <= quick ? best > quick || x > best : x < best);
}

/* Chooses one call for each wanted variant. */
static void choose_wanted(struct walk *w)
{
    for (size_t n = 0; n < w->v->wanted_count; n++) {
        const struct pm_wanted *x = &w->v->wanted[n];
        size_t best = 0;
        int best_level = 0;
        double best_work = -1;

        if (!pm_verify_wants(w->v, x->kernel, x->variant))
            continue;
        for (size_t i = 0; i < w->call_count; i++) {
            const struct pm_planned_call *c = &w->calls[i];
            int level;

            if (strcmp(c->kernel->name, x->kernel) != 0 || !is_better(work(c), best_work) ||
                (level = level_of(w, c, x->variant)) < 0)
                continue;
            best = i;
            best_level = level;
            best_work = work(c);
        }
        if (best_work >= 0)
            w->levels[best] |= UINT32_C(1) << best_level;
    }
}

/* ---- walking ---------------------------------------------------------------------------- */

static void describe(struct walk *w, size_t index, struct pm_verify_call *out)
{
    const struct pm_planned_call *c = &w->calls[index];
    struct pm_buf_spec spec[PM_MAX_BUFS];

    *out = (struct pm_verify_call){ .kernel = c->kernel, .label = c->label, .count = c->count,
                                    .params = c->params };
    pm_kernel_bufs(c->kernel, spec);
    for (int b = 0; b < c->bufs; b++) {
        if (c->buf[b] < 0 || pm_access_own(spec[b].access))
            continue;
        make_value(w, c->buf[b]);
        out->buf[b].type = w->values[c->buf[b]].type;
        out->buf[b].data = locate(w, c->buf[b], &out->buf[b].bytes);
    }
}

/* Replaces numbers that are no use as inputs with small positive ones, so variances stay valid. A
 * deep net with random variables may grow beyond all bounds; training would not start from such a
 * net. */
static void tame(float *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(v[i]) < 1e4f))
            v[i] = 0.1f + (float)(i % 16) / 16;
}

/* Runs the call itself, as the plan has it, for the calls after it. */
static int advance(struct walk *w, size_t index, const struct pm_verify_call *call)
{
    const struct pm_planned_call *c = &w->calls[index];
    struct pm_buf_spec spec[PM_MAX_BUFS];
    struct pm_one_call *one = NULL;
    char fault[200];
    int err = PM_OK;

    PM_TRY(pm_one_call_create(w->v->cpu, call, (struct pm_way){ .accumulate = -1 }, &one));
    PM_TRY(pm_one_call_run(one, NULL, fault, sizeof fault));
    pm_kernel_bufs(c->kernel, spec);
    for (int b = 0; b < c->bufs; b++) {
        size_t bytes;
        void *to;

        if (c->buf[b] < 0 || spec[b].access == 'r' || pm_access_own(spec[b].access))
            continue;
        to = locate(w, c->buf[b], &bytes);
        memcpy(to, pm_one_call_result(one, b), bytes);
        if (call->buf[b].type == PM_F32)
            tame(to, bytes / sizeof(float));
    }
out:
    pm_one_call_destroy(&one);
    return err;
}

static int walk_calls(struct walk *w)
{
    size_t end = w->call_count;
    int err = PM_OK;

    while (end > 0 && w->levels[end - 1] == 0)
        end--;
    for (size_t i = 0; i < end; i++) {
        struct pm_verify_call call;

        if (pm_verify_is_late(w->v))
            break;
        describe(w, i, &call);
        if (w->levels[i])
            PM_TRY(pm_verify_levels(w->v, &call, w->levels[i]));
        if (i + 1 < end)
            PM_TRY(advance(w, i, &call));
        drop_values(w, (int)i);
    }
out:
    return err;
}

static int open_walk(struct walk *w)
{
    const struct pm_verify_source *s = w->source;
    struct pm_plan_options o = s->options;
    int err = PM_OK;

    o.micro_batches = 1;
    o.recompute = PM_RECOMPUTE_OFF;
    o.bucket_bytes = 0;
    PM_TRY(s->build(s->ctx, s->batch, s->height, s->width, &w->net));
    PM_TRY(pm_variables_create(w->v->device, w->net, o.train || o.update_only, s->slots,
                               &w->variables));
    pm_variables_keep_averages(w->variables); /* the update may have averages */
    PM_TRY(pm_plan_create(w->net, w->v->device, w->variables, &o, &w->plan));
    w->calls = pm_plan_calls(w->plan, &w->call_count);
    w->values = pm_plan_values(w->plan, &w->value_count);
    w->value = pm_calloc(w->value_count + 1, sizeof *w->value);
    w->levels = pm_calloc(w->call_count + 1, sizeof *w->levels);
    PM_TRY(fill_variables(w));
out:
    return err;
}

int pm_verify_source(struct pm_verify *v, const struct pm_verify_source *s)
{
    struct walk w = { .v = v, .source = s };
    int err = PM_OK;

    PM_TRY(open_walk(&w));
    if (v->only)
        choose_wanted(&w);
    else
        choose_all(&w);
    PM_TRY(walk_calls(&w));
out:
    for (size_t i = 0; w.value && i < w.value_count; i++)
        pm_free(w.value[i]);
    for (int i = 0; i < PM_MAX_SLOTS; i++)
        pm_free(w.slot[i]);
    pm_free(w.value);
    pm_free(w.levels);
    pm_free(w.block);
    pm_free(w.grads);
    pm_free(w.averages);
    pm_plan_destroy(&w.plan);
    pm_variables_destroy(&w.variables);
    pm_net_destroy(&w.net);
    return err;
}
