/* detection_points: options, fields, results and drawings of keypoints. */
#include "tasks/detection/detection_points.h"

#include "config/config_changes.h"
#include "tasks/detection/box_shapes.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* ---- options ----------------------------------------------------------------------------- */

/* COCO's lines between the 17 points of a person. */
static const int coco_edges[][2] = {
    { 15, 13 }, { 13, 11 }, { 16, 14 }, { 14, 12 }, { 11, 12 }, { 5, 11 }, { 6, 12 },
    { 5, 6 },   { 5, 7 },   { 6, 8 },   { 7, 9 },   { 8, 10 },  { 1, 2 },  { 0, 1 },
    { 0, 2 },   { 1, 3 },   { 2, 4 },   { 3, 5 },   { 4, 6 },
};

/* Whether a number of the list is the index of a keypoint. */
static bool is_index(const cJSON *v, int points)
{
    return cJSON_IsNumber(v) && v->valuedouble == floor(v->valuedouble) && v->valuedouble >= 0 &&
           v->valuedouble < points;
}

static bool is_edge(const cJSON *edge, int points)
{
    return cJSON_IsArray(edge) && cJSON_GetArraySize(edge) == 2 &&
           is_index(cJSON_GetArrayItem(edge, 0), points) &&
           is_index(cJSON_GetArrayItem(edge, 1), points);
}

/* Refuses a value of eval.keypoint_edges. i: the index of the wrong pair; -1: the whole value. */
static int refuse_edge(const struct pm_config *c, int i, const cJSON *value, int points)
{
    struct pm_str text = { 0 };
    char place[16] = "";
    int err;

    if (i >= 0)
        snprintf(place, sizeof place, "[%d]", i);
    pm_config_value_text(value, &text);
    err = pm_fail(PM_ECONFIG, "%s%s: %s is not a %s of keypoints 0..%d (data.num_keypoints). Write "
                  "a list of pairs [from, to], as in [[0, 1], [0, 2]]",
                  pm_detection_place(c, "eval.keypoint_edges"), place, text.text,
                  i >= 0 ? "pair" : "list of pairs", points - 1);
    pm_str_free(&text);
    return err;
}

static int check_edges(const struct pm_config *c, const cJSON *edges, int points)
{
    const cJSON *edge;
    int i = 0;

    if (edges && !cJSON_IsArray(edges))
        return refuse_edge(c, -1, edges, points);
    cJSON_ArrayForEach(edge, edges) {
        if (!is_edge(edge, points))
            return refuse_edge(c, i, edge, points);
        i++;
    }
    return PM_OK;
}

int pm_detection_read_points(const struct pm_config *c, const struct pm_detection_eval *e,
                             struct pm_task *t)
{
    const int points = t->data.num_keypoints, sigmas = e->keypoint_sigmas.count;

    if (points == 0 && (sigmas || e->keypoint_edges))
        return pm_fail(PM_ECONFIG, "%s: not together with data.num_keypoints=0: set that key to "
                       "the number of keypoints, or remove this one",
                       pm_detection_place(c, sigmas ? "eval.keypoint_sigmas"
                                                    : "eval.keypoint_edges"));
    if (sigmas && sigmas != points)
        return pm_fail(PM_ECONFIG, "%s: %d numbers, but there are %d keypoints "
                       "(data.num_keypoints): write one for each",
                       pm_detection_place(c, "eval.keypoint_sigmas"), sigmas, points);
    t->sigmas = e->keypoint_sigmas;
    t->edges = e->keypoint_edges;
    return check_edges(c, t->edges, points);
}

int pm_detection_check_points(const struct pm_task *t)
{
    const struct pm_config *c = t->facts.config;

    if (!(t->sets & PM_BOX_COCO_KEYPOINTS))
        return PM_OK;
    if (t->points == 0)
        return pm_fail(PM_ECONFIG, "%s: the net predicts no keypoints: remove coco_keypoints, or "
                       "set predict_keypoints=true in model.second_stage_box_predictor of a "
                       "faster_rcnn net, or model.box_coder.type=keypoint of another one",
                       pm_detection_place(c, "eval.metrics"));
    if (t->sigmas.count == 0 && t->points != PM_COCO_POINTS)
        return pm_fail(PM_ECONFIG, "%s: not set, but coco_keypoints needs a number for each of %d "
                       "keypoints. COCO defines them only for its %d points of a person. Write "
                       "%d numbers; 0.05 each is usual",
                       pm_detection_place(c, "eval.keypoint_sigmas"), t->points, PM_COCO_POINTS,
                       t->points);
    return PM_OK;
}

bool pm_detection_has_points(const struct pm_task *t, int label)
{
    bool any = false, own = false;

    for (int i = 0; t->map && i < t->map->count; i++) {
        any |= t->map->item[i].points_count > 0;
        own |= t->map->item[i].points_count > 0 && t->map->item[i].id == label + 1;
    }
    return own || !any;
}

static double sigma_of(const struct pm_task *t, int point)
{
    return t->sigmas.count              ? (double)t->sigmas.v[point]
           : t->points == PM_COCO_POINTS ? pm_coco_sigmas[point]
                                         : (double)NAN;
}

double *pm_detection_sigmas(const struct pm_task *t)
{
    const int classes = t->facts.num_classes;
    double *out = pm_malloc(((size_t)classes * (size_t)t->points + 1) * sizeof *out), *at = out;

    for (int c = 0; c < classes; c++)
        for (int k = 0; k < t->points; k++)
            *at++ = pm_detection_has_points(t, c) ? sigma_of(t, k) : (double)NAN;
    return out;
}

/* ---- training ---------------------------------------------------------------------------- */

/* If none of the first pictures of a training has a labelled keypoint, this is reported. */
enum { FIRST_PICTURES = 64 };

void pm_detection_points_field(const struct pm_task *t, struct pm_field_list *out)
{
    pm_field_add(out, (struct pm_field){ "truth_keypoints", PM_F32,
                                         PM_SHAPE3(t->data.max_boxes, t->data.num_keypoints, 2),
                                         .absent = 0x7fc00000, /* NAN */
                                         .values = { 0, 1 } });
}

static void tell_unlabelled(const struct pm_task *t, bool labelled)
{
    uint64_t n;

    if (labelled)
        atomic_fetch_add(&t->seen->labelled, 1);
    n = atomic_fetch_add(&t->seen->pictures, 1) + 1;
    if (n == FIRST_PICTURES && atomic_load(&t->seen->labelled) == 0)
        PM_WARN("data", "no object of the first %d training pictures has a labelled keypoint in "
                "the input, so the net learns none: convert the data with keypoints, or remove "
                "the net's keypoints", FIRST_PICTURES);
}

void pm_detection_write_points(const struct pm_task *t, const struct pm_sample *placed,
                               const size_t *from, size_t count, float *out)
{
    const size_t each = 2 * (size_t)t->data.num_keypoints, most = (size_t)t->data.max_boxes;
    bool labelled = false;

    for (size_t i = 0; i < most * each; i++)
        out[i] = NAN;
    for (size_t n = 0; n < count && placed->points; n++)
        memcpy(out + each * n, placed->keypoints + each * from[n], each * sizeof *out);
    for (size_t i = 0; i < count * each; i += 2) /* comparisons are false for NAN */
        labelled |= out[i] >= 0 && out[i] <= 1 && out[i + 1] >= 0 && out[i + 1] <= 1;
    if (t->points)
        tell_unlabelled(t, labelled);
}

/* ---- evaluation and prediction ------------------------------------------------------------- */

/* The keypoints of the rows in pixels of the picture. */
static int to_pixels(const struct pm_task *t, const struct pm_detection_picture *p,
                     const float *from, const int *row, int count, double *out)
{
    const size_t each = 2 * (size_t)t->points;
    float *points = pm_malloc(((size_t)count * each + 1) * sizeof *points);
    int err = PM_OK;

    for (int i = 0; i < count; i++)
        memcpy(points + each * (size_t)i, from + each * (size_t)row[i], each * sizeof *points);
    PM_TRY(pm_detection_points_back(t, p->frame, p->height, p->width, points,
                                    count * t->points));
    for (size_t i = 0; i < (size_t)count * each; i++)
        out[i] = (double)points[i] * (i % 2 ? p->width : p->height);
out:
    pm_free(points);
    return err;
}

int pm_detection_find_points(const struct pm_task *t, const struct pm_detection_picture *p,
                             const int *row, struct pm_detection_found *found)
{
    const int at = pm_detection_shapes_output(t, p->use) + (t->mask_height > 0);
    const size_t points = (size_t)t->points;
    const size_t first = (size_t)p->i * (size_t)t->post.max_total_detections * points;
    int err = PM_OK;

    found->points = pm_malloc((2 * points * (size_t)found->count + 1) * sizeof *found->points);
    PM_TRY(to_pixels(t, p, (const float *)p->outputs[at] + 2 * first, row, found->count,
                     found->points));
    if (t->point_scores)
        found->point_scores = pm_calloc((size_t)found->count + 1, sizeof *found->point_scores);
    for (int k = 0; k < found->count; k++) {
        if (pm_detection_has_points(t, found->list[k].label))
            found->list[k].points = found->points + 2 * points * (size_t)k;
        if (found->point_scores)
            found->point_scores[k] =
                (const float *)p->outputs[at + 1] + first + points * (size_t)row[k];
    }
out:
    return err;
}

double *pm_detection_true_points(const struct pm_task *t, struct pm_detection_truths *truths)
{
    const size_t each = 2 * (size_t)t->points;
    double *out;

    if (t->points == 0)
        return NULL;
    out = pm_malloc((each * (size_t)truths->count + 1) * sizeof *out);
    for (size_t i = 0; i < each * (size_t)truths->count; i++)
        out[i] = (double)truths->keypoints[i];
    for (int k = 0; k < truths->count; k++)
        truths->truth[k].points = out + each * (size_t)k;
    return out;
}

void pm_detection_points_json(const struct pm_task *t, const struct pm_box_detection *d,
                              const float *scores, struct cJSON *row)
{
    cJSON *list = cJSON_AddArrayToObject(row, "keypoints");

    for (int k = 0; k < t->points; k++) {
        cJSON *point = cJSON_CreateArray();

        for (int i = 0; i < 2; i++) /* in hundredths of a pixel, like boxes */
            cJSON_AddItemToArray(point,
                                 cJSON_CreateNumber(round(100 * d->points[2 * k + i]) / 100));
        if (scores)
            cJSON_AddItemToArray(point, cJSON_CreateNumber((double)scores[k]));
        cJSON_AddItemToArray(list, point);
    }
}

struct picture {
    const double *points;
    int height, width, side;
    struct pm_color color;
    struct pm_image8 *out;
};

static void draw_edge(const struct picture *p, int from, int to)
{
    const double *a = p->points + 2 * from, *b = p->points + 2 * to;

    pm_draw_line_at(p->out, p->side, a[0] / p->height, a[1] / p->width, b[0] / p->height,
                    b[1] / p->width, p->color);
}

void pm_detection_draw_points(const struct pm_task *t, const struct pm_box_detection *d, int height,
                              int width, int side, struct pm_color color,
                              struct pm_image8 *out)
{
    const struct picture p = { d->points, height, width, side, color, out };
    const cJSON *edge;

    cJSON_ArrayForEach(edge, t->edges)
        draw_edge(&p, cJSON_GetArrayItem(edge, 0)->valueint, cJSON_GetArrayItem(edge, 1)->valueint);
    for (size_t i = 0; i < PM_COUNT(coco_edges) && !t->edges && t->points == PM_COCO_POINTS; i++)
        draw_edge(&p, coco_edges[i][0], coco_edges[i][1]);
    for (int k = 0; k < t->points; k++)
        pm_draw_point_at(out, side, d->points[2 * k] / height, d->points[2 * k + 1] / width,
                         pm_draw_color((size_t)k), false);
}
