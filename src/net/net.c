/* net: nodes, shapes, variables. */
#include <pumice/net.h>

#include <assert.h>
#include <cjson/cJSON.h>
#include <string.h>

enum { ROWS_BY_DEFAULT = -1 }; /* infer() left out_rows unset */

static int infer_input(struct pm_node *n)
{
    (void)n;
    return PM_OK;
}

static int infer_output(struct pm_node *n)
{
    (void)n;
    return PM_OK;
}

static const struct pm_opt no_opts[] = { { 0 } };
/* The input layer is not in layers.def: nets get their inputs from the task, not from a list. */
static const struct pm_layer input_layer = {
    .name = "input", .help = "data from the host", .opts = no_opts,
    .cfg_size = sizeof(struct pm_values), .infer = infer_input,
};
/* The layer of nodes that stand for a further output of another node. It is not in layers.def:
 * pm_node_output makes these nodes. */
static const struct pm_layer output_layer = {
    .name = "output", .help = "a further output of a layer", .opts = no_opts,
    .cfg_size = sizeof(struct pm_values), .copies_values = true, .infer = infer_output,
};

struct pm_net *pm_net_create(void)
{
    struct pm_net *net = pm_calloc(1, sizeof *net);

    net->arena = pm_arena_create();
    return net;
}

struct pm_net *pm_net_hold(struct pm_net *net)
{
    net->holders++;
    return net;
}

void pm_net_destroy(struct pm_net **n)
{
    if (*n && (*n)->holders > 0) {
        (*n)->holders--;
    } else if (*n) {
        pm_arena_destroy(&(*n)->arena);
        pm_free((*n)->nodes);
        pm_free((*n)->vars);
        pm_free(*n);
    }
    *n = NULL;
}

static void add_head(struct pm_net *net, struct pm_heads *heads, struct pm_head head)
{
    const size_t n = (size_t)heads->count;
    struct pm_head *list;

    if (!head.node)
        return;
    list = pm_arena_alloc(net->arena, (n + 1) * sizeof *list);
    if (n)
        memcpy(list, heads->list, n * sizeof *list);
    list[n] = head;
    heads->list = list;
    heads->count++;
}

void pm_heads_add(struct pm_net *net, struct pm_heads *heads, const char *name,
                  struct pm_node *node)
{
    add_head(net, heads, (struct pm_head){ name, PM_HEAD_OUTPUT, 1, node });
}

void pm_heads_add_loss_only(struct pm_net *net, struct pm_heads *heads, const char *name,
                            struct pm_node *node, enum pm_head_role role, float weight)
{
    add_head(net, heads, (struct pm_head){ name, role, weight, node });
}

struct pm_node *pm_heads_main(const struct pm_heads *heads)
{
    for (int i = 0; i < heads->count; i++)
        if (heads->list[i].role == PM_HEAD_OUTPUT)
            return heads->list[i].node;
    return NULL;
}

static const struct pm_head *find_head(const struct pm_heads *heads, const char *name)
{
    for (int i = 0; i < heads->count; i++)
        if (strcmp(heads->list[i].name, name) == 0)
            return &heads->list[i];
    return NULL;
}

struct pm_node *pm_heads_find(const struct pm_heads *heads, const char *name)
{
    const struct pm_head *h = find_head(heads, name);

    return h ? h->node : NULL;
}

float pm_heads_weight(const struct pm_heads *heads, const char *name)
{
    const struct pm_head *h = find_head(heads, name);

    return h ? h->weight : 0;
}

int pm_heads_count(const struct pm_heads *heads, enum pm_head_role role)
{
    int count = 0;

    for (int i = 0; i < heads->count; i++)
        count += heads->list[i].role == role;
    return count;
}

const char *pm_net_scope(const struct pm_net *net, const char *name)
{
    return net->prefix ? pm_arena_printf(net->arena, "%s/%s", net->prefix, name) : name;
}

static const char *name_in_pass(const struct pm_net *net, const char *name)
{
    return net->pass ? pm_arena_printf(net->arena, "%s/%s", net->pass, name) : name;
}

static struct pm_node *find(const struct pm_net *net, const char *name)
{
    for (int i = 0; i < net->count; i++)
        if (strcmp(net->nodes[i]->name, name) == 0)
            return net->nodes[i];
    return NULL;
}

static struct pm_node *find_in_pass(const struct pm_net *net, const char *name)
{
    struct pm_node *n = net->pass ? find(net, name_in_pass(net, name)) : NULL;

    return n ? n : find(net, name);
}

struct pm_node *pm_net_find(const struct pm_net *net, const char *name)
{
    struct pm_node *n = net->prefix ? find_in_pass(net, pm_net_scope(net, name)) : NULL;

    return n ? n : find_in_pass(net, name);
}

/* Makes and adds a node in every case, so that builders can continue after an error. name is the
 * whole name, including the names of pass and prefix. */
static struct pm_node *append_node(struct pm_net *net, const char *name,
                                   const struct pm_layer *layer)
{
    struct pm_node *n = pm_arena_alloc(net->arena, sizeof *n);

    n->scope = n->name = pm_arena_strdup(net->arena, name);
    if (!net->error && find(net, n->name))
        net->error = pm_fail(PM_ECONFIG,
                             "%s: the task adds a layer of this name, but the net already has one: "
                             "rename the layer of the net",
                             n->name);
    n->layer = layer;
    n->net = net;
    n->index = net->count;
    n->cfg = pm_arena_alloc(net->arena, layer->cfg_size + 1);
    n->out[0] = n;
    n->outputs = 1;
    n->out_rows = ROWS_BY_DEFAULT;
    n->x = n->dx = PM_NO_TENSOR;
    for (int k = 0; k < PM_MAX_NODE_OUTPUTS; k++)
        n->ys[k] = n->dys[k] = PM_NO_TENSOR;
    PM_GROW(net->nodes, net->count, net->capacity);
    net->nodes[net->count++] = n;
    return n;
}

static struct pm_node *new_node(struct pm_net *net, const char *name, const struct pm_layer *layer)
{
    struct pm_node *n;

    name = pm_net_scope(net, name);
    n = append_node(net, name_in_pass(net, name), layer);
    if (net->pass && !net->given_count) /* given variables are found by name */
        n->share = find(net, name);
    return n;
}

struct pm_node *pm_net_input(struct pm_net *net, const char *name, struct pm_shape shape,
                             enum pm_type type)
{
    struct pm_node *n = new_node(net, name, &input_layer);

    n->out_shape = shape;
    n->out_type = type;
    if (shape.rank > 0 && net->batch == 0)
        net->batch = shape.dim[0];
    n->out_rows = shape.rank > 0 && net->batch > 0 && shape.dim[0] % net->batch == 0
                      ? shape.dim[0] / net->batch
                      : 0;
    pm_net_set_values(n, (struct pm_values){ .low = type == PM_F32 ? -1 : 0,
                                             .high = type == PM_F32 ? 1 : 0 });
    return n;
}

void pm_net_set_values(struct pm_node *input, struct pm_values values)
{
    assert(input->layer == &input_layer && values.low <= values.high);
    *(struct pm_values *)input->cfg = values;
}

struct pm_values pm_net_values(const struct pm_node *input)
{
    assert(input->layer == &input_layer);
    return *(const struct pm_values *)input->cfg;
}

static int check_inputs(const struct pm_node *n)
{
    int least = n->layer->min_inputs, most = n->layer->max_inputs;

    if (most == 0)
        least = most = 1;
    if (n->inputs < least || n->inputs > most)
        return pm_fail(PM_ECONFIG, "%s: a %s layer takes %d to %d inputs, not %d", n->name,
                       n->layer->name, least, most, n->inputs);
    return PM_OK;
}

/* Longest axis. Kernels count in int. Layers also multiply image sizes by small options before this
 * check can see the product. */
enum { LONGEST_AXIS = 1 << 20 };

static bool fits_int(struct pm_shape s)
{
    uint64_t n = 1;

    for (int i = 0; i < s.rank; i++) {
        n *= (uint64_t)s.dim[i];
        if (s.dim[i] < 0 || n > INT32_MAX)
            return false;
    }
    return true;
}

static int check_output(const struct pm_node *n)
{
    const struct pm_shape s = n->out_shape;
    char text[64];

    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] < 1 || (s.rank == 4 && s.dim[i] > LONGEST_AXIS))
            return pm_fail(PM_ECONFIG, "%s: its output %s has an axis outside 1..%d", n->name,
                           pm_shape_text(s, text), LONGEST_AXIS);
    if (!fits_int(s))
        return pm_fail(PM_ECONFIG,
                       "%s: its output %s has more than 2^31 - 1 values; make the batch "
                       "or the input smaller, or raise run.micro_batches",
                       n->name, pm_shape_text(s, text));
    return PM_OK;
}

int pm_node_output(struct pm_node *n, struct pm_shape shape, enum pm_type type)
{
    struct pm_net *net = n->net;
    struct pm_node *o;

    if (n->outputs == PM_MAX_NODE_OUTPUTS)
        return pm_fail(PM_ECONFIG, "%s: more than %d outputs", n->name, PM_MAX_NODE_OUTPUTS);
    o = append_node(net, pm_arena_printf(net->arena, "%s:%d", n->name, n->outputs), &output_layer);
    o->in[0] = n;
    o->inputs = 1;
    o->output = n->outputs;
    o->out_shape = shape;
    o->out_type = type;
    n->out[n->outputs++] = o;
    return net->error;
}

/* Returns the rows (dim[0]) per example. The number of examples comes from the first input with
 * rows. */
static int default_rows(const struct pm_node *n, struct pm_shape out)
{
    for (int i = 0; i < n->inputs && out.rank > 0; i++) {
        const struct pm_node *x = n->in[i];
        const int examples = x->out_rows > 0                ? x->out_shape.dim[0] / x->out_rows
                             : x->out_rows == PM_ROWS_MIXED ? n->net->batch
                                                            : 0;

        if (examples > 0)
            return out.dim[0] % examples == 0 ? out.dim[0] / examples : PM_ROWS_MIXED;
    }
    return 0;
}

static void finish_node(struct pm_node *n, struct pm_node *const *xs, int count)
{
    struct pm_net *net = n->net;

    n->inputs = count < PM_MAX_INPUTS ? count : PM_MAX_INPUTS;
    for (int i = 0; i < n->inputs; i++) {
        n->in[i] = xs[i];
        if (!net->error && !xs[i])
            net->error = pm_fail(PM_ECONFIG, "%s: its input %d is missing", n->name, i + 1);
    }
    if (n->inputs && xs[0]) /* after a builder failed there is no input to continue with */
        n->out_shape = xs[0]->out_shape, n->out_type = xs[0]->out_type;
    if (!net->error && count > PM_MAX_INPUTS)
        net->error = pm_fail(PM_ECONFIG, "%s: %d inputs, at most %d are possible", n->name, count,
                             PM_MAX_INPUTS);
    if (!net->error)
        net->error = check_inputs(n);
    if (!net->error)
        net->error = n->layer->infer(n);
    for (int k = 0; k < n->outputs && !net->error; k++) {
        if (n->out[k]->out_rows == ROWS_BY_DEFAULT)
            n->out[k]->out_rows = default_rows(n, n->out[k]->out_shape);
        net->error = check_output(n->out[k]);
    }
}

static const struct pm_layer *find_layer(struct pm_net *net, const char *name, const char *where)
{
    const struct pm_layer *layer = pm_layer_find(name);
    const struct pm_layer *const *all;
    const char *names[128];
    size_t count;

    if (layer)
        return layer;
    all = pm_layers(&count);
    for (size_t i = 0; i < count && i < PM_COUNT(names); i++)
        names[i] = all[i]->name;
    if (!net->error) {
        const char *near = pm_nearest(name, names, count);

        net->error = pm_fail(PM_ECONFIG, "%s: no layer is called \"%s\"%s%s%s", where, name,
                             near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    return &input_layer;
}

/* Specs have no length limit: one may contain a list with an entry per class. */
static struct pm_node *add(struct pm_net *net, const char *name, struct pm_node *const *xs,
                           int count, const struct pm_node *share, const char *spec, va_list args)
{
    struct pm_str text = { 0 };
    char layer_name[64];
    const struct pm_layer *layer;
    struct pm_node *n;
    size_t length;

    pm_str_add_args(&text, spec, args);
    length = strcspn(text.text, " ");
    snprintf(layer_name, sizeof layer_name, "%.*s", (int)length, text.text);
    layer = find_layer(net, layer_name, name);
    n = new_node(net, name, layer);
    if (share)
        n->share = (struct pm_node *)share;
    if (!net->error)
        net->error =
            pm_opts_parse_text(layer->opts, text.text + length, n->cfg, net->arena, n->name);
    pm_str_free(&text);
    finish_node(n, xs, count);
    return n;
}

struct pm_node *pm_net_add_many(struct pm_net *net, const char *name, struct pm_node *const *xs,
                                int count, const char *spec, ...)
{
    struct pm_node *n;
    va_list args;

    va_start(args, spec);
    n = add(net, name, xs, count, NULL, spec, args);
    va_end(args);
    return n;
}

struct pm_node *pm_net_add(struct pm_net *net, const char *name, struct pm_node *x,
                           const char *spec, ...)
{
    struct pm_node *n;
    va_list args;

    va_start(args, spec);
    n = add(net, name, &x, 1, NULL, spec, args);
    va_end(args);
    return n;
}

struct pm_node *pm_net_add_shared(struct pm_net *net, const char *name, struct pm_node *x,
                                  const struct pm_node *share, const char *spec, ...)
{
    struct pm_node *n;
    va_list args;

    va_start(args, spec);
    n = add(net, name, &x, 1, share, spec, args);
    va_end(args);
    return n;
}

struct pm_node *pm_net_add_json(struct pm_net *net, const char *name, struct pm_node *const *xs,
                                int count, const char *layer_name, const struct cJSON *options,
                                const struct pm_node *share, const char *where)
{
    static const char *const also[] = { "name", "layer", "inputs", "share", NULL };
    const struct pm_layer *layer = find_layer(net, layer_name, where);
    struct pm_node *n = new_node(net, name, layer);

    if (share)
        n->share = (struct pm_node *)share;
    if (!net->error)
        net->error = pm_opts_parse(layer->opts, options, also, n->cfg, net->arena, where);
    finish_node(n, xs, count);
    return n;
}

/* ---- variables -------------------------------------------------------------------------- */

/* Whether the name is a scope followed by "/" and this suffix. The suffix may have several
 * parts. */
static bool is_of_suffix(const char *name, const char *suffix)
{
    const size_t length = strlen(name), end = strlen(suffix);

    return length > end && name[length - end - 1] == '/' &&
           strcmp(name + length - end, suffix) == 0;
}

static int share_variable(struct pm_node *n, const char *suffix, struct pm_shape shape)
{
    const struct pm_node *s = n->share;
    char want[64], have[64];
    const struct pm_variable *v = NULL;

    if (s->layer != n->layer && s->layer != n->layer->variables_of)
        return pm_fail(PM_ECONFIG,
                       "%s: it shares the variables of %s, which is a %s layer, not a %s layer",
                       n->name, s->name, s->layer->name, n->layer->name);
    for (int k = 0; k < s->var_count && !v; k++)
        if (is_of_suffix(n->net->vars[s->vars[k]]->name, suffix))
            v = n->net->vars[s->vars[k]];
    if (!v)
        return pm_fail(PM_ECONFIG,
                       "%s: it shares the variables of %s, which has no variable \"%s\"", n->name,
                       s->name, suffix);
    if (!pm_shape_equal(v->shape, shape))
        return pm_fail(
            PM_ECONFIG,
            "%s: it shares the variables of %s, whose %s have the shape %s, but it needs %s",
            n->name, s->name, suffix, pm_shape_text(v->shape, have), pm_shape_text(shape, want));
    n->vars[n->var_count++] = v->index;
    return PM_OK;
}

/* Finds a given variable that is already in the net. Returns false if the variable is new. */
static bool find_given(struct pm_node *n, const char *name, struct pm_shape shape, int *err)
{
    char want[64], have[64];

    for (int k = 0; k < n->net->var_count; k++) {
        const struct pm_variable *v = n->net->vars[k];

        if (strcmp(v->name, name) != 0)
            continue;
        *err = PM_OK;
        if (!pm_shape_equal(v->shape, shape))
            *err = pm_fail(
                PM_ECONFIG,
                "%s: it uses the variable %s with the shape %s, another layer with the shape %s",
                n->name, name, pm_shape_text(shape, want), pm_shape_text(v->shape, have));
        n->vars[n->var_count++] = v->index;
        return true;
    }
    return false;
}

int pm_node_variable(struct pm_node *n, const char *suffix, struct pm_shape shape,
                     struct pm_init init, int fan_in, int fan_out, bool trainable, bool regularize)
{
    struct pm_net *net = n->net;
    const struct pm_given *given =
        n->var_count < net->given_count ? &net->given[n->var_count] : NULL;
    struct pm_variable *v;
    int err;

    if (n->share)
        return share_variable(n, suffix, shape);
    if (given && find_given(n, given->name, shape, &err))
        return err;
    if (!fits_int(shape)) {
        char text[64];
        return pm_fail(PM_ECONFIG,
                       "%s: its %s have the shape %s; at most 2^31 - 1 numbers are possible",
                       n->name, suffix, pm_shape_text(shape, text));
    }
    if (given && given->count != pm_shape_count(shape)) {
        char text[64];
        return pm_fail(PM_ECONFIG, "%s: its %s have the shape %s, but %s has %zu numbers", n->name,
                       suffix, pm_shape_text(shape, text), given->name, given->count);
    }
    if (!given && init.count && init.count != pm_shape_count(shape)) {
        char text[64];
        return pm_fail(PM_ECONFIG, "%s: its %s have the shape %s, but the list of their initial "
                       "values has %zu numbers", n->name, suffix, pm_shape_text(shape, text),
                       init.count);
    }
    v = pm_arena_alloc(net->arena, sizeof *v);
    v->name = given ? pm_arena_strdup(net->arena, given->name)
                    : pm_arena_printf(net->arena, "%s/%s", n->scope, suffix);
    for (int k = 0; k < net->var_count && n->scope != n->name; k++)
        if (strcmp(net->vars[k]->name, v->name) == 0)
            return pm_fail(PM_ECONFIG,
                           "%s: the net already has a variable %s: give this layer another scope",
                           n->name, v->name);
    v->shape = shape;
    v->init = given ? given->init : init;
    v->fan_in = fan_in;
    v->fan_out = fan_out;
    v->trainable = given ? given->trainable : trainable;
    v->regularize = regularize;
    v->index = net->var_count;
    PM_GROW(net->vars, net->var_count, net->var_capacity);
    net->vars[net->var_count++] = v;
    n->vars[n->var_count++] = v->index;
    return PM_OK;
}

void pm_node_late(struct pm_node *n, int k)
{
    if (k < n->var_count)
        n->net->vars[n->vars[k]]->late = true;
}
