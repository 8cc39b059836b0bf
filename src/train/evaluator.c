/* evaluator: keeps two batches under way, so that the next batch is filled while one runs. */
#include "train/evaluator.h"

#include <pumice/draw.h>
#include <pumice/report.h>

#include <cjson/cJSON.h>
#include <string.h>

enum { SLOTS = 2 };

struct pm_evaluator {
    struct pm_experiment *e; /* borrowed */
    struct pm_net *net;
    struct pm_plan *plan;
    struct pm_outputs outputs;
    const void **values;     /* per output: a batch's values; owned */
    int batch;
};

int pm_evaluator_create(struct pm_experiment *e, struct pm_device *d, struct pm_variables *v,
                        struct pm_evaluator **out)
{
    int err = PM_OK;
    struct pm_evaluator *ev = pm_calloc(1, sizeof *ev);

    ev->e = e;
    ev->batch = e->config->eval.batch_size;
    PM_TRY(pm_experiment_net(e, (struct pm_net_want){ PM_USE_EVAL, ev->batch, 0, 0 }, &ev->net,
                             &ev->outputs));
    ev->values = pm_calloc((size_t)ev->outputs.count, sizeof *ev->values);
    PM_TRY(pm_experiment_plan(e, ev->net, ev->batch, PM_USE_EVAL, &ev->outputs, d, v, SLOTS,
                              &ev->plan));
    PM_TRY(pm_plan_load(ev->plan));
    *out = ev, ev = NULL;
out:
    pm_evaluator_destroy(&ev);
    return err;
}

void pm_evaluator_destroy(struct pm_evaluator **ev)
{
    if (*ev) {
        pm_plan_destroy(&(*ev)->plan);
        pm_net_destroy(&(*ev)->net);
        pm_free((*ev)->values);
        pm_free(*ev);
    }
    *ev = NULL;
}

static int finish(struct pm_evaluator *ev, int slot, struct pm_batch **batch,
                  struct pm_score *score, struct pm_loader *loader)
{
    int err = PM_OK;

    if (!*batch)
        return PM_OK;
    PM_TRY(pm_plan_wait(ev->plan, slot));
    for (int i = 0; i < ev->outputs.count; i++)
        ev->values[i] = pm_plan_output(ev->plan, slot, ev->outputs.node[i], 0);
    PM_TRY(ev->e->task_row->score_add(score, *batch, ev->values, pm_plan_loss(ev->plan, slot)));
out:
    pm_loader_release(loader, *batch);
    *batch = NULL;
    return err;
}

/* Copies the fields that are inputs of the net. */
static void fill(struct pm_evaluator *ev, int slot, const struct pm_batch *batch)
{
    for (int i = 0; i < ev->e->eval_fields.count; i++) {
        const struct pm_field *f = &batch->fields[i];

        if (pm_net_find(ev->net, f->name))
            memcpy(pm_plan_input(ev->plan, slot, f->name, 0), batch->field[i],
                   pm_shape_count(f->shape) * pm_type_size(f->type) * (size_t)ev->batch);
    }
}

static int tell_skipped(const struct pm_evaluator *ev, uint64_t count, uint64_t skipped)
{
    if (skipped && !count)
        return pm_fail(PM_EDATA, "%s: split %s: all %llu records are damaged (the first are named "
                       "above): nothing is left to evaluate", ev->e->config->data.folder,
                       ev->e->config->data.eval_split, (unsigned long long)skipped);
    if (skipped)
        PM_WARN("eval", "%llu damaged records were left out, %llu pictures count (data.on_corrupt)",
                (unsigned long long)skipped, (unsigned long long)count);
    return PM_OK;
}

/* Adds a picture as a data URL; photographs are smaller as JPEG. The first picture's members are
 * the sample's own; those of later pictures are listed in "beside". */
static int add_picture(const struct pm_drawing *p, struct cJSON *sample, bool first)
{
    enum { SIDE = 128, LARGE = 8 << 10, QUALITY = 88 };
    struct pm_image8 small = { 0 };
    struct pm_str text = { 0 };
    uint8_t *bytes = NULL;
    size_t size;
    int err = PM_OK;

    if (!first) {
        cJSON *list = cJSON_GetObjectItem(sample, "beside");

        list = list ? list : cJSON_AddArrayToObject(sample, "beside");
        sample = cJSON_CreateObject();
        cJSON_AddItemToArray(list, sample);
        cJSON_AddStringToObject(sample, "what", p->what);
    }
    pm_draw_shrink(&p->image, SIDE, &small);
    PM_TRY(pm_image_encode_png(&small, &bytes, &size));
    const bool jpeg = size > LARGE;
    if (jpeg) {
        pm_free(bytes);
        bytes = NULL;
        PM_TRY(pm_image_encode_jpeg(&small, QUALITY, &bytes, &size));
    }
    pm_str_add(&text, "data:image/%s;base64,", jpeg ? "jpeg" : "png");
    pm_str_base64(&text, bytes, size);
    cJSON_AddNumberToObject(sample, "width", small.width);
    cJSON_AddNumberToObject(sample, "height", small.height);
    cJSON_AddStringToObject(sample, "picture", text.text);
out:
    pm_free(bytes);
    pm_str_free(&text);
    pm_image_free(&small);
    return err;
}

static int add_samples(const struct pm_evaluator *ev, const struct pm_score *score,
                       struct cJSON *list)
{
    struct pm_dataset *d = ev->e->eval;
    uint64_t records[PM_MAX_SAMPLES];
    const struct pm_task_row *row = ev->e->task_row;
    const int n = row->score_samples ? row->score_samples(score, records) : 0;
    struct pm_drawings drawings = { 0 };
    uint8_t *buf = NULL;
    size_t capacity = 0, size;
    char where[512];
    int err = PM_OK;

    for (int i = 0; i < n; i++) {
        struct cJSON *sample = cJSON_CreateObject();

        cJSON_AddItemToArray(list, sample);
        cJSON_AddNumberToObject(sample, "record", (double)records[i]);
        PM_TRY(pm_dataset_read(d, (size_t)records[i], &buf, &capacity, &size));
        pm_dataset_where(d, (size_t)records[i], where, sizeof where);
        PM_TRY(row->score_sample(score, i, buf, size, where, sample, &drawings));
        for (size_t k = 0; k < drawings.count; k++)
            PM_TRY(add_picture(&drawings.list[k], sample, k == 0));
        pm_drawings_free(&drawings);
    }
out:
    pm_drawings_free(&drawings);
    pm_free(buf);
    return err;
}

int pm_evaluator_run(struct pm_evaluator *ev, struct cJSON *metrics, struct cJSON *detail,
                     uint64_t *count, uint64_t *skipped)
{
    const struct pm_config_eval *c = &ev->e->config->eval;
    struct pm_batch *batch[SLOTS] = { 0 };
    struct pm_score *score = ev->e->task_row->score_create(ev->e->task);
    struct pm_loader *loader = NULL;
    struct pm_progress *bar = NULL;
    struct pm_sampler sampler;
    uint64_t batches, done = 0;
    int err = PM_OK;

    *count = *skipped = 0;
    PM_TRY(pm_experiment_loader(ev->e, false, ev->batch, (struct pm_batch_slice){ 0 }, 0,
                                &sampler, &loader));
    batches = pm_loader_batches(loader);
    if (c->max_batches > 0 && (uint64_t)c->max_batches < batches)
        batches = (uint64_t)c->max_batches;
    bar = pm_progress_start(&(struct pm_progress_options){ .what = "eval", .unit = "batch",
                                                           .last = batches });
    for (; done < batches; done++) {
        int slot = (int)(done % SLOTS);

        PM_TRY(finish(ev, slot, &batch[slot], score, loader));
        PM_TRY(pm_loader_next(loader, &batch[slot]));
        if (!batch[slot])
            break;
        fill(ev, slot, batch[slot]);
        PM_TRY(pm_plan_submit(ev->plan, slot));
        *count += (uint64_t)batch[slot]->valid;
        *skipped += (uint64_t)batch[slot]->skipped;
        pm_progress_count(bar, done + 1, *count, pm_loader_waited(loader));
    }
    for (uint64_t k = 0; k < SLOTS; k++)
        PM_TRY(finish(ev, (int)((done + k) % SLOTS), &batch[(done + k) % SLOTS], score, loader));
    PM_TRY(tell_skipped(ev, *count, *skipped));
    ev->e->task_row->score_report(score, metrics);
    cJSON_DeleteItemFromObject(metrics, "count"); /* reported separately */
    if (detail) {
        if (ev->e->task_row->score_detail)
            ev->e->task_row->score_detail(score, detail);
        PM_TRY(add_samples(ev, score, cJSON_AddArrayToObject(detail, "samples")));
    }
out:
    for (int k = 0; k < SLOTS; k++)
        if (batch[k]) {
            if (err != PM_ELOST) /* that error's message must be kept */
                pm_plan_wait(ev->plan, k);
            pm_loader_release(loader, batch[k]);
        }
    pm_progress_end(&bar);
    pm_loader_destroy(&loader);
    ev->e->task_row->score_destroy(&score);
    return err;
}
