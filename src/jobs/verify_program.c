/* verify_program: runs the checks of pumice verify on every kernel of the program, or on those of a
 * config's plan. */
#include "clones/clones.h"
#include "experiment/experiment.h"

#include <pumice/train.h>
#include <pumice/verify.h>

#include <string.h>

/* Verifies each optimizer on the net of a case with moving averages, twice: with and without
 * clipping, averages of the variables, and the options that select other kernels. */
static int verify_optimizers(struct pm_verify *v)
{
    size_t count, at = 0;
    const struct pm_optimizer *const *rows = pm_optimizers(&count);
    struct pm_verify_source s;
    struct pm_arena *a = pm_arena_create();
    int err = PM_OK;

    while (pm_verify_case(at, &s) && strcmp(s.name, "normalised") != 0)
        at++;
    for (size_t i = 0; i < 2 * count && !pm_verify_is_cut(v); i++) {
        const struct pm_optimizer *o = rows[i / 2];
        struct pm_update u = { .optimizer = o, .weight_decay = 0.1f, .layers = true };

        u.cfg = pm_arena_alloc(a, o->cfg_size);
        PM_TRY(pm_opts_parse_text(o->opts, i % 2 && o->other ? o->other : "", (void *)u.cfg, a,
                                  o->name));
        if (i % 2)
            u.clip_norm = 1, u.clip_variable_norm = 0.5f, u.averages = true;
        s.options.update = pm_update_append;
        s.options.update_ctx = &u;
        s.slots = pm_optimizer_slots(o, u.cfg);
        PM_TRY(pm_verify_source(v, &s));
    }
out:
    pm_arena_destroy(&a);
    return err;
}

int pm_verify_all(struct pm_verify *v, void (*progress)(void *ctx, double done), void *ctx)
{
    struct pm_verify_source s;
    size_t cases = 0;
    int err = PM_OK;

    while (pm_verify_case(cases, &s))
        cases++;
    for (size_t i = 0; i < cases; i++) {
        pm_verify_case(i, &s);
        PM_TRY(pm_verify_source(v, &s));
        if (pm_verify_is_cut(v))
            return PM_OK;
        progress(ctx, (double)(i + 1) / (double)(cases + 1));
    }
    PM_TRY(verify_optimizers(v));
    if (!pm_verify_is_cut(v))
        progress(ctx, 1);
out:
    return err;
}

int pm_verify_config(struct pm_verify *v, const struct pm_config *c)
{
    struct pm_experiment *e = NULL;
    struct pm_clones_options o;
    struct pm_clone_spec spec = { .share = 1 };
    int err = PM_OK;

    PM_TRY(pm_experiment_open(c, pm_experiment_if_there(c, PM_OPEN_TRAIN), &e));
    pm_experiment_clones(e, &spec, 1, &o);
    o.update.layers = true;
    PM_TRY(pm_verify_source(v, &(struct pm_verify_source){
        .name = c->path, .build = o.build, .ctx = o.ctx, .batch = o.batch / o.micro_batches,
        .height = o.frames[0].height, .width = o.frames[0].width,
        .slots = pm_optimizer_slots(o.update.optimizer, o.update.cfg),
        .options = { .name = "verify", .train = true, .loss_share = 1, .micro_batches = 1,
                     .frozen = pm_update_frozen, .frozen_ctx = &o.update,
                     .update = pm_update_append, .update_ctx = &o.update, .slots = 1 } }));
out:
    pm_experiment_close(&e);
    return err;
}
