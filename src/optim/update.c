/* update: the calls between the backward pass and the next step.
 *
 *   gradient_prepare   g = (g + wd * w) * multiplier; per chunk of 4096 floats: sum g^2, wd/2 sum
 *                      w^2
 *   gradient_norms     per variable and global norm, clip factors, flag
 *   the optimizer      over the block, except frozen variables
 *   layers' updates    moving averages, conditional on the flag
 *   averages.h         the variables' moving averages, after all of the above
 *
 * Weight decay is added here only, or in the optimizer if that applies it apart from the gradient.
 * So it counts once per step for any number of clones. A multiplier of 0 (frozen) writes zeros,
 * even if g is not finite. Sums have fixed chunks and a fixed order. */
#include "optim/optimizer.h"

#include "base/vector.h"
#include "optim/averages.h"
#include "update.params.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { CHUNK = 4096, OWNER_FLOATS = 64 };

/* ---- kernels ---------------------------------------------------------------------------- */

enum { LANES = 16 };

/* PRESENT: the gradient is g; ABSENT: it is 0; FROZEN: the result is 0, whatever g and w are. */
enum gradient_kind { PRESENT, ABSENT, FROZEN };

/* Writes v = (g + wd w) * multiplier and adds v^2 and w^2 to sums. Value i counts in lane i % 16:
 * lanes are added side by side. kind is a constant at each use. */
PM_INLINE void prepare_values(float *g, const float *w, size_t count, float wd, float multiplier,
                              const enum gradient_kind kind, float *gg, float *ww)
{
    for (size_t i = 0; i < count; i += LANES) {
        const int lanes = count - i < LANES ? (int)(count - i) : LANES;

        PM_SIMD
        for (int k = 0; k < lanes; k++) {
            float v = ((kind == ABSENT ? 0.0f : g[i + k]) + wd * w[i + k]) * multiplier;

            g[i + k] = v = kind == FROZEN ? 0.0f : v;
            gg[k] += v * v;
            ww[k] += w[i + k] * w[i + k];
        }
    }
}

PM_CLONES
static void prepare_chunk(const uint32_t *chunk, const uint32_t *vars, float *all_g,
                          const float *all_w, float *partial)
{
    const uint32_t *var = vars + 4 * chunk[2];
    float *g = all_g + chunk[0], gg[LANES] = { 0 }, ww[LANES] = { 0 }, wd, multiplier;
    const float *w = all_w + chunk[0];
    const size_t count = chunk[1];

    memcpy(&wd, &var[2], sizeof wd);
    memcpy(&multiplier, &var[3], sizeof multiplier);
    if (multiplier == 0)
        prepare_values(g, w, count, wd, multiplier, FROZEN, gg, ww);
    else if (chunk[3] != 0)
        prepare_values(g, w, count, wd, multiplier, ABSENT, gg, ww);
    else
        prepare_values(g, w, count, wd, multiplier, PRESENT, gg, ww);
    for (int k = 1; k < LANES; k++) {
        gg[0] += gg[k];
        ww[0] += ww[k];
    }
    partial[0] = gg[0];
    partial[1] = wd != 0 ? 0.5f * wd * ww[0] : 0.0f;
}

static void prepare_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const uint32_t *chunks = a->buf[2], *vars = a->buf[3];
    float *partials = a->buf[4];

    for (size_t i = begin; i < end; i++)
        prepare_chunk(chunks + 4 * i, vars, a->buf[0], a->buf[1], partials + 2 * i);
}

static bool prepare_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                         struct pm_picks *out)
{
    (void)caps, (void)params;
    pm_pick_elements("gradient_prepare", 64, count * 64, out); /* a group per chunk */
    return level == 0;
}

static const struct pm_kernel prepare_row = {
    .name = "gradient_prepare", .bufs = "u:g r:w r:chunks r:vars w:partials",
    .params_size = sizeof(struct gradient_prepare_params), .cpu = prepare_cpu, .grain = 4,
    .pick = prepare_pick,
};

static float clip_factor(float norm, float clip)
{
    return clip > 0 && norm > clip ? clip / norm : 1.0f;
}

static void norms_cpu(const struct pm_args *a)
{
    const struct gradient_norms_params *p = a->params;
    const float *partials = a->buf[0];
    const uint32_t *vars = a->buf[1];
    float *norms = a->buf[3], *scale = a->buf[4], *result = a->buf[5];
    uint32_t *flag = a->buf[6];
    double total = 0, l2 = 0;

    for (int v = 0; v < p->vars; v++) {
        double square = 0;

        for (uint32_t k = vars[4 * v]; k < vars[4 * v] + vars[4 * v + 1]; k++) {
            square += partials[2 * k];
            l2 += partials[2 * k + 1];
        }
        norms[v] = (float)sqrt(square);
        scale[v] = clip_factor(norms[v], p->clip_variable);
        total += square * scale[v] * scale[v];
    }
    result[PM_RESULT_NORM] = (float)sqrt(total);
    result[PM_RESULT_L2] = (float)l2;
    result[PM_RESULT_CLIP] = clip_factor((float)sqrt(total), p->clip_global);
    *flag = total <= 3.4e38; /* false for infinity and NaN */
}

/* Picks two dispatches: a group per variable, then one group that adds the variables' sums. The
 * order of both sums is part of the contract. */
static bool norms_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                       struct pm_picks *out)
{
    const struct gradient_norms_params *p = params;

    (void)caps, (void)count;
    pm_pick_elements("gradient_norms", 64, (size_t)p->vars * 64, out);
    out->d[1] = out->d[0];
    out->d[1].shader = "gradient_norms_sum";
    out->d[1].groups[0] = 1;
    out->count = 2;
    out->scratch[2] = 2 * sizeof(float) * (size_t)p->vars;
    return level == 0;
}

static const struct pm_kernel norms_row = {
    .name = "gradient_norms", .bufs = "r:partials r:vars t:sums w:norms w:scale w:result w:flag",
    .params_size = sizeof(struct gradient_norms_params), .cpu_all = norms_cpu, .pick = norms_pick,
};

/* ---- tables ----------------------------------------------------------------------------- */

int pm_update_variable(const struct pm_variables *v, int trainable)
{
    for (int i = 0; i < v->count; i++)
        if (v->list[i].trainable && trainable-- == 0)
            return i;
    return -1;
}

/* Returns the factor of a variable's gradient; 0: the update does not change the variable. */
static float factor_of(const struct pm_update *u, const struct pm_variables *v, int i)
{
    if (u->every > 0 && i % u->every != u->first)
        return 0;
    return u->multiplier ? u->multiplier(v->list[i].name, u->ctx) : 1;
}

bool pm_update_changes(const struct pm_update *u, const struct pm_variables *v, int variable)
{
    return v->list[variable].trainable && factor_of(u, v, variable) != 0;
}

struct tables {
    uint32_t *chunks, *vars, *owner;
    float *decay; /* if the optimizer applies the decay: 2 floats per variable */
    int chunk_count, var_count;
};

static uint32_t bits(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

/* Makes the tables of the trainable block in the order of its offsets, which is the list's
 * order. */
static struct tables make_tables(const struct pm_calls *c, const struct pm_update *u)
{
    const struct pm_variables *v = pm_calls_variables(c);
    size_t floats = v->trainable_bytes / sizeof(float);
    size_t room = floats / CHUNK + (size_t)v->count + 1;
    struct tables t = { .chunks = pm_calloc(room, 4 * sizeof(uint32_t)),
                        .vars = pm_calloc((size_t)v->count + 1, 4 * sizeof(uint32_t)),
                        .owner = pm_calloc(floats / OWNER_FLOATS + 1, sizeof(uint32_t)),
                        .decay = pm_calloc((size_t)v->count + 1, 2 * sizeof(float)) };

    for (int i = 0; i < v->count; i++) {
        const struct pm_variable *x = &v->list[i];
        size_t count = pm_shape_count(x->shape), first = v->offset[i] / sizeof(float);
        uint32_t *var = t.vars + 4 * t.var_count;
        float *decay = t.decay + 2 * t.var_count;
        float multiplier = factor_of(u, v, i);

        if (!x->trainable)
            continue;
        var[0] = (uint32_t)t.chunk_count;
        var[2] = bits(x->regularize && !u->optimizer->decoupled ? u->weight_decay : 0);
        var[3] = bits(multiplier);
        decay[0] = x->regularize && multiplier != 0 ? u->weight_decay : 0;
        decay[1] = multiplier == 0 ? -1 : x->regularize;
        for (size_t at = 0; at < count; at += CHUNK) {
            uint32_t *chunk = t.chunks + 4 * t.chunk_count++;

            chunk[0] = (uint32_t)(first + at);
            chunk[1] = (uint32_t)(count - at < CHUNK ? count - at : CHUNK);
            chunk[2] = (uint32_t)t.var_count;
            /* without a gradient, g holds the last step's values */
            chunk[3] = !pm_calls_has_gradient(c, i);
            var[1]++;
        }
        for (size_t at = 0; at < count; at += OWNER_FLOATS)
            t.owner[(first + at) / OWNER_FLOATS] = (uint32_t)t.var_count;
        t.var_count++;
    }
    return t;
}

/* ---- calls ------------------------------------------------------------------------------ */

/* Appends the optimizer's calls for bytes from .. to-1 of the trainable block. */
static void append_range(struct pm_calls *c, const struct pm_update *u, struct pm_update_parts *p,
                         const struct tables *t, size_t from, size_t to)
{
    const struct pm_optimizer *o = u->optimizer;
    const char *const *slots = pm_optimizer_slots(o, u->cfg);
    const size_t first = from / sizeof(float) / OWNER_FLOATS;
    char params[128] = { 0 };
    int n = 7;

    if (from == to)
        return;
    assert(from % (OWNER_FLOATS * sizeof(float)) == 0);
    p->floats = (int)((to - from) / sizeof(float));
    p->owner = pm_calls_constant(c, "owner", t->owner + first, PM_SHAPE1(p->floats / OWNER_FLOATS),
                                 PM_U32);
    p->w = pm_calls_values_part(c, from, to);
    p->g = pm_calls_gradient_part(c, from, to);
    struct pm_tensor bufs[PM_MAX_BUFS] = { p->g,    p->owner, p->scale, p->result,
                                           p->flag, p->step,  p->w };
    for (int k = 0; slots[k]; k++)
        bufs[n++] = p->slot[k] = pm_calls_slot_part(c, k, from, to);
    if (o->append) {
        o->append(c, u->cfg, p);
        return;
    }
    o->params(u->cfg, p->floats, params);
    pm_call(c, o->kernel, (size_t)p->floats, params, n, bufs);
}

/* Skips frozen variables. A gradient of 0 is not enough if a slot holds earlier momentum, or if
 * weights are computed from slots alone. */
static void append_optimizer(struct pm_calls *c, const struct pm_update *u,
                             struct pm_update_parts *p, const struct tables *t)
{
    const struct pm_variables *v = pm_calls_variables(c);
    size_t from = 0;
    bool before = false;

    pm_calls_label(c, u->optimizer->name);
    for (int i = 0; i < v->count && !u->optimizer->whole; i++) {
        bool frozen;

        if (!v->list[i].trainable)
            continue;
        frozen = !pm_update_changes(u, v, i);
        if (frozen && !before)
            append_range(c, u, p, t, from, v->offset[i]);
        if (!frozen && before)
            from = v->offset[i];
        before = frozen;
    }
    if (!before)
        append_range(c, u, p, t, from, v->trainable_bytes);
}

static struct pm_update_parts start_parts(struct pm_calls *c, const struct pm_update *u,
                                          const struct tables *t)
{
    struct pm_update_parts p = { .chunk_count = t->chunk_count, .var_count = t->var_count };

    p.w = pm_calls_values_block(c), p.g = pm_calls_gradient_block(c);
    p.chunks = pm_calls_constant(c, "chunks", t->chunks, PM_SHAPE2(t->chunk_count, 4), PM_U32);
    p.vars = pm_calls_constant(c, "vars", t->vars, PM_SHAPE2(t->var_count, 4), PM_U32);
    if (u->optimizer->decoupled)
        p.decay = pm_calls_constant(c, "decay", t->decay, PM_SHAPE2(t->var_count, 2), PM_F32);
    return p;
}

static void append_gradients(struct pm_calls *c, const struct pm_update *u,
                             struct pm_update_parts *p, bool scale)
{
    struct gradient_prepare_params prepare = { .chunks = p->chunk_count };
    struct gradient_norms_params norms = { .vars = p->var_count,
                                           .clip_variable = u->clip_variable_norm,
                                           .clip_global = u->clip_norm };
    struct pm_tensor partials, norm;

    pm_calls_label(c, "gradients");
    partials = pm_temp(c, PM_SHAPE2(p->chunk_count, 2), PM_F32);
    norm = pm_calls_output(c, "norms", PM_SHAPE1(p->var_count), PM_F32);
    p->scale = scale ? pm_calls_output(c, "scale", PM_SHAPE1(p->var_count), PM_F32)
                     : pm_temp(c, PM_SHAPE1(p->var_count), PM_F32);
    p->result = pm_calls_output(c, "result", PM_SHAPE1(PM_RESULT_COUNT), PM_F32);
    p->flag = pm_calls_output(c, "flag", PM_SHAPE1(1), PM_U32);
    pm_call(c, &prepare_row, (size_t)p->chunk_count, &prepare,
            PM_BUFS(p->g, p->w, p->chunks, p->vars, partials));
    pm_call(c, &norms_row, 1, &norms,
            PM_BUFS(partials, p->vars, PM_NO_TENSOR, norm, p->scale, p->result, p->flag));
}

static void free_tables(struct tables *t)
{
    pm_free(t->chunks);
    pm_free(t->vars);
    pm_free(t->owner);
    pm_free(t->decay);
}

void pm_update_append(struct pm_calls *c, void *update)
{
    const struct pm_update *u = update;
    const struct pm_variables *v = pm_calls_variables(c);
    struct tables t = make_tables(c, u);
    struct pm_update_parts p = start_parts(c, u, &t);

    append_gradients(c, u, &p, false);
    p.step = pm_step_tensor(c);
    append_optimizer(c, u, &p, &t);
    if (u->layers)
        pm_calls_layer_updates(c, p.flag);
    if (u->averages)
        pm_averages_append(c, 0, u->layers || u->all ? v->bytes : v->trainable_bytes, p.flag);
    free_tables(&t);
}

void pm_update_prepare_append(struct pm_calls *c, void *update)
{
    const struct pm_update *u = update;
    struct tables t = make_tables(c, u);
    struct pm_update_parts p = start_parts(c, u, &t);

    append_gradients(c, u, &p, true);
    free_tables(&t);
}

/* Appends the averages of the variables that belong to this update, also of frozen ones. */
static void append_averages(struct pm_calls *c, const struct pm_update *u, struct pm_tensor flag)
{
    const struct pm_variables *v = pm_calls_variables(c);

    for (int i = u->first; i < v->count; i += u->every) {
        const size_t floats = pm_shape_count(v->list[i].shape);
        const size_t blocks = (floats + OWNER_FLOATS - 1) / OWNER_FLOATS;

        pm_averages_append(c, v->offset[i],
                           v->offset[i] + blocks * OWNER_FLOATS * sizeof(float), flag);
    }
}

void pm_update_apply_append(struct pm_calls *c, void *update)
{
    const struct pm_update *u = update;
    struct tables t = make_tables(c, u);
    struct pm_update_parts p = start_parts(c, u, &t);
    float result[PM_RESULT_COUNT] = { [PM_RESULT_CLIP] = 1 };
    float *ones = pm_malloc(((size_t)t.var_count + 1) * sizeof *ones);
    const uint32_t always = 1;

    assert(u->every > 0);
    for (int k = 0; k < t.var_count; k++)
        ones[k] = 1;
    p.scale = pm_calls_constant(c, "scale", ones, PM_SHAPE1(t.var_count), PM_F32);
    p.result = pm_calls_constant(c, "result", result, PM_SHAPE1(PM_RESULT_COUNT), PM_F32);
    p.flag = pm_calls_constant(c, "flag", &always, PM_SHAPE1(1), PM_U32);
    p.step = pm_step_tensor(c);
    append_optimizer(c, u, &p, &t);
    if (u->averages)
        append_averages(c, u, p.flag);
    pm_free(ones);
    free_tables(&t);
}

bool pm_update_frozen(const char *variable, void *update)
{
    const struct pm_update *u = update;

    return u->multiplier && u->multiplier(variable, u->ctx) == 0;
}

void pm_update_layers_only(struct pm_calls *c, void *update)
{
    const struct pm_update *u = update;
    const struct pm_variables *v = pm_calls_variables(c);
    uint32_t one = 1;
    struct pm_tensor always = pm_calls_constant(c, "always", &one, PM_SHAPE1(1), PM_U32);

    pm_calls_layer_updates(c, always);
    if (u->averages && !u->all)
        pm_averages_append(c, v->trainable_bytes, v->bytes, always);
}

/* ---- rows ------------------------------------------------------------------------------- */

#define PM_OPTIMIZER(name) extern const struct pm_optimizer pm_optimizer_##name;
#include "optim/optimizers.def"
#undef PM_OPTIMIZER
static const struct pm_optimizer *const rows[] = {
#define PM_OPTIMIZER(name) &pm_optimizer_##name,
#include "optim/optimizers.def"
#undef PM_OPTIMIZER
};

const struct pm_optimizer *const *pm_optimizers(size_t *count)
{
    *count = PM_COUNT(rows);
    return rows;
}

const struct pm_optimizer *pm_optimizer_find(const char *name)
{
    for (size_t i = 0; i < PM_COUNT(rows); i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    return NULL;
}

const char *const *pm_optimizer_slots(const struct pm_optimizer *o, const void *cfg)
{
    return o->slots_of ? o->slots_of(cfg) : o->slots;
}

int pm_optimizer_init(const struct pm_optimizer *o, const void *cfg, struct pm_variables *v,
                      uint64_t seed)
{
    float init[PM_MAX_SLOTS] = { 0 };
    int err = PM_OK;

    if (o->slot_init)
        o->slot_init(cfg, init);
    PM_TRY(pm_variables_init(v, seed, init));
    PM_TRY(pm_variables_start_averages(v));
out:
    return err;
}
