/* quantize: rewrites a net's nodes for quantization-aware training with 8 bits. net.h lists which
 * node replaces which. Nodes are visited in order. Each is kept, replaced, or left for its reader
 * to fold in. Readers then use the replacement. */
#include <pumice/net.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "activation.def"

/* Bits of the magnitude of images, in steps. A weight is at most 254 steps, or 127 if the range is
 * symmetric. So floats hold the sums of 32 or 64 such products exactly. They hold sums of far more
 * if the signs differ. */
enum { IMAGE_BITS = 11 };

struct place {
    struct pm_node *now;    /* replacement that readers use; NULL: folded into its reader */
    struct pm_node *reader; /* the last reader */
    int readers;            /* number of readers, including heads */
    bool rounded;           /* the values of `now` are on a quantization grid */
    const char *waits;      /* name of the rounding that is deferred to the following activation */
};
struct rewriting {
    struct pm_net *net;
    struct pm_node **old; /* [count] owned copy of the net's node list */
    struct place *at;     /* [count] owned */
    int count;
    const struct pm_quantization *how;
};

/* ---- kinds of nodes -------------------------------------------------------------------------- */

static bool is(const struct pm_node *n, const char *layer)
{
    return strcmp(n->layer->name, layer) == 0;
}

static bool is_one_of(const struct pm_node *n, const char *const *names)
{
    for (; *names; names++)
        if (is(n, *names))
            return true;
    return false;
}

static bool is_convolution(const struct pm_node *n)
{
    static const char *const names[] = { "conv2d", "depthwise_conv2d", "fully_connected", NULL };

    return is_one_of(n, names);
}

static bool is_activation(const struct pm_node *n)
{
#define NAME(with, number, id, name, ...) #name,
    static const char *const names[] = { PM_ACTIVATION_LIST(NAME, 0) NULL };
#undef NAME

    return is_one_of(n, names);
}

/* Returns the node's options. The caller frees them with cJSON_Delete. */
static cJSON *options_of(const struct pm_node *n)
{
    cJSON *o = cJSON_CreateObject();

    pm_opts_dump(n->layer->opts, n->cfg, o, false);
    return o;
}

static bool has(const struct pm_node *n, const char *option)
{
    cJSON *o = options_of(n);
    const bool yes = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, option));

    cJSON_Delete(o);
    return yes;
}

static bool activates(const struct pm_node *n)
{
    cJSON *o = options_of(n);
    const cJSON *a = cJSON_GetObjectItemCaseSensitive(o, "activation");
    const bool yes = cJSON_IsString(a) && strcmp(a->valuestring, "none") != 0;

    cJSON_Delete(o);
    return yes;
}

/* Returns the batch norm to fold into a convolution, or NULL. It must be the convolution's only
 * reader, and the convolution must have no bias and no activation. */
static struct pm_node *norm_behind(const struct rewriting *r, const struct pm_node *n)
{
    const struct place *p = &r->at[n->index];

    if (!is_convolution(n) || p->readers != 1 || !p->reader || !is(p->reader, "batch_norm") ||
        p->reader->in[0] != n || has(n, "bias") || activates(n))
        return NULL;
    return p->reader;
}

/* ---- new nodes ------------------------------------------------------------------------------- */

static void set(cJSON *o, const char *key, cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(o, key);
    cJSON_AddItemToObject(o, key, value);
}

static const char *joined(const struct rewriting *r, const char *a, const char *b)
{
    return pm_arena_printf(r->net->arena, "%s/%s", a, b);
}

static bool reads_images(const struct pm_node *n)
{
    const struct pm_node *x = n->in[0];

    while (x->layer->copies_values)
        x = x->in[0];
    return is(x, "input");
}

/* Builds quantized_conv2d's options from those of the nodes that it replaces. norm may be NULL. */
static cJSON *merge(const struct rewriting *r, const struct pm_node *conv,
                    const struct pm_node *norm)
{
    static const char *const taken[] = { "decay",  "epsilon", "scale",
                                         "center", "frozen",  "moving_variance" };
    static const char *const behind[] = { "activation", "slope" };
    cJSON *o = options_of(conv), *other = norm ? options_of(norm) : NULL;

    cJSON_DeleteItemFromObjectCaseSensitive(o, "scope");
    cJSON_DeleteItemFromObjectCaseSensitive(o, "weights_name");
    if (is(conv, "fully_connected")) {
        cJSON_AddItemToObject(o, "filters", cJSON_DetachItemFromObjectCaseSensitive(o, "units"));
        cJSON_AddTrueToObject(o, "flat");
    } else if (is(conv, "depthwise_conv2d")) {
        cJSON_AddNumberToObject(o, "filters", 0);
    }
    cJSON_AddNumberToObject(o, "delay", r->how->delay);
    cJSON_AddNumberToObject(o, "freeze", r->how->freeze_steps);
    cJSON_AddBoolToObject(o, "symmetric", r->how->symmetric);
    if (reads_images(conv) && r->how->largest > 0)
        cJSON_AddNumberToObject(o, "input_step", exp2(ceil(log2(r->how->largest)) - IMAGE_BITS));
    if (norm) {
        cJSON_AddTrueToObject(o, "batch_norm");
        for (size_t i = 0; i < PM_COUNT(taken); i++)
            set(o, taken[i], cJSON_DetachItemFromObjectCaseSensitive(other, taken[i]));
        for (size_t i = 0; i < PM_COUNT(behind) && norm->inputs == 1; i++)
            set(o, behind[i], cJSON_DetachItemFromObjectCaseSensitive(other, behind[i]));
        cJSON_Delete(other);
    }
    return o;
}

/* Gives the variables of both nodes to the new node. Names and the net's settings for them stay. */
static int give(const struct rewriting *r, const struct pm_node *n, struct pm_given *given)
{
    for (int i = 0; n && i < n->var_count; i++) {
        const struct pm_variable *v = r->net->vars[n->vars[i]];

        given[i] = (struct pm_given){ v->name, v->init, v->trainable, pm_shape_count(v->shape) };
    }
    return n ? n->var_count : 0;
}

static struct pm_node *add_convolution(struct rewriting *r, const struct pm_node *conv,
                                       const struct pm_node *norm)
{
    struct pm_given given[2 * PM_MAX_VARS];
    cJSON *options = merge(r, conv, norm);
    struct pm_node *x = r->at[conv->in[0]->index].now, *n;

    r->net->given_count = give(r, conv, given);
    r->net->given_count += give(r, norm, given + r->net->given_count);
    r->net->given = given;
    n = pm_net_add_json(r->net, conv->name, &x, 1, "quantized_conv2d", options, NULL, conv->name);
    r->net->given = NULL;
    r->net->given_count = 0;
    cJSON_Delete(options);
    return n;
}

/* Adds a rounding. As in TensorFlow, the range of names that end in "act_quant" starts at 0..6
 * because their values cannot be negative. Other ranges start at -6..6. */
static void round_it(struct rewriting *r, struct place *p, const char *name)
{
    const bool act = strlen(name) > 9 && strcmp(name + strlen(name) - 9, "act_quant") == 0;

    p->now = pm_net_add(r->net, name, p->now, "fake_quant min=%d delay=%d symmetric=%s",
                        act ? 0 : -6, r->how->delay, r->how->symmetric ? "true" : "false");
    p->rounded = true;
}

/* ---- placing --------------------------------------------------------------------------------- */

static bool is_sum(const struct pm_node *n)
{
    return is(n, "add") || is(n, "multiply") || (is(n, "batch_norm") && n->inputs > 1);
}

/* Whether a sum is among the readers. Such a bypass rounds its inputs separately. */
static bool is_bypassed(const struct rewriting *r, const struct pm_node *n)
{
    for (int i = n->index + 1; i < r->count; i++)
        for (int k = 0; k < r->old[i]->inputs; k++)
            if (r->old[i]->in[k] == n && is_sum(r->old[i]))
                return true;
    return false;
}

/* Rounds the values of old node n here, or after the activation if that is the only reader.
 * otherwise: name of the rounding if there is no activation. */
static void place(struct rewriting *r, const struct pm_node *n, const char *scope, bool activated,
                  const char *otherwise)
{
    struct place *p = &r->at[n->index];
    const char *act = joined(r, scope, "act_quant");

    if (!activated && p->readers == 1 && p->reader && is_activation(p->reader))
        p->waits = act;
    else
        round_it(r, p, activated ? act : joined(r, scope, otherwise));
}

/* Whether add supports this activation. add keeps y, so activations that need z are excluded. */
static bool add_applies(const char *activation)
{
#define ROW(with, number, id, name, onnx, value, derivative, takes_z, keeps_z)                     \
    if (takes_z && strcmp(activation, #name) == 0)                                                 \
        return false;
    PM_ACTIVATION_LIST(ROW, 0)
#undef ROW
    return true;
}

/* Adds a batch norm's second input to x and applies the norm's activation to the sum. */
static struct pm_node *add_bypass(const struct rewriting *r, const struct pm_node *norm,
                                  struct pm_node *x)
{
    cJSON *options = options_of(norm);
    const char *act = cJSON_GetObjectItemCaseSensitive(options, "activation")->valuestring;
    const double slope = cJSON_GetObjectItemCaseSensitive(options, "slope")->valuedouble;
    struct pm_node *in[2] = { x, r->at[norm->in[1]->index].now };

    if (!add_applies(act)) {
        x = pm_net_add_many(r->net, joined(r, norm->name, "sum"), in, 2, "add");
        x = pm_net_add(r->net, norm->name, x, "%s", act);
    } else {
        x = pm_net_add_many(r->net, norm->name, in, 2, "add activation=%s slope=%.9g", act, slope);
    }
    cJSON_Delete(options);
    return x;
}

static void put_convolution(struct rewriting *r, struct pm_node *n)
{
    struct pm_node *conv = is_convolution(n) ? n : n->in[0], *norm = conv == n ? NULL : n;
    struct place *p = &r->at[n->index];
    const bool residual = norm && norm->inputs > 1;

    p->now = add_convolution(r, conv, norm);
    if (!residual) {
        place(r, n, conv->name, activates(n), is_bypassed(r, n) ? "conv_quant" : "act_quant");
        return;
    }
    round_it(r, p, joined(r, conv->name, "conv_quant"));
    p->now = add_bypass(r, norm, p->now);
    place(r, n, norm->name, activates(norm), "add_quant");
}

static void keep(struct rewriting *r, struct pm_node *n)
{
    struct pm_net *net = r->net;
    struct place *p = &r->at[n->index];
    bool rounded = false;
    const char *waits = NULL;

    for (int i = 0; i < n->inputs; i++) {
        const struct place *x = &r->at[n->in[i]->index];

        rounded |= x->rounded;
        waits = i == 0 ? x->waits : waits;
        n->in[i] = x->now;
    }
    PM_GROW(net->nodes, net->count, net->capacity);
    net->nodes[net->count++] = n;
    p->now = n;
    p->rounded = rounded && n->layer->copies_values;
    if (waits && is_activation(n))
        round_it(r, p, waits);
    else if (rounded && is_sum(n) && n->inputs > 1)
        place(r, n, n->name, activates(n), is(n, "multiply") ? "mul_quant" : "add_quant");
}

/* ---- the rewriting --------------------------------------------------------------------------- */

static void count_readers(struct rewriting *r, const struct pm_heads *heads)
{
    for (int i = 0; i < r->count; i++)
        for (int k = 0; k < r->old[i]->inputs; k++) {
            struct place *p = &r->at[r->old[i]->in[k]->index];

            p->readers++;
            p->reader = r->old[i];
        }
    for (int i = 0; i < heads->count; i++)
        r->at[heads->list[i].node->index].readers++;
}

/* Whether a node is a batch norm that reads the number of valid rows. */
static bool counts_rows(const struct pm_node *n)
{
    for (int i = 1; i < n->inputs && is(n, "batch_norm"); i++)
        if (n->in[i]->out_type == PM_I32)
            return true;
    return false;
}

static int check(const struct pm_net *net, int first, const struct pm_heads *heads)
{
    const int scales = pm_heads_count(heads, PM_HEAD_SCALE);

    if (scales > 0)
        return pm_fail(PM_ECONFIG,
                       "model.quantize_delay: a net with %d scales (model.image_pyramid) cannot be "
                       "quantised: remove model.image_pyramid, or set quantize_delay to -1",
                       scales);
    for (int i = first; i < net->count; i++)
        if (is(net->nodes[i], "quantized_conv2d") || is(net->nodes[i], "fake_quant"))
            return pm_fail(PM_ECONFIG,
                           "model.quantize_delay: %s is quantised already: set it to -1",
                           net->nodes[i]->name);
    for (int i = first; i < net->count; i++)
        if (counts_rows(net->nodes[i]))
            return pm_fail(PM_ECONFIG,
                           "model.quantize_delay: the batch norm %s counts only valid rows, which "
                           "a quantised convolution cannot do: set model.batch_norm_train to "
                           "false, or quantize_delay to -1",
                           net->nodes[i]->name);
    return net->error;
}

int pm_net_quantize(struct pm_net *net, int first, const struct pm_quantization *how,
                    struct pm_heads *heads)
{
    struct rewriting r = { .net = net, .count = net->count, .how = how };
    int err = PM_OK, convolutions = 0;

    PM_TRY(check(net, first, heads));
    r.old = pm_malloc(((size_t)r.count + 1) * sizeof *r.old);
    r.at = pm_calloc((size_t)r.count + 1, sizeof *r.at);
    memcpy(r.old, net->nodes, (size_t)r.count * sizeof *r.old);
    count_readers(&r, heads);
    for (int i = 0; i < first; i++)
        r.at[i].now = r.old[i];
    net->count = first;
    for (int i = first; i < r.count && !net->error; i++) {
        struct pm_node *n = r.old[i];

        if (norm_behind(&r, n))
            continue;
        const bool folds = is(n, "batch_norm") && norm_behind(&r, n->in[0]) == n;
        if (folds || is_convolution(n))
            put_convolution(&r, n), convolutions++;
        else
            keep(&r, n);
    }
    PM_TRY(net->error);
    for (int i = 0; i < heads->count; i++)
        heads->list[i].node = r.at[heads->list[i].node->index].now;
    for (int i = 0; i < net->count; i++)
        net->nodes[i]->index = i;
    if (convolutions == 0)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "model.quantize_delay: the net has no convolution or product whose "
                       "weights could be quantised: set it to -1"));
out:
    pm_free(r.old);
    pm_free(r.at);
    return err;
}
