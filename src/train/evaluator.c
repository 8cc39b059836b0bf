/* evaluator: keeps two batches under way, so that the next batch is filled while one runs. Batches
 * of two frames are never under way together, because their plans share memory. */
#include "train/evaluator.h"

#include "experiment/net_sizes.h"
#include "tasks/record.h"

#include <pumice/draw.h>
#include <pumice/replicas.h>
#include <pumice/report.h>

#include <cjson/cJSON.h>
#include <string.h>

enum { SLOTS = 2 };

struct pm_evaluator {
    struct pm_experiment *e; /* borrowed */
    struct pm_sampler sampler;
    struct pm_frame_groups groups; /* owned; the records if each picture keeps its size */
    struct pm_net_sizes *sizes;
    struct pm_net_of_size now;     /* the net of the batches under way */
    const void **values;           /* per output: a batch's values; owned */
    char *folder;                  /* for files with predictions, owned; NULL: not written */
    struct pm_replicas *replicas;  /* borrowed; NULL: the pass is not shared */
};
/* One run: the batches under way. */
struct pass {
    struct pm_evaluator *ev;
    struct pm_loader *loader;
    struct pm_score *score;
    struct pm_batch *batch[SLOTS];
};

static const struct pm_frame_groups *groups_of(const struct pm_evaluator *ev)
{
    return ev->groups.count ? &ev->groups : NULL;
}

static void name_record(void *ctx, uint64_t record, char *out, size_t size)
{
    pm_dataset_where(((const struct pm_evaluator *)ctx)->e->eval, (size_t)record, out, size);
}

int pm_evaluator_create(struct pm_experiment *e, struct pm_device *d, struct pm_variables *v,
                        struct pm_evaluator **out)
{
    int err = PM_OK;
    struct pm_evaluator *ev = pm_calloc(1, sizeof *ev);

    ev->e = e;
    ev->sampler = (struct pm_sampler){ e->task, false, e->task_row };
    if (e->facts.own_sizes)
        pm_frame_groups_create(e->eval, pm_record_frame, &ev->sampler,
                               pm_experiment_frame(e, false), &ev->groups);
    PM_TRY(pm_net_sizes_create(&(struct pm_net_sizes_options){
        .e = e, .device = d, .variables = v, .use = PM_USE_EVAL,
        .batch = e->config->eval.batch_size, .slots = SLOTS, .groups = groups_of(ev),
        .name = name_record, .ctx = ev }, &ev->sizes));
    *out = ev, ev = NULL;
out:
    pm_evaluator_destroy(&ev);
    return err;
}

void pm_evaluator_destroy(struct pm_evaluator **ev)
{
    if (*ev) {
        pm_net_sizes_destroy(&(*ev)->sizes);
        pm_frame_groups_free(&(*ev)->groups);
        pm_free((*ev)->values);
        pm_free((*ev)->folder);
        pm_free(*ev);
    }
    *ev = NULL;
}

void pm_evaluator_write_to(struct pm_evaluator *ev, const char *folder)
{
    pm_free(ev->folder);
    ev->folder = pm_strdup(folder);
}

void pm_evaluator_share(struct pm_evaluator *ev, struct pm_replicas *r)
{
    ev->replicas = r;
}

/* Writes the task's files with predictions, if they are wanted. */
static int write_files(const struct pm_evaluator *ev, const struct pm_score *score)
{
    int err = PM_OK;

    if (!ev->folder || !ev->e->task_row->score_write)
        return PM_OK;
    PM_TRY(pm_make_folders(ev->folder));
    PM_TRY(ev->e->task_row->score_write(score, ev->folder));
out:
    return err;
}

/* Waits for the batch of a slot, if there is one, and scores it. */
static int finish(struct pass *p, int slot)
{
    struct pm_evaluator *ev = p->ev;
    struct pm_plan *plan = ev->now.plan;
    int err = PM_OK;

    if (!p->batch[slot])
        return PM_OK;
    PM_TRY(pm_plan_wait(plan, slot));
    for (int i = 0; i < ev->now.outputs.count; i++)
        ev->values[i] = pm_plan_output(plan, slot, ev->now.outputs.node[i], 0);
    PM_TRY(ev->e->task_row->score_add(p->score, p->batch[slot], ev->values,
                                      pm_plan_loss(plan, slot)));
out:
    pm_loader_release(p->loader, p->batch[slot]);
    p->batch[slot] = NULL;
    return err;
}

/* Finishes the batches under way, beginning with the one in `slot`, which is the oldest. */
static int finish_all(struct pass *p, int slot)
{
    int err = PM_OK;

    for (int k = 0; k < SLOTS; k++)
        PM_TRY(finish(p, (slot + k) % SLOTS));
out:
    return err;
}

static bool is_frame(struct pm_frame a, struct pm_frame b)
{
    return a.height == b.height && a.width == b.width;
}

/* Takes the net of the frame of the batch in `slot`. If the frame changes, the batches under way
 * are finished first. */
static int take_net(struct pass *p, int slot)
{
    struct pm_evaluator *ev = p->ev;
    struct pm_batch *batch = p->batch[slot];
    int err = PM_OK;

    if (ev->now.net && is_frame(ev->now.frame, batch->frame))
        return PM_OK;
    p->batch[slot] = NULL;
    if (ev->now.net)
        err = finish_all(p, (slot + 1) % SLOTS);
    p->batch[slot] = batch;
    PM_TRY(err);
    ev->now.net = NULL;
    PM_TRY(pm_net_sizes_get(ev->sizes, batch->frame, &ev->now));
    ev->values =
        pm_realloc(ev->values, ((size_t)ev->now.outputs.count + 1) * sizeof *ev->values);
out:
    return err;
}

/* Copies the fields that are inputs of the net. */
static void fill(struct pm_evaluator *ev, int slot, const struct pm_batch *batch)
{
    for (int i = 0; i < ev->e->eval_fields.count; i++) {
        const struct pm_field *f = &batch->fields[i];

        if (pm_net_find(ev->now.net, f->name))
            memcpy(pm_plan_input(ev->now.plan, slot, f->name, 0), batch->field[i],
                   pm_shape_count(f->shape) * pm_type_size(f->type) * (size_t)ev->now.batch);
    }
}

static int tell_skipped(const struct pm_evaluator *ev, uint64_t count, uint64_t skipped)
{
    if (skipped && !count)
        return pm_fail(PM_EDATA,
                       "%s: split %s: all %llu records are damaged (the first ones are listed "
                       "above): there is nothing to evaluate",
                       ev->e->config->data.folder, ev->e->eval_split,
                       (unsigned long long)skipped);
    if (skipped)
        PM_WARN("eval",
                "%llu damaged %s skipped, %llu %s evaluated (data.on_corrupt)",
                (unsigned long long)skipped,
                pm_plural((double)skipped, "record was", "records were"), (unsigned long long)count,
                pm_plural((double)count, "picture was", "pictures were"));
    return PM_OK;
}

enum { SAMPLE_SIDE = 128 }; /* for tasks without a side of their own */

/* Adds a picture as a data URL; photographs are smaller as JPEG. The first picture's members are
 * the sample's own; those of later pictures are listed in "beside". */
static int add_picture(const struct pm_drawing *p, struct cJSON *sample, bool first, int side)
{
    enum { LARGE = 8 << 10, QUALITY = 88 };
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
    pm_draw_shrink(&p->image, side, &small);
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

/* Adds the name of the picture's file, if the record has it. */
static int add_file(const uint8_t *record, size_t size, const char *where, struct cJSON *sample)
{
    struct pm_example *e = NULL;
    struct pm_str text = { 0 };
    char *name = NULL;
    int err = PM_OK;

    PM_TRY(pm_example_parse(record, size, where, &e));
    name = pm_record_file(e);
    if (name) {
        pm_str_printable(&text, name, strlen(name));
        cJSON_AddStringToObject(sample, "file", text.text);
    }
out:
    pm_str_free(&text);
    pm_free(name);
    pm_example_destroy(&e);
    return err;
}

static int add_samples(const struct pm_evaluator *ev, const struct pm_score *score,
                       struct cJSON *list)
{
    struct pm_dataset *d = ev->e->eval;
    uint64_t records[PM_MAX_SAMPLES];
    const struct pm_task_row *row = ev->e->task_row;
    const int n = row->score_samples ? row->score_samples(score, records) : 0;
    const int side = row->sample_side ? row->sample_side : SAMPLE_SIDE;
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
        PM_TRY(add_file(buf, size, where, sample));
        PM_TRY(row->score_sample(score, i, buf, size, where, sample, &drawings));
        for (size_t k = 0; k < drawings.count; k++)
            PM_TRY(add_picture(&drawings.list[k], sample, k == 0, side));
        pm_drawings_free(&drawings);
    }
out:
    pm_drawings_free(&drawings);
    pm_free(buf);
    return err;
}

/* Merges the scores of all processes in rank 0, in the order of the batches: a process has a run of
 * batches, before those of the next process. */
static int merge_scores(struct pass *p, uint64_t *count, uint64_t *skipped)
{
    const struct pm_evaluator *ev = p->ev;
    const int ranks = pm_replicas_count(ev->replicas);
    size_t *sizes = pm_calloc((size_t)ranks, sizeof *sizes);
    uint64_t own[2] = { *count, *skipped }, *counts = pm_calloc((size_t)ranks, sizeof own);
    struct pm_str pack = { 0 };
    char *all = NULL;
    size_t at;
    int err = PM_OK;

    PM_TRY(pm_replicas_allgather(ev->replicas, own, sizeof own, counts));
    for (int k = 0; k < ranks; k++)
        if (k != pm_replicas_rank(ev->replicas)) {
            *count += counts[2 * k];
            *skipped += counts[2 * k + 1];
        }
    if (pm_replicas_rank(ev->replicas) > 0)
        ev->e->task_row->score_pack(p->score, &pack);
    PM_TRY(pm_replicas_gather_bytes(ev->replicas, false, pack.text, pack.length, &all, sizes));
    at = sizes[0];
    for (int k = 1; all && k < ranks; at += sizes[k++])
        PM_TRY(ev->e->task_row->score_merge(p->score, all + at, sizes[k]));
out:
    pm_str_free(&pack);
    pm_free(all);
    pm_free(counts);
    pm_free(sizes);
    return err;
}

/* Makes the results of the pass. */
static int report(const struct pass *p, struct cJSON *metrics, struct cJSON *detail)
{
    const struct pm_evaluator *ev = p->ev;
    int err = PM_OK;

    ev->e->task_row->score_report(p->score, metrics);
    cJSON_DeleteItemFromObject(metrics, "count"); /* reported separately */
    PM_TRY(write_files(ev, p->score));
    if (detail) {
        if (ev->e->task_row->score_detail)
            ev->e->task_row->score_detail(p->score, detail);
        PM_TRY(add_samples(ev, p->score, cJSON_AddArrayToObject(detail, "samples")));
    }
out:
    return err;
}

int pm_evaluator_run(struct pm_evaluator *ev, struct cJSON *metrics, struct cJSON *detail,
                     uint64_t *count, uint64_t *skipped)
{
    const struct pm_config_eval *c = &ev->e->config->eval;
    struct pass p = { .ev = ev, .score = ev->e->task_row->score_create(ev->e->task) };
    struct pm_progress *bar = NULL;
    uint64_t batches, done = 0;
    int err = PM_OK;

    *count = *skipped = 0;
    PM_TRY(pm_experiment_eval_loader(ev->e, (struct pm_loader_share){
        pm_replicas_rank(ev->replicas), pm_replicas_count(ev->replicas),
        c->max_batches > 0 ? (uint64_t)c->max_batches : 0 }, groups_of(ev), &ev->sampler,
        &p.loader));
    batches = pm_loader_batches(p.loader);
    if (pm_replicas_rank(ev->replicas) == 0)
        bar = pm_progress_start(&(struct pm_progress_options){ .what = "eval", .unit = "batch",
                                                               .last = batches });
    for (; done < batches; done++) {
        int slot = (int)(done % SLOTS);

        PM_TRY(finish(&p, slot));
        PM_TRY(pm_loader_next(p.loader, &p.batch[slot]));
        if (!p.batch[slot])
            break;
        err = take_net(&p, slot);
        if (err == PM_OK) {
            fill(ev, slot, p.batch[slot]);
            err = pm_plan_submit(ev->now.plan, slot);
        }
        PM_TRY(err);
        *count += (uint64_t)p.batch[slot]->valid;
        *skipped += (uint64_t)p.batch[slot]->skipped;
        if (bar)
            pm_progress_count(bar, done + 1, *count, pm_loader_waited(p.loader));
    }
    PM_TRY(finish_all(&p, (int)(done % SLOTS)));
    if (ev->replicas)
        PM_TRY(merge_scores(&p, count, skipped));
    PM_TRY(tell_skipped(ev, *count, *skipped));
    if (pm_replicas_rank(ev->replicas) == 0)
        PM_TRY(report(&p, metrics, detail));
out:
    for (int k = 0; k < SLOTS; k++)
        if (p.batch[k]) {
            if (err != PM_ELOST && ev->now.net) /* that error's message must be kept */
                pm_plan_wait(ev->now.plan, k);
            pm_loader_release(p.loader, p.batch[k]);
        }
    pm_progress_end(&bar);
    pm_loader_destroy(&p.loader);
    ev->e->task_row->score_destroy(&p.score);
    return err;
}
