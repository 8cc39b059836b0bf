/* Calls of the rows of rotated boxes. */
#include "jobs/pipeline/fields.h"

#include <cjson/cJSON.h>
#include <string.h>

/* swap_height_width_of_rboxes, a message without fields. Its place in the list matters only to
 * cutoff_max_gts, which Pumice applies last. */
PM_PIPELINE_CALL(swap_sides)
{
    (void)row, (void)object;
    if (!p->evaluation && pm_pipeline_get(p, "data.cutoff_boxes"))
        pm_pipeline_note(p, f, true, "stands after cutoff_max_gts, but data.swap_sides comes "
                         "before data.cutoff_boxes");
    pm_pipeline_set(p, "data.swap_sides", cJSON_CreateTrue());
    return PM_OK;
}

/* is_rbbox: model.boxes. */
PM_PIPELINE_CALL(rotated_boxes)
{
    cJSON *rotated = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &rotated));
    if (cJSON_IsTrue(rotated))
        pm_pipeline_set(p, "model.boxes", cJSON_CreateString("rotated"));
    pm_pipeline_settle_rotated(p); /* the field may follow the model */
out:
    cJSON_Delete(rotated);
    return err;
}

static void put(cJSON *object, const char *name, cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    cJSON_AddItemToObject(object, name, value);
}

/* grid_rbbox_anchor_generator: grid anchors with angles. Its defaults are 84 anchors a cell. */
PM_PIPELINE_CALL(rotated_grid)
{
    static const double scales[] = { 0.25, 0.5, 0.75, 1 }, ratios[] = { 3, 5, 7 };
    cJSON *angles = cJSON_CreateArray();

    for (int degrees = -90; degrees <= 90; degrees += 30)
        cJSON_AddItemToArray(angles, pm_pipeline_number(degrees * pm_pipeline_degree));
    put(object, "type", cJSON_CreateString("grid"));
    put(object, "scales", cJSON_CreateDoubleArray(scales, PM_COUNT(scales)));
    put(object, "aspect_ratios", cJSON_CreateDoubleArray(ratios, PM_COUNT(ratios)));
    put(object, "angles", angles);
    for (const struct pm_proto_text *i = f->first; i; i = i->next) /* replaces a default */
        cJSON_DeleteItemFromObjectCaseSensitive(object, i->name);
    return pm_pipeline_fields(p, row->of, f, object);
}

/* angles of grid_rbbox_anchor_generator, degrees: member angles, radians. */
PM_PIPELINE_CALL(angles)
{
    cJSON *value = NULL, *list = cJSON_GetObjectItemCaseSensitive(object, "angles");
    int err = PM_OK;

    (void)row;
    PM_TRY(pm_pipeline_value(p, PM_PIPELINE_NUMBER, f, &value));
    if (!list)
        list = cJSON_AddArrayToObject(object, "angles");
    cJSON_AddItemToArray(list, pm_pipeline_number(value->valuedouble * pm_pipeline_degree));
out:
    cJSON_Delete(value);
    return err;
}

/* box_code_size of a predictor. Pumice's follows from model.boxes. */
PM_PIPELINE_CALL(code_size)
{
    cJSON *size = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &size));
    if (size->valuedouble == 5)
        pm_pipeline_set(p, "model.boxes", cJSON_CreateString("rotated"));
    else if (size->valuedouble != 4)
        pm_pipeline_note(p, f, true, "boxes have codes of 4 numbers, rotated ones of 5");
out:
    cJSON_Delete(size);
    return err;
}
