/* trace: records a timeline in the Trace Event Format, which chrome://tracing and Perfetto read. A
 * lane is a row of the timeline. Lanes belong to groups: a device, the host, the loader. Spans of
 * one lane must not overlap. Up to a million spans are kept in memory. They are written when a
 * window ends, or at exit with PM_TRACE=file.json, which traces the whole process. While tracing is
 * off, a span costs one comparison. */
#ifndef PUMICE_TRACE_H
#define PUMICE_TRACE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether tracing is on. Thread-safe. */
bool pm_trace_on(void);
/* Reads PM_TRACE. Call it once, before starting threads. The file is written at exit. */
void pm_trace_start(void);
/* Writes the file of PM_TRACE now, for a process that ends with _exit. Does nothing without
 * PM_TRACE. */
void pm_trace_finish(void);
/* Opens a window: spans are recorded until pm_trace_close writes those that began in it to a file,
 * or, if path is NULL, forgets them. Only one window at a time. */
void pm_trace_open(void);
int pm_trace_close(const char *path);
/* A span of the window; times in seconds since its start. Texts are valid during the call. */
struct pm_trace_event {
    const char *group, *lane, *name, *detail; /* detail: NULL if there is none */
    double begin, end;
};
/* Calls see for each span of the open window so far, by lane and then by begin. see must not call
 * functions of this header. */
void pm_trace_each(void (*see)(void *ctx, const struct pm_trace_event *e), void *ctx);

/* Returns the lane with this name, for example "calls" in group "vulkan:0". The same names give the
 * same lane, also after a device was re-opened. */
int pm_trace_lane(const char *group, const char *name);
/* Records a span from begin to end (pm_seconds) in a lane. detail: a second line, or NULL. Texts
 * are copied. Thread-safe. */
void pm_trace_span(int lane, const char *name, const char *detail, double begin, double end);
/* Sets the lane of this thread for pm_trace_here. */
void pm_trace_thread(int lane);
/* Records a span from begin until now in the lane of this thread. Does nothing in a thread without
 * one. */
void pm_trace_here(const char *name, double begin);
/* pm_seconds() while tracing, else 0. */
double pm_trace_now(void);

#ifdef __cplusplus
}
#endif

#endif
