/* segmentation_present: a prediction at its picture's own size: shares of pixels by class, the
 * classes in colours, the same blended over the picture with a legend, and the class numbers. */
#include "tasks/class_detail.h"
#include "tasks/colormap.h"
#include "tasks/segmentation/instance_group.h"
#include "tasks/segmentation/segmentation.h"

#include <cjson/cJSON.h>

/* ---- predictions ------------------------------------------------------------------------- */

static void add_shares(const struct pm_task *s, const int32_t *classes, size_t pixels,
                       cJSON *object)
{
    uint64_t *count = pm_calloc((size_t)s->facts.num_classes, sizeof *count);
    cJSON *list = cJSON_AddArrayToObject(object, "classes");

    for (size_t i = 0; i < pixels; i++)
        count[classes[i]]++;
    for (int c = 0; c < s->facts.num_classes; c++) {
        cJSON *row;

        if (count[c] == 0)
            continue;
        row = cJSON_CreateObject();
        cJSON_AddNumberToObject(row, "label", c);
        if (s->facts.labels && s->facts.labels[c])
            cJSON_AddStringToObject(row, "name", s->facts.labels[c]);
        cJSON_AddNumberToObject(row, "share", (double)count[c] / (double)pixels);
        cJSON_AddItemToArray(list, row);
    }
    pm_free(count);
}

/* Blends both in equal parts. Pixels of a black class keep the picture: most colormaps draw the
 * background black, which would darken the picture. */
static void overlay(const struct pm_image8 *picture, const struct pm_image8 *colors,
                    struct pm_image8 *out)
{
    const size_t bytes = 3 * (size_t)picture->height * (size_t)picture->width;

    *out = (struct pm_image8){ picture->height, picture->width, 3, pm_malloc(bytes) };
    for (size_t i = 0; i < bytes; i += 3) {
        const uint8_t *from = picture->pixels + i, *color = colors->pixels + i;
        const bool black = !color[0] && !color[1] && !color[2];

        for (size_t k = 0; k < 3; k++)
            out->pixels[i + k] = black ? from[k] : (uint8_t)((from[k] + color[k] + 1) / 2);
    }
}

/* Adds the legend of the classes that occur. */
static void add_legend(const struct pm_task *s, const int32_t *classes, size_t pixels,
                       struct pm_image8 *im)
{
    const int all = s->facts.num_classes;
    struct pm_legend_entry *list = pm_calloc((size_t)all + 1, sizeof *list);
    char (*numbers)[16] = pm_calloc((size_t)all + 1, sizeof *numbers);
    bool *seen = pm_calloc((size_t)all + 1, sizeof *seen);
    const struct pm_image8 plain = *im;
    int n = 0;

    for (size_t i = 0; i < pixels; i++)
        seen[classes[i]] = true;
    for (int c = 0; c < all; c++) {
        if (!seen[c])
            continue;
        snprintf(numbers[c], sizeof numbers[c], "%d", c);
        list[n].label = s->facts.labels && s->facts.labels[c] ? s->facts.labels[c] : numbers[c];
        list[n++].color = pm_colormap_color((enum pm_colormap)s->pixels.colormap, c);
    }
    pm_draw_legend(&plain, list, n, im);
    pm_free(plain.pixels);
    pm_free(seen);
    pm_free(numbers);
    pm_free(list);
}

static void raw(const struct pm_task *s, const int32_t *classes, int height, int width,
                struct pm_image8 *out)
{
    const size_t count = (size_t)height * (size_t)width;

    *out = (struct pm_image8){ height, width, 1, pm_malloc(count) };
    for (size_t i = 0; i < count; i++)
        out->pixels[i] =
            (uint8_t)pm_colormap_raw((enum pm_colormap)s->pixels.colormap, classes[i]);
}

/* Draws the classes in colours, the same blended over the picture, and the class numbers. */
static void draw_classes(const struct pm_task *s, const int32_t *classes,
                         const struct pm_image8 *picture, struct pm_drawings *drawings)
{
    const int height = picture->height, width = picture->width;
    const size_t first = drawings->count;
    struct pm_image8 *blend;

    pm_segmentation_paint(s, classes, height, width, pm_drawings_add(drawings, "_prediction"));
    blend = pm_drawings_add(drawings, "_overlay"); /* may move the first */
    overlay(picture, &drawings->list[first].image, blend);
    add_legend(s, classes, (size_t)height * (size_t)width, blend);
    if (s->pixels.save_raw)
        raw(s, classes, height, width, pm_drawings_add(drawings, "_raw"));
}

static void present_instances(const struct pm_task *s, struct pm_frame frame,
                              const void *const *outputs, const struct pm_framing *place,
                              const struct pm_image8 *picture, struct cJSON *object,
                              struct pm_drawings *drawings)
{
    struct pm_segment_map said;

    pm_segmentation_panoptic(s, frame, outputs, 0, place->height, place->width, &said);
    pm_segmentation_panoptic_present(s, &said, picture->height, picture->width, object, drawings);
    pm_segment_map_free(&said);
}

int pm_segmentation_present(const struct pm_task *s, struct pm_frame frame,
                            const void *const *outputs, const struct pm_image8 *picture,
                            struct cJSON *object, struct pm_drawings *drawings)
{
    const int height = picture->height, width = picture->width;
    const size_t pixels = (size_t)height * (size_t)width;
    int32_t *classes = pm_malloc(pixels * sizeof *classes);
    struct pm_framing place = { 0 };
    int err = PM_OK;

    PM_TRY(pm_segmentation_place(s, frame, height, width, "prediction", &place));
    pm_segmentation_resize(&(struct pm_class_map){ place.height, place.width, frame.width,
                                                   outputs[0] }, height, width, classes);
    cJSON_AddItemToObject(object, "size", cJSON_CreateIntArray((const int[]){ height, width }, 2));
    add_shares(s, classes, pixels, object);
    if (drawings)
        draw_classes(s, classes, picture, drawings);
    if (drawings && s->pixels.edge_classes) {
        const int32_t *edges = outputs[pm_segmentation_edge_output(s)];

        pm_segmentation_edge_paint(
            s, &(struct pm_class_map){ place.height, place.width, frame.width, edges },
            height, width, pm_drawings_add(drawings, "_edges"));
    }
    if (s->pixels.instance.on)
        present_instances(s, frame, outputs, &place, picture, object, drawings);
out:
    pm_free(classes);
    return err;
}

/* ---- in text ----------------------------------------------------------------------------- */

/* Counts the instances of the row's class. */
static int count_instances(const struct cJSON *object, const struct cJSON *row)
{
    const double label = cJSON_GetNumberValue(cJSON_GetObjectItem(row, "label"));
    const cJSON *segment;
    int count = 0;

    cJSON_ArrayForEach(segment, cJSON_GetObjectItem(object, "segments"))
        count += cJSON_IsTrue(cJSON_GetObjectItem(segment, "thing")) &&
                 cJSON_GetNumberValue(cJSON_GetObjectItem(segment, "label")) == label;
    return count;
}

void pm_segmentation_print(const struct cJSON *object, struct pm_str *out)
{
    const cJSON *row;

    cJSON_ArrayForEach(row, cJSON_GetObjectItem(object, "classes"))
    {
        const int count = count_instances(object, row);

        pm_class_detail_print(row, "share", out);
        if (count > 0)
            pm_str_add(out, " (%d)", count);
    }
}
