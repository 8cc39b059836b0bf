/* detection_input_steps: see its header. */
#include "tasks/detection/detection_input_steps.h"

#include "data/rotated_steps.h"

static int need_rotated(const struct pm_objects *o, const char *key, const char *where)
{
    if (o->count == 0 || (o->has & PM_HAS_ROTATED))
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s: data.%s changes rotated boxes, but the record has only upright "
                   "ones: remove the key, or convert the data again, so that records have "
                   "image/object/rbbox", where, key);
}

int pm_detection_input_steps(const struct pm_task *t, struct pm_objects *o, const char *where)
{
    const struct pm_detection_data *data = &t->data;
    int err = PM_OK;

    if (data->swap_sides) {
        PM_TRY(need_rotated(o, "swap_sides", where));
        pm_rotated_swap_sides(o);
    }
    if (data->subtract_angle != 0) {
        PM_TRY(need_rotated(o, "subtract_angle", where));
        pm_rotated_subtract_angle(o, data->subtract_angle);
    }
out:
    return err;
}

int pm_detection_cutoff(const struct pm_sampler *sampler, const struct pm_loader_record *r,
                        struct pm_objects *o, struct pm_image8 *picture)
{
    const int most = sampler->task->data.cutoff_boxes;
    struct pm_rng rng;
    int err = PM_OK;

    if (most == 0 || !sampler->train)
        return PM_OK;
    PM_TRY(need_rotated(o, "cutoff_boxes", r->where));
    rng = pm_rng_make(r->seed, pm_hash("data.cutoff_boxes"), (uint32_t)r->step, r->example);
    pm_rotated_cutoff(o, (size_t)most, &rng, picture);
out:
    return err;
}
