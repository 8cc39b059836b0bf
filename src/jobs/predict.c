/* predict: image files through the net, a few at a time. If each picture keeps its own size, files
 * of one frame go through the net together; the report lists all files in their order. */
#include <pumice/report.h>
#include <pumice/train.h>

#include "data/folder_chain.h"
#include "experiment/net_sizes.h"
#include "jobs/session.h"

#include <cjson/cJSON.h>
#include <string.h>

enum { MOST = 8 }; /* pictures at once */

/* ---- files ------------------------------------------------------------------------------ */

struct files {
    struct pm_arena *arena;
    const char *out; /* the folder that is written to, whose pictures are not read; NULL: none */
    struct file {
        const char *path, *below; /* below: without the folder that was named; in the arena */
    } *list;                      /* owned */
    size_t count, capacity;
    const char **other; /* what the folders hold beside pictures; owned, texts in the arena */
    size_t other_count, other_capacity;
};

static void add_other(struct files *f, const char *path)
{
    PM_GROW(f->other, f->other_count, f->other_capacity);
    f->other[f->other_count++] = path;
}

/* below: the end of path, behind the folder that was named. A link to a folder that contains it is
 * not followed. */
static int add_path(struct files *f, const char *path, const char *below,
                    const struct pm_folder_chain *above)
{
    struct pm_folder_chain own;
    char **names;
    size_t count;
    int err = PM_OK;

    if (!pm_is_folder(path)) {
        PM_GROW(f->list, f->count, f->capacity);
        f->list[f->count++] = (struct file){ pm_arena_strdup(f->arena, path),
                                             pm_arena_strdup(f->arena, below) };
        return PM_OK;
    }
    if (!pm_folder_enter(path, above, &own) && above)
        return PM_OK;
    PM_TRY(pm_list_folder(f->arena, path, &names, &count));
    for (size_t i = 0; i < count; i++) {
        const char *inner = pm_arena_printf(f->arena, "%s/%s", path, names[i]);

        if (f->out && pm_same_file(inner, f->out))
            continue;
        if (pm_is_folder(inner) || pm_image_named(inner))
            PM_TRY(add_path(f, inner, *below ? pm_arena_printf(f->arena, "%s/%s", below, names[i])
                                             : names[i], &own));
        else if (names[i][0] != '.')
            add_other(f, inner);
    }
out:
    return err;
}

/* Returns what a path of the command line adds to the paths below OUT: a file its name, a folder
 * nothing, but with several paths its name, too. */
static const char *named(const struct files *f, const char *path, size_t count)
{
    size_t length = strlen(path);
    const char *begin;

    while (length > 1 && path[length - 1] == '/')
        length--;
    begin = path + length;
    while (begin > path && begin[-1] != '/')
        begin--;
    const char *name = pm_arena_printf(f->arena, "%.*s", (int)(path + length - begin), begin);
    const bool plain = strcmp(name, ".") != 0 && strcmp(name, "..") != 0;

    return pm_is_folder(path) && (count == 1 || !plain) ? "" : name;
}

/* Names the files in the folders that are not read. */
static void report_others(const struct files *f, struct cJSON *report)
{
    enum { NAMED = 10 };
    struct cJSON *list = cJSON_AddArrayToObject(report, "not_read");

    for (size_t i = 0; i < f->other_count; i++) {
        if (i < NAMED)
            PM_WARN("predict", "%s: not read: its name does not end like that of a picture",
                    f->other[i]);
        cJSON_AddItemToArray(list, cJSON_CreateString(f->other[i]));
    }
    if (f->other_count > NAMED)
        PM_WARN("predict", "%zu further files are not read (--json lists them)",
                f->other_count - NAMED);
}

/* Returns path without its last part, "." if it has one part. */
static const char *folder_of(const struct files *f, const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? pm_arena_printf(f->arena, "%.*s", (int)(slash - path) + 1, path) : ".";
}

/* Fails if a picture of the list is in this folder, which drawings are written to. */
static int check_folder(const struct files *f, const char *folder)
{
    const char *last = "";

    if (!pm_is_folder(folder))
        return PM_OK;
    for (size_t i = 0; i < f->count; i++) {
        const char *own = folder_of(f, f->list[i].path);

        if (strcmp(own, last) != 0 && pm_same_file(own, folder))
            return pm_fail(PM_ECONFIG,
                           "--out: %s is also the folder of %s, which could be overwritten: name "
                           "another folder",
                           folder, f->list[i].path);
        last = own;
    }
    return PM_OK;
}

/* A picture may have the name that is written. */
static int check_out(const struct files *f)
{
    const char *last = "";
    int err = PM_OK;

    if (!f->out)
        return PM_OK;
    PM_TRY(check_folder(f, f->out));
    for (size_t i = 0; i < f->count; i++) {
        const char *below = folder_of(f, f->list[i].below);

        if (strcmp(below, last) != 0 && strcmp(below, ".") != 0)
            PM_TRY(check_folder(f, pm_arena_printf(f->arena, "%s/%s", f->out, below)));
        last = below;
    }
out:
    return err;
}

/* ---- one batch -------------------------------------------------------------------------- */

struct predictor {
    struct pm_session s;
    struct pm_frame_groups groups; /* of the files, if each picture keeps its size; else one */
    struct pm_net_sizes *sizes;
    struct pm_net_of_size now; /* the net of the batch */
    size_t *stride;           /* per output: bytes of one picture; owned */
    const void **values;      /* per output: values of one picture; owned */
    const struct file *files; /* borrowed */
    struct cJSON **object;    /* per file: its part of the report; the list is owned */
    const char *out;
    size_t damaged; /* files so far that could not be read */
    struct pm_image8 size[MOST]; /* of the batch's pictures; no pixels */
};

static void name_file(void *ctx, uint64_t file, char *out, size_t size)
{
    snprintf(out, size, "%s", ((const struct predictor *)ctx)->files[file].path);
}

/* Takes the net of a frame. */
static int take_net(struct predictor *p, struct pm_frame frame)
{
    int err = PM_OK;

    PM_TRY(pm_net_sizes_get(p->sizes, frame, &p->now));
    const size_t count = (size_t)p->now.outputs.count + 1;
    p->stride = pm_realloc(p->stride, count * sizeof *p->stride);
    p->values = pm_realloc(p->values, count * sizeof *p->values);
    for (int i = 0; i < p->now.outputs.count; i++) {
        const struct pm_node *n = pm_net_find(p->now.net, p->now.outputs.node[i]);

        p->stride[i] =
            pm_shape_count(n->out_shape) / (size_t)p->now.batch * pm_type_size(n->out_type);
    }
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

/* Length of a path without the ending of its name. */
static int stem_of(const char *path)
{
    const char *name = base_name(path), *dot = strrchr(name, '.');

    return dot && dot > name ? (int)(dot - path) : (int)strlen(path);
}

static bool is_taken(const struct predictor *p, size_t index)
{
    const char *own = p->files[index].below;
    const int length = stem_of(own);

    for (size_t i = 0; i < index; i++)
        if (stem_of(p->files[i].below) == length &&
            strncmp(own, p->files[i].below, (size_t)length) == 0)
            return true;
    return false;
}

/* OUT/FOLDERS/NAME.png: the folders below the named one, NAME without its ending, and what the
 * picture is called behind it. Of pictures of one name the later ones get their place in the list
 * before it. */
static int write_picture(const struct predictor *p, size_t index, bool taken,
                         const struct pm_drawing *picture)
{
    const char *below = p->files[index].below, *name = base_name(below);
    const int folders = (int)(name - below);
    struct pm_str path = { 0 };
    uint8_t *png = NULL;
    size_t size;
    int err = PM_OK;

    pm_str_add(&path, "%s/%.*s", p->out, folders, below);
    PM_TRY(pm_make_folders(path.text));
    if (taken)
        pm_str_add(&path, "%zu-", index);
    pm_str_add(&path, "%.*s%s.png", stem_of(below) - folders, name, picture->what);
    PM_TRY(pm_image_encode_png(&picture->image, &png, &size));
    PM_TRY(pm_file_write(path.text, png, size));
out:
    pm_str_free(&path);
    pm_free(png);
    return err;
}

/* i: the picture's place in its batch. */
static int show(const struct predictor *p, size_t index, size_t i)
{
    struct pm_image8 picture = p->size[i];
    struct pm_drawings drawings = { 0 };
    int err = PM_OK;

    if (p->out)
        PM_TRY(read_image(p->files[index].path, 3, &picture));
    for (int k = 0; k < p->now.outputs.count; k++)
        p->values[k] = (const char *)pm_plan_output(p->now.plan, 0, p->now.outputs.node[k], 0) +
                       i * p->stride[k];
    PM_TRY(p->s.e->task_row->present(p->s.e->task, p->now.frame, p->values, &picture,
                                     p->object[index], p->out ? &drawings : NULL));
    const bool taken = p->out && is_taken(p, index);
    for (size_t k = 0; k < drawings.count; k++)
        PM_TRY(write_picture(p, index, taken, &drawings.list[k]));
out:
    pm_drawings_free(&drawings);
    pm_image_free(&picture);
    return err;
}

/* Finds the frame of a picture of this size. */
static int frame_of(const struct predictor *p, const char *file, int height, int width,
                    struct pm_frame *out)
{
    const struct pm_occasion o = { .where = file };

    return p->s.e->task_row->frame(p->s.e->task, &o, height, width, out);
}

/* Returns PM_EDATA if the picture's header gave it another frame than its pixels need. */
static int check_frame(const struct predictor *p, const char *file, const struct pm_image8 *picture)
{
    struct pm_frame needs;
    int err = PM_OK;

    PM_TRY(frame_of(p, file, picture->height, picture->width, &needs));
    if (needs.height != p->now.frame.height || needs.width != p->now.frame.width)
        PM_TRY(pm_fail(PM_EDATA, "%s: the picture's header and its pixels differ in size. Export "
                       "it again, or remove it", file));
out:
    return err;
}

/* Writes the picture as the net wants it. window: its part of the input, 4 numbers; NULL: the net
 * does not need it. */
static int prepare(const struct predictor *p, const char *file, float *in, float *window,
                   struct pm_image8 *size)
{
    const struct pm_task_facts *s = &p->s.e->facts;
    const struct pm_occasion o = { .height = p->now.frame.height, .width = p->now.frame.width,
                                   .channels = s->channels, .own_size = s->own_sizes,
                                   .where = file };
    struct pm_image8 picture = { 0 };
    struct pm_placed placed;
    int err = PM_OK;

    PM_TRY(read_image(file, s->channels == 1 ? PM_GREY_OR_COLOR : s->channels, &picture));
    *size = (struct pm_image8){ picture.height, picture.width, picture.channels, NULL };
    if (s->own_sizes)
        PM_TRY(check_frame(p, file, &picture));
    PM_TRY(pm_place_with(s->preprocessing, s->preprocessing_cfg, NULL, &picture, &o, &placed));
    pm_placed_picture(&placed, &picture, in);
    if (window)
        pm_placed_window(&placed, window);
out:
    pm_image_free(&picture);
    return err;
}

static void show_damaged(struct predictor *p, size_t index, const char *why)
{
    PM_WARN("predict", "%s", why);
    cJSON_AddStringToObject(p->object[index], "error", why);
    p->damaged++;
}

/* Files that are no pictures, or damaged, are reported and skipped. files: [count] indices. */
static int predict_batch(struct predictor *p, const uint64_t *files, size_t count)
{
    const size_t floats = (size_t)p->now.frame.height * (size_t)p->now.frame.width *
                          (size_t)p->s.e->facts.channels;
    float *in = pm_plan_input(p->now.plan, 0, "images", 0);
    float *windows = pm_net_find(p->now.net, "windows")
                         ? pm_plan_input(p->now.plan, 0, "windows", 0) : NULL;
    char *why[MOST] = { NULL };
    int err = PM_OK;

    memset(in, 0, (size_t)p->now.batch * floats * sizeof(float));
    if (windows)
        memset(windows, 0, (size_t)p->now.batch * 4 * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        err = prepare(p, p->files[files[i]].path, in + i * floats, windows ? windows + 4 * i : NULL,
                      &p->size[i]);
        if (err == PM_EDATA) {
            why[i] = pm_strdup(pm_error_text());
            memset(in + i * floats, 0, floats * sizeof *in);
            err = PM_OK;
        }
        PM_TRY(err);
    }
    PM_TRY(pm_plan_submit(p->now.plan, 0));
    PM_TRY(pm_plan_wait(p->now.plan, 0));
    for (size_t i = 0; i < count; i++) {
        if (why[i])
            show_damaged(p, files[i], why[i]);
        else
            PM_TRY(show(p, files[i], i));
    }
out:
    for (size_t i = 0; i < count; i++)
        pm_free(why[i]);
    return err;
}

/* ---- all files -------------------------------------------------------------------------- */

/* Reads the frame that a file needs from its header. */
static int measure(const struct predictor *p, const char *file, struct pm_frame *out)
{
    char *bytes = NULL;
    size_t size;
    int height, width, err = PM_OK;

    PM_TRY(pm_file_read(file, &bytes, &size));
    PM_TRY(pm_image_measure(bytes, size, 0, file, &height, &width));
    PM_TRY(frame_of(p, file, height, width, out));
out:
    pm_free(bytes);
    return err;
}

/* Groups the files by frame. A file without one joins another's; predicting it reports the error.
 * If pictures are brought to one size, all files are one group. */
static void group_files(struct predictor *p, size_t count)
{
    struct pm_frame *frames = pm_calloc(count, sizeof *frames);

    for (size_t i = 0; i < count && p->s.e->facts.own_sizes; i++)
        if (measure(p, p->files[i].path, &frames[i]) < 0)
            frames[i] = (struct pm_frame){ 0 };
    pm_frame_groups_of(frames, count, pm_experiment_frame(p->s.e, false), &p->groups);
    pm_free(frames);
}

static int open_nets(struct predictor *p, size_t count, int batch)
{
    group_files(p, count);
    return pm_net_sizes_create(&(struct pm_net_sizes_options){
        .e = p->s.e, .device = p->s.device, .variables = p->s.variables, .use = PM_USE_PREDICT,
        .batch = batch, .slots = 1, .groups = p->s.e->facts.own_sizes ? &p->groups : NULL,
        .name = name_file, .ctx = p }, &p->sizes);
}

static void add_objects(struct predictor *p, size_t count, struct cJSON *report)
{
    struct cJSON *images = cJSON_AddArrayToObject(report, "images");

    p->object = pm_calloc(count, sizeof(struct cJSON *));
    for (size_t i = 0; i < count; i++) {
        p->object[i] = cJSON_CreateObject();
        cJSON_AddItemToArray(images, p->object[i]);
        cJSON_AddStringToObject(p->object[i], "file", p->files[i].path);
    }
}

/* done: files of earlier groups. */
static int predict_group(struct predictor *p, const struct pm_frame_group *g, size_t done,
                         struct pm_progress *bar)
{
    int err = PM_OK;

    PM_TRY(take_net(p, g->frame));
    for (uint64_t at = 0; at < g->count; at += (uint64_t)p->now.batch) {
        const uint64_t left = g->count - at;
        const size_t n = left < (uint64_t)p->now.batch ? (size_t)left : (size_t)p->now.batch;

        PM_TRY(predict_batch(p, p->groups.order + g->first + at, n));
        done += n;
        if (bar)
            pm_progress_count(bar, done, done, -1);
    }
out:
    return err;
}

int pm_predict(const struct pm_config *c, const char *const *paths, size_t count, const char *out,
               struct cJSON *report)
{
    struct predictor p = { .out = out };
    struct files f = { .arena = pm_arena_create(), .out = out };
    struct pm_progress *bar = NULL;
    const int batch = c->eval.batch_size < MOST ? c->eval.batch_size : MOST;
    int err = PM_OK;

    for (size_t i = 0; i < count; i++) {
        if (!pm_file_exists(paths[i]) && !pm_is_folder(paths[i]))
            PM_TRY(pm_fail(PM_EDATA, "%s: no such file or folder", paths[i]));
        PM_TRY(add_path(&f, paths[i], named(&f, paths[i], count), NULL));
    }
    report_others(&f, report);
    if (f.count == 0)
        PM_TRY(pm_fail(PM_EDATA,
                       "no image files (" PM_IMAGE_ENDINGS ") in the given files and folders"));
    PM_TRY(check_out(&f));
    p.files = f.list;
    PM_TRY(pm_session_open(c, false, (struct pm_net_want){ PM_USE_PREDICT, batch, 0, 0 }, &p.s));
    PM_TRY(open_nets(&p, f.count, batch));
    if (out)
        PM_TRY(pm_make_folders(out));
    pm_session_add_step(&p.s, report);
    add_objects(&p, f.count, report);
    if (f.count > (size_t)batch)
        bar = pm_progress_start(&(struct pm_progress_options){ .what = "predict", .unit = "picture",
                                                               .last = f.count });
    for (size_t k = 0; k < p.groups.count; k++)
        PM_TRY(predict_group(&p, &p.groups.list[k], p.groups.list[k].first, bar));
    cJSON_AddNumberToObject(report, "damaged", (double)p.damaged);
out:
    pm_progress_end(&bar);
    pm_net_sizes_destroy(&p.sizes);
    pm_frame_groups_free(&p.groups);
    pm_free(p.object);
    pm_free(p.stride);
    pm_free(p.values);
    pm_session_close(&p.s);
    pm_free(f.list);
    pm_free(f.other);
    pm_arena_destroy(&f.arena);
    return err;
}
