/* trace: spans in memory, written as complete events ("X") of the Trace Event Format. There, a
 * group is a process and a lane is a thread. Each text is stored once and spans refer to it, so a
 * span takes 32 bytes. */
#include <pumice/trace.h>

#include <pumice/base.h>

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LANES = 1024, MAX_SPANS = 1 << 20, NO_TEXT = -1 };

static atomic_bool tracing;

bool pm_trace_on(void)
{
    return atomic_load_explicit(&tracing, memory_order_relaxed);
}

struct span {
    int lane, name, detail; /* numbers in lanes and texts */
    double begin, end;      /* pm_seconds */
};

static struct {
    pthread_mutex_t lock;
    const char *path;       /* file of PM_TRACE, or NULL */
    double start;           /* start of PM_TRACE's trace, pm_seconds */
    bool window;
    double window_start;
    size_t window_first;    /* index of the window's first span */
    struct lane {
        char group[64], name[48];
    } *lanes;
    int lane_count, lane_capacity;
    char **texts;
    int text_count, text_capacity;
    int *slots;             /* open addressing: text number + 1, or 0 */
    size_t slot_count;
    struct span *spans;
    size_t count, capacity, lost;
} t = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local int thread_lane = -1;

/* ---- texts ------------------------------------------------------------------------------ */

static size_t slot_of(const char *text)
{
    size_t i = pm_hash(text) & (t.slot_count - 1);

    while (t.slots[i] && strcmp(t.texts[t.slots[i] - 1], text) != 0)
        i = (i + 1) & (t.slot_count - 1);
    return i;
}

static void grow_slots(void)
{
    pm_free(t.slots);
    t.slot_count = t.slot_count ? 2 * t.slot_count : 1024;
    t.slots = pm_calloc(t.slot_count, sizeof *t.slots);
    for (int i = 0; i < t.text_count; i++)
        t.slots[slot_of(t.texts[i])] = i + 1;
}

static int text_of(const char *text)
{
    size_t slot;

    if (!text)
        return NO_TEXT;
    if (2 * (size_t)t.text_count >= t.slot_count)
        grow_slots();
    slot = slot_of(text);
    if (!t.slots[slot]) {
        PM_GROW(t.texts, t.text_count, t.text_capacity);
        t.texts[t.text_count++] = pm_strdup(text);
        t.slots[slot] = t.text_count;
    }
    return t.slots[slot] - 1;
}

static void forget_texts(void)
{
    for (int i = 0; i < t.text_count; i++)
        pm_free(t.texts[i]);
    pm_free(t.texts);
    pm_free(t.slots);
    t.texts = NULL, t.slots = NULL;
    t.text_count = t.text_capacity = 0;
    t.slot_count = 0;
}

/* ---- spans ------------------------------------------------------------------------------ */

int pm_trace_lane(const char *group, const char *name)
{
    struct lane l = { 0 };
    int i = 0;

    snprintf(l.group, sizeof l.group, "%s", group);
    snprintf(l.name, sizeof l.name, "%s", name);
    pthread_mutex_lock(&t.lock);
    while (i < t.lane_count && memcmp(&t.lanes[i], &l, sizeof l) != 0)
        i++;
    if (i == t.lane_count && i < MAX_LANES) {
        PM_GROW(t.lanes, t.lane_count, t.lane_capacity);
        t.lanes[t.lane_count++] = l;
    }
    pthread_mutex_unlock(&t.lock);
    return i < MAX_LANES ? i : -1;
}

void pm_trace_span(int lane, const char *name, const char *detail, double begin, double end)
{
    if (!pm_trace_on() || lane < 0)
        return;
    pthread_mutex_lock(&t.lock);
    if (t.count < MAX_SPANS) {
        PM_GROW(t.spans, t.count, t.capacity);
        t.spans[t.count++] = (struct span){ lane, text_of(name), text_of(detail), begin, end };
    } else {
        t.lost++;
    }
    pthread_mutex_unlock(&t.lock);
}

void pm_trace_thread(int lane)
{
    thread_lane = lane;
}

void pm_trace_here(const char *name, double begin)
{
    if (pm_trace_on() && begin > 0)
        pm_trace_span(thread_lane, name, NULL, begin, pm_seconds());
}

double pm_trace_now(void)
{
    return pm_trace_on() ? pm_seconds() : 0;
}

/* ---- writing ---------------------------------------------------------------------------- */

static int by_lane_and_time(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Adds the text as the inside of a JSON string. */
static void add_text(struct pm_str *s, const char *text)
{
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            pm_str_add(s, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            pm_str_add(s, "\\u%04x", (unsigned)*text);
        else
            pm_str_add(s, "%c", *text);
}

/* Returns a group's number: that of its first lane, plus one. */
static int process_of(int lane)
{
    for (int i = 0; i < lane; i++)
        if (strcmp(t.lanes[i].group, t.lanes[lane].group) == 0)
            return i + 1;
    return lane + 1;
}

static void add_name(struct pm_str *s, const char *what, int pid, int tid, const char *name)
{
    pm_str_add(s, "{\"ph\":\"M\",\"ts\":0,\"pid\":%d,\"tid\":%d,\"name\":\"%s_name\",\"args\":"
               "{\"name\":\"", pid, tid, what);
    add_text(s, name);
    pm_str_add(s, "\"}},\n{\"ph\":\"M\",\"ts\":0,\"pid\":%d,\"tid\":%d,\"name\":\"%s_sort_index\","
               "\"args\":{\"sort_index\":%d}},\n", pid, tid, what, tid);
}

/* Adds a span in whole nanoseconds, so rounding does not make separate spans overlap. */
static void add_span(struct pm_str *s, const struct span *p, double start)
{
    double begin = round(1e9 * fmax(p->begin - start, 0)), end = round(1e9 * (p->end - start));

    pm_str_add(s, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":\"",
               process_of(p->lane), p->lane + 1, begin / 1e3, fmax(end - begin, 0) / 1e3);
    add_text(s, t.texts[p->name]);
    if (p->detail >= 0) {
        pm_str_add(s, "\",\"args\":{\"what\":\"");
        add_text(s, t.texts[p->detail]);
        pm_str_add(s, "\"}},\n");
    } else {
        pm_str_add(s, "\"},\n");
    }
}

/* Adds the names of lanes that have spans, and of their groups. */
static void add_names(struct pm_str *s, const bool *used)
{
    bool *named = pm_calloc((size_t)t.lane_count + 1, sizeof *named);

    for (int i = 0; i < t.lane_count; i++) {
        int pid = process_of(i);

        if (!used[i])
            continue;
        if (!named[pid])
            add_name(s, "process", pid, pid, t.lanes[i].group);
        named[pid] = true;
        add_name(s, "thread", pid, i + 1, t.lanes[i].name);
    }
    pm_free(named);
}

/* Writes spans from number `first` on that began at start or later. Call it under the lock. */
static int write_spans(const char *path, size_t first, double start)
{
    struct pm_str s = { 0 };
    bool *used = pm_calloc((size_t)t.lane_count + 1, sizeof *used);
    int err;

    if (t.count > first)
        qsort(t.spans + first, t.count - first, sizeof *t.spans, by_lane_and_time);
    for (size_t i = first; i < t.count; i++)
        used[t.spans[i].lane] |= t.spans[i].begin >= start;
    pm_str_add(&s, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    add_names(&s, used);
    for (size_t i = first; i < t.count; i++)
        if (t.spans[i].begin >= start)
            add_span(&s, &t.spans[i], start);
    if (s.text[s.length - 2] == ',') /* JSON allows no comma after the last item */
        s.text[s.length - 2] = ' ';
    pm_str_add(&s, "]}\n");
    err = pm_file_write(path, s.text, s.length);
    pm_str_free(&s);
    pm_free(used);
    if (t.lost)
        PM_WARN("trace", "%s: the last %zu spans are left out: a trace holds at most %d", path,
                t.lost, MAX_SPANS);
    return err;
}

static void forget_spans(void)
{
    pm_free(t.spans);
    t.spans = NULL;
    t.count = t.capacity = t.lost = 0;
    forget_texts();
}

void pm_trace_open(void)
{
    pthread_mutex_lock(&t.lock);
    assert(!t.window);
    t.window = true;
    t.window_start = pm_seconds();
    t.window_first = t.count;
    pthread_mutex_unlock(&t.lock);
    atomic_store(&tracing, true);
}

void pm_trace_each(void (*see)(void *ctx, const struct pm_trace_event *e), void *ctx)
{
    pthread_mutex_lock(&t.lock);
    assert(t.window);
    if (t.count > t.window_first)
        qsort(t.spans + t.window_first, t.count - t.window_first, sizeof *t.spans,
              by_lane_and_time);
    for (size_t i = t.window_first; i < t.count; i++) {
        const struct span *s = &t.spans[i];
        const struct lane *l = &t.lanes[s->lane];

        if (s->begin >= t.window_start)
            see(ctx, &(struct pm_trace_event){
                l->group, l->name, t.texts[s->name], s->detail >= 0 ? t.texts[s->detail] : NULL,
                s->begin - t.window_start, s->end - t.window_start });
    }
    pthread_mutex_unlock(&t.lock);
}

int pm_trace_close(const char *path)
{
    int err = PM_OK;

    pthread_mutex_lock(&t.lock);
    assert(t.window);
    t.window = false;
    atomic_store(&tracing, t.path != NULL);
    if (path)
        err = write_spans(path, t.window_first, t.window_start);
    if (!t.path)
        forget_spans();
    pthread_mutex_unlock(&t.lock);
    return err;
}

void pm_trace_finish(void)
{
    if (!t.path || !atomic_exchange(&tracing, false))
        return;
    pthread_mutex_lock(&t.lock);
    if (write_spans(t.path, 0, t.start) < 0)
        PM_ERROR("trace", "%s", pm_error_text());
    forget_spans();
    pthread_mutex_unlock(&t.lock);
}

void pm_trace_start(void)
{
    t.path = getenv("PM_TRACE");
    if (t.path && !*t.path)
        t.path = NULL;
    if (!t.path)
        return;
    t.start = pm_seconds();
    atomic_store(&tracing, true);
    atexit(pm_trace_finish);
}
