/* tensorboard: event files. A record is built in memory and written with one call, at the end of
 * the last complete record. A partial write (a full disk) is removed by truncating the file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "event.pb-c.h"
#include "formats/tensorboard.h"
#include "formats/tfrecord.h"

struct pm_events {
    char *path; /* owned */
    int fd;
    off_t size;             /* bytes of complete records */
    struct pm_arena *arena; /* of the collected values; NULL: none */
    Pm__SummaryValue **values;
    size_t count, capacity;
};

/* ---- records ---------------------------------------------------------------------------- */

static double wall_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int write_at(struct pm_events *e, const char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(e->fd, data + done, size - done, e->size + (off_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int why = n < 0 ? errno : ENOSPC;

            if (ftruncate(e->fd, e->size) < 0)
                PM_DEBUG("events", "%s: cannot be truncated: %s", e->path, strerror(errno));
            return pm_fail(PM_EFAIL, "%s: cannot write: %s", e->path, pm_write_error(why));
        }
        done += (size_t)n;
    }
    e->size += (off_t)size;
    return PM_OK;
}

static int write_event(struct pm_events *e, const Pm__Event *event)
{
    size_t size = pm__event__get_packed_size(event);
    char *record = pm_malloc(PM_TFRECORD_HEAD + size + PM_TFRECORD_TAIL);
    char *data = record + PM_TFRECORD_HEAD;
    int err;

    pm__event__pack(event, (uint8_t *)data);
    pm_tfrecord_frame(data, size, (uint8_t *)record, (uint8_t *)data + size);
    err = write_at(e, record, PM_TFRECORD_HEAD + size + PM_TFRECORD_TAIL);
    pm_free(record);
    return err;
}

/* ---- files ------------------------------------------------------------------------------ */

/* Chooses an unused name. TensorBoard reads the files of a folder in the order of their names. */
static int make_file(struct pm_events *e, const char *folder, long long seconds)
{
    char host[HOST_NAME_MAX + 1] = "localhost";
    struct pm_str path = { 0 };

    gethostname(host, sizeof host - 1);
    for (int k = 0; k < 1000; k++) {
        path.length = 0;
        pm_str_add(&path, "%s/events.out.tfevents.%010lld.%s", folder, seconds, host);
        if (k > 0)
            pm_str_add(&path, ".%d", k);
        e->fd = open(path.text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (e->fd >= 0 || errno != EEXIST)
            break;
    }
    e->path = path.text;
    if (e->fd < 0)
        return pm_fail(PM_EFAIL, "%s: cannot be created: %s", e->path, strerror(errno));
    return PM_OK;
}

int pm_events_create_at(const char *folder, long long seconds, struct pm_events **out)
{
    Pm__Event first = PM__EVENT__INIT;
    struct pm_events *e = pm_calloc(1, sizeof *e);
    int err = PM_OK;

    e->fd = -1;
    first.wall_time = (double)seconds;
    first.what_case = PM__EVENT__WHAT_FILE_VERSION;
    first.file_version = (char *)"brain.Event:2";
    PM_TRY(pm_make_folder(folder));
    PM_TRY(make_file(e, folder, seconds));
    PM_TRY(write_event(e, &first));
    *out = e, e = NULL;
out:
    pm_events_close(&e);
    return err;
}

int pm_events_create(const char *folder, struct pm_events **out)
{
    return pm_events_create_at(folder, (long long)time(NULL), out);
}

static void forget(struct pm_events *e)
{
    pm_arena_destroy(&e->arena);
    e->count = 0;
}

void pm_events_close(struct pm_events **e)
{
    if (!*e)
        return;
    if ((*e)->fd >= 0)
        close((*e)->fd);
    forget(*e);
    pm_free((*e)->values);
    pm_free((*e)->path);
    pm_free(*e);
    *e = NULL;
}

const char *pm_events_path(const struct pm_events *e)
{
    return e->path;
}

/* ---- values ----------------------------------------------------------------------------- */

static bool is_taken(const struct pm_events *e, const char *tag)
{
    for (size_t i = 0; i < e->count; i++)
        if (strcmp(e->values[i]->tag, tag) == 0)
            return true;
    return false;
}

/* Cleans the tag and makes it unique within the step. */
static char *clean_tag(const struct pm_events *e, const char *tag)
{
    char *clean, *unique;

    while (*tag == '/')
        tag++;
    clean = unique = pm_arena_strdup(e->arena, tag);
    for (char *p = clean; *p; p++)
        if (!(*p >= 'a' && *p <= 'z') && !(*p >= 'A' && *p <= 'Z') && !(*p >= '0' && *p <= '9') &&
            !strchr("_.-/", *p))
            *p = '_';
    for (int k = 1; is_taken(e, unique); k++)
        unique = pm_arena_printf(e->arena, "%s_%d", clean, k);
    return unique;
}

static Pm__SummaryValue *add_value(struct pm_events *e, const char *tag)
{
    Pm__SummaryValue *v;

    if (!e->arena)
        e->arena = pm_arena_create();
    v = pm_arena_alloc(e->arena, sizeof *v);
    pm__summary_value__init(v);
    v->tag = clean_tag(e, tag);
    PM_GROW(e->values, e->count, e->capacity);
    e->values[e->count++] = v;
    return v;
}

void pm_events_scalar(struct pm_events *e, const char *tag, double value)
{
    Pm__SummaryValue *v = add_value(e, tag);

    v->value_case = PM__SUMMARY_VALUE__VALUE_SIMPLE_VALUE;
    v->simple_value = (float)value;
}

void pm_events_plugin(struct pm_events *e, const char *tag, const char *plugin,
                      const void *content, size_t size)
{
    Pm__SummaryValue *v = add_value(e, tag);
    Pm__SummaryMetadata *metadata = pm_arena_alloc(e->arena, sizeof *metadata);
    Pm__PluginData *data = pm_arena_alloc(e->arena, sizeof *data);

    pm__summary_metadata__init(metadata);
    pm__plugin_data__init(data);
    data->plugin_name = pm_arena_strdup(e->arena, plugin);
    data->content.len = size;
    data->content.data = pm_arena_copy(e->arena, content, size);
    metadata->plugin_data = data;
    v->metadata = metadata;
}

void pm_events_image(struct pm_events *e, const char *tag, int height, int width, int channels,
                     const void *png, size_t size)
{
    Pm__SummaryValue *v = add_value(e, tag);
    Pm__SummaryImage *image = pm_arena_alloc(e->arena, sizeof *image);

    pm__summary_image__init(image);
    image->height = height;
    image->width = width;
    image->colorspace = channels;
    image->encoded_image_string.len = size;
    image->encoded_image_string.data = pm_arena_copy(e->arena, png, size);
    v->value_case = PM__SUMMARY_VALUE__VALUE_IMAGE;
    v->image = image;
}

/* Merges consecutive empty buckets into one, which has the limit of the last. */
void pm_events_histogram(struct pm_events *e, const char *tag, const struct pm_histogram *h)
{
    Pm__SummaryValue *v = add_value(e, tag);
    Pm__HistogramProto *p = pm_arena_alloc(e->arena, sizeof *p);
    double limit[PM_HISTOGRAM_BUCKETS], count[PM_HISTOGRAM_BUCKETS];
    bool after_empty = false;
    size_t n = 0;

    for (int i = 0; i < PM_HISTOGRAM_BUCKETS; i++) {
        if (after_empty && h->bucket[i] == 0)
            n--;
        after_empty = h->bucket[i] == 0;
        limit[n] = pm_histogram_limit(i);
        count[n++] = (double)h->bucket[i];
    }
    pm__histogram_proto__init(p);
    p->min = h->min;
    p->max = h->max;
    p->num = h->num;
    p->sum = h->sum;
    p->sum_squares = h->sum_squares;
    p->n_bucket_limit = p->n_bucket = n;
    p->bucket_limit = pm_arena_copy(e->arena, limit, n * sizeof *limit);
    p->bucket = pm_arena_copy(e->arena, count, n * sizeof *count);
    v->value_case = PM__SUMMARY_VALUE__VALUE_HISTO;
    v->histo = p;
}

int pm_events_write(struct pm_events *e, uint64_t step)
{
    Pm__Event event = PM__EVENT__INIT;
    Pm__Summary summary = PM__SUMMARY__INIT;
    int err;

    if (e->count == 0)
        return PM_OK;
    summary.n_value = e->count;
    summary.value = e->values;
    event.wall_time = wall_time();
    event.step = (int64_t)step;
    event.what_case = PM__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    err = write_event(e, &event);
    forget(e);
    return err;
}

int pm_events_session(struct pm_events *e, enum pm_events_status what, uint64_t step,
                      const char *checkpoint)
{
    Pm__Event event = PM__EVENT__INIT;
    Pm__SessionLog log = PM__SESSION_LOG__INIT;

    log.status = (int32_t)what;
    if (checkpoint)
        log.checkpoint_path = (char *)checkpoint;
    event.wall_time = wall_time();
    event.step = (int64_t)step;
    event.what_case = PM__EVENT__WHAT_SESSION_LOG;
    event.session_log = &log;
    return write_event(e, &event);
}
