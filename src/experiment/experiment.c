/* experiment: config and data to one set of facts. What the config leaves open comes from the net
 * (size, preprocessing, weight decay) or from the data (classes, channels, labels). */
#include "experiment/experiment.h"

#include "clones/clones.h"
#include "experiment/experiment_classes.h"
#include "clones/moving.h"
#include "verify/verified_plan.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

struct pm_built_net {
    struct pm_net_want want;
    bool plain;
    struct pm_net *net; /* owned */
    struct pm_heads heads;
    struct pm_outputs outputs;
};

/* ---- freezing and multipliers ----------------------------------------------------------- */

struct pm_experiment_regexes {
    regex_t *freeze, *multiplier, *scope;
    int freezes, multipliers, scopes; /* compiled so far */
    bool scopes_logged;               /* those that match nothing */
};

/* Matched at the start of a name, as TF-Slim's scopes are. */
static int compile(const struct pm_config *c, const char *key, const char *pattern, regex_t *out)
{
    char message[256];
    struct pm_str text = { 0 };
    int bad;

    pm_str_add(&text, "^(%s)", pattern);
    bad = regcomp(out, text.text, REG_EXTENDED | REG_NOSUB);
    pm_str_free(&text);
    if (!bad)
        return PM_OK;
    regerror(bad, out, message, sizeof message);
    return pm_fail(PM_ECONFIG, "%s: %s: \"%s\" is no regular expression: %s", c->path, key, pattern,
                   message);
}

static int compile_all(struct pm_experiment *e)
{
    const struct pm_config *c = e->config;
    struct pm_experiment_regexes *r = pm_arena_alloc(e->arena, sizeof *r);
    size_t size = sizeof(regex_t);
    int err = PM_OK;

    e->regexes = r;
    r->freeze = pm_arena_alloc(e->arena, size * ((size_t)c->optim.freeze.count + 1));
    r->scope = pm_arena_alloc(e->arena, size * ((size_t)c->init.trainable_scopes.count + 1));
    r->multiplier = pm_arena_alloc(e->arena, size * ((size_t)c->optim.multiplier_count + 1));
    for (; r->freezes < c->optim.freeze.count; r->freezes++)
        PM_TRY(compile(c, "optim.freeze", c->optim.freeze.v[r->freezes], &r->freeze[r->freezes]));
    for (; r->scopes < c->init.trainable_scopes.count; r->scopes++)
        PM_TRY(compile(c, "init.trainable_scopes", c->init.trainable_scopes.v[r->scopes],
                       &r->scope[r->scopes]));
    for (; r->multipliers < c->optim.multiplier_count; r->multipliers++)
        PM_TRY(compile(c, "optim.multipliers", c->optim.multiplier[r->multipliers].pattern,
                       &r->multiplier[r->multipliers]));
out:
    return err;
}

static bool matches(const regex_t *r, const char *name)
{
    return regexec(r, name, 0, NULL, 0) == 0;
}

float pm_experiment_multiplier(const char *variable, void *ctx)
{
    const struct pm_experiment *e = ctx;
    const struct pm_experiment_regexes *r = e->regexes;
    bool trained = r->scopes == 0;

    for (int i = 0; i < r->scopes && !trained; i++)
        trained = matches(&r->scope[i], variable);
    for (int i = 0; i < r->freezes && trained; i++)
        trained = !matches(&r->freeze[i], variable);
    if (!trained)
        return 0;
    for (int i = 0; i < r->multipliers; i++)
        if (matches(&r->multiplier[i], variable))
            return e->config->optim.multiplier[i].factor;
    return 1;
}

/* ---- opening ---------------------------------------------------------------------------- */

/* Whole batches only, as many as the epochs hold: the originals drop what is left over, too. */
static int resolve_steps(struct pm_experiment *e)
{
    const struct pm_config *c = e->config;
    const int64_t epochs = c->data.num_epochs;

    if (!e->train || epochs == 0)
        return PM_OK;
    const int64_t examples = (int64_t)pm_dataset_get_info(e->train)->count;
    const int64_t steps = (int64_t)((double)examples * (double)epochs / c->run.batch_size);
    if (steps < 1)
        return pm_fail(PM_ECONFIG,
                       "%s: data.num_epochs: %d passes over %lld examples are less than one batch of "
                       "run.batch_size %d",
                       c->path, c->data.num_epochs, (long long)examples, c->run.batch_size);
    e->steps = c->run.steps == 0 || steps < c->run.steps ? steps : c->run.steps;
    return PM_OK;
}

static int open_data(struct pm_experiment *e, int open)
{
    const struct pm_config *c = e->config;
    int err = PM_OK;

    PM_TRY(pm_config_need(c, "data.folder", c->data.folder));
    PM_TRY(pm_experiment_make_data(c));
    if (open & PM_OPEN_TRAIN)
        PM_TRY(pm_dataset_open(c->data.folder, c->data.train_split, &e->train));
    if (open & PM_OPEN_EVAL)
        PM_TRY(pm_dataset_open(c->data.folder, c->data.eval_split, &e->eval));
    if (e->train)
        pm_dataset_sample(e->train, (size_t)c->data.sample_1_of_n);
    if (e->eval)
        pm_dataset_sample(e->eval, (size_t)c->eval.sample_1_of_n);
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
    return c->data.folder && pm_is_folder(c->data.folder) ? open : 0;
}

static struct pm_import_options onnx_options(const struct pm_experiment *e)
{
    const struct pm_config_model *m = &e->config->model;

    return (struct pm_import_options){ .logits = m->onnx_logits,
                                       .any_shape = e->task_row->spatial,
                                       .new_head = m->onnx_new_head ? e->facts.num_classes : 0 };
}

int pm_experiment_need_onnx(const struct pm_config *c)
{
    if (!pm_file_exists(c->model.onnx))
        return pm_fail(PM_EDATA, "%s: model.onnx: %s is not there; the net is built from this file each "
                       "time, its weights are read when a run begins: give its place with "
                       "model.onnx=FILE", c->path, c->model.onnx);
    return PM_OK;
}

/* The file is where the net comes from, also when a run is resumed or evaluated. */
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
    PM_TRY(pm_augment_open(c->input.augment, pm_arena_printf(e->arena, "%s: input.augment", c->path),
                           e->arena, &e->facts.augment));
    e->weight_decay = !isnan(c->optim.weight_decay) ? c->optim.weight_decay
                      : e->net_row                   ? e->net_row->weight_decay
                                                     : 0;
out:
    return err;
}

static int first_of(int a, int b, int c, int d)
{
    return a > 0 ? a : b > 0 ? b : c > 0 ? c : d;
}

/* The model's own classes. */
static int resolve_onnx_classes(struct pm_experiment *e)
{
    const struct pm_config *c = e->config;
    struct pm_task_facts *s = &e->facts;
    const struct pm_import_options options = onnx_options(e);
    const int wanted = s->num_classes;
    int err = PM_OK;

    PM_TRY(pm_import_classes(e->onnx, PM_SHAPE3(s->height, s->width, s->channels), &options,
                             &s->num_classes));
    if (wanted > 0 && wanted != s->num_classes)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: model.onnx: %s gives %d classes, but %s %d; set "
                       "model.onnx_new_head=true for a fresh last layer, or model.num_classes=%d to keep "
                       "it", c->path, c->model.onnx, s->num_classes,
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

    if (e->task_row->classes)
        e->task_row->classes(&info);
    if (e->onnx && (err = pm_import_facts(e->onnx, &onnx)) < 0)
        return err;
    pm_config_size(c, true, &h, &w);
    s->height = first_of(h, onnx.height ? onnx.height : net_size, d->height, 0);
    s->width = first_of(w, onnx.width ? onnx.width : net_size, d->width, 0);
    pm_config_size(c, false, &h, &w);
    s->eval_height = first_of(h, s->height, 0, 0);
    s->eval_width = first_of(w, s->width, 0, 0);
    if (s->height < 1 || s->width < 1)
        return pm_fail(PM_ECONFIG, "%s: input.size: not given, and %s; set it to [height, width]%s",
                       c->path, pm_experiment_silence(e),
                       e->from ? ", or give the place of the data with data.folder=FOLDER" : "");
    s->channels = first_of(c->input.channels, s->preprocessing->channels, d->channels,
                           e->net_row ? e->net_row->default_channels
                           : onnx.channels ? onnx.channels : 3);
    s->config = c;
    s->data = &e->data;
    s->num_classes = first_of(c->model.num_classes, d->num_classes - s->labels_offset, 0, 0);
    if (e->onnx && !c->model.onnx_new_head && (err = resolve_onnx_classes(e)) < 0)
        return err;
    if (s->num_classes < 1 && d->num_classes > 0)
        return pm_fail(PM_ECONFIG, "%s: data.labels_offset: %d leaves none of the %d classes of the "
                       "data: it must be below %d", c->path, s->labels_offset, d->num_classes,
                       d->num_classes - 1);
    if (s->num_classes < 1)
        return pm_fail(PM_ECONFIG, "%s: model.num_classes: not given, and %s; %s", c->path,
                       pm_experiment_silence(e), pm_experiment_remedy(e));
    s->labels = d->labels && d->num_classes > s->labels_offset ? d->labels + s->labels_offset
                                                               : NULL;
    if (s->labels && s->num_classes > d->num_classes - s->labels_offset)
        s->labels = NULL; /* fewer names than classes */
    return PM_OK;
}

/* The message about a layer that does not fit names the input. */
static void build_named(struct pm_experiment *e, struct pm_net *net, struct pm_node *images,
                        struct pm_heads *heads)
{
    char input[64];

    e->net_row->build(net, images, e->facts.num_classes, e->net_cfg, heads);
    if (net->error)
        pm_fail(net->error, "%s: model.name: \"%s\" with an input of %s: %s", e->config->path,
                e->net_row->name, pm_shape_text(images->out_shape, input), pm_error_text());
}

/* pm_net_maker.heads. */
static int build_heads(void *ctx, struct pm_net *net, struct pm_node *images, struct pm_heads *heads)
{
    struct pm_experiment *e = ctx;
    const struct pm_import_options onnx = onnx_options(e);
    const int first = net->count, delay = e->config->model.quantize_delay;
    int err = PM_OK;

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
    if (err == PM_OK && delay >= 0 && !e->plain)
        err = pm_net_quantize(net, first, delay, heads);
    if (err < 0)
        PM_TRY(pm_fail((enum pm_error)err, "%s: %s", e->config->path, pm_error_text()));
out:
    return err;
}

/* ---- nets -------------------------------------------------------------------------------- */

static struct pm_node *add_input(struct pm_net *net, const struct pm_field *f, int batch)
{
    struct pm_shape s = { .rank = f->shape.rank + 1, .dim = { batch } };

    for (int i = 0; i < f->shape.rank; i++)
        s.dim[i + 1] = f->shape.dim[i];
    struct pm_node *n = pm_net_input(net, f->name, s, f->type);
    if (f->low < f->high)
        pm_net_set_range(n, f->low, f->high);
    return n;
}

/* Something must be trained. A scope that matches nothing is logged once. */
static int check_trainable(const struct pm_experiment *e, const struct pm_net *net)
{
    struct pm_experiment_regexes *r = e->regexes;
    int trainable = 0, trained = 0;

    for (int i = 0; i < net->var_count; i++) {
        const bool is = net->vars[i]->trainable;
        trainable += is;
        trained += is && pm_experiment_multiplier(net->vars[i]->name, (void *)e) != 0;
    }
    if (trainable == 0)
        return pm_fail(PM_ECONFIG, "%s: the net has nothing to train: no layer of it has weights",
                       e->config->path);
    if (trained == 0)
        return pm_fail(PM_ECONFIG, "%s: init.trainable_scopes and optim.freeze leave nothing to "
                       "train of the net's %d variables, which are called %s and the like",
                       e->config->path, trainable, net->vars[0]->name);
    for (int k = 0; k < r->scopes && !r->scopes_logged; k++) {
        int hits = 0;
        for (int i = 0; i < net->var_count; i++)
            hits += matches(&r->scope[k], net->vars[i]->name);
        if (hits == 0)
            PM_WARN("train", "init.trainable_scopes: no variable's name begins with \"%s\"",
                    e->config->init.trainable_scopes.v[k]);
    }
    r->scopes_logged = true;
    return PM_OK;
}

static int add_losses(struct pm_experiment *e, struct pm_net *net, const struct pm_heads *heads,
                      const struct pm_field_list *fields)
{
    const int batch = net->nodes[0]->out_shape.dim[0];
    int err = PM_OK;

    PM_TRY(check_trainable(e, net));
    for (int i = 1; i < fields->count; i++)
        add_input(net, &fields->list[i], batch);
    e->task_row->add_loss(net, heads, e->task);
    err = net->error;
out:
    return err;
}

/* As struct pm_shown has them. */
static struct pm_outputs outputs_of(const struct pm_heads *heads)
{
    struct pm_outputs out = { .node = { heads->logits->name }, .count = 1 };

    for (int i = 0; i < heads->further_count; i++)
        out.node[out.count++] = heads->further[i].node->name;
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
    PM_TRY(build_heads(e, out->net, pm_net_input(out->net, "images", shape_of(want, e->facts.channels),
                                                 PM_F32), &out->heads));
    out->outputs = outputs_of(&out->heads);
out:
    return err;
}

/* The losses behind the heads. */
static int build_losses(struct pm_experiment *e, struct pm_built_net *built)
{
    const struct pm_config *c = e->config;
    int err = PM_OK;

    PM_TRY(add_losses(e, built->net, &built->heads, &e->train_fields));
    PM_TRY(pm_moving_check(built->net, c->devices_count > 1 &&
                           c->run.batch_norm_update == PM_BATCH_NORM_ALL, c->run.micro_batches));
out:
    return err;
}

static int build_outputs(struct pm_experiment *e, const struct pm_net_want *want,
                         struct pm_built_net *out)
{
    const struct pm_net_maker maker = { build_heads, e };
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

/* A net for HEADS that nobody else holds is the beginning of the one for TRAIN, and becomes it. */
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

/* A net that does not fit is explained by the net for one picture. *out is good until the next net is
 * built. */
static int built_net(struct pm_experiment *e, struct pm_net_want want, const struct pm_built_net **out)
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
    return c->devices_count == 1 ? c->run.batch_size / c->run.micro_batches : 1;
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

/* ---- opening it all ----------------------------------------------------------------------- */

/* What depends on the net. Where training builds a net, it begins with these heads. */
static int settle(struct pm_experiment *e)
{
    const struct pm_built_net *built;
    int err = PM_OK;

    PM_TRY(built_net(e, (struct pm_net_want){ PM_USE_HEADS, pm_experiment_train_batch(e->config),
                                              e->facts.height, e->facts.width }, &built));
    PM_TRY(e->task_row->settle(e->task, &built->heads));
out:
    return err;
}

static int open_experiment(const struct pm_config *c, int open, bool classes,
                           const struct pm_checkpoint *from, struct pm_experiment **out)
{
    int err = PM_OK;
    struct pm_experiment *e = pm_calloc(1, sizeof *e);

    e->config = c;
    e->data.ignore_label = -1;
    e->steps = c->run.steps;
    e->arena = pm_arena_create();
    PM_TRY(resolve_rows(e));
    PM_TRY(compile_all(e));
    if (classes)
        PM_TRY(pm_experiment_find_classes(e, from));
    if (open)
        PM_TRY(open_data(e, open));
    PM_TRY(resolve_sizes(e));
    PM_TRY(e->task_row->open(&e->facts, &e->task));
    if (e->task_row->settle)
        PM_TRY(settle(e));
    e->task_row->fields(e->task, true, &e->train_fields);
    e->task_row->fields(e->task, false, &e->eval_fields);
    *out = e, e = NULL;
out:
    pm_experiment_close(&e);
    return err;
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
    for (int i = 0; e->regexes && i < e->regexes->freezes; i++)
        regfree(&e->regexes->freeze[i]);
    for (int i = 0; e->regexes && i < e->regexes->scopes; i++)
        regfree(&e->regexes->scope[i]);
    for (int i = 0; e->regexes && i < e->regexes->multipliers; i++)
        regfree(&e->regexes->multiplier[i]);
    for (size_t i = 0; i < e->nets_count; i++)
        pm_net_destroy(&e->nets[i].net);
    pm_free(e->nets);
    pm_free(e->train_fields.list);
    pm_free(e->eval_fields.list);
    if (e->task)
        e->task_row->close(&e->task);
    pm_dataset_close(&e->train);
    pm_dataset_close(&e->eval);
    pm_import_close(&e->onnx);
    pm_arena_destroy(&e->arena);
    pm_free(e);
    *experiment = NULL;
}

/* ---- loaders ---------------------------------------------------------------------------- */

int pm_experiment_loader(struct pm_experiment *e, bool train, int batch,
                         struct pm_batch_slice slice, uint64_t first_step,
                         struct pm_sampler *sampler, struct pm_loader **out)
{
    const struct pm_field_list *fields = train ? &e->train_fields : &e->eval_fields;
    const struct pm_config *c = e->config;

    *sampler = (struct pm_sampler){ .task = e->task, .train = train };
    return pm_loader_create(train ? e->train : e->eval, &(struct pm_loader_options){
        .batch = batch, .slice = slice, .train = train, .in_order = !c->data.shuffle,
        .seed = (uint64_t)c->run.seed, .first_step = first_step,
        .threads = c->data.threads, .ring = c->data.ring, .fields = fields->list,
        .fields_count = fields->count,
        .skip_corrupt = c->data.on_corrupt == PM_CORRUPT_SKIP, .make = e->task_row->make,
        .ctx = sampler }, out);
}

/* ---- plans ------------------------------------------------------------------------------- */

static int build_train(void *ctx, int batch, struct pm_net **out)
{
    return pm_experiment_net(ctx, (struct pm_net_want){ PM_USE_TRAIN, batch, 0, 0 }, out, NULL);
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
        .outputs = outputs, .batch_norm_all = c->run.batch_norm_update == PM_BATCH_NORM_ALL,
        .verify = c->run.verify == PM_VERIFY_AUTO,
        .build = build_train, .ctx = e,
        .fields = e->train_fields.list, .fields_count = e->train_fields.count,
        .update = { .optimizer = e->optimizer, .cfg = e->optimizer_cfg,
                    .weight_decay = e->weight_decay, .clip_norm = c->optim.clip_norm,
                    .clip_variable_norm = c->optim.clip_variable_norm,
                    .multiplier = pm_experiment_multiplier, .ctx = e,
                    .averages = c->optim.moving_average_decay > 0 },
    };
}

static int build_eval(void *ctx, int batch, struct pm_net **out)
{
    return pm_experiment_net(ctx, (struct pm_net_want){ PM_USE_EVAL, batch, 0, 0 }, out, NULL);
}

static int build_predict(void *ctx, int batch, struct pm_net **out)
{
    return pm_experiment_net(ctx, (struct pm_net_want){ PM_USE_PREDICT, batch, 0, 0 }, out, NULL);
}

int pm_experiment_plan(struct pm_experiment *e, struct pm_net *net, int batch, enum pm_use use,
                       const struct pm_outputs *outputs, struct pm_device *d,
                       struct pm_variables *v, int slots, struct pm_shared_memory *shared,
                       struct pm_plan **out)
{
    const bool eval = use == PM_USE_EVAL;
    const struct pm_verification verification = { .on = e->config->run.verify == PM_VERIFY_AUTO,
                                    .build = eval ? build_eval : build_predict, .ctx = e,
                                    .batch = batch };

    return pm_verified_plan_create(&verification, net, d, v, &(struct pm_plan_options){
        .name = eval ? "eval" : "predict", .outputs = outputs->node, .slots = slots,
        .loss_share = 1, .shared = shared }, NULL, out);
}

void pm_experiment_forget(struct pm_experiment *e, struct pm_net **net)
{
    for (size_t i = 0; i < e->nets_count; i++)
        if (e->nets[i].net == *net) {
            pm_net_destroy(&e->nets[i].net);
            e->nets[i] = e->nets[--e->nets_count];
            break;
        }
    pm_net_destroy(net);
}
