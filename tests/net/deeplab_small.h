/* deeplab_small: a DeepLab net with a small backbone that has the strides of the real ones, for
 * tests of the layers after the backbone. */
#ifndef PUMICE_TESTS_DEEPLAB_SMALL_H
#define PUMICE_TESTS_DEEPLAB_SMALL_H

#include "named_net.h"

#include "nets/deeplab.h"

/* Maps of 8 channels at strides 2, 4, 8 and 16, or dilated from output_stride on. */
static struct pm_node *small(struct pm_net *net, struct pm_node *x,
                             const struct pm_deeplab_options *o)
{
    struct pm_nets_atrous atrous;

    if (!pm_nets_atrous_begin(net, "small", &o->nets, 4, 32, &atrous))
        return x;
    for (int i = 0; i < 5; i++) {
        int stride = 2, rate;

        pm_nets_atrous_step(&atrous, &stride, &rate);
        x = pm_net_add(net, pm_arena_printf(net->arena, "small/conv%d", i), x,
                       "conv2d filters=8 kernel=3 stride=%d dilation=%d activation=relu", stride,
                       rate);
    }
    return x;
}

static const struct pm_backbone pm_backbone_small = {
    .name = "small", .min_stride = 4, .max_stride = 32, .build = small,
    .low = { "small/conv1", "small/conv2", NULL },
};

PM_DEEPLAB(small, "a small one", "deeplab", 4e-5f, 0.9, 1e-3f, PM_DEEPLAB_INSTANCE_OPTIONS, { 0 });

static inline struct pm_net *make(const char *options, int height, int width, int classes,
                           struct pm_heads *heads)
{
    const struct pm_net_row *row = &pm_net_row_deeplab_small;
    cJSON *json = cJSON_Parse(options);
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(2, height, width, 3), PM_F32);
    void *cfg = pm_arena_alloc(net->arena, row->cfg_size);

    assert_non_null(json);
    if (pm_opts_parse(row->opts, json, NULL, cfg, net->arena, "model") != PM_OK)
        fail_msg("%s", pm_error_text());
    *heads = (struct pm_heads){ 0 };
    row->build(net, images, classes, cfg, heads);
    cJSON_Delete(json);
    return net;
}

static inline struct pm_net *built(const char *options, int height, int width)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = make(options, height, width, 5, &heads);

    if (net->error)
        fail_msg("%s: %s", options, pm_error_text());
    return net;
}

/* Checks the JSON text of an option. */
static inline void expect_text(const struct pm_net *net, const char *node, const char *key,
                               const char *want)
{
    const struct pm_node *n = pm_net_find(net, node);
    cJSON *o = cJSON_CreateObject();
    char *have;

    if (!n)
        fail_msg("no node %s", node);
    pm_opts_dump(n->layer->opts, n->cfg, o, false);
    cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    have = cJSON_IsString(v) ? strdup(v->valuestring) : cJSON_PrintUnformatted(v);
    if (!have || strcmp(have, want) != 0)
        fail_msg("%s: %s is %s, not %s", node, key, have ? have : "missing", want);
    free(have);
    cJSON_Delete(o);
}

static inline void expect_error(const char *options, const char *words)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = make(options, 65, 65, 5, &heads);

    if (net->error != PM_ECONFIG)
        fail_msg("%s is taken", options);
    assert_contains(pm_error_text(), words);
    pm_net_destroy(&net);
}

#endif
