/* host_copy: host_copy.h has the contract. */
#include "clones/host_copy.h"

int pm_host_copy_open(const struct pm_clones_options *o, const char *lane,
                      struct pm_host_copy *out)
{
    struct pm_device_info *list = NULL;
    size_t count, index;
    int err = PM_OK;

    PM_TRY(pm_device_list(&list, &count));
    PM_TRY(pm_device_find(list, count, "cpu", "host", &index));
    PM_TRY(pm_device_open(&list[index], &(struct pm_device_options){
        .hang_seconds = o->device.hang_seconds, .trace = lane }, &out->device));
    PM_TRY(o->build(o->ctx, 1, o->frames[0].height, o->frames[0].width, &out->net));
    PM_TRY(pm_variables_create(out->device, out->net, true,
                               pm_optimizer_slots(o->update.optimizer, o->update.cfg),
                               &out->variables));
    if (o->update.averages)
        pm_variables_keep_averages(out->variables);
    PM_TRY(pm_variables_allocate(out->variables));
out:
    pm_free(list);
    return err;
}

int pm_host_copy_plan(const struct pm_host_copy *h, const struct pm_clones_options *o,
                      void (*append)(struct pm_calls *c, void *update),
                      const struct pm_update *update, struct pm_plan **out)
{
    int err = PM_OK;

    PM_TRY(pm_plan_create(h->net, h->device, h->variables, &(struct pm_plan_options){
        .name = "update", .update_only = true, .update = append, .update_ctx = (void *)update,
        .slots = 1, .timed = o->timed, .timeable = o->timeable }, out));
    PM_TRY(pm_plan_load(*out));
out:
    return err;
}

void pm_host_copy_close(struct pm_host_copy *h)
{
    pm_variables_destroy(&h->variables);
    pm_net_destroy(&h->net);
    pm_device_close(&h->device);
}
