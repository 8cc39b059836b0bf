/* deeplab_cell: the dense prediction cell, found by search, which replaces the pyramid pooling. A
 * JSON file lists its branches:
 *     [{"op": "conv", "kernel": 3, "rate": [1, 6], "input": -1},
 *      {"op": "conv", "kernel": 1, "input": 0},
 *      {"op": "pyramid_pooling", "grid_size": [2, 2], "input": -1}]
 * input is the backbone's map (-1) or an earlier branch. A convolution larger than 1x1 is
 * separable. Its rates, for rows and columns, hold for output stride 16 and grow on finer maps.
 * Pooling averages windows of the size of one grid cell of the image, and its output is enlarged
 * again. All branches are joined, then dropout and a 1x1 convolution follow. */
#include "nets/deeplab.h"

#include <cjson/cJSON.h>
#include <string.h>

enum { WIDTH = 256 };

struct branch {
    bool pooling;
    int input, kernel[2], rate[2], grid[2];
};

/* ---- the file -------------------------------------------------------------------------- */

static bool is_whole(const cJSON *v, int min, int max)
{
    return cJSON_IsNumber(v) && v->valuedouble == v->valueint && v->valueint >= min &&
           v->valueint <= max;
}

/* Reads one number for both axes, or two numbers. */
static int read_pair(const char *where, const cJSON *o, const char *key, int max, int pair[2])
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    const bool list = cJSON_IsArray(v) && cJSON_GetArraySize(v) == 2;

    for (int i = 0; i < 2; i++) {
        const cJSON *number = list ? cJSON_GetArrayItem(v, i) : v;

        if (!is_whole(number, 1, max))
            return pm_fail(PM_ECONFIG,
                           "%s.%s: must be a whole number in 1..%d, or a list of two, of rows "
                           "and of columns",
                           where, key, max);
        pair[i] = number->valueint;
    }
    return PM_OK;
}

static int check_keys(const char *where, const cJSON *o, const char *const *keys, size_t count)
{
    for (const cJSON *v = o->child; v; v = v->next) {
        size_t k = 0;

        while (k < count && strcmp(v->string, keys[k]) != 0)
            k++;
        if (k == count)
            return pm_fail(PM_ECONFIG, "%s.%s: is no key of this operation", where, v->string);
    }
    return PM_OK;
}

static int read_branch(const char *where, const cJSON *o, int index, struct branch *b)
{
    static const char *const conv[] = { "op", "input", "kernel", "rate" };
    static const char *const pooling[] = { "op", "input", "grid_size" };
    const cJSON *input = cJSON_GetObjectItemCaseSensitive(o, "input");
    const char *op = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "op"));
    int err = PM_OK;

    *b = (struct branch){ .rate = { 1, 1 }, .grid = { 1, 1 } };
    if (!op || (strcmp(op, "conv") != 0 && strcmp(op, "pyramid_pooling") != 0))
        return pm_fail(PM_ECONFIG, "%s.op: must be \"conv\" or \"pyramid_pooling\"", where);
    if (!is_whole(input, -1, index - 1))
        return pm_fail(PM_ECONFIG,
                       "%s.input: must be -1, the backbone's map, or an earlier branch up to "
                       "%d",
                       where, index - 1);
    b->input = input->valueint;
    b->pooling = strcmp(op, "conv") != 0;
    if (b->pooling) {
        PM_TRY(check_keys(where, o, pooling, PM_COUNT(pooling)));
        PM_TRY(read_pair(where, o, "grid_size", 64, b->grid));
    } else {
        PM_TRY(check_keys(where, o, conv, PM_COUNT(conv)));
        PM_TRY(read_pair(where, o, "kernel", 31, b->kernel));
        if (b->kernel[0] > 1 || b->kernel[1] > 1)
            PM_TRY(read_pair(where, o, "rate", 128, b->rate));
    }
out:
    return err;
}

static int read_list(struct pm_arena *a, const char *path, const cJSON *list,
                     struct branch branches[], int *count)
{
    int err = PM_OK;

    *count = 0;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) < 1 ||
        cJSON_GetArraySize(list) > PM_MAX_JOINED)
        PM_TRY(
            pm_fail(PM_ECONFIG, "%s: a cell is a list of 1 to %d branches", path, PM_MAX_JOINED));
    for (const cJSON *v = list->child; v; v = v->next, ++*count)
        PM_TRY(read_branch(pm_arena_printf(a, "%s: [%d]", path, *count), v, *count,
                           &branches[*count]));
out:
    return err;
}

static int read_cell(struct pm_arena *a, const char *path, struct branch branches[], int *count)
{
    int err = PM_OK;
    cJSON *list = NULL;
    char *text = NULL;

    if (!pm_file_exists(path))
        PM_TRY(pm_fail(PM_ECONFIG,
                       "model.dense_prediction_cell: %s is not there: give the path of a cell's "
                       "JSON file",
                       path));
    PM_TRY(pm_text_read(path, PM_MOST_TEXT, &text));
    PM_TRY(pm_json_parse(path, text, &list));
    PM_TRY(read_list(a, path, list, branches, count));
out:
    cJSON_Delete(list);
    pm_free(text);
    return err;
}

/* ---- the layers ------------------------------------------------------------------------- */

static struct pm_node *pooled(const struct pm_deeplab *d, const char *name, const struct branch *b,
                              struct pm_node *x)
{
    struct pm_arena *a = d->net->arena;
    int size[2];

    x = pm_deeplab_average(d, pm_arena_printf(a, "%s/average", name), x, b->grid,
                           (const int[]){ 1, 1 });
    x = pm_nets_conv_bn(d->net, &d->norm, name, x, "activation=relu", "conv2d filters=%d kernel=1",
                        WIDTH);
    pm_deeplab_map(d, d->o->nets.output_stride, size);
    return pm_deeplab_resize(d, pm_arena_printf(a, "%s/resized", name), x, size);
}

static struct pm_node *convolved(const struct pm_deeplab *d, const char *name,
                                 const struct branch *b, struct pm_node *x)
{
    const int finer = 16 / d->o->nets.output_stride;
    struct pm_arena *a = d->net->arena;

    if (b->kernel[0] == 1 && b->kernel[1] == 1)
        return pm_nets_conv_bn(d->net, &d->norm, name, x, "activation=relu",
                               "conv2d filters=%d kernel=1", WIDTH);
    x = pm_nets_conv_bn(d->net, &d->norm, pm_arena_printf(a, "%s_depthwise", name), x,
                        "activation=relu", "depthwise_conv2d kernel=[%d,%d] dilation=[%d,%d] "
                        "regularize=false weights_init=truncated(0.33)", b->kernel[0], b->kernel[1],
                        b->rate[0] * finer, b->rate[1] * finer);
    return pm_nets_conv_bn(d->net, &d->norm, pm_arena_printf(a, "%s_pointwise", name), x,
                           "activation=relu", "conv2d filters=%d kernel=1 "
                           "weights_init=truncated(0.06)", WIDTH);
}

struct pm_node *pm_deeplab_cell(const struct pm_deeplab *d, struct pm_node *x)
{
    struct pm_net *net = d->net;
    const char *scope = pm_arena_printf(net->arena, "meta_architecture%s", d->instance), *name;
    struct branch branches[PM_MAX_JOINED];
    struct pm_node *made[PM_MAX_JOINED];
    int count = 0;

    if (!net->error && d->o->nets.output_stride > 16)
        net->error =
            pm_fail(PM_ECONFIG, "model.dense_prediction_cell: its rates are for output strides "
                                "up to 16: set model.output_stride to 16 or 8");
    if (!net->error)
        net->error = read_cell(net->arena, d->o->dense_prediction_cell, branches, &count);
    if (net->error)
        return x;
    for (int i = 0; i < count; i++) {
        struct pm_node *in = branches[i].input < 0 ? x : made[branches[i].input];

        name = pm_arena_printf(net->arena, "%s/branch%d", scope, i);
        made[i] = branches[i].pooling ? pooled(d, name, &branches[i], in)
                                      : convolved(d, name, &branches[i], in);
    }
    x = made[0];
    if (count > 1)
        x = pm_net_add_many(net, pm_arena_printf(net->arena, "%s/joined", scope), made, count,
                            "concat");
    name = pm_arena_printf(net->arena, "%s/concat_projection", scope);
    x = pm_net_add(net, pm_arena_printf(net->arena, "%s_dropout", name), x, "dropout keep=%.9g",
                   (double)d->o->nets.keep_prob);
    return pm_nets_conv_bn(net, &d->norm, name, x, "activation=relu", "conv2d filters=%d kernel=1",
                           WIDTH);
}
