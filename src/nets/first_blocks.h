/* first_blocks: the first layers of the classifiers that detectors are built on. Their weights,
 * learnt from many pictures, find edges and simple textures, which all photos have. With few photos
 * they are better not trained. */
#ifndef PM_FIRST_BLOCKS_H
#define PM_FIRST_BLOCKS_H

#include <pumice/net.h>

/* Returns a regular expression, matched at the start of names, of the variables of a detector's
 * stem and first block: the classifier's layers before its second block. NULL if the net is not a
 * detector on a classifier that this file knows. The text is in the arena. */
const char *pm_net_first_blocks(const struct pm_net *net, struct pm_arena *a);

#endif
