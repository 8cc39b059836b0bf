/* label_map_folder: the label map of a data folder, from the first of its files that has one. */
#include <cjson/cJSON.h>
#include <string.h>

#include "data/dataset_info.h"
#include "data/label_reading.h"

/* Numbers the names of labels.txt from 1, or from 0 if the first one is the background. */
static int of_labels(struct pm_arena *a, const char *folder, const struct pm_dataset_info *info,
                     struct pm_label_map *out)
{
    const bool background = info->labels[0] && !strcmp(info->labels[0], "background");
    struct pm_label_reading r = { .arena = a,
                                  .where = pm_arena_printf(a, "%s/labels.txt", folder) };

    for (int i = 0; i < info->num_classes; i++) {
        struct pm_label_raw *item = info->labels[i] ? pm_label_add(&r, (unsigned)i + 1) : NULL;
        if (item)
            *item = (struct pm_label_raw){ .id = i + !background,
                                           .has_id = true,
                                           .name = info->labels[i],
                                           .place = (unsigned)i + 1 };
    }
    const int err = pm_label_settle(&r, out);
    pm_label_reading_free(&r);
    return err;
}

int pm_label_map_of_folder(struct pm_arena *a, const char *folder, struct pm_label_map *out)
{
    struct pm_dataset_info info = { 0 };
    const char *pbtxt = pm_arena_printf(a, "%s/label_map.pbtxt", folder);
    cJSON *json = NULL;
    int err = PM_OK;

    PM_TRY(pm_dataset_info_read(a, folder, &json, &info));
    const cJSON *list = json ? cJSON_GetObjectItemCaseSensitive(json, "box_labels") : NULL;
    if (list)
        PM_TRY(pm_label_map_of_list(a, list, pm_arena_printf(a, "%s/dataset.json", folder), out));
    else if (pm_file_exists(pbtxt))
        PM_TRY(pm_label_map_read(a, pbtxt, out));
    else if (info.num_classes)
        PM_TRY(of_labels(a, folder, &info, out));
    else
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: has no label map: neither box_labels in dataset.json nor "
                       "label_map.pbtxt nor labels.txt: add one of them",
                       folder));
out:
    cJSON_Delete(json);
    return err;
}
