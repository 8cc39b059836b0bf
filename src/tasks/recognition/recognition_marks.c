/* recognition_marks: where a net with attention looked for each letter, and the pictures that show
 * it. With a transformer the net looks at a straightened picture, so this one is shown, too. */
#include "tasks/recognition/recognition.h"

#include <cjson/cJSON.h>
#include <string.h>

#include <pumice/draw.h>
#include <pumice/formats.h>

/* ---- straightened pictures ---------------------------------------------------------------- */

void pm_recognition_find_straight(struct pm_task *t, const struct pm_node *head)
{
    t->straight = (struct pm_recognition_straight){ 0 };
    for (int i = 0; i <= head->index; i++) {
        const struct pm_node *n = head->net->nodes[i];

        if (strcmp(n->layer->name, "thin_plate_sampler") == 0)
            t->straight = (struct pm_recognition_straight){
                pm_arena_strdup(t->arena, n->name), n->out_shape.dim[1], n->out_shape.dim[2],
                n->out_shape.dim[3],
            };
    }
}

void pm_recognition_add_straight(const struct pm_task *t, struct pm_net *net,
                                 struct pm_outputs *out)
{
    if (t->straight.node && !net->error)
        pm_outputs_add(net, out, pm_net_find(net, t->straight.node), PM_PLACES_NONE);
}

bool pm_recognition_straight(const struct pm_task *t, const void *const *outputs, size_t i,
                             struct pm_image8 *out)
{
    const struct pm_recognition_straight *s = &t->straight;
    const size_t size = (size_t)s->height * (size_t)s->width * (size_t)s->channels;
    /* A transformer that the config names has an output for its points before this one. A list of
     * layers may have the sampler without it. */
    const int at = pm_recognition_text_outputs(t) + pm_recognition_has_points(t);

    *out = (struct pm_image8){ s->height, s->width, s->channels, NULL };
    if (!s->node)
        return false;
    out->pixels = pm_malloc(size);
    pm_picture_bytes((const float *)outputs[at] + i * size, s->height, s->width, s->channels,
                     out->pixels);
    return true;
}

/* ---- marks -------------------------------------------------------------------------------- */

/* The middle of a column, 0..1 of the picture's width. */
static double place_of(const struct pm_task *t, int column)
{
    return (column + 0.5) / t->steps;
}

void pm_recognition_add_marks(const struct pm_task *t, const int *columns, int count,
                              struct cJSON *object)
{
    cJSON *list = columns ? cJSON_AddArrayToObject(object, "attention") : NULL;

    for (int i = 0; i < count && list; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(place_of(t, columns[i])));
}

/* columns: NULL: no marks. */
static void draw(const struct pm_task *t, const struct pm_image8 *picture, const char *read,
                 const int *columns, int count, struct pm_image8 *out)
{
    double *at = pm_malloc(((size_t)count + 1) * sizeof *at);

    for (int i = 0; i < count && columns; i++)
        at[i] = place_of(t, columns[i]);
    if (columns && count > 0)
        pm_draw_marked_text(picture, read, at, count, out);
    else
        pm_draw_picture(picture, *read ? read : "(nothing)", NULL, 0, out);
    pm_free(at);
}

void pm_recognition_draw(const struct pm_task *t, const struct pm_image8 *picture,
                         const struct pm_recognised *r, const char *text,
                         const void *const *outputs, struct pm_drawings *drawings)
{
    struct pm_image8 straight;
    const bool straightened = pm_recognition_straight(t, outputs, 0, &straight);

    draw(t, picture, text, straightened ? NULL : r->columns, r->text.count,
         pm_drawings_add(drawings, ""));
    if (straightened)
        draw(t, &straight, text, r->columns, r->text.count,
             pm_drawings_add(drawings, "-straight"));
    pm_image_free(&straight);
}
