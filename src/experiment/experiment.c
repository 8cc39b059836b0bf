/* experiment: combines config and data into one set of facts. Values that the config leaves open
 * come from the net (size, preprocessing, weight decay) or from the data (classes, channels,
 * labels). */
#include "experiment/experiment.h"

#include "clones/clones.h"
#include "data/order.h"
#include "experiment/experiment_classes.h"
#include "experiment/experiment_parts.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* ---- opening ---------------------------------------------------------------------------- */

/* Returns the steps of run.epochs: whole batches only, as many as the epochs hold. The original
 * trainers drop the remainder, too. 0: the key is not set. */
static int64_t steps_of_epochs(const struct pm_experiment *e, int batch)
{
    const double epochs = e->config->run.epochs;

    return isnan(epochs) ? 0
                         : (int64_t)((double)pm_dataset_get_info(e->train)->count * epochs / batch);
}

int64_t pm_experiment_steps(const struct pm_experiment *e, int batch, int64_t steps)
{
    const int64_t of_epochs = steps_of_epochs(e, batch);

    return of_epochs > 0 && (steps == 0 || of_epochs < steps) ? of_epochs : steps;
}

static int resolve_steps(struct pm_experiment *e)
{
    const struct pm_config *c = e->config;

    if (!e->train || isnan(c->run.epochs))
        return PM_OK;
    e->epochs_steps = steps_of_epochs(e, c->run.batch_size);
    if (e->epochs_steps < 1)
        return pm_fail(PM_ECONFIG,
                       "%s: run.epochs: %g epochs of %lld examples are less than one batch of "
                       "run.batch_size %d: raise run.epochs or lower run.batch_size",
                       pm_config_source(c, "run.epochs"), c->run.epochs,
                       (long long)pm_dataset_get_info(e->train)->count, c->run.batch_size);
    e->steps = pm_experiment_steps(e, c->run.batch_size, e->steps);
    return PM_OK;
}

static int open_data(struct pm_experiment *e, int open)
{
    const struct pm_config *c = e->config;
    int err = PM_OK;

    PM_TRY(pm_config_need(c, "data.folder", c->data.folder));
    PM_TRY(pm_experiment_make_data(c));
    PM_TRY(pm_experiment_find_photos(e));
    c = e->config;
    if (open & PM_OPEN_TRAIN)
        PM_TRY(pm_experiment_open_train(e));
    if (e->train && c->run.batch_size == PM_WORD)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: run.batch_size: \"auto\" is not settled: call "
                       "pm_settle_batch, or set a number", c->path));
    if (open & PM_OPEN_EVAL)
        PM_TRY(pm_experiment_eval_split(c, e->arena, &e->eval_split));
    if (e->eval_split) {
        PM_TRY(pm_dataset_open(c->data.folder, e->eval_split, &e->eval));
        pm_dataset_sample(e->eval, (size_t)c->eval.sample_1_of_n);
    }
    PM_TRY(resolve_steps(e));
    e->data = *pm_dataset_get_info(e->train ? e->train : e->eval);
out:
    return err;
}

const char *pm_experiment_net_name(const struct pm_config *c)
{
    return c->model.name ? c->model.name : c->model.onnx ? c->model.onnx : "layer list";
}

int pm_experiment_if_there(const struct pm_config *c, int open)
{
    return c->data.folder && pm_is_folder(c->data.folder) &&
                   !pm_experiment_unconverted(c)
               ? open : 0;
}

int pm_experiment_need_onnx(const struct pm_config *c)
{
    if (!pm_file_exists(c->model.onnx))
        return pm_fail(PM_EDATA,
                       "%s: model.onnx: %s does not exist; every command builds the net from this "
                       "file: set model.onnx=FILE to its place",
                       pm_config_source(c, "model.onnx"), c->model.onnx);
    return PM_OK;
}

/* Opens the ONNX file. The net always comes from this file, also when a run is resumed or
 * evaluated. */
static int open_onnx(struct pm_experiment *e)
{
    int err = PM_OK;

    PM_TRY(pm_experiment_need_onnx(e->config));
    PM_TRY(pm_import_open(e->config->model.onnx, &e->onnx));
out:
    return err;
}

static int resolve_rows(struct pm_experiment *e)
{
    const struct pm_config *c = e->config;
    const struct pm_preprocessing *p;
    void *cfg;
    int err = PM_OK;

    if (!(e->task_row = pm_task_find(c->task)))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: task: %s is not available in this version", c->path,
                       c->task));
    if (e->task_row->labels_offset)
        PM_TRY(e->task_row->labels_offset(c, &e->facts.labels_offset));
    if (c->model.name) {
        e->net_row = pm_net_row_variant(pm_net_row_find(c->model.name),
                                        cJSON_GetObjectItemCaseSensitive(c->tree, "model"));
        e->net_cfg = pm_arena_alloc(e->arena, e->net_row->cfg_size + 1);
        PM_TRY(pm_config_read(c, "model", e->net_row->opts, e->net_cfg));
    } else if (c->model.onnx) {
        PM_TRY(open_onnx(e));
    }
    e->optimizer = pm_optimizer_find(c->optim.name);
    e->optimizer_cfg = pm_arena_alloc(e->arena, e->optimizer->cfg_size + 1);
    PM_TRY(pm_config_read(c, "optim", e->optimizer->opts, e->optimizer_cfg));
    PM_TRY(pm_config_need(c, "input.preprocessing", c->input.preprocessing));
    p = pm_preprocessing_find(c->preprocessing_row->name);
    cfg = pm_arena_alloc(e->arena, p->cfg_size + 1);
    PM_TRY(pm_config_read(c, "input", p->opts, cfg));
    e->facts.preprocessing = p;
    e->facts.preprocessing_cfg = cfg;
    PM_TRY(pm_augment_open(
        c->input.augment,
        pm_arena_printf(e->arena, "%s: input.augment", pm_config_source(c, "input.augment")),
        e->arena, &e->facts.augment));
    PM_TRY(pm_experiment_read_folders(e));
    PM_TRY(pm_experiment_open_augments(e));
    PM_TRY(pm_experiment_check_convert(e));
    e->weight_decay = !c->loss.regularization          ? 0
                      : !isnan(c->optim.weight_decay) ? c->optim.weight_decay
                      : e->net_row                    ? e->net_row->weight_decay
                                                      : 0;
out:
    return err;
}

/* Returns the net's option output_stride; 0 if it has none, or if the net chooses. */
static int net_stride(const struct pm_experiment *e)
{
    const struct pm_opt *opts = e->net_row ? e->net_row->opts : NULL;
    cJSON *all = cJSON_CreateObject();
    int stride = 0;

    if (opts && pm_opts_find(opts, "output_stride") >= 0) {
        pm_opts_dump(opts, e->net_cfg, all, false);
        stride = (int)cJSON_GetNumberValue(cJSON_GetObjectItem(all, "output_stride"));
    }
    cJSON_Delete(all);
    return stride;
}

/* The net's option drop_path_steps follows the steps of the run if the config leaves it open. */
static void resolve_drop_path(struct pm_experiment *e)
{
    const struct pm_opt *opts = e->net_row ? e->net_row->opts : NULL;
    const int i = opts ? pm_opts_find(opts, "drop_path_steps") : -1;

    if (i < 0 || e->steps == 0)
        return;
    int *steps = (int *)((char *)e->net_cfg + opts[i].offset);
    if (*steps == PM_UNSET)
        *steps = e->steps < opts[i].max ? (int)e->steps : (int)opts[i].max;
}

static int first_of(int a, int b, int c, int d)
{
    return a > 0 ? a : b > 0 ? b : c > 0 ? c : d;
}

/* Takes the classes from the model. */
static int resolve_onnx_classes(struct pm_experiment *e)
{
    const struct pm_config *c = e->config;
    struct pm_task_facts *s = &e->facts;
    const struct pm_import_options options = pm_experiment_import_options(e);
    const int wanted = s->num_classes;
    int err = PM_OK;

    PM_TRY(pm_import_classes(e->onnx, PM_SHAPE3(s->height, s->width, s->channels), &options,
                             &s->num_classes));
    if (wanted > 0 && wanted != s->num_classes)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: model.onnx: %s has %d classes, but %s %d; set model.onnx_new_head=true "
                       "for a new last layer, or model.num_classes=%d to keep the last layer",
                       pm_config_source(c, "model.onnx"), c->model.onnx, s->num_classes,
                       c->model.num_classes > 0 ? "model.num_classes is" : "the data has", wanted,
                       s->num_classes));
out:
    return err;
}

static int resolve_sizes(struct pm_experiment *e)
{
    const struct pm_config *c = e->config;
    struct pm_dataset_info info = e->data;
    const struct pm_dataset_info *d = &info;
    struct pm_task_facts *s = &e->facts;
    int net_size = e->net_row ? e->net_row->default_size : 0, h, w, err;
    struct pm_import_facts onnx = { 0 };

    if (e->task_row->classes && (err = e->task_row->classes(c, e->arena, &info)) < 0)
        return err;
    e->data.box_labels = info.box_labels;
    if (e->onnx && (err = pm_import_facts(e->onnx, &onnx)) < 0)
        return err;
    pm_config_size(c, true, &h, &w);
    s->height = first_of(h, onnx.height ? onnx.height : net_size, d->height, 0);
    s->width = first_of(w, onnx.width ? onnx.width : net_size, d->width, 0);
    pm_config_size(c, false, &h, &w);
    s->eval_height = first_of(h, s->height, 0, 0);
    s->eval_width = first_of(w, s->width, 0, 0);
    if (s->height < 1 || s->width < 1)
        return pm_fail(PM_ECONFIG, "%s: input.size: not set, and %s; set it to [height, width]%s",
                       pm_config_source(c, "input.size"), pm_experiment_silence(e),
                       e->from ? ", or set data.folder=FOLDER to the place of the data" : "");
    s->channels = first_of(c->input.channels, s->preprocessing->channels, d->channels,
                           e->net_row ? e->net_row->default_channels
                           : onnx.channels ? onnx.channels : 3);
    s->config = c;
    s->data = &e->data;
    s->scaled_jpeg = c->input.scaled_jpeg;
    s->own_sizes = !c->eval.resize;
    if (s->own_sizes && !e->task_row->frame)
        return pm_fail(PM_ECONFIG,
                       "%s: eval.resize: false, but task %s brings every picture to "
                       "one size: remove the key, or set it to true",
                       pm_config_source(c, "eval.resize"), c->task);
    s->output_stride = net_stride(e);
    s->num_classes = first_of(c->model.num_classes, d->num_classes - s->labels_offset, 0, 0);
    if (e->onnx && !c->model.onnx_new_head && (err = resolve_onnx_classes(e)) < 0)
        return err;
    if (s->num_classes < 1 && d->num_classes > 0)
        return pm_fail(PM_ECONFIG,
                       "%s: data.labels_offset: %d leaves none of the %d classes of the data; it "
                       "must be less than %d",
                       pm_config_source(c, "data.labels_offset"), s->labels_offset, d->num_classes,
                       d->num_classes - 1);
    if (s->num_classes < 1)
        return pm_fail(PM_ECONFIG, "%s: model.num_classes: not set, and %s; %s",
                       pm_config_source(c, "model.num_classes"), pm_experiment_silence(e),
                       pm_experiment_remedy(e));
    s->labels = d->labels && d->num_classes > s->labels_offset ? d->labels + s->labels_offset
                                                               : NULL;
    if (s->labels && s->num_classes > d->num_classes - s->labels_offset)
        s->labels = NULL; /* there are fewer names than classes */
    return PM_OK;
}

/* training: the nets of training may be built. */
static void resolve_frames(struct pm_experiment *e, bool training)
{
    const struct pm_config *c = e->config;

    e->frames_count = training && c->buckets_count > 0 ? c->buckets_count : 1;
    e->frames = pm_arena_alloc(e->arena, (size_t)e->frames_count * sizeof *e->frames);
    e->frames[0] = (struct pm_frame){ e->facts.height, e->facts.width };
    for (int i = 1; i < e->frames_count; i++)
        e->frames[i] = (struct pm_frame){ c->buckets[i][0], c->buckets[i][1] };
}

/* ---- opening it all ----------------------------------------------------------------------- */

static int open_experiment(const struct pm_config *c, int open, bool classes,
                           const struct pm_checkpoint *from, struct pm_experiment **out)
{
    int err = PM_OK;
    struct pm_experiment *e = pm_calloc(1, sizeof *e);

    e->config = c;
    e->data.ignore_label = -1;
    e->steps = c->run.steps == PM_UNSET ? 0 : c->run.steps;
    e->arena = pm_arena_create();
    PM_TRY(resolve_rows(e));
    PM_TRY(pm_experiment_compile_scopes(e));
    if (classes)
        PM_TRY(pm_experiment_find_classes(e, from));
    if (open)
        PM_TRY(open_data(e, open));
    else if (!classes && pm_experiment_unconverted(c))
        PM_TRY(pm_experiment_describe_data(e));
    resolve_drop_path(e);
    PM_TRY(resolve_sizes(e));
    resolve_frames(e, !classes && open != PM_OPEN_EVAL);
    PM_TRY(e->task_row->open(&e->facts, &e->task));
    if (e->task_row->settle)
        PM_TRY(pm_experiment_settle(e));
    e->task_row->fields(e->task, true, pm_experiment_frame(e, true), &e->train_fields);
    e->task_row->fields(e->task, false, pm_experiment_frame(e, false), &e->eval_fields);
    *out = e, e = NULL;
out:
    pm_experiment_close(&e);
    return err;
}

struct pm_frame pm_experiment_frame(const struct pm_experiment *e, bool train)
{
    const struct pm_task_facts *f = &e->facts;

    return train ? (struct pm_frame){ f->height, f->width }
                 : (struct pm_frame){ f->eval_height, f->eval_width };
}

int pm_experiment_open(const struct pm_config *c, int open, struct pm_experiment **out)
{
    return open_experiment(c, open, false, NULL, out);
}

int pm_experiment_open_classes(const struct pm_config *c, const struct pm_checkpoint *from,
                               struct pm_experiment **out)
{
    return open_experiment(c, 0, true, from, out);
}

void pm_experiment_close(struct pm_experiment **experiment)
{
    struct pm_experiment *e = *experiment;

    if (!e)
        return;
    pm_experiment_free_scopes(e);
    pm_experiment_free_nets(e);
    pm_free(e->train_fields.list);
    pm_free(e->eval_fields.list);
    if (e->task)
        e->task_row->close(&e->task);
    pm_order_destroy(&e->order);
    pm_dataset_close(&e->train);
    pm_dataset_close(&e->eval);
    pm_import_close(&e->onnx);
    pm_arena_destroy(&e->arena);
    pm_free(e);
    *experiment = NULL;
}

/* ---- loaders ---------------------------------------------------------------------------- */

/* Returns the options that both loaders have in common, and sets *sampler. */
static struct pm_loader_options loader_options(const struct pm_experiment *e, bool train,
                                               struct pm_sampler *sampler)
{
    const struct pm_field_list *fields = train ? &e->train_fields : &e->eval_fields;
    const struct pm_config *c = e->config;

    *sampler = (struct pm_sampler){ e->task, train, e->task_row };
    return (struct pm_loader_options){
        .train = train, .in_order = !c->data.shuffle, .seed = (uint64_t)c->run.seed,
        .threads = c->data.threads, .ring = c->data.ring,
        .frame = pm_experiment_frame(e, train), .fields = fields->list,
        .fields_count = fields->count,
        .skip_corrupt = c->data.on_corrupt == PM_CORRUPT_SKIP, .make = e->task_row->make,
        .whole_batch = e->task_row->whole_batch,
        .free_host = e->task_row->free_host, .ctx = sampler };
}

int pm_experiment_loader(struct pm_experiment *e, int batch, struct pm_batch_slice slice,
                         struct pm_batch_numbers numbers, struct pm_sampler *sampler,
                         struct pm_loader **out)
{
    struct pm_loader_options o = loader_options(e, true, sampler);
    int err = PM_OK;

    PM_TRY(pm_experiment_order(e));
    o.batch = batch;
    o.slice = slice;
    o.first_step = numbers.draw ? 0 : numbers.first;
    o.draw = numbers.draw;
    o.draw_ctx = numbers.ctx;
    o.order = e->order;
    o.hold = e->config->buckets_count > 0 && e->task_row->need;
    if (e->frames_count > 1 || o.hold) {
        o.frames = e->frames;
        o.frames_count = e->frames_count;
        o.frame_of = pm_record_frame;
        o.fields_of = pm_record_fields;
    }
    PM_TRY(pm_loader_create(e->train, &o, out));
out:
    return err;
}

int pm_experiment_eval_loader(struct pm_experiment *e, struct pm_loader_share share,
                              const struct pm_frame_groups *groups, struct pm_sampler *sampler,
                              struct pm_loader **out)
{
    struct pm_loader_options o = loader_options(e, false, sampler);

    o.batch = e->config->eval.batch_size;
    o.share = share;
    o.groups = groups;
    o.fields_of = groups ? pm_record_fields : NULL;
    return pm_loader_create(e->eval, &o, out);
}

/* ---- plans ------------------------------------------------------------------------------- */

static int build_train(void *ctx, int batch, int height, int width, struct pm_net **out)
{
    const struct pm_net_want want = { PM_USE_TRAIN, batch, height, width };

    return pm_experiment_net(ctx, want, out, NULL);
}

struct pm_train_output pm_experiment_train_output(const struct pm_experiment *e)
{
    struct pm_train_output out = { 0 };

    if (e->task_row->train_output)
        e->task_row->train_output(e->task, &out);
    return out;
}

void pm_experiment_clones(struct pm_experiment *e, const struct pm_clone_spec *specs, int count,
                          struct pm_clones_options *out)
{
    const struct pm_config *c = e->config;
    const char **outputs = pm_arena_alloc(e->arena, 2 * sizeof *outputs);

    outputs[0] = pm_experiment_train_output(e).node;
    outputs[1] = NULL;
    *out = (struct pm_clones_options){
        .specs = specs, .count = count, .batch = c->run.batch_size,
        .micro_batches = c->run.micro_batches, .recompute = c->run.recompute,
        .device = pm_experiment_device_options(c),
        .outputs = outputs, .batch_norm_update = c->run.batch_norm_update,
        .sum_losses = c->run.log_loss == PM_LOG_LOSS_SUM,
        .verify = c->run.verify == PM_VERIFY_AUTO,
        .frames = e->frames, .frames_count = e->frames_count, .build = build_train, .ctx = e,
        .fields = e->train_fields.list, .fields_count = e->train_fields.count,
        .update = { .optimizer = e->optimizer, .cfg = e->optimizer_cfg,
                    .weight_decay = e->weight_decay, .clip_norm = c->optim.clip_norm,
                    .clip_variable_norm = c->optim.clip_variable_norm,
                    .multiplier = pm_experiment_multiplier, .ctx = e,
                    .averages = c->optim.moving_average_decay > 0 },
    };
}
