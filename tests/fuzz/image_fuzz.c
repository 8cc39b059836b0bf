/* JPEG, PNG, GIF, BMP to pixels; the first byte chooses the channels wanted. */
#include <pumice/data.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sum; /* so that the pixels are read */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int channels[] = { 0, 1, 3 };
    struct pm_image8 im = { 0 };

    if (size == 0 ||
        pm_image_decode(data + 1, size - 1, channels[data[0] % 3], 1 << 16, "fuzz", &im) < 0)
        return 0;
    if (im.height < 1 || im.width < 1 || im.channels < 1 || im.channels > 4)
        __builtin_trap();
    for (size_t i = 0; i < (size_t)im.height * (size_t)im.width * (size_t)im.channels; i++)
        sum += im.pixels[i];
    pm_image_free(&im);
    return 0;
}
