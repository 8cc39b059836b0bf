/* Class names and colours of well-known data sets, for their converters and for drawings. */
#include <pumice/data.h>

#include <strings.h>

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

/* Colours from label_colors.txt, which comes with the data. The eleven classes and their names are
 * SegNet's. */
const struct pm_known_class pm_camvid_classes[PM_CAMVID_CLASSES] = {
    { "Sky", { 128, 128, 128 } },        { "Building", { 128, 0, 0 } },
    { "Pole", { 192, 192, 128 } },       { "Road", { 128, 64, 128 } },
    { "Pavement", { 0, 0, 192 } },       { "Tree", { 128, 128, 0 } },
    { "SignSymbol", { 192, 128, 128 } }, { "Fence", { 64, 64, 128 } },
    { "Car", { 64, 0, 128 } },           { "Pedestrian", { 64, 64, 0 } },
    { "Bicyclist", { 0, 128, 192 } },
};

const struct pm_known_class pm_camvid_all[PM_CAMVID_ALL] = {
    { "Animal", { 64, 128, 64 } },         { "Archway", { 192, 0, 128 } },
    { "Bicyclist", { 0, 128, 192 } },      { "Bridge", { 0, 128, 64 } },
    { "Building", { 128, 0, 0 } },         { "Car", { 64, 0, 128 } },
    { "CartLuggagePram", { 64, 0, 192 } }, { "Child", { 192, 128, 64 } },
    { "Column_Pole", { 192, 192, 128 } },  { "Fence", { 64, 64, 128 } },
    { "LaneMkgsDriv", { 128, 0, 192 } },   { "LaneMkgsNonDriv", { 192, 0, 64 } },
    { "Misc_Text", { 128, 128, 64 } },     { "MotorcycleScooter", { 192, 0, 192 } },
    { "OtherMoving", { 128, 64, 64 } },    { "ParkingBlock", { 64, 192, 128 } },
    { "Pedestrian", { 64, 64, 0 } },       { "Road", { 128, 64, 128 } },
    { "RoadShoulder", { 128, 128, 192 } }, { "Sidewalk", { 0, 0, 192 } },
    { "SignSymbol", { 192, 128, 128 } },   { "Sky", { 128, 128, 128 } },
    { "SUVPickupTruck", { 64, 128, 192 } }, { "TrafficCone", { 0, 0, 64 } },
    { "TrafficLight", { 0, 64, 64 } },     { "Train", { 192, 64, 128 } },
    { "Tree", { 128, 128, 0 } },           { "Truck_Bus", { 192, 128, 192 } },
    { "Tunnel", { 64, 0, 64 } },           { "VegetationMisc", { 192, 192, 0 } },
    { "Void", { 0, 0, 0 } },               { "Wall", { 64, 192, 0 } },
};

/* Void is not evaluated and has no number, so the classes after it move up by one. */
int pm_camvid_full_class(int label)
{
    return label < PM_CAMVID_VOID ? label : label + 1;
}

const char *pm_known_colormap(const char *const *names, int count)
{
    const bool full = count == PM_CAMVID_ALL - 1;

    if (!names || (count != PM_CAMVID_CLASSES && !full))
        return NULL;
    for (int i = 0; i < count; i++) {
        const char *name =
            full ? pm_camvid_all[pm_camvid_full_class(i)].name : pm_camvid_classes[i].name;

        if (!names[i] || strcasecmp(names[i], name) != 0)
            return NULL;
    }
    return full ? "camvid_full" : "camvid";
}
