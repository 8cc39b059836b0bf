/* Making a data folder. All cores build examples in blocks, which are written in order, so the
 * files do not depend on the number of threads. Shards are written one after the other. With dealt
 * records (i to file i mod n), the examples are also made in that order. */
#include <assert.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pumice/data.h>
#include <pumice/formats.h>
#include <pumice/objects.h>
#include <pumice/progress.h>
#include <pumice/thread.h>

enum { BLOCK = 512, MOST_SPLITS = 8, MOST_COUNTED = 4096, ERROR_TEXT = 512 };
/* Memory for the examples of a block, whose number is estimated from the previous block's sizes. */
static const size_t block_bytes = (size_t)64 << 20;

struct pm_making {
    struct pm_arena *arena;
    const char *dst, *temporary, *name;
    int lock; /* of the temporary folder, or -1 */
    bool replace;
    struct split {
        const char *name;
        size_t count, skipped;
        size_t *labels; /* [num_classes] record counts, in the arena; NULL: classes unknown */
        uint64_t *pixels; /* [map_classes] pixel counts of label maps, in the arena, or NULL */
    } split[MOST_SPLITS];
    int splits;
    const char **labels;
    int num_classes, height, width, channels;
    bool segmentation;
    int ignore_label;
    const char *colormap;
    const char **map_labels; /* NULL: same as labels */
    int map_classes;
    int *things, things_count;
    int *mirrored, mirrored_count; /* keypoints */
    struct pm_label_map boxes; /* classes of boxes; count 0: the records have none */
};

static volatile sig_atomic_t interrupted;

void pm_making_interrupt(void)
{
    interrupted = 1;
}

/* Returns the last part of a path: "my data" for "runs/my data/". */
static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Checks a name for labels.txt, lists and file names: it must be a single line. what: "class 3". */
static int check_name(enum pm_error err, const char *what, const char *name)
{
    if (pm_is_line(name))
        return PM_OK;
    return pm_fail(err,
                   "%s is named \"%.200s\": a name must be one line without control characters, "
                   "because labels.txt has one name per line: rename it",
                   what, name);
}

/* Whether dst is free. It may be an empty folder, because rename replaces it. */
static int check_free(const struct pm_making *m)
{
    if (m->replace && pm_file_exists(pm_arena_printf(m->arena, "%s/dataset.json", m->dst)))
        return PM_OK;
    if (pm_file_exists(m->dst) || (pm_is_folder(m->dst) && rmdir(m->dst) != 0))
        return pm_fail(PM_EFAIL, "%s: the folder exists already: remove it, or name another one",
                       m->dst);
    return PM_OK;
}

int pm_making_create(const char *dst, const char *name, bool replace, struct pm_making **out)
{
    int err = PM_OK;
    struct pm_making *m = pm_calloc(1, sizeof *m);
    char *temporary = NULL;

    m->arena = pm_arena_create();
    m->lock = -1;
    m->replace = replace;
    if (!dst[0])
        PM_TRY(pm_fail(PM_ECONFIG, "the data folder's name is empty"));
    char *path = pm_arena_strdup(m->arena, dst);
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    m->dst = path;
    m->name = name ? pm_arena_strdup(m->arena, name) : last_part(path);
    PM_TRY(check_name(PM_ECONFIG, "the data folder", m->name));
    PM_TRY(check_free(m));
    const char *slash = strrchr(path, '/');
    if (slash && slash > path)
        PM_TRY(pm_make_folders(pm_arena_printf(m->arena, "%.*s", (int)(slash - path), path)));
    PM_TRY(pm_temporary_folder(path, &temporary, &m->lock));
    m->temporary = pm_arena_strdup(m->arena, temporary);
    *out = m, m = NULL;
out:
    pm_free(temporary);
    pm_making_destroy(&m);
    return err;
}

void pm_making_destroy(struct pm_making **m)
{
    if (!*m)
        return;
    if ((*m)->temporary && pm_remove_tree((*m)->temporary) < 0)
        PM_WARN("data", "%s", pm_error_text());
    if ((*m)->lock >= 0)
        close((*m)->lock);
    pm_arena_destroy(&(*m)->arena);
    pm_free(*m);
    *m = NULL;
}

static int copy_names(struct pm_making *m, const char *const *labels, int count, const char ***out)
{
    int err = PM_OK;
    char what[32];

    *out = pm_arena_alloc(m->arena, (size_t)count * sizeof **out);
    for (int i = 0; i < count; i++) {
        snprintf(what, sizeof what, "class %d", i);
        PM_TRY(check_name(PM_EDATA, what, labels[i]));
        (*out)[i] = pm_arena_strdup(m->arena, labels[i]);
    }
out:
    return err;
}

int pm_making_labels(struct pm_making *m, const char *const *labels, int count)
{
    m->num_classes = m->map_classes = count;
    return copy_names(m, labels, count, &m->labels);
}

int pm_making_map_labels(struct pm_making *m, const char *const *labels, int count)
{
    m->map_classes = count;
    return copy_names(m, labels, count, &m->map_labels);
}

void pm_making_size(struct pm_making *m, int height, int width, int channels)
{
    m->height = height;
    m->width = width;
    m->channels = channels;
}

void pm_making_segmentation(struct pm_making *m, int ignore_label, const char *colormap)
{
    m->segmentation = true;
    m->ignore_label = ignore_label;
    m->colormap = colormap ? pm_arena_strdup(m->arena, colormap) : NULL;
}

void pm_making_things(struct pm_making *m, const int *classes, int count)
{
    m->things = pm_arena_alloc(m->arena, (size_t)count * sizeof *m->things);
    m->things_count = count;
    memcpy(m->things, classes, (size_t)count * sizeof *m->things);
}

void pm_making_mirrored_points(struct pm_making *m, const int *mirrored, int count)
{
    m->mirrored = pm_arena_copy(m->arena, mirrored, (size_t)count * sizeof *mirrored);
    m->mirrored_count = count;
}

void pm_making_box_labels(struct pm_making *m, const struct pm_label_map *map)
{
    pm_label_map_copy(m->arena, map, &m->boxes);
}

void pm_making_pixels(struct pm_making *m, const uint64_t *pixels, int count)
{
    struct split *s = &m->split[m->splits - 1];

    assert(m->splits > 0 && count == m->map_classes);
    s->pixels = pm_arena_alloc(m->arena, (size_t)count * sizeof *pixels);
    memcpy(s->pixels, pixels, (size_t)count * sizeof *pixels);
}

/* ---- one split ------------------------------------------------------------------------------ */

struct made {
    uint8_t *data;
    size_t size;
    int64_t label; /* -1: none */
    int status;    /* result of fill */
    char text[ERROR_TEXT];
};

struct block {
    struct made made[BLOCK];
    size_t first; /* place of the first record in file order */
    size_t total; /* records of the split */
    struct pm_sharding sharding;
    int (*fill)(void *ctx, size_t i, struct pm_example_builder *b);
    void *ctx;
};

/* Returns the record at a place in file order. */
static size_t record_at(const struct block *k, size_t place)
{
    const size_t n = k->sharding.n;

    if (k->sharding.cut != PM_CUT_DEAL)
        return place;
    /* The first `longer` files have one record more than the others. */
    const size_t least = k->total / n, longer = k->total % n, in_longer = longer * (least + 1);
    if (place < in_longer)
        return place / (least + 1) + place % (least + 1) * n;
    place -= in_longer;
    return longer + place / least + place % least * n;
}

/* Returns the place of file i's first record. */
static size_t file_start(const struct pm_sharding *s, size_t total, size_t i)
{
    size_t start = 0;

    switch (s->cut) {
    case PM_CUT_NONE: start = i ? total : 0; break;
    case PM_CUT_SIZE: start = i * s->n; break;
    case PM_CUT_CEIL: start = i * ((total + s->n - 1) / s->n); break;
    case PM_CUT_EVEN: start = (size_t)((unsigned __int128)i * total / s->n); break;
    case PM_CUT_DEAL: start = i * (total / s->n) + (i < total % s->n ? i : total % s->n); break;
    }
    return start < total ? start : total;
}

static size_t file_count(const struct pm_sharding *s, size_t total)
{
    return s->cut == PM_CUT_NONE ? 1 : s->cut == PM_CUT_SIZE ? (total + s->n - 1) / s->n : s->n;
}

static void make_some(void *ctx, size_t begin, size_t end)
{
    struct block *k = ctx;
    for (size_t i = begin; i < end; i++) {
        struct made *m = &k->made[i];
        struct pm_example_builder *b = pm_example_builder_create();
        *m = (struct made){ .label = -1 };
        m->status = k->fill(k->ctx, record_at(k, k->first + i), b);
        if (m->status > 0)
            pm_example_serialise(b, &m->data, &m->size);
        else
            snprintf(m->text, sizeof m->text, "%s", pm_error_text());
        if (m->status > 0 && !pm_example_builder_int(b, "image/class/label", &m->label))
            m->label = -1;
        pm_example_builder_destroy(&b);
    }
}

/* The shards of a split, written one after the other. */
struct shards {
    struct pm_tfrecord_writer *w; /* writer of the current shard */
    size_t next, total;
    const struct pm_sharding *sharding;
};

static const char *shard_path(struct pm_making *m, const char *split, const struct shards *s)
{
    struct pm_str path = { 0 };

    pm_str_add(&path, "%s/", m->temporary);
    if (s->sharding->cut == PM_CUT_NONE)
        pm_str_add(&path, "%s_%s.tfrecord", m->name, split);
    else if (s->sharding->names == PM_NAMES_SLIM)
        pm_str_add(&path, "%s_%s_%05zu-of-%05zu.tfrecord", m->name, split, s->next, s->total);
    else
        pm_str_add(&path, "%s%s-%05zu-of-%05zu%s", split,
                   s->sharding->names == PM_NAMES_RECORD ? ".record" : "", s->next, s->total,
                   s->sharding->names == PM_NAMES_DEEPLAB ? ".tfrecord" : "");
    const char *out = pm_arena_strdup(m->arena, path.text);
    pm_str_free(&path);
    return out;
}

static int next_shard(struct pm_making *m, const char *split, struct shards *s)
{
    if (s->w) {
        const int err = pm_tfrecord_finish(s->w);
        pm_tfrecord_destroy(&s->w);
        if (err < 0)
            return err;
    }
    if (s->next == s->total)
        return PM_OK;
    const int err = pm_tfrecord_create(shard_path(m, split, s), &s->w);
    s->next++;
    return err;
}

static int write_block(struct pm_making *m, struct split *split, struct shards *s,
                       const struct block *k, size_t count)
{
    int err = PM_OK;

    for (size_t i = 0; i < count; i++) {
        const struct made *made = &k->made[i];
        if (made->status < 0)
            PM_TRY(pm_fail(made->status, "%s", made->text));
        while (s->next < s->total && k->first + i >= file_start(s->sharding, k->total, s->next))
            PM_TRY(next_shard(m, split->name, s));
        if (made->status == 0) {
            PM_WARN("data", "skipped: %s", made->text);
            split->skipped++;
            continue;
        }
        PM_TRY(pm_tfrecord_write(s->w, made->data, made->size));
        split->count++;
        if (split->labels && made->label >= 0 && made->label < m->num_classes)
            split->labels[made->label]++;
    }
out:
    return err;
}

/* Number of records in the next block, from the mean size in the last block. */
static size_t next_block(const struct block *k, size_t count)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += k->made[i].size;
    const size_t mean = bytes / count + 1, most = block_bytes / mean;
    return most < 16 ? 16 : most < BLOCK ? most : BLOCK;
}

static int write_split(struct pm_making *m, struct split *split, struct block *k)
{
    int err = PM_OK;
    struct shards s = { .sharding = &k->sharding, .total = file_count(&k->sharding, k->total) };
    char what[64];
    size_t most = 32;

    snprintf(what, sizeof what, "%.20s record", split->name);
    struct pm_progress *bar = pm_progress_start(
        &(struct pm_progress_options){ .what = "data", .unit = what, .last = k->total });
    for (size_t n = 0; k->first < k->total; k->first += n) {
        n = k->total - k->first < most ? k->total - k->first : most;
        if (interrupted)
            PM_TRY(pm_fail(PM_EFAIL, "%s: stopped by a signal; the unfinished folder was removed",
                           m->dst));
        pm_parallel(n, 1, make_some, k);
        err = write_block(m, split, &s, k, n);
        most = next_block(k, n);
        for (size_t i = 0; i < n; i++)
            pm_free(k->made[i].data);
        if (err < 0)
            goto out;
        pm_progress_count(bar, k->first + n, k->first + n, -1);
    }
    do /* finishes the last shard; later shards are empty */
        PM_TRY(next_shard(m, split->name, &s));
    while (s.w);
out:
    pm_progress_end(&bar);
    pm_tfrecord_destroy(&s.w);
    return err;
}

int pm_making_split(struct pm_making *m, const char *split, size_t count,
                    const struct pm_sharding *sharding,
                    int (*fill)(void *ctx, size_t i, struct pm_example_builder *b), void *ctx)
{
    int err = PM_OK;
    struct block *k = pm_malloc(sizeof *k);

    PM_TRY(check_name(PM_EDATA, "a split", split));
    if (m->splits == MOST_SPLITS)
        PM_TRY(pm_fail(PM_EDATA, "%s: split %s exceeds the limit of %d splits", m->dst, split,
                       MOST_SPLITS));
    k->first = 0;
    k->total = count;
    k->sharding = sharding ? *sharding : (struct pm_sharding){ .cut = PM_CUT_NONE };
    k->fill = fill;
    k->ctx = ctx;
    if (count == 0)
        PM_TRY(pm_fail(PM_EDATA, "split %s has no examples", split));
    struct split *to = &m->split[m->splits];
    *to = (struct split){ .name = pm_arena_strdup(m->arena, split) };
    if (m->num_classes > 0 && m->num_classes <= MOST_COUNTED &&
        (!m->segmentation || m->map_labels))
        to->labels = pm_arena_alloc(m->arena, (size_t)m->num_classes * sizeof *to->labels);
    PM_TRY(write_split(m, to, k));
    if (to->count == 0)
        PM_TRY(
            pm_fail(PM_EDATA, "none of the %zu pictures of split %s can be decoded", count, split));
    if (to->skipped)
        PM_WARN("data", "split %s: %zu of %zu records were skipped", split, to->skipped, count);
    m->splits++;
out:
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

int pm_making_instances(struct pm_example_builder *b, const struct pm_label *map, int divisor,
                        const char *where)
{
    const int64_t wide = divisor;
    uint8_t *png = NULL;
    size_t size = 0;
    const int err = pm_label_encode_deep(map, where, &png, &size);

    if (err < 0)
        return err;
    pm_example_add_bytes(b, "image/segmentation/instance/encoded", png, size);
    pm_example_add_bytes(b, "image/segmentation/instance/format", "png", 3);
    if (divisor != 1000)
        pm_example_add_ints(b, "image/segmentation/instance/divisor", &wide, 1);
    pm_free(png);
    return PM_OK;
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

/* Writes label_map.pbtxt, which TensorFlow's tools read. */
static int write_label_map(const struct pm_making *m)
{
    struct pm_str text = { 0 };

    pm_label_map_print(&m->boxes, &text);
    const int err = pm_file_write(pm_arena_printf(m->arena, "%s/label_map.pbtxt", m->temporary),
                                  text.text, text.length);
    pm_str_free(&text);
    return err;
}

/* Returns the records per class for each split, in label order. */
static struct cJSON *class_counts(const struct pm_making *m)
{
    struct cJSON *all = cJSON_CreateObject();

    for (int i = 0; i < m->splits; i++) {
        struct cJSON *list = cJSON_AddArrayToObject(all, m->split[i].name);
        for (int k = 0; m->split[i].labels && k < m->num_classes; k++)
            cJSON_AddItemToArray(list, cJSON_CreateNumber((double)m->split[i].labels[k]));
    }
    return all;
}

/* Returns the pixels per class for each split. */
static struct cJSON *class_pixels(const struct pm_making *m)
{
    struct cJSON *all = cJSON_CreateObject();

    for (int i = 0; i < m->splits; i++) {
        const struct split *s = &m->split[i];
        struct cJSON *list = s->pixels ? cJSON_AddArrayToObject(all, s->name) : NULL;
        for (int k = 0; list && k < m->map_classes; k++)
            cJSON_AddItemToArray(list, cJSON_CreateNumber((double)s->pixels[k]));
    }
    return all;
}

static int write_json(const struct pm_making *m)
{
    struct cJSON *o = cJSON_CreateObject(), *splits = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", m->name);
    for (int i = 0; i < m->splits; i++)
        cJSON_AddNumberToObject(splits, m->split[i].name, (double)m->split[i].count);
    cJSON_AddItemToObject(o, "splits", splits);
    if (m->split[0].labels)
        cJSON_AddItemToObject(o, "class_counts", class_counts(m));
    if (m->map_labels)
        cJSON_AddItemToObject(o, "map_labels",
                              cJSON_CreateStringArray(m->map_labels, m->map_classes));
    if (m->things_count)
        cJSON_AddItemToObject(o, "thing_classes", cJSON_CreateIntArray(m->things, m->things_count));
    if (m->mirrored_count)
        cJSON_AddItemToObject(o, "mirrored_keypoints",
                              cJSON_CreateIntArray(m->mirrored, m->mirrored_count));
    if (m->split[0].pixels)
        cJSON_AddItemToObject(o, "class_pixels", class_pixels(m));
    if (m->segmentation)
        cJSON_AddNumberToObject(o, "ignore_label", m->ignore_label);
    if (m->colormap)
        cJSON_AddStringToObject(o, "colormap", m->colormap);
    if (m->num_classes)
        cJSON_AddNumberToObject(o, "num_classes", m->num_classes);
    if (m->boxes.count)
        cJSON_AddItemToObject(o, "box_labels", pm_label_map_json(&m->boxes));
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

/* Logs "train 6 (ants 4, bees 2), test 1"; counts per class only if there are few classes. */
static void log_counts(const struct pm_making *m)
{
    struct pm_str text = { 0 };

    for (int i = 0; i < m->splits; i++) {
        const struct split *s = &m->split[i];
        pm_str_add(&text, "%s%s %zu", i ? ", " : "", s->name, s->count);
        for (int k = 0; s->labels && m->num_classes <= 20 && k < m->num_classes; k++)
            pm_str_add(&text, "%s%s %zu%s", k ? ", " : " (", m->labels[k], s->labels[k],
                       k + 1 == m->num_classes ? ")" : "");
    }
    PM_INFO("data", "%s: %s; %d classes", m->dst, text.text,
            m->num_classes ? m->num_classes : m->boxes.count);
    pm_str_free(&text);
}

/* Exchanges the names of the new folder and of dst in one step. Returns false if the file system
 * cannot. */
static bool exchange(const struct pm_making *m)
{
#ifdef RENAME_EXCHANGE
    return renameat2(AT_FDCWD, m->temporary, AT_FDCWD, m->dst, RENAME_EXCHANGE) == 0;
#else
    (void)m;
    return false;
#endif
}

/* Gives the new folder the name dst, then removes the folder that it replaces. */
static int put_in_place(struct pm_making *m)
{
    int err = PM_OK;
    /* Not a temporary name: if the process is killed here, the next command must not remove the old
     * data. */
    const char *old = pm_arena_printf(m->arena, "%s.former-%ld", m->dst, (long)getpid());
    const bool replaced = m->replace && pm_is_folder(m->dst);

    if (replaced && exchange(m)) {
        PM_TRY(pm_remove_tree(m->temporary)); /* the old data */
        m->temporary = NULL;
        goto out;
    }
    if (replaced && rename(m->dst, old) != 0)
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be moved away: %s", m->dst, strerror(errno)));
    if (rename(m->temporary, m->dst) != 0) {
        const int why = errno;
        if (replaced && rename(old, m->dst) != 0)
            PM_WARN("data", "%s: the former data folder is now %s", m->dst, old);
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be renamed: %s", m->dst, strerror(why)));
    }
    m->temporary = NULL;
    if (replaced)
        PM_TRY(pm_remove_tree(old));
out:
    return err;
}

int pm_making_finish(struct pm_making *m)
{
    int err = PM_OK;

    if (m->splits == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: no records: nothing to convert was found", m->dst));
    if (m->num_classes)
        PM_TRY(write_labels(m));
    if (m->boxes.count)
        PM_TRY(write_label_map(m));
    PM_TRY(write_json(m));
    PM_TRY(put_in_place(m));
    log_counts(m);
out:
    return err;
}
