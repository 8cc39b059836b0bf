/* trace: a timeline of who does what when, in the Trace Event Format that chrome://tracing and
 * Perfetto read. A lane is a row of the picture; lanes stand in groups: a device, the host, the
 * loader. Spans of one lane must not overlap. Spans are kept in memory, at most a million; they are
 * written when a window ends, and with PM_TRACE=file.json, which traces the whole process, at exit.
 * Off, a span costs one comparison. */
#ifndef PUMICE_TRACE_H
#define PUMICE_TRACE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether spans are kept now. Thread-safe. */
bool pm_trace_on(void);
/* Reads PM_TRACE. Call once, before threads start; the file is written at exit. */
void pm_trace_start(void);
/* Writes PM_TRACE's file now, for a process that leaves by _exit; nothing without PM_TRACE. */
void pm_trace_finish(void);
/* A window: spans are kept from now on until pm_trace_close writes those that began in it to a file
 * and forgets them. One at a time. */
void pm_trace_open(void);
int pm_trace_close(const char *path);

/* The lane of that name: "calls" in group "vulkan:0". The same names give the same lane, also after a
 * device was opened again. */
int pm_trace_lane(const char *group, const char *name);
/* Something that the lane did from begin to end, in pm_seconds' time. detail: a second line, or NULL.
 * Texts are copied. Thread-safe. */
void pm_trace_span(int lane, const char *name, const char *detail, double begin, double end);
/* The lane of what this thread does itself, for pm_trace_here in code that knows no lanes. */
void pm_trace_thread(int lane);
/* What this thread did from begin until now; nothing in a thread without a lane. */
void pm_trace_here(const char *name, double begin);
/* pm_seconds when tracing, else 0. */
double pm_trace_now(void);

#ifdef __cplusplus
}
#endif

#endif
