/* record: the common part of the tasks' records: the picture. */
#ifndef PM_RECORD_H
#define PM_RECORD_H

#include <pumice/task.h>

/* Decodes the picture of image/encoded, which is a supported format or, by image/format, raw.
 * channels as in pm_image_decode. Logs the name of a picture that takes long (slow_pictures.h). */
int pm_record_image(const struct pm_example *e, int channels, const char *where,
                    struct pm_image8 *out);
/* Opens the picture of an example that make() computes. If input.scaled_jpeg applies, *out has the
 * picture's size and channels but no pixels, which pm_record_input decodes; else it is decoded. */
int pm_record_open_image(const struct pm_task_facts *s, bool train, const struct pm_example *e,
                         int channels, const struct pm_loader_record *r, struct pm_image8 *out);
/* Computes the input from the placed picture (pm_placed_picture), and decodes it before, at reduced
 * size, if it has no pixels yet. */
int pm_record_input(const struct pm_example *e, const struct pm_placed *placed,
                    const struct pm_image8 *picture, float *out);
/* Returns the picture's id: image/source_id, else image/filename. NULL: the record has neither, or
 * it is not one line of text. The caller frees it. */
char *pm_record_id(const struct pm_example *e);
/* Returns the name of the picture's file, for people: image/filename, else image/source_id. NULL
 * and freed as above. */
char *pm_record_file(const struct pm_example *e);
/* Decodes the record's picture, before any preprocessing. */
int pm_record_picture(const struct pm_task_facts *s, const uint8_t *record, size_t size,
                      const char *where, struct pm_image8 *out);
/* Returns PM_ECONFIG if pictures are neither grey nor in colour, or if there are fewer than `least`
 * classes. least: 1 if the task adds a background or scores each class by itself, else 2. */
int pm_record_check(const struct pm_task_facts *s, int least);
/* Returns field 0 of a batch of this frame, the pictures. */
struct pm_field pm_record_images(const struct pm_task_facts *s, struct pm_frame frame);
/* Places the sample of a batch's example in the batch's frame: pm_place with these facts. */
int pm_record_place(const struct pm_task_facts *s, bool train, const struct pm_sample *sample,
                    const struct pm_loader_record *r, struct pm_placed *out);
/* Checks a decoded picture that keeps its own size in evaluation. Returns PM_ECORRUPT if it needs
 * another frame than its header did. frame: the task's hook. */
int pm_record_check_size(const struct pm_task *t,
                         int (*frame)(const struct pm_task *t, const struct pm_occasion *o,
                                      int height, int width, struct pm_frame *out),
                         const struct pm_image8 *picture, const struct pm_loader_record *r);
/* Computes the frame that a training picture of this size needs: its size after the rows that draw
 * a size, before those that crop or pad. o: seed, step, example and where are set. */
int pm_record_need(const struct pm_task_facts *s, const struct pm_occasion *o, int height,
                   int width, struct pm_frame *out);
/* Returns PM_ECONFIG if input.augment does not carry these members (PM_CARRIES_... bits). */
int pm_record_check_augment(const struct pm_task_facts *s, unsigned carries);
/* Turns PM_EDATA into PM_ECORRUPT: a record that cannot be read says nothing about the others, like
 * a label out of range. */
int pm_record_damage(int err);

#endif
