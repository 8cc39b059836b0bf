/* Rotated boxes in the task detection, for a picture of other sides than the net's input: fields
 * and matches of a record, the way back to pixels of the file, true objects, drawings, anchors of
 * named nets, and what is refused. */
#include "detection_setup.h"

#include "data/rotated_box.h"
#include "layers/box_coder.h"
#include "layers/rotated_overlap.h"
#include "tasks/detection/box_lists.h"
#include "tasks/detection/detection_rotated.h"
#include "tasks/detection/detection_tiles.h"

#include <cjson/cJSON.h>
#include <pumice/draw.h>

enum { HEIGHT = 32, WIDTH = 48, CELLS = 4 * 6, ANGLES = 4, ALL = CELLS * ANGLES };
#define LAYERS(angles, boxes)                                                                      \
    "\"layers\": [\n"                                                                              \
    "  {\"name\": \"m\", \"layer\": \"conv2d\", \"filters\": 4, \"kernel\": 8, \"stride\": 8},\n"  \
    "  {\"name\": \"anchors\", \"layer\": \"ssd_anchors\", \"aspect_ratios\": [2], "               \
    "\"scales\": [0.3], \"interpolated_scale_aspect_ratio\": 0, " angles                           \
    "\"reduce_boxes_in_lowest_layer\": false, \"inputs\": [\"images\", \"m\"]},\n"                 \
    "  {\"name\": \"boxes_1\", \"layer\": \"conv2d\", \"inputs\": [\"m\"], "                       \
    "\"filters\": " boxes "},\n"                                                                   \
    "  {\"name\": \"classes_1\", \"layer\": \"conv2d\", \"inputs\": [\"m\"], \"filters\": 16}]"
/* 4 angles of one anchor, 5 codes each. */
#define TURNED LAYERS("\"angles\": [-1.2, -0.4, 0.4, 1.2], ", "20")
#define ROTATED(model, data, rest)                                                                 \
    "{\"task\": \"detection\", \"model\": {\"boxes\": \"rotated\", " model "}, "                   \
    "\"data\": {\"max_boxes\": 6" data ", \"label_map\": \"%s\"},"                                 \
    " \"input\": {\"size\": [32, 48], \"preprocessing\": \"ssd\"}" rest "}"

struct fields {
    float images[HEIGHT * WIDTH * 3], boxes[MOST][5], weights[MOST], normalizer;
    int32_t classes[MOST], matches[ALL];
    float targets[MOST][CLASSES]; /* with merged labels */
    struct pm_detection_truths *truths;
};

static int make_fields(const struct setup *s, bool train, const struct pm_objects *objects,
                       struct fields *m)
{
    struct pm_sampler sampler = { s->e->task, train, s->e->task_row };
    const bool merged = s->e->train_fields.list[PM_FIELD_CLASSES].type == PM_F32;
    void *out[] = { m->images, m->boxes, merged ? (void *)m->targets : m->classes, m->weights,
                    m->matches, &m->normalizer };
    uint8_t *data = NULL;
    size_t size = 0;
    void *host = NULL;

    record_of(objects, &data, &size);
    const int err = s->e->task_row->make(&sampler, &(struct pm_loader_record){
        .bytes = data, .size = size, .where = "r", .frame = { HEIGHT, WIDTH }, .host = &host },
        out);
    m->truths = host;
    pm_free(data);
    return err;
}

static void fields_of(const struct setup *s, bool train, const struct pm_objects *objects,
                      struct fields *m)
{
    if (make_fields(s, train, objects, m) < 0)
        fail_msg("%s", pm_error_text());
}

/* Adds an object of these pixels. */
static struct pm_object *add(struct pm_objects *o, const char *text, double cy, double cx, double h,
                             double w, double angle)
{
    const struct pm_rectangle r = { cy, cx, h, w, angle };
    struct pm_object *one = pm_objects_add(o);

    one->text = text;
    pm_rectangle_to_box(&r, o->height, o->width, one->rotated);
    return one;
}

static void start(struct pm_objects *o, int height, int width)
{
    pm_objects_start(o, height, width);
    o->has = PM_HAS_TEXT | PM_HAS_ROTATED;
}

static void assert_numbers(const float *got, const double *want, int count, double most)
{
    for (int k = 0; k < count; k++)
        if (!(fabs((double)got[k] - want[k]) <= most))
            fail_msg("number %d is %g instead of %g", k, (double)got[k], want[k]);
}

/* ---- fields -------------------------------------------------------------------------------- */

/* The picture has the input's size, so only the unit changes: pixels over the height. The anchors
 * are those of the layer, in the same unit. */
static void fields_in_heights(void **state)
{
    struct setup s = set_up(ROTATED(TURNED, "", ""));
    const struct pm_detection_anchors *anchors = s.e->task->anchors;
    struct pm_objects o;
    struct fields m;
    float anchor[5];

    (void)state;
    assert_int_equal(anchors->count, ALL);
    assert_int_equal(pm_anchor_index_numbers(anchors->index), 5);
    pm_anchor_index_box(anchors->index, 1, anchor); /* scale 0.3 of the shorter side, ratio 2 */
    assert_numbers(anchor, (double[]){ 0.125, 0.125, 0.3 / sqrt(2), 0.3 * sqrt(2), -0.4 }, 5, 1e-6);
    assert_int_equal(s.e->train_fields.list[PM_FIELD_BOXES].shape.dim[1], 5);
    start(&o, HEIGHT, WIDTH);
    add(&o, "cat", 12, 36, 5, 13, 0.4);
    add(&o, "dog", 30, -1, 8, 16, -0.3);   /* its centre is outside: kept, not cut */
    add(&o, "dog", 50, 60, 4, 10, 0.78);   /* outside */
    add(&o, "cow", 16, 16, 4, 10, 0)->is_crowd = true;
    add(&o, "cat", 20, 20, 8, 8, 1.4);     /* a square, up to the rounding of its sides */
    o.has |= PM_HAS_CROWD;
    fields_of(&s, true, &o, &m);
    assert_numbers(m.boxes[0], (double[]){ 12 / 32., 36 / 32., 5 / 32., 13 / 32., 0.4 }, 5, 1e-6);
    assert_numbers(m.boxes[1], (double[]){ 30 / 32., -1 / 32., 8 / 32., 16 / 32., -0.3 }, 5, 1e-6);
    assert_int_equal(m.classes[2], 3);
    assert_true(m.weights[0] == 1 && m.weights[1] == 1 && m.weights[2] == 0);
    for (int k = 0; k < ANGLES; k++) {
        struct pm_box_coder coder;
        float code[5];

        pm_anchor_index_box(anchors->index, k, anchor);
        assert_int_equal(pm_box_coder_make(PM_CODER_ROTATED, (struct pm_floats){ 0 }, "", &coder),
                         PM_OK);
        pm_box_encode_rotated(&coder, m.boxes[3], anchor, code);
        assert_true(fabsf(code[4]) <= 2.5001f); /* an eighth of a turn */
    }
    for (int k = 4; k < MOST; k++)
        assert_true(m.boxes[k][3] == 0 && m.weights[k] == 0);
    pm_objects_free(&o);
    tear_down(&s);
}

/* The matches are those of the overlaps, with the rule of far angles. */
static void matches_by_overlap(void **state)
{
    struct setup s = set_up(ROTATED(TURNED ", \"matcher\": {\"matched_threshold\": 0.3, "
                                    "\"unmatched_threshold\": 0.3}", "", ""));
    struct pm_objects o;
    struct fields m;
    int matched = 0, far = 0;

    (void)state;
    start(&o, HEIGHT, WIDTH);
    add(&o, "cat", 12, 20, 6, 13, 1.5); /* near the seam: the anchor of -1.2 has the better place */
    fields_of(&s, true, &o, &m);
    for (int k = 0; k < ALL; k++) {
        double a[5], b[5];
        float box[5];

        pm_anchor_index_box(s.e->task->anchors->index, k, box);
        for (int i = 0; i < 5; i++)
            a[i] = (double)box[i], b[i] = (double)m.boxes[0][i];
        const double overlap = pm_rotated_overlap(a, b);

        if (fabs(overlap - 0.3) < 1e-4)
            continue;
        far += overlap > 0.3 && fabs(a[4] - b[4]) > 1.5707963;
        matched += m.matches[k] == 0;
        assert_int_equal(m.matches[k] == 0, overlap > 0.3 && fabs(a[4] - b[4]) <= 1.5707963);
    }
    assert_true(matched > 0 && far > 0);
    pm_objects_free(&o);
    tear_down(&s);
}

/* The largest are kept by the area of the rectangle: a thin one has a large upright box. */
static void largest_are_kept(void **state)
{
    struct setup s = set_up(ROTATED(TURNED, "", ""));
    struct pm_objects o;
    struct fields m;

    (void)state;
    start(&o, HEIGHT, WIDTH);
    add(&o, "dog", 16, 24, 1, 28, 0.7);
    for (int i = 0; i < MOST; i++)
        add(&o, "cat", 8 + 2 * i, 20, 5 + i, 10 + i, 0);
    fields_of(&s, true, &o, &m);
    for (int k = 0; k < MOST; k++)
        assert_true(m.classes[k] == 0 && m.weights[k] == 1);
    pm_objects_free(&o);
    tear_down(&s);
}

/* Boxes of the same upright box that differ in their angle are two objects. */
static void merged_labels(void **state)
{
    struct setup s = set_up(ROTATED(TURNED, ", \"merge_multiple_label_boxes\": true", ""));
    struct pm_objects o;
    struct fields m;

    (void)state;
    start(&o, HEIGHT, WIDTH);
    add(&o, "cat", 16, 24, 6, 12, 0.5);
    add(&o, "dog", 16, 24, 6, 12, -0.5);
    add(&o, "cow", 16, 24, 6, 12, 0.5);
    fields_of(&s, true, &o, &m);
    assert_true(m.weights[0] == 1 && m.weights[1] == 1 && m.weights[2] == 0);
    assert_true(m.targets[0][0] == 1 && m.targets[0][1] == 0 && m.targets[0][3] == 1);
    assert_true(m.targets[1][0] == 0 && m.targets[1][1] == 1 && m.targets[1][3] == 0);
    pm_objects_free(&o);
    tear_down(&s);
}

/* ---- the way back -------------------------------------------------------------------------- */

static void member_is(const cJSON *row, const char *name, const double *want, int count,
                      double most)
{
    const cJSON *list = cJSON_GetObjectItem(row, name);

    assert_int_equal(cJSON_GetArraySize(list), count);
    for (int k = 0; k < count; k++) {
        const double got = cJSON_GetArrayItem(list, k)->valuedouble;

        if (!(fabs(got - want[k]) <= most))
            fail_msg("%s: number %d is %g instead of %g", name, k, got, want[k]);
    }
}

/* What prediction says of boxes [count] of the input, for a picture of that size. */
static cJSON *present(const struct setup *s, const float (*boxes)[5], int count, int height,
                      int width, struct pm_drawings *drawings)
{
    const size_t most = 100;
    float *all = pm_calloc(5 * most, sizeof *all), *scores = pm_calloc(most, sizeof *scores);
    int32_t *classes = pm_calloc(most, sizeof *classes);
    const struct pm_image8 picture = { height, width, 3,
                                       pm_calloc((size_t)(3 * height * width), 1) };
    cJSON *object = cJSON_CreateObject();

    memcpy(all, boxes, (size_t)count * sizeof *boxes);
    for (int k = 0; k < count; k++)
        scores[k] = 0.9f - 0.01f * (float)k;
    assert_int_equal(s->e->task_row->present(s->e->task, (struct pm_frame){ HEIGHT, WIDTH },
                                             (const void *[]){ all, scores, classes, &count },
                                             &picture, object, drawings), PM_OK);
    pm_free(all);
    pm_free(scores);
    pm_free(classes);
    pm_free(picture.pixels);
    return object;
}

/* Truths go to the stretched input and back as detections: the same rectangles, although a turned
 * rectangle becomes a parallelogram in the input. Near a quarter turn the angle has two names. */
static void round_trip(void **state)
{
    static const double list[MOST][5] = {
        { 30, 40, 11, 31, 0.3 },        { 60, 20, 10, 35, -1.1 }, { 20.5, 60, 9, 30, 1.56 },
        { 61, 55, 9, 30, -1.57 },       { 40, 74, 10, 40, 0.8 },  { -2, 12, 12, 40, 0.5 },
    };
    struct setup s = set_up(ROTATED(TURNED, "", ""));
    struct pm_objects o;
    struct fields m;

    (void)state;
    start(&o, 90, 80);
    for (int k = 0; k < MOST; k++)
        add(&o, "cat", list[k][0], list[k][1], list[k][2], list[k][3], list[k][4]);
    fields_of(&s, true, &o, &m);

    cJSON *object = present(&s, (const float (*)[5])m.boxes, MOST, 90, 80, NULL);
    const cJSON *rows = cJSON_GetObjectItem(object, "boxes");

    assert_int_equal(cJSON_GetArraySize(rows), MOST);
    for (int k = 0; k < MOST; k++) {
        const cJSON *row = cJSON_GetArrayItem(rows, k);
        const struct pm_rectangle r = { list[k][0], list[k][1], list[k][2], list[k][3],
                                        list[k][4] };
        double around[4];

        member_is(row, "rotated", list[k], 5, 0.006); /* hundredths of a pixel */
        pm_rectangle_around(&r, around);
        for (int i = 0; i < 4; i++)
            around[i] = fmin(fmax(around[i], 0), i % 2 ? 80 : 90);
        member_is(row, "box", around, 4, 0.02);
    }
    cJSON_Delete(object);
    pm_objects_free(&o);
    tear_down(&s);
}

/* Records of others, whose w is below h: the same rectangle, with w along its long side. */
static void foreign_sides(void **state)
{
    static const double angles[] = { 0.4, -0.4, 1.5707963267948966, 0 };
    struct setup s = set_up(ROTATED(TURNED, "", ""));

    (void)state;
    for (size_t i = 0; i < PM_COUNT(angles); i++) {
        struct pm_objects o;
        struct fields m;

        start(&o, HEIGHT, WIDTH);
        add(&o, "cat", 12, 24, 13, 5, angles[i]);
        fields_of(&s, true, &o, &m);
        assert_numbers(m.boxes[0], (double[]){ 12 / 32., 24 / 32., 5 / 32., 13 / 32. }, 4, 1e-6);
        assert_true(fabs(remainder((double)m.boxes[0][4] - angles[i] - 1.5707963267948966,
                                   3.14159265358979324)) < 1e-6);
        assert_true(fabsf(m.boxes[0][4]) < 1.5708f);
        pm_objects_free(&o);
    }
    tear_down(&s);
}

/* Swapped sides are a rectangle turned by a quarter. */
static void swapped_sides(void **state)
{
    struct setup s = set_up(ROTATED(TURNED, ", \"swap_sides\": true", ""));
    struct pm_objects o;
    struct fields m;

    (void)state;
    start(&o, HEIGHT, WIDTH);
    add(&o, "cat", 12, 24, 5, 13, 0.4);
    fields_of(&s, true, &o, &m);
    assert_numbers(m.boxes[0], (double[]){ 12 / 32., 24 / 32., 5 / 32., 13 / 32.,
                                           0.4 - 1.5707963267948966 }, 5, 1e-6);
    pm_objects_free(&o);
    tear_down(&s);
}

/* A box that reaches out of its tile is cut at the photo's borders only. */
static void tile_border(void **state)
{
    static const float found[1][5] = { { 0.5f, 0.5f, 0.25f, 1.5f, 0 } };
    static const float scores[1] = { 0.9f };
    static const int32_t classes[1] = { 0 }, count[1] = { 1 };
    const struct pm_tile_grid grid = { { HEIGHT, 60 }, { HEIGHT, WIDTH }, { HEIGHT, 12 },
                                       { 1, 2 } };
    struct setup s = set_up(ROTATED(TURNED, "", ""));
    const struct pm_image8 photo = { HEIGHT, 60, 3, pm_calloc(3 * HEIGHT * 60, 1) };
    struct pm_tiled *p = pm_detection_tiled_create(s.e->task, &grid);
    cJSON *object = cJSON_CreateObject();

    (void)state;
    assert_int_equal(pm_detection_tiled_add(p, (struct pm_frame){ HEIGHT, WIDTH },
                                            (const void *[]){ found, scores, classes, count }, 1),
                     PM_OK);
    assert_int_equal(pm_detection_tiled_present(p, "photo", &photo, object, NULL), PM_OK);
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(object, "boxes"), 0);
    /* The tile begins at column 12 of the photo, and the box 8 columns before it. */
    member_is(row, "rotated", (double[]){ 16, 28, 8, 48, 0 }, 5, 0.006);
    member_is(row, "box", (double[]){ 12, 4, 20, 52 }, 4, 0.006);
    cJSON_Delete(object);
    pm_detection_tiled_destroy(&p);
    pm_free(photo.pixels);
    tear_down(&s);
}

/* Detections outside the picture, of no size and of no number are left out. An angle beyond a
 * quarter turn is wrapped, and w becomes the long side. */
static void detections(void **state)
{
    static const float boxes[][5] = {
        { 0.5f, 0.5f, 0.5f, 0.25f, 3.5f }, { 0.5f, 1.8f, 0.2f, 0.4f, 0 },
        { 0.5f, 0.5f, NAN, 0.4f, 0 },      { 0.5f, 0.5f, 0, 0.4f, 0 },
        { 0.5f, 1.45f, 0.2f, 0.4f, 0 },    { 0.5f, 0.5f, INFINITY, 0.4f, 0 },
    };
    struct setup s = set_up(ROTATED(TURNED, "", ""));
    struct pm_drawings drawings = { 0 };
    cJSON *object, *rows;

    (void)state;
    object = present(&s, boxes, (int)PM_COUNT(boxes), HEIGHT, WIDTH, &drawings);
    rows = cJSON_GetObjectItem(object, "boxes");
    assert_int_equal(cJSON_GetArraySize(rows), 2);
    member_is(cJSON_GetArrayItem(rows, 0), "rotated",
              (double[]){ 16, 16, 8, 16, 3.5 - 1.5 * 3.14159265 }, 5, 1e-5);
    member_is(cJSON_GetArrayItem(rows, 1), "rotated", (double[]){ 16, 46.4, 6.4, 12.8, 0 }, 5,
              1e-5);
    member_is(cJSON_GetArrayItem(rows, 1), "box", (double[]){ 12.8, 40, 19.2, 48 }, 4, 1e-5);
    assert_int_equal(drawings.count, 1);
    pm_drawings_free(&drawings);
    cJSON_Delete(object);
    tear_down(&s);
}

/* Whether the picture has another colour than grey within 4 pixels of a point of the input. */
static bool has_colour(const struct pm_image8 *im, double y, double x)
{
    const int scale = im->width / WIDTH;

    for (int dy = -4; dy <= 4; dy++)
        for (int dx = -4; dx <= 4; dx++) {
            const uint8_t *p = im->pixels +
                3 * ((int)(y * scale + dy) * im->width + (int)(x * scale + dx));

            if (p[0] != p[1] || p[1] != p[2])
                return true;
        }
    return false;
}

/* Training pictures show the turned outline, not the upright box around it. */
static void painted(void **state)
{
    struct setup s = set_up(ROTATED(TURNED, "", ""));
    struct pm_drawings drawings = { 0 };
    const struct pm_rectangle r = { 16, 24, 6, 24, 0.7 };
    double corner[PM_CORNERS][2], around[4];
    struct pm_objects o;
    struct fields m;

    (void)state;
    start(&o, HEIGHT, WIDTH);
    add(&o, "cow", r.cy, r.cx, r.h, r.w, r.angle);
    fields_of(&s, true, &o, &m);
    for (int k = 0; k < ALL; k++)
        m.matches[k] = PM_NEGATIVE; /* no circles */
    s.e->task_row->paint(s.e->task, &(struct pm_shown){ .count = 1, .frame = { HEIGHT, WIDTH },
        .field = (const void *[]){ m.images, m.boxes, m.classes, m.weights, m.matches } }, 0,
        &drawings);
    assert_int_equal(drawings.count, 1);
    pm_rectangle_corners(&r, corner);
    pm_rectangle_around(&r, around);
    for (int k = 0; k < PM_CORNERS; k++)
        assert_true(has_colour(&drawings.list[0].image, corner[k][0], corner[k][1]));
    /* The upper right and the lower left corner; the caption is elsewhere. */
    assert_false(has_colour(&drawings.list[0].image, around[0] + 1, around[3] - 1));
    assert_false(has_colour(&drawings.list[0].image, around[2] - 1, around[1] + 1));
    pm_drawings_free(&drawings);
    pm_objects_free(&o);
    tear_down(&s);
}

/* True objects of an evaluation: all numbers in pixels of the file. */
static void truths(void **state)
{
    struct setup s = set_up(ROTATED(TURNED, "", ""));
    struct pm_objects o;
    struct fields m;

    (void)state;
    start(&o, 100, 60);
    add(&o, "cat", 50, 20, 10, 30, 0.5);
    add(&o, "dog", 150, 20, 10, 30, 0.5); /* outside: no true object */
    add(&o, "cow", 95, 30, 8, 40, 1.5)->area = 200;
    o.item[0].area = 0; /* not annotated */
    o.has |= PM_HAS_AREA;
    fields_of(&s, false, &o, &m);
    assert_int_equal(m.truths->count, 2);
    const struct pm_box_truth *t = m.truths->truth;

    for (int k = 0; k < 5; k++) {
        assert_true(fabs(t[0].rotated[k] - (double[]){ 50, 20, 10, 30, 0.5 }[k]) < 1e-5);
        assert_true(fabs(t[1].rotated[k] - (double[]){ 95, 30, 8, 40, 1.5 }[k]) < 1e-5);
    }
    assert_true(isnan(t[0].area) && fabs(t[1].area - 200) < 1e-3);
    /* The metrics then take the area of the rectangle. */
    struct pm_box_metrics *kept = pm_box_metrics_create(&(struct pm_box_metrics_options){
        .classes = CLASSES, .recall_upper = 1, .rotated = true });

    pm_box_metrics_add(kept, &(struct pm_box_picture){ .truth = t, .truths = 2 });
    assert_true(fabs(pm_box_metrics_lists(kept)->truth[0].area - 300) < 1e-3);
    pm_box_metrics_destroy(&kept);
    assert_true(t[1].label == 3 && t[1].box.v[2] == 100);
    pm_detection_free_truths(m.truths);
    pm_objects_free(&o);
    tear_down(&s);
}

/* ---- named nets ------------------------------------------------------------------------------ */

/* Anchors of a cell of level 1, numbers of an anchor, and codes of a cell. */
static void named_net(const char *model, int level, int anchors)
{
    struct pm_arena *a = pm_arena_create();
    struct setup s = set_up(pm_arena_printf(a, "{\"task\": \"detection\", \"model\": {\"boxes\": "
        "\"rotated\", %s}, \"data\": {\"label_map\": \"%%s\"}, \"input\": {\"size\": 96}}", model));
    struct pm_net *net = NULL;

    if (pm_experiment_net(s.e, (struct pm_net_want){ PM_USE_TRAIN, 2, 0, 0 }, &net, NULL) < 0)
        fail_msg("%s", pm_error_text());
    const struct pm_node *maps = pm_net_find(net, pm_arena_printf(a, "boxes_%d", level));
    const struct pm_node *node = pm_net_find(net, "anchors");

    assert_non_null(maps);
    assert_int_equal(pm_anchors_numbers(node), 5);
    assert_int_equal(pm_anchors_per_cell(node, level), anchors);
    assert_int_equal(maps->out_shape.dim[3], 5 * anchors);
    pm_net_destroy(&net);
    tear_down(&s);
    pm_arena_destroy(&a);
}

/* Each map has the anchors of the ratios 1, 2, 3 and the one between two scales, at six angles. The
 * config can ask for the three fixed anchors of the first map. Given lists are not shortened. */
static void anchors_of_named_nets(void **state)
{
    (void)state;
    named_net("\"name\": \"ssd_mobilenet_v1\", \"depth_multiplier\": 0.25", 1, 4 * 6);
    named_net("\"name\": \"ssd_mobilenet_v1\", \"depth_multiplier\": 0.25", 2, 4 * 6);
    named_net("\"name\": \"ssd_mobilenet_v1\", \"depth_multiplier\": 0.25, \"anchors\": "
              "{\"reduce_boxes_in_lowest_layer\": true}", 1, 3 * 6);
    named_net("\"name\": \"ssd_mobilenet_v1\", \"depth_multiplier\": 0.25, \"anchors\": "
              "{\"angles\": [0, 1], \"aspect_ratios\": [0.5, 4]}", 1, 3 * 2);
    named_net("\"name\": \"ssd_mobilenet_v1\", \"depth_multiplier\": 0.25, \"anchors\": "
              "{\"angles\": [0, 1], \"aspect_ratios\": [0.5, 4]}", 2, 3 * 2);
    named_net("\"name\": \"ssd_mobilenet_v1_fpn\", \"depth_multiplier\": 0.25, "
              "\"fpn_max_level\": 6", 1, 2 * 2 * 6);
    /* 4 scales, 3 ratios, 7 angles */
    named_net("\"name\": \"ssd_mobilenet_v1\", \"depth_multiplier\": 0.25, \"num_layers\": 1, "
              "\"anchors\": {\"type\": \"grid\", \"scales\": [0.25, 0.5, 0.75, 1], "
              "\"aspect_ratios\": [3, 5, 7], \"angles\": [-1.5708, -1.0472, -0.5236, 0, 0.5236, "
              "1.0472, 1.5708]}", 1, 84);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refused_with(const char *text, const char *message)
{
    struct setup s;

    if (open_setup(text, "", &s) == PM_OK)
        fail_msg("not refused: %s", message);
    assert_contains(pm_error_text(), message);
    tear_down(&s);
}

static void refused(void **state)
{
    (void)state;
    refused_with(ROTATED(LAYERS("", "4"), "", ""),
                 "the net's layer anchors has no angles, but model.boxes is rotated: give it");
    refused_with("{\"task\": \"detection\", \"model\": {" TURNED "}, \"data\": {\"label_map\": "
                 "\"%s\"}, \"input\": {\"size\": 32, \"preprocessing\": \"ssd\"}}",
                 "the net's layer anchors has angles, but model.boxes is upright: set");
    refused_with(ROTATED(LAYERS("\"angles\": [0.1, 0.2, 1, 1.3], ", "16"), "", ""),
                 "boxes_1 has 16 channels, but 4 anchors in a cell need 5 codes each");
    refused_with(ROTATED(TURNED ", \"box_coder\": {\"type\": \"faster_rcnn\"}", "", ""),
                 "model.box_coder.type: a coder of upright boxes, but model.boxes is rotated");
    refused_with("{\"task\": \"detection\", \"model\": {" LAYERS("", "4") ", \"box_coder\": "
                 "{\"type\": \"rotated\"}}, \"data\": {\"label_map\": \"%s\"}, "
                 "\"input\": {\"size\": 32, \"preprocessing\": \"ssd\"}}",
                 "model.box_coder.type: rotated, but model.boxes is upright");
    refused_with(ROTATED(TURNED ", \"matcher\": {\"similarity\": \"neg_sq_dist\", "
                         "\"matched_threshold\": -0.1, \"unmatched_threshold\": -0.2}", "", ""),
                 "model.matcher.similarity: neg_sq_dist compares the corners of upright boxes");
    refused_with(ROTATED(TURNED ", \"anchors_outside\": \"clip\"", "", ""),
                 "model.anchors_outside: clip, but a rotated anchor that is clipped is no");
    refused_with(ROTATED(TURNED, "",
                         ", \"loss\": {\"localization\": {\"type\": \"weighted_giou\"}}"),
                 "loss.localization.type: weighted_giou compares upright boxes");
    refused_with(ROTATED(TURNED, ", \"num_keypoints\": 3", ""),
                 "data.num_keypoints: 3, but nets with model.boxes=rotated predict no keypoints");
    refused_with(ROTATED(TURNED, ", \"instance_masks\": true", ""),
                 "data.instance_masks: true, but nets with model.boxes=rotated predict no masks");
}

/* A record of upright boxes names its remedy; a record without objects is one without boxes. */
static void upright_records(void **state)
{
    struct setup s = set_up(ROTATED(TURNED, "", ""));
    struct pm_objects o;
    struct fields m;

    (void)state;
    pm_objects_start(&o, 40, 40);
    o.has = PM_HAS_TEXT;
    fields_of(&s, true, &o, &m);
    assert_true(m.weights[0] == 0);
    pm_objects_add(&o)->text = "cat";
    memcpy(o.item[0].box, (float[]){ 0, 0, 1, 1 }, sizeof o.item[0].box);
    assert_int_equal(make_fields(&s, true, &o, &m), PM_ECONFIG);
    assert_contains(pm_error_text(), "r: the record has upright boxes only, but model.boxes is "
                                     "rotated: set model.boxes=upright, or convert");
    pm_objects_free(&o);
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_in_heights), cmocka_unit_test(matches_by_overlap),
        cmocka_unit_test(largest_are_kept),  cmocka_unit_test(merged_labels),
        cmocka_unit_test(round_trip),        cmocka_unit_test(swapped_sides),
        cmocka_unit_test(foreign_sides),
        cmocka_unit_test(tile_border),       cmocka_unit_test(detections),
        cmocka_unit_test(painted),           cmocka_unit_test(truths),
        cmocka_unit_test(anchors_of_named_nets),
        cmocka_unit_test(refused),           cmocka_unit_test(upright_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
