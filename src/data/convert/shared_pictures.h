/* shared_pictures, internal to data/convert: the last pictures that were decoded, for converters
 * that cut one picture into many records. Any thread may use it; there is room for one picture for
 * each, which is what the threads need anyway. */
#ifndef PUMICE_DATA_CONVERT_SHARED_PICTURES_H
#define PUMICE_DATA_CONVERT_SHARED_PICTURES_H

#include "data/convert/convert.h"

struct pm_shared_pictures;
struct pm_shared_pictures *pm_shared_pictures_create(void);
/* Makes a part of a whole picture. pm_picture_free frees out, also after an error. */
typedef int pm_picture_part(const struct pm_picture *whole, const void *ctx,
                            struct pm_picture *out);
/* Reads a picture as pm_picture_read does, unless it is kept, and calls cut with it and ctx. */
int pm_shared_pictures_part(struct pm_shared_pictures *s, const char *path, pm_picture_part *cut,
                            const void *ctx, struct pm_picture *out);
/* Reads the part y, x, height, width of a picture as pm_picture_read and pm_picture_crop do. */
int pm_shared_pictures_crop(struct pm_shared_pictures *s, const char *path, const int window[4],
                            struct pm_picture *out);
void pm_shared_pictures_destroy(struct pm_shared_pictures **s);

#endif
