/* The list of named nets. A net is a file with a builder and a row, plus a line in nets.def. */
#include "nets/nets.h"

#include <cjson/cJSON.h>
#include <string.h>

#define PM_NET(name) extern const struct pm_net_row pm_net_row_##name;
#include "nets/nets.def"
#undef PM_NET

static const struct pm_net_row *const rows[] = {
#define PM_NET(name) &pm_net_row_##name,
#include "nets/nets.def"
#undef PM_NET
};

const struct pm_net_row *pm_net_row_find(const char *name)
{
    for (size_t i = 0; i < PM_COUNT(rows); i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    return NULL;
}

const struct pm_net_row *pm_net_row_variant(const struct pm_net_row *row,
                                            const struct cJSON *options)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(options, "conventions");

    return row->torch && cJSON_IsString(v) && strcmp(v->valuestring, "torch") == 0 ? row->torch
                                                                                   : row;
}

const struct pm_net_row *const *pm_net_rows(size_t *count)
{
    *count = PM_COUNT(rows);
    return rows;
}

const char *pm_net_preprocessing(const char *net)
{
    const struct pm_net_row *row = pm_net_row_find(net);

    return !row ? NULL : row->slim_preprocessing ? row->slim_preprocessing : row->preprocessing;
}

const char *pm_net_refusal(const char *name)
{
    if (strcmp(name, "text_resnet100") == 0)
        return "has no known layout: the original program only names it. Choose text_resnet50";
    if (strcmp(name, "i3d") != 0 && strcmp(name, "s3dg") != 0)
        return NULL;
    return "is a net for videos, whose input has five axes (batch, frames, height, width, "
           "channels): videos are not supported, choose a net for single pictures";
}

bool pm_nets_fits(struct pm_net *net, const char *row, const struct pm_node *images, int min)
{
    const int *dim = images->out_shape.dim;

    if (net->error)
        return false;
    if (dim[1] >= min && dim[2] >= min)
        return true;
    net->error = pm_fail(PM_ECONFIG, "model %s: images of %dx%d are too small, at least %dx%d are "
                         "needed: set a larger input size", row, dim[1], dim[2], min, min);
    return false;
}

bool pm_nets_fits_text(struct pm_net *net, const char *row, const struct pm_node *images)
{
    if (net->error)
        return false;
    if (images->out_shape.dim[1] == 32)
        return true;
    net->error = pm_fail(PM_ECONFIG, "model %s: pictures have %d rows, but it reads pictures of "
                         "32: set input.size to [32, WIDTH]; with model.transformer, set its "
                         "output_h to 32", row, images->out_shape.dim[1]);
    return false;
}

int pm_nets_divisible(double width, int divisor, int min)
{
    int n = (int)(width + divisor / 2.0) / divisor * divisor;

    if (n < min)
        n = min;
    return n < 0.9 * width ? n + divisor : n;
}

int pm_nets_depth(const struct pm_nets_options *o, int width)
{
    return pm_nets_divisible(width * o->depth_multiplier, o->divisible_by, o->min_depth);
}

int pm_nets_last_depth(const struct pm_nets_options *o, int width)
{
    return o->depth_multiplier < 1 && !o->scale_last ? width : pm_nets_depth(o, width);
}
