/* export_cases: exports nets and single layers with random values, together with inputs and
 * Pumice's outputs, for tests/onnx/export_check.py.
 *
 *   export_cases nets                          prints the names of all named nets
 *   export_cases net FOLDER NAME [OPTION ...]  fold: batch norm folded; beside: weights in a
 *     file of their own; size: any size, computed at a size other than that of the export;
 *     pixels: bytes as input, in the form of the vgg and inception preprocessings; probabilities
 *   export_cases layers FOLDER                 every small case of tests/layers/, in evaluation
 *
 * Each case is a line of JSON: name, onnx, inputs (name, file, type, shape in Pumice's order:
 * images are NHWC), expected (file), type, shape. Files hold the elements only. */
#include <pumice/export.h>
#include <pumice/plan.h>
#include <pumice/rng.h>

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "../layers/check_run.h"

#define PM_LAYER(name) extern const struct pm_layer_test pm_test_##name;
#include "layers/layers.def"
#undef PM_LAYER

static const struct entry entries[] = {
#define PM_LAYER(name) { #name, &pm_test_##name },
#include "layers/layers.def"
#undef PM_LAYER
};

static const char *folder;

static int write_file(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(data, 1, size, f) == size;

    if (f && fclose(f) != 0)
        ok = false;
    return ok ? PM_OK : pm_fail(PM_EFAIL, "%s: cannot be written", path);
}

static cJSON *shape_json(struct pm_shape s)
{
    return cJSON_CreateIntArray(s.dim, s.rank);
}

static int add_input(cJSON *list, const char *stem, const char *name, struct pm_shape s,
                     const char *type, const void *data, size_t bytes)
{
    cJSON *o = cJSON_CreateObject();
    char path[512];

    snprintf(path, sizeof path, "%s.in%d", stem, cJSON_GetArraySize(list));
    cJSON_AddStringToObject(o, "name", name);
    cJSON_AddStringToObject(o, "file", path);
    cJSON_AddStringToObject(o, "type", type);
    cJSON_AddItemToObject(o, "shape", shape_json(s));
    cJSON_AddItemToArray(list, o);
    return write_file(path, data, bytes);
}

static int print_case(cJSON *o, const char *stem, struct pm_shape s, const char *type,
                      const void *expected)
{
    char path[512];
    char *text;

    snprintf(path, sizeof path, "%s.expected", stem);
    cJSON_AddStringToObject(o, "expected", path);
    cJSON_AddStringToObject(o, "type", type);
    cJSON_AddItemToObject(o, "shape", shape_json(s));
    text = cJSON_PrintUnformatted(o);
    puts(text);
    cJSON_free(text);
    return write_file(path, expected, pm_shape_count(s) * 4);
}

static int open_cpu(struct pm_device **out)
{
    struct pm_device_info *list = NULL;
    size_t count, index;
    int err = PM_OK;

    PM_TRY(pm_device_list(&list, &count));
    PM_TRY(pm_device_find(list, count, "cpu", "export_cases", &index));
    PM_TRY(pm_device_open(&list[index], &(struct pm_device_options){ .hang_seconds = 1e9 }, out));
out:
    pm_free(list);
    return err;
}

/* ---- nets -------------------------------------------------------------------------------- */

struct net_options {
    bool fold, beside, size, pixels, probabilities;
};

/* Whether the net's outputs are maps. */
static bool segments(const struct pm_net_row *row)
{
    return strcmp(row->task, "segmentation") == 0;
}

static struct pm_net *build(const struct pm_net_row *row, int batch, int size, bool any_size,
                            struct pm_heads *heads)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *images =
        pm_net_input(net, "images", PM_SHAPE4(batch, size, size, row->default_channels), PM_F32);
    void *cfg = pm_arena_alloc(net->arena, row->cfg_size + 1);
    cJSON *options = cJSON_CreateObject();

    if (any_size && row->opts && pm_opts_find(row->opts, "global_pool") >= 0)
        cJSON_AddTrueToObject(options, "global_pool");
    /* settle() needs the statistics of the batch. With frozen ones the values of a deep net
     * saturate, and their variances, which are almost 0, then enlarge roundings. */
    if (row->opts && pm_opts_find(row->opts, "batch_norm_train") >= 0)
        cJSON_AddTrueToObject(options, "batch_norm_train");
    if (segments(row) && strcmp(row->name, "deeplab_mobilenet_edgetpu") != 0) {
        cJSON_AddNumberToObject(options, "decoder_strides", 4);
        cJSON_AddNumberToObject(options, "aspp_rates", 2);
    }
    if (row->opts && pm_opts_parse(row->opts, options, NULL, cfg, net->arena, "model"))
        net->error = PM_ECONFIG;
    *heads = (struct pm_heads){ 0 };
    if (!net->error)
        row->build(net, images, 17, cfg, heads);
    cJSON_Delete(options);
    return net;
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);

    return n >= k && strcmp(name + n - k, end) == 0;
}

/* Weights that neither shrink nor grow the activations, independent of the net's initial values;
 * no variable keeps its 0 or 1. Residual branches of ResNet end in smaller values: conv3's gamma in
 * resnet_v1, conv3's weights in resnet_v2, which has no batch norm there. Otherwise fifty units in
 * sequence would amplify roundings more than in any trained net. */
static double largest(const struct pm_variable *v, double *middle)
{
    const bool gamma = ends_with(v->name, "/gamma");
    const double end = ends_with(v->name, "/conv3/BatchNorm/gamma") ? 0.2 : 1;

    *middle = gamma ? end : 0;
    if (ends_with(v->name, "/conv3/weights"))
        return 0.3 * sqrt(6.0 / v->fan_in);
    return gamma || ends_with(v->name, "/beta") ? 0.5 * end
           : ends_with(v->name, "/biases")      ? 0.2
                                                : sqrt(6.0 / v->fan_in);
}

static int make_values(struct pm_variables *v)
{
    float *data = NULL;
    int err = PM_OK;

    PM_TRY(pm_variables_init(v, 7, NULL)); /* settle() sets moving averages, or they keep their
                                            * initial values */
    for (int i = 0; i < v->count; i++) {
        const struct pm_variable *x = &v->list[i];
        const size_t count = pm_shape_count(x->shape);
        struct pm_rng r = pm_rng_make(11, pm_hash(x->name), 0, 0);
        double middle;
        const double most = largest(x, &middle);

        if (!x->trainable)
            continue;
        data = pm_realloc(data, count * sizeof *data);
        for (size_t j = 0; j < count; j++)
            data[j] = (float)(middle + most * (2 * pm_rng_uniform(&r) - 1));
        PM_TRY(pm_variables_write(v, i, -1, data));
    }
out:
    pm_free(data);
    return err;
}

/* Sets the moving averages of a batch norm to the mean and variance of its input, slightly
 * changed. */
static int settle_one(struct pm_variables *v, const struct pm_node *n, const float *x)
{
    const struct pm_shape s = n->out_shape;
    const int c = s.dim[s.rank - 1], last = n->var_count;
    const size_t rows = pm_shape_count(s) / (size_t)c;
    float *mean = pm_malloc((size_t)c * sizeof *mean),
          *variance = pm_malloc((size_t)c * sizeof *mean);
    int err = PM_OK;

    for (int k = 0; k < c; k++) {
        double sum = 0, squares = 0;

        for (size_t i = 0; i < rows; i++)
            sum += x[i * (size_t)c + (size_t)k];
        sum /= (double)rows;
        for (size_t i = 0; i < rows; i++) {
            const double d = x[i * (size_t)c + (size_t)k] - sum;
            squares += d * d;
        }
        mean[k] = (float)(sum + 0.1 * sqrt(squares / (double)rows) * (k % 3 - 1));
        variance[k] = (float)(squares / (double)rows * (0.8 + 0.1 * (k % 5)) + 1e-3);
    }
    PM_TRY(pm_variables_write(v, n->vars[last - 2], -1, mean));
    PM_TRY(pm_variables_write(v, n->vars[last - 1], -1, variance));
out:
    pm_free(mean);
    pm_free(variance);
    return err;
}

/* Sets moving averages like those after training, by one forward pass with the batch's own
 * statistics. Without it the outputs of a deep net would not depend on the picture. */
static int settle(struct pm_net *net, struct pm_device *d, struct pm_variables *v,
                  const float *images, size_t count)
{
    const char **outputs = pm_calloc((size_t)net->count + 1, sizeof *outputs);
    struct pm_plan *plan = NULL;
    int err = PM_OK, used = 0;

    for (int i = 0; i < net->count; i++)
        if (strcmp(net->nodes[i]->layer->name, "batch_norm") == 0)
            outputs[used++] = net->nodes[i]->in[0]->name;
    if (used == 0)
        goto out;
    PM_TRY(pm_plan_create(net, d, v, &(struct pm_plan_options){
        .name = "settle", .train = true, .outputs = outputs, .slots = 1, .loss_share = 1 }, &plan));
    PM_TRY(pm_plan_load(plan));
    memcpy(pm_plan_input(plan, 0, "images", 0), images, count * sizeof *images);
    if (pm_plan_step(plan, 0)) /* with dropout */
        *pm_plan_step(plan, 0) = (struct pm_step){ .step = 1, .seed_low = 3 };
    PM_TRY(pm_plan_submit(plan, 0));
    PM_TRY(pm_plan_wait(plan, 0));
    for (int i = 0; i < net->count; i++)
        if (strcmp(net->nodes[i]->layer->name, "batch_norm") == 0)
            PM_TRY(settle_one(v, net->nodes[i],
                              pm_plan_output(plan, 0, net->nodes[i]->in[0]->name, 0)));
out:
    pm_plan_destroy(&plan);
    pm_free(outputs);
    return err;
}

static int read_variable(void *ctx, const struct pm_variable *v, float *data)
{
    return pm_variables_read(ctx, v->index, -1, data);
}

static void softmax(float *x, int rows, int k)
{
    for (int i = 0; i < rows; i++, x += k) {
        float most = x[0], sum = 0;

        for (int j = 1; j < k; j++)
            most = fmaxf(most, x[j]);
        for (int j = 0; j < k; j++)
            sum += x[j] = expf(x[j] - most);
        for (int j = 0; j < k; j++)
            x[j] /= sum;
    }
}

/* images: the net's input; pixels: the bytes from which it is computed. */
static void make_images(float *images, uint8_t *pixels, size_t count,
                        const struct pm_export_pixels *p, int channels)
{
    struct pm_rng r = pm_rng_make(5, 5, 5, 5);

    for (size_t i = 0; i < count; i++) {
        pixels[i] = (uint8_t)pm_rng_int(&r, 0, 255);
        images[i] = (pixels[i] - p->mean[i % (size_t)channels]) / p->std[i % (size_t)channels];
    }
}

static int export_net(const struct pm_net_row *row, const struct net_options *o)
{
    const bool vgg = strcmp(row->preprocessing, "vgg") == 0;
    const struct pm_export_pixels pixels = {
        false,
        { vgg ? 123.68f : 127.5f, vgg ? 116.78f : 127.5f, vgg ? 103.94f : 127.5f },
        { vgg ? 64 : 127.5f, vgg ? 64 : 127.5f, vgg ? 64 : 127.5f }
    };
    const int batch = 2, size = segments(row) ? 97 : row->default_size;
    const int run_size = o->size ? size + 37 : size;
    const int channels = row->default_channels;
    const size_t count = (size_t)batch * run_size * run_size * channels;
    size_t logit_count;
    float *images = pm_malloc(count * sizeof *images), *logits = NULL;
    uint8_t *bytes = pm_malloc(count);
    struct pm_device *device = NULL;
    struct pm_heads heads = { 0 }, exported = { 0 };
    struct pm_net *net = build(row, batch, run_size, o->size, &heads), *one = NULL;
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;
    struct pm_export *g = NULL;
    cJSON *json = cJSON_CreateObject(), *inputs = cJSON_AddArrayToObject(json, "inputs");
    char stem[400], path[512];
    int err = PM_OK;

    snprintf(stem, sizeof stem, "%s/%s", folder, row->name);
    snprintf(path, sizeof path, "%s.onnx", stem);
    PM_TRY(net->error);
    PM_TRY(open_cpu(&device));
    PM_TRY(pm_variables_create(device, net, false, NULL, &v));
    PM_TRY(pm_variables_allocate(v));
    PM_TRY(make_values(v));
    make_images(images, bytes, count, &pixels, channels);
    PM_TRY(settle(net, device, v, images, count));
    const char *const outputs[] = { pm_heads_main(&heads)->name, NULL };
    PM_TRY(pm_plan_create(net, device, v, &(struct pm_plan_options){
        .name = "eval", .outputs = outputs, .slots = 1, .loss_share = 1 }, &plan));
    PM_TRY(pm_plan_load(plan));
    memcpy(pm_plan_input(plan, 0, "images", 0), images, count * sizeof *images);
    PM_TRY(pm_plan_submit(plan, 0));
    PM_TRY(pm_plan_wait(plan, 0));
    logit_count = pm_shape_count(pm_heads_main(&heads)->out_shape);
    logits = pm_malloc(logit_count * sizeof *logits);
    memcpy(logits, pm_plan_output(plan, 0, outputs[0], 0), logit_count * sizeof *logits);
    if (o->probabilities)
        softmax(logits, (int)(logit_count / 17), 17);

    one = build(row, 1, size, o->size, &exported);
    PM_TRY(one->error);
    PM_TRY(pm_export_create(one, pm_heads_main(&exported), &(struct pm_export_options){
        .any_batch = true, .any_size = o->size, .fold_batch_norm = o->fold,
        .end = o->probabilities ? PM_END_SOFTMAX : PM_END_NONE,
        .pixels = o->pixels ? &pixels : NULL,
        .read = read_variable, .ctx = v }, &g));
    PM_TRY(pm_onnx_write(pm_export_model(g), path, o->beside, NULL));
    cJSON_AddStringToObject(json, "name", row->name);
    cJSON_AddStringToObject(json, "onnx", path);
    PM_TRY(add_input(inputs, stem, "images", PM_SHAPE4(batch, run_size, run_size, channels),
                     o->pixels ? "uint8" : "float32", o->pixels ? (void *)bytes : (void *)images,
                     count * (o->pixels ? 1 : sizeof *images)));
    PM_TRY(print_case(json, stem, pm_heads_main(&heads)->out_shape, "float32", logits));
out:
    pm_export_destroy(&g);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&one);
    pm_net_destroy(&net);
    pm_device_close(&device);
    cJSON_Delete(json);
    pm_free(images);
    pm_free(logits);
    pm_free(bytes);
    return err;
}

/* ---- layers ------------------------------------------------------------------------------ */

static int read_case_variable(void *ctx, const struct pm_variable *v, float *data)
{
    const struct subject *s = ctx;
    const struct image *m = &s->values[s->w[v->index].value];

    memcpy(data, m->data, pm_shape_count(v->shape) * sizeof *data);
    return PM_OK;
}

static const struct image *value_of(struct subject *s, struct pm_tensor t)
{
    return &s->values[t.value];
}

/* The cases of training give arbitrary values to averages that they do not read; variances must
 * be positive. */
static void make_variances_positive(struct subject *s)
{
    for (int k = 0; k < s->net->var_count; k++) {
        const struct pm_variable *v = s->net->vars[k];
        float *data = (float *)(void *)value_of(s, s->w[k])->data;

        for (size_t i = 0; ends_with(v->name, "variance") && i < pm_shape_count(v->shape); i++)
            data[i] = 0.3f + fabsf(data[i]);
    }
}

/* Exports the case with output k as the model's output. */
static int export_case(struct pm_device *device, const struct entry *e, const struct check_case *c,
                       int number, int k, int *outputs)
{
    static const char *const types[] = { "float32", "int32", "uint32", "uint8" };
    struct check_case evaluation = *c;
    struct pm_node *last;
    struct subject *s = NULL;
    struct pm_export *g = NULL;
    cJSON *json = cJSON_CreateObject(), *inputs = cJSON_AddArrayToObject(json, "inputs");
    char stem[400], path[512], name[300];
    int err = PM_OK;

    evaluation.train = false;
    snprintf(stem, sizeof stem, "%s/%s_%d_%d", folder, e->name, number, k);
    snprintf(path, sizeof path, "%s.onnx", stem);
    snprintf(name, sizeof name, "%s of %s, output %d", c->options, c->inputs, k);
    PM_TRY(subject_build(e, &evaluation, &(struct build_options){ 0 }, &s));
    make_variances_positive(s);
    /* Exported as rows: the checker computes other shapes for maps of windows that reach beyond
     * the padding. */
    last = s->node->out[k];
    *outputs = s->node->outputs;
    if (last->out_shape.rank > 2)
        last = pm_net_add(s->net, "rows", last, "flatten");
    PM_TRY(s->net->error);
    err = pm_export_create(s->net, last, &(struct pm_export_options){
        .read = read_case_variable, .ctx = s }, &g);
    if (c->no_onnx && err == PM_ECONFIG) {
        err = PM_OK;
        goto out;
    }
    if (c->no_onnx)
        err = pm_fail(PM_EFAIL, "%s: the export does not refuse it", name);
    PM_TRY(err);
    PM_TRY(pm_onnx_write(pm_export_model(g), path, false, NULL));
    cJSON_AddStringToObject(json, "name", name);
    cJSON_AddStringToObject(json, "onnx", path);
    for (int i = 0; i < s->node->inputs; i++) {
        const struct pm_node *in = s->node->in[i];

        PM_TRY(add_input(inputs, stem, in->name, in->out_shape, types[in->out_type],
                         value_of(s, s->x[i])->data,
                         pm_shape_count(in->out_shape) * pm_type_size(in->out_type)));
    }
    if (s->forward_calls > 0)
        PM_TRY(subject_run(s, device, &(struct run_options){ .last = s->forward_calls,
                                                             .accumulate = -1 }));
    PM_TRY(print_case(json, stem, s->node->out[k]->out_shape, types[s->node->out[k]->out_type],
                      value_of(s, s->ys[k])->data));
out:
    pm_export_destroy(&g);
    subject_free(&s);
    cJSON_Delete(json);
    return err;
}

static int export_layers(void)
{
    struct pm_device *device = NULL;
    int err = PM_OK;

    PM_TRY(open_cpu(&device));
    for (size_t i = 0; i < PM_COUNT(entries); i++)
        for (int k = 0; entries[i].test->cases[k].options; k++)
            for (int o = 0, outputs = 1;
                 o < outputs && !entries[i].test->cases[k].large && !entries[i].test->loss; o++)
                PM_TRY(export_case(device, &entries[i], &entries[i].test->cases[k], k, o,
                                   &outputs));
out:
    pm_device_close(&device);
    return err;
}

/* ------------------------------------------------------------------------------------------ */

static bool has(int argc, char **argv, const char *word)
{
    for (int i = 4; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    const struct pm_net_row *const *rows;
    size_t count;
    int err = PM_ECONFIG;

    folder = argc > 2 ? argv[2] : NULL;
    if (argc == 2 && strcmp(argv[1], "nets") == 0) {
        rows = pm_net_rows(&count);
        for (size_t i = 0; i < count; i++)
            puts(rows[i]->name);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "layers") == 0) {
        err = export_layers();
    } else if (argc > 3 && strcmp(argv[1], "net") == 0 && pm_net_row_find(argv[3])) {
        const struct net_options o = { has(argc, argv, "fold"), has(argc, argv, "beside"),
                                       has(argc, argv, "size"), has(argc, argv, "pixels"),
                                       has(argc, argv, "probabilities") };
        err = export_net(pm_net_row_find(argv[3]), &o);
    } else {
        pm_fail(PM_ECONFIG, "export_cases: what?");
    }
    if (err < 0)
        fprintf(stderr, "export_cases: %s\n", pm_error_text());
    return err < 0;
}
