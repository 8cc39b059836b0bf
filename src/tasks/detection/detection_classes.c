/* detection_classes: the classes of a run: those of the label map, numbers, or with
 * data.class_agnostic one. */
#include "tasks/detection/detection.h"

/* Names the classes up to the highest number. */
static int name_classes(struct pm_arena *a, struct pm_dataset_info *info)
{
    const struct pm_label_map *map = info->box_labels;
    const char **names;
    int most = 0;

    for (int i = 0; i < map->count; i++)
        most = map->item[i].id > most ? map->item[i].id : most;
    if (most > PM_DETECTION_CLASSES)
        return pm_fail(PM_EDATA, "data.label_map: the highest number of a class is %d, at most %d "
                       "is allowed, because a net has a class for each number: number the classes "
                       "from 1", most, PM_DETECTION_CLASSES);
    names = pm_arena_alloc(a, ((size_t)most + 1) * sizeof *names);
    for (int i = 0; i < most; i++)
        names[i] = NULL;
    for (int i = 0; i < map->count; i++) {
        const struct pm_label_item *item = &map->item[i];

        if (item->id > 0)
            names[item->id - 1] = item->display_name ? item->display_name : item->name;
    }
    info->num_classes = most;
    info->labels = names;
    return PM_OK;
}

/* The map is not needed: no number or name of a record is read. */
static void set_one_class(struct pm_arena *a, struct pm_dataset_info *info)
{
    const char **names = pm_arena_alloc(a, sizeof *names);

    names[0] = "object";
    info->box_labels = NULL;
    info->num_classes = 1;
    info->labels = names;
}

int pm_detection_classes(const struct pm_config *c, struct pm_arena *a,
                         struct pm_dataset_info *info)
{
    struct pm_label_map *map = pm_arena_alloc(a, sizeof *map);
    struct pm_detection_data d;
    int err = PM_OK;

    PM_TRY(pm_config_read(c, "data", pm_detection_data_opts, &d));
    if (d.class_agnostic) {
        set_one_class(a, info);
        goto out;
    }
    if (info->box_labels) /* of a checkpoint: the net keeps the classes that it was trained with */
        return name_classes(a, info);
    info->num_classes = 0;
    info->labels = NULL;
    if (d.label_map)
        PM_TRY(pm_label_map_read(a, d.label_map, map));
    else if (c->data.folder && pm_is_folder(c->data.folder))
        err = pm_label_map_of_folder(a, c->data.folder, map);
    else
        goto out;
    if (err < 0 && c->model.num_classes > 0) {
        PM_WARN("data", "%s; classes are the numbers 1..%d (model.num_classes)", pm_error_text(),
                c->model.num_classes);
        err = PM_OK;
        goto out;
    }
    PM_TRY(err);
    info->box_labels = map;
    PM_TRY(name_classes(a, info));
out:
    return err;
}

const char *pm_detection_name(const struct pm_task *t, int label, char text[16])
{
    if (t->facts.labels && t->facts.labels[label])
        return t->facts.labels[label];
    snprintf(text, 16, "%d", label + 1);
    return text;
}
