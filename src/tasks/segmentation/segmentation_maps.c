/* segmentation_maps: resizes and colours maps of classes, and places pictures in the input for
 * evaluation. */
#include "tasks/colormap.h"
#include "tasks/record.h"
#include "tasks/segmentation/segmentation.h"

void pm_segmentation_resize(const struct pm_class_map *m, int height, int width, int32_t *out)
{
    int *column = pm_malloc((size_t)width * sizeof *column);

    for (int x = 0; x < width; x++)
        column[x] = pm_aligned_nearest(x, m->width, width);
    for (int y = 0; y < height; y++) {
        const size_t from = (size_t)pm_aligned_nearest(y, m->height, height);
        const int32_t *row = m->classes + from * (size_t)m->stride;

        for (int x = 0; x < width; x++)
            *out++ = row[column[x]];
    }
    pm_free(column);
}

void pm_segmentation_paint(const struct pm_task *s, const int32_t *classes, int height, int width,
                           struct pm_image8 *im)
{
    const enum pm_colormap map = (enum pm_colormap)s->pixels.colormap;
    const size_t count = (size_t)height * (size_t)width;

    *im = (struct pm_image8){ height, width, 3, pm_malloc(3 * count) };
    for (size_t i = 0; i < count; i++) {
        const struct pm_color c = pm_colormap_color(map, classes[i]);

        im->pixels[3 * i] = c.r, im->pixels[3 * i + 1] = c.g, im->pixels[3 * i + 2] = c.b;
    }
}

int pm_segmentation_place(const struct pm_task *s, struct pm_frame frame, int height, int width,
                          const char *where, struct pm_framing *out)
{
    return pm_preprocessing_frame(s->facts.preprocessing, s->facts.preprocessing_cfg, height, width,
                                  frame.height, frame.width, s->facts.own_sizes, where, out);
}

int pm_segmentation_stride(int input, int map)
{
    int stride = 1;

    while (stride < input && (input + stride - 1) / stride > map)
        stride *= 2;
    if ((input + stride - 1) / stride == map)
        return stride;
    for (stride = 1; (input + stride - 1) / stride > map; stride++)
        ;
    return stride;
}

static int rounded_up(int side, int stride)
{
    return (side - 1 + stride - 1) / stride * stride + 1;
}

int pm_segmentation_frame(const struct pm_task *s, const struct pm_occasion *o, int height,
                          int width, struct pm_frame *out)
{
    const struct pm_task_facts *f = &s->facts;
    const int stride = s->pixels.output_stride;
    int err = PM_OK;

    if (o->train)
        return pm_record_need(f, o, height, width, out);
    *out = (struct pm_frame){ f->eval_height, f->eval_width };
    if (!f->own_sizes)
        return PM_OK;
    PM_TRY(pm_preprocessing_own_size(f->preprocessing, f->preprocessing_cfg, height, width,
                                     o->where, out));
    *out = (struct pm_frame){ rounded_up(out->height, stride), rounded_up(out->width, stride) };
out:
    return err;
}
