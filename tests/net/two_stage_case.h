/* Parts of two_stage_golden_test: the case that is under way, its golden, the task of the golden's
 * model, and the values of variables. */
#ifndef TWO_STAGE_CASE_H
#define TWO_STAGE_CASE_H

#include "golden_values.h"
#include "tasks/detection/detection_setup.h"

#include "experiment/experiment_parts.h"

enum { BATCH = 2, BOXES = 3, OBJECT_CLASSES = 5, MOST_OUTPUTS = 16 };

/* What a test holds; end() frees it, also after a failure. */
static struct {
    struct setup s;
    bool open;
    struct golden g;
    cJSON *statistics;
    struct pm_net *net;
    struct pm_variables *variables;
    struct pm_plan *plan;
    struct pm_heads first, second; /* the net's heads as its row builds them */
    int rows;                      /* of a picture in the second stage, with padding */
    int count[BATCH];              /* those without */
} c;

static struct pm_device *device;
static const char *device_name = "cpu";

static inline const cJSON *member(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

    if (!v)
        fail_msg("the golden has no %s", key);
    return v;
}

static inline double option(const char *key)
{
    return number(member(c.g.root, "options"), key);
}

static inline bool has_masks(void)
{
    return number(member(c.g.root, "options"), "stages") == 3;
}

static inline bool is_rfcn(void)
{
    return strcmp(member(c.g.root, "predictor")->valuestring, "rfcn_box_predictor") == 0;
}

/* Returns a text that is valid until the next call. */
static inline const char *format(const char *f, ...) PM_PRINTF(1, 2);
static inline const char *format(const char *f, ...)
{
    static char text[512];
    va_list args;

    va_start(args, f);
    vsnprintf(text, sizeof text, f, args);
    va_end(args);
    return text;
}

static inline void check(int err)
{
    if (err < 0)
        fail_msg("%s", pm_error_text());
}

/* ---- the task ------------------------------------------------------------------------------ */

static const char labels[] = "item { id: 1 name: 'a' } item { id: 2 name: 'b' }\n"
                             "item { id: 3 name: 'c' } item { id: 4 name: 'd' }\n"
                             "item { id: 5 name: 'e' }\n";
static const char boxes_predictor[] = "\"hyperparams\": {\"initializer\": \"truncated(0.003)\"}";
static const char masks_predictor[] = "\"hyperparams\": {\"initializer\": \"truncated(0.003)\"}, "
                                      "\"predict_instance_masks\": true, "
                                      "\"mask_prediction_conv_depth\": 0";
static const char rfcn_predictor[] = "\"type\": \"rfcn\", \"crop_height\": 18, \"crop_width\": 18, "
                                     "\"hyperparams\": {\"initializer\": \"truncated(0.03)\"}";

/* The config of the golden's model. "%s" is the place of the label map. */
static inline char *config_text(void)
{
    struct pm_str t = { 0 };
    const int pool = (int)option("pool");

    pm_str_add(&t, "{\"task\": \"detection\", \"model\": {\"name\": \"%s\", "
                   "\"batch_norm_train\": %s, \"anchors\": {\"scales\": [0.0625, 0.125], "
                   "\"aspect_ratios\": [0.5, 1, 2]}, \"initial_crop_size\": %g, "
                   "\"maxpool_kernel_size\": %d, \"maxpool_stride\": %d, ", c.g.net_name,
               c.g.frozen ? "false" : "true", option("crop"), pool, pool);
    pm_str_add(&t, "\"second_stage_box_predictor\": {%s}, \"proposals\": {\"score_threshold\": %g, "
                   "\"max_proposals\": %g}, \"post_processing\": {\"score_converter\": "
                   "\"softmax\", \"score_threshold\": %g, \"iou_threshold\": 0.6, "
                   "\"max_detections_per_class\": %g, \"max_total_detections\": %g}}, ",
               is_rfcn() ? rfcn_predictor : has_masks() ? masks_predictor : boxes_predictor,
               option("threshold"), option("proposals"), option("least"), option("per_class"),
               option("detections"));
    pm_str_add(&t, "\"loss\": {\"localization\": {\"weight\": 2}, \"minibatch_sampler\": "
                   "{\"batch_size\": %g}, \"proposal_sampler\": {\"batch_size\": %g}, "
                   "\"normalize_over\": \"%s\", \"second_stage\": {\"localization_weight\": 2, "
                   "\"mask_weight\": 4}}, \"input\": {\"size\": [%d, %d]}, ",
               option("anchors"), option("rows"), has_masks() ? "clone" : "batch", c.g.height,
               c.g.width);
    pm_str_add(&t, "\"data\": {\"max_boxes\": %d, \"instance_masks\": %s, \"label_map\": \"%%s\"}}",
               BOXES, has_masks() ? "true" : "false");
    return t.text;
}

static inline int build_first(void *ctx, struct pm_net *n, struct pm_node *images,
                              struct pm_heads *heads)
{
    const struct pm_experiment *e = ctx;

    e->net_row->build(n, images, e->facts.num_classes, e->net_cfg, heads);
    c.first = *heads;
    return n->error;
}

/* The second stage of a net is kept, but not that of the detections' masks. */
static inline int build_second(void *ctx, struct pm_net *n, const struct pm_regions *regions,
                               struct pm_heads *heads)
{
    const struct pm_experiment *e = ctx;

    e->net_row->second(n, regions, e->facts.num_classes, e->net_cfg, heads);
    if (!n->pass) {
        c.second = *heads;
        c.rows = regions->boxes->out_shape.dim[1];
    }
    return n->error;
}

static struct pm_net_maker maker(void)
{
    return (struct pm_net_maker){ build_first, build_second, c.s.e };
}


static inline void load(const char *name)
{
    cJSON *o = read_net_golden(format("two_stage/%s", name));
    char *text;

    c.g = (struct golden){
        .case_name = pm_strdup(name), .root = o, .tensors = cJSON_GetObjectItem(o, "tensors"),
        .moves = cJSON_GetObjectItem(o, "moves"), .net_name = member(o, "net")->valuestring,
        .batch = (int)number(o, "batch"), .height = (int)number(o, "height"),
        .width = (int)number(o, "width"), .channels = (int)number(o, "channels"),
        .classes = (int)number(o, "classes"), .seed = (uint64_t)number(o, "seed"),
        .shift = number(o, "shift"),
        .frozen = cJSON_IsFalse(member(o, "batch_norm_trainable")),
    };
    assert_int_equal(c.g.batch, BATCH);
    assert_int_equal(c.g.classes, OBJECT_CLASSES);
    c.statistics = read_net_golden("two_stage/statistics");
    setup_map = labels;
    text = config_text();
    const int err = open_setup(text, "", &c.s);
    c.open = true;
    pm_free(text);
    check(err);
    check(pm_experiment_settle(c.s.e));
    c.s.e->task->pads = true; /* the pictures do not fill the input */
}

/* ---- variables ----------------------------------------------------------------------------- */

/* Fills the averages of a batch norm from statistics.json. */
static inline void average(const struct pm_variable *v, float *out)
{
    const size_t count = pm_shape_count(v->shape);
    const bool mean = ends_with(v->name, "/moving_mean");
    const char *end = mean ? "/moving_mean" : "/moving_variance";
    const cJSON *packed =
        member(c.statistics, format("%.*s", (int)(strlen(v->name) - strlen(end)), v->name));
    const double unit = packed->child->valuedouble;
    const char *text = packed->child->next->valuestring;

    assert_true(ends_with(v->name, end));
    assert_int_equal(strlen(text), 4 * count);
    for (size_t i = 0; i < count; i++) {
        unsigned m, variance;

        assert_int_equal(sscanf(text + 4 * i, "%2x%2x", &m, &variance), 2);
        out[i] = (float)(mean ? unit * ((double)m - 128) : unit * unit * variance);
    }
}

static inline void start(const struct pm_variable *v, float *out)
{
    if (v->trainable)
        initial(&c.g, v, out);
    else
        average(v, out);
}

static inline void make_variables(bool train)
{
    check(pm_variables_create(device, c.net, train, NULL, &c.variables));
    check(pm_variables_allocate(c.variables));
    for (int i = 0; i < c.variables->count; i++) {
        const struct pm_variable *v = &c.variables->list[i];
        float *values = pm_malloc(pm_shape_count(v->shape) * sizeof *values);

        start(v, values);
        check(pm_variables_write(c.variables, i, -1, values));
        pm_free(values);
    }
}

static inline void compare_variables(void)
{
    struct pm_variables *v = c.variables;

    for (int i = 0; i < v->count; i++) {
        const size_t count = pm_shape_count(v->list[i].shape), bytes = count * sizeof(float);
        float *values = pm_malloc(2 * bytes);

        if (v->list[i].trainable)
            check(pm_buffer_read(device, v->grads, v->offset[i], values, bytes));
        else
            check(pm_variables_read(v, i, -1, values));
        if (v->list[i].trainable || !c.g.frozen) {
            compare(&c.g, v->list[i].name, values, count);
        } else { /* unchanged bit for bit */
            start(&v->list[i], values + count);
            assert_memory_equal(values, values + count, bytes);
        }
        pm_free(values);
    }
}

#endif
