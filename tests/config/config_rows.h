/* Rows as higher levels pass them to the config, and a config loaded with them. */
#ifndef PUMICE_TESTS_CONFIG_ROWS_H
#define PUMICE_TESTS_CONFIG_ROWS_H

#include "base/unit.h"

#include "config/config_private.h"

#include <pumice/task.h>

/* Optimizers that share a key, nets, preprocessings, augmentations. */
struct momentum_cfg {
    float momentum;
    bool nesterov;
};
static const struct pm_opt momentum_opts[] = {
    PM_FLOAT(momentum_cfg, momentum, 0.9, 0, 1, "decay of the sum"),
    PM_BOOL(momentum_cfg, nesterov, false, "look ahead"),
    { 0 },
};
struct adam_cfg {
    float beta1;
    const char *note;
};
static const struct pm_opt adam_opts[] = {
    PM_FLOAT(adam_cfg, beta1, 0.9, 0, 0.999, "decay of the mean"),
    PM_STRING(adam_cfg, note, NULL, "a text"),
    { 0 },
};
struct net_cfg {
    float keep_prob;
};
static const struct pm_opt net_opts[] = {
    PM_FLOAT(net_cfg, keep_prob, 0.5, 0.01, 1, "share kept"),
    { 0 },
};
struct pre_cfg {
    bool fast;
};
static const struct pm_opt pre_opts[] = {
    PM_BOOL(pre_cfg, fast, true, "cheaper colours"),
    { 0 },
};
static const struct pm_open_row nets[] = { { "lenet", "digits", net_opts, "plain",
                                             .task = "classification" },
                                           { "cifarnet", "photographs", NULL, "rich" } };
static const struct pm_open_row optimizers[] = { { "momentum", "", momentum_opts, NULL },
                                                 { "adam", "", adam_opts, NULL },
                                                 { "rmsprop", "", NULL, NULL } };
static const struct pm_open_row pres[] = { { "plain", "", NULL, NULL },
                                           { "rich", "", pre_opts, NULL } };
struct turn_cfg {
    double angle;
};
static const struct pm_opt turn_opts[] = {
    PM_DOUBLE(turn_cfg, angle, 10, 0, 180, "degrees"),
    { 0 },
};
static const struct pm_open_row augmentations[] = { { "turn", "", turn_opts, NULL },
                                                    { "flip", "", NULL, NULL } };
/* The tasks are those of the program. */
static struct pm_open_sections rows = {
    { nets, 2 }, { optimizers, 3 }, { pres, 2 }, { augmentations, 2 }, NULL, 0,
};

static inline struct pm_config *load(const char *text, const char *const *overrides, size_t n)
{
    struct pm_config *c = NULL;

    if (pm_config_parse("t.json", text, overrides, n, &rows, &c) < 0)
        fail_msg("%s", pm_error_text());
    return c;
}

/* A config with this list as input.buckets. */
#define BUCKETS(list)                                                                             \
    "{\"task\": \"segmentation\", \"model\": {\"layers\": []},\n\"input\": {\"buckets\": " list  \
    "}}"

#endif
