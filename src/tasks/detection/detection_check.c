/* detection_check: what `config check` reports of the data: how the net's anchors fit the boxes
 * that training would see, after the augmentations and the resize. */
#include "tasks/detection/detection_rotated.h"

#include <cjson/cJSON.h>

/* Pictures of the first size on which other anchors are tried. */
enum { TRIED_PICTURES = 100 };

/* Counts the boxes of a batch's first `count` pictures. */
static void add_batch(const struct pm_task *t, struct pm_anchor_fit **fits,
                      struct pm_anchor_sample *sample, const struct pm_batch *b, int count)
{
    const struct pm_detection_anchors *anchors = pm_detection_anchors_of(t, b->frame);
    const size_t most = (size_t)t->data.max_boxes, numbers = (size_t)pm_detection_box_numbers(t);
    int32_t *labels = pm_malloc(most * sizeof *labels);
    float *scores = pm_malloc(most * sizeof *scores);

    for (int i = 0; anchors && i < count; i++) {
        const float *weights = (const float *)b->field[PM_FIELD_WEIGHTS] + most * (size_t)i;
        struct pm_truths truths = {
            .boxes = (const float *)b->field[PM_FIELD_BOXES] + numbers * most * (size_t)i,
            .weights = weights, .scores = scores,
        };

        /* rows of weight 0 fill up the end */
        for (size_t k = 0; k < most; k++) {
            truths.count = weights[k] > 0 ? (int)k + 1 : truths.count;
            labels[k] = pm_detection_class_of(t, b->field[PM_FIELD_CLASSES],
                                              most * (size_t)i + k);
            scores[k] = pm_detection_score_of(t, b->field[PM_FIELD_CLASSES], most * (size_t)i + k);
        }
        pm_anchor_fit_add(fits[anchors - t->anchors], &truths, labels);
        if (anchors == t->anchors && !t->rotated && sample->count < TRIED_PICTURES)
            pm_anchor_sample_add(sample, &truths);
    }
    pm_free(labels);
    pm_free(scores);
}

/* Whether a target of the first `count` pictures is neither 0 nor 1. */
static bool has_soft(const struct pm_task *t, const struct pm_batch *b, int count)
{
    const size_t values = (size_t)count * (size_t)t->data.max_boxes * (size_t)t->facts.num_classes;
    const float *targets = b->field[PM_FIELD_CLASSES];

    for (size_t i = 0; i < values; i++)
        if (targets[i] > 0 && targets[i] < 1)
            return true;
    return false;
}

/* Adds remarks on options that train, but worse than another choice. soft: a picture has soft
 * labels. */
static void note(const struct pm_task *t, bool soft, struct pm_str *text)
{
    if (t->background && t->class_loss.type == PM_CLASS_SIGMOID_FOCAL)
        pm_str_add(text, "note: with the focal loss a column for the background learns slowly and "
                         "lowers no score.\nSet model.background_class=false, or another "
                         "loss.classification.type.\n");
    if (t->data.multiclass_scores && !soft)
        pm_str_add(text, "note: data.multiclass_scores is true, but every soft label is 0 or 1, as "
                         "without it.\nStore image/object/class/multiclass_scores in the records, "
                         "or remove the key.\n");
}

static void report(const struct pm_task *t, struct pm_anchor_fit **fits,
                   const struct pm_anchor_sample *sample, struct pm_str *text, cJSON *object)
{
    const struct pm_fit_needs needs = pm_anchor_fit_needs(fits[0]);
    const size_t classes = (size_t)t->facts.num_classes;
    char (*room)[16] = pm_malloc(classes * sizeof *room);
    const char **names = pm_malloc(classes * sizeof *names);
    cJSON *list = cJSON_AddArrayToObject(object, "anchors");

    for (size_t i = 0; i < classes; i++)
        names[i] = pm_detection_name(t, (int)i, room[i]);
    for (size_t i = 0; i < t->anchors_count; i++) {
        const struct pm_frame frame = t->anchors[i].frame;
        cJSON *one = cJSON_CreateObject();

        pm_str_add(text, "input %dx%d: ", frame.height, frame.width);
        pm_anchor_fit_print(fits[i], names, text);
        cJSON_AddNumberToObject(one, "height", frame.height);
        cJSON_AddNumberToObject(one, "width", frame.width);
        pm_anchor_fit_report(fits[i], names, one);
        cJSON_AddItemToArray(list, one);
    }
    if (t->rotated)
        pm_str_add(text, "Other scales are tried for upright anchors only: model.boxes is "
                         "rotated.\n");
    else if (t->anchors[0].maps.levels.count)
        pm_anchor_search(&t->matcher, t->anchors[0].index, &t->anchors[0].maps, sample, &needs,
                         text);
    pm_free(room);
    pm_free(names);
}

int pm_detection_check_data(const struct pm_task *t, struct pm_loader *l, int64_t pictures,
                            struct pm_str *text, cJSON *object)
{
    struct pm_anchor_fit **fits = pm_calloc(t->anchors_count, sizeof *fits);
    struct pm_anchor_sample sample = { 0 };
    struct pm_batch *b;
    bool soft = false;
    int err = PM_OK;

    for (size_t i = 0; i < t->anchors_count; i++)
        fits[i] = pm_anchor_fit_create(&t->matcher, t->anchors[i].index, t->facts.num_classes,
                                       t->anchors[i].frame.height, t->anchors[i].frame.width);
    while (pictures > 0) {
        PM_TRY(pm_loader_next(l, &b));
        const int count = b->valid < pictures ? b->valid : (int)pictures;

        add_batch(t, fits, &sample, b, count);
        soft |= t->data.multiclass_scores && has_soft(t, b, count);
        pictures -= b->valid;
        pm_loader_release(l, b);
    }
    note(t, soft, text);
    report(t, fits, &sample, text, object);
out:
    for (size_t i = 0; i < t->anchors_count; i++)
        pm_anchor_fit_destroy(&fits[i]);
    pm_free(fits);
    pm_anchor_sample_free(&sample);
    return err;
}
