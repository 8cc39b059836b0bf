/* steps: see steps.h. */
#include "measure/steps.h"

#include "checkpoints/published.h"
#include "checkpoints/state.h"
#include "checkpoints/warm_start.h"
#include "observers/activation_summaries.h"
#include "observers/summaries.h"
#include "optim/averages.h"

#include <math.h>

const enum pm_phase_of_run pm_steps_host[PM_STEPS_HOST] = {
    PM_RUN_DATA, PM_RUN_DEVICE, PM_RUN_AVERAGE, PM_RUN_UPDATE, PM_RUN_OTHER,
};

/* Fills a batch with values that the fields allow. */
static void make_batch(struct pm_steps *s)
{
    const struct pm_field_list *fields = &s->e->train_fields;
    struct pm_rng r = pm_rng_make((uint64_t)s->c->run.seed, pm_hash("bench"), 0, 0);

    s->batch.field = pm_calloc((size_t)fields->count, sizeof *s->batch.field);
    for (int k = 0; k < fields->count; k++) {
        const struct pm_field *f = &fields->list[k];
        const size_t n = pm_shape_count(f->shape) * (size_t)s->c->run.batch_size;

        s->batch.field[k] = pm_calloc(n, sizeof(float));
        pm_values_draw(f->values, f->type, n, &r, s->batch.field[k]);
    }
    s->batch.fields = fields->list;
    s->batch.frame = pm_experiment_frame(s->e, true);
    s->batch.examples = s->batch.valid = s->c->run.batch_size;
}

int pm_steps_open(struct pm_steps *s, const struct pm_config *c, bool synthetic)
{
    bool data = !synthetic || (c->data.folder && pm_is_folder(c->data.folder));
    int err = PM_OK;

    *s = (struct pm_steps){ .c = c, .synthetic = synthetic, .finite = true,
                            .rate = (float)(0.01 * c->schedule.base_lr) };
    PM_TRY(pm_experiment_open(c, data ? PM_OPEN_TRAIN : 0, &s->e));
    PM_TRY(pm_experiment_devices(s->e, &s->specs, &s->count));
    PM_TRY(pm_experiment_say_devices(s->e));
    if (s->e->optimizer->betas)
        s->e->optimizer->betas(s->e->optimizer_cfg, &s->betas[0], &s->betas[1]);
    if (synthetic)
        make_batch(s);
    pm_phases_start(&s->phases);
out:
    return err;
}

void pm_steps_close(struct pm_steps *s)
{
    pm_loader_destroy(&s->loader);
    pm_clones_destroy(&s->clones);
    for (int f = 0; s->batch.field && f < s->e->train_fields.count; f++)
        pm_free(s->batch.field[f]);
    pm_free(s->batch.field);
    pm_experiment_close(&s->e);
}

void pm_steps_one_size(struct pm_steps *s)
{
    const struct pm_frame f = s->e->frames[0];

    if (s->e->frames_count > 1)
        PM_INFO("bench", "input.buckets: only the largest size, %d x %d, is measured", f.height,
                f.width);
    s->e->frames_count = 1;
}

int pm_steps_clones(struct pm_steps *s, bool timed)
{
    struct pm_clones_options options;
    int err = PM_OK;

    pm_clones_destroy(&s->clones);
    pm_experiment_clones(s->e, s->specs, s->count, &options);
    options.slots = PM_STEP_SLOTS;
    options.timed = timed;
    options.among = s->among;
    options.phases = &s->phases;
    if (pm_summaries_observe(s->c))
        PM_TRY(pm_activations_observed(s->e, &options.observed));
    PM_TRY(pm_clones_create(&options, &s->clones));
    PM_TRY(pm_optimizer_init(s->e->optimizer, s->e->optimizer_cfg,
                             pm_clones_master(s->clones), (uint64_t)s->c->run.seed));
    PM_TRY(pm_clones_scatter(s->clones));
    s->step = s->collected = 0;
out:
    return err;
}

/* Restores a whole checkpoint, for init.restore "all". */
static int restore_all(struct pm_steps *s, const char *where)
{
    struct pm_variables *v = pm_clones_master(s->clones);
    struct pm_state *state = pm_state_create(v);
    struct pm_checkpoint *from = NULL;
    int err = PM_OK;

    PM_TRY(pm_checkpoint_open(NULL, s->c->init.checkpoint, where, &from));
    PM_TRY(pm_values_translate(from, v));
    PM_TRY(pm_state_check(state, from, where, s->betas));
    PM_TRY(pm_state_load(state, from));
    PM_TRY(pm_state_write(state, v));
    s->step = s->collected = from->step;
out:
    pm_checkpoint_close(&from);
    pm_state_destroy(&state);
    return err;
}

int pm_steps_start(struct pm_steps *s)
{
    const struct pm_config *c = s->c;
    struct pm_variables *v = pm_clones_master(s->clones);
    const char *place = pm_config_source(c, "init.checkpoint");
    struct pm_arena *a = pm_arena_create();
    struct pm_config_init init;
    int err = PM_OK;

    if (!c->init.checkpoint)
        goto out;
    PM_TRY(pm_published_check(c));
    if (c->init.restore == PM_RESTORE_ALL) {
        PM_TRY(restore_all(s, pm_arena_printf(a, "%s: init.checkpoint", place)));
    } else {
        PM_TRY(pm_published_start(c, v, NULL, a, &init));
        PM_TRY(pm_values_warm_start(v, &init, place));
        PM_TRY(pm_variables_start_averages(v));
    }
    PM_TRY(pm_clones_scatter(s->clones));
out:
    pm_arena_destroy(&a);
    return err;
}

int pm_steps_loader(struct pm_steps *s)
{
    if (s->synthetic)
        return PM_OK;
    return pm_experiment_loader(s->e, s->c->run.batch_size, pm_clones_slice(s->clones),
                                (struct pm_batch_numbers){ 0 }, &s->sampler, &s->loader);
}

static struct pm_step step_values(const struct pm_steps *s)
{
    uint64_t seed = (uint64_t)s->c->run.seed;
    const double n = (double)s->step + 1;

    return (struct pm_step){
        .step = (uint32_t)s->step, .seed_low = (uint32_t)seed, .seed_high = (uint32_t)(seed >> 32),
        .lr = s->rate, .loss_scale = 1,
        .beta1_power = (float)pow(s->betas[0], n), .beta2_power = (float)pow(s->betas[1], n),
        .ema_decay = pm_averages_decay(&s->c->optim, s->step + 1),
    };
}

static int next_batch(struct pm_steps *s, struct pm_batch **batch)
{
    enum pm_phase_of_run before;
    int err;

    if (s->synthetic) {
        *batch = &s->batch;
        return PM_OK;
    }
    before = pm_phases_enter(&s->phases, PM_RUN_DATA);
    err = pm_loader_next(s->loader, batch);
    pm_phases_enter(&s->phases, before);
    return err;
}

int pm_steps_submit(struct pm_steps *s)
{
    struct pm_step values = step_values(s);
    struct pm_batch *batch = NULL;
    int err = PM_OK;

    PM_TRY(next_batch(s, &batch));
    PM_TRY(pm_clones_step(s->clones, (int)(s->step % PM_STEP_SLOTS), batch, &values));
    s->step++;
out:
    if (!s->synthetic && batch)
        pm_loader_release(s->loader, batch);
    return err;
}

int pm_steps_collect(struct pm_steps *s)
{
    int err = PM_OK;

    PM_TRY(pm_clones_collect(s->clones, (int)(s->collected % PM_STEP_SLOTS), &s->last));
    s->collected++;
    s->finite &= s->last.finite;
out:
    return err;
}

int pm_steps_turn(struct pm_steps *s)
{
    int err = PM_OK;

    if (s->step - s->collected == PM_STEP_SLOTS)
        PM_TRY(pm_steps_collect(s));
    PM_TRY(pm_steps_submit(s));
    if (s->count > 1 || s->among.replicas)
        PM_TRY(pm_steps_collect(s));
out:
    return err;
}

int pm_steps_take(struct pm_steps *s, int count)
{
    int err = PM_OK;

    for (int i = 0; i < count; i++)
        PM_TRY(pm_steps_turn(s));
    while (s->collected < s->step)
        PM_TRY(pm_steps_collect(s));
out:
    return err;
}
