/* Reads a PNG in memory through libpng. Pictures and label maps share this code, so both refuse the
 * same damage: wrong checksums, missing data, pixel chunks (IDAT) that are not consecutive.
 * Metadata is skipped. */
#ifndef PUMICE_DATA_PNG_FILE_H
#define PUMICE_DATA_PNG_FILE_H

#include <setjmp.h>

#include <png.h>

#include "data/picture.h"

struct pm_png {
    const struct pm_picture_file *file; /* borrowed */
    size_t at;                          /* bytes read so far */
    int height, width, channels, depth; /* of the decoded rows; depth: 8 or 16 bits */
    uint8_t *pixels;                    /* [height] rows; owned */
    uint8_t **rows;                     /* [height]; owned */
    png_structp png;
    png_infop info;
    jmp_buf jump;
};

/* Reads the header, checks the size, calls want, then reads all rows. want sets libpng's
 * transformations that the caller needs. Returns PM_OK, or PM_EDATA for a damaged file. Call
 * pm_png_close in both cases. */
int pm_png_read(struct pm_png *p, const struct pm_picture_file *f,
                void (*want)(png_structp png, png_infop info));
void pm_png_close(struct pm_png *p);

#endif
