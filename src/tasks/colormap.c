/* colormap: the palettes, one row each: DeepLab's, and CamVid's own. */
#include "tasks/colormap.h"

#include <pumice/data.h>

#include <string.h>

static const uint32_t cityscapes[PM_CITYSCAPES_CLASSES] = {
    0x804080, 0xf423e8, 0x464646, 0x66669c, 0xbe9999, 0x999999, 0xfaaa1e,
    0xdcdc00, 0x6b8e23, 0x98fb98, 0x4682b4, 0xdc143c, 0xff0000, 0x00008e,
    0x000046, 0x003c64, 0x005064, 0x0000e6, 0x770b20,
};
static const uint32_t ade20k[] = {
    0x000000, 0x787878, 0xb47878, 0x06e6e6, 0x503232, 0x04c803, 0x787850, 0x8c8c8c, 0xcc05ff,
    0xe6e6e6, 0x04fa07, 0xe005ff, 0xebff07, 0x96053d, 0x787846, 0x08ff33, 0xff0652, 0x8fff8c,
    0xccff04, 0xff3307, 0xcc4603, 0x0066c8, 0x3de6fa, 0xff0633, 0x0b66ff, 0xff0747, 0xff09e0,
    0x0907e6, 0xdcdcdc, 0xff095c, 0x7009ff, 0x08ffd6, 0x07ffe0, 0xffb806, 0x0aff47, 0xff290a,
    0x07ffff, 0xe0ff08, 0x6608ff, 0xff3d06, 0xffc207, 0xff7a08, 0x00ff14, 0xff0829, 0xff0599,
    0x0633ff, 0xeb0cff, 0xa09614, 0x00a3ff, 0x8c8c8c, 0xfa0a0f, 0x14ff00, 0x1fff00, 0xff1f00,
    0xffe000, 0x99ff00, 0x0000ff, 0xff4700, 0x00ebff, 0x00adff, 0x1f00ff, 0x0bc8c8, 0xff5200,
    0x00fff5, 0x003dff, 0x00ff70, 0x00ff85, 0xff0000, 0xffa300, 0xff6600, 0xc2ff00, 0x008fff,
    0x33ff00, 0x0052ff, 0x00ff29, 0x00ffad, 0x0a00ff, 0xadff00, 0x00ff99, 0xff5c00, 0xff00ff,
    0xff00f5, 0xff0066, 0xffad00, 0xff0014, 0xffb8b8, 0x001fff, 0x00ff3d, 0x0047ff, 0xff00cc,
    0x00ffc2, 0x00ff52, 0x000aff, 0x0070ff, 0x3300ff, 0x00c2ff, 0x007aff, 0x00ffa3, 0xff9900,
    0x00ff0a, 0xff7000, 0x8fff00, 0x5200ff, 0xa3ff00, 0xffeb00, 0x08b8aa, 0x8500ff, 0x00ff5c,
    0xb800ff, 0xff001f, 0x00b8ff, 0x00d6ff, 0xff0070, 0x5cff00, 0x00e0ff, 0x70e0ff, 0x46b8a0,
    0xa300ff, 0x9900ff, 0x47ff00, 0xff00a3, 0xffcc00, 0xff008f, 0x00ffeb, 0x85ff00, 0xff00eb,
    0xf500ff, 0xff007a, 0xfff500, 0x0abed4, 0xd6ff00, 0x00ccff, 0x1400ff, 0xffff00, 0x0099ff,
    0x0029ff, 0x00ffcc, 0x2900ff, 0x29ff00, 0xad00ff, 0x00f5ff, 0x4700ff, 0x7a00ff, 0x00ffb8,
    0x005cff, 0xb8ff00, 0x0085ff, 0xffd600, 0x19c2c2, 0x66ff00, 0x5c00ff,
};

/* ---- the table --------------------------------------------------------------------------- */

static struct pm_color color_of(uint32_t rgb)
{
    return (struct pm_color){ (uint8_t)(rgb >> 16), (uint8_t)(rgb >> 8), (uint8_t)rgb };
}

static struct pm_color pascal_color(size_t label)
{
    uint8_t rgb[3];

    pm_pascal_color((uint32_t)label, rgb);
    return (struct pm_color){ rgb[0], rgb[1], rgb[2] };
}

static struct pm_color cityscapes_color(size_t label)
{
    return color_of(label < PM_COUNT(cityscapes) ? cityscapes[label] : 0);
}

static struct pm_color ade20k_color(size_t label)
{
    return color_of(label < PM_COUNT(ade20k) ? ade20k[label] : 0);
}

static struct pm_color known_color(const struct pm_known_class *k)
{
    return (struct pm_color){ k->rgb[0], k->rgb[1], k->rgb[2] };
}

static struct pm_color camvid_color(size_t label)
{
    return label < PM_CAMVID_CLASSES ? known_color(&pm_camvid_classes[label]) : color_of(0);
}

static struct pm_color camvid_full_color(size_t label)
{
    return label < PM_CAMVID_ALL - 1 ? known_color(&pm_camvid_all[pm_camvid_full_class((int)label)])
                                     : color_of(0);
}

/* Classes beyond a palette of fewer than 256 are black, like the void of these data sets. */
static const struct palette {
    const char *name; /* of eval.colormap and dataset.json */
    int entries;
    struct pm_color (*color)(size_t label);
} palettes[] = {
    [PM_COLORMAP_PASCAL] = { "pascal", 512, pascal_color },
    [PM_COLORMAP_CITYSCAPES] = { "cityscapes", 256, cityscapes_color },
    [PM_COLORMAP_ADE20K] = { "ade20k", PM_COUNT(ade20k), ade20k_color },
    [PM_COLORMAP_CAMVID] = { "camvid", 256, camvid_color },
    [PM_COLORMAP_CAMVID_FULL] = { "camvid_full", 256, camvid_full_color },
};

static const struct palette *palette_of(enum pm_colormap map)
{
    return &palettes[map == PM_COLORMAP_AUTO ? PM_COLORMAP_PASCAL : map];
}

enum pm_colormap pm_colormap_find(const char *name)
{
    for (size_t i = PM_COLORMAP_PASCAL; name && i < PM_COUNT(palettes); i++)
        if (strcmp(palettes[i].name, name) == 0)
            return (enum pm_colormap)i;
    return PM_COLORMAP_AUTO;
}

int pm_colormap_entries(enum pm_colormap map)
{
    return palette_of(map)->entries;
}

struct pm_color pm_colormap_color(enum pm_colormap map, int label)
{
    return palette_of(map)->color((size_t)label);
}

int pm_colormap_raw(enum pm_colormap map, int label)
{
    return map == PM_COLORMAP_CITYSCAPES && label < PM_CITYSCAPES_CLASSES
               ? pm_cityscapes_ids[label]
               : label;
}
