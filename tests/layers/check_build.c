/* Builds cases into lists of calls and fills their values; check_run.h describes the functions. */
#include <assert.h>
#include <pumice/rng.h>
#include <stdlib.h>

#include "check_run.h"
#include "net/share_moments.h"
#include "net/transposed.h"

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
    return &s->values[t.value];
}

static struct pm_tensor variable_of(struct pm_calls *c, int index)
{
    const struct pm_tensor t = pm_temp(c, c->net->vars[index]->shape, PM_F32);

    c->values[t.value].kind = PM_VALUE_VARIABLE;
    c->values[t.value].variable = index;
    return t;
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
        s->w[k] = n->w[k] = variable_of(c, n->vars[k]);
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
        pm_calls_node_update(c, n, pm_calls_constant(c, "flag", &o->flag, (struct pm_shape){ 0 },
                                                     PM_U32));
    }
    pm_calls_transpose(c);
    s->forward_calls += c->lead;
    s->update_call += c->lead;
}

/* Lets every call that can compute moments do so, and gives invented ones to calls that can take
 * them instead of their image. */
static void use_moments(struct subject *s)
{
    struct pm_calls *c = &s->calls;

    for (int i = 0; i < c->call_count; i++) {
        const struct pm_kernel *k = c->calls[i].kernel;

        if (!k->moments || pm_has(pm_give_moments(c, i)))
            continue;
        const struct pm_rows image = k->moments_of(c->calls[i].params);
        const struct pm_tensor t =
            pm_temp(c, PM_SHAPE3((int)pm_moment_chunks(image), 2, image.channels), PM_F32);

        if (pm_take_moments(c, i, t))
            s->moments[s->moment_count++] = t;
    }
}

static void fill_input(struct subject *s, int i, struct range g)
{
    struct image *m = image_of(s, s->x[i]);

    fill(m, s->x[i].type, pm_count(s->x[i]), g, 100 + (uint64_t)i);
    if (s->entry->test->arrange && s->x[i].type == PM_F32)
        s->entry->test->arrange(s->c, s->node->inputs, i, s->x[i].shape, (float *)m->data);
}

/* Gives a part of a block its place. The bytes between the parts are zero. */
static void place_in_block(struct subject *s, int v)
{
    const struct pm_value *x = &s->calls.values[v];
    const size_t end = (x->bytes + 255) / 256 * 256;

    s->values[v].data = s->values[x->within].data + x->at;
    memset(s->values[v].data + x->bytes, 0, end - x->bytes);
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
        if (c->values[v].within >= 0)
            continue;
        m->data = malloc(m->bytes + 4);
        for (size_t i = 0; i < m->bytes / 4; i++)
            ((uint32_t *)m->data)[i] = NAN_WORD;
        if (c->values[v].constant)
            memcpy(m->data, c->values[v].constant, c->values[v].bytes), m->given = true;
        if (v == c->step)
            memcpy(m->data, &step, sizeof step), m->given = true;
    }
    for (int v = 0; v < c->value_count; v++)
        if (c->values[v].within >= 0)
            place_in_block(s, v);
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
    for (int k = 0; k < s->moment_count; k++)
        fill(image_of(s, s->moments[k]), PM_F32, pm_count(s->moments[k]),
             (struct range){ 0.5, 2, false }, 500 + k);
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
                                  .step = -1, .transposes = s->c->transposes };
    s->calls.variable_value = pm_arena_alloc(s->net->arena, (size_t)vars * sizeof(int));
    s->calls.gradient_value = pm_arena_alloc(s->net->arena, (size_t)vars * sizeof(int));
    make_calls(s, o);
    if (s->calls.error)
        return s->calls.error;
    if (o->moments)
        use_moments(s);
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
        if (s->calls.values[v].within < 0)
            free(s->values[v].data);
    free(s->values);
    pm_free(s->calls.values);
    pm_free(s->calls.calls);
    pm_net_destroy(&s->net);
    free(s);
}
