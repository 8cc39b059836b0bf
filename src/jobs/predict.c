/* predict: runs image files through the net, a few at a time. If the outputs are maps over the
 * picture, a picture smaller than the input is not padded. It goes through the net alone, at its
 * own size. */
#include <pumice/report.h>
#include <pumice/train.h>

#include "jobs/session.h"
#include "net/sizes.h"

#include <cjson/cJSON.h>
#include <string.h>

enum { MOST = 8, SIZES = 8 }; /* pictures at once; number of sizes whose plans are kept */

/* ---- files ------------------------------------------------------------------------------ */

struct files {
    struct pm_arena *arena;
    const char *out; /* the output folder, whose pictures are not read; NULL: none */
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

/* Refuses an output folder that holds input pictures, because a picture may have an output's
 * name. */
static int check_out(const struct files *f)
{
    for (size_t i = 0; f->out && i < f->count; i++) {
        const char *slash = strrchr(f->path[i], '/');
        const char *folder = slash ? pm_arena_printf(f->arena, "%.*s", (int)(slash - f->path[i]) + 1,
                                                     f->path[i]) : ".";

        if (pm_same_file(folder, f->out))
            return pm_fail(PM_ECONFIG, "--out: %s is the folder of %s itself, which may be overwritten: "
                           "name another one", f->out, f->path[i]);
    }
    return PM_OK;
}

/* ---- one batch -------------------------------------------------------------------------- */

struct predictor {
    struct pm_session s;
    struct pm_sizes *sizes;
    struct pm_outputs outputs;
    size_t stride[PM_MAX_OUTPUTS];   /* bytes of one picture's output at the input's size */
    size_t element[PM_MAX_OUTPUTS];  /* bytes of one position of the output, if it is a map */
    void *framed[PM_MAX_OUTPUTS];    /* owned: a smaller picture's outputs, framed to the input's
                                      * size */
    bool own_sizes;                  /* smaller pictures have their own plans */
    const char *const *files; /* borrowed */
    const char *out;
    int batch;
    size_t damaged; /* number of files so far that could not be read */
};
/* One file of a batch. */
struct file {
    size_t index;
    struct cJSON *object;       /* of the report; borrowed */
    struct pm_image8 picture;   /* owned */
    int height, width;          /* size at which it goes through the net */
    bool done;
};

static bool is_whole(const struct predictor *p, int height, int width)
{
    return height == p->s.e->facts.eval_height && width == p->s.e->facts.eval_width;
}

/* Implements pm_sizes_options.make. Pictures of the input's size go through the net several at a
 * time, others one by one. */
static int make_plan(void *ctx, int height, int width, struct pm_shared_memory *shared,
                     struct pm_sized *out)
{
    struct predictor *p = ctx;
    const int batch = is_whole(p, height, width) ? p->batch : 1;
    struct pm_outputs outputs;
    int err = PM_OK;

    PM_TRY(pm_experiment_net(p->s.e, (struct pm_net_want){ PM_USE_PREDICT, batch, height, width },
                             &out->net, &outputs));
    err = pm_experiment_plan(p->s.e, out->net, batch, PM_USE_PREDICT, &outputs, p->s.device,
                             p->s.variables, 1, shared, &out->plan);
    if (err < 0)
        pm_experiment_forget(p->s.e, &out->net);
out:
    return err;
}

static void release_net(void *ctx, struct pm_net *net)
{
    pm_experiment_forget(((struct predictor *)ctx)->s.e, &net);
}

/* Whether all outputs are maps of the input's size. A smaller picture's outputs are then a part of
 * them. */
static bool are_maps(const struct predictor *p, const struct pm_net *net)
{
    const struct pm_task_facts *s = &p->s.e->facts;

    for (int i = 0; i < p->outputs.count; i++) {
        const struct pm_shape y = pm_net_find(net, p->outputs.node[i])->out_shape;

        if (y.rank < 3 || y.dim[1] != s->eval_height || y.dim[2] != s->eval_width)
            return false;
    }
    return p->s.e->task_row->spatial && s->preprocessing->maps;
}

static int open_sizes(struct predictor *p)
{
    const struct pm_task_facts *s = &p->s.e->facts;
    struct pm_net *net = NULL;
    int err = PM_OK;

    PM_TRY(pm_experiment_net(p->s.e, (struct pm_net_want){ PM_USE_PREDICT, p->batch, 0, 0 }, &net,
                             &p->outputs));
    p->own_sizes = are_maps(p, net);
    for (int i = 0; i < p->outputs.count; i++) {
        const struct pm_node *n = pm_net_find(net, p->outputs.node[i]);

        p->stride[i] = pm_shape_count(n->out_shape) / (size_t)p->batch * pm_type_size(n->out_type);
        p->element[i] = p->stride[i] / ((size_t)s->eval_height * (size_t)s->eval_width);
        if (p->own_sizes)
            p->framed[i] = pm_calloc(p->stride[i], 1);
        p->outputs.node[i] = pm_strdup(p->outputs.node[i]); /* its net may be freed */
    }
    p->sizes = pm_sizes_create(&(struct pm_sizes_options){
        .device = p->s.device, .keep = SIZES, .make = make_plan, .release = release_net,
        .ctx = p });
out:
    pm_net_destroy(&net);
    return err;
}

static void close_sizes(struct predictor *p)
{
    pm_sizes_destroy(&p->sizes);
    for (int i = 0; i < p->outputs.count; i++) {
        pm_free((char *)p->outputs.node[i]);
        pm_free(p->framed[i]);
    }
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

/* Returns the length of a file's name without folder and ending. */
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

/* Writes OUT/NAME.png. NAME is the file's name without its ending, followed by picture->what. If an
 * earlier picture has the same name (taken), the file's index precedes the name. */
static int write_picture(const struct predictor *p, size_t index, bool taken,
                         const struct pm_picture *picture)
{
    char path[4096];
    const char *name;
    uint8_t *png = NULL;
    size_t size;
    int err = PM_OK, length = stem_of(p->files[index], &name);

    if (taken)
        snprintf(path, sizeof path, "%s/%zu-%.*s%s.png", p->out, index, length, name, picture->what);
    else
        snprintf(path, sizeof path, "%s/%.*s%s.png", p->out, length, name, picture->what);
    PM_TRY(pm_image_encode_png(&picture->image, &png, &size));
    PM_TRY(pm_file_write(path, png, size));
out:
    pm_free(png);
    return err;
}

static int show(const struct predictor *p, const struct file *f, const void *const *outputs)
{
    struct pm_image8 picture = { f->picture.height, f->picture.width, f->picture.channels, NULL };
    struct pm_picture pictures[PM_MAX_PICTURES] = { 0 };
    int err = PM_OK;

    if (p->out)
        PM_TRY(read_image(p->files[f->index], 3, &picture));
    PM_TRY(p->s.e->task_row->present(p->s.e->task, outputs, &picture, f->object,
                                     p->out ? pictures : NULL));
    const bool taken = p->out && is_taken(p, f->index);
    for (int k = 0; k < PM_MAX_PICTURES && pictures[k].what; k++)
        PM_TRY(write_picture(p, f->index, taken, &pictures[k]));
out:
    for (int k = 0; k < PM_MAX_PICTURES; k++)
        pm_image_free(&pictures[k].image);
    pm_image_free(&picture);
    return err;
}

/* Reports and skips files that are damaged or not pictures: turns their error into PM_OK. */
static int skip_damaged(struct predictor *p, struct file *f, int err)
{
    if (err != PM_EDATA)
        return err;
    PM_WARN("predict", "%s", pm_error_text());
    cJSON_AddStringToObject(f->object, "error", pm_error_text());
    f->done = true;
    p->damaged++;
    return PM_OK;
}

/* Reads the picture and sets the size at which it goes through the net. */
static int read_file(const struct predictor *p, struct file *f)
{
    const struct pm_task_facts *s = &p->s.e->facts;
    const char *path = p->files[f->index];
    struct pm_framing place;
    int err = PM_OK;

    f->height = s->eval_height, f->width = s->eval_width;
    PM_TRY(read_image(path, s->channels == 1 ? PM_GREY_OR_COLOR : s->channels, &f->picture));
    if (!p->own_sizes)
        return PM_OK;
    PM_TRY(pm_preprocessing_frame(s->preprocessing, s->preprocessing_cfg, f->picture.height,
                                  f->picture.width, s->eval_height, s->eval_width, path, &place));
    f->height = place.height, f->width = place.width;
out:
    return err;
}

static int apply(const struct predictor *p, const struct file *f, float *in)
{
    const struct pm_task_facts *s = &p->s.e->facts;
    const struct pm_occasion o = { .height = f->height, .width = f->width, .channels = s->channels,
                                   .where = p->files[f->index] };
    struct pm_placed placed;
    int err = PM_OK;

    PM_TRY(pm_place_with(s->preprocessing, s->preprocessing_cfg, NULL, &f->picture, &o, &placed));
    pm_placed_picture(&placed, &f->picture, in);
out:
    return err;
}

/* Copies a smaller picture's outputs into the top left corner of outputs of the input's size. */
static void frame(const struct predictor *p, const struct file *f, const struct pm_plan *plan)
{
    const size_t columns = (size_t)p->s.e->facts.eval_width;

    for (int k = 0; k < p->outputs.count; k++) {
        const size_t row = (size_t)f->width * p->element[k], line = columns * p->element[k];
        const char *y = pm_plan_output(plan, 0, p->outputs.node[k], 0);

        for (int i = 0; i < f->height; i++)
            memcpy((char *)p->framed[k] + (size_t)i * line, y + (size_t)i * row, row);
    }
}

/* Predicts a smaller picture at its own size. If the net cannot be built for this size, the picture
 * is later padded to the input's size. */
static int predict_smaller(struct predictor *p, struct file *f)
{
    struct pm_sized sized;
    int err = pm_sizes_get(p->sizes, f->height, f->width, &sized);

    if (err == PM_ECONFIG) {
        f->height = p->s.e->facts.eval_height, f->width = p->s.e->facts.eval_width;
        return PM_OK;
    }
    PM_TRY(err);
    PM_TRY(apply(p, f, pm_plan_input(sized.plan, 0, "images", 0)));
    PM_TRY(pm_plan_submit(sized.plan, 0));
    PM_TRY(pm_plan_wait(sized.plan, 0));
    frame(p, f, sized.plan);
    PM_TRY(show(p, f, (const void *const *)p->framed));
    f->done = true;
out:
    return err;
}

static int predict_whole(struct predictor *p, struct file *files, size_t count)
{
    const struct pm_task_facts *s = &p->s.e->facts;
    const size_t floats = (size_t)s->eval_height * (size_t)s->eval_width * (size_t)s->channels;
    struct pm_sized sized;
    const void *outputs[PM_MAX_OUTPUTS] = { NULL };
    int err = PM_OK;

    PM_TRY(pm_sizes_get(p->sizes, s->eval_height, s->eval_width, &sized));
    float *in = pm_plan_input(sized.plan, 0, "images", 0);
    memset(in, 0, (size_t)p->batch * floats * sizeof(float));
    for (size_t i = 0; i < count; i++)
        if (!files[i].done) {
            PM_TRY(skip_damaged(p, &files[i], apply(p, &files[i], in + i * floats)));
            if (files[i].done)
                memset(in + i * floats, 0, floats * sizeof *in);
        }
    PM_TRY(pm_plan_submit(sized.plan, 0));
    PM_TRY(pm_plan_wait(sized.plan, 0));
    for (size_t i = 0; i < count; i++) {
        for (int k = 0; k < p->outputs.count; k++)
            outputs[k] = (const char *)pm_plan_output(sized.plan, 0, p->outputs.node[k], 0) +
                         i * p->stride[k];
        if (!files[i].done)
            PM_TRY(show(p, &files[i], outputs));
    }
out:
    return err;
}

static int predict_batch(struct predictor *p, size_t first, size_t count, struct cJSON *images)
{
    struct file files[MOST] = { 0 };
    size_t whole = 0;
    int err = PM_OK;

    for (size_t i = 0; i < count; i++) {
        struct file *f = &files[i];

        f->index = first + i;
        f->object = cJSON_CreateObject();
        cJSON_AddItemToArray(images, f->object);
        cJSON_AddStringToObject(f->object, "file", p->files[f->index]);
        PM_TRY(skip_damaged(p, f, read_file(p, f)));
        if (!f->done && !is_whole(p, f->height, f->width))
            PM_TRY(skip_damaged(p, f, predict_smaller(p, f)));
        whole += !f->done;
    }
    if (whole > 0)
        PM_TRY(predict_whole(p, files, count));
out:
    for (size_t i = 0; i < count; i++)
        pm_image_free(&files[i].picture);
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
    PM_TRY(open_sizes(&p));
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
    close_sizes(&p);
    pm_session_close(&p.s);
    pm_free(f.path);
    pm_arena_destroy(&f.arena);
    return err;
}
