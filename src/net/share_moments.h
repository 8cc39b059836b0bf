/* share_moments: connects calls that can take the moments of an image (kernel.h) with the calls
 * that write the image and can compute them. A convolution then computes the sums of the batch norm
 * that follows it, which need not read the convolution's output for them. */
#ifndef PM_SHARE_MOMENTS_H
#define PM_SHARE_MOMENTS_H

#include "net/calls.h"

/* Connects all calls of the list that fit. Call it before scratch is added. */
void pm_share_moments(struct pm_calls *c);
/* Disconnects calls whose moments no call reads, such as forward calls that run again. */
void pm_drop_moments(struct pm_calls *c);

/* Gives call `index` a new value for the moments that it computes, and returns it. No value: the
 * call cannot compute moments, or does not write all of its image. */
struct pm_tensor pm_give_moments(struct pm_calls *c, int index);
/* Makes call `index` take the moments instead of its image. False: it cannot. */
bool pm_take_moments(struct pm_calls *c, int index, struct pm_tensor moments);

#endif
