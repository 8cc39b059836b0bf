/* detection_samples: records become fields.
 *
 * Boxes go through the same geometry as the picture, and are dropped if no part is left in the
 * input, else clipped; rotated boxes are not clipped. Anchors are matched here, in the loader's
 * threads. data.merge_multiple_label_boxes merges the boxes that are equal in the input, before the
 * largest are chosen, as TensorFlow's Object Detection API. */
#include "tasks/detection/detection_points.h"
#include "tasks/detection/detection_rotated.h"
#include "tasks/record.h"

#include <pumice/trace.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- fields ------------------------------------------------------------------------------ */

const struct pm_detection_anchors *pm_detection_anchors_of(const struct pm_task *t,
                                                           struct pm_frame frame)
{
    for (size_t i = 0; i < t->anchors_count; i++)
        if (t->anchors[i].frame.height == frame.height && t->anchors[i].frame.width == frame.width)
            return &t->anchors[i];
    return NULL;
}

/* Whether examples have truths for the loss: always in training; in evaluation only if all pictures
 * have one frame, whose anchors are known from training. */
static bool has_truths(const struct pm_task *t, bool train, struct pm_frame frame)
{
    return train || (!t->facts.own_sizes && pm_detection_anchors_of(t, frame));
}

bool pm_detection_has_normalizer(const struct pm_task *t)
{
    return t->minibatch.on || t->loss.normalize_over == PM_NORMALIZE_BATCH;
}

/* Index of the first field after the truths of the boxes. */
static int after_truths(const struct pm_task *t)
{
    return pm_detection_has_normalizer(t) ? PM_FIELD_NORMALIZER + 1 : PM_FIELD_NORMALIZER;
}

/* Index of the field truth_keypoints of training, if it exists, and of the field after it. */
static int after_masks(const struct pm_task *t)
{
    return after_truths(t) + (t->data.instance_masks ? 2 : 0);
}

static int after_points(const struct pm_task *t)
{
    return after_masks(t) + (t->data.num_keypoints > 0);
}

static void add_window(const struct pm_task *t, struct pm_field_list *out)
{
    if (t->pads)
        pm_field_add(out, (struct pm_field){ "windows", PM_F32, PM_SHAPE1(4),
                                             .values = { 0, 1, PM_PATTERN_BOXES } });
}

/* Writes the field windows of a placed picture. out: all fields of the example. */
static void write_window(const struct pm_sampler *sampler, const struct pm_placed *placed,
                         struct pm_frame frame, void *const *out)
{
    const struct pm_task *t = sampler->task;
    const int at = !has_truths(t, sampler->train, frame) ? PM_FIELD_BOXES
                   : sampler->train                      ? after_points(t)
                                                         : after_truths(t);

    if (t->pads && sampler->train)
        pm_placed_filled(placed, out[at]);
    else if (t->pads)
        pm_placed_window(placed, out[at]);
}

/* Ranges of values are for random inputs of the verification: few anchors are matched. */
void pm_detection_fields(const struct pm_task *t, bool train, struct pm_frame frame,
                         struct pm_field_list *out)
{
    const struct pm_detection_anchors *anchors = pm_detection_anchors_of(t, frame);
    const int most = t->data.max_boxes;
    /* No side of a rotated box is 0. */
    const struct pm_values values = t->rotated ? (struct pm_values){ 0.05, 1, PM_PATTERN_ANY }
                                               : (struct pm_values){ 0, 1, PM_PATTERN_BOXES };

    pm_field_add(out, pm_record_images(&t->facts, frame));
    if (!has_truths(t, train, frame)) {
        add_window(t, out);
        return;
    }
    pm_field_add(out, (struct pm_field){ "truth_boxes", PM_F32,
                                         PM_SHAPE2(most, pm_detection_box_numbers(t)),
                                         .values = values });
    pm_field_add(out, pm_detection_classes_field(t));
    pm_field_add(out, (struct pm_field){ "truth_weights", PM_F32, PM_SHAPE1(most),
                                         .absent = (int)0xbf800000, /* -1.0 */
                                         .values = { 0, 1 } });
    pm_field_add(out, (struct pm_field){ "matches", PM_I32,
                                         PM_SHAPE1(anchors ? anchors->count : 1),
                                         .absent = PM_IGNORED,
                                         .values = { 0, most - 1, PM_PATTERN_CHOSEN } });
    if (pm_detection_has_normalizer(t))
        pm_field_add(out, (struct pm_field){ "normalizer", PM_F32, { 0 },
                                             .absent = 0x3f800000, /* 1.0 */
                                             .values = { 1, 2 } });
    if (train && t->data.instance_masks)
        pm_detection_mask_fields(t, frame, out);
    if (train && t->data.num_keypoints)
        pm_detection_points_field(t, out);
    add_window(t, out);
}

/* Whether the batch has the field normalizer. */
static bool has_normalizer(const struct pm_sampler *s, const struct pm_batch *b)
{
    return pm_detection_has_normalizer(s->task) && pm_detection_anchors_of(s->task, b->frame) &&
           has_truths(s->task, s->train, b->frame);
}

/* The layer takes the mean over all examples; absent ones have the loss 0. Evaluation needs the
 * mean over the valid ones. */
static void scale_by_valid(struct pm_batch *b)
{
    float *normalizer = b->field[PM_FIELD_NORMALIZER];

    for (int i = 0; i < b->valid && b->valid < b->examples; i++)
        normalizer[i] *= (float)b->valid / (float)b->examples;
}

/* Returns the sum of the weights of the matched anchors of all examples. */
static double matched_weights(const struct pm_task *t, const struct pm_batch *b)
{
    const size_t most = (size_t)t->data.max_boxes;
    const size_t count = (size_t)pm_detection_anchors_of(t, b->frame)->count;
    double sum = 0;

    for (size_t i = 0; i < (size_t)b->valid; i++) {
        const float *weights = (const float *)b->field[PM_FIELD_WEIGHTS] + i * most;
        const int32_t *matches = (const int32_t *)b->field[PM_FIELD_MATCHES] + i * count;

        for (size_t k = 0; k < count; k++)
            sum += matches[k] >= 0 ? (double)weights[matches[k]] : 0;
    }
    return sum;
}

void pm_detection_whole_batch(void *ctx, struct pm_batch *b)
{
    const struct pm_sampler *sampler = ctx;
    const struct pm_task *t = sampler->task;

    if (!has_normalizer(sampler, b))
        return;
    if (t->minibatch.on) {
        scale_by_valid(b);
        return;
    }
    b->sum = t->loss.normalize_by_matches ? matched_weights(t, b) : 0;
    pm_detection_set_sum(ctx, b, b->sum);
}

void pm_detection_set_sum(void *ctx, struct pm_batch *b, double sum)
{
    const struct pm_sampler *sampler = ctx;

    if (sampler->task->minibatch.on || !has_normalizer(sampler, b))
        return;
    for (int i = 0; i < b->examples; i++)
        ((float *)b->field[PM_FIELD_NORMALIZER])[i] = sum > 1 ? (float)sum : 1;
}

#define TARGETS "TargetAssignment/AvgNum"
const struct pm_batch_metric pm_detection_batch_metrics[] = {
    { "true_boxes", TARGETS "GroundtruthBoxesPerImage", NULL },
    { "matched_boxes", TARGETS "GroundtruthBoxesMatchedPerImage", NULL },
    { "positive_anchors", TARGETS "PositiveAnchorsPerImage", NULL },
    { "negative_anchors", TARGETS "NegativeAnchorsPerImage", NULL },
    { "ignored_anchors", TARGETS "IgnoredAnchorsPerImage", NULL },
    { "mined_positives", "HardExampleMiner/NumPositives", "loss/mined_positives" },
    { "mined_negatives", "HardExampleMiner/NumNegatives", "loss/mined_negatives" },
    { "positive_proposals", "ProposalSampler/NumPositives", "proposals/sampled/positives" },
    { "negative_proposals", "ProposalSampler/NumNegatives", "proposals/sampled/negatives" },
    { 0 },
};

/* Adds one picture's numbers. An anchor whose box has weight 0 is ignored. */
static void measure(const float *weights, const int32_t *matches, size_t boxes, size_t anchors,
                    double out[PM_MAX_BATCH_METRICS])
{
    bool *matched = pm_calloc(boxes, sizeof *matched);

    for (size_t k = 0; k < anchors; k++) {
        const bool positive = matches[k] >= 0 && weights[matches[k]] > 0;

        out[2] += positive;
        out[3] += matches[k] == PM_NEGATIVE;
        out[4] += !positive && matches[k] != PM_NEGATIVE;
        if (positive)
            matched[matches[k]] = true;
    }
    for (size_t i = 0; i < boxes; i++) {
        out[0] += weights[i] > 0;
        out[1] += matched[i];
    }
    pm_free(matched);
}

void pm_detection_measure_batch(const struct pm_task *t, const struct pm_batch *b,
                                double out[PM_MAX_BATCH_METRICS])
{
    const struct pm_detection_anchors *anchors = pm_detection_anchors_of(t, b->frame);
    const size_t most = (size_t)t->data.max_boxes, count = anchors ? (size_t)anchors->count : 0;

    for (int k = 0; k < PM_MAX_BATCH_METRICS; k++)
        out[k] = 0;
    for (size_t i = 0; anchors && i < (size_t)b->valid; i++)
        measure((const float *)b->field[PM_FIELD_WEIGHTS] + i * most,
                (const int32_t *)b->field[PM_FIELD_MATCHES] + i * count, most, count, out);
}

int pm_detection_frame(const struct pm_task *t, const struct pm_occasion *o, int height, int width,
                       struct pm_frame *out)
{
    const struct pm_task_facts *f = &t->facts;

    if (!o->train && f->own_sizes)
        return pm_preprocessing_own_size(f->preprocessing, f->preprocessing_cfg, height, width,
                                         o->where, out);
    *out = o->train ? (struct pm_frame){ f->height, f->width }
                    : (struct pm_frame){ f->eval_height, f->eval_width };
    return PM_OK;
}

/* ---- the truths of an example ------------------------------------------------------------ */

/* A box in the input. */
struct row {
    float box[5], weight, area; /* box[4]: of a rotated one */
    int32_t label;
    const float *targets; /* [classes]: of a soft or merged label; or NULL */
    size_t from;          /* index in the placed objects */
    bool kept;
};

/* Clips a box to the input. Returns false if nothing is left of it. */
static bool clip(float box[4])
{
    for (int k = 0; k < 4; k++)
        box[k] = fminf(fmaxf(box[k], 0), 1);
    return box[2] > box[0] && box[3] > box[1];
}

/* Warns of a training picture with too many boxes: the first, second, fourth, eighth ... */
static void tell_crowded(const struct pm_task *t, size_t count, const char *where)
{
    const uint64_t n = atomic_fetch_add(t->crowded, 1) + 1;

    if ((n & (n - 1)) == 0)
        PM_WARN("data", "%s: %zu boxes; training keeps the largest %d (data.max_boxes), %" PRIu64
                " such picture%s so far", where, count, t->data.max_boxes, n, n == 1 ? "" : "s");
}

/* Larger areas first, the first of equal ones first. */
static int by_area(const void *a, const void *b)
{
    const struct row *x = *(struct row *const *)a, *y = *(struct row *const *)b;

    if (x->area != y->area)
        return x->area > y->area ? -1 : 1;
    return x < y ? -1 : 1;
}

/* Keeps the largest rows, the first of equal ones. Sets kept. */
static void keep_largest(struct row *rows, size_t count, size_t most, struct pm_arena *a)
{
    struct row **order = pm_arena_alloc(a, (count + 1) * sizeof *order);

    for (size_t i = 0; i < count; i++)
        order[i] = &rows[i];
    if (count > most)
        qsort(order, count, sizeof *order, by_area);
    for (size_t i = 0; i < count && i < most; i++)
        order[i]->kept = true;
}

/* Sets a row's box to that of object i. Returns false if no part of it is in the input. */
static bool set_upright(struct row *row, const struct pm_sample *placed, size_t i)
{
    float *box = row->box;

    memcpy(box, placed->boxes + 4 * i, 4 * sizeof *box);
    if (!clip(box))
        return false;
    row->area = (box[2] - box[0]) * (box[3] - box[1]);
    return true;
}

/* The same for a rotated box, which is not clipped. */
static bool set_rotated(struct row *row, const struct pm_sample *placed, size_t i,
                        struct pm_frame frame)
{
    struct pm_rectangle r;

    memcpy(row->box, placed->rotated + 5 * i, sizeof row->box);
    pm_rectangle_of_box(row->box, frame.height, frame.width, &r);
    pm_rotated_to_heights(row->box, 1, frame.height, frame.width);
    row->area = row->box[2] * row->box[3];
    return pm_rectangle_is_valid(&r) && pm_rectangle_inside(&r, frame.height, frame.width) > 0;
}

/* Makes the rows of placed objects. Returns their number. */
static size_t make_rows(const struct pm_task *t, const struct pm_sample *placed,
                        struct pm_frame frame, struct row *rows)
{
    const bool soft = t->data.multiclass_scores;
    size_t n = 0;

    for (size_t i = 0; i < placed->objects; i++) {
        struct row *row = &rows[n];

        *row = (struct row){ .weight = placed->weights[i], .label = placed->labels[i] - 1,
                             .from = i };
        if (!(t->rotated ? set_rotated(row, placed, i, frame) : set_upright(row, placed, i)))
            continue;
        if (soft)
            row->targets = placed->scores + (size_t)placed->score_count * i;
        n++;
    }
    return n;
}

/* As in TensorFlow: coordinates are equal in steps of 1/9999, in float32. */
static bool equal_boxes(const float *a, const float *b, int numbers)
{
    for (int k = 0; k < numbers; k++)
        if ((int)(a[k] * 9999) != (int)(b[k] * 9999))
            return false;
    return true;
}

/* Merges rows with equal boxes: the first stays, with the labels of all and their largest weight:
 * an object is not ignored because a crowd has its box. Returns the number of rows left. */
static size_t merge(const struct pm_task *t, struct row *rows, size_t count, struct pm_arena *a)
{
    const int numbers = pm_detection_box_numbers(t);
    const size_t stride = (size_t)t->facts.num_classes, bytes = count * stride * sizeof(float);
    float *targets = pm_arena_alloc(a, bytes + 1);
    size_t n = 0;

    memset(targets, 0, bytes);
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;

        while (k < n && !equal_boxes(rows[k].box, rows[i].box, numbers))
            k++;
        if (k == n) {
            rows[n] = rows[i];
            rows[n++].targets = targets + stride * k;
        }
        targets[stride * k + (size_t)rows[i].label] = 1;
        rows[k].weight = fmaxf(rows[k].weight, rows[i].weight);
    }
    return n;
}

/* Writes the truths of an example and matches the anchors. */
static void write_truths(const struct pm_task *t, const struct row *rows, size_t count,
                         const struct pm_detection_anchors *anchors, struct pm_arena *a,
                         void *const *out)
{
    const size_t most = (size_t)t->data.max_boxes, numbers = (size_t)pm_detection_box_numbers(t);
    float *boxes = out[PM_FIELD_BOXES], *weights = out[PM_FIELD_WEIGHTS];
    const struct pm_field field = pm_detection_classes_field(t);
    const size_t bytes = pm_shape_count(field.shape) * pm_type_size(field.type);
    const size_t stride = bytes / most; /* of a row */
    uint8_t *classes = out[PM_FIELD_CLASSES];
    float *scores = pm_arena_alloc(a, most * sizeof *scores);
    size_t n = 0;

    memset(boxes, 0, numbers * most * sizeof *boxes);
    memset(weights, 0, most * sizeof *weights);
    memset(classes, 0, bytes);
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].kept)
            continue;
        memcpy(boxes + numbers * n, rows[i].box, numbers * sizeof *boxes);
        weights[n] = rows[i].weight;
        memcpy(classes + stride * n,
               rows[i].targets ? (const void *)rows[i].targets : &rows[i].label, stride);
        scores[n] = pm_detection_score_of(t, classes, n);
        n++;
    }
    if (anchors)
        pm_match(&t->matcher, anchors->index,
                 &(struct pm_truths){ .count = (int)n, .boxes = boxes, .weights = weights,
                                      .scores = scores },
                 out[PM_FIELD_MATCHES], NULL);
}

/* Writes what a training example has besides its boxes: the masks and keypoints of the kept
 * objects. */
static void write_members(const struct pm_task *t, const struct pm_sample *placed,
                          const struct row *rows, size_t count, const struct pm_loader_record *r,
                          struct pm_arena *a, void *const *out)
{
    size_t *from = pm_arena_alloc(a, (count + 1) * sizeof *from), n = 0;

    for (size_t i = 0; i < count; i++)
        if (rows[i].kept)
            from[n++] = rows[i].from;
    if (t->data.instance_masks)
        pm_detection_write_masks(t, placed, r->frame, from, n, out[after_truths(t)],
                                 out[after_truths(t) + 1]);
    if (t->data.num_keypoints)
        pm_detection_write_points(t, placed, from, n, out[after_masks(t)]);
}

static void make_truths(const struct pm_sampler *sampler, const struct pm_sample *placed,
                        const struct pm_loader_record *r, struct pm_arena *a, void *const *out)
{
    const struct pm_task *t = sampler->task;
    const size_t most = (size_t)t->data.max_boxes;
    const struct pm_detection_anchors *anchors = pm_detection_anchors_of(t, r->frame);
    struct row *rows = pm_malloc((placed->objects + 1) * sizeof *rows);
    size_t count = make_rows(t, placed, r->frame, rows);

    if (t->data.merge_multiple_label_boxes)
        count = merge(t, rows, count, a);
    if (count > most && sampler->train)
        tell_crowded(t, count, r->where);
    keep_largest(rows, count, most, a);
    write_truths(t, rows, count, anchors, a, out);
    if (anchors && t->anchor_sampler.on)
        pm_detection_sample_anchors(t, r, out[PM_FIELD_WEIGHTS], out[PM_FIELD_MATCHES],
                                    anchors->count);
    if (anchors && t->minibatch.on) {
        const int n = pm_detection_sample_minibatch(t, r, out[PM_FIELD_WEIGHTS],
                                                    out[PM_FIELD_MATCHES], anchors->count);

        *(float *)out[PM_FIELD_NORMALIZER] = n > 1 ? (float)n : 1;
    }
    if (sampler->train)
        write_members(t, placed, rows, count, r, a, out);
    pm_free(rows);
}

/* ---- examples ---------------------------------------------------------------------------- */

/* A row of input.augment may have changed them. */
static int check_labels(const struct pm_task *t, const struct pm_sample *placed, const char *where)
{
    for (size_t i = 0; i < placed->objects; i++)
        if (placed->labels[i] < 1 || placed->labels[i] > t->facts.num_classes)
            return pm_fail(PM_ECONFIG, "%s: input.augment gives an object the class number %d, "
                           "which is outside 1..%d (model.num_classes): correct remap_labels",
                           where, placed->labels[i], t->facts.num_classes);
    return PM_OK;
}

/* With input.buckets the batch holds a picture of the size in its header. */
static int place_in_frame(const struct pm_sampler *sampler, const struct pm_sample *sample,
                          const struct pm_loader_record *r, struct pm_placed *out)
{
    const struct pm_task *t = sampler->task;
    const int err = pm_record_place(&t->facts, sampler->train, sample, r, out);
    struct pm_frame need;

    if (err != PM_EDATA || !sampler->train || t->facts.config->buckets_count == 0 ||
        pm_detection_need_of(t, sample, r, &need) < 0)
        return err;
    return pm_fail(PM_ECORRUPT, "%s: the picture's header and its pixels differ in size: it is "
                   "%d x %d when resized, but the batch has pictures of %d x %d. Export it again, "
                   "or remove it", r->where, need.height, need.width, r->frame.height,
                   r->frame.width);
}

/* Places the picture and its boxes. */
static int place(const struct pm_sampler *sampler, const struct pm_example *e,
                 const struct pm_sample *sample, const struct pm_loader_record *r,
                 struct pm_arena *a, void *const *out)
{
    const struct pm_task *t = sampler->task;
    struct pm_sample in_input;
    struct pm_placed placed;
    int err = PM_OK;

    PM_TRY(place_in_frame(sampler, sample, r, &placed));
    PM_TRY(pm_record_input(e, &placed, sample->picture, out[0]));
    write_window(sampler, &placed, r->frame, out);
    if (!has_truths(t, sampler->train, r->frame))
        goto out;
    pm_placed_objects(&placed, sample, a, &in_input);
    PM_TRY(check_labels(t, &in_input, r->where));
    make_truths(sampler, &in_input, r, a, out);
out:
    return err;
}

int pm_detection_make(void *ctx, const struct pm_loader_record *r, void *const *out)
{
    const struct pm_sampler *sampler = ctx;
    const struct pm_task *t = sampler->task;
    struct pm_detection_truths *truths = NULL;
    struct pm_detection_record record = { 0 };
    struct pm_arena *a = pm_arena_create();
    struct pm_sample sample;
    double begun = pm_trace_now();
    int err = PM_OK;

    PM_TRY(pm_detection_open_record(sampler, r, pm_detection_channels(sampler, r->part),
                                    &record));
    if (t->facts.own_sizes && !sampler->train)
        PM_TRY(pm_record_check_size(t, pm_detection_frame, &record.picture, r));
    if (r->host && !sampler->train)
        PM_TRY(pm_detection_truths_of(t, record.example, &record.objects, r->where, &truths));
    PM_TRY(pm_detection_sample(sampler, &record, r->where, a, &sample));
    PM_TRY(pm_detection_join(sampler, r, a, &sample));
    pm_trace_here("decode", begun);
    begun = pm_trace_now();
    PM_TRY(place(sampler, record.example, &sample, r, a, out));
    if (truths)
        *r->host = truths, truths = NULL;
    pm_trace_here("preprocess", begun);
out:
    if (truths)
        pm_detection_free_truths(truths);
    pm_detection_close_record(&record);
    pm_arena_destroy(&a);
    return err;
}

/* ---- back to the picture ----------------------------------------------------------------- */

int pm_detection_place_back(const struct pm_task *t, struct pm_frame frame, int height, int width,
                            struct pm_placed *out)
{
    const struct pm_task_facts *s = &t->facts;
    const struct pm_image8 picture = { height, width, s->channels, NULL };
    const struct pm_occasion o = { .height = frame.height, .width = frame.width,
                                   .channels = s->channels, .own_size = s->own_sizes,
                                   .where = "prediction" };

    return pm_place_with(s->preprocessing, s->preprocessing_cfg, NULL, &picture, &o, out);
}

/* Brings boxes of the input to 0..1 of the picture. */
static int boxes_back(const struct pm_task *t, struct pm_frame frame, int height, int width,
                      float *boxes, int count)
{
    struct pm_placed placed;
    int err = PM_OK;

    PM_TRY(pm_detection_place_back(t, frame, height, width, &placed));
    pm_geometry_boxes_back(&placed.geometry, boxes, (size_t)count);
out:
    return err;
}

int pm_detection_points_back(const struct pm_task *t, struct pm_frame frame, int height, int width,
                             float *points, int count)
{
    float *boxes = pm_malloc(((size_t)count * 4 + 1) * sizeof *boxes); /* without area */
    int err = PM_OK;

    for (int i = 0; i < 4 * count; i++)
        boxes[i] = points[i / 4 * 2 + i % 2];
    PM_TRY(boxes_back(t, frame, height, width, boxes, count));
    for (int i = 0; i < 2 * count; i++)
        points[i] = boxes[i / 2 * 4 + i % 2];
out:
    pm_free(boxes);
    return err;
}

int pm_detection_to_pixels(const struct pm_task *t, struct pm_frame frame, int height, int width,
                           const float *boxes, int count, struct pm_box *out)
{
    float *back = pm_malloc(((size_t)count * 4 + 1) * sizeof *back);
    int err = PM_OK;

    memcpy(back, boxes, (size_t)count * 4 * sizeof *back);
    PM_TRY(boxes_back(t, frame, height, width, back, count));
    for (int i = 0; i < 4 * count; i++) {
        const double v = fmin(fmax((double)back[i], 0), 1); /* NaN: 0 */

        out[i / 4].v[i % 4] = v * (i % 2 ? width : height);
    }
out:
    pm_free(back);
    return err;
}
