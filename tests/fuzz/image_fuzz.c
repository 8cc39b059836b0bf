/* Decodes pictures of every format. The first byte, modulo 3, chooses the number of channels.
 * From 128 on, JPEG is decoded by stb_image in every build. */
#include "data/picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sum; /* forces the pixels to be read */

static int decode(const uint8_t *data, size_t size, uint8_t choice, struct pm_image8 *out)
{
    static const int channels[] = { 0, 1, 3 };
    const struct pm_picture_file f = { .data = data, .size = size, .max_pixels = 1 << 16,
                                       .where = "fuzz", .kind = "JPEG", .grey = choice % 3 == 1 };
    const char *format = pm_image_format(data, size);

    if (choice >= 128 && format && format[0] == 'j')
        return pm_picture_jpeg_stb(&f, out);
    return pm_image_decode(data, size, channels[choice % 3], 1 << 16, "fuzz", out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pm_image8 im = { 0 };
    int height = 0, width = 0;

    if (size > 0)
        pm_image_measure(data + 1, size - 1, 0, "fuzz", &height, &width);
    if (size == 0 || decode(data + 1, size - 1, data[0], &im) < 0)
        return 0;
    if (im.height < 1 || im.width < 1 || im.channels < 1 || im.channels > 4)
        __builtin_trap();
    for (size_t i = 0; i < (size_t)im.height * (size_t)im.width * (size_t)im.channels; i++)
        sum += im.pixels[i];
    pm_image_free(&im);
    return 0;
}
