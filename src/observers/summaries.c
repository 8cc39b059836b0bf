/* summaries: summaries.h has the contract. summary_tags.c has the tags of other programs. */
#include "observers/summaries.h"

#include "observers/activation_summaries.h"
#include "observers/summary_tags.h"

#include <pumice/draw.h>
#include <pumice/formats.h>
#include <pumice/thread.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

struct pm_summaries {
    struct pm_experiment *e;          /* borrowed */
    struct pm_events *train, *eval;   /* owned; NULL: could not be made */
    bool warned;                      /* about a file that cannot be written */
    bool warned_values;               /* about values that are not finite */
    double written;                   /* pm_seconds of the last step chosen by time; 0: none */
    uint64_t asked;                   /* last step of pm_summaries_choose */
    uint64_t chosen;                  /* step that writes histograms and pictures; 0: none */
    struct pm_str tag;                /* the last tag */
    const char *const *observed;      /* layers of observed steps; in the experiment's arena */
    float *pictures;                  /* the first pictures of the batch; NULL: not wanted */
    size_t picture_floats, picture_count; /* floats of one picture, in the largest frame before a
                                           * batch was kept; number of pictures */
    uint64_t *records;                /* [picture_count]: their indices in the data */
    struct pm_frame frame;            /* of the kept batch */
    struct shown_values {
        struct pm_activations *made;  /* owned; made at the first summary */
        bool off;                     /* not wanted, or not enough memory */
    } activations, heads;
    char **labels;                    /* per field, [picture_count]; of the pictures the array
                                       * above. NULL: neither painted nor read by a net */
};

/* ---- files ------------------------------------------------------------------------------ */

/* Returns the tag of a value that we call `own`; valid until the next call. */
static const char *tagged(struct pm_summaries *s, const char *own)
{
    pm_summary_tag((enum pm_summary_tags)s->e->config->run.summary_tags, own, &s->tag);
    return s->tag.text;
}

static void add_scalar(struct pm_summaries *s, const char *own, double value)
{
    pm_events_scalar(s->train, tagged(s, own), value);
}

static void warn(struct pm_summaries *s, int err)
{
    if (err < 0 && !s->warned)
        PM_WARN("events", "%s; training continues, but TensorBoard lacks values from here",
                pm_error_text());
    s->warned |= err < 0;
}

/* Opens an event file and hides the entries of earlier files from step `first` on. */
static struct pm_events *open_file(struct pm_summaries *s, const char *folder, uint64_t first)
{
    struct pm_events *e = NULL;
    int err = PM_OK;

    PM_TRY(pm_events_create(folder, &e));
    PM_TRY(pm_events_session(e, PM_EVENTS_START, first, NULL));
out:
    warn(s, err);
    return e;
}

static size_t pictures_wanted(const struct pm_config_run *run)
{
    int most = run->summary_images > run->summary_activations ? run->summary_images
                                                              : run->summary_activations;

    return (size_t)(most < run->batch_size ? most : run->batch_size);
}

/* Returns how many of the stored pictures are shown. */
static size_t shown(const struct pm_summaries *s)
{
    const size_t most = (size_t)s->e->config->run.summary_images;

    return most < s->picture_count ? most : s->picture_count;
}

static size_t bytes_of(const struct pm_field *f)
{
    return pm_shape_count(f->shape) * pm_type_size(f->type);
}

/* Makes room for the labels of the frame that needs most. */
static void keep_labels(struct pm_summaries *s)
{
    const struct pm_experiment *e = s->e;
    const int count = e->train_fields.count;
    size_t *most = pm_calloc((size_t)count, sizeof *most);
    struct pm_field_list fields = { 0 };

    for (int k = 0; k < e->frames_count; k++) {
        fields.count = 0;
        e->task_row->fields(e->task, true, e->frames[k], &fields);
        for (int i = 1; i < count; i++) {
            const size_t bytes = bytes_of(&fields.list[i]);

            most[i] = bytes > most[i] ? bytes : most[i];
        }
    }
    s->labels = pm_calloc((size_t)count, sizeof *s->labels);
    s->labels[0] = (char *)s->pictures;
    for (int i = 1; i < count; i++)
        s->labels[i] = pm_calloc(s->picture_count + 1, most[i]);
    pm_free(fields.list);
    pm_free(most);
}

struct pm_summaries *pm_summaries_open(struct pm_experiment *e, uint64_t step, bool evaluated)
{
    const struct pm_config *c = e->config;
    struct pm_summaries *s = pm_calloc(1, sizeof *s);
    struct pm_str folder = { 0 };

    s->e = e;
    s->asked = step;
    s->train = open_file(s, c->run.folder, step + 1);
    pm_str_add(&folder, "%s/eval", c->run.folder);
    if (c->eval.every_steps > 0)
        s->eval = open_file(s, folder.text, step + evaluated);
    pm_str_free(&folder);
    if (c->run.summary_every_steps > 0 || c->run.summary_every_secs > 0) {
        s->picture_floats = (size_t)e->facts.height * (size_t)e->facts.width *
                            (size_t)e->facts.channels;
        s->picture_count = pictures_wanted(&c->run);
        s->pictures = pm_calloc(s->picture_count * s->picture_floats + 1, sizeof *s->pictures);
        s->records = pm_calloc(s->picture_count + 1, sizeof *s->records);
        if (e->task_row->paint || c->run.summary_activations > 0)
            keep_labels(s);
    }
    s->activations.off = c->run.summary_activations <= 0;
    return s;
}

void pm_summaries_close(struct pm_summaries **summaries, uint64_t step)
{
    struct pm_summaries *s = *summaries;

    if (!s)
        return;
    pm_summaries_leave(s);
    if (s->train)
        warn(s, pm_events_session(s->train, PM_EVENTS_STOP, step, NULL));
    pm_events_close(&s->train);
    pm_events_close(&s->eval);
    pm_free(s->pictures);
    pm_free(s->records);
    for (int i = 1; s->labels && i < s->e->train_fields.count; i++)
        pm_free(s->labels[i]);
    pm_free(s->labels);
    pm_str_free(&s->tag);
    pm_free(s);
    *summaries = NULL;
}

void pm_summaries_leave(struct pm_summaries *s)
{
    if (!s)
        return;
    pm_activations_destroy(&s->activations.made);
    pm_activations_destroy(&s->heads.made);
}

/* ---- scalars ---------------------------------------------------------------------------- */

static void add_named(struct pm_summaries *s, const char *folder, const char *name, double value)
{
    char own[128];

    snprintf(own, sizeof own, "%s/%s", folder, name);
    add_scalar(s, own, value);
}

static void add_losses(struct pm_summaries *s, const struct pm_step_result *r,
                       const struct pm_loss_averages *averages)
{
    add_scalar(s, "total_loss", r->loss + (double)r->l2);
    for (int i = 0; i < r->part_count; i++)
        add_named(s, "losses", r->parts[i].name, r->parts[i].value);
    add_scalar(s, "losses/clone_loss", r->loss);
    add_scalar(s, "losses/regularization_loss", r->l2);
    for (int i = 0; i < averages->count; i++)
        add_named(s, "loss_averages", averages->list[i].name, averages->list[i].value);
}

void pm_summaries_step(struct pm_summaries *s, uint64_t step, const struct pm_summary_scalars *v)
{
    struct pm_events *e = s->train;
    char tag[64];

    if (!e)
        return;
    add_losses(s, v->result, v->averages);
    pm_events_scalar(e, "learning_rate", v->lr);
    pm_events_scalar(e, "gradient_norm", v->result->norm);
    if (v->rates.seconds_per_step > 0)
        pm_events_scalar(e, "global_step/sec", 1 / v->rates.seconds_per_step);
    pm_events_scalar(e, "speed/images_per_second", v->rates.images_per_second);
    pm_events_scalar(e, "speed/share_waiting_for_data", v->rates.wait_share);
    snprintf(tag, sizeof tag, "batch/fraction_of_%d_full", v->queue);
    pm_events_scalar(e, tag, v->queue_fill);
    for (int i = 0; v->clones > 1 && i < v->clones; i++) {
        snprintf(tag, sizeof tag, "speed/clone_%d_images_per_second", i);
        pm_events_scalar(e, tag, v->clone_images_per_second[i]);
    }
    warn(s, pm_events_write(e, step));
}

void pm_summaries_train(struct pm_summaries *s, const struct pm_train_values *v)
{
    for (int i = 0; s->train && i < v->of.metric_count; i++)
        if (isfinite(v->v[i]))
            add_scalar(s, v->of.metrics[i].tag, v->v[i]);
}

void pm_summaries_scalar(struct pm_summaries *s, const char *tag, double value)
{
    if (s->train && isfinite(value))
        pm_events_scalar(s->train, tag, value);
}

void pm_summaries_evaluation(struct pm_summaries *s, uint64_t step, const struct cJSON *metrics)
{
    if (!s->eval)
        return;
    pm_summaries_metrics(s->eval, s->e->config, metrics);
    warn(s, pm_events_write(s->eval, step));
}

void pm_summaries_saved(struct pm_summaries *s, uint64_t step)
{
    struct pm_str path = { 0 };

    if (!s->train)
        return;
    pm_str_add(&path, "%s/checkpoints/step-%06llu.safetensors", s->e->config->run.folder,
               (unsigned long long)step);
    warn(s, pm_events_session(s->train, PM_EVENTS_CHECKPOINT, step, path.text));
    pm_str_free(&path);
}

/* ---- histograms ------------------------------------------------------------------------- */

/* Several arrays, counted in parallel. Their counts are then added in order. */
struct counting {
    const struct pm_named_floats *list;
    struct pm_histogram *histogram;
    bool *bad;
};

static void count_range(void *ctx, size_t begin, size_t end)
{
    const struct counting *c = ctx;

    for (size_t i = begin; i < end; i++) {
        pm_histogram_start(&c->histogram[i]);
        c->bad[i] = pm_histogram_add(&c->histogram[i], c->list[i].v, c->list[i].count) < 0;
    }
}

static double zero_share(const struct pm_named_floats *f)
{
    size_t zeros = 0;

    for (size_t i = 0; i < f->count; i++)
        zeros += f->v[i] == 0;
    return f->count ? (double)zeros / (double)f->count : 0;
}

/* Tags are PREFIX NAME SUFFIX. sparsity: also adds the share of zeros in each array. */
static void add_histograms(struct pm_summaries *s, const struct pm_named_floats *list, size_t count,
                           const char *prefix, const char *suffix, bool sparsity)
{
    struct counting c = { .list = list };
    struct pm_str own = { 0 };

    c.histogram = pm_malloc((count + 1) * sizeof *c.histogram);
    c.bad = pm_calloc(count + 1, sizeof *c.bad);
    pm_parallel(count, 1, count_range, &c);
    for (size_t i = 0; i < count; i++) {
        own.length = 0;
        pm_str_add(&own, "%s%s%s", prefix, list[i].name, suffix);
        if (!c.bad[i])
            pm_events_histogram(s->train, tagged(s, own.text), &c.histogram[i]);
        else if (!s->warned_values)
            PM_WARN("events",
                    "%s has values that are not finite: no histogram is written (this warning "
                    "appears once)",
                    own.text);
        s->warned_values |= c.bad[i];
        if (!sparsity)
            continue;
        own.length = 0;
        pm_str_add(&own, "sparsity/%s", list[i].name);
        add_scalar(s, own.text, zero_share(&list[i]));
    }
    pm_str_free(&own);
    pm_free(c.histogram);
    pm_free(c.bad);
}

static void add_variables(struct pm_summaries *s, const struct pm_state *values,
                          const struct pm_variables *v)
{
    struct pm_named_floats *list = pm_calloc((size_t)v->count + 1, sizeof *list);

    for (int i = 0; i < v->count; i++)
        list[i] = (struct pm_named_floats){ v->list[i].name, pm_state_value(values, v, i),
                                            pm_shape_count(v->list[i].shape) };
    add_histograms(s, list, (size_t)v->count, "", "", false);
    pm_free(list);
}

/* Adds the gradients as passed to the optimizer, including weight decay and multipliers. */
static int add_gradients(struct pm_summaries *s, struct pm_variables *v)
{
    struct pm_named_floats *list = pm_calloc((size_t)v->count + 1, sizeof *list);
    char *block = pm_malloc(v->gradient_bytes + 1);
    size_t count = 0;
    int err = PM_OK;

    if (v->gradient_bytes)
        PM_TRY(pm_buffer_read(v->device, v->grads, 0, block, v->gradient_bytes));
    for (int i = 0; i < v->count; i++)
        if (v->list[i].trainable && pm_experiment_multiplier(v->list[i].name, s->e) != 0)
            list[count++] = (struct pm_named_floats){
                v->list[i].name, (const float *)(const void *)(block + v->offset[i]),
                pm_shape_count(v->list[i].shape) };
    add_histograms(s, list, count, "", "/gradients", false);
out:
    pm_free(list);
    pm_free(block);
    return err;
}

/* ---- pictures and activations ----------------------------------------------------------- */

bool pm_summaries_choose(struct pm_summaries *s, uint64_t step)
{
    const int64_t every = s->e->config->run.summary_every_steps;
    const double secs = s->e->config->run.summary_every_secs, now = secs > 0 ? pm_seconds() : 0;
    const bool by_time = secs > 0 && (s->written == 0 || now - s->written >= secs);
    const uint64_t n = (uint64_t)every, before = s->asked;

    s->chosen = 0;
    s->asked = step;
    if (!s->train || !(by_time || (every > 0 && (step / n > before / n || step == 1))))
        return false;
    s->chosen = step;
    s->written = by_time ? now : s->written;
    return true;
}

bool pm_summaries_observe(const struct pm_config *c)
{
    return c->run.summary_activations == PM_WORD &&
           (c->run.summary_every_steps > 0 || c->run.summary_every_secs > 0);
}

bool pm_summaries_due(const struct pm_summaries *s, uint64_t step)
{
    return s->chosen > 0 && s->chosen <= step;
}

void pm_summaries_batch(struct pm_summaries *s, const struct pm_batch *batch)
{
    s->frame = batch->frame;
    if (s->picture_count > (size_t)batch->examples) /* other processes have the rest of the batch */
        s->picture_count = (size_t)batch->examples;
    s->picture_floats = pm_shape_count(batch->fields[0].shape);
    memcpy(s->pictures, batch->field[0],
           s->picture_count * s->picture_floats * sizeof *s->pictures);
    memcpy(s->records, batch->record, s->picture_count * sizeof *s->records);
    for (int i = 1; s->labels && i < s->e->train_fields.count; i++)
        memcpy(s->labels[i], batch->field[i],
               s->picture_count * bytes_of(&batch->fields[i]));
}

static int add_picture(struct pm_summaries *s, const char *name, size_t i,
                       const struct pm_image8 *im)
{
    uint8_t *png = NULL;
    size_t size;
    char own[64];
    int err = PM_OK;

    PM_TRY(pm_image_encode_png(im, &png, &size));
    if (s->e->config->run.summary_images > 1)
        snprintf(own, sizeof own, "images/%s/%zu", name, i);
    else
        snprintf(own, sizeof own, "images/%s", name);
    pm_events_image(s->train, tagged(s, own), im->height, im->width, im->channels, png, size);
out:
    pm_free(png);
    return err;
}

/* Adds the records' own pictures; large pictures are shrunk. */
static int add_originals(struct pm_summaries *s, size_t count)
{
    enum { SIDE = 512 };
    struct pm_image8 im = { 0 }, small = { 0 };
    uint8_t *buf = NULL;
    size_t capacity = 0, size;
    char where[512];
    int err = PM_OK;

    for (size_t i = 0; i < count; i++) {
        const size_t record = (size_t)s->records[i];

        PM_TRY(pm_dataset_read(s->e->train, record, &buf, &capacity, &size));
        pm_dataset_where(s->e->train, record, where, sizeof where);
        PM_TRY(s->e->task_row->picture(s->e->task, buf, size, where, &im));
        pm_draw_shrink(&im, SIDE, &small);
        PM_TRY(add_picture(s, "original", i, &small));
        pm_image_free(&im);
        pm_image_free(&small);
    }
out:
    pm_image_free(&im);
    pm_image_free(&small);
    pm_free(buf);
    return err;
}

static int add_pictures(struct pm_summaries *s)
{
    struct pm_image8 im = { s->frame.height, s->frame.width, s->e->facts.channels,
                            pm_malloc(s->picture_floats + 1) };
    const size_t count = shown(s);
    int err = PM_OK;

    for (size_t i = 0; i < count; i++) {
        pm_picture_bytes(s->pictures + i * s->picture_floats, im.height, im.width, im.channels,
                         im.pixels);
        PM_TRY(add_picture(s, "image", i, &im));
    }
    if (s->e->config->run.summary_originals)
        PM_TRY(add_originals(s, count));
out:
    pm_image_free(&im);
    return err;
}

/* Computes the values of the heads or of all layers for the first pictures of the kept batch; *list
 * is valid until the next call. *count is 0 if there are none. */
static int run_values(struct pm_summaries *s, bool heads, int pictures, struct pm_device *device,
                      struct pm_variables *variables, const struct pm_named_floats **list,
                      int *count)
{
    struct shown_values *w = heads ? &s->heads : &s->activations;
    int err = PM_OK;

    *count = 0;
    if (w->off)
        return PM_OK;
    if (!w->made)
        err = pm_activations_create(s->e, s->frame, pictures, heads, device, variables, &w->made);
    if (err == PM_OK)
        err = pm_activations_run(w->made, s->frame, (const char *const *)s->labels, list, count);
    if (err == PM_OK || err == PM_ELOST)
        return err;
    PM_WARN("events", "run.summary_%s: %s; continuing without%s",
            heads ? "images" : "activations", pm_error_text(), heads ? " predictions" : "");
    w->off = true;
    pm_activations_destroy(&w->made);
    return PM_OK;
}

/* Adds labels and predictions. */
static int add_painted(struct pm_summaries *s, struct pm_device *device,
                       struct pm_variables *variables)
{
    const struct pm_named_floats *list = NULL;
    const float **head = NULL;
    struct pm_shape *shape = NULL;
    struct pm_shown all = { .count = (int)shown(s), .frame = s->frame,
                            .field = (const void *const *)s->labels };
    int err = PM_OK;

    if (!s->e->task_row->paint || all.count == 0)
        return PM_OK;
    PM_TRY(run_values(s, true, all.count, device, variables, &list, &all.heads));
    head = pm_calloc((size_t)all.heads + 1, sizeof *head);
    shape = pm_calloc((size_t)all.heads + 1, sizeof *shape);
    for (int i = 0; i < all.heads; i++) {
        const struct pm_shape whole = list[i].shape;

        head[i] = list[i].v;
        shape[i].rank = whole.rank - 1;
        memcpy(shape[i].dim, whole.dim + 1, (size_t)shape[i].rank * sizeof *whole.dim);
    }
    all.head = head;
    all.shape = shape;
    for (int i = 0; i < all.count; i++) {
        struct pm_drawings drawings = { 0 };

        s->e->task_row->paint(s->e->task, &all, i, &drawings);
        for (size_t k = 0; k < drawings.count; k++)
            warn(s, add_picture(s, drawings.list[k].what, (size_t)i, &drawings.list[k].image));
        pm_drawings_free(&drawings);
    }
out:
    pm_free(head);
    pm_free(shape);
    return err;
}

static int add_activations(struct pm_summaries *s, struct pm_device *device,
                           struct pm_variables *variables)
{
    const struct pm_named_floats *list = NULL;
    const int wanted = s->e->config->run.summary_activations, most = (int)s->picture_count;
    int count, err = PM_OK;

    PM_TRY(run_values(s, false, wanted < most ? wanted : most, device, variables, &list, &count));
    add_histograms(s, list, (size_t)count, "activations/", "", true);
out:
    return err;
}

/* Adds the layers' values of the training pass, which an observed step has copied out. */
static int add_observed(struct pm_summaries *s, const struct pm_clones *clones)
{
    const char *every = pm_experiment_train_output(s->e).node, *const *names;
    struct pm_named_floats *list = NULL;
    size_t count = 0, capacity = 0;
    int err = PM_OK;

    if (!s->observed)
        PM_TRY(pm_activations_observed(s->e, &s->observed));
    names = s->observed;
    for (; *names; names++) {
        struct pm_named_floats f = { .name = *names };

        f.v = pm_clones_observed(clones, *names, &f.shape);
        if (!f.v || (every && strcmp(every, *names) == 0)) /* that one has integers */
            continue;
        f.count = pm_shape_count(f.shape);
        PM_GROW(list, count, capacity);
        list[count++] = f;
    }
    add_histograms(s, list, count, "activations/", "", true);
out:
    pm_free(list);
    return err;
}

int pm_summaries_write(struct pm_summaries *s, uint64_t step, const struct pm_state *values,
                       const struct pm_clones *clones)
{
    struct pm_variables *master = pm_clones_master(clones);
    struct pm_variables *variables = pm_clones_variables(clones, 0);
    struct pm_device *device = pm_clones_device(clones, 0);
    double begin = pm_seconds();
    int err = PM_OK;

    add_variables(s, values, master);
    if (s->e->config->run.summary_gradients)
        PM_TRY(add_gradients(s, master));
    if (pm_summaries_observe(s->e->config))
        PM_TRY(add_observed(s, clones));
    else
        PM_TRY(add_activations(s, device, variables));
    PM_TRY(add_painted(s, device, variables));
    warn(s, add_pictures(s));
    warn(s, pm_events_write(s->train, step));
    PM_DEBUG("events", "step %llu: summaries in %.1f ms", (unsigned long long)step,
             1000 * (pm_seconds() - begin));
out:
    return err;
}
