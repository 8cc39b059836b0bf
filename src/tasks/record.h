/* record: what the tasks' records have in common: the picture. */
#ifndef PM_RECORD_H
#define PM_RECORD_H

#include <pumice/task.h>

/* The picture of image/encoded, in a format that decodes or, by image/format, raw; channels as of
 * pm_image_decode. */
int pm_record_image(const struct pm_example *e, int channels, const char *where,
                    struct pm_image8 *out);
/* The record's picture as it is, before any preprocessing. */
int pm_record_picture(const struct pm_task_facts *s, const uint8_t *record, size_t size,
                      const char *where, struct pm_image8 *out);
/* PM_ECONFIG where pictures are neither grey nor coloured, or where there are fewer than two classes. */
int pm_record_check(const struct pm_task_facts *s);
/* Field 0 of a batch, the pictures. */
struct pm_field pm_record_images(const struct pm_task_facts *s, bool train);
/* Places the sample of a batch's example for the net's input: pm_place by the facts. */
int pm_record_place(const struct pm_task_facts *s, bool train, const struct pm_sample *sample,
                    uint64_t seed, uint64_t step, uint32_t example, const char *where,
                    struct pm_placed *out);
/* PM_ECONFIG when input.augment does not carry these members (PM_CARRIES_... bits). */
int pm_record_check_augment(const struct pm_task_facts *s, unsigned carries);
/* PM_EDATA as PM_ECORRUPT: a record that cannot be read says nothing of the others, as a label out of
 * range does. */
int pm_record_damage(int err);

#endif
