/* learnt: FOLDER/learns, a detector that learns the drawn shapes of FOLDER/data, and what it
 * predicts for the first training picture. */
#ifndef LEARNT_H
#define LEARNT_H

#include "e2e/interrupted.h"

#include <pumice/data.h>

/* The file of the first training picture. */
#define LEARNT_PICTURE "shapes_train_00000-of-00001.tfrecord_00000.png"

/* Trains a net of small_rcnn.h in FOLDER/learns, with further options. It must find the boxes of
 * the training pictures. */
static inline void train_learns(const char *more)
{
    char text[512];

    snprintf(text, sizeof text, "run.steps=400 run.batch_size=10 eval.every_steps=0 "
             "model.batch_norm_train=true model.batch_norm_decay=0.9 schedule.base_lr=0.1 "
             "schedule.policy=cosine input.augment=[] run.log_every_steps=50 %s", more);
    train("learns", text);
    assert_true(eval_metric("learns", "map_50", "") >= 0.6);
}

/* Writes FOLDER/pictures/LEARNT_PICTURE, predicts it with FOLDER/learns and draws
 * FOLDER/drawn/LEARNT_PICTURE. Returns the picture's object in the printed JSON. The caller frees
 * it. */
static inline cJSON *predict_learnt(void)
{
    struct result r;
    cJSON *report, *image;

    check(run(NULL, "dataset inspect %s/shapes_train_00000-of-00001.tfrecord --records 1 "
              "--pictures %s", in("data"), in("pictures")), 0);
    r = run(NULL, "predict %s run.folder=%s %s --out %s --json", in("net.json"), in("learns"),
            in("pictures"), in("drawn"));
    report = json_of(&r);
    image = cJSON_DetachItemFromArray(cJSON_GetObjectItem(report, "images"), 0);
    assert_non_null(image);
    cJSON_Delete(report);
    check(r, 0);
    return image;
}

/* Reads a picture file in three colours. Free it with pm_image_free. */
static inline struct pm_image8 read_picture(const char *path)
{
    struct pm_image8 im;
    char *data = NULL;
    size_t size;

    if (pm_file_read(path, &data, &size) < 0 || pm_image_decode(data, size, 3, 0, path, &im) < 0)
        fail_msg("%s", pm_error_text());
    pm_free(data);
    return im;
}

#endif
