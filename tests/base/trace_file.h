/* Reads a trace file and checks the rules for every one: each event has the members that the
 * Trace Event Format requires, lanes and groups have names, and events of one lane do not
 * overlap. */
#ifndef TRACE_FILE_H
#define TRACE_FILE_H

#include "base/unit.h"

#include <pumice/options.h>

#include <cjson/cJSON.h>

static inline double trace_number(const cJSON *event, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(event, key);

    if (!cJSON_IsNumber(v))
        fail_msg("an event has no number \"%s\"", key);
    return v->valuedouble;
}

static inline const char *trace_text(const cJSON *event, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(event, key);

    if (!cJSON_IsString(v))
        fail_msg("an event has no text \"%s\"", key);
    return v->valuestring;
}

/* The name that a metadata event gives to pid and, for "thread_name", to tid; NULL without one. */
static inline const char *trace_name(const cJSON *events, const char *what, double pid, double tid)
{
    const cJSON *e;

    cJSON_ArrayForEach(e, events)
    {
        if (strcmp(trace_text(e, "ph"), "M") == 0 && strcmp(trace_text(e, "name"), what) == 0 &&
            trace_number(e, "pid") == pid &&
            (strcmp(what, "process_name") == 0 || trace_number(e, "tid") == tid))
            return trace_text(cJSON_GetObjectItem(e, "args"), "name");
    }
    return NULL;
}

/* Most lanes whose last end is tracked. */
enum { TRACE_LANES = 256 };

/* Parses and checks the file. *spans, unless NULL, gets the number of spans. Free with
 * cJSON_Delete. */
static inline cJSON *trace_read(const char *path, int *spans)
{
    double lane[TRACE_LANES], end[TRACE_LANES];
    int lanes = 0, count = 0;
    char *text = NULL;
    cJSON *file;
    const cJSON *events, *e;

    if (pm_file_read(path, &text, NULL) < 0)
        fail_msg("%s", pm_error_text());
    file = cJSON_ParseWithOpts(text, NULL, true);
    pm_free(text);
    assert_non_null(file);
    events = cJSON_GetObjectItem(file, "traceEvents");
    assert_true(cJSON_IsArray(events));
    cJSON_ArrayForEach(e, events)
    {
        const char *ph = trace_text(e, "ph");
        double pid = trace_number(e, "pid"), tid = trace_number(e, "tid");
        double ts = trace_number(e, "ts");
        int k = 0;

        assert_true(strlen(trace_text(e, "name")) > 0);
        if (strcmp(ph, "M") == 0)
            continue;
        assert_string_equal(ph, "X");
        assert_true(ts >= 0 && trace_number(e, "dur") >= 0);
        while (k < lanes && lane[k] != tid)
            k++;
        if (k == lanes) {
            assert_true(lanes < TRACE_LANES);
            assert_non_null(trace_name(events, "process_name", pid, tid));
            assert_non_null(trace_name(events, "thread_name", pid, tid));
            lane[lanes] = tid;
            end[lanes++] = 0;
        }
        /* Times have three digits after the point. */
        if (ts < end[k] - 1e-4)
            fail_msg("%s: \"%s\" begins at %.3f, before the end of the one before it, %.3f",
                     trace_name(events, "thread_name", pid, tid), trace_text(e, "name"), ts,
                     end[k]);
        end[k] = ts + trace_number(e, "dur");
        count++;
    }
    if (spans)
        *spans = count;
    return file;
}

/* Number of spans in a lane (NULL: any lane of the group) with a name (NULL: any). */
static inline int trace_count(const cJSON *file, const char *group, const char *lane,
                              const char *name)
{
    const cJSON *events = cJSON_GetObjectItem(file, "traceEvents"), *e;
    int count = 0;

    cJSON_ArrayForEach(e, events)
    {
        double pid = trace_number(e, "pid"), tid = trace_number(e, "tid");

        if (strcmp(trace_text(e, "ph"), "X") == 0 &&
            strstr(trace_name(events, "process_name", pid, tid), group) &&
            (!lane || strcmp(trace_name(events, "thread_name", pid, tid), lane) == 0) &&
            (!name || strcmp(trace_text(e, "name"), name) == 0))
            count++;
    }
    return count;
}

#endif
