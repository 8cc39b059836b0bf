/* Packed scores from another process. The first byte selects what is merged, the rest is the pack's
 * contents: the target adds a header that fits. A pack that is accepted must give a score whose own
 * pack is accepted, too, and leads to the same results. */
#include "fuzz.h"

#include "tasks/class_detail.h"
#include "tasks/detection/box_report.h"
#include "tasks/detection/lost_objects.h"
#include "tasks/score_pack.h"
#include "tasks/segmentation/segmentation.h"

#include <cjson/cJSON.h>
#include <math.h>

enum { CLASSES = 4, HEIGHT = 24, WIDTH = 40, PICTURE = 6, POINTS = 2 };
enum { CLASS_DETAIL, BOXES, PIXELS, EDGES, CITYSCAPES, COCO, STAGES, ROTATED, KINDS };

static char *text_of(cJSON *object)
{
    char *text = cJSON_PrintUnformatted(object);

    cJSON_Delete(object);
    return text;
}

/* Both texts are freed. */
static void must_equal(char *a, char *b)
{
    if (strcmp(a, b) != 0)
        __builtin_trap();
    cJSON_free(a);
    cJSON_free(b);
}

/* ---- classes and boxes ------------------------------------------------------------------- */

static char *class_results(const struct pm_class_detail *d)
{
    struct pm_class_example list[PM_MAX_SAMPLES];
    cJSON *o = cJSON_CreateObject();

    pm_class_detail_report(d, o);
    cJSON_AddNumberToObject(o, "samples", pm_class_detail_samples(d, list));
    return text_of(o);
}

static void merge_classes(struct pm_unpack u)
{
    const struct pm_task_facts facts = { .num_classes = CLASSES };
    struct pm_class_detail *d = pm_class_detail_create(&facts);
    struct pm_class_detail *again = pm_class_detail_create(&facts);
    struct pm_str pack = { 0 };

    pm_class_detail_merge(d, &u);
    if (!u.damaged) {
        pm_class_detail_pack(d, &pack);
        u = (struct pm_unpack){ .at = (const uint8_t *)pack.text, .left = pack.length };
        pm_class_detail_merge(again, &u);
        if (u.damaged || u.left)
            __builtin_trap();
        must_equal(class_results(d), class_results(again));
    }
    pm_str_free(&pack);
    pm_class_detail_destroy(&d);
    pm_class_detail_destroy(&again);
}

static char *box_results(const struct pm_box_metrics *m, bool rotated)
{
    static const char *const names[CLASSES] = { "a", NULL, "b/c", "a" };
    uint64_t records[PM_MAX_SAMPLES];
    struct pm_box_values mean;
    cJSON *o = cJSON_CreateObject();

    pm_box_metrics_values(m, 127, &mean, NULL);
    for (int k = 0; k < PM_BOX_METRICS; k++)
        cJSON_AddNumberToObject(o, pm_box_metric_names[k], mean.v[k]);
    pm_box_report_best(m, o);
    pm_box_report_detail(m, 0.5, o);
    const int count = pm_box_metrics_samples(m, 0.5, PM_MAX_SAMPLES, records);

    for (int i = 0; i < count; i++)
        pm_box_report_sample(m, records[i], 0.5, HEIGHT, WIDTH, o);
    for (int what = PM_BOX_RESULTS_BOXES; what <= PM_BOX_RESULTS_POINTS; what++)
        if (pm_box_metrics_write(m, (enum pm_box_results)what, NULL,
                                 fuzz_path("detections.json")) < 0)
            __builtin_trap();
    if (rotated && pm_box_metrics_write_dota(m, names, fuzz_folder) < 0)
        __builtin_trap();
    return text_of(o);
}

static void merge_boxes(struct pm_unpack u, bool rotated)
{
    static const double sigmas[CLASSES][POINTS] = { { 0.1, 0.2 }, { NAN, 0.3 }, { NAN, NAN },
                                                    { 0.5, 0.5 } };
    const struct pm_box_metrics_options o = { .classes = CLASSES, .recall_upper = 1,
                                              .masks = true, .points = POINTS,
                                              .rotated = rotated,
                                              .sigmas = sigmas[0] };
    struct pm_box_metrics *m = pm_box_metrics_create(&o), *again = pm_box_metrics_create(&o);
    struct pm_str pack = { 0 };

    pm_box_metrics_merge(m, &u);
    if (!u.damaged) {
        pm_box_metrics_pack(m, &pack);
        u = (struct pm_unpack){ .at = (const uint8_t *)pack.text, .left = pack.length };
        pm_box_metrics_merge(again, &u);
        if (u.damaged || u.left)
            __builtin_trap();
        must_equal(box_results(m, rotated), box_results(again, rotated));
    }
    pm_str_free(&pack);
    pm_box_metrics_destroy(&m);
    pm_box_metrics_destroy(&again);
}

static char *stage_results(const struct pm_lost_objects *l)
{
    cJSON *o = cJSON_CreateObject();

    pm_lost_objects_report(l, o);
    pm_lost_objects_detail(l, 0.5, o);
    return text_of(o);
}

static void merge_stages(struct pm_unpack u)
{
    struct pm_lost_objects *l = pm_lost_objects_create(CLASSES);
    struct pm_lost_objects *again = pm_lost_objects_create(CLASSES);
    struct pm_str pack = { 0 };

    pm_lost_objects_merge(l, &u);
    if (!u.damaged) {
        pm_lost_objects_pack(l, &pack);
        u = (struct pm_unpack){ .at = (const uint8_t *)pack.text, .left = pack.length };
        pm_lost_objects_merge(again, &u);
        if (u.damaged || u.left)
            __builtin_trap();
        must_equal(stage_results(l), stage_results(again));
    }
    pm_str_free(&pack);
    pm_lost_objects_destroy(&l);
    pm_lost_objects_destroy(&again);
}

/* ---- pixels ------------------------------------------------------------------------------ */

static struct pm_task task;
static uint8_t *record;
static size_t record_size;

static void add_picture(struct pm_example_builder *b, const char *key, int channels)
{
    uint8_t pixels[3 * PICTURE * PICTURE] = { 1, 2, 3 }, *png = NULL;
    const struct pm_image8 im = { PICTURE, PICTURE, channels, pixels };
    size_t size = 0;

    if (pm_image_encode_png(&im, &png, &size) < 0)
        abort();
    pm_example_add_bytes(b, key, png, size);
    pm_free(png);
}

/* Makes the parts of the task that all kinds have, and a record to draw. */
static void begin(void)
{
    static struct pm_arena *a;
    struct pm_example_builder *b = pm_example_builder_create();

    a = pm_arena_create();
    task.facts = (struct pm_task_facts){ .height = HEIGHT,
                                         .width = WIDTH,
                                         .eval_height = HEIGHT,
                                         .eval_width = WIDTH,
                                         .channels = 3,
                                         .num_classes = CLASSES,
                                         .own_sizes = true,
                                         .preprocessing = pm_preprocessing_find("deeplab") };
    void *cfg = pm_arena_alloc(a, task.facts.preprocessing->cfg_size + 1);

    pm_opts_defaults(task.facts.preprocessing->opts, cfg, a);
    task.facts.preprocessing_cfg = cfg;
    add_picture(b, "image/encoded", 3);
    add_picture(b, "image/segmentation/class/encoded", 1);
    pm_example_serialise(b, &record, &record_size);
    pm_example_builder_destroy(&b);
}

static void set_kind(int kind)
{
    static const int things[] = { 1, 3 };
    static struct pm_panoptic_options o = {
        .threshold = NAN, .nms_kernel = 3, .top_k = 200, .label_divisor = 1000, .ignored_area = -1
    };

    o.precision = kind == COCO ? PM_PRECISION_COCO : PM_PRECISION_CITYSCAPES;
    task.pixels = (struct pm_pixels){ .ignore_label = 255,
                                      .edge_classes = kind == EDGES ? 2 : 0,
                                      .instance = { .on = kind >= CITYSCAPES,
                                                    .things = { 2, things },
                                                    .label_divisor = 1000,
                                                    .panoptic = &o } };
}

static char *pixel_results(const struct pm_score *m)
{
    const struct pm_task_row *row = pm_task_find("segmentation");
    uint64_t records[PM_MAX_SAMPLES];
    cJSON *o = cJSON_CreateObject();

    row->score_report(m, o);
    row->score_detail(m, o);
    const int count = row->score_samples(m, records);

    for (int i = 0; i < count && i < 2; i++) {
        struct pm_drawings drawings = { 0 };
        cJSON *sample = cJSON_CreateObject();

        row->score_sample(m, i, record, record_size, "fuzz", sample, &drawings);
        pm_drawings_free(&drawings);
        cJSON_Delete(sample);
    }
    return text_of(o);
}

/* Writes a pack with the header and options of the score m, and these contents. */
static void wrap(const struct pm_score *m, struct pm_unpack u, struct pm_str *out)
{
    const struct pm_task_row *row = pm_task_find("segmentation");
    uint64_t options;

    row->score_pack(m, out);
    memcpy(&options, out->text + PM_SCORE_PACK_HEADER, sizeof options); /* its length and 1 */
    out->length = PM_SCORE_PACK_HEADER + sizeof options + (size_t)options - 1;
    pm_str_bytes(out, u.at, u.left);
    pm_score_pack_end(out, 0);
}

static void merge_pixels(struct pm_unpack u)
{
    const struct pm_task_row *row = pm_task_find("segmentation");
    struct pm_score *m = row->score_create(&task), *again = row->score_create(&task);
    struct pm_str pack = { 0 }, second = { 0 };

    wrap(m, u, &pack);
    if (row->score_merge(m, pack.text, pack.length) == PM_OK) {
        row->score_pack(m, &second);
        if (row->score_merge(again, second.text, second.length) < 0)
            __builtin_trap();
        must_equal(pixel_results(m), pixel_results(again));
    }
    pm_str_free(&pack);
    pm_str_free(&second);
    row->score_destroy(&m);
    row->score_destroy(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (fuzz_begin())
        begin();
    const struct pm_unpack u = { .at = data + 1, .left = size - 1 };
    const int kind = data[0] % KINDS;

    if (kind == CLASS_DETAIL) {
        merge_classes(u);
    } else if (kind == BOXES || kind == ROTATED) {
        merge_boxes(u, kind == ROTATED);
    } else if (kind == STAGES) {
        merge_stages(u);
    } else {
        set_kind(kind);
        merge_pixels(u);
    }
    return 0;
}
