/* detection_cases: exports the end of a detector (anchors, decoding, scores, suppression) with a
 * dynamic batch, together with inputs and Pumice's outputs for several batch sizes, for
 * tests/onnx/detection_check.py.
 *
 *   detection_cases FOLDER
 *
 * Each case is a line of JSON: name, onnx, inputs and outputs (name, file, type, shape in Pumice's
 * order: maps are NHWC). Codes and logits are random. Every third picture has no detection. */
#include <pumice/export.h>
#include <pumice/plan.h>
#include <pumice/rng.h>

#include <cjson/cJSON.h>
#include <string.h>

enum { SIDE = 64 };

struct scene {
    const char *name;
    int maps, side[2], per_cell[2]; /* anchors: 3 in the first map, 6 in the second */
    int classes;
    bool background, windows;
    const char *scores, *suppress;
    double middle;                  /* of the logits; low: few detections */
    const char *coder;              /* options of decode_boxes; NULL: none */
    const char *second;             /* options of a second suppression, by class; NULL: none */
    bool crops;                     /* its codes and logits are those of crops */
};

static const struct scene scenes[] = {
    { "sigmoid", 2, { 8, 4 }, { 3, 6 }, 3, false, false, "converter=sigmoid",
      "score_threshold=0.5 iou_threshold=0.5 max_detections_per_class=40 max_total_detections=60",
      0 },
    { "softmax, windows", 2, { 8, 4 }, { 3, 6 }, 5, true, true, "converter=softmax logit_scale=0.5",
      "score_threshold=0.2 iou_threshold=0.6", 0 },
    { "softmax, windows of the input", 2, { 8, 4 }, { 3, 6 }, 5, true, true, "converter=softmax",
      "score_threshold=1e-8 change_coordinate_frame=false max_total_detections=200", 0 },
    { "one class, fewer boxes than detections", 1, { 2, 0 }, { 3, 0 }, 1, false, false,
      "converter=sigmoid", "score_threshold=0.1 iou_threshold=0.3", 0 },
    { "class-agnostic", 2, { 8, 4 }, { 3, 6 }, 4, false, false, "converter=sigmoid",
      "score_threshold=0.3 use_class_agnostic_nms=true iou_threshold=0.5", 0 },
    { "90 classes", 2, { 8, 4 }, { 3, 6 }, 90, true, false, "converter=sigmoid",
      "score_threshold=1e-8", -2 },
    { "300 detections", 2, { 8, 4 }, { 3, 6 }, 5, false, false, "converter=sigmoid",
      "score_threshold=1e-8 iou_threshold=0.9 max_total_detections=300", 0 },
    { "equal scores", 2, { 8, 4 }, { 3, 6 }, 3, false, false, "logit_scale=1",
      "score_threshold=0.5 iou_threshold=0.4 max_detections_per_class=20", 0 },
    { "codes of corners", 2, { 8, 4 }, { 3, 6 }, 3, false, false, "converter=sigmoid",
      "score_threshold=0.3 iou_threshold=0.5", 0, "coder=corners" },
    { "two stages", 2, { 8, 4 }, { 3, 6 }, 1, true, false, "converter=softmax",
      "score_threshold=0.5 iou_threshold=0.7 max_detections_per_class=50 max_total_detections=50",
      0, NULL, "score_threshold=0.2 iou_threshold=0.6 max_total_detections=120" },
    { "two stages, windows", 2, { 8, 4 }, { 3, 6 }, 1, true, true, "converter=softmax",
      "score_threshold=0 change_coordinate_frame=false", 0, NULL,
      "score_threshold=0.3 iou_threshold=0.3" },
    { "two stages, crops", 2, { 8, 4 }, { 3, 6 }, 1, true, false, "converter=softmax",
      "score_threshold=0.5 iou_threshold=0.7 max_detections_per_class=50 max_total_detections=50",
      0, NULL, "score_threshold=0.3 iou_threshold=0.6", true },
};

static const char *folder;

/* outputs: 6, and 7 with a second suppression, whose boxes are the last output. */
struct net {
    struct pm_net *net;
    struct pm_node *out[7];
    int outputs;
};

static const char *const output_names[] = { "detection_boxes", "detection_scores",
                                            "detection_classes", "num_detections", "anchors",
                                            "raw_detection_scores", "second_boxes", NULL };

/* Adds a map as an input, and the layer of this spec on the boxes of the first suppression. */
static struct pm_node *crops_of(struct pm_net *net, const char *name, struct pm_shape map,
                                struct pm_node *first, const char *spec)
{
    struct pm_node *in[] = { pm_net_input(net, name, map, PM_F32), first, first->out[3] };

    return pm_net_add_many(net, pm_arena_printf(net->arena, "%s/crops", name), in, 3, "%s", spec);
}

/* Classifies and corrects the boxes of the first suppression; 3 classes. *boxes: before the second
 * suppression. */
static struct pm_node *second_stage(const struct scene *s, struct pm_net *net, int batch,
                                    struct pm_node *first, struct pm_node *windows,
                                    struct pm_node **boxes)
{
    enum { CLASSES = 3 };

    if (net->error)
        return first;
    const int rows = first->out_shape.dim[1];
    struct pm_node *in[4], *logits, *codes;

    if (s->crops) {
        codes = crops_of(net, "boxes_second", PM_SHAPE4(batch, 6, 5, 4 * CLASSES), first,
                         "crop_and_resize size=[4,3]");
        codes = pm_net_add(net, "means", codes, "global_pool");
        logits = crops_of(net, "classes_second", PM_SHAPE4(batch, 7, 6, 6 * (1 + CLASSES)), first,
                          "sensitive_crops bins=[2,3] size=[4,6]");
        logits = pm_net_add(net, "logits", logits, "reshape shape=[-1,%d,1,%d]", rows, 1 + CLASSES);
    } else {
        codes = pm_net_input(net, "boxes_second", PM_SHAPE4(batch, rows, 1, 4 * CLASSES), PM_F32);
        logits = pm_net_input(net, "classes_second", PM_SHAPE4(batch, rows, 1, 1 + CLASSES),
                              PM_F32);
    }
    codes = pm_net_add(net, "codes", codes, "reshape shape=[-1,%d]", 4 * CLASSES);
    *boxes = in[0] = pm_net_add_many(net, "second_boxes", (struct pm_node *[]){ codes, first }, 2,
                            "decode_boxes");
    in[1] = pm_net_add(net, "second_scores", logits, "class_scores classes=%d converter=softmax",
                       CLASSES);
    in[2] = windows;
    in[2 + (windows != NULL)] = first->out[3];
    return pm_net_add_many(net, "detection_boxes", in, 3 + (windows != NULL), "suppress %s",
                           s->second);
}

static void build(const struct scene *s, int batch, struct net *n)
{
    struct pm_node *anchors_of[3], *boxes[3], *classes[2], *in[3];
    struct pm_net *net = n->net = pm_net_create();
    const int columns = s->classes + s->background;

    anchors_of[0] = pm_net_input(net, "images", PM_SHAPE4(batch, SIDE, SIDE, 3), PM_F32);
    for (int k = 0; k < s->maps; k++) {
        char name[16];
        const int side = s->side[k], a = s->per_cell[k];

        snprintf(name, sizeof name, "boxes_%d", k + 1);
        boxes[k] = pm_net_input(net, name, PM_SHAPE4(batch, side, side, 4 * a), PM_F32);
        snprintf(name, sizeof name, "classes_%d", k + 1);
        classes[k] = pm_net_input(net, name, PM_SHAPE4(batch, side, side, columns * a), PM_F32);
        anchors_of[1 + k] = boxes[k];
    }
    boxes[s->maps] = pm_net_add_many(net, "priors", anchors_of, 1 + s->maps, "ssd_anchors");
    in[0] = pm_net_add_many(net, "raw_detection_boxes", boxes, 1 + s->maps, "decode_boxes %s",
                            s->coder ? s->coder : "");
    in[1] = pm_net_add_many(net, "raw_detection_scores", classes, s->maps,
                            "class_scores classes=%d background=%s %s", s->classes,
                            s->background ? "true" : "false", s->scores);
    if (s->windows)
        in[2] = pm_net_input(net, "windows", PM_SHAPE2(batch, 4), PM_F32);
    n->out[0] = pm_net_add_many(net, s->second ? "first" : "detection_boxes", in, 2 + s->windows,
                                "suppress %s", s->suppress);
    if (s->second)
        n->out[0] = second_stage(s, net, batch, n->out[0], s->windows ? in[2] : NULL, &n->out[6]);
    n->outputs = s->second ? 7 : 6;
    n->out[5] = in[1];
    if (net->error)
        return;
    struct pm_node *all = n->out[0];

    n->out[1] = pm_net_add(net, "detection_scores", all->out[1], "flatten");
    n->out[2] = pm_net_add(net, "detection_classes", all->out[2], "to_float add=1");
    n->out[3] = pm_net_add(net, "num_detections", all->out[3], "to_float");
    n->out[4] = pm_net_add(net, "anchors", all->out[4], "to_float");
}

static int write_array(cJSON *list, const char *stem, const char *name, struct pm_shape s,
                       const void *data)
{
    const size_t size = pm_shape_count(s) * sizeof(float);
    cJSON *o = cJSON_CreateObject();
    char path[512];

    snprintf(path, sizeof path, "%s.%s", stem, name);
    cJSON_AddStringToObject(o, "name", name);
    cJSON_AddStringToObject(o, "file", path);
    cJSON_AddStringToObject(o, "type", "float32");
    cJSON_AddItemToObject(o, "shape", cJSON_CreateIntArray(s.dim, s.rank));
    cJSON_AddItemToArray(list, o);
    FILE *f = fopen(path, "wb");
    const bool ok = f && fwrite(data, 1, size, f) == size;

    if (f && fclose(f) != 0)
        return pm_fail(PM_EFAIL, "%s: cannot be written", path);
    return ok ? PM_OK : pm_fail(PM_EFAIL, "%s: cannot be written", path);
}

/* Fills one input. */
static void fill(const struct scene *s, const struct pm_node *n, float *v)
{
    const size_t count = pm_shape_count(n->out_shape), each = count / (size_t)n->out_shape.dim[0];
    struct pm_rng r = pm_rng_make(4, pm_hash(n->name), pm_hash(s->name), each);
    const bool logits = n->name[0] == 'c', coarse = strcmp(s->name, "equal scores") == 0;

    for (size_t i = 0; i < count; i++) {
        v[i] = (float)(6 * pm_rng_uniform(&r) - 3);
        if (logits && coarse)
            v[i] = (float)pm_rng_int(&r, 0, 4) / 4;
        if (logits && i / each % 3 == 1)
            v[i] = coarse ? 0 : -100; /* no detection; with softmax each class is behind another */
        else if (logits)
            v[i] += (float)s->middle;
        if (strcmp(n->name, "windows") == 0)
            v[i] = i % 4 < 2 ? (float)(i / 4) * 0.01f : 0.5f + (float)(i % 7) * 0.05f;
    }
    if (logits && s->second && strcmp(n->name, "classes_second") == 0)
        return;
    if (logits && s->background) /* the background is certain in pictures without detections */
        for (size_t i = 0; i < count; i += (size_t)(s->classes + 1))
            v[i] = i / each % 3 == 1 ? 100 : v[i];
}

static int read_nothing(void *ctx, const struct pm_variable *v, float *data)
{
    (void)ctx, (void)v, (void)data;
    return PM_EFAIL;
}

static int export_scene(const struct scene *s, const char *path)
{
    struct net n = { 0 };
    struct pm_export *g = NULL;
    int err = PM_OK;

    build(s, 1, &n);
    PM_TRY(n.net->error);
    const struct pm_node *const also[] = { n.out[1], n.out[2], n.out[3], n.out[4], n.out[5],
                                           n.out[6] };
    const enum pm_places places[7] = { [6] = PM_PLACES_BOXES };
    PM_TRY(pm_export_create(n.net, n.out[0], &(struct pm_export_options){
        .any_batch = true, .also = also, .also_count = n.outputs - 1, .places = places,
        .read = read_nothing }, &g));
    PM_TRY(pm_onnx_write(pm_export_model(g), path, false, NULL));
out:
    pm_export_destroy(&g);
    pm_net_destroy(&n.net);
    return err;
}

static int run_scene(struct pm_device *d, const struct scene *s, int index, int batch)
{
    struct net n = { 0 };
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;
    cJSON *json = cJSON_CreateObject();
    cJSON *inputs = cJSON_AddArrayToObject(json, "inputs");
    cJSON *outputs = cJSON_AddArrayToObject(json, "outputs");
    char stem[300], path[320], name[100], *text = NULL;
    const char *names[8] = { NULL };
    int err = PM_OK;

    build(s, batch, &n);
    PM_TRY(n.net->error);
    snprintf(stem, sizeof stem, "%s/%d_%d", folder, index, batch);
    snprintf(path, sizeof path, "%s/%d.onnx", folder, index);
    snprintf(name, sizeof name, "%s, batch %d", s->name, batch);
    PM_TRY(export_scene(s, path));
    PM_TRY(pm_variables_create(d, n.net, false, NULL, &v));
    memcpy(names, output_names, (size_t)n.outputs * sizeof *names);
    PM_TRY(pm_plan_create(n.net, d, v, &(struct pm_plan_options){
        .name = "eval", .outputs = names, .slots = 1, .loss_share = 1 }, &plan));
    PM_TRY(pm_plan_load(plan));
    for (int i = 0; i < n.net->count; i++) {
        const struct pm_node *x = n.net->nodes[i];
        float *data;

        if (x->inputs > 0)
            continue;
        const bool used = strcmp(x->name, "images") != 0;

        data = used ? pm_plan_input(plan, 0, x->name, 0)
                    : pm_calloc(pm_shape_count(x->out_shape), sizeof *data);
        fill(s, x, data);
        PM_TRY(write_array(inputs, stem, x->name, x->out_shape, data));
        if (!used)
            pm_free(data);
    }
    PM_TRY(pm_plan_submit(plan, 0));
    PM_TRY(pm_plan_wait(plan, 0));
    for (int k = 0; k < n.outputs; k++)
        PM_TRY(write_array(outputs, stem, output_names[k], n.out[k]->out_shape,
                           pm_plan_output(plan, 0, output_names[k], 0)));
    cJSON_AddStringToObject(json, "name", name);
    cJSON_AddStringToObject(json, "onnx", path);
    text = cJSON_PrintUnformatted(json);
    puts(text);
out:
    cJSON_free(text);
    cJSON_Delete(json);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&n.net);
    return err;
}

int main(int argc, char **argv)
{
    static const int batches[] = { 1, 3, 8 };
    struct pm_device_info *list = NULL;
    struct pm_device *d = NULL;
    size_t count, index;
    int err = PM_OK;

    folder = argc > 1 ? argv[1] : ".";
    PM_TRY(pm_device_list(&list, &count));
    PM_TRY(pm_device_find(list, count, "cpu", "detection_cases", &index));
    PM_TRY(pm_device_open(&list[index], &(struct pm_device_options){ .hang_seconds = 1e9 }, &d));
    for (size_t i = 0; i < PM_COUNT(scenes); i++)
        for (size_t b = 0; b < PM_COUNT(batches); b++)
            PM_TRY(run_scene(d, &scenes[i], (int)i, batches[b]));
out:
    if (err < 0)
        fprintf(stderr, "detection_cases: %s\n", pm_error_text());
    pm_device_close(&d);
    pm_free(list);
    return err < 0;
}
