/* phases: one clock that is always running for one of the phases. */
#include <pumice/report.h>
#include <pumice/trace.h>

#include <string.h>

const char *const pm_phase_names[PM_RUN_PHASES] = {
    [PM_RUN_OTHER] = "other",     [PM_RUN_DATA] = "data",
    [PM_RUN_DEVICE] = "device",   [PM_RUN_AVERAGE] = "average",
    [PM_RUN_UPDATE] = "update",   [PM_RUN_SAVING] = "saving",
    [PM_RUN_EVALUATING] = "evaluating", [PM_RUN_EXCHANGE] = "exchange",
};

/* In traces; other time is a gap there. */
static const char *const span_names[PM_RUN_PHASES] = {
    [PM_RUN_DATA] = "waiting for data",
    [PM_RUN_DEVICE] = "waiting for devices",
    [PM_RUN_AVERAGE] = "gradient average",
    [PM_RUN_EXCHANGE] = "waiting for other processes",
    [PM_RUN_UPDATE] = "update and values",
    [PM_RUN_SAVING] = "saving",
    [PM_RUN_EVALUATING] = "evaluating",
};

void pm_phases_start(struct pm_phases *p)
{
    *p = (struct pm_phases){ .now = PM_RUN_OTHER, .since = pm_seconds(),
                             .lane = pm_trace_lane("host", "trainer") };
}

enum pm_phase_of_run pm_phases_enter(struct pm_phases *p, enum pm_phase_of_run phase)
{
    enum pm_phase_of_run before;
    double now;

    if (!p)
        return phase;
    before = p->now;
    now = pm_seconds();
    p->seconds[before] += now - p->since;
    if (span_names[before])
        pm_trace_span(p->lane, span_names[before], NULL, p->since, now);
    p->since = now;
    p->now = phase;
    return before;
}

void pm_phases_take(struct pm_phases *p, double seconds[PM_RUN_PHASES])
{
    pm_phases_enter(p, p->now);
    memcpy(seconds, p->seconds, sizeof p->seconds);
    memset(p->seconds, 0, sizeof p->seconds);
}
