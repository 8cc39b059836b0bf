/* predict: image files through the net, a few at a time. */
#include <pumice/report.h>
#include <pumice/train.h>

#include "jobs/session.h"

#include <cjson/cJSON.h>
#include <string.h>

enum { MOST = 8 }; /* pictures at once */

/* ---- files ------------------------------------------------------------------------------ */

struct files {
    struct pm_arena *arena;
    const char *out; /* the folder that is written to, whose pictures are not read; NULL: none */
    const char **path;
    size_t count, capacity;
};

static int add_path(struct files *f, const char *path)
{
    char **names;
    size_t count;
    int err = PM_OK;

    if (!pm_is_folder(path)) {
        PM_GROW(f->path, f->count, f->capacity);
        f->path[f->count++] = pm_arena_strdup(f->arena, path);
        return PM_OK;
    }
    PM_TRY(pm_list_folder(f->arena, path, &names, &count));
    for (size_t i = 0; i < count; i++) {
        const char *inner = pm_arena_printf(f->arena, "%s/%s", path, names[i]);

        if (f->out && pm_same_file(inner, f->out))
            continue;
        if (pm_is_folder(inner) || pm_image_named(inner))
            PM_TRY(add_path(f, inner));
    }
out:
    return err;
}

/* A picture may have the name that is written. */
static int check_out(const struct files *f)
{
    for (size_t i = 0; f->out && i < f->count; i++) {
        const char *slash = strrchr(f->path[i], '/');
        const char *folder =
            slash ? pm_arena_printf(f->arena, "%.*s", (int)(slash - f->path[i]) + 1, f->path[i])
                  : ".";

        if (pm_same_file(folder, f->out))
            return pm_fail(PM_ECONFIG,
                           "--out: %s is the folder of %s itself, which may be overwritten: "
                           "name another one",
                           f->out, f->path[i]);
    }
    return PM_OK;
}

/* ---- one batch -------------------------------------------------------------------------- */

struct predictor {
    struct pm_session s;
    struct pm_net *net;
    struct pm_plan *plan;
    struct pm_outputs outputs;
    size_t *stride;           /* per output: bytes of one picture; owned */
    const void **values;      /* per output: values of one picture; owned */
    const char *const *files; /* borrowed */
    const char *out;
    int batch;
    size_t damaged; /* files so far that could not be read */
    struct pm_image8 size[MOST]; /* of the batch's pictures; no pixels */
};

static int make_plan(struct predictor *p)
{
    int err = PM_OK;

    PM_TRY(pm_experiment_net(p->s.e, (struct pm_net_want){ PM_USE_PREDICT, p->batch, 0, 0 },
                             &p->net, &p->outputs));
    p->stride = pm_calloc((size_t)p->outputs.count, sizeof *p->stride);
    p->values = pm_calloc((size_t)p->outputs.count, sizeof *p->values);
    for (int i = 0; i < p->outputs.count; i++) {
        const struct pm_node *n = pm_net_find(p->net, p->outputs.node[i]);

        p->stride[i] = pm_shape_count(n->out_shape) / (size_t)p->batch * pm_type_size(n->out_type);
    }
    PM_TRY(pm_experiment_plan(p->s.e, p->net, p->batch, PM_USE_PREDICT, &p->outputs, p->s.device,
                              p->s.variables, 1, &p->plan));
    PM_TRY(pm_plan_load(p->plan));
out:
    return err;
}

static int read_image(const char *path, int channels, struct pm_image8 *out)
{
    char *bytes = NULL;
    size_t size;
    int err = PM_OK;

    PM_TRY(pm_file_read(path, &bytes, &size));
    PM_TRY(pm_image_decode(bytes, size, channels, 0, path, out));
out:
    pm_free(bytes);
    return err;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Length of a file's name without folder and ending. */
static int stem_of(const char *path, const char **name)
{
    const char *dot;

    *name = base_name(path);
    dot = strrchr(*name, '.');
    return dot && dot > *name ? (int)(dot - *name) : (int)strlen(*name);
}

static bool is_taken(const struct predictor *p, size_t index)
{
    const char *name, *other;
    int length = stem_of(p->files[index], &name);

    for (size_t i = 0; i < index; i++)
        if (stem_of(p->files[i], &other) == length &&
            strncmp(name, other, (size_t)length) == 0)
            return true;
    return false;
}

/* OUT/NAME.png, NAME without its ending, what the picture is called behind it; of pictures of one
 * name the later ones get their place in the list before it. */
static int write_picture(const struct predictor *p, size_t index, bool taken,
                         const struct pm_drawing *picture)
{
    char path[4096];
    const char *name;
    uint8_t *png = NULL;
    size_t size;
    int err = PM_OK, length = stem_of(p->files[index], &name);

    if (taken)
        snprintf(path, sizeof path, "%s/%zu-%.*s%s.png", p->out, index, length, name,
                 picture->what);
    else
        snprintf(path, sizeof path, "%s/%.*s%s.png", p->out, length, name, picture->what);
    PM_TRY(pm_image_encode_png(&picture->image, &png, &size));
    PM_TRY(pm_file_write(path, png, size));
out:
    pm_free(png);
    return err;
}

/* i: the picture's place in its batch. */
static int show(const struct predictor *p, size_t index, size_t i, struct cJSON *images)
{
    const char *file = p->files[index];
    struct pm_image8 picture = p->size[i];
    struct pm_drawings drawings = { 0 };
    struct cJSON *object = cJSON_CreateObject();
    int err = PM_OK;

    cJSON_AddItemToArray(images, object);
    cJSON_AddStringToObject(object, "file", file);
    if (p->out)
        PM_TRY(read_image(file, 3, &picture));
    for (int k = 0; k < p->outputs.count; k++)
        p->values[k] = (const char *)pm_plan_output(p->plan, 0, p->outputs.node[k], 0) +
                       i * p->stride[k];
    PM_TRY(p->s.e->task_row->present(p->s.e->task, pm_experiment_frame(p->s.e, false), p->values,
                                     &picture, object, p->out ? &drawings : NULL));
    const bool taken = p->out && is_taken(p, index);
    for (size_t k = 0; k < drawings.count; k++)
        PM_TRY(write_picture(p, index, taken, &drawings.list[k]));
out:
    pm_drawings_free(&drawings);
    pm_image_free(&picture);
    return err;
}

/* The picture as the net wants it. */
static int prepare(const struct predictor *p, const char *file, float *in, struct pm_image8 *size)
{
    const struct pm_task_facts *s = &p->s.e->facts;
    const struct pm_occasion o = { .height = s->eval_height, .width = s->eval_width,
                                   .channels = s->channels, .where = file };
    struct pm_image8 picture = { 0 };
    struct pm_placed placed;
    int err = PM_OK;

    PM_TRY(read_image(file, s->channels == 1 ? PM_GREY_OR_COLOR : s->channels, &picture));
    *size = (struct pm_image8){ picture.height, picture.width, picture.channels, NULL };
    PM_TRY(pm_place_with(s->preprocessing, s->preprocessing_cfg, NULL, &picture, &o, &placed));
    pm_placed_picture(&placed, &picture, in);
out:
    pm_image_free(&picture);
    return err;
}

static void show_damaged(struct predictor *p, const char *file, const char *why,
                         struct cJSON *images)
{
    struct cJSON *object = cJSON_CreateObject();

    PM_WARN("predict", "%s", why);
    cJSON_AddStringToObject(object, "file", file);
    cJSON_AddStringToObject(object, "error", why);
    cJSON_AddItemToArray(images, object);
    p->damaged++;
}

/* Files that are no pictures, or damaged, are reported and skipped. */
static int predict_batch(struct predictor *p, size_t first, size_t count, struct cJSON *images)
{
    const char *const *files = p->files + first;
    const struct pm_task_facts *s = &p->s.e->facts;
    size_t floats = (size_t)s->eval_height * (size_t)s->eval_width * (size_t)s->channels;
    float *in = pm_plan_input(p->plan, 0, "images", 0);
    char *why[MOST] = { NULL };
    int err = PM_OK;

    memset(in, 0, (size_t)p->batch * floats * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        err = prepare(p, files[i], in + i * floats, &p->size[i]);
        if (err == PM_EDATA) {
            why[i] = pm_strdup(pm_error_text());
            memset(in + i * floats, 0, floats * sizeof *in);
            err = PM_OK;
        }
        PM_TRY(err);
    }
    PM_TRY(pm_plan_submit(p->plan, 0));
    PM_TRY(pm_plan_wait(p->plan, 0));
    for (size_t i = 0; i < count; i++) {
        if (why[i])
            show_damaged(p, files[i], why[i], images);
        else
            PM_TRY(show(p, first + i, i, images));
    }
out:
    for (size_t i = 0; i < count; i++)
        pm_free(why[i]);
    return err;
}

int pm_predict(const struct pm_config *c, const char *const *paths, size_t count, const char *out,
               struct cJSON *report)
{
    struct predictor p = { .out = out };
    struct files f = { .arena = pm_arena_create(), .out = out };
    struct pm_progress *bar = NULL;
    struct cJSON *images;
    int err = PM_OK;

    for (size_t i = 0; i < count; i++) {
        if (!pm_file_exists(paths[i]) && !pm_is_folder(paths[i]))
            PM_TRY(pm_fail(PM_EDATA, "%s: there is no such file or folder", paths[i]));
        PM_TRY(add_path(&f, paths[i]));
    }
    if (f.count == 0)
        PM_TRY(pm_fail(PM_EDATA, "no image files (" PM_IMAGE_ENDINGS ") in what was named"));
    PM_TRY(check_out(&f));
    p.files = f.path;
    p.batch = c->eval.batch_size < MOST ? c->eval.batch_size : MOST;
    PM_TRY(pm_session_open(c, false, (struct pm_net_want){ PM_USE_PREDICT, p.batch, 0, 0 }, &p.s));
    PM_TRY(make_plan(&p));
    if (out)
        PM_TRY(pm_make_folders(out));
    pm_session_add_step(&p.s, report);
    images = cJSON_AddArrayToObject(report, "images");
    if (f.count > (size_t)p.batch)
        bar = pm_progress_start(&(struct pm_progress_options){ .what = "predict", .unit = "picture",
                                                               .last = f.count });
    for (size_t at = 0; at < f.count; at += (size_t)p.batch) {
        size_t n = f.count - at < (size_t)p.batch ? f.count - at : (size_t)p.batch;

        PM_TRY(predict_batch(&p, at, n, images));
        if (bar)
            pm_progress_count(bar, at + n, at + n, -1);
    }
    cJSON_AddNumberToObject(report, "damaged", (double)p.damaged);
out:
    pm_progress_end(&bar);
    pm_plan_destroy(&p.plan);
    pm_net_destroy(&p.net);
    pm_free(p.stride);
    pm_free(p.values);
    pm_session_close(&p.s);
    pm_free(f.path);
    pm_arena_destroy(&f.arena);
    return err;
}
