/* trace: a timeline of who does what when, for chrome://tracing and Perfetto. PM_TRACE=file.json
 * turns it on; the file is written when the program ends. Off, a span costs one comparison. */
#ifndef PUMICE_TRACE_H
#define PUMICE_TRACE_H

#include <stdbool.h>

extern bool pm_trace_on;
/* Reads PM_TRACE. Call once, before threads start; the file is written at exit. */
void pm_trace_start(void);
/* Something that lane ("cpu", "host", "loader 0") did from begin to end, in pm_seconds' time. Lanes
 * and names are copied. Thread-safe. */
void pm_trace_span(const char *lane, const char *name, double begin, double end);
/* pm_seconds when tracing, else 0. */
double pm_trace_now(void);

#endif
