/* What is known of data sets' classes, for their converters and for what is drawn of them. */
#include <pumice/data.h>

const uint8_t pm_cityscapes_ids[PM_CITYSCAPES_CLASSES] = { 7,  8,  11, 12, 13, 17, 19, 20, 21, 22,
                                                           23, 24, 25, 26, 27, 28, 31, 32, 33 };

void pm_pascal_color(uint32_t label, uint8_t rgb[3])
{
    for (int channel = 0; channel < 3; channel++) {
        uint32_t value = 0;

        for (int k = 0; k < 8; k++)
            value |= (label >> (3 * k + channel) & 1) << (7 - k);
        rgb[channel] = (uint8_t)value;
    }
}
