/* shared_pictures, internal to data/convert: the last pictures that were decoded, for converters
 * that cut one picture into many records. Any thread may use it; there is room for one picture for
 * each, which is what the threads need anyway. */
#ifndef PUMICE_DATA_CONVERT_SHARED_PICTURES_H
#define PUMICE_DATA_CONVERT_SHARED_PICTURES_H

#include "data/convert/convert.h"

struct pm_shared_pictures;
struct pm_shared_pictures *pm_shared_pictures_create(void);
/* Reads the part y, x, height, width of a picture as pm_picture_read and pm_picture_crop do. */
int pm_shared_pictures_crop(struct pm_shared_pictures *s, const char *path, const int window[4],
                            struct pm_picture *out);
void pm_shared_pictures_destroy(struct pm_shared_pictures **s);

#endif
