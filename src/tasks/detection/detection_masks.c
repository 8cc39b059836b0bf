/* detection_masks: the masks of a training example as fields, one bit a pixel of the input. So 100
 * masks of 800 x 1333 pixels are 13 MB. The loss crops them on the device. */
#include "data/mask_bits.h"
#include "tasks/detection/detection.h"

#include <limits.h>
#include <string.h>

void pm_detection_mask_fields(const struct pm_task *t, struct pm_frame frame,
                              struct pm_field_list *out)
{
    const int most = t->data.max_boxes, words = pm_mask_words(frame.width);

    pm_field_add(out, (struct pm_field){ "truth_masks", PM_U32,
                                         PM_SHAPE3(most, frame.height, words),
                                         .values = { INT_MIN, INT_MAX } });
    pm_field_add(out, (struct pm_field){ "truth_mask_weights", PM_F32, PM_SHAPE1(most),
                                         .values = { 0, 1 } });
}

void pm_detection_write_masks(const struct pm_task *t, const struct pm_sample *placed,
                              struct pm_frame frame, const size_t *from, size_t count,
                              uint32_t *masks, float *weights)
{
    const size_t most = (size_t)t->data.max_boxes;
    const size_t pixels = (size_t)frame.height * (size_t)frame.width;
    const size_t words = (size_t)frame.height * (size_t)pm_mask_words(frame.width);

    for (size_t n = 0; n < count; n++) {
        const bool any = pm_mask_pack(placed->masks + pixels * from[n], frame.height, frame.width,
                                      masks + words * n);

        weights[n] = any ? placed->mask_weights[from[n]] : 0;
    }
    memset(masks + words * count, 0, words * (most - count) * sizeof *masks);
    memset(weights + count, 0, (most - count) * sizeof *weights);
}
