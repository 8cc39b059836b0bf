/* Calls of the rows of augmentation. */
#include "jobs/pipeline/fields.h"

#include <cjson/cJSON.h>
#include <string.h>

/* random_adjust_hue: "random_hue", then "clip", because the API clips after each change. */
PM_PIPELINE_CALL(clipped_step)
{
    char name[64];
    int err = PM_OK;

    (void)object;
    snprintf(name, sizeof name, "random_%s", row->field + strlen("random_adjust_"));
    PM_TRY(pm_pipeline_fields(p, row->of, f, pm_pipeline_step(p, name)));
    pm_pipeline_step(p, "clip");
out:
    return err;
}

/* random_image_scale: any scale between the limits. */
PM_PIPELINE_CALL(scale_step)
{
    cJSON *step = pm_pipeline_step(p, "random_scale");

    (void)object;
    cJSON_AddNumberToObject(step, "scale_step", 0);
    return pm_pipeline_fields(p, row->of, f, step);
}

/* random_rotate_rbox: the original keeps the canvas, except for quarters. */
PM_PIPELINE_CALL(rotate_step)
{
    cJSON *step = pm_pipeline_step(p, "random_rotate");

    (void)object;
    cJSON_AddFalseToObject(step, "grow");
    return pm_pipeline_fields(p, row->of, f, step);
}

/* min_value, max_value of random_rotate_rbox, in radians: min_degrees, max_degrees. */
PM_PIPELINE_CALL(degrees)
{
    cJSON *value = NULL;
    int err = PM_OK;

    PM_TRY(pm_pipeline_value(p, row->type, f, &value));
    cJSON_AddItemToObject(object, row->field[1] == 'i' ? "min_degrees" : "max_degrees",
                          pm_pipeline_number(value->valuedouble / pm_pipeline_degree));
out:
    cJSON_Delete(value);
    return err;
}

PM_PIPELINE_CALL(grey_step)
{
    (void)row, (void)f, (void)object;
    pm_pipeline_set(p, "input.channels", cJSON_CreateNumber(1));
    return PM_OK;
}

/* pad_color_r, _g, _b: the list pad_color. */
PM_PIPELINE_CALL(pad_color)
{
    cJSON *value = NULL, *list = cJSON_GetObjectItemCaseSensitive(object, "pad_color");
    const char channel = row->field[strlen("pad_color_")];
    int err = PM_OK;

    PM_TRY(pm_pipeline_value(p, row->type, f, &value));
    if (!list) {
        list = cJSON_CreateDoubleArray((const double[]){ 0, 0, 0 }, 3);
        cJSON_AddItemToObject(object, "pad_color", list);
    }
    cJSON_ReplaceItemInArray(list, channel == 'r' ? 0 : channel == 'g' ? 1 : 2, value);
out:
    return err;
}
