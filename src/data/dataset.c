/* A dataset: the records of one split, accessed by index.
 *
 * The index holds offset and length of every record, so any record is read with one pread in any
 * order. Shards are never read whole. The index is stored beside the shards as .pumice-HASH.index.
 * It is valid while every shard has the size and modification time written in it:
 *     "PMINDEX1" | u32 1 | u32 shards | per shard: u64 size, i64 seconds, i64 nanoseconds, u64
 *     records, u32 name length, name | per record: u32 length | u32 crc32c of all before
 * Numbers are in the host's byte order; a file of the other order is rejected by the u32 1 behind
 * the magic. Only lengths are stored, because records are contiguous. If the folder cannot be
 * written, the index stays in memory and no error is reported. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <pumice/data.h>
#include <pumice/thread.h>

#include "data/dataset_info.h"
#include "data/shards.h"
#include "formats/tfrecord.h"

enum { MOST_OPEN = 128 };

struct shard {
    const char *name, *path; /* in the arena */
    uint64_t size;
    int64_t seconds, nanoseconds;
    uint64_t first, count; /* index of its first record in the dataset; number of records */
    uint32_t *length;      /* [count], owned */
    int err;               /* result of indexing; text holds the message */
    char text[512];
    int fd, users; /* -1 = closed; number of reads in progress */
    uint64_t used; /* clock at the last use, to close the oldest idle one */
};

struct pm_dataset {
    struct pm_arena *arena;
    struct pm_dataset_info info;
    const char *folder;
    struct shard *shard; /* in the arena */
    size_t shards;
    uint64_t **offset;    /* [shards][count + 1], owned */
    size_t every;         /* sampling: record i is record i * every in file order */
    pthread_mutex_t lock; /* guards fd, users, used, open, clock */
    int open;
    uint64_t clock;
    struct pm_dataset **part; /* [parts], owned; of a joined dataset, which has no shards */
    size_t *first;            /* [parts], owned: index of each part's first record */
    size_t parts;
};

/* ---- indexing ---------------------------------------------------------------------------- */

static int index_shard(struct shard *s)
{
    int err = PM_OK;
    uint64_t offset = 0, length = 0, count = 0, capacity = 0;
    int fd = -1;

    PM_TRY(pm_file_open(s->path, &fd, NULL));
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    while (offset < s->size) {
        struct pm_record_place at = { s->path, count, offset };
        PM_TRY(pm_tfrecord_length(fd, s->size, at, &length));
        if (length > UINT32_MAX)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: record %" PRIu64 " (offset %" PRIu64 ") has %" PRIu64
                           " bytes; at most 4 GiB per record are supported",
                           s->path, count, offset, length));
        PM_GROW(s->length, count, capacity);
        s->length[count++] = (uint32_t)length;
        offset += PM_TFRECORD_HEAD + length + PM_TFRECORD_TAIL;
    }
    s->count = count;
out:
    if (fd >= 0)
        close(fd);
    return err;
}

static void index_shards(void *ctx, size_t begin, size_t end)
{
    struct pm_dataset *d = ctx;
    for (size_t i = begin; i < end; i++) {
        struct shard *s = &d->shard[i];
        s->err = index_shard(s);
        if (s->err < 0)
            snprintf(s->text, sizeof s->text, "%s", pm_error_text());
    }
}

/* ---- the cached index --------------------------------------------------------------------- */

static const char magic[8] = { 'P', 'M', 'I', 'N', 'D', 'E', 'X', '1' };

static const char *cache_path(struct pm_dataset *d)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < d->shards; i++)
        hash = pm_hash_bytes(d->shard[i].name, strlen(d->shard[i].name) + 1, hash);
    return pm_arena_printf(d->arena, "%s/.pumice-%016" PRIx64 ".index", d->folder, hash);
}

struct reader {
    const char *p;
    size_t left;
};

static bool get(struct reader *r, void *out, size_t size)
{
    if (r->left < size)
        return false;
    memcpy(out, r->p, size);
    r->p += size;
    r->left -= size;
    return true;
}

/* Returns false if the cached text does not describe these files. */
static bool cache_parse(struct pm_dataset *d, const char *text, size_t size)
{
    struct reader r = { text, size };
    char head[8];
    uint32_t order = 0, shards = 0, crc = 0;

    if (size < 4 || (memcpy(&crc, text + size - 4, 4), pm_crc32c(text, size - 4) != crc))
        return false;
    r.left -= 4;
    if (!get(&r, head, 8) || memcmp(head, magic, 8) || !get(&r, &order, 4) || order != 1 ||
        !get(&r, &shards, 4) || shards != d->shards)
        return false;
    for (size_t i = 0; i < d->shards; i++) {
        struct shard *s = &d->shard[i];
        uint64_t bytes = 0;
        int64_t seconds = 0, nanoseconds = 0;
        uint32_t name = 0;
        if (!get(&r, &bytes, 8) || !get(&r, &seconds, 8) || !get(&r, &nanoseconds, 8) ||
            !get(&r, &s->count, 8) || !get(&r, &name, 4) || bytes != s->size ||
            seconds != s->seconds || nanoseconds != s->nanoseconds || name != strlen(s->name) ||
            name > r.left || memcmp(r.p, s->name, name))
            return false;
        r.p += name;
        r.left -= name;
    }
    for (size_t i = 0; i < d->shards; i++) {
        struct shard *s = &d->shard[i];
        uint64_t offset = 0;
        if (s->count > r.left / 4)
            return false;
        s->length = pm_realloc(s->length, s->count * 4);
        get(&r, s->length, s->count * 4);
        for (uint64_t k = 0; k < s->count; k++)
            offset += PM_TFRECORD_HEAD + (uint64_t)s->length[k] + PM_TFRECORD_TAIL;
        if (offset != s->size)
            return false;
    }
    return r.left == 0;
}

static bool cache_load(struct pm_dataset *d, const char *path)
{
    char *text = NULL;
    size_t size = 0;

    if (!pm_file_exists(path) || pm_file_read(path, &text, &size) < 0)
        return false;
    const bool good = cache_parse(d, text, size);
    pm_free(text);
    return good;
}

static void cache_save(const struct pm_dataset *d, const char *path)
{
    struct pm_str out = { 0 };
    const uint32_t order = 1, shards = (uint32_t)d->shards;

    if (access(d->folder, W_OK) != 0)
        return;
    pm_str_bytes(&out, magic, 8);
    pm_str_bytes(&out, &order, 4);
    pm_str_bytes(&out, &shards, 4);
    for (size_t i = 0; i < d->shards; i++) {
        const struct shard *s = &d->shard[i];
        const uint32_t name = (uint32_t)strlen(s->name);
        pm_str_bytes(&out, &s->size, 8);
        pm_str_bytes(&out, &s->seconds, 8);
        pm_str_bytes(&out, &s->nanoseconds, 8);
        pm_str_bytes(&out, &s->count, 8);
        pm_str_bytes(&out, &name, 4);
        pm_str_bytes(&out, s->name, name);
    }
    for (size_t i = 0; i < d->shards; i++)
        if (d->shard[i].count)
            pm_str_bytes(&out, d->shard[i].length, d->shard[i].count * 4);
    const uint32_t crc = pm_crc32c(out.text, out.length);
    pm_str_bytes(&out, &crc, 4);
    if (pm_file_write(path, out.text, out.length) < 0)
        PM_DEBUG("data", "the index is not stored: %s", pm_error_text());
    pm_str_free(&out);
}

/* ---- dataset.json ------------------------------------------------------------------------ */

/* Compares the counts in dataset.json with the index, to detect lost records. */
static int check_count(const struct pm_dataset *d, const cJSON *o, const char *split)
{
    const cJSON *splits = cJSON_GetObjectItemCaseSensitive(o, "splits");
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(splits, split);
    if (cJSON_IsNumber(v) && v->valuedouble != (double)d->info.count)
        return pm_fail(PM_EDATA,
                       "%s: split %s has %zu records, but dataset.json lists %.0f: files are "
                       "missing or come from another conversion",
                       d->folder, split, d->info.count, v->valuedouble);
    return PM_OK;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int stat_shards(struct pm_dataset *d, char **names)
{
    d->shard = pm_arena_alloc(d->arena, d->shards * sizeof *d->shard);
    for (size_t i = 0; i < d->shards; i++)
        d->shard[i].fd = -1;
    for (size_t i = 0; i < d->shards; i++) {
        struct shard *s = &d->shard[i];
        struct stat st;
        s->name = names[i];
        s->path = pm_arena_printf(d->arena, "%s/%s", d->folder, names[i]);
        if (stat(s->path, &st) != 0)
            return pm_fail(PM_EDATA, "%s: cannot be read: %s", s->path, strerror(errno));
        if (!S_ISREG(st.st_mode))
            return pm_fail(PM_EDATA, "%s: is not a regular file; a regular file is needed",
                           s->path);
        s->size = (uint64_t)st.st_size;
        s->seconds = (int64_t)st.st_mtim.tv_sec;
        s->nanoseconds = (int64_t)st.st_mtim.tv_nsec;
        d->info.bytes += s->size;
    }
    return PM_OK;
}

static int build_index(struct pm_dataset *d)
{
    const char *cache = cache_path(d);

    if (!cache_load(d, cache)) {
        for (size_t i = 0; i < d->shards; i++) {
            pm_free(d->shard[i].length);
            d->shard[i].length = NULL;
        }
        pm_parallel(d->shards, 1, index_shards, d);
        for (size_t i = 0; i < d->shards; i++)
            if (d->shard[i].err < 0)
                return pm_fail(d->shard[i].err, "%s", d->shard[i].text);
        cache_save(d, cache);
    }
    d->offset = pm_calloc(d->shards, sizeof *d->offset);
    for (size_t i = 0; i < d->shards; i++) {
        struct shard *s = &d->shard[i];
        d->offset[i] = pm_malloc((s->count + 1) * sizeof **d->offset);
        d->offset[i][0] = 0;
        for (uint64_t k = 0; k < s->count; k++)
            d->offset[i][k + 1] =
                d->offset[i][k] + PM_TFRECORD_HEAD + s->length[k] + PM_TFRECORD_TAIL;
        s->first = d->info.count;
        d->info.count += s->count;
        pm_free(s->length);
        s->length = NULL;
    }
    return PM_OK;
}

int pm_dataset_open(const char *folder, const char *split, struct pm_dataset **out)
{
    int err = PM_OK;
    struct pm_dataset *d = pm_calloc(1, sizeof *d);
    char **names = NULL;
    cJSON *json = NULL;

    d->arena = pm_arena_create();
    d->every = 1;
    pthread_mutex_init(&d->lock, NULL);
    d->folder = pm_arena_strdup(d->arena, folder);
    PM_TRY(pm_shards_find(d->arena, folder, split, &names, &d->shards));
    d->info.files = d->shards;
    PM_TRY(stat_shards(d, names));
    PM_TRY(build_index(d));
    if (d->info.count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: split %s has no records", folder, split));
    PM_TRY(pm_dataset_info_read(d->arena, folder, &json, &d->info));
    PM_TRY(check_count(d, json, split));
    *out = d, d = NULL;
out:
    cJSON_Delete(json);
    pm_dataset_close(&d);
    return err;
}

int pm_dataset_list(struct pm_arena *a, const char *folder, const char ***names, size_t *count)
{
    return pm_shards_stems(a, folder, names, count);
}

bool pm_dataset_name_is(const char *name, const char *split)
{
    return pm_shards_stem_is(name, split);
}

void pm_dataset_close(struct pm_dataset **p)
{
    struct pm_dataset *d = *p;
    if (!d)
        return;
    for (size_t k = 0; k < d->parts; k++)
        pm_dataset_close(&d->part[k]);
    pm_free(d->part);
    pm_free(d->first);
    for (size_t i = 0; d->shard && i < d->shards; i++) {
        if (d->shard[i].fd >= 0)
            close(d->shard[i].fd);
        pm_free(d->shard[i].length);
        if (d->offset)
            pm_free(d->offset[i]);
    }
    pm_free(d->offset);
    pthread_mutex_destroy(&d->lock);
    pm_arena_destroy(&d->arena);
    pm_free(d);
    *p = NULL;
}

const struct pm_dataset_info *pm_dataset_get_info(const struct pm_dataset *d)
{
    return &d->info;
}

uint64_t pm_dataset_hash(const struct pm_dataset *d)
{
    uint64_t hash = d->info.count;

    for (size_t i = 0; i < d->parts; i++) {
        const uint64_t part = pm_dataset_hash(d->part[i]);

        hash = pm_hash_bytes(&part, sizeof part, hash);
    }
    for (size_t i = 0; i < d->shards; i++) {
        const struct shard *s = &d->shard[i];

        hash = pm_hash_bytes(s->name, strlen(s->name), hash);
        hash = pm_hash_bytes(d->offset[i], (size_t)(s->count + 1) * sizeof **d->offset, hash);
    }
    return hash;
}

void pm_dataset_sample(struct pm_dataset *d, size_t n)
{
    d->every = n;
    d->info.count = (d->info.count + n - 1) / n;
}

/* ---- joined datasets ------------------------------------------------------------------------ */

int pm_dataset_part(const struct pm_dataset *d, size_t i)
{
    int k = 0;

    while ((size_t)k + 1 < d->parts && i >= d->first[k + 1])
        k++;
    return k;
}

void pm_dataset_range(const struct pm_dataset *d, int part, size_t *first, size_t *count)
{
    *first = d->parts ? d->first[part] : 0;
    *count = d->parts ? d->part[part]->info.count : d->info.count;
}

static bool same_names(const char *const *a, int count, const char *const *b, int other)
{
    if (count != other && count && other)
        return false;
    for (int i = 0; a && b && i < count; i++)
        if (a[i] && b[i] && strcmp(a[i], b[i]))
            return false;
    return true;
}

int pm_dataset_join(struct pm_dataset **parts, size_t count, struct pm_dataset **out)
{
    const struct pm_dataset *one = parts[0];

    for (size_t k = 1; k < count; k++) {
        const struct pm_dataset_info *a = &one->info, *b = &parts[k]->info;

        if (!same_names(a->labels, a->num_classes, b->labels, b->num_classes) ||
            !same_names(a->map_labels, a->map_classes, b->map_labels, b->map_classes))
            return pm_fail(PM_EDATA, "%s has other classes than %s (%d, %d): convert both with the "
                           "same classes in the same order", parts[k]->folder, one->folder,
                           b->num_classes, a->num_classes);
    }
    struct pm_dataset *d = pm_calloc(1, sizeof *d);
    d->arena = pm_arena_create();
    d->folder = pm_arena_strdup(d->arena, one->folder);
    d->info = one->info; /* its texts live as long as the part */
    d->info.count = d->info.files = 0;
    d->info.bytes = 0;
    pthread_mutex_init(&d->lock, NULL);
    d->part = pm_calloc(count, sizeof *d->part);
    d->first = pm_calloc(count, sizeof *d->first);
    d->parts = count;
    for (size_t k = 0; k < count; k++) {
        const struct pm_dataset_info *b = &parts[k]->info;

        d->part[k] = parts[k];
        parts[k] = NULL;
        d->first[k] = d->info.count;
        d->info.count += b->count;
        d->info.files += b->files;
        d->info.bytes += b->bytes;
        if (b->height != d->info.height || b->width != d->info.width)
            d->info.height = d->info.width = 0;
        if (b->channels != d->info.channels)
            d->info.channels = 0;
        if (k > 0 && b->digest)
            d->info.digest = d->info.digest ? pm_arena_printf(d->arena, "%s,%s", d->info.digest,
                                                              b->digest) : b->digest;
    }
    *out = d;
    return PM_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

static size_t shard_of(const struct pm_dataset *d, size_t i)
{
    size_t lo = 0, hi = d->shards;
    while (hi - lo > 1) {
        const size_t mid = (lo + hi) / 2;
        if (d->shard[mid].first <= i)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Closes the shard that was idle longest. Limits open shards to MOST_OPEN: a thousand would exhaust
 * a process's descriptors. If all shards are in use, the caller opens one more. */
static void close_oldest(struct pm_dataset *d)
{
    struct shard *oldest = NULL;
    for (size_t k = 0; k < d->shards; k++) {
        struct shard *s = &d->shard[k];
        if (s->fd >= 0 && s->users == 0 && (!oldest || s->used < oldest->used))
            oldest = s;
    }
    if (oldest) {
        close(oldest->fd);
        oldest->fd = -1;
        d->open--;
    }
}

static int acquire(struct pm_dataset *d, struct shard *s)
{
    int err = PM_OK;

    pthread_mutex_lock(&d->lock);
    if (s->fd < 0) {
        if (d->open >= MOST_OPEN)
            close_oldest(d);
        err = pm_file_open(s->path, &s->fd, NULL);
        d->open += err == PM_OK;
    }
    if (err == PM_OK) {
        s->users++;
        s->used = ++d->clock;
    }
    pthread_mutex_unlock(&d->lock);
    return err;
}

static void release(struct pm_dataset *d, struct shard *s)
{
    pthread_mutex_lock(&d->lock);
    s->users--;
    pthread_mutex_unlock(&d->lock);
}

int pm_dataset_read(struct pm_dataset *d, size_t i, uint8_t **buf, size_t *capacity, size_t *size)
{
    if (d->parts) {
        const int k = pm_dataset_part(d, i);
        return pm_dataset_read(d->part[k], i - d->first[k], buf, capacity, size);
    }
    const size_t at = i * d->every, k = shard_of(d, at);
    struct shard *s = &d->shard[k];
    const uint64_t n = at - s->first, offset = d->offset[k][n];
    const size_t length =
        (size_t)(d->offset[k][n + 1] - offset) - PM_TFRECORD_HEAD - PM_TFRECORD_TAIL;
    int err = acquire(d, s);

    if (err < 0)
        return err;
    if (*capacity < length + PM_TFRECORD_TAIL) {
        *capacity = length + length / 4 + PM_TFRECORD_TAIL;
        *buf = pm_realloc(*buf, *capacity);
    }
    err = pm_tfrecord_data(s->fd, (struct pm_record_place){ s->path, n, offset }, *buf, length);
    release(d, s);
    if (err == PM_OK)
        *size = length;
    return err;
}

char *pm_dataset_where(const struct pm_dataset *d, size_t i, char *buf, size_t size)
{
    if (d->parts) {
        const int k = pm_dataset_part(d, i);
        return pm_dataset_where(d->part[k], i - d->first[k], buf, size);
    }
    const size_t at = i * d->every, k = shard_of(d, at);
    const struct shard *s = &d->shard[k];
    snprintf(buf, size, "%s record %" PRIu64 " (offset %" PRIu64 ")", s->path, at - s->first,
             d->offset[k][at - s->first]);
    return buf;
}
