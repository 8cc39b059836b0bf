/* Reads nets from JSON layer lists and writes them.
 *
 *     [ {"name": "conv1", "layer": "conv2d", "filters": 16, "kernel": 3},
 *       {"repeat": 3, "layers": [
 *           {"name": "unit%d/conv", "layer": "conv2d", "filters": 16, "kernel": 3},
 *           {"name": "unit%d", "layer": "add", "inputs": ["@previous", "@input"]} ]},
 *       {"layer": "global_pool"}, ... ]
 *
 * The input of a layer is the layer before it, or the layers named by "inputs". "inputs" may name
 * any earlier layer, "images", "@previous" (the layer before it in the list) or, inside a repeat,
 * "@input" (the input of this round). In a repeat, "%d" is replaced by the round, counted from 1.
 * Nested repeats name their own placeholder with "as". "share" names a layer whose variables are
 * used. A layer without a name is named after its kind: conv2d_1, conv2d_2. A layer's name refers
 * to its first output. "NAME:1" and "NAME:2" are the further outputs of a layer; "NAME:0" equals
 * NAME. */
#include <pumice/net.h>

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 10000, MAX_NODES = 10000 };

/* One level of repeat around an item; the list starts at the innermost level. */
struct repeat {
    const struct repeat *outer;
    const char *placeholder;
    int round;
    struct pm_node *input;
};
/* Reading position: the owner of the list and the input of the next layer. */
struct reader {
    struct pm_net *net;
    const char *input; /* the list's name of x */
    struct pm_node *x, *previous;
    int first; /* first node of the list */
};

/* ---- reading ----------------------------------------------------------------------------- */

/* Returns " (nearest is "x")", or "" if no name is similar. */
static const char *hint(struct pm_arena *a, const char *name, const char *const *names, size_t n)
{
    const char *nearest = pm_nearest(name, names, n);
    return nearest ? pm_arena_printf(a, " (nearest is \"%s\")", nearest) : "";
}

/* Returns text with the placeholder of every enclosing repeat replaced by its round. */
static const char *expand(struct pm_arena *a, const char *text, const struct repeat *r)
{
    for (; r; r = r->outer) {
        const size_t length = strlen(r->placeholder);
        struct pm_str s = { 0 };
        for (const char *p = text, *hit; *p; p = hit + length) {
            hit = strstr(p, r->placeholder);
            if (!hit) {
                pm_str_add(&s, "%s", p);
                break;
            }
            pm_str_bytes(&s, p, (size_t)(hit - p));
            pm_str_add(&s, "%d", r->round);
        }
        text = pm_arena_strdup(a, s.text ? s.text : "");
        pm_str_free(&s);
    }
    return text;
}

/* Reads the string member `key` and expands it. *out is NULL if the member is absent. */
static int get_text(struct pm_arena *a, const cJSON *item, const char *key, const struct repeat *r,
                    const char *where, const char **out)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(item, key);

    *out = NULL;
    if (!v)
        return PM_OK;
    if (!cJSON_IsString(v) || !v->valuestring[0])
        return pm_fail(PM_ECONFIG, "%s.%s: must be a non-empty text", where, key);
    *out = expand(a, v->valuestring, r);
    return PM_OK;
}

static int find_layer(struct pm_arena *a, const char *name, const char *where,
                      const struct pm_layer **out)
{
    size_t count;
    const struct pm_layer *const *layers = pm_layers(&count);

    *out = pm_layer_find(name);
    if (*out)
        return PM_OK;
    const char **names = pm_arena_alloc(a, count * sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = layers[i]->name;
    return pm_fail(PM_ECONFIG, "%s.layer: there is no layer \"%s\"%s", where, name,
                   hint(a, name, names, count));
}

/* Finds the node of "NAME:k". *out is NULL if NAME is no layer. Fails if the layer has no output
 * k. */
static int find_output(struct pm_net *net, const char *name, const char *where, const char *key,
                       struct pm_node **out)
{
    const char *colon = strrchr(name, ':');
    const struct pm_node *n = NULL;
    char *end;

    *out = NULL;
    if (colon && colon[1] >= '0' && colon[1] <= '9')
        n = pm_net_find(net, pm_arena_printf(net->arena, "%.*s", (int)(colon - name), name));
    if (!n || n->output)
        return PM_OK;
    const long k = strtol(colon + 1, &end, 10);
    if (*end || k >= n->outputs)
        return pm_fail(PM_ECONFIG, "%s.%s: \"%s\": the outputs of the layer \"%s\" are \"%s:0\" to "
                       "\"%s:%d\"", where, key, name, n->name, n->name, n->name, n->outputs - 1);
    *out = n->out[k];
    return PM_OK;
}

/* Returns the name that a list gives a node: the prefix is left out. */
static const char *name_in_list(const struct pm_net *net, const struct pm_node *n)
{
    const size_t length = net->prefix ? strlen(net->prefix) : 0;
    const bool below = length && strncmp(n->name, net->prefix, length) == 0 &&
                       n->name[length] == '/';

    return below ? n->name + length + 1 : n->name;
}

/* Finds the node that member `key` names. */
static int find_node(const struct reader *in, const char *name, const struct repeat *r,
                     const char *where, const char *key, struct pm_node **out)
{
    struct pm_net *net = in->net;
    int err;

    if (strcmp(name, "@previous") == 0)
        *out = in->previous;
    else if (strcmp(name, "@input") == 0 && r)
        *out = r->input;
    else if (strcmp(name, in->input) == 0)
        *out = in->x;
    else
        *out = pm_net_find(net, name);
    if (!*out && (err = find_output(net, name, where, key, out)) < 0)
        return err;
    if (*out)
        return PM_OK;
    if (strcmp(name, "@input") == 0)
        return pm_fail(PM_ECONFIG, "%s.%s: \"@input\" has a meaning only inside a repeat; use "
                       "\"%s\" or a layer's name", where, key, in->input);
    const size_t count = (size_t)net->count;
    const char **names = pm_arena_alloc(net->arena, (count + 1) * sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = name_in_list(net, net->nodes[i]);
    names[count] = in->input;
    return pm_fail(PM_ECONFIG, "%s.%s: there is no layer \"%s\" before this one%s", where, key,
                   name, hint(net->arena, name, names, count + 1));
}

static int find_inputs(const struct reader *in, const cJSON *v, const struct repeat *r,
                       const char *where, struct pm_node *xs[PM_MAX_INPUTS], int *count)
{
    xs[0] = in->previous;
    *count = 1;
    if (!v)
        return PM_OK;
    const bool list = cJSON_IsArray(v);
    *count = list ? cJSON_GetArraySize(v) : 1;
    if (*count < 1 || *count > PM_MAX_INPUTS)
        return pm_fail(PM_ECONFIG, "%s.inputs: %d names are outside 1..%d", where, *count,
                       PM_MAX_INPUTS);
    v = list ? v->child : v;
    for (int i = 0; i < *count; i++, v = v->next) {
        int err;
        if (!cJSON_IsString(v))
            return pm_fail(PM_ECONFIG, "%s.inputs: must be a layer's name or a list of names",
                           where);
        const char *name = expand(in->net->arena, v->valuestring, r);
        if ((err = find_node(in, name, r, where, "inputs", &xs[i])) < 0)
            return err;
    }
    return PM_OK;
}

/* Returns a name like "conv2d_3": the kind and the number of such nodes in the list so far.
 * Counting per list gives the same names in every pass. */
static const char *default_name(const struct reader *in, const struct pm_layer *layer)
{
    const struct pm_net *net = in->net;
    int number = 1;

    for (int i = in->first; i < net->count; i++)
        number += net->nodes[i]->layer == layer;
    return pm_arena_printf(net->arena, "%s_%d", layer->name, number);
}

/* Adds the number of valid rows to the inputs of a batch norm that counts only these. One that is
 * frozen counts none. */
static void add_valid_rows(const struct pm_net *net, const struct pm_layer *layer,
                           const cJSON *item, struct pm_node *xs[PM_MAX_INPUTS], int *count)
{
    if (!net->valid_rows || strcmp(layer->name, "batch_norm") != 0 || *count == PM_MAX_INPUTS ||
        cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "frozen")))
        return;
    for (int i = 0; i < *count; i++)
        if (xs[i] == net->valid_rows)
            return;
    xs[(*count)++] = net->valid_rows;
}

static int read_layer(struct reader *in, const cJSON *item, const struct repeat *r,
                      const char *where)
{
    int err = PM_OK;
    struct pm_net *net = in->net;
    const struct pm_layer *layer;
    const char *kind, *name, *share;
    struct pm_node *xs[PM_MAX_INPUTS], *from = NULL;
    int count;

    PM_TRY(get_text(net->arena, item, "layer", NULL, where, &kind));
    if (!kind)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: needs \"layer\" (or \"repeat\" and \"layers\")", where));
    PM_TRY(find_layer(net->arena, kind, where, &layer));
    PM_TRY(get_text(net->arena, item, "name", r, where, &name));
    if (!name)
        name = default_name(in, layer);
    if (strcmp(name, in->input) == 0)
        PM_TRY(pm_fail(PM_ECONFIG, "%s.name: \"%s\" is the name of the list's input: choose "
                       "another", where, name));
    const struct pm_node *same = pm_net_find(net, name);
    /* A pass and a prefix may use names of layers before the list again. */
    if (same && ((!net->pass && !net->prefix) || same->index >= in->first))
        PM_TRY(pm_fail(PM_ECONFIG, "%s.name: \"%s\" is the name of an earlier layer%s", where, name,
                       r ? "; inside a repeat names contain its placeholder, %d" : ""));
    if (net->count >= MAX_NODES)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: more than %d layers", where, MAX_NODES));
    PM_TRY(find_inputs(in, cJSON_GetObjectItemCaseSensitive(item, "inputs"), r, where, xs, &count));
    add_valid_rows(net, layer, item, xs, &count);

    PM_TRY(get_text(net->arena, item, "share", r, where, &share));
    if (share)
        PM_TRY(find_node(in, share, r, where, "share", &from));
    if (from && ((from->layer != layer && from->layer != layer->variables_of) ||
                 from->var_count == 0))
        PM_TRY(pm_fail(PM_ECONFIG, "%s.share: \"%s\" shares with \"%s\", which must be a %s layer "
                       "with variables", where, name, from->name, kind));
    in->previous = pm_net_add_json(net, name, xs, count, kind, item, from, where);
    if (net->error && strncmp(pm_error_text(), where, strlen(where)) != 0) /* of its shape */
        pm_fail(net->error, "%s: %s", where, pm_error_text());
    err = net->error;
out:
    return err;
}

static int read_list(struct reader *in, const cJSON *list, const struct repeat *r,
                     const char *where);

static int read_repeat(struct reader *in, const cJSON *item, const struct repeat *outer,
                       const char *where)
{
    int err = PM_OK;
    struct pm_arena *a = in->net->arena;
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(item, "repeat");
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(item, "layers");
    struct repeat r = { .outer = outer };

    for (const cJSON *v = item->child; v; v = v->next)
        if (strcmp(v->string, "repeat") && strcmp(v->string, "layers") && strcmp(v->string, "as"))
            PM_TRY(pm_fail(PM_ECONFIG, "%s.%s: a repeat has only \"repeat\", \"layers\" and \"as\"",
                           where, v->string));
    if (!cJSON_IsNumber(n) || n->valuedouble != n->valueint || n->valueint < 1 ||
        n->valueint > MAX_ROUNDS)
        PM_TRY(pm_fail(PM_ECONFIG, "%s.repeat: must be an integer in 1..%d", where, MAX_ROUNDS));
    PM_TRY(get_text(a, item, "as", NULL, where, &r.placeholder));
    if (!r.placeholder)
        r.placeholder = "%d";
    for (const struct repeat *o = outer; o; o = o->outer)
        if (strstr(o->placeholder, r.placeholder) || strstr(r.placeholder, o->placeholder))
            PM_TRY(pm_fail(PM_ECONFIG,
                           "%s.as: an enclosing repeat has the placeholder \"%s\"; give "
                           "this one another, as in \"as\": \"%%e\"",
                           where, o->placeholder));
    for (r.round = 1; r.round <= n->valueint; r.round++) {
        r.input = in->previous;
        PM_TRY(read_list(in, layers, &r, pm_arena_printf(a, "%s.layers", where)));
    }
out:
    return err;
}

static int read_list(struct reader *in, const cJSON *list, const struct repeat *r,
                     const char *where)
{
    int err = PM_OK, i = 0;

    if (!cJSON_IsArray(list) || !list->child)
        return pm_fail(PM_ECONFIG, "%s: must be a list of at least one layer", where);
    for (const cJSON *item = list->child; item; item = item->next, i++) {
        const char *place = pm_arena_printf(in->net->arena, "%s[%d]", where, i);
        if (!cJSON_IsObject(item))
            return pm_fail(PM_ECONFIG, "%s: must be an object with \"layer\"", place);
        const bool repeats = cJSON_HasObjectItem(item, "repeat");
        err = repeats ? read_repeat(in, item, r, place) : read_layer(in, item, r, place);
        if (err < 0)
            return err;
    }
    return PM_OK;
}

int pm_net_part_from_json(struct pm_net *net, struct pm_node *x, const char *input,
                          const cJSON *list, const char *where, struct pm_node **out)
{
    struct reader in = { .net = net, .input = input, .x = x, .previous = x,
                         .first = net->count };
    const int err = net->error ? net->error : read_list(&in, list, NULL, where);

    if (err < 0)
        net->error = err;
    *out = in.previous;
    return err;
}

int pm_net_from_json(struct pm_net *net, struct pm_node *images, const cJSON *list,
                     const char *where, struct pm_heads *heads)
{
    struct pm_node *last;
    const int err = pm_net_part_from_json(net, images, "images", list, where, &last);

    if (err < 0)
        return err;
    struct pm_node *named = pm_net_find(net, "logits");

    *heads = (struct pm_heads){ 0 };
    pm_heads_add(net, heads, "logits", named ? named : last);
    return PM_OK;
}

/* ---- writing ----------------------------------------------------------------------------- */

/* Whether the node is written to the list. Inputs of the net are not. Further outputs are not
 * either: they come with their layer. */
static bool is_listed(const struct pm_node *n)
{
    return n->inputs > 0 && !n->output;
}

static cJSON *layer_to_json(const struct pm_node *n, const struct pm_node *previous)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", n->name);
    cJSON_AddStringToObject(o, "layer", n->layer->name);
    if (n->inputs != 1 || n->in[0] != previous) {
        cJSON *inputs = cJSON_AddArrayToObject(o, "inputs");
        for (int i = 0; i < n->inputs; i++)
            cJSON_AddItemToArray(inputs, cJSON_CreateString(n->in[i]->name));
    }
    if (n->share && n->var_count)
        cJSON_AddStringToObject(o, "share", n->share->name);
    if (n->layer->opts)
        pm_opts_dump(n->layer->opts, n->cfg, o, true);
    return o;
}

struct cJSON *pm_net_to_json(const struct pm_net *net)
{
    cJSON *list = cJSON_CreateArray();
    const struct pm_node *previous = net->count ? net->nodes[0] : NULL;

    for (int i = 0; i < net->count; i++) {
        const struct pm_node *n = net->nodes[i];
        if (!is_listed(n))
            continue;
        cJSON_AddItemToArray(list, layer_to_json(n, previous));
        previous = n;
    }
    return list;
}
