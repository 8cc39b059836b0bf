/* Shared by the tests of picture files. */
#ifndef PUMICE_TESTS_PICTURE_COMMON_H
#define PUMICE_TESTS_PICTURE_COMMON_H

#include "data_common.h"

/* Branches on every pixel, so that valgrind reports pixels that were never set
 * (decode_test_valgrind). */
static inline void read_pixels(const struct pm_image8 *im)
{
    const size_t count = (size_t)im->height * (size_t)im->width * (size_t)im->channels;
    uint64_t sum = 1;

    for (size_t i = 0; i < count; i++)
        sum = sum * 31 + im->pixels[i];
    if (sum == 0)
        print_message("a sum of zero\n");
}

/* Decodes with pm_image_decode, reads the pixels and frees them. Returns the result. */
static inline int decoded(const void *data, size_t size, int channels, const char *where)
{
    struct pm_image8 im;
    const int err = pm_image_decode(data, size, channels, 0, where, &im);

    assert_int_equal(err == PM_OK, im.pixels != NULL);
    if (im.pixels)
        read_pixels(&im);
    pm_image_free(&im);
    return err;
}

#endif
