#include "bench/compile_calls.h"

#include <pumice/plan.h>

#include "optim/optimizer.h"

#define PM_LAYER(name) extern const struct pm_layer_test pm_test_##name;
#include "layers/layers.def"
#undef PM_LAYER

static const struct entry entries[] = {
#define PM_LAYER(name) { #name, &pm_test_##name },
#include "layers/layers.def"
#undef PM_LAYER
};

static const struct {
    const char *net;
    int batch, size, channels, classes;
    const char *optimizer, *options; /* NULL: an evaluation */
} nets[COMPILE_NETS] = {
    { "resnet_v1_50", 32, 224, 3, 1000, "momentum", "" },
    { "resnet_v1_50", 8, 224, 3, 1000, "momentum", "" },
    { "resnet_v1_50", 32, 224, 3, 1000, NULL, "" },
    { "mobilenet_v1", 32, 224, 3, 1000, "rmsprop", "" },
    { "cifarnet", 128, 32, 3, 10, "adam", "" },
    { "lenet", 128, 28, 1, 10, "sgd", "" },
    { "lenet", 128, 28, 1, 10, "adadelta", "" },
    { "lenet", 128, 28, 1, 10, "adagrad", "" },
    { "lenet", 128, 28, 1, 10, "adamw", "" },
    { "lenet", 128, 28, 1, 10, "ftrl", "" },
    { "lenet", 128, 28, 1, 10, "lamb", "" },
    { "lenet", 128, 28, 1, 10, "rmsprop", "centered=true" },
};

/* Adds every variant level that the row offers for the call. */
static void add_call(struct calls *b, const struct pm_planned_call *c)
{
    static struct pm_picks picks;
    struct pm_bound_call call = { .kernel = c->kernel, .label = c->label, .count = c->count,
                                  .params = c->params };
    struct pm_buf_spec spec[PM_MAX_BUFS];
    int bufs = pm_kernel_bufs(c->kernel, spec);

    for (int i = 0; i < bufs; i++)
        if (pm_access_own(spec[i].access) || c->buf[i] >= 0)
            call.buf[i].size = SIZE_MAX; /* present; accepts any size of scratch */
    for (int level = 0; level == 0 || (c->kernel->pick &&
         c->kernel->pick(pm_device_caps(b->device), c->params, c->count, level, &picks)); level++) {
        size_t count = b->count;

        PM_GROW(b->list, b->count, b->capacity);
        PM_GROW(b->levels, count, b->level_capacity);
        b->levels[b->count] = level;
        b->list[b->count++] = call;
    }
}

static int add_cases(struct calls *b)
{
    int err = PM_OK;
    const struct build_options o = { .backward = true, .update = true, .flag = 1,
                                     .calls_only = true };

    for (size_t e = 0; e < PM_COUNT(entries); e++)
        for (const struct check_case *c = entries[e].test->cases; c->options; c++) {
            struct subject *s;

            PM_GROW(b->subjects, b->subject_count, b->subject_capacity);
            err = subject_build(&entries[e], c, &o, &s);
            b->subjects[b->subject_count++] = s;
            PM_TRY(err);
            for (int i = 0; i < s->calls.call_count; i++)
                add_call(b, &s->calls.calls[i]);
        }
out:
    return err;
}

static int build_net(size_t n, struct pm_net **out)
{
    int err = PM_OK;
    const struct pm_net_row *row = pm_net_row_find(nets[n].net);
    struct pm_net *net = *out = pm_net_create();
    void *cfg = pm_arena_alloc(net->arena, row->cfg_size + 1);
    struct pm_heads heads = { 0 };
    struct pm_node *images, *labels;

    images = pm_net_input(net, "images", PM_SHAPE4(nets[n].batch, nets[n].size, nets[n].size,
                                                   nets[n].channels), PM_F32);
    labels = pm_net_input(net, "labels", PM_SHAPE1(nets[n].batch), PM_I32);
    if (row->opts)
        PM_TRY(pm_opts_parse(row->opts, NULL, NULL, cfg, net->arena, "model"));
    row->build(net, images, nets[n].classes, cfg, &heads);
    pm_net_add_many(net, "loss", (struct pm_node *[]){ pm_heads_main(&heads), labels }, 2,
                    "softmax_cross_entropy");
    err = net->error;
out:
    return err;
}

/* Sets a plan's options to those of a training step. The caller keeps `update`. */
static int add_update(struct calls *b, size_t n, struct pm_update *update,
                      struct pm_plan_options *o, const char *const **slots)
{
    int err = PM_OK;
    const struct pm_optimizer *optimizer = pm_optimizer_find(nets[n].optimizer);
    void *cfg = pm_arena_alloc(b->net[n]->arena, optimizer->cfg_size + 1);

    PM_TRY(pm_opts_parse_text(optimizer->opts, nets[n].options, cfg, b->net[n]->arena, "optim"));
    *update = (struct pm_update){ .optimizer = optimizer, .layers = true, .averages = true,
                                  .cfg = cfg };
    *o = (struct pm_plan_options){ .train = true, .loss_share = 1, .update = pm_update_append,
                                   .update_ctx = update };
    *slots = pm_optimizer_slots(optimizer, cfg);
out:
    return err;
}

static int add_net(struct calls *b, size_t n)
{
    int err = PM_OK;
    const char *const *slots = NULL;
    const struct pm_planned_call *calls;
    struct pm_update update;
    struct pm_plan_options o = { 0 };
    size_t count;

    PM_TRY(build_net(n, &b->net[n]));
    if (nets[n].optimizer)
        PM_TRY(add_update(b, n, &update, &o, &slots));
    PM_TRY(pm_variables_create(b->device, b->net[n], nets[n].optimizer, slots, &b->variables[n]));
    if (nets[n].optimizer)
        pm_variables_keep_averages(b->variables[n]);
    PM_TRY(pm_plan_create(b->net[n], b->device, b->variables[n], &o, &b->plan[n]));
    calls = pm_plan_calls(b->plan[n], &count);
    for (size_t i = 0; i < count; i++)
        add_call(b, &calls[i]);
out:
    return err;
}

int calls_add(struct calls *b, struct pm_device *device)
{
    int err = PM_OK;

    b->device = device;
    for (size_t n = 0; n < COMPILE_NETS; n++) {
        PM_TRY(add_net(b, n));
        b->net_end[n] = b->count;
    }
    PM_TRY(add_cases(b));
out:
    return err;
}

void calls_free(struct calls *b)
{
    for (size_t i = 0; i < b->subject_count; i++)
        subject_free(&b->subjects[i]);
    for (size_t n = 0; n < COMPILE_NETS; n++) {
        pm_plan_destroy(&b->plan[n]);
        pm_variables_destroy(&b->variables[n]);
        pm_net_destroy(&b->net[n]);
    }
    pm_free(b->subjects);
    pm_free(b->list);
    pm_free(b->levels);
}

const char *calls_net(const struct calls *b, size_t i)
{
    size_t n = 0;

    while (n < COMPILE_NETS && i >= b->net_end[n])
        n++;
    return n < COMPILE_NETS ? nets[n].net : NULL;
}
