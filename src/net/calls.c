/* calls: turns the nodes of a net into the array of kernel calls. Forward calls follow the nodes'
 * order, backward calls the reverse order. Weight gradients accumulate: the first call of a step
 * writes the gradient, later calls add to it. A value with several readers gets the sum of their
 * gradients in the readers' reverse order: a layer whose calls accumulate adds its own gradient to
 * the sum so far, for other layers a call is inserted that adds two values. */
#include "net/calls.h"

#include "net/add2.h"
#include "net/layout.h"
#include "net/transposed.h"

#include <assert.h>
#include <string.h>

/* ---- values ----------------------------------------------------------------------------- */

static int add_value(struct pm_calls *c, enum pm_value_kind kind, const char *name,
                     struct pm_shape shape, enum pm_type type)
{
    struct pm_value *v;

    PM_GROW(c->values, c->value_count, c->value_capacity);
    v = &c->values[c->value_count];
    memset(v, 0, sizeof *v);
    v->kind = kind;
    v->name = name ? name : c->label;
    v->shape = shape;
    v->type = type;
    v->bytes = pm_shape_count(shape) * pm_type_size(type);
    v->first = v->last = -1;
    v->alias = v->within = -1;
    v->variable = v->slot = -1;
    v->micro_batch = c->micro_batch;
    return c->value_count++;
}

static struct pm_tensor tensor_of(const struct pm_calls *c, int value)
{
    const struct pm_value *v = &c->values[value];

    return (struct pm_tensor){ .shape = v->shape, .type = v->type, .value = value };
}

int pm_calls_root(const struct pm_calls *c, int v)
{
    for (;;) {
        const struct pm_value *x = &c->values[v];

        if (x->alias < 0 && x->within < 0)
            return v;
        v = x->alias >= 0 ? x->alias : x->within;
    }
}

size_t pm_calls_at(const struct pm_calls *c, int v)
{
    while (c->values[v].alias >= 0)
        v = c->values[v].alias;
    return c->values[v].within >= 0 ? c->values[v].at : 0;
}

struct pm_tensor pm_temp(struct pm_calls *c, struct pm_shape shape, enum pm_type type)
{
    return tensor_of(c, add_value(c, PM_VALUE_ACTIVATION, NULL, shape, type));
}

struct pm_tensor pm_save(struct pm_calls *c, struct pm_node *n, int i, struct pm_shape shape,
                         enum pm_type type)
{
    assert(i >= 0 && i < PM_MAX_SAVED);
    return n->saved[i] = pm_temp(c, shape, type);
}

struct pm_tensor pm_view(struct pm_tensor t, struct pm_shape shape)
{
    assert(pm_shape_count(t.shape) == pm_shape_count(shape));
    t.shape = shape;
    return t;
}

struct pm_tensor pm_step_tensor(struct pm_calls *c)
{
    if (c->step < 0) {
        c->step = add_value(c, PM_VALUE_INPUT, "step",
                            PM_SHAPE1((int)(sizeof(struct pm_step) / 4)), PM_U32);
        c->values[c->step].micro_batch = 0;
    }
    return tensor_of(c, c->step);
}

int pm_first_row(const struct pm_calls *c, const struct pm_node *n)
{
    const int example = c->options->first_example + c->micro_batch * c->net->batch;

    return (n->out_rows == PM_ROWS_MIXED ? n->out_shape.dim[0] : n->out_rows) * example;
}

float pm_loss_share(const struct pm_calls *c)
{
    return c->options->loss_share / (float)c->options->micro_batches;
}

struct pm_tensor pm_loss_scalar(struct pm_calls *c, const char *name)
{
    struct pm_tensor t = pm_calls_output(c, name, (struct pm_shape){ 0 }, PM_F32);

    c->values[t.value].loss = true;
    return t;
}

static struct pm_tensor block_part(struct pm_calls *c, enum pm_value_kind kind, const char *name,
                                   size_t from, size_t to)
{
    int v = add_value(c, kind, name, PM_SHAPE1((int)((to - from) / sizeof(float))), PM_F32);

    c->values[v].offset = from;
    return tensor_of(c, v);
}

static struct pm_tensor block_tensor(struct pm_calls *c, enum pm_value_kind kind, const char *name)
{
    return block_part(c, kind, name, 0, c->variables ? c->variables->trainable_bytes : 0);
}

const struct pm_variables *pm_calls_variables(const struct pm_calls *c)
{
    return c->variables;
}

bool pm_calls_has_gradient(const struct pm_calls *c, int variable)
{
    int value = c->gradient_value[variable];

    return c->options->update_only || (value >= 0 && c->values[value].first >= 0);
}

struct pm_tensor pm_calls_values_block(struct pm_calls *c)
{
    return block_tensor(c, PM_VALUE_VARIABLE, "variables");
}

struct pm_tensor pm_calls_gradient_block(struct pm_calls *c)
{
    return block_tensor(c, PM_VALUE_GRADIENT, "gradients");
}

struct pm_tensor pm_calls_gradient_part(struct pm_calls *c, size_t from, size_t to)
{
    return block_part(c, PM_VALUE_GRADIENT, "gradients", from, to);
}

struct pm_tensor pm_calls_slot_part(struct pm_calls *c, int slot, size_t from, size_t to)
{
    struct pm_tensor t = block_part(c, PM_VALUE_SLOT, c->variables->slot_names[slot], from, to);

    c->values[t.value].slot = slot;
    return t;
}

struct pm_tensor pm_calls_values_part(struct pm_calls *c, size_t from, size_t to)
{
    return block_part(c, PM_VALUE_VARIABLE, "variables", from, to);
}

struct pm_tensor pm_calls_averages_part(struct pm_calls *c, size_t from, size_t to)
{
    return block_part(c, PM_VALUE_AVERAGE, "averages", from, to);
}

struct pm_tensor pm_calls_join(struct pm_calls *c, const char *name, const int *values, int count,
                               size_t *at)
{
    const int block = add_value(c, c->values[values[0]].kind, name, PM_SHAPE1(0), PM_F32);
    size_t bytes = 0;

    for (int i = 0; i < count; i++) {
        struct pm_value *v = &c->values[values[i]];

        if (v->within != block) {
            assert(v->alias < 0 && v->within < 0 && v->type == PM_F32 &&
                   v->kind == c->values[block].kind);
            v->within = block;
            v->at = bytes;
            bytes += (v->bytes + PM_LAYOUT_ALIGNMENT - 1) / PM_LAYOUT_ALIGNMENT *
                     PM_LAYOUT_ALIGNMENT;
        }
        at[i] = v->at;
    }
    c->values[block].bytes = bytes;
    c->values[block].shape = PM_SHAPE1((int)(bytes / sizeof(float)));
    return tensor_of(c, block);
}

struct pm_tensor pm_calls_variables_span(struct pm_calls *c, const int *values, int count,
                                         size_t *at)
{
    size_t from = SIZE_MAX, to = 0;

    if (!c->variables)
        return pm_calls_join(c, "variables", values, count, at);
    for (int i = 0; i < count; i++) {
        const struct pm_value *v = &c->values[values[i]];

        assert(v->kind == PM_VALUE_VARIABLE && v->variable >= 0);
        at[i] = c->variables->offset[v->variable];
        from = at[i] < from ? at[i] : from;
        to = at[i] + v->bytes > to ? at[i] + v->bytes : to;
    }
    for (int i = 0; i < count; i++)
        at[i] -= from;
    return pm_calls_values_part(c, from, to);
}

struct pm_tensor pm_calls_constant(struct pm_calls *c, const char *name, const void *data,
                                   struct pm_shape shape, enum pm_type type)
{
    int v = add_value(c, PM_VALUE_CONSTANT, name, shape, type);

    c->values[v].constant = pm_arena_copy(c->arena, data, c->values[v].bytes);
    return tensor_of(c, v);
}

struct pm_tensor pm_calls_output(struct pm_calls *c, const char *name, struct pm_shape shape,
                                 enum pm_type type)
{
    return tensor_of(c, add_value(c, PM_VALUE_OUTPUT, pm_arena_strdup(c->arena, name), shape,
                                  type));
}

void pm_calls_label(struct pm_calls *c, const char *label)
{
    c->label = pm_arena_strdup(c->arena, label);
}

void pm_stream(const struct pm_node *n, uint32_t out[2])
{
    uint64_t h = pm_hash(n->name);

    out[0] = (uint32_t)h;
    out[1] = (uint32_t)(h >> 32);
}

/* ---- calls ------------------------------------------------------------------------------ */

/* Finds the params member that selects whether the row adds to its gradient or overwrites it. */
static void set_accumulate(struct pm_calls *c, struct pm_planned_call *call,
                           const struct pm_buf_spec *spec)
{
    int flag = 0;

    for (int i = 0; i < call->bufs; i++)
        if (spec[i].access == 'u' && call->buf[i] >= 0 && c->values[call->buf[i]].last >= 0)
            flag = 1;
    memcpy((char *)call->params + call->kernel->accumulate - 1, &flag, sizeof flag);
}

void pm_call(struct pm_calls *c, const struct pm_kernel *k, size_t count, const void *params,
             int nbufs, const struct pm_tensor *bufs)
{
    struct pm_buf_spec spec[PM_MAX_BUFS];
    int want = pm_kernel_bufs(k, spec);
    struct pm_planned_call *call;

    assert(nbufs == want);
    (void)want;
    PM_GROW(c->calls, c->call_count, c->call_capacity);
    call = &c->calls[c->call_count];
    memset(call, 0, sizeof *call);
    call->kernel = k;
    call->label = c->label;
    call->phase = c->phase;
    call->count = count;
    call->params = pm_arena_copy(c->arena, params, k->params_size);
    call->bufs = nbufs;
    for (int i = 0; i < nbufs; i++) {
        call->buf[i] = bufs[i].value;
        assert(bufs[i].value >= 0 || spec[i].optional ||
               pm_access_own(spec[i].access));
    }
    if (k->accumulate)
        set_accumulate(c, call, spec);
    for (int i = 0; i < nbufs; i++) {
        struct pm_value *v;

        if (bufs[i].value < 0)
            continue;
        v = &c->values[bufs[i].value];
        if (v->first < 0)
            v->first = c->call_count;
        v->last = c->call_count;
    }
    c->call_count++;
}

void pm_calls_count_lifetimes(struct pm_calls *c)
{
    for (int i = 0; i < c->value_count; i++)
        c->values[i].first = c->values[i].last = -1;
    for (int i = 0; i < c->call_count; i++)
        for (int b = 0; b < c->calls[i].bufs; b++)
            if (c->calls[i].buf[b] >= 0) {
                struct pm_value *v = &c->values[c->calls[i].buf[b]];

                v->first = v->first < 0 ? i : v->first;
                v->last = i;
            }
}

/* ---- a net's variables and gradients ----------------------------------------------------- */

static struct pm_tensor variable_tensor(struct pm_calls *c, int index)
{
    const struct pm_variable *v = c->net->vars[index];

    if (c->variable_value[index] < 0) {
        c->variable_value[index] = add_value(c, PM_VALUE_VARIABLE, v->name, v->shape, PM_F32);
        c->values[c->variable_value[index]].variable = index;
    }
    return tensor_of(c, c->variable_value[index]);
}

static struct pm_tensor gradient_tensor(struct pm_calls *c, int index)
{
    const struct pm_variable *v = c->net->vars[index];

    if (c->gradient_value[index] < 0) {
        c->gradient_value[index] = add_value(c, PM_VALUE_GRADIENT, v->name, v->shape, PM_F32);
        c->values[c->gradient_value[index]].variable = index;
    }
    return tensor_of(c, c->gradient_value[index]);
}

static bool is_live(const struct pm_calls *c, int variable)
{
    const struct pm_variable *v = c->net->vars[variable];

    return v->trainable &&
           !(c->options->frozen && c->options->frozen(v->name, c->options->frozen_ctx));
}

/* ---- forward and backward ---------------------------------------------------------------- */

/* State per node while a micro-batch is built. A node's further outputs have entries of their
 * own. */
struct build {
    struct pm_tensor y;
    bool needed;         /* an output, a loss or an update reads it, perhaps through other nodes */
    bool needs_gradient; /* the node or one of its ancestors has a live variable */
    /* Sum of the gradients of y from the readers so far. No value: no reader so far, or the node's
     * backward calls exist already and have used it. */
    struct pm_tensor dy;
};

static bool is_output(const struct pm_calls *c, const char *name)
{
    for (const char *const *o = c->options->outputs; o && *o; o++)
        if (strcmp(*o, name) == 0)
            return true;
    return false;
}

static void bind_inputs(struct pm_node *n, const struct build *b)
{
    for (int i = 0; i < n->inputs; i++)
        n->xs[i] = b[n->in[i]->index].y;
    n->x = n->inputs ? n->xs[0] : PM_NO_TENSOR;
}

void pm_calls_bind_variables(struct pm_calls *c, struct pm_node *n, bool gradients)
{
    for (int i = 0; i < n->var_count; i++) {
        n->w[i] = variable_tensor(c, n->vars[i]);
        n->dw[i] = gradients && is_live(c, n->vars[i]) ? gradient_tensor(c, n->vars[i])
                                                       : PM_NO_TENSOR;
    }
}

/* Creates the values of the outputs and appends the forward calls. A view shares its input's
 * value. */
static void run_forward(struct pm_calls *c, struct pm_node *n)
{
    if (!n->layer->forward && !n->layer->view) { /* input */
        n->y = tensor_of(c, add_value(c, PM_VALUE_INPUT, n->name, n->out_shape, n->out_type));
    } else if (n->layer->view) {
        n->y = pm_view(n->x, n->out_shape);
    } else {
        for (int k = 0; k < n->outputs; k++)
            n->ys[k] = tensor_of(c, add_value(c, PM_VALUE_ACTIVATION, n->out[k]->name,
                                              n->out[k]->out_shape, n->out[k]->out_type));
        n->layer->forward(n, c);
    }
}

static void forward_node(struct pm_calls *c, struct pm_node *n, struct build *b)
{
    struct build *me = &b[n->index];

    if (n->output) /* made with output 0 */
        return;
    c->label = n->name;
    n->train = c->options->train;
    for (int i = 0; i < PM_MAX_SAVED; i++)
        n->saved[i] = PM_NO_TENSOR;
    bind_inputs(n, b);
    pm_calls_bind_variables(c, n, false);
    for (int i = 0; i < n->inputs; i++)
        me->needs_gradient |= b[n->in[i]->index].needs_gradient;
    for (int i = 0; i < n->var_count; i++)
        me->needs_gradient |= is_live(c, n->vars[i]);
    run_forward(c, n);
    for (int k = 0; k < n->outputs; k++) {
        const struct pm_node *o = n->out[k];
        struct pm_value *v = &c->values[n->ys[k].value];

        b[o->index].y = n->ys[k];
        b[o->index].needs_gradient = me->needs_gradient;
        if (is_output(c, o->name) && v->kind == PM_VALUE_ACTIVATION) {
            v->kind = PM_VALUE_OUTPUT;
            v->name = o->name;
        }
    }
}

/* Whether the node's output needs a gradient. */
static bool wants_gradient(const struct build *b, const struct pm_node *n)
{
    return b[n->index].needs_gradient && n->out_type == PM_F32;
}

/* Sets the node's outputs and their gradients. */
static void bind_outputs(struct pm_node *n, const struct build *b)
{
    for (int k = 0; k < n->outputs; k++) {
        const struct build *o = &b[n->out[k]->index];

        n->ys[k] = o->y;
        n->dys[k] = pm_has(o->dy) ? pm_view(o->dy, n->out[k]->out_shape) : PM_NO_TENSOR;
    }
}

static bool has_gradient(const struct pm_node *n, const struct build *b)
{
    bool any = false;

    for (int k = 0; k < n->outputs; k++)
        any |= pm_has(b[n->out[k]->index].dy);
    return any;
}

/* Whether a call may add to this gradient: a backward call wrote it, and it is the gradient of
 * nothing else. Layers may pass their gradient on unchanged, so nodes can share one value. The node
 * whose backward calls are being made still has its own gradient here. */
static bool may_add_to(const struct pm_calls *c, const struct build *b, struct pm_tensor dy)
{
    const struct pm_value *v = pm_has(dy) ? &c->values[dy.value] : NULL;
    int users = 0;

    if (!v || v->kind != PM_VALUE_ACTIVATION || v->first < 0 ||
        c->calls[v->first].phase != PM_PHASE_BACKWARD)
        return false;
    for (int i = 0; i < c->net->count; i++)
        users += b[i].dy.value == dy.value;
    return users == 1;
}

/* Adds a reader's gradient dx to that of node n's output, as one more value. */
static void add_gradient(struct pm_calls *c, const struct pm_node *n, struct build *b,
                         struct pm_tensor dx)
{
    struct pm_tensor *dy = &b[n->index].dy, sum;
    const struct add2_params p = { .count = (int)pm_count(dx) };

    if (!pm_has(*dy)) {
        *dy = dx;
        return;
    }
    sum = pm_temp(c, n->out_shape, PM_F32);
    pm_call(c, &pm_row_add2, (size_t)p.count, &p, PM_BUFS(*dy, dx, sum));
    *dy = sum;
}

/* Chooses the values of the gradients that the node's backward() writes. Sets added[i] if it adds
 * gradient i to that of other readers. */
static void bind_gradients(struct pm_calls *c, struct pm_node *n, const struct build *b,
                           bool added[PM_MAX_INPUTS])
{
    for (int i = 0; i < n->inputs; i++) {
        const struct pm_tensor dy = b[n->in[i]->index].dy;

        added[i] = wants_gradient(b, n->in[i]) && n->layer->accumulates && may_add_to(c, b, dy);
        n->dxs[i] = !wants_gradient(b, n->in[i]) ? PM_NO_TENSOR
                    : added[i] || n->layer->view ? pm_view(added[i] ? dy : n->dy,
                                                           n->in[i]->out_shape)
                                                 : pm_temp(c, n->in[i]->out_shape, PM_F32);
    }
    n->dx = n->inputs ? n->dxs[0] : PM_NO_TENSOR;
}

static void backward_node(struct pm_calls *c, struct pm_node *n, struct build *b)
{
    bool added[PM_MAX_INPUTS];

    if (n->output || !b[n->index].needs_gradient || !(has_gradient(n, b) || n->layer->loss))
        return;
    if (!n->layer->backward && !n->layer->view)
        return;
    c->label = n->name;
    bind_outputs(n, b);
    bind_inputs(n, b);
    pm_calls_bind_variables(c, n, true);
    bind_gradients(c, n, b, added);
    if (!n->layer->view)
        n->layer->backward(n, c);
    for (int k = 0; k < n->outputs; k++)
        b[n->out[k]->index].dy = PM_NO_TENSOR;
    for (int i = 0; i < n->inputs; i++)
        if (pm_has(n->dxs[i]) && !added[i]) {
            c->label = n->in[i]->name;
            add_gradient(c, n->in[i], b, n->dxs[i]);
        }
}

/* Marks the nodes that the plan has to compute: not the auxiliary heads of an evaluation, nor the
 * masks of boxes that are only proposals. A plan without outputs and losses computes all. */
static void mark_needed(const struct pm_calls *c, struct build *b)
{
    bool any = false;

    for (int i = c->net->count; i-- > 0;) {
        const struct pm_node *n = c->net->nodes[i];
        const bool wanted = n->layer->loss || is_output(c, n->name) ||
                            (c->options->train && n->layer->update);

        any |= wanted;
        b[i].needed |= wanted;
        for (int k = 0; k < n->inputs && b[i].needed; k++)
            b[n->in[k]->index].needed = true;
    }
    for (int i = 0; i < c->net->count; i++)
        b[i].needed |= !any || c->net->nodes[i]->inputs == 0;
}

static void build_micro_batch(struct pm_calls *c, struct build *b)
{
    int count = c->net->count;

    for (int i = 0; i < count; i++)
        b[i] = (struct build){ .y = PM_NO_TENSOR, .dy = PM_NO_TENSOR };
    mark_needed(c, b);
    c->phase = PM_PHASE_FORWARD;
    for (int i = 0; i < count && !c->error; i++)
        if (b[i].needed)
            forward_node(c, c->net->nodes[i], b);
    c->phase = PM_PHASE_BACKWARD;
    for (int i = count; c->options->train && i-- > 0 && !c->error;)
        backward_node(c, c->net->nodes[i], b);
}

int pm_calls_build(struct pm_net *net, const struct pm_variables *v,
                   const struct pm_plan_options *o, struct pm_device *transposes,
                   struct pm_arena *arena, struct pm_calls **out)
{
    struct pm_calls *c = pm_arena_alloc(arena, sizeof *c);
    struct build *b = pm_calloc((size_t)net->count + 1, sizeof *b);
    size_t vars = (size_t)net->var_count + 1;

    c->arena = arena;
    c->net = net;
    c->options = o;
    c->variables = v;
    c->device = transposes;
    c->transposes = transposes != NULL;
    c->label = "";
    c->step = -1;
    c->variable_value = pm_arena_alloc(arena, vars * sizeof(int));
    c->gradient_value = pm_arena_alloc(arena, vars * sizeof(int));
    memset(c->variable_value, -1, vars * sizeof(int));
    memset(c->gradient_value, -1, vars * sizeof(int));
    for (; c->micro_batch < o->micro_batches && !o->update_only && !c->error; c->micro_batch++)
        build_micro_batch(c, b);
    c->micro_batch = 0;
    c->phase = PM_PHASE_UPDATE;
    if (o->update && !c->error)
        o->update(c, o->update_ctx);
    if (!c->error)
        pm_calls_transpose(c);
    pm_free(b);
    *out = c;
    return c->error;
}
