/* Shared by the tests of detection's samples: the fields and the host data that an experiment makes
 * of a record. */
#ifndef PUMICE_TESTS_SAMPLES_COMMON_H
#define PUMICE_TESTS_SAMPLES_COMMON_H

#include "detection_setup.h"

struct made {
    float images[SIDE * SIDE * 3], boxes[MOST][4], weights[MOST], normalizer;
    int32_t classes[MOST], matches[ANCHORS];
    float targets[MOST][CLASSES]; /* instead of classes, if the field has floats */
    uint32_t masks[MOST][SIDE];   /* with data.instance_masks: a word for each row of pixels */
    float mask_weights[MOST];
    float keypoints[MOST][2][2];  /* with data.num_keypoints=2 */
    struct pm_detection_truths *truths;
};

static inline int make_step(const struct setup *s, bool train, const struct pm_objects *objects,
                            uint64_t step, struct made *m)
{
    const struct pm_task_row *row = s->e->task_row;
    struct pm_sampler sampler = { s->e->task, train, row };
    const bool soft = s->e->train_fields.list[PM_FIELD_CLASSES].type == PM_F32;
    /* The keypoints are the last field, after the masks if the data has these. */
    void *out[] = { m->images, m->boxes, soft ? (void *)m->targets : m->classes, m->weights,
                    m->matches, &m->normalizer, m->masks, m->mask_weights, m->keypoints };
    uint8_t *data = NULL;
    size_t size = 0;
    void *host = NULL;

    record_of(objects, &data, &size);
    const int err = row->make(&sampler, &(struct pm_loader_record){
        .bytes = data, .size = size, .where = "r", .step = step, .frame = { SIDE, SIDE },
        .host = &host }, out);
    m->truths = host;
    pm_free(data);
    return err;
}

static inline void made(const struct setup *s, bool train, const struct pm_objects *objects,
                        struct made *m)
{
    if (make_step(s, train, objects, 0, m) < 0)
        fail_msg("%s", pm_error_text());
}

static inline struct pm_object *add(struct pm_objects *o, const char *text, float y0, float x0,
                                    float y1, float x1)
{
    struct pm_object *one = pm_objects_add(o);

    memcpy(one->box, (float[]){ y0, x0, y1, x1 }, sizeof one->box);
    one->text = text;
    return one;
}

static inline void assert_box(const float *box, double y0, double x0, double y1, double x1)
{
    const double want[] = { y0, x0, y1, x1 };

    for (int k = 0; k < 4; k++)
        if (fabs((double)box[k] - want[k]) > 1e-6)
            fail_msg("coordinate %d is %g instead of %g", k, (double)box[k], want[k]);
}

#endif
