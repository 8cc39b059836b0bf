/* trainer_snapshot: a copy in host memory of everything needed to resume: values and slots, the
 * step, the number of damaged records, and the states of early_stop and the watch. */
#include "train/trainer.h"

#include "checkpoints/warm_start.h"

#include <cjson/cJSON.h>

void pm_trainer_snapshot_create(struct pm_trainer *t)
{
    pm_trainer_snapshot_free(t);
    t->snapshot.state = pm_state_create(pm_clones_master(t->run.clones));
    t->snapshot.spare = pm_state_create(pm_clones_master(t->run.clones));
}

void pm_trainer_snapshot_free(struct pm_trainer *t)
{
    pm_state_destroy(&t->snapshot.state);
    pm_state_destroy(&t->snapshot.spare);
}

int pm_trainer_snapshot(struct pm_trainer *t)
{
    enum pm_phase_of_run before = pm_phases_enter(&t->phases, PM_RUN_SAVING);
    struct pm_state *taken;
    int err = PM_OK;

    PM_TRY(pm_trainer_wait_written(t));
    PM_TRY(pm_clones_gather(t->run.clones));
    PM_TRY(pm_state_read(t->snapshot.spare, pm_clones_master(t->run.clones)));
    taken = t->snapshot.spare;
    t->snapshot.spare = t->snapshot.state;
    t->snapshot.state = taken;
    t->snapshot.step = t->run.step;
    t->snapshot.skipped = t->loop.skipped;
    pm_early_stop_keep(&t->saving.stop);
    pm_watch_keep(t->watch);
out:
    pm_phases_enter(&t->phases, before);
    return err;
}

int pm_trainer_restore(struct pm_trainer *t)
{
    int err = PM_OK;

    PM_TRY(pm_state_write(t->snapshot.state, pm_clones_master(t->run.clones)));
    PM_TRY(pm_clones_scatter(t->run.clones));
    t->run.step = t->run.collected = t->snapshot.step;
    t->loop.skipped = t->snapshot.skipped;
    pm_early_stop_restore(&t->saving.stop);
    pm_watch_restore(t->watch);
out:
    return err;
}

int pm_trainer_snapshot_continue(struct pm_trainer *t)
{
    const struct pm_config *c = t->run.c;
    struct pm_checkpoint *from = NULL;
    char where[512];
    int err = PM_OK;

    snprintf(where, sizeof where, "%s: init.checkpoint", pm_config_source(c, "init.checkpoint"));
    PM_TRY(pm_checkpoint_open(NULL, c->init.checkpoint, where, &from));
    PM_TRY(pm_values_translate(from, pm_clones_master(t->run.clones)));
    PM_TRY(pm_state_check(t->snapshot.state, from, where, t->start.betas));
    PM_TRY(pm_trainer_snapshot_read(t, from));
    pm_early_stop_read(&t->saving.stop, NULL); /* as the best checkpoint, it begins anew */
    PM_INFO("init",
            "%s (%s): all variables, optimizer slots%s and the step %llu are restored "
            "(init.restore)",
            from->path, pm_tensor_file_format(from->tensors),
            c->optim.moving_average_decay > 0 ? ", moving averages" : "",
            (unsigned long long)from->step);
out:
    pm_checkpoint_close(&from);
    return err;
}

int pm_trainer_snapshot_read(struct pm_trainer *t, const struct pm_checkpoint *from)
{
    struct cJSON *state = from->state ? cJSON_Parse(from->state) : NULL;
    double n = cJSON_GetNumberValue(cJSON_GetObjectItem(state, "skipped")); /* NAN: none */
    int err = PM_OK;

    PM_TRY(pm_state_load(t->snapshot.state, from));
    t->snapshot.step = from->step;
    t->snapshot.skipped = n >= 0 && n < 0x1p53 ? (uint64_t)n : 0;
    pm_watch_read(t->watch, state);
    pm_early_stop_read(&t->saving.stop, cJSON_GetObjectItem(state, "early_stop"));
out:
    cJSON_Delete(state);
    return err;
}
