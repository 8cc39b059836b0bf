/* Shared by the tests of named nets: builds a net for a batch of images, adds losses to its
 * heads, and checks nodes. */
#ifndef NAMED_NET_H
#define NAMED_NET_H

#include "../base/unit.h"

#include <pumice/net.h>

#include <cjson/cJSON.h>

/* Builds a net from a layer list in JSON for `batch` images of 3 channels. The net may hold an
 * error. The caller destroys it. */
static inline struct pm_net *list_net(const char *text, int batch, int height, int width,
                                      struct pm_heads *heads)
{
    struct pm_net *net = pm_net_create();
    cJSON *list = cJSON_Parse(text);

    assert_non_null(list);
    *heads = (struct pm_heads){ 0 };
    pm_net_from_json(net, pm_net_input(net, "images", PM_SHAPE4(batch, height, width, 3), PM_F32),
                     list, "list", heads);
    cJSON_Delete(list);
    return net;
}

/* Builds the net for `batch` images; options is JSON text or NULL. A name that begins with "["
 * is a layer list, which has no options. The net may hold an error. The caller destroys it. */
static inline struct pm_net *named_net(const char *name, int batch, int height, int width,
                                       int classes, const char *options, struct pm_heads *heads)
{
    if (name[0] == '[')
        return list_net(name, batch, height, width, heads);
    cJSON *json = options ? cJSON_Parse(options) : NULL;
    const struct pm_net_row *row = pm_net_row_find(name);
    struct pm_net *net = pm_net_create();

    assert_non_null(row);
    row = pm_net_row_variant(row, json);
    assert_true(!options || json);
    struct pm_node *images = pm_net_input(
        net, "images", PM_SHAPE4(batch, height, width, row->default_channels), PM_F32);
    void *cfg = pm_arena_alloc(net->arena, row->cfg_size + 1);
    if (row->opts)
        assert_int_equal(pm_opts_parse(row->opts, json, NULL, cfg, net->arena, "model"), PM_OK);
    *heads = (struct pm_heads){ 0 };
    row->build(net, images, classes, cfg, heads);
    cJSON_Delete(json);
    return net;
}

/* Continues a net of named_net with its second stage, for `count` regions of each image. heads
 * receives that stage's heads. */
static inline void named_second_with(struct pm_net *net, const char *name, int count,
                                     int keypoints, int classes, const char *options,
                                     struct pm_heads *heads)
{
    const struct pm_net_row *row = pm_net_row_find(name);
    const int batch = net->nodes[0]->out_shape.dim[0];
    const struct pm_regions regions = {
        .boxes = pm_net_input(net, "regions", PM_SHAPE3(batch, count, 4), PM_F32),
        .count = pm_net_input(net, "count", PM_SHAPE1(batch), PM_I32),
        .keypoints = keypoints,
    };
    cJSON *json = options ? cJSON_Parse(options) : NULL;
    void *cfg = pm_arena_alloc(net->arena, row->cfg_size + 1);

    assert_int_equal(pm_opts_parse(row->opts, json, NULL, cfg, net->arena, "model"), PM_OK);
    *heads = (struct pm_heads){ 0 };
    row->second(net, &regions, classes, cfg, heads);
    cJSON_Delete(json);
}

/* The same for data without keypoints. */
static inline void named_second(struct pm_net *net, const char *name, int count, int classes,
                                const char *options, struct pm_heads *heads)
{
    named_second_with(net, name, count, 0, classes, options, heads);
}

/* Adds labels, and a loss on each head. */
static inline void add_head_losses(struct pm_net *net, const struct pm_heads *heads)
{
    struct pm_node *logits = pm_heads_main(heads), *aux = pm_heads_find(heads, "aux_logits");
    struct pm_node *labels =
        pm_net_input(net, "labels", PM_SHAPE1(logits->out_shape.dim[0]), PM_I32);

    pm_net_add_many(net, "loss", (struct pm_node *[]){ logits, labels }, 2,
                    "softmax_cross_entropy");
    if (aux)
        pm_net_add_many(net, "aux_loss", (struct pm_node *[]){ aux, labels }, 2,
                        "softmax_cross_entropy weight=%.9g",
                        (double)pm_heads_weight(heads, "aux_logits"));
}

static inline void expect_shape(const struct pm_net *net, const char *node, struct pm_shape want)
{
    const struct pm_node *n = pm_net_find(net, node);
    char have[64], text[64];

    if (!n)
        fail_msg("no node %s", node);
    if (!pm_shape_equal(n->out_shape, want))
        fail_msg("%s is %s, not %s", node, pm_shape_text(n->out_shape, have),
                 pm_shape_text(want, text));
}

/* The number of an option, or the first number of a list. */
static inline double option_of(const struct pm_node *n, const char *key)
{
    cJSON *o = cJSON_CreateObject();

    assert_non_null(n);
    pm_opts_dump(n->layer->opts, n->cfg, o, false);
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    if (cJSON_IsArray(v))
        v = cJSON_GetArrayItem(v, 0);
    if (!cJSON_IsNumber(v))
        fail_msg("%s: %s is no number", n->name, key);
    const double value = v->valuedouble;
    cJSON_Delete(o);
    return value;
}

static inline void expect_option(const struct pm_net *net, const char *node, const char *key,
                                 double want)
{
    const struct pm_node *n = pm_net_find(net, node);

    if (!n)
        fail_msg("no node %s", node);
    const double have = option_of(n, key);
    if ((float)have != (float)want)
        fail_msg("%s: %s is %g, not %g", node, key, have, want);
}

/* Builds the net for square images; it must be refused with this message. */
static inline void expect_refusal(const char *name, int size, const char *options,
                                  const char *words)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net(name, 1, size, size, 10, options, &heads);

    assert_int_equal(net->error, PM_ECONFIG);
    assert_contains(pm_error_text(), words);
    pm_net_destroy(&net);
}

/* Returns the variable of this name, which must exist. */
static inline const struct pm_variable *net_variable(const struct pm_net *net, const char *name)
{
    for (int k = 0; k < net->var_count; k++)
        if (strcmp(net->vars[k]->name, name) == 0)
            return net->vars[k];
    fail_msg("no variable %s", name);
    return NULL;
}

/* Fails unless the variable has this shape. */
static inline void expect_sized(const struct pm_net *net, const char *name, struct pm_shape shape)
{
    if (!pm_shape_equal(net_variable(net, name)->shape, shape))
        fail_msg("%s has another shape", name);
}

#endif
