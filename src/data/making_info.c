/* making_info: what a data folder says about its records: labels.txt, label_map.pbtxt and
 * dataset.json. */
#include <cjson/cJSON.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "data/making_private.h"

/* ---- what is set --------------------------------------------------------------------------- */

int pm_making_check_name(enum pm_error err, const char *what, const char *name)
{
    if (pm_is_line(name))
        return PM_OK;
    return pm_fail(err,
                   "%s is named \"%.200s\": a name must be one line without control characters, "
                   "because labels.txt has one name per line: rename it",
                   what, name);
}

static int copy_names(struct pm_making *m, const char *const *labels, int count, const char ***out)
{
    int err = PM_OK;
    char what[32];

    *out = pm_arena_alloc(m->arena, (size_t)count * sizeof **out);
    for (int i = 0; i < count; i++) {
        snprintf(what, sizeof what, "class %d", i);
        PM_TRY(pm_making_check_name(PM_EDATA, what, labels[i]));
        (*out)[i] = pm_arena_strdup(m->arena, labels[i]);
    }
out:
    return err;
}

int pm_making_labels(struct pm_making *m, const char *const *labels, int count)
{
    m->num_classes = m->map_classes = count;
    return copy_names(m, labels, count, &m->labels);
}

int pm_making_map_labels(struct pm_making *m, const char *const *labels, int count)
{
    m->map_classes = count;
    return copy_names(m, labels, count, &m->map_labels);
}

void pm_making_size(struct pm_making *m, int height, int width, int channels)
{
    m->height = height;
    m->width = width;
    m->channels = channels;
}

void pm_making_segmentation(struct pm_making *m, int ignore_label, const char *colormap)
{
    m->segmentation = true;
    m->ignore_label = ignore_label;
    m->colormap = colormap ? pm_arena_strdup(m->arena, colormap) : NULL;
}

void pm_making_things(struct pm_making *m, const int *classes, int count)
{
    m->things = pm_arena_alloc(m->arena, (size_t)count * sizeof *m->things);
    m->things_count = count;
    memcpy(m->things, classes, (size_t)count * sizeof *m->things);
}

void pm_making_mirrored_points(struct pm_making *m, const int *mirrored, int count)
{
    m->mirrored = pm_arena_copy(m->arena, mirrored, (size_t)count * sizeof *mirrored);
    m->mirrored_count = count;
}

void pm_making_box_labels(struct pm_making *m, const struct pm_label_map *map)
{
    pm_label_map_copy(m->arena, map, &m->boxes);
}

void pm_making_pixels(struct pm_making *m, const uint64_t *pixels, int count)
{
    struct pm_making_split *s = &m->split[m->splits - 1];

    assert(m->splits > 0 && count == m->map_classes);
    s->pixels = pm_arena_alloc(m->arena, (size_t)count * sizeof *pixels);
    memcpy(s->pixels, pixels, (size_t)count * sizeof *pixels);
}

/* ---- files ---------------------------------------------------------------------------------- */

static int write_labels(const struct pm_making *m)
{
    struct pm_str text = { 0 };

    for (int i = 0; i < m->num_classes; i++)
        pm_str_add(&text, "%d:%s\n", i, m->labels[i]);
    const int err = pm_file_write(pm_arena_printf(m->arena, "%s/labels.txt", m->temporary),
                                  text.text, text.length);
    pm_str_free(&text);
    return err;
}

/* Writes label_map.pbtxt, which TensorFlow's tools read. */
static int write_label_map(const struct pm_making *m)
{
    struct pm_str text = { 0 };

    pm_label_map_print(&m->boxes, &text);
    const int err = pm_file_write(pm_arena_printf(m->arena, "%s/label_map.pbtxt", m->temporary),
                                  text.text, text.length);
    pm_str_free(&text);
    return err;
}

/* Returns the records per class for each split, in label order. */
static struct cJSON *class_counts(const struct pm_making *m)
{
    struct cJSON *all = cJSON_CreateObject();

    for (int i = 0; i < m->splits; i++) {
        struct cJSON *list = cJSON_AddArrayToObject(all, m->split[i].name);
        for (int k = 0; m->split[i].labels && k < m->num_classes; k++)
            cJSON_AddItemToArray(list, cJSON_CreateNumber((double)m->split[i].labels[k]));
    }
    return all;
}

/* Returns the pixels per class for each split. */
static struct cJSON *class_pixels(const struct pm_making *m)
{
    struct cJSON *all = cJSON_CreateObject();

    for (int i = 0; i < m->splits; i++) {
        const struct pm_making_split *s = &m->split[i];
        struct cJSON *list = s->pixels ? cJSON_AddArrayToObject(all, s->name) : NULL;
        for (int k = 0; list && k < m->map_classes; k++)
            cJSON_AddItemToArray(list, cJSON_CreateNumber((double)s->pixels[k]));
    }
    return all;
}

static int write_json(const struct pm_making *m)
{
    struct cJSON *o = cJSON_CreateObject(), *splits = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", m->name);
    if (m->digest)
        cJSON_AddStringToObject(o, "digest", m->digest);
    for (int i = 0; i < m->splits; i++)
        cJSON_AddNumberToObject(splits, m->split[i].name, (double)m->split[i].count);
    cJSON_AddItemToObject(o, "splits", splits);
    if (m->split[0].labels)
        cJSON_AddItemToObject(o, "class_counts", class_counts(m));
    if (m->map_labels)
        cJSON_AddItemToObject(o, "map_labels",
                              cJSON_CreateStringArray(m->map_labels, m->map_classes));
    if (m->things_count)
        cJSON_AddItemToObject(o, "thing_classes", cJSON_CreateIntArray(m->things, m->things_count));
    if (m->mirrored_count)
        cJSON_AddItemToObject(o, "mirrored_keypoints",
                              cJSON_CreateIntArray(m->mirrored, m->mirrored_count));
    if (m->split[0].pixels)
        cJSON_AddItemToObject(o, "class_pixels", class_pixels(m));
    if (m->segmentation)
        cJSON_AddNumberToObject(o, "ignore_label", m->ignore_label);
    if (m->colormap)
        cJSON_AddStringToObject(o, "colormap", m->colormap);
    if (m->num_classes)
        cJSON_AddNumberToObject(o, "num_classes", m->num_classes);
    if (m->boxes.count)
        cJSON_AddItemToObject(o, "box_labels", pm_label_map_json(&m->boxes));
    if (m->height) {
        cJSON_AddNumberToObject(o, "height", m->height);
        cJSON_AddNumberToObject(o, "width", m->width);
        cJSON_AddNumberToObject(o, "channels", m->channels);
    }
    char *json = pm_json_print(o);
    const char *text = pm_arena_printf(m->arena, "%s\n", json);
    const int err = pm_file_write(pm_arena_printf(m->arena, "%s/dataset.json", m->temporary), text,
                                  strlen(text));
    pm_free(json);
    cJSON_Delete(o);
    return err;
}

int pm_making_write_info(const struct pm_making *m)
{
    int err = PM_OK;

    if (m->num_classes)
        PM_TRY(write_labels(m));
    if (m->boxes.count)
        PM_TRY(write_label_map(m));
    PM_TRY(write_json(m));
out:
    return err;
}
