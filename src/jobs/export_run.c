/* export_run: writes a config's net with a checkpoint's values to an ONNX file. It uses only the
 * host's memory, and the CPU to try the file. */
#include <pumice/export.h>
#include <pumice/train.h>

#include "experiment/experiment.h"
#include "jobs/export_try.h"
#include "checkpoints/match.h"
#include "jobs/session.h"
#include "checkpoints/warm_start.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int frame_rules[] = {
    [PM_RULE_RANGE] = PM_FRAME_RANGE,
    [PM_RULE_RATIO] = PM_FRAME_RATIO,
    [PM_RULE_SHRINK] = PM_FRAME_SHRINK,
    [PM_RULE_ENLARGE] = PM_FRAME_ENLARGE,
};

struct exporter {
    const struct pm_config *c;      /* borrowed */
    struct pm_experiment *e;
    struct pm_task_export of_task;
    int height, width;              /* of the pictures */
    struct pm_checkpoint *from;     /* NULL: export.checkpoint "none" */
    bool averages;
    int pictures;                   /* that nets are built for: their batch size */
    bool initial;                   /* the values are the net's initial values */
    struct pm_variables *variables; /* names and shapes only; NULL until the values are found */
    struct pm_match match;          /* of the checkpoint; empty if initial */
    struct pm_net *net;
    struct pm_outputs outputs;      /* the first output is tried */
    struct pm_normal normal;
    struct pm_export_pixels pixels;
    struct pm_export_frame frame;
    struct pm_export_options options;
    const struct pm_node **also;    /* the other outputs; owned */
    struct pm_export *graph;
    char *path;
    char *data;                     /* the data file beside it, owned; NULL: none */
    double difference;              /* of the outputs of the file read again; NAN: not tried */
};

static void close_exporter(struct exporter *x)
{
    pm_export_destroy(&x->graph);
    pm_net_destroy(&x->net);
    pm_free(x->also);
    pm_match_free(&x->match);
    pm_variables_destroy(&x->variables);
    pm_checkpoint_close(&x->from);
    pm_experiment_close(&x->e);
    pm_free(x->path);
    pm_free(x->data);
}

/* ---- the graph --------------------------------------------------------------------------- */

/* Scales dilations to another stride of the maps, so that they reach equally far in the picture. */
static int follow_stride(const struct pm_config *c, cJSON *rates, int from, int to)
{
    cJSON *rate;

    cJSON_ArrayForEach(rate, rates)
    {
        const int fine = rate->valueint * from, whole = fine / to;

        if (fine % to)
            return pm_fail(PM_ECONFIG,
                           "%s: export.output_stride: %d gives %g for the rate %d in "
                           "model.aspp_rates, but rates must be whole numbers",
                           pm_config_source(c, "export.output_stride"), to, (double)fine / to,
                           rate->valueint);
        cJSON_SetNumberValue(rate, whole);
    }
    return PM_OK;
}

/* Sets another stride in the net's options. */
static int set_stride(struct exporter *x)
{
    struct pm_experiment *e = x->e;
    const struct pm_opt *opts = e->net_row ? e->net_row->opts : NULL;
    const int stride = x->of_task.output_stride;
    cJSON *all = NULL, *old;
    int err = PM_OK;

    if (!stride)
        return PM_OK;
    if (!opts || pm_opts_find(opts, "output_stride") < 0)
        return pm_fail(
            PM_ECONFIG,
            "%s: export.output_stride: %d, but the net has no model.output_stride: remove the key",
            pm_config_source(x->c, "export.output_stride"), stride);
    all = cJSON_CreateObject();
    pm_opts_dump(opts, e->net_cfg, all, false);
    old = cJSON_GetObjectItem(all, "output_stride");
    if (old->valueint > 0)
        PM_TRY(follow_stride(x->c, cJSON_GetObjectItem(all, "aspp_rates"), old->valueint, stride));
    cJSON_SetNumberValue(old, stride);
    PM_TRY(pm_opts_parse(opts, all, NULL, e->net_cfg, e->arena, "export: model"));
out:
    cJSON_Delete(all);
    return err;
}

/* Whether a model for pictures of their own size takes the resized picture. */
static bool takes_resized(const struct pm_normal *n)
{
    return n->padded && n->range.rule == PM_RULE_RANGE && n->range.min;
}

/* If pictures keep their own size, the model takes pictures of exactly its size and does not pad.
 * Evaluation and predict must not pad such a picture either. */
static int check_own_size(const struct exporter *x)
{
    const struct pm_task_facts *s = &x->e->facts;
    const struct pm_occasion o = { .where = "export.size" };
    struct pm_normal n;
    struct pm_frame f;
    int err = PM_OK;

    PM_TRY(s->preprocessing->normal(s->preprocessing_cfg, s->channels, &n));
    if (takes_resized(&n))
        return PM_OK;
    PM_TRY(x->e->task_row->frame(x->e->task, &o, x->height, x->width, &f));
    if (f.height != x->height || f.width != x->width)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: export.size: %d x %d. With eval.resize=false the model does not pad, "
                       "but evaluation pads such a picture to %d x %d: set export.size=[%d,%d], or "
                       "eval.resize=true",
                       pm_config_source(x->c, "export.size"), x->height, x->width, f.height,
                       f.width, f.height, f.width));
out:
    return err;
}

static int open_experiment(struct exporter *x)
{
    const struct pm_ints size = x->c->exporting.size;
    int err = PM_OK;

    x->initial = x->c->exporting.checkpoint == PM_EXPORT_CHECKPOINT_NONE;
    if (!x->initial)
        PM_TRY(pm_session_checkpoint(x->c, &x->from, &x->initial));
    PM_TRY(pm_experiment_open_classes(x->c, x->from, &x->e));
    x->height = size.count > 0 ? size.v[0] : x->e->facts.eval_height;
    x->width = size.count > 0 ? size.v[size.count - 1] : x->e->facts.eval_width;
    if (x->e->task_row->exporting)
        x->e->task_row->exporting(x->e->task, &x->of_task);
    if (x->e->facts.own_sizes && !x->c->exporting.any_size)
        PM_TRY(check_own_size(x));
    PM_TRY(set_stride(x));
out:
    return err;
}

static int read_variable(void *ctx, const struct pm_variable *v, float *data)
{
    struct exporter *x = ctx;

    return x->initial ? pm_variable_initial(v, (uint64_t)x->c->run.seed, data)
                      : pm_match_read(&x->match, v->index, data);
}

static int find_values(struct exporter *x, const struct pm_net *net)
{
    const struct pm_config *c = x->c;
    char where[512];
    int err = PM_OK;

    snprintf(where, sizeof where, "%s: eval.checkpoint", pm_config_source(c, "eval.checkpoint"));
    if (x->from)
        PM_TRY(pm_checkpoint_choose_averages(x->from, c->eval.averages,
                                             pm_config_source(c, "eval.averages"),
                                             "eval.averages", &x->averages));
    PM_TRY(pm_variables_create(NULL, net, false, NULL, &x->variables));
    if (!x->initial)
        PM_TRY(pm_values_find(x->variables, x->from, x->averages, where, &x->match));
out:
    return err;
}

static int graph_of(struct exporter *x, int height, int width, struct pm_net **net,
                    struct pm_export **graph)
{
    int err = PM_OK;

    PM_TRY(pm_experiment_net(
        x->e, (struct pm_net_want){ PM_USE_EXPORT, x->pictures, height, width }, net, &x->outputs));
    if (!x->variables)
        PM_TRY(find_values(x, *net));
    x->also = pm_realloc(x->also, (size_t)x->outputs.count * sizeof *x->also);
    for (int i = 1; i < x->outputs.count; i++)
        x->also[i - 1] = pm_net_find(*net, x->outputs.node[i]);
    x->options.also = x->also;
    x->options.also_count = x->outputs.count - 1;
    x->options.places = x->outputs.places;
    PM_TRY(pm_export_create(*net, pm_net_find(*net, x->outputs.node[0]), &x->options, graph));
out:
    return err;
}

/* Checks that the graph does not depend on the size of the input, by building it for another size.
 * That size is odd if the first is even. It is so much larger that no coarse pool gives as many
 * pixels for both. */
static int check_any_size(struct exporter *x)
{
    const int height = 3 * x->height + 33, width = 3 * x->width + 49;
    struct pm_net *net = NULL;
    struct pm_export *other = NULL;
    const struct pm_outputs outputs = x->outputs;
    const char *where;
    int err = PM_OK;

    err = graph_of(x, height, width, &net, &other);
    x->outputs = outputs;
    if (err < 0)
        PM_TRY(pm_fail(
            (enum pm_error)err,
            "%s (export.any_size builds the net for other sizes, here %d x %d: remove the key)",
            pm_error_text(), height, width));
    if ((where = pm_export_difference(x->graph, other)) != NULL)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: export.any_size: the net depends on the size of its input, first in "
                       "%.*s: remove the key%s",
                       pm_config_source(x->c, "export.any_size"), (int)strcspn(where, ":"), where,
                       x->of_task.pads
                           ? "; the model accepts pictures up to export.size without it, too"
                       : x->e->net_row && !x->e->task_row->spatial
                           ? ", or set model.global_pool if the net has this option"
                           : ""));
out:
    pm_export_destroy(&other);
    pm_net_destroy(&net);
    return err;
}

/* Sets the number of pictures that the graph is built for. An imported graph for any number is
 * built for two: for one picture, nodes that join axes of size 1 would lose the axis of the
 * pictures. The graph must be the same for three pictures; else the file takes one picture. */
static int settle_pictures(struct exporter *x)
{
    struct pm_net *net[2] = { NULL };
    struct pm_export *graph[2] = { NULL };
    const char *where = NULL;
    int err = PM_OK;

    x->pictures = x->c->exporting.batch_size ? x->c->exporting.batch_size : 1;
    if (!x->options.any_batch || !x->e->onnx)
        return PM_OK;
    for (int i = 0; i < 2 && err == PM_OK; i++) {
        x->pictures = 2 + i;
        err = graph_of(x, x->height, x->width, &net[i], &graph[i]);
    }
    if (err == PM_OK)
        where = pm_export_difference(graph[0], graph[1]);
    x->options.any_batch = err == PM_OK && !where;
    x->pictures = x->options.any_batch ? 2 : 1;
    if (err == PM_ECONFIG || where) {
        PM_WARN("export",
                "the graph depends on the number of pictures (%s): the model takes one picture at "
                "a time; set export.batch_size for another number",
                where ? where : pm_error_text());
        err = PM_OK;
    }
    for (int i = 0; i < 2; i++) {
        pm_export_destroy(&graph[i]);
        pm_net_destroy(&net[i]);
    }
    return err;
}

/* ONNX's name of an interpolation; NULL: it has none. Its "nearest" takes another pixel than
 * preprocessing where a quotient of sides rounds differently. */
static const char *resize_mode(const char *interpolation)
{
    return strcmp(interpolation, "bilinear") == 0  ? "linear"
           : strcmp(interpolation, "bicubic") == 0 ? "cubic"
                                                   : NULL;
}

/* Sets up the padding of smaller pictures inside the graph, and options.frame unless the export
 * does not pad. */
static int set_frame(struct exporter *x)
{
    const struct pm_normal *n = &x->normal;

    if (!x->of_task.pads || x->c->exporting.any_size || !n->padded)
        return PM_OK;
    x->frame = (struct pm_export_frame){ .rule = frame_rules[n->range.rule],
                                         .min = n->range.min, .max = n->range.max,
                                         .factor = n->range.factor, .square = n->range.square,
                                         .mode = resize_mode(n->interpolation) };
    if (pm_export_frame_resizes(&x->frame) && !x->frame.mode)
        return pm_fail(PM_ECONFIG,
                       "%s: export.pad: the model would resize pictures, but ONNX does "
                       "not compute input.resize_method %s as training does: set export.pad=false, "
                       "and resize pictures before the model",
                       pm_config_source(x->c, "export.pad"), n->interpolation);
    for (int k = 0; k < x->e->facts.channels; k++)
        x->frame.pad[k] = (n->pad[k] - n->mean[k]) / n->std[k];
    x->options.frame = &x->frame;
    return PM_OK;
}

/* A graph in training mode has batch norms of its own, and no rounding that tracks ranges. */
static int check_training(const struct pm_config *c)
{
    if (!c->exporting.training)
        return PM_OK;
    if (c->exporting.fold_batch_norm)
        return pm_fail(PM_ECONFIG,
                       "%s: export.training: batch norm with the statistics of the batch cannot be "
                       "folded: remove export.fold_batch_norm", c->path);
    if (c->model.quantize_delay >= 0)
        return pm_fail(PM_ECONFIG,
                       "%s: export.training: ONNX has no operators for the ranges that a quantised "
                       "net tracks in training: set model.quantize_delay to -1, or remove "
                       "export.training", c->path);
    return PM_OK;
}

static int make_graph(struct exporter *x)
{
    const struct pm_config_export *c = &x->c->exporting;
    const struct pm_task_facts *s = &x->e->facts;
    const bool fold = c->preprocessing == PM_EXPORT_FOLD;
    int err = PM_OK;

    PM_TRY(check_training(x->c));
    PM_TRY(s->preprocessing->normal(s->preprocessing_cfg, s->channels, &x->normal));
    x->pixels.own = x->normal.own;
    memcpy(x->pixels.mean, x->normal.mean, sizeof x->pixels.mean);
    memcpy(x->pixels.std, x->normal.std, sizeof x->pixels.std);
    x->options = (struct pm_export_options){
        .any_batch = c->batch_size == 0, .any_size = c->any_size,
        .fold_batch_norm = c->fold_batch_norm, .training = c->training,
        .end = x->of_task.end,
        .pixels = fold ? &x->pixels : NULL,
        .input = fold && x->e->task_row->spatial ? "ImageTensor" : NULL, /* as in the original */
        .read = read_variable, .ctx = x,
    };
    PM_TRY(set_frame(x));
    PM_TRY(settle_pictures(x));
    PM_TRY(graph_of(x, x->height, x->width, &x->net, &x->graph));
    if (c->any_size)
        PM_TRY(check_any_size(x));
out:
    return err;
}

/* ---- notes ------------------------------------------------------------------------------- */

static void add_json(struct exporter *x, const char *key, cJSON *value)
{
    struct pm_onnx_model *m = pm_export_model(x->graph);
    char *text = pm_json_print(value);

    pm_onnx_add_meta(m, key, pm_arena_strdup(m->arena, text));
    pm_free(text);
    cJSON_Delete(value);
}

/* Describes how pictures become the input, in words and numbers, with the preprocessing's own
 * options. */
static cJSON *preprocessing_note(const struct exporter *x)
{
    const struct pm_task_facts *s = &x->e->facts;
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", s->preprocessing->name);
    cJSON_AddStringToObject(o, "fit",
                            x->options.frame
                                ? x->frame.rule == PM_FRAME_RATIO && !x->frame.min
                                      ? "unchanged: the model resizes and pads pictures of any size"
                                      : "unchanged: the model resizes and pads pictures, which "
                                        "must not be larger than this size after resizing"
                            : s->own_sizes && !takes_resized(&x->normal)
                                ? x->options.any_size ? "unchanged: pictures of any size"
                                                      : "unchanged: pictures of exactly this size"
                                : x->normal.fit);
    cJSON_AddStringToObject(o, "interpolation", x->normal.interpolation);
    cJSON_AddItemToObject(o, "size",
                          cJSON_CreateIntArray((const int[]){ x->height, x->width }, 2));
    cJSON_AddStringToObject(o, "channels", s->channels == 1 ? "grey" : "RGB");
    cJSON_AddItemToObject(o, "range", cJSON_CreateIntArray((const int[]){ 0, 255 }, 2));
    if (x->normal.own) {
        cJSON_AddStringToObject(o, "mean", "of the picture");
        cJSON_AddStringToObject(o, "std", "of the picture, at least 1 / sqrt(values)");
    } else {
        cJSON_AddItemToObject(o, "mean", cJSON_CreateFloatArray(x->normal.mean, s->channels));
        cJSON_AddItemToObject(o, "std", cJSON_CreateFloatArray(x->normal.std, s->channels));
    }
    if (x->normal.padded)
        cJSON_AddItemToObject(o, "pad", cJSON_CreateFloatArray(x->normal.pad, s->channels));
    cJSON_AddBoolToObject(o, "inside", x->options.pixels != NULL);
    if (s->preprocessing->opts)
        pm_opts_dump(s->preprocessing->opts, s->preprocessing_cfg,
                     cJSON_AddObjectToObject(o, "options"), false);
    return o;
}

static cJSON *labels_note(const struct pm_task_facts *s)
{
    cJSON *list = cJSON_CreateArray();

    for (int i = 0; i < s->num_classes; i++)
        cJSON_AddItemToArray(list, s->labels[i] ? cJSON_CreateString(s->labels[i])
                                                : cJSON_CreateNull());
    return list;
}

static int add_notes(struct exporter *x)
{
    struct pm_onnx_model *m = pm_export_model(x->graph);
    const struct pm_task_facts *s = &x->e->facts;
    cJSON *o = NULL;
    int err = PM_OK;

    m->producer = "pumice";
    if (x->e->net_row)
        m->graph_name = x->e->net_row->name;
    add_json(x, "preprocessing", preprocessing_note(x));
    if (s->labels)
        add_json(x, "labels", labels_note(s));
    if (x->e->task_row->export_notes) {
        o = cJSON_CreateObject();
        PM_TRY(x->e->task_row->export_notes(x->e->task, o));
        add_json(x, x->e->task_row->config.name, o), o = NULL;
    }
    if (x->options.training)
        pm_onnx_add_meta(m, "training", "true");
    if (x->from && x->from->has_step)
        pm_onnx_add_meta(m, "step", pm_arena_printf(m->arena, "%llu",
                                                    (unsigned long long)x->from->step));
    pm_onnx_add_meta(m, "averages", x->averages ? "true" : "false");
out:
    cJSON_Delete(o);
    return err;
}

/* ---- writing and reporting --------------------------------------------------------------- */

static uint64_t tensor_bytes(const struct pm_onnx_model *m)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < m->tensor_count; i++)
        bytes += m->tensors[i].bytes;
    return bytes;
}

/* Counts weights and biases; in a quantised net these are bytes and 32-bit integers. Scalars and
 * 64-bit integers are not counted: they are parts of operators. */
static uint64_t parameters(const struct pm_onnx_model *m)
{
    uint64_t count = 0;

    for (size_t i = 0; i < m->tensor_count; i++)
        if (m->tensors[i].type != PM_DTYPE_I64 && m->tensors[i].rank > 0)
            count += m->tensors[i].count;
    return count;
}

/* Refuses to overwrite the checkpoint or the model that the net is read from. */
static int check_target(const struct exporter *x)
{
    const char *model = x->c->model.onnx;

    if ((x->from && pm_same_file(x->from->path, x->path)) ||
        (model && pm_same_file(model, x->path)))
        return pm_fail(PM_ECONFIG, "export: %s is an input of this command; name another OUT.onnx",
                       x->path);
    return PM_OK;
}

static int try_file(void *ctx, const char *file)
{
    struct exporter *x = ctx;

    return pm_export_try(file, x->path, x->net, x->outputs.node[0], x->graph, &x->options,
                         x->initial ? NULL : &x->match, (uint64_t)x->c->run.seed, &x->difference);
}

/* A protobuf message holds less than 2 GB; nodes and names take a small part of it. */
static int write_model(struct exporter *x, const char *file)
{
    const struct pm_onnx_model *m = pm_export_model(x->graph);
    const struct pm_config *c = x->c;
    const uint64_t most = (UINT64_C(1) << 31) - (16 << 20);
    const bool beside = c->exporting.weights == PM_EXPORT_BESIDE ||
                        (c->exporting.weights == PM_EXPORT_AUTO && tensor_bytes(m) > most);
    int err = PM_OK;

    if (!file && !c->exporting.file)
        PM_TRY(pm_config_need(c, "export.file", c->run.folder));
    struct pm_str path = { 0 };
    if (file || c->exporting.file)
        pm_str_add(&path, "%s", file ? file : c->exporting.file);
    else
        pm_str_add(&path, "%s/model.onnx", c->run.folder);
    x->path = pm_strdup(path.text);
    pm_str_free(&path);
    PM_TRY(check_target(x));
    x->difference = NAN;
    PM_TRY(pm_onnx_write_checked(m, x->path, beside, try_file, x, &x->data));
out:
    return err;
}

static double file_bytes(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

static void tell_values(cJSON *report, const char *key, const struct pm_onnx_value *v, size_t count)
{
    cJSON *list = cJSON_AddArrayToObject(report, key);

    for (size_t i = 0; i < count; i++) {
        cJSON *o = cJSON_CreateObject(), *shape = cJSON_CreateArray();

        for (int k = 0; k < v[i].rank; k++)
            cJSON_AddItemToArray(shape, v[i].dim_name[k] ? cJSON_CreateString(v[i].dim_name[k])
                                                         : cJSON_CreateNumber((double)v[i].dim[k]));
        cJSON_AddStringToObject(o, "name", v[i].name);
        cJSON_AddStringToObject(o, "type", v[i].type == PM_DTYPE_U8    ? "uint8"
                                          : v[i].type == PM_DTYPE_I32 ? "int32"
                                                                      : "float32");
        cJSON_AddItemToObject(o, "shape", shape);
        cJSON_AddItemToArray(list, o);
    }
}

static void tell(const struct exporter *x, cJSON *report)
{
    const struct pm_onnx_model *m = pm_export_model(x->graph);

    cJSON_AddStringToObject(report, "file", x->path);
    cJSON_AddNumberToObject(report, "bytes", file_bytes(x->path));
    if (x->data) {
        cJSON_AddStringToObject(report, "data", x->data);
        cJSON_AddNumberToObject(report, "data_bytes", file_bytes(x->data));
    }
    cJSON_AddNumberToObject(report, "opset", (double)m->opset);
    tell_values(report, "inputs", m->inputs, m->input_count);
    tell_values(report, "outputs", m->outputs, m->output_count);
    cJSON_AddNumberToObject(report, "operators", (double)m->node_count);
    cJSON_AddNumberToObject(report, "parameters", (double)parameters(m));
    cJSON_AddNumberToObject(report, "labels", x->e->facts.labels ? x->e->facts.num_classes : 0);
    cJSON_AddItemToObject(report, "checkpoint", x->from ? cJSON_CreateString(x->from->path)
                                                        : cJSON_CreateNull());
    cJSON_AddItemToObject(report, "step", x->from && x->from->has_step
                                              ? cJSON_CreateNumber((double)x->from->step)
                                              : cJSON_CreateNull());
    cJSON_AddBoolToObject(report, "training", x->options.training);
    cJSON_AddBoolToObject(report, "averages", x->averages);
    if (!isnan(x->difference))
        cJSON_AddNumberToObject(report, "difference", x->difference);
}

int pm_export_onnx(const struct pm_config *c, const char *file, struct cJSON *report)
{
    struct exporter x = { .c = c };
    int err = PM_OK;

    PM_TRY(open_experiment(&x));
    PM_TRY(make_graph(&x));
    PM_TRY(add_notes(&x));
    PM_TRY(write_model(&x, file));
    tell(&x, report);
out:
    close_exporter(&x);
    return err;
}
