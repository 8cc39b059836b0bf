/* making_split: makes the records of a split. All cores build examples in blocks, which are written
 * in order, so the files do not depend on the number of threads. Shards are written one after the
 * other. With dealt records (i to file i mod n), the examples are also made in that order. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pumice/formats.h>
#include <pumice/progress.h>
#include <pumice/thread.h>

#include "data/making_private.h"

enum { BLOCK = 512, MOST_COUNTED = 4096, ERROR_TEXT = 512 };
/* Memory for the examples of a block, whose number is estimated from the previous block's sizes. */
static const size_t block_bytes = (size_t)64 << 20;

static volatile sig_atomic_t interrupted;

void pm_making_interrupt(void)
{
    interrupted = 1;
}

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

static int write_block(struct pm_making *m, struct pm_making_split *split, struct shards *s,
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

static int write_split(struct pm_making *m, struct pm_making_split *split, struct block *k)
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

    PM_TRY(pm_making_check_name(PM_EDATA, "a split", split));
    if (m->splits == PM_MOST_SPLITS)
        PM_TRY(pm_fail(PM_EDATA, "%s: split %s exceeds the limit of %d splits", m->dst, split,
                       PM_MOST_SPLITS));
    k->first = 0;
    k->total = count;
    k->sharding = sharding ? *sharding : (struct pm_sharding){ .cut = PM_CUT_NONE };
    k->fill = fill;
    k->ctx = ctx;
    if (count == 0)
        PM_TRY(pm_fail(PM_EDATA, "split %s has no examples", split));
    struct pm_making_split *to = &m->split[m->splits];
    *to = (struct pm_making_split){ .name = pm_arena_strdup(m->arena, split) };
    if (m->num_classes > 0 && m->num_classes <= MOST_COUNTED &&
        (!m->segmentation || m->map_labels))
        to->labels = pm_arena_alloc(m->arena, (size_t)m->num_classes * sizeof *to->labels);
    PM_TRY(write_split(m, to, k));
    if (to->count == 0)
        PM_TRY(pm_fail(PM_EDATA, "none of the %zu examples of split %s could be written; the "
                       "warnings above state why", count, split));
    if (to->skipped)
        PM_WARN("data", "split %s: %zu of %zu records %s skipped", split, to->skipped, count,
                pm_plural((double)to->skipped, "was", "were"));
    m->splits++;
out:
    pm_free(k);
    return err;
}

/* ---- parts of an example -------------------------------------------------------------------- */

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
