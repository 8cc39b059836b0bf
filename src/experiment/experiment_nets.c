/* experiment_nets: builds and keeps the nets of an experiment, one per use, batch size and picture
 * size. Also makes the plans for evaluation and prediction. */
#include "experiment/experiment_parts.h"

#include "clones/moving.h"
#include "verify/verified_plan.h"

#include <math.h>
#include <string.h>

struct pm_built_net {
    struct pm_net_want want;
    bool plain;
    struct pm_net *net; /* owned */
    struct pm_heads heads;
    struct pm_outputs outputs;
};

struct pm_import_options pm_experiment_import_options(const struct pm_experiment *e)
{
    const struct pm_config_model *m = &e->config->model;

    return (struct pm_import_options){ .logits = m->onnx_logits,
                                       .any_shape = e->task_row->spatial,
                                       .new_head = m->onnx_new_head ? e->facts.num_classes : 0 };
}

/* If the last error is about a list of layers of a stage, puts the list's place before it. */
static bool place_in_list(const struct pm_experiment *e, int err)
{
    static const char *const lists[] = { "model.first_stage_layers", "model.second_stage_layers" };

    for (size_t i = 0; i < PM_COUNT(lists); i++)
        if (strncmp(pm_error_text(), lists[i], strlen(lists[i])) == 0) {
            pm_fail(err, "%s: %s", pm_config_source(e->config, lists[i]), pm_error_text());
            return true;
        }
    return false;
}

/* Builds a named net. If a layer does not fit, the message names the size of the input. */
static void build_named(struct pm_experiment *e, struct pm_net *net, struct pm_node *images,
                        struct pm_heads *heads)
{
    char input[64];

    if (e->task_row->net_ends)
        net->ends = e->task_row->net_ends(e->task);
    e->net_row->build(net, images, e->facts.num_classes, e->net_cfg, heads);
    net->ends = (struct pm_net_ends){ 0 };
    if (net->error && !place_in_list(e, net->error))
        pm_fail(net->error, "%s: model.name: \"%s\" with an input of %s: %s",
                pm_config_source(e->config, "model.name"), e->net_row->name,
                pm_shape_text(images->out_shape, input), pm_error_text());
}

/* Returns the greatest magnitude of preprocessed pixels. 0: it depends on the picture. */
static float largest_of(const struct pm_experiment *e)
{
    const struct pm_preprocessing *p = e->facts.preprocessing;
    struct pm_normal n;
    float largest = 0;

    if (!p || p->normal(e->facts.preprocessing_cfg, e->facts.channels, &n) < 0 || n.own)
        return 0;
    for (int i = 0; i < e->facts.channels && i < (int)PM_COUNT(n.std); i++)
        largest = fmaxf(largest, fmaxf(fabsf(n.mean[i]), fabsf(255 - n.mean[i])) / n.std[i]);
    return largest;
}

/* Quantises the nodes from index `first` on if the config says so. */
static int quantize(const struct pm_experiment *e, struct pm_net *net, int first,
                    struct pm_heads *heads)
{
    const struct pm_config_model *m = &e->config->model;
    const struct pm_quantization how = { m->quantize_delay, m->quantize_freeze_steps,
                                         m->quantize_symmetric, largest_of(e) };

    return how.delay >= 0 && !e->plain ? pm_net_quantize(net, first, &how, heads) : PM_OK;
}

/* Implements pm_net_maker.heads. */
static int build_heads(void *ctx, struct pm_net *net, struct pm_node *images,
                       struct pm_heads *heads)
{
    struct pm_experiment *e = ctx;
    const struct pm_import_options onnx = pm_experiment_import_options(e);
    int first, err = PM_OK;

    if (e->task_row->before_net)
        images = e->task_row->before_net(e->task, net, images);
    PM_TRY(net->error);
    first = net->count; /* of the layers that are quantised */
    if (e->net_row)
        build_named(e, net, images, heads);
    else if (e->onnx)
        PM_TRY(pm_import_net(e->onnx, net, images, &onnx, heads));
    else
        PM_TRY(pm_net_from_json(net, images, e->config->model.layers,
                                pm_arena_printf(e->arena, "%s: model.layers", e->config->path),
                                heads));
    PM_TRY(net->error);
    if (!e->net_row && !e->onnx && e->task_row->find_heads)
        e->task_row->find_heads(net, heads);
    err = e->task_row->check_heads(e->task, heads, images->out_shape.dim[0]);
    if (err == PM_OK)
        err = quantize(e, net, first, heads);
    if (err < 0)
        PM_TRY(pm_fail((enum pm_error)err, "%s: %s", e->config->path, pm_error_text()));
out:
    return err;
}

/* Implements pm_net_maker.second. */
static int build_second(void *ctx, struct pm_net *net, const struct pm_regions *regions,
                        struct pm_heads *heads)
{
    struct pm_experiment *e = ctx;
    const int first = net->count;
    int err = PM_OK;

    PM_TRY(net->error);
    if (!e->net_row || !e->net_row->second)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: the net has no second stage: choose a faster_rcnn net as "
                       "model.name", e->config->path));
    e->net_row->second(net, regions, e->facts.num_classes, e->net_cfg, heads);
    if (net->error && !place_in_list(e, net->error))
        pm_fail(net->error, "%s: model.name: \"%s\", second stage: %s",
                pm_config_source(e->config, "model.name"), e->net_row->name, pm_error_text());
    PM_TRY(net->error);
    PM_TRY(quantize(e, net, first, heads));
out:
    return err;
}

static struct pm_net_maker maker_of(struct pm_experiment *e)
{
    return (struct pm_net_maker){ build_heads, build_second, e };
}

static struct pm_node *add_input(struct pm_net *net, const struct pm_field *f, int batch)
{
    struct pm_shape s = { .rank = f->shape.rank + 1, .dim = { batch } };

    for (int i = 0; i < f->shape.rank; i++)
        s.dim[i + 1] = f->shape.dim[i];
    struct pm_node *n = pm_net_input(net, f->name, s, f->type);
    if (f->values.low < f->values.high)
        pm_net_set_values(n, f->values);
    return n;
}

static int add_losses(struct pm_experiment *e, struct pm_net *net, const struct pm_heads *heads,
                      const struct pm_field_list *fields)
{
    const int batch = net->nodes[0]->out_shape.dim[0];
    const struct pm_net_maker maker = maker_of(e);
    int err = PM_OK;

    for (int i = 1; i < fields->count; i++)
        add_input(net, &fields->list[i], batch);
    e->task_row->add_loss(net, heads, &maker, e->task);
    PM_TRY(net->error);
    PM_TRY(pm_experiment_check_trainable(e, net));
out:
    return err;
}

/* Lists the outputs among the heads, in the order of struct pm_shown. */
static struct pm_outputs outputs_of(struct pm_net *net, const struct pm_heads *heads)
{
    struct pm_outputs out = { 0 };

    for (int i = 0; i < heads->count; i++)
        if (heads->list[i].role == PM_HEAD_OUTPUT)
            pm_outputs_add(net, &out, heads->list[i].node, PM_PLACES_NONE);
    return out;
}

static struct pm_shape shape_of(const struct pm_net_want *w, int channels)
{
    return PM_SHAPE4(w->batch, w->height, w->width, channels);
}

static int build_heads_net(struct pm_experiment *e, const struct pm_net_want *want,
                           struct pm_built_net *out)
{
    int err = PM_OK;

    out->net = pm_net_create();
    PM_TRY(build_heads(e, out->net,
                       pm_net_input(out->net, "images", shape_of(want, e->facts.channels), PM_F32),
                       &out->heads));
    out->outputs = outputs_of(out->net, &out->heads);
out:
    return err;
}

/* Adds the losses after the heads. */
static int build_losses(struct pm_experiment *e, struct pm_built_net *built)
{
    const struct pm_config *c = e->config;
    struct pm_field_list fields = { 0 };
    int err = PM_OK;

    e->task_row->fields(e->task, true,
                        (struct pm_frame){ built->want.height, built->want.width }, &fields);
    PM_TRY(add_losses(e, built->net, &built->heads, &fields));
    PM_TRY(pm_moving_check(built->net, c->devices_count > 1 &&
                           c->run.batch_norm_update == PM_BATCH_NORM_ALL, c->run.micro_batches));
out:
    pm_free(fields.list);
    return err;
}

static int build_outputs(struct pm_experiment *e, const struct pm_net_want *want,
                         struct pm_built_net *out)
{
    const struct pm_net_maker maker = maker_of(e);
    int err = PM_OK;

    if (!e->task_row->add_outputs)
        return build_heads_net(e, want, out);
    out->net = pm_net_create();
    PM_TRY(e->task_row->add_outputs(out->net, pm_net_input(out->net, "images",
                                                       shape_of(want, e->facts.channels), PM_F32),
                                &maker, e->task, want->use, &out->outputs));
    err = out->net->error;
out:
    return err;
}

static struct pm_built_net *find_net(struct pm_experiment *e, const struct pm_net_want *w,
                                     enum pm_use use)
{
    for (size_t i = 0; i < e->nets_count; i++) {
        struct pm_built_net *b = &e->nets[i];

        if (b->want.use == use && b->want.batch == w->batch && b->want.height == w->height &&
            b->want.width == w->width && b->plain == e->plain)
            return b;
    }
    return NULL;
}

/* Returns the net for HEADS that a net for TRAIN can continue, or NULL. Nobody else may hold it. */
static struct pm_built_net *begun_net(struct pm_experiment *e, const struct pm_net_want *w)
{
    struct pm_built_net *b = w->use == PM_USE_TRAIN ? find_net(e, w, PM_USE_HEADS) : NULL;

    return b && b->net->holders == 0 ? b : NULL;
}

static int build_or_find(struct pm_experiment *e, struct pm_net_want want,
                         const struct pm_built_net **out)
{
    struct pm_built_net *b = find_net(e, &want, want.use), *begun = begun_net(e, &want);
    int err = PM_OK;

    if (b) {
        *out = b;
        return PM_OK;
    }
    struct pm_built_net fresh = { .want = want, .plain = e->plain };
    if (want.use == PM_USE_TRAIN && begun)
        PM_TRY(build_losses(e, begun));
    else if (want.use == PM_USE_HEADS || want.use == PM_USE_TRAIN)
        PM_TRY(build_heads_net(e, &want, &fresh));
    else
        PM_TRY(build_outputs(e, &want, &fresh));
    if (want.use == PM_USE_TRAIN && !begun)
        PM_TRY(build_losses(e, &fresh));
    if (begun) {
        begun->want.use = PM_USE_TRAIN;
        *out = begun;
        return PM_OK;
    }
    PM_GROW(e->nets, e->nets_count, e->nets_capacity);
    *out = &e->nets[e->nets_count];
    e->nets[e->nets_count++] = fresh;
    fresh.net = NULL;
out:
    pm_net_destroy(&fresh.net);
    return err;
}

/* Finds or builds a net. If it cannot be built, builds the net for one picture to explain the
 * error. *out is valid until the next net is built. */
static int built_net(struct pm_experiment *e, struct pm_net_want want,
                     const struct pm_built_net **out)
{
    const int err = build_or_find(e, want, out);
    char *why;

    if (err != PM_ECONFIG || want.batch == 1)
        return err;
    why = pm_strdup(pm_error_text());
    want.batch = 1;
    if (build_or_find(e, want, out) == PM_OK)
        pm_fail((enum pm_error)err, "%s", why);
    pm_free(why);
    return err;
}

int pm_experiment_train_batch(const struct pm_config *c)
{
    return c->devices_count == 1 && c->run.batch_size != PM_WORD
               ? c->run.batch_size / c->run.micro_batches
               : 1;
}

int pm_experiment_net(struct pm_experiment *e, struct pm_net_want want, struct pm_net **out,
                      struct pm_outputs *outputs)
{
    const struct pm_built_net *built;
    int err = PM_OK;

    if (want.height == 0) {
        want.height = want.use == PM_USE_TRAIN ? e->facts.height : e->facts.eval_height;
        want.width = want.use == PM_USE_TRAIN ? e->facts.width : e->facts.eval_width;
    }
    PM_TRY(built_net(e, want, &built));
    if (outputs)
        *outputs = built->outputs;
    *out = pm_net_hold(built->net);
out:
    return err;
}

void pm_experiment_forget(struct pm_experiment *e, struct pm_net_want want)
{
    size_t left = 0;

    for (size_t i = 0; i < e->nets_count; i++) {
        struct pm_built_net *b = &e->nets[i];

        if (b->want.use == want.use && b->want.height == want.height &&
            b->want.width == want.width)
            pm_net_destroy(&b->net);
        else
            e->nets[left++] = *b;
    }
    e->nets_count = left;
}

/* Settles the facts that depend on the net for this frame. */
static int settle(struct pm_experiment *e, struct pm_frame frame)
{
    const struct pm_net_want want = { PM_USE_HEADS, pm_experiment_train_batch(e->config),
                                      frame.height, frame.width };
    const struct pm_built_net *built;
    int err = built_net(e, want, &built);

    /* A net that fits only one picture can be evaluated; building it for training reports the
     * error. */
    if (err == PM_ECONFIG && want.batch > 1)
        err = built_net(e, (struct pm_net_want){ want.use, 1, want.height, want.width }, &built);
    PM_TRY(err);
    const struct pm_net_maker maker = maker_of(e);

    PM_TRY(e->task_row->settle(e->task, frame, &built->heads, &maker));
out:
    return err;
}

/* If training builds a net, it continues these heads. */
int pm_experiment_settle(struct pm_experiment *e)
{
    int err = PM_OK;

    for (int i = 0; i < e->frames_count; i++)
        PM_TRY(settle(e, e->frames[i]));
out:
    return err;
}

void pm_experiment_free_nets(struct pm_experiment *e)
{
    for (size_t i = 0; i < e->nets_count; i++)
        pm_net_destroy(&e->nets[i].net);
    pm_free(e->nets);
}

/* ---- plans ------------------------------------------------------------------------------- */

static int build_eval(void *ctx, int batch, int height, int width, struct pm_net **out)
{
    const struct pm_net_want want = { PM_USE_EVAL, batch, height, width };

    return pm_experiment_net(ctx, want, out, NULL);
}

static int build_predict(void *ctx, int batch, int height, int width, struct pm_net **out)
{
    const struct pm_net_want want = { PM_USE_PREDICT, batch, height, width };

    return pm_experiment_net(ctx, want, out, NULL);
}

int pm_experiment_plan(struct pm_experiment *e, struct pm_net *net, int batch, enum pm_use use,
                       const struct pm_outputs *outputs, struct pm_device *d,
                       struct pm_variables *v, int slots, struct pm_shared_memory *shared,
                       struct pm_plan **out)
{
    const bool eval = use == PM_USE_EVAL;
    const struct pm_shape images = net->nodes[0]->out_shape;
    const struct pm_verification verification = { .on = e->config->run.verify == PM_VERIFY_AUTO,
                                    .build = eval ? build_eval : build_predict, .ctx = e,
                                    .batch = batch, .height = images.dim[1],
                                    .width = images.dim[2] };

    return pm_verified_plan_create(&verification, net, d, v, &(struct pm_plan_options){
        .name = eval ? "eval" : "predict", .outputs = outputs->node, .slots = slots,
        .loss_share = 1, .shared = shared }, NULL, out);
}
