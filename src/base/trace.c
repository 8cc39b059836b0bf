/* trace: spans are kept in memory and written at exit as Chrome trace events ("X": complete). */
#include <pumice/trace.h>

#include <pumice/base.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LANES = 256 };

bool pm_trace_on;

static struct {
    pthread_mutex_t lock;
    const char *path;
    double start;
    char *lanes[MAX_LANES];
    int lane_count;
    struct span {
        int lane;
        char name[44];
        double begin, end;
    } *spans;
    size_t count, capacity;
} t = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int lane_of(const char *name)
{
    for (int i = 0; i < t.lane_count; i++)
        if (strcmp(t.lanes[i], name) == 0)
            return i;
    if (t.lane_count == MAX_LANES)
        return MAX_LANES - 1;
    t.lanes[t.lane_count] = pm_strdup(name);
    return t.lane_count++;
}

void pm_trace_span(const char *lane, const char *name, double begin, double end)
{
    struct span *s;

    if (!pm_trace_on)
        return;
    pthread_mutex_lock(&t.lock);
    PM_GROW(t.spans, t.count, t.capacity);
    s = &t.spans[t.count++];
    s->lane = lane_of(lane);
    snprintf(s->name, sizeof s->name, "%s", name);
    s->begin = begin - t.start;
    s->end = end - t.start;
    pthread_mutex_unlock(&t.lock);
}

double pm_trace_now(void)
{
    return pm_trace_on ? pm_seconds() : 0;
}

/* A name inside a JSON string: layers' names hold no other specials than these. */
static void add_text(struct pm_str *s, const char *text)
{
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            pm_str_add(s, "\\%c", *text);
        else if ((unsigned char)*text >= ' ')
            pm_str_add(s, "%c", *text);
}

static void write_trace(void)
{
    struct pm_str s = { 0 };

    pm_trace_on = false;
    pm_str_add(&s, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    for (int i = 0; i < t.lane_count; i++) {
        pm_str_add(&s, "{\"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"name\": \"thread_name\", "
                   "\"args\": {\"name\": \"", i);
        add_text(&s, t.lanes[i]);
        pm_str_add(&s, "\"}},\n");
    }
    for (size_t i = 0; i < t.count; i++) {
        const struct span *p = &t.spans[i];

        pm_str_add(&s, "{\"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, "
                   "\"name\": \"", p->lane, 1e6 * p->begin, 1e6 * (p->end - p->begin));
        add_text(&s, p->name);
        pm_str_add(&s, "\"},\n");
    }
    pm_str_add(&s, "{\"ph\": \"M\", \"pid\": 1, \"name\": \"process_name\", "
               "\"args\": {\"name\": \"pumice\"}}\n]}\n");
    if (pm_file_write(t.path, s.text, s.length) < 0)
        PM_ERROR("trace", "%s", pm_error_text());
    pm_str_free(&s);
    for (int i = 0; i < t.lane_count; i++)
        pm_free(t.lanes[i]);
    pm_free(t.spans);
}

void pm_trace_start(void)
{
    t.path = getenv("PM_TRACE");
    if (!t.path || !*t.path)
        return;
    t.start = pm_seconds();
    pm_trace_on = true;
    atexit(write_trace);
}
