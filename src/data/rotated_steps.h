/* rotated_steps, inside data/: changes of a record's rotated boxes before anything else sees them,
 * as the input steps of the rotated detector that Pumice follows. Each makes the upright boxes
 * anew. Objects need PM_HAS_ROTATED and the picture's size. */
#ifndef PUMICE_DATA_ROTATED_STEPS_H
#define PUMICE_DATA_ROTATED_STEPS_H

#include <pumice/objects.h>
#include <pumice/rng.h>

/* swap_height_width_of_rboxes: exchanges h and w of each box, in pixels, at the same angle. For
 * data whose angle is that of the other side. */
void pm_rotated_swap_sides(struct pm_objects *o);
/* subtract_angle_of_rboxes: subtracts an angle in radians from that of each box, and wraps it into
 * a quarter turn. For data that count angles from another axis. */
void pm_rotated_subtract_angle(struct pm_objects *o, double angle);
/* cutoff_max_gts: if there are more than `most` objects, keeps the most / 2 with the longest w (in
 * pixels, the first of equal ones), and random ones of the others up to `most`. The boxes of the
 * dropped objects become black in the picture, where no kept box covers them. The order of the kept
 * objects stays. A picture without pixels has a size only. r: used only if objects are dropped.
 * Returns the number of dropped objects. */
size_t pm_rotated_cutoff(struct pm_objects *o, size_t most, struct pm_rng *r,
                         struct pm_image8 *picture);

#endif
