/* Making a data folder: examples are built on all cores in blocks and written in order, so the
 * files do not depend on the number of threads. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <pumice/data.h>
#include <pumice/formats.h>
#include <pumice/progress.h>
#include <pumice/thread.h>

enum { BLOCK = 512, MOST_SPLITS = 8, ERROR_TEXT = 512 };

struct pm_making {
    struct pm_arena *arena;
    const char *dst, *temporary, *name;
    const char *split[MOST_SPLITS];
    size_t count[MOST_SPLITS];
    int splits;
    const char **labels;
    int num_classes, height, width, channels;
};

/* "runs/my data/" is named "my data". */
static const char *last_part(struct pm_arena *a, const char *path)
{
    char *copy = pm_arena_strdup(a, path);
    for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
        copy[n - 1] = '\0';
    const char *slash = strrchr(copy, '/');
    return slash && slash[1] ? slash + 1 : copy;
}

int pm_making_create(const char *dst, const char *name, struct pm_making **out)
{
    int err = PM_OK;
    struct pm_making *m = pm_calloc(1, sizeof *m);

    m->arena = pm_arena_create();
    m->dst = pm_arena_strdup(m->arena, dst);
    m->name = name ? pm_arena_strdup(m->arena, name) : last_part(m->arena, dst);
    if (!dst[0])
        PM_TRY(pm_fail(PM_ECONFIG, "the data folder's name is empty"));
    /* An empty folder may stand there: rename replaces it. */
    if (pm_file_exists(dst) || (pm_is_folder(dst) && rmdir(dst) != 0))
        PM_TRY(pm_fail(PM_EFAIL, "%s: exists already: remove it or name another folder", dst));
    char *path = pm_arena_strdup(m->arena, dst);
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    m->dst = path;
    m->temporary = pm_arena_printf(m->arena, "%s.tmp-%ld", path, (long)getpid());
    PM_TRY(pm_remove_tree(m->temporary));
    PM_TRY(pm_make_folders(m->temporary));
    *out = m, m = NULL;
out:
    if (m)
        m->temporary = NULL;
    pm_making_destroy(&m);
    return err;
}

void pm_making_destroy(struct pm_making **m)
{
    if (!*m)
        return;
    if ((*m)->temporary && pm_remove_tree((*m)->temporary) < 0)
        PM_WARN("data", "%s", pm_error_text());
    pm_arena_destroy(&(*m)->arena);
    pm_free(*m);
    *m = NULL;
}

void pm_making_labels(struct pm_making *m, const char *const *labels, int count)
{
    m->num_classes = count;
    m->labels = pm_arena_alloc(m->arena, (size_t)count * sizeof *m->labels);
    for (int i = 0; i < count; i++)
        m->labels[i] = pm_arena_strdup(m->arena, labels[i]);
}

void pm_making_size(struct pm_making *m, int height, int width, int channels)
{
    m->height = height;
    m->width = width;
    m->channels = channels;
}

/* ---- one split ------------------------------------------------------------------------------ */

struct made {
    uint8_t *data;
    size_t size;
    int status; /* of fill */
    char text[ERROR_TEXT];
};

struct block {
    struct made made[BLOCK];
    size_t first;
    int (*fill)(void *ctx, size_t i, struct pm_example_builder *b);
    void *ctx;
};

static void make_some(void *ctx, size_t begin, size_t end)
{
    struct block *k = ctx;
    for (size_t i = begin; i < end; i++) {
        struct made *m = &k->made[i];
        struct pm_example_builder *b = pm_example_builder_create();
        m->data = NULL;
        m->status = k->fill(k->ctx, k->first + i, b);
        if (m->status > 0)
            pm_example_serialise(b, &m->data, &m->size);
        else if (m->status < 0)
            snprintf(m->text, sizeof m->text, "%s", pm_error_text());
        pm_example_builder_destroy(&b);
    }
}

/* The shards of a split, written one after the other. */
struct shards {
    struct pm_tfrecord_writer *w; /* of the present one */
    size_t next, total, per_shard, written;
};

static int next_shard(struct pm_making *m, const char *split, struct shards *s)
{
    const char *path;

    if (s->w) {
        const int err = pm_tfrecord_finish(s->w);
        pm_tfrecord_destroy(&s->w);
        if (err < 0 || s->next == s->total)
            return err;
    }
    if (s->per_shard == 0)
        path = pm_arena_printf(m->arena, "%s/%s_%s.tfrecord", m->temporary, m->name, split);
    else
        path = pm_arena_printf(m->arena, "%s/%s_%s_%05zu-of-%05zu.tfrecord", m->temporary, m->name,
                               split, s->next, s->total);
    s->next++;
    return pm_tfrecord_create(path, &s->w);
}

static int write_block(struct pm_making *m, const char *split, struct shards *s,
                       const struct block *k, size_t count)
{
    int err = PM_OK;

    for (size_t i = 0; i < count; i++) {
        const struct made *made = &k->made[i];
        if (made->status < 0)
            PM_TRY(pm_fail(made->status, "%s", made->text));
        if (s->per_shard && (k->first + i) % s->per_shard == 0 && k->first + i > 0)
            PM_TRY(next_shard(m, split, s));
        if (made->status > 0) {
            PM_TRY(pm_tfrecord_write(s->w, made->data, made->size));
            s->written++;
        }
    }
out:
    return err;
}

int pm_making_split(struct pm_making *m, const char *split, size_t count, size_t per_shard,
                    int (*fill)(void *ctx, size_t i, struct pm_example_builder *b), void *ctx)
{
    int err = PM_OK;
    struct block *k = pm_malloc(sizeof *k);
    struct shards s = { .per_shard = per_shard,
                        .total = per_shard ? (count + per_shard - 1) / per_shard : 1 };
    struct pm_progress *bar = NULL;
    char what[64];

    snprintf(what, sizeof what, "%.20s record", split);
    bar = pm_progress_start(&(struct pm_progress_options){ .what = "data", .unit = what,
                                                           .last = count });
    k->fill = fill;
    k->ctx = ctx;
    if (count == 0)
        PM_TRY(pm_fail(PM_EDATA, "split %s has no examples", split));
    PM_TRY(next_shard(m, split, &s));
    for (k->first = 0; k->first < count; k->first += BLOCK) {
        const size_t n = count - k->first < BLOCK ? count - k->first : BLOCK;
        pm_parallel(n, 1, make_some, k);
        err = write_block(m, split, &s, k, n);
        for (size_t i = 0; i < n; i++)
            pm_free(k->made[i].data);
        if (err < 0)
            goto out;
        pm_progress_count(bar, k->first + n, k->first + n, -1);
    }
    PM_TRY(next_shard(m, split, &s)); /* finishes the last one */
    m->split[m->splits] = pm_arena_strdup(m->arena, split);
    m->count[m->splits++] = s.written;
out:
    pm_progress_end(&bar);
    pm_tfrecord_destroy(&s.w);
    pm_free(k);
    return err;
}

int pm_making_picture(struct pm_example_builder *b, const struct pm_image8 *im, int64_t label)
{
    const int64_t height = im->height, width = im->width;
    uint8_t *png = NULL;
    size_t size = 0;
    const int err = pm_image_encode_png(im, &png, &size);

    if (err < 0)
        return err;
    pm_example_add_bytes(b, "image/encoded", png, size);
    pm_example_add_bytes(b, "image/format", "png", 3);
    pm_example_add_ints(b, "image/class/label", &label, 1);
    pm_example_add_ints(b, "image/height", &height, 1);
    pm_example_add_ints(b, "image/width", &width, 1);
    pm_free(png);
    return 1;
}

/* ---- finishing ------------------------------------------------------------------------------ */

static int write_labels(const struct pm_making *m)
{
    struct pm_str text = { 0 };

    for (int i = 0; i < m->num_classes; i++)
        pm_str_add(&text, "%d:%s\n", i, m->labels[i]);
    const int err = pm_file_write(pm_arena_printf(m->arena, "%s/labels.txt", m->temporary),
                                  text.text, text.length);
    pm_str_free(&text);
    return err;
}

static int write_json(const struct pm_making *m)
{
    struct cJSON *o = cJSON_CreateObject(), *splits = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", m->name);
    for (int i = 0; i < m->splits; i++)
        cJSON_AddNumberToObject(splits, m->split[i], (double)m->count[i]);
    cJSON_AddItemToObject(o, "splits", splits);
    if (m->num_classes)
        cJSON_AddNumberToObject(o, "num_classes", m->num_classes);
    if (m->height) {
        cJSON_AddNumberToObject(o, "height", m->height);
        cJSON_AddNumberToObject(o, "width", m->width);
        cJSON_AddNumberToObject(o, "channels", m->channels);
    }
    char *json = pm_json_print(o);
    const char *text = pm_arena_printf(m->arena, "%s\n", json);
    const int err = pm_file_write(pm_arena_printf(m->arena, "%s/dataset.json", m->temporary), text,
                                  strlen(text));
    pm_free(json);
    cJSON_Delete(o);
    return err;
}

int pm_making_finish(struct pm_making *m)
{
    int err = PM_OK;
    struct pm_str counts = { 0 };

    if (m->splits == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: nothing was found to put in", m->dst));
    if (m->num_classes)
        PM_TRY(write_labels(m));
    PM_TRY(write_json(m));
    if (rename(m->temporary, m->dst) != 0)
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be given its name: %s", m->dst, strerror(errno)));
    m->temporary = NULL;
    for (int i = 0; i < m->splits; i++)
        pm_str_add(&counts, "%s%s %zu", i ? ", " : "", m->split[i], m->count[i]);
    PM_INFO("data", "%s: %s; %d classes", m->dst, counts.text, m->num_classes);
out:
    pm_str_free(&counts);
    return err;
}
