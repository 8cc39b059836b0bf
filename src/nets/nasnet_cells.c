/* nasnet_cells: nets of searched cells. A cell reads the previous map and the one before that, and
 * brings both to its width (states 0 and 1). Then it adds five pairs of operations on its states;
 * each sum is a new state. Last, it joins the states that its table does not mark as used. nets.h
 * describes the tables' language.
 *
 * Rectifiers precede convolutions. If several operations share a rectifier, it is one node. The
 * last layer of a pair's second operation computes the sum if it can: a dropped path or batch
 * norm. */
#include "nets/nets.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PAIRS = 5, STATES = PAIRS + 2 };


/* The cell being built. */
struct cell {
    const struct pm_nas *nas;
    struct pm_net *net;
    const struct pm_nets_options *o;
    const char *scope;
    int filters, stride;
    double keep; /* keep probability of its paths at the end of the schedule */
};

struct operation {
    char kind[8]; /* "sep", "atr", "avg", "max", "id" */
    int kernel;
    int state;
};

static const char *join(const struct cell *c, const char *scope, const char *name)
{
    return pm_arena_printf(c->net->arena, "%s/%s", scope, name);
}

/* Adds a relu. In a pass the names of its nodes start with the pass's name. */
static struct pm_node *relu(struct pm_net *net, struct pm_node *x)
{
    const char *own = net->pass ? x->name + strlen(net->pass) + 1 : x->name;
    const char *name = pm_arena_printf(net->arena, "%s/Relu", own);
    struct pm_node *y = pm_net_find(net, name);

    return y && y->in[0] == x ? y : pm_net_add(net, name, x, "relu");
}

static const char *weights(const struct cell *c)
{
    const char *own = c->nas->dense ? "variance_scaling_uniform(0.33333333)"
                                    : "variance_scaling_fan_out";

    return pm_arena_printf(c->net->arena, "bias=false weights_init=%s",
                           pm_nets_init(c->net, c->o, own));
}

static struct pm_node *conv(const struct cell *c, const char *name, struct pm_node *x, int filters,
                            int stride)
{
    return pm_net_add(c->net, name, x, "conv2d filters=%d kernel=1 stride=%d %s", filters, stride,
                      weights(c));
}

static struct pm_node *norm(const struct cell *c, const char *name, struct pm_node *x,
                            struct pm_node *residual)
{
    return pm_nets_batch_norm(c->net, c->o, name, x, residual, "");
}

/* ---- states 0 and 1 --------------------------------------------------------------------- */

/* Halves the size. Takes every second pixel from (0, 0) and from (1, 1), each at half of the width.
 * Positions beyond an odd edge are zeros. */
static struct pm_node *reduction(const struct cell *c, struct pm_node *x)
{
    const int odd_h = x->out_shape.dim[1] % 2, odd_w = x->out_shape.dim[2] % 2;
    struct pm_node *path[2];

    path[0] = conv(c, join(c, c->scope, "path1_conv"), x, c->filters / 2, 2);
    x = pm_net_add(c->net, join(c, c->scope, "path2_crop"), x, "slice begin=[0,1,1,0]");
    path[1] = pm_net_add(c->net, join(c, c->scope, "path2_conv"), x,
                         "conv2d filters=%d kernel=1 stride=2 padding=explicit pad=[0,%d,0,%d] "
                         "%s", c->filters - c->filters / 2, odd_h, odd_w, weights(c));
    x = pm_net_add_many(c->net, join(c, c->scope, "final_path"), path, 2, "concat axis=3");
    return norm(c, join(c, c->scope, "final_path_bn"), x, NULL);
}

static struct pm_node *previous(const struct cell *c, struct pm_node *x, struct pm_node *before)
{
    const int *now = x->out_shape.dim, *then = before ? before->out_shape.dim : now;

    if (!before)
        return x;
    if (then[1] != now[1] || then[2] != now[2]) {
        if (!c->nas->dense)
            return reduction(c, relu(c->net, before));
        before = pm_net_add(c->net, join(c, c->scope, "prev_resized"), before,
                            "resize size=[%d,%d] coordinates=align_corners", now[1], now[2]);
    }
    if (before->out_shape.dim[3] == c->filters)
        return before;
    x = conv(c, join(c, c->scope, "prev_1x1"), relu(c->net, before), c->filters, 1);
    return norm(c, join(c, c->scope, "prev_bn"), x, NULL);
}

/* ---- operations ------------------------------------------------------------------------- */

static const char *window(const struct cell *c, int kernel, int stride)
{
    return c->nas->dense ? pm_nets_window_same(c->net->arena, kernel, stride, 1)
                         : pm_nets_window(c->net->arena, c->o, kernel, stride, 1);
}

/* Resizes the map to half instead of using a stride; then the convolution is not dilated. */
static struct pm_node *atrous(const struct cell *c, const char *scope, struct pm_node *x,
                              int kernel, int stride, struct pm_node *residual)
{
    const char *name = pm_arena_printf(c->net->arena, "%s/atrous_%dx%d", scope, kernel, kernel);
    const char *bn = pm_arena_printf(c->net->arena, "%s/bn_atr_%dx%d", scope, kernel, kernel);
    const int h = (x->out_shape.dim[1] + 1) / 2, w = (x->out_shape.dim[2] + 1) / 2;

    x = relu(c->net, x);
    if (stride == 2)
        x = pm_net_add(c->net, join(c, scope, "resized"), x,
                       "resize size=[%d,%d] coordinates=align_corners", h, w);
    x = pm_net_add(c->net, name, x, "conv2d filters=%d %s %s", c->filters,
                   pm_nets_window_same(c->net->arena, kernel, 1, stride == 2 ? 1 : 2), weights(c));
    return norm(c, bn, x, residual);
}

/* Two separable convolutions. Only the first has the stride. */
static struct pm_node *separable(const struct cell *c, const char *scope, struct pm_node *x,
                                 int kernel, int stride, struct pm_node *residual)
{
    struct pm_arena *a = c->net->arena;

    x = relu(c->net, x);
    for (int i = 1; i <= 2; i++) {
        const char *name = pm_arena_printf(a, "%s/separable_%dx%d_%d", scope, kernel, kernel, i);

        x = pm_net_add(c->net, name, x, "depthwise_conv2d %s %s", window(c, kernel,
                       i == 1 ? stride : 1), weights(c));
        x = pm_net_add(c->net, join(c, name, "pointwise"), x, "conv2d filters=%d kernel=1 scope=%s "
                       "weights_name=pointwise_weights %s", c->filters, name, weights(c));
        name = pm_arena_printf(a, "%s/bn_sep_%dx%d_%d", scope, kernel, kernel, i);
        x = i == 1 ? pm_nets_batch_norm(c->net, c->o, name, x, NULL, "activation=relu")
                   : norm(c, name, x, residual);
    }
    return x;
}

static int stride_of(const struct cell *c, const struct operation *op)
{
    return op->state < 2 ? c->stride : 1;
}

/* Whether the operation adds a 1x1 convolution of its own because sizes differ. */
static bool matched(const struct cell *c, const struct operation *op, const struct pm_node *x)
{
    return x->out_shape.dim[3] != c->filters || (op->kind[0] == 'i' && stride_of(c, op) > 1);
}

/* Whether the operation's path is dropped. Identities are never dropped. */
static bool drops(const struct cell *c, const struct operation *op)
{
    return op->kind[0] != 'i' && c->keep < 1;
}

static bool is(const struct operation *op, const char *kind)
{
    return strcmp(op->kind, kind) == 0;
}

static bool ends_in_sum(const struct cell *c, const struct operation *op, const struct pm_node *x)
{
    return drops(c, op) || is(op, "sep") || is(op, "atr") || matched(c, op, x);
}

/* residual: added at the end, which must support it, or NULL. */
static struct pm_node *apply(const struct cell *c, const char *scope, const struct operation *op,
                             struct pm_node *x, struct pm_node *residual)
{
    const int stride = stride_of(c, op);
    const bool identity = op->kind[0] == 'i', match = matched(c, op, x);
    struct pm_node *added = drops(c, op) ? NULL : residual; /* by batch norm */

    if (is(op, "sep")) {
        x = separable(c, scope, x, op->kernel, stride, added);
    } else if (is(op, "atr")) {
        x = atrous(c, scope, x, op->kernel, stride, added);
    } else {
        if (!identity)
            x = pm_net_add(c->net, join(c, scope, "pool"), x,
                           "%s_pool kernel=%d stride=%d padding=same", op->kind, op->kernel,
                           stride);
        if (match) {
            x = conv(c, join(c, scope, "1x1"), identity ? relu(c->net, x) : x, c->filters,
                     identity ? stride : 1);
            x = norm(c, join(c, scope, "bn_1"), x, added);
        }
    }
    if (!drops(c, op))
        return x;
    /* without a last step of the run: the default number of steps of DeepLab's trainer */
    const int steps = c->o->drop_path_steps == PM_UNSET ? 30000 : c->o->drop_path_steps;
    return pm_net_add_many(c->net, join(c, scope, "drop_path"),
                           (struct pm_node *[]){ x, residual }, residual ? 2 : 1,
                           "drop_path keep=%.17g steps=%d", c->keep, steps);
}

static struct pm_node *pair(const struct cell *c, int number, struct pm_node *const *states)
{
    const char *scope = pm_arena_printf(c->net->arena, "%s/comb_iter_%d", c->scope, number);
    const char *side[2] = { join(c, scope, "left"), join(c, scope, "right") };
    struct operation op[2], *a = &op[0], *b = &op[1];
    struct pm_node *x[2], *y[2];
    int fields = sscanf(c->nas->cells[c->stride > 1].pairs[number],
                        "%7[a-z]%d %d + %7[a-z]%d %d", a->kind, &a->kernel, &a->state, b->kind,
                        &b->kernel, &b->state);

    assert(fields == 6);
    (void)fields;
    for (int i = 0; i < 2; i++)
        x[i] = states[op[i].state];
    const int last = ends_in_sum(c, &op[1], x[1]) ? 1 : 0, first = 1 - last;
    const bool joined = ends_in_sum(c, &op[last], x[last]);

    y[first] = apply(c, side[first], &op[first], x[first], NULL);
    y[last] = apply(c, side[last], &op[last], x[last], joined ? y[first] : NULL);
    return joined ? y[last] : pm_net_add_many(c->net, join(c, scope, "combine"), y, 2, "add");
}

/* ---- the net ---------------------------------------------------------------------------- */

/* Joins the states that the table does not mark as used: those that no pair reads. NASNet's
 * reduction also joins a state that a pair passes through unchanged. If a first map that is joined
 * directly has another width, a 1x1 convolution adapts it. */
static struct pm_node *output(const struct cell *c, struct pm_node **states)
{
    const char *scope = join(c, c->scope, "cell_output");
    struct pm_node *out[STATES];
    int count = 0;

    for (int i = 0; i < STATES; i++) {
        if (c->nas->cells[c->stride > 1].used[i])
            continue;
        if (states[i]->out_shape.dim[3] != c->filters) {
            const char *name = pm_arena_printf(c->net->arena, "%s/reduction_%d", scope, i);

            states[i] = conv(c, join(c, name, "path_conv"), states[i], c->filters, 1);
            states[i] = norm(c, join(c, name, "path_bn"), states[i], NULL);
        }
        out[count++] = states[i];
    }
    return pm_net_add_many(c->net, scope, out, count, "concat axis=3");
}

/* number: index of the cell in the net, from 0. */
static struct pm_node *add_cell(struct cell *c, const char *scope, int number, struct pm_node *x,
                                struct pm_node *before)
{
    const double all = c->nas->count + (c->nas->stem ? 2 : 0) + (c->nas->apart ? 2 : 0);
    struct pm_node *states[STATES];

    c->scope = scope;
    c->keep = 1 - (number + 1) / all * (1 - c->o->drop_path_keep);
    states[1] = previous(c, x, before);
    x = conv(c, join(c, scope, "1x1"), relu(c->net, x), c->filters, 1);
    states[0] = norm(c, join(c, scope, "beginning_bn"), x, NULL);
    for (int i = 0; i < PAIRS; i++)
        states[i + 2] = pair(c, i, states);
    return output(c, states);
}

struct pm_node *pm_nas_cell(const struct pm_nas *n, struct pm_net *net, const char *scope,
                            int number, int filters, int stride, struct pm_node *x,
                            struct pm_node *before, const struct pm_nets_options *o)
{
    struct cell c = { .nas = n, .net = net, .o = o, .filters = filters, .stride = stride };

    return add_cell(&c, scope, number, x, before);
}

/* Two maps: the last one and the one before it. */
struct maps { struct pm_node *before, *x; };

static void push(struct maps *m, struct pm_node *x)
{
    *m = (struct maps){ m->x, x };
}

/* Builds the stem. For 32x32 images it is a convolution. For larger images it is a strided
 * convolution and two reductions. */
static struct maps stem(struct cell *c, struct pm_node *images)
{
    const struct pm_nas *n = c->nas;
    struct maps m = { NULL, images };
    const char *name = n->stem ? "conv0" : "l1_stem_3x3";

    m.x =
        pm_net_add(c->net, name, images, "conv2d filters=%d kernel=3 stride=%d padding=%s %s",
                   n->stem ? n->stem : 3 * n->filters, n->stem ? 2 : 1, n->stem ? "valid" : "same",
                   weights(c));
    m.x = norm(c, n->stem ? "conv0_bn" : "l1_stem_bn", m.x, NULL);
    c->stride = 2;
    for (int i = 0; n->stem && i < 2; i++) {
        c->filters = n->filters / (i ? 2 : 4);
        push(&m, add_cell(c, i ? "cell_stem_1" : "cell_stem_0", i, m.x, m.before));
    }
    return m;
}

static struct pm_node *auxiliary(const struct cell *c, int number, struct pm_node *x, int classes)
{
    const char *scope = pm_arena_printf(c->net->arena, "aux_%d/aux_logits", number);

    x = pm_net_add(c->net, join(c, scope, "AvgPool2D"), relu(c->net, x),
                   "avg_pool kernel=5 stride=3 padding=valid");
    x = conv(c, join(c, scope, "proj"), x, 128, 1);
    x = pm_nets_batch_norm(c->net, c->o, join(c, scope, "aux_bn0"), x, NULL, "activation=relu");
    x = pm_net_add(c->net, join(c, scope, "Conv"), x, "conv2d filters=768 kernel=[%d,%d] "
                   "padding=valid %s", x->out_shape.dim[1], x->out_shape.dim[2], weights(c));
    x = pm_nets_batch_norm(c->net, c->o, join(c, scope, "aux_bn1"), x, NULL, "activation=relu");
    x = pm_net_add(c->net, join(c, scope, "Flatten"), x, "flatten");
    return pm_net_add(c->net, join(c, scope, "FC"), x, "fully_connected units=%d "
                      "weights_init=variance_scaling_fan_out", classes);
}

static struct pm_node *logits(const struct cell *c, struct pm_node *x, int classes)
{
    x = pm_net_add(c->net, "final_layer/global_pool", relu(c->net, x), "global_pool");
    x = pm_net_add(c->net, "final_layer/dropout", x, "dropout keep=%.9g", (double)c->o->keep_prob);
    x = pm_net_add(c->net, "final_layer/Flatten", x, "flatten");
    return pm_net_add(c->net, "final_layer/FC", x, "fully_connected units=%d weights_init=%s",
                      classes, pm_nets_logits_init(c->net, c->o, "variance_scaling_fan_out"));
}

/* Returns the least image size at which every halved map has two pixels, and the auxiliary head's
 * five. */
static int least_size(const struct pm_nas *n, bool aux_head)
{
    return n->stem ? (aux_head ? 67 : 19) : aux_head ? 9 : 3;
}

void pm_nas_build(const struct pm_nas *n, struct pm_net *net, struct pm_node *images, int classes,
                  const struct pm_nets_options *o, struct pm_heads *heads)
{
    struct cell c = { .nas = n, .net = net, .o = o };

    if (!pm_nets_fits(net, n->name, images, least_size(n, o->aux_head)))
        return;
    struct maps m = stem(&c, images);
    int number = n->stem ? 2 : 0, reductions = 0;

    c.filters = n->filters;
    for (int i = 0; i < n->count; i++) {
        const bool reduces = i == n->count / 3 || i == n->count * 2 / 3;
        struct pm_node *before = m.before;

        c.filters *= reduces ? 2 : 1;
        c.stride = reduces ? 2 : 1;
        if (reduces && n->apart) {
            push(&m, add_cell(&c, pm_arena_printf(net->arena, "reduction_cell_%d", reductions++),
                              number++, m.x, m.before));
            before = n->far ? before : m.before;
            c.stride = 1;
        }
        push(&m, add_cell(&c, pm_arena_printf(net->arena, "cell_%d", i), number++, m.x, before));
        if (o->aux_head && i == n->count * 2 / 3 - 1)
            pm_nets_add_auxiliary(net, heads, auxiliary(&c, i, m.x, classes));
    }
    pm_heads_add(net, heads, "logits", logits(&c, m.x, classes));
}
