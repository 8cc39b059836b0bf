/* Builds cases and runs them; check_run.h describes the functions. */
#include "check_run.h"

#include <assert.h>
#include <pumice/rng.h>
#include <stdlib.h>

enum { GUARD = 256, NAN_WORD = 0x7fc0dead, GUARD_WORD = 0x5a17beef };

/* ---- contents of inputs and variables -------------------------------------------------- */

struct range {
    double low, high;
    bool repeats;
};

/* Fills with distinct values from low to high in random order, without the middle, where kinks
 * usually lie. When values may repeat, they are small integers. */
static void fill(struct image *m, enum pm_type type, size_t count, struct range g, uint64_t seed)
{
    struct pm_rng rng = pm_rng_make(seed, pm_hash("check"), 0, 0);

    m->given = true;
    for (size_t i = 0; i < count; i++) {
        const double at = ((double)pm_permute(seed, 0, count, i) + 0.37) / (double)count;
        const int64_t whole = pm_rng_int(&rng, (int64_t)g.low, (int64_t)g.high);

        if (type == PM_F32)
            ((float *)m->data)[i] = (float)(g.repeats ? whole : g.low + (g.high - g.low) * at);
        else if (type == PM_U8)
            ((uint8_t *)m->data)[i] = (uint8_t)whole;
        else
            ((int32_t *)m->data)[i] = (int32_t)whole;
    }
}

/* Parses "low..high" up to a blank. Returns the place of the blank. */
static const char *parse_range(const char *s, struct range *g)
{
    const int low = sscanf(s, "%lf", &g->low);
    const int high = sscanf(strstr(s, "..") + 2, "%lf", &g->high);

    assert(low == 1 && high == 1);
    (void)low, (void)high;
    return s + strcspn(s, " ");
}

/* Parses one word of check_case.inputs. */
static const char *parse_input(const char *s, struct pm_shape *shape, enum pm_type *type,
                               struct range *g)
{
    *g = (struct range){ -2, 2, false };
    *type = PM_F32;
    *shape = (struct pm_shape){ 0 };
    if (*s == '~')
        s++, *g = (struct range){ -3, 3, true };
    if (!strncmp(s, "i32:", 4))
        s += 4, *type = PM_I32;
    else if (!strncmp(s, "u32:", 4))
        s += 4, *type = PM_U32;
    else if (!strncmp(s, "u8:", 3))
        s += 3, *type = PM_U8;
    if (*type != PM_F32)
        *g = (struct range){ 0, 1, true };
    for (;;) {
        const size_t digits = strspn(s, "0123456789");

        assert(shape->rank < PM_MAX_RANK && digits > 0);
        shape->dim[shape->rank++] = atoi(s);
        s += digits;
        if (*s != 'x')
            break;
        s++;
    }
    if (*s == '@')
        s = parse_range(s + 1, g);
    return s + strspn(s, " ");
}

/* Finds "gamma@0.5..1.5" among the words of text; -1..1 when the variable is missing. */
static struct range variable_range(const char *text, const char *suffix)
{
    struct range g = { -1, 1, false };

    for (const char *s = text; s && *s; s += strcspn(s, " "), s += strspn(s, " ")) {
        const size_t length = strlen(suffix);

        if (!strncmp(s, suffix, length) && s[length] == '@')
            parse_range(s + length + 1, &g);
    }
    return g;
}

/* ---- building -------------------------------------------------------------------------- */

static struct image *image_of(struct subject *s, struct pm_tensor t)
{
    struct image *m = &s->values[pm_calls_root(&s->calls, t.value)];
    return m;
}

static void make_calls(struct subject *s, const struct build_options *o)
{
    struct pm_node *n = s->node;
    struct pm_calls *c = &s->calls;
    static const struct pm_tensor none = PM_NO_TENSOR;

    c->label = n->name;
    n->train = s->c->train;
    for (int i = 0; i < PM_MAX_SAVED; i++)
        n->saved[i] = none;
    for (int i = 0; i < n->inputs; i++)
        s->x[i] = n->xs[i] = pm_temp(c, n->in[i]->out_shape, n->in[i]->out_type);
    for (int k = 0; k < n->var_count; k++)
        s->w[k] = n->w[k] = pm_temp(c, n->net->vars[n->vars[k]]->shape, PM_F32);
    n->x = n->xs[0];
    for (int k = 0; k < n->outputs; k++) {
        n->ys[k] = n->layer->view ? pm_view(n->x, n->out_shape)
                                  : pm_temp(c, n->out[k]->out_shape, n->out[k]->out_type);
        n->dys[k] = none;
    }
    n->dx = none;
    c->phase = PM_PHASE_FORWARD;
    if (n->layer->forward)
        n->layer->forward(n, c);
    memcpy(s->ys, n->ys, sizeof s->ys);
    s->outputs = s->entry->test->loss ? 0 : n->outputs;
    for (int v = 0; v < c->value_count && s->entry->test->loss; v++)
        if (c->values[v].loss)
            s->ys[s->outputs++] = (struct pm_tensor){ c->values[v].shape, c->values[v].type, v };
    s->forward_calls = c->call_count;

    if (o->backward && (n->layer->backward || n->layer->view)) {
        c->phase = PM_PHASE_BACKWARD;
        for (int k = 0; k < n->outputs && !n->layer->loss; k++)
            if (!(s->c->unread >> k & 1))
                s->dys[k] = n->dys[k] = pm_temp(c, n->out[k]->out_shape, PM_F32);
        for (int i = 0; i < n->inputs; i++) {
            const bool skip = o->no_dx || n->in[i]->out_type != PM_F32 ||
                              (s->c->no_gradient >> i & 1);
            n->dxs[i] = skip ? none : n->layer->view ? pm_view(n->dy, n->in[i]->out_shape)
                                    : pm_temp(c, n->in[i]->out_shape, PM_F32);
        }
        n->dx = n->dxs[0];
        for (int k = 0; k < n->var_count; k++)
            n->dw[k] = o->no_dw || !n->net->vars[n->vars[k]]->trainable
                           ? none : pm_temp(c, s->w[k].shape, PM_F32);
        if (n->layer->backward)
            n->layer->backward(n, c);
        for (int i = 0; i < n->inputs; i++)
            s->dx[i] = n->dxs[i];
        for (int k = 0; k < n->var_count; k++)
            s->dw[k] = n->dw[k];
    }
    s->update_call = c->call_count;
    if (o->update && n->layer->update && s->c->train) {
        c->phase = PM_PHASE_UPDATE;
        n->layer->update(n, c, pm_calls_constant(c, "flag", &o->flag, (struct pm_shape){ 0 },
                                                 PM_U32));
    }
}

static void fill_input(struct subject *s, int i, struct range g)
{
    struct image *m = image_of(s, s->x[i]);

    fill(m, s->x[i].type, pm_count(s->x[i]), g, 100 + (uint64_t)i);
    if (s->entry->test->arrange && s->x[i].type == PM_F32)
        s->entry->test->arrange(s->c, s->node->inputs, i, s->x[i].shape, (float *)m->data);
}

static void make_values(struct subject *s, const struct range *inputs)
{
    struct pm_calls *c = &s->calls;
    struct pm_node *n = s->node;
    const struct pm_step step = {
        .step = CHECK_STEP, .seed_low = (uint32_t)CHECK_SEED,
        .seed_high = (uint32_t)(CHECK_SEED >> 32), .lr = CHECK_LR, .loss_scale = 1,
        .beta1_power = 0.5f, .beta2_power = 0.75f, .ema_decay = 0.875f,
    };

    s->values = calloc((size_t)c->value_count + 1, sizeof *s->values);
    for (int v = 0; v < c->value_count; v++) {
        struct image *m = &s->values[v];

        m->bytes = (c->values[v].bytes + 3) / 4 * 4;
        m->data = malloc(m->bytes + 4);
        for (size_t i = 0; i < m->bytes / 4; i++)
            ((uint32_t *)m->data)[i] = NAN_WORD;
        if (c->values[v].constant)
            memcpy(m->data, c->values[v].constant, c->values[v].bytes), m->given = true;
        if (v == c->step)
            memcpy(m->data, &step, sizeof step), m->given = true;
    }
    for (int i = 0; i < n->inputs; i++)
        fill_input(s, i, inputs[i]);
    for (int k = 0; k < n->var_count; k++) {
        const char *suffix = strrchr(n->net->vars[n->vars[k]]->name, '/') + 1;

        fill(image_of(s, s->w[k]), PM_F32, pm_count(s->w[k]),
             variable_range(s->c->variables, suffix), 200 + k);
    }
    for (int k = 0; k < n->outputs; k++)
        if (pm_has(s->dys[k]))
            fill(image_of(s, s->dys[k]), PM_F32, pm_count(s->dys[k]),
                 (struct range){ -1, 1, false }, 300 + k);
    for (int k = 0; k < n->var_count; k++) /* accumulating calls add to these values */
        if (pm_has(s->dw[k]))
            fill(image_of(s, s->dw[k]), PM_F32, pm_count(s->dw[k]),
                 (struct range){ -1, 1, false }, 400 + k);
}

int subject_build(const struct entry *e, const struct check_case *c, const struct build_options *o,
                  struct subject **out)
{
    struct subject *s = calloc(1, sizeof *s);
    struct pm_node *in[PM_MAX_INPUTS];
    struct range ranges[PM_MAX_INPUTS];
    int inputs = 0, vars;

    *out = s;
    s->entry = e;
    s->c = c;
    s->net = pm_net_create();
    for (int k = 0; k < PM_MAX_NODE_OUTPUTS; k++)
        s->ys[k] = s->dys[k] = PM_NO_TENSOR;
    for (int i = 0; i < PM_MAX_INPUTS; i++)
        s->x[i] = s->dx[i] = PM_NO_TENSOR;
    for (int k = 0; k < PM_MAX_VARS; k++)
        s->w[k] = s->dw[k] = PM_NO_TENSOR;
    for (const char *text = c->inputs; *text; inputs++) {
        struct pm_shape shape;
        enum pm_type type;
        char name[16];

        text = parse_input(text, &shape, &type, &ranges[inputs]);
        snprintf(name, sizeof name, "in%d", inputs);
        in[inputs] = pm_net_input(s->net, name, shape, type);
    }
    s->node = pm_net_add_many(s->net, CHECK_NAME, in, inputs, "%s", c->options);
    if (s->net->error)
        return s->net->error;
    s->options = (struct pm_plan_options){
        .train = c->train, .first_example = CHECK_FIRST_EXAMPLE, .loss_share = CHECK_SHARE,
        .micro_batches = 1,
    };
    vars = s->net->var_count + 1;
    s->calls = (struct pm_calls){ .arena = s->net->arena, .net = s->net, .options = &s->options,
                                  .step = -1 };
    s->calls.variable_value = pm_arena_alloc(s->net->arena, (size_t)vars * sizeof(int));
    s->calls.gradient_value = pm_arena_alloc(s->net->arena, (size_t)vars * sizeof(int));
    make_calls(s, o);
    if (s->calls.error)
        return s->calls.error;
    if (!o->calls_only)
        make_values(s, ranges);
    if (o->doctor)
        o->doctor(s);
    return PM_OK;
}

void subject_free(struct subject **out)
{
    struct subject *s = *out;

    *out = NULL;
    if (!s)
        return;
    for (int v = 0; s->values && v < s->calls.value_count; v++)
        free(s->values[v].data);
    free(s->values);
    pm_free(s->calls.values);
    pm_free(s->calls.calls);
    pm_net_destroy(&s->net);
    free(s);
}

/* ---- running --------------------------------------------------------------------------- */

/* The device side of a run. The buffer of value v holds GUARD bytes, the contents (rounded up to
 * 256 + 4), and GUARD bytes. */
struct run {
    struct subject *s;
    struct pm_device *d;
    struct pm_buffer **value;   /* one per value; NULL when these calls do not use it */
    struct pm_buffer **scratch; /* [call * PM_MAX_BUFS + buffer] */
    struct pm_bound_call *calls;
    char *params;               /* copies whose accumulate flag may differ */
    int count, *levels;
    const struct run_options *o;
};

static size_t padded(size_t bytes)
{
    return GUARD + (bytes + 255) / 256 * 256 + GUARD;
}

static int put_value(struct run *r, int v)
{
    int err = PM_OK;
    const struct image *m = &r->s->values[v];
    const size_t words = padded(m->bytes) / 4;
    uint32_t *host = malloc(words * 4);

    for (size_t i = 0; i < words; i++)
        host[i] = GUARD_WORD;
    memcpy((char *)host + GUARD, m->data, m->bytes);
    PM_TRY(pm_buffer_create(r->d, words * 4, &r->value[v]));
    PM_TRY(pm_buffer_write(r->d, r->value[v], 0, host, words * 4));
out:
    free(host);
    return err;
}

static const char *place_text(const struct run *r, int v)
{
    for (int i = 0; i < r->count; i++) {
        const struct pm_planned_call *c = &r->s->calls.calls[r->o->first + i];
        static char text[96];
        struct pm_buf_spec spec[PM_MAX_BUFS];

        pm_kernel_bufs(c->kernel, spec);
        for (int b = 0; b < c->bufs; b++)
            if (c->buf[b] >= 0 && pm_calls_root(&r->s->calls, c->buf[b]) == v) {
                snprintf(text, sizeof text, "%s buffer %s", c->kernel->name, spec[b].name);
                return text;
            }
    }
    return "?";
}

/* True when a call of the run may write value v. */
static bool written(const struct run *r, int v)
{
    for (int i = 0; i < r->count; i++) {
        const struct pm_planned_call *c = &r->s->calls.calls[r->o->first + i];
        struct pm_buf_spec spec[PM_MAX_BUFS];

        pm_kernel_bufs(c->kernel, spec);
        for (int b = 0; b < c->bufs; b++)
            if (c->buf[b] >= 0 && pm_calls_root(&r->s->calls, c->buf[b]) == v &&
                spec[b].access != 'r')
                return true;
    }
    return false;
}

/* Reads value v back after the checks. With .alias, an input whose memory the output took is not
 * read. */
static int get_value(struct run *r, int v, bool replaced)
{
    int err = PM_OK;
    struct image *m = &r->s->values[v];
    const size_t words = padded(m->bytes) / 4;
    uint32_t *host = malloc(words * 4);

    PM_TRY(pm_buffer_read(r->d, r->value[v], 0, host, words * 4));
    for (size_t i = 0; i < words; i++) {
        if (i == GUARD / 4)
            i += m->bytes / 4;
        if (host[i] != GUARD_WORD)
            PM_TRY(pm_fail(PM_EFAIL, "%s: written %ld bytes outside its %zu", place_text(r, v),
                           i * 4 < GUARD ? (long)(i * 4) - GUARD
                                         : (long)(i * 4 - GUARD - m->bytes) + 4, m->bytes));
    }
    if (!written(r, v) && !replaced && memcmp((char *)host + GUARD, m->data, m->bytes))
        PM_TRY(pm_fail(PM_EFAIL, "%s is read only, but has changed", place_text(r, v)));
    if (!replaced)
        memcpy(m->data, (char *)host + GUARD, m->bytes);
out:
    free(host);
    return err;
}

/* Index of the input whose memory output b of the row may take ("y=x"), or -1. */
static int alias_of(const struct pm_kernel *k, const struct pm_buf_spec *spec, int bufs, int b)
{
    const size_t length = strlen(spec[b].name);

    for (const char *s = k->inplace; s && *s; s += strcspn(s, ","), s += *s == ',')
        if (!strncmp(s, spec[b].name, length) && s[length] == '=')
            for (int i = 0; i < bufs; i++)
                if (strlen(spec[i].name) == strcspn(s + length + 1, ",") &&
                    !strncmp(s + length + 1, spec[i].name, strlen(spec[i].name)))
                    return i;
    return -1;
}

bool adds_to_gradient(const struct subject *s, int call)
{
    const struct pm_planned_call *c = &s->calls.calls[call];
    struct pm_buf_spec spec[PM_MAX_BUFS];
    const int bufs = c->kernel->accumulate ? pm_kernel_bufs(c->kernel, spec) : 0;

    for (int b = 0; b < bufs; b++)
        for (int k = 0; k < s->node->var_count && spec[b].access == 'u'; k++)
            if (c->buf[b] >= 0 && c->buf[b] == s->dw[k].value)
                return true;
    return false;
}

/* True when the option accumulate sets the flag of call i: always for a single call; among
 * several calls only for those that add to a gradient from before the step. */
static bool sets_accumulate(const struct run *r, int i)
{
    const int call = r->o->first + i;

    return r->s->calls.calls[call].kernel->accumulate && r->o->accumulate >= 0 &&
           (r->count == 1 || (r->o->accumulate == 1 && adds_to_gradient(r->s, call)));
}

static int bind(struct run *r, int i)
{
    int err = PM_OK;
    const struct pm_planned_call *c = &r->s->calls.calls[r->o->first + i];
    struct pm_bound_call *b = &r->calls[i];
    struct pm_buf_spec spec[PM_MAX_BUFS];
    size_t scratch[PM_MAX_BUFS];
    char *params = r->params + (size_t)i * 512;

    assert(c->kernel->params_size <= 512);
    memcpy(params, c->params, c->kernel->params_size);
    const int bufs = pm_kernel_bufs(c->kernel, spec);

    if (sets_accumulate(r, i))
        memcpy(params + c->kernel->accumulate - 1, &r->o->accumulate, sizeof(int));
    *b = (struct pm_bound_call){ .kernel = c->kernel, .label = c->label, .count = c->count,
                                 .params = params };
    PM_TRY(pm_call_scratch(r->d, c->kernel, params, c->count, r->o->level, scratch));
    for (int k = 0; k < bufs; k++) {
        if (spec[k].access == 't') {
            if (scratch[k] == 0)
                continue;
            struct pm_buffer **t = &r->scratch[i * PM_MAX_BUFS + k];

            PM_TRY(pm_buffer_create(r->d, (scratch[k] + 255) / 256 * 256, t));
            PM_TRY(pm_buffer_fill(r->d, *t, 0, pm_buffer_size(*t), NAN_WORD));
            b->buf[k] = (struct pm_place){ *t, 0, scratch[k] };
        } else if (c->buf[k] >= 0) {
            int v = pm_calls_root(&r->s->calls, c->buf[k]);
            const int from = r->o->alias ? alias_of(c->kernel, spec, c->bufs, k) : -1;

            if (from >= 0)
                v = pm_calls_root(&r->s->calls, c->buf[from]);
            if (!r->value[v])
                PM_TRY(put_value(r, v));
            b->buf[k] = (struct pm_place){ r->value[v], GUARD, r->s->values[v].bytes };
        }
    }
out:
    return err;
}

static int run_make(struct run *r, struct subject *s, struct pm_device *d,
                    const struct run_options *o)
{
    int err = PM_OK;

    *r = (struct run){ .s = s, .d = d, .count = o->last - o->first, .o = o };
    r->value = calloc((size_t)s->calls.value_count + 1, sizeof *r->value);
    r->scratch = calloc((size_t)r->count * PM_MAX_BUFS + 1, sizeof *r->scratch);
    r->calls = calloc((size_t)r->count + 1, sizeof *r->calls);
    r->params = calloc((size_t)r->count + 1, 512);
    r->levels = calloc((size_t)r->count + 1, sizeof *r->levels);
    for (int i = 0; i < r->count; i++) {
        r->levels[i] = o->level;
        PM_TRY(bind(r, i));
    }
out:
    return err;
}

static void run_free(struct run *r)
{
    for (int v = 0; r->value && v < r->s->calls.value_count; v++)
        pm_buffer_destroy(r->d, &r->value[v]);
    for (int i = 0; r->scratch && i < r->count * PM_MAX_BUFS; i++)
        pm_buffer_destroy(r->d, &r->scratch[i]);
    free(r->value);
    free(r->scratch);
    free(r->calls);
    free(r->params);
    free(r->levels);
}

/* With .alias the output lies in the input's buffer; the host images are exchanged, too. */
static void exchange_aliases(struct run *r, bool *replaced)
{
    for (int i = 0; r->o->alias && i < r->count; i++) {
        const struct pm_planned_call *c = &r->s->calls.calls[r->o->first + i];
        struct pm_buf_spec spec[PM_MAX_BUFS];

        pm_kernel_bufs(c->kernel, spec);
        for (int k = 0; k < c->bufs; k++) {
            const int from = c->buf[k] < 0 ? -1 : alias_of(c->kernel, spec, c->bufs, k);

            if (from < 0)
                continue;
            const int x = pm_calls_root(&r->s->calls, c->buf[from]);
            const int y = pm_calls_root(&r->s->calls, c->buf[k]);
            r->value[y] = r->value[x];
            r->value[x] = NULL;
            replaced[x] = true;
        }
    }
}

int subject_run(struct subject *s, struct pm_device *d, const struct run_options *o)
{
    int err = PM_OK;
    struct run r = { 0 };
    struct pm_program *p = NULL;
    bool *replaced = calloc((size_t)s->calls.value_count + 1, sizeof *replaced);

    if (o->first == o->last)
        goto out;
    PM_TRY(run_make(&r, s, d, o));
    const struct pm_program_desc desc = { .name = "check", .calls = r.calls,
                                          .calls_count = (size_t)r.count, .slots = 1,
                                          .levels = r.levels };
    PM_TRY(pm_program_create(d, &desc, &p));
    PM_TRY(pm_program_submit(p, 0));
    PM_TRY(pm_program_wait(p, 0));
    if (o->variant)
        *o->variant = pm_program_variant(p, 0);
    exchange_aliases(&r, replaced);
    for (int v = 0; v < s->calls.value_count; v++)
        if (r.value[v])
            PM_TRY(get_value(&r, v, replaced[v]));
out:
    pm_program_destroy(&p);
    if (r.s)
        run_free(&r);
    free(replaced);
    return err;
}

int subject_time(struct subject *s, struct pm_device *d, int call, int level, double *seconds,
                 const char **variant)
{
    int err = PM_OK;
    struct run r = { 0 };
    struct pm_program *p = NULL;
    const struct run_options o = { .first = call, .last = call + 1, .level = level,
                                   .accumulate = -1 };

    PM_TRY(run_make(&r, s, d, &o));
    const struct pm_program_desc desc = { .name = "bench", .calls = r.calls, .calls_count = 1,
                                          .slots = 1, .levels = r.levels };
    PM_TRY(pm_program_create(d, &desc, &p));
    *variant = pm_program_variant(p, 0);
    *seconds = INFINITY;
    for (double start = pm_seconds(), runs = 0; runs < 3 || pm_seconds() - start < 0.3; runs++) {
        const double before = pm_seconds();

        PM_TRY(pm_program_submit(p, 0));
        PM_TRY(pm_program_wait(p, 0));
        *seconds = fmin(*seconds, pm_seconds() - before);
    }
out:
    pm_program_destroy(&p);
    if (r.s)
        run_free(&r);
    return err;
}

/* ---- the reference's view -------------------------------------------------------------- */

static struct ref_array doubles(const struct subject *s, struct pm_tensor t)
{
    struct ref_array a = { .shape = t.shape, .count = pm_count(t) };
    const char *data = s->values[pm_calls_root(&s->calls, t.value)].data;

    a.v = malloc(a.count * sizeof *a.v);
    for (size_t i = 0; i < a.count; i++)
        a.v[i] = t.type == PM_F32 ? ((const float *)data)[i]
                 : t.type == PM_U8 ? ((const uint8_t *)data)[i]
                 : t.type == PM_I32 ? (double)((const int32_t *)data)[i]
                                    : (double)((const uint32_t *)data)[i];
    return a;
}

void ref_make(const struct subject *s, struct ref *r)
{
    *r = (struct ref){ .options = s->c->options, .train = s->c->train,
                       .inputs = s->node->inputs, .vars = s->node->var_count };
    for (int i = 0; i < r->inputs; i++)
        r->in[i] = doubles(s, s->x[i]);
    for (int k = 0; k < r->vars; k++)
        r->var[k] = doubles(s, s->w[k]);
}

static void array_free(struct ref_array *a)
{
    free(a->v);
    free(a->mag);
}

void ref_free(struct ref *r)
{
    for (int i = 0; i < r->inputs; i++)
        array_free(&r->in[i]);
    for (int k = 0; k < r->vars; k++)
        array_free(&r->var[k]), array_free(&r->after[k]);
    array_free(&r->y);
}
