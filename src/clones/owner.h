/* owner: holds some variables of an asynchronous training, with their slots and averages, and
 * updates them by the gradients of workers, one after the other. Whole variables are dealt in the
 * order of their creation: variable i belongs to owner i % owners.
 *
 * A part is the memory layout of an owner's variables in messages: floats of the trainable
 * variables, then of the others, without paddings. */
#ifndef PM_OWNER_H
#define PM_OWNER_H

#include "clones/clones.h"

struct pm_part {
    int count, trainable;    /* variables; the trainable ones come first */
    int *variable;           /* [count] in the list; owned */
    size_t floats, trainable_floats;
};
void pm_part_create(const struct pm_variables *v, int index, int owners, struct pm_part *out);
void pm_part_free(struct pm_part *p);
/* Copy the first `count` variables of a part between a block of v's layout and memory. */
int pm_part_read(const struct pm_part *p, const struct pm_variables *v, struct pm_buffer *block,
                 int count, float *out);
int pm_part_write(const struct pm_part *p, const struct pm_variables *v, struct pm_buffer *block,
                  int count, const float *from);
/* The floats of an owner's whole state: values, slots, averages. Copy it. */
size_t pm_part_state_floats(const struct pm_part *p, const struct pm_variables *v);
int pm_part_read_state(const struct pm_part *p, const struct pm_variables *v, float *out);
int pm_part_write_state(const struct pm_part *p, const struct pm_variables *v, const float *from);

struct pm_owner;
/* o: options of the workers' clones. index: of this owner. One thread uses an owner. PM_ECONFIG:
 * the net has a layer whose moving averages cannot be combined. */
int pm_owner_create(const struct pm_clones_options *o, int index, int owners,
                    struct pm_owner **out);
void pm_owner_destroy(struct pm_owner **o);
/* All variables of the net. Only those of the owner's part are kept up to date. */
struct pm_variables *pm_owner_variables(const struct pm_owner *o);
const struct pm_part *pm_owner_part(const struct pm_owner *o);
/* Applies a gradient. part[floats]: prepared gradients of the trainable variables; for the others,
 * what `moving` clones of a worker add to them: v <- d^moving v + part, with d the decay of the
 * variable (moving.h). Values that are not finite add nothing. */
int pm_owner_apply(struct pm_owner *o, const struct pm_step *step, int moving, const float *part);
/* The same for the mean of several gradients, parts[count], whose moving averages follow one after
 * the other. moving: [count]. */
int pm_owner_apply_mean(struct pm_owner *o, const struct pm_step *step, const int *moving,
                        const float *const *parts, int count);

#endif
