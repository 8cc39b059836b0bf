/* recognition_points: the loss of the transformer's control points. The key points of a record are
 * two lines along the edges of its text. Each is divided into as many points as the net has control
 * points along this edge (pm_word_points_divide); these are moved as the pixels are, and control
 * points should be there. All are shares of the width and height of the picture that the net sees.
 *
 *     loss = loss.keypoint_weight * mean of (control point - point)^2
 *
 * over both numbers of all points, and over the pictures of the whole batch that have key points.
 * Rule: the text recognition fork of TensorFlow's Object Detection API. */
#include "tasks/recognition/recognition.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "data/word_points.h"
#include "tasks/record.h"

const struct pm_opt pm_recognition_loss_opts[] = {
    PM_DOUBLE(pm_recognition_loss, keypoint_weight, 0, 0, 1e6,
              "recognition with model.transformer=tps: weight of the squared distance of the "
              "control points from the edges of the text that image/keypoints marks; 0 = the "
              "marks are not used in training"),
    { 0 },
};

/* ---- options ----------------------------------------------------------------------------- */

int pm_recognition_read_loss(const struct pm_config *c, struct pm_task *t)
{
    const char *key = "loss.keypoint_weight";
    int err = PM_OK;

    PM_TRY(pm_config_read(c, "loss", pm_recognition_loss_opts, &t->loss));
    if (t->loss.keypoint_weight > 0 && !pm_recognition_has_points(t))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: %s: %g has no effect with model.transformer=none: remove "
                       "it, or set model.transformer=tps", pm_config_source(c, key), key,
                       t->loss.keypoint_weight));
out:
    return err;
}

bool pm_recognition_has_points(const struct pm_task *t)
{
    return t->model.transformer != PM_TRANSFORMER_NONE;
}

bool pm_recognition_learns_points(const struct pm_task *t)
{
    return pm_recognition_has_points(t) && t->loss.keypoint_weight > 0;
}

const char *pm_recognition_marks(const struct pm_task *t, const char **option)
{
    *option = "loss.keypoint_weight";
    return pm_recognition_learns_points(t) ? "image/keypoints" : NULL;
}

/* ---- samples ----------------------------------------------------------------------------- */

static void exchange(float *points, int count)
{
    for (int i = 0; i < count; i++) {
        const float first = points[2 * i];

        points[2 * i] = points[2 * i + 1];
        points[2 * i + 1] = first;
    }
}

int pm_recognition_points(const struct pm_task *t, const struct pm_example *e,
                          const struct pm_image8 *picture, const struct pm_placed *placed,
                          const char *where, float *out)
{
    const int count = t->transformer.num_control_points;
    struct pm_word_points p;
    int err = PM_OK;

    PM_TRY(pm_word_points_read(e, picture->height, picture->width, where, &p));
    if (p.count == 0)
        return 0;
    pm_word_points_divide(&p, count / 2, out);
    for (int i = 0; i < count; i++) {
        out[2 * i] /= (float)picture->width;
        out[2 * i + 1] /= (float)picture->height;
    }
    exchange(out, count); /* a geometry takes y before x */
    pm_geometry_points(&placed->geometry, out, (size_t)count);
    exchange(out, count);
    err = 1;
out:
    return err;
}

/* The fields follow the labels'. */
enum { POINTS, WEIGHTS };
static int place_of(const struct pm_task *t)
{
    return t->model.predictor == PM_PREDICTOR_ATTENTION
               ? PM_RECOGNITION_LABELS + pm_recognition_directions(t)
               : PM_RECOGNITION_LENGTHS + 1;
}

void pm_recognition_points_fields(const struct pm_task *t, struct pm_field_list *out)
{
    pm_field_add(out, (struct pm_field){ "keypoints", PM_F32,
                                         PM_SHAPE1(2 * t->transformer.num_control_points),
                                         .values = { 0, 1 } });
    pm_field_add(out, (struct pm_field){ "keypoint_weights", PM_F32, { 0 }, .values = { 0, 1 } });
}

int pm_recognition_make_points(const struct pm_task *t, const struct pm_example *e,
                               const struct pm_image8 *picture, const struct pm_placed *placed,
                               const char *where, void *const *out)
{
    const int first = place_of(t);
    float *points = out[first + POINTS];
    int err = PM_OK, found = 0;

    PM_TRY(found = pm_recognition_points(t, e, picture, placed, where, points));
    for (int i = 0; i < 2 * t->transformer.num_control_points && !found; i++)
        points[i] = 0;
    *(float *)out[first + WEIGHTS] = found ? 1 : 0;
    err = PM_OK;
out:
    return err;
}

void pm_recognition_whole_batch(void *ctx, struct pm_batch *b)
{
    const struct pm_sampler *sampler = ctx;

    if (!sampler->train || !pm_recognition_learns_points(sampler->task))
        return;
    const float *weights = b->field[place_of(sampler->task) + WEIGHTS];

    b->sum = 0;
    for (int i = 0; i < b->valid; i++)
        b->sum += weights[i] > 0;
    pm_recognition_set_sum(ctx, b, b->sum);
}

void pm_recognition_set_sum(void *ctx, struct pm_batch *b, double sum)
{
    const struct pm_sampler *sampler = ctx;

    if (!sampler->train || !pm_recognition_learns_points(sampler->task))
        return;
    float *weights = b->field[place_of(sampler->task) + WEIGHTS];

    for (int i = 0; i < b->examples; i++)
        weights[i] = weights[i] > 0 ? (float)(1 / sum) : 0;
}

/* ---- the net ----------------------------------------------------------------------------- */

void pm_recognition_add_points_loss(struct pm_net *net, const struct pm_task *t)
{
    struct pm_node *const in[] = { pm_net_find(net, PM_SPATIAL_TRANSFORMER_POINTS),
                                   pm_net_find(net, "keypoints"),
                                   pm_net_find(net, "keypoint_weights") };

    /* The weights of the pictures add up to 1 over the whole batch. */
    pm_net_add_many(net, "keypoint_loss", in, 3, "squared_error normalize=none weight=%.9g",
                    t->loss.keypoint_weight / (2 * t->transformer.num_control_points));
}

const float *pm_recognition_control_points(const struct pm_task *t, const void *const *outputs,
                                           size_t i)
{
    const int at = pm_recognition_text_outputs(t);

    if (!pm_recognition_has_points(t))
        return NULL;
    return (const float *)outputs[at] + i * 2 * (size_t)t->transformer.num_control_points;
}

/* ---- results ----------------------------------------------------------------------------- */

struct pm_point_errors pm_recognition_point_errors(const struct pm_task *t, const float *points,
                                                   const float *truth)
{
    const int count = t->transformer.num_control_points;
    struct pm_point_errors sum = { 0 };

    for (int i = 0; i < count; i++) {
        const double x = (double)points[2 * i] - truth[2 * i];
        const double y = (double)points[2 * i + 1] - truth[2 * i + 1];

        sum.distance += hypot(x * t->facts.width, y * t->facts.height);
        sum.squared += x * x + y * y;
    }
    return (struct pm_point_errors){ sum.distance / count, sum.squared / (2 * count) };
}

void pm_recognition_add_points(const struct pm_task *t, const float *points, struct cJSON *object)
{
    struct cJSON *list;

    if (!points)
        return;
    list = cJSON_AddArrayToObject(object, "control_points");
    for (int i = 0; i < t->transformer.num_control_points; i++)
        cJSON_AddItemToArray(list, cJSON_CreateFloatArray(&points[2 * i], 2));
}
