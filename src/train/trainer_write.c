/* trainer_write: writes checkpoints from the snapshot. A process that trains alone writes at once.
 * With several processes, a thread of the chief writes, so the others only wait for the snapshot:
 * the next steps run meanwhile. The next snapshot waits for the thread, so its memory does not
 * change while it is written. */
#include "train/trainer.h"

#include <pumice/thread.h>

#include <string.h>

static int write_file(struct pm_trainer *t)
{
    const struct pm_trainer_writing *w = &t->writing;
    const struct pm_keep keep = pm_trainer_keep(t->run.c);

    return pm_state_save(t->snapshot.state, t->run.c->run.folder, w->step, w->json.text, &keep);
}

/* The error text belongs to a thread, so it is copied. */
static void *write_in_thread(void *ctx)
{
    struct pm_trainer *t = ctx;

    t->writing.err = write_file(t);
    if (t->writing.err < 0)
        snprintf(t->writing.why, sizeof t->writing.why, "%s", pm_error_text());
    atomic_store(&t->writing.finished, true);
    return NULL;
}

/* Takes over the result of a write. */
static int finish(struct pm_trainer *t, int err)
{
    struct pm_trainer_writing *w = &t->writing;

    pm_str_free(&w->json);
    if (err < 0)
        return err;
    t->run.saved_step = w->step;
    pm_watch_saved(t->watch, w->step);
    PM_DEBUG("train", "step %llu saved", (unsigned long long)w->step);
    return PM_OK;
}

int pm_trainer_write(struct pm_trainer *t)
{
    struct pm_trainer_writing *w = &t->writing;

    w->step = t->snapshot.step;
    pm_trainer_state(t, &w->json);
    t->saving.saved_at = pm_seconds();
    atomic_store(&w->finished, false);
    if (t->replicas.r && pthread_create(&w->thread, NULL, write_in_thread, t) == 0)
        w->running = true;
    else
        return finish(t, write_file(t));
    return PM_OK;
}

int pm_trainer_wait_written(struct pm_trainer *t)
{
    struct pm_trainer_writing *w = &t->writing;

    if (!w->running)
        return PM_OK;
    pthread_join(w->thread, NULL);
    w->running = false;
    return finish(t, w->err < 0 ? pm_fail((enum pm_error)w->err, "%s", w->why) : PM_OK);
}

int pm_trainer_check_written(struct pm_trainer *t)
{
    return t->writing.running && atomic_load(&t->writing.finished) ? pm_trainer_wait_written(t)
                                                                   : PM_OK;
}
