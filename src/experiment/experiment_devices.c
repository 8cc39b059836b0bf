/* experiment_devices: resolves the devices section of a config into specs of clones. */
#include "experiment/experiment.h"

#include "clones/clones.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* PM_SLOW=1:4 makes clone 1 take four times as long, to test the balancer. */
static double injected_slowness(int clone)
{
    const char *text = getenv("PM_SLOW");
    double factor;
    int which;

    return text && sscanf(text, "%d:%lf", &which, &factor) == 2 && which == clone ? factor : 0;
}

/* PM_LOSE=1:5 makes clone 1 lose its device in its fifth step. PM_LOSE=1:5:2 repeats this after the
 * device is opened again. With PM_LOSE_AFTER the fifth step is still complete. PM_HANG=1:5 makes a
 * CPU's fifth step never end. For tests of recovery. */
static void injected_faults(struct pm_clone_spec *s, int clone)
{
    const char *lose = getenv("PM_LOSE"), *after = getenv("PM_LOSE_AFTER");
    const char *hang = getenv("PM_HANG");
    int which, at, times = 1;

    if (lose && sscanf(lose, "%d:%d:%d", &which, &at, &times) >= 2 && which == clone)
        s->lose_at = at, s->lose_times = times;
    if (after && sscanf(after, "%d:%d", &which, &at) == 2 && which == clone)
        s->lose_after = at, s->lose_times = times;
    if (hang && sscanf(hang, "%d:%d", &which, &at) == 2 && which == clone)
        s->hang_at = at;
}

struct pm_device_options pm_experiment_device_options(const struct pm_config *c)
{
    return (struct pm_device_options){
        .segment_ms = c->run.segment_ms, .validate = c->run.validate,
        .hang_seconds = c->run.hang_seconds > 0 ? c->run.hang_seconds : INFINITY,
        .compile_seconds = c->run.compile_seconds > 0 ? c->run.compile_seconds : INFINITY };
}

int pm_experiment_devices(struct pm_experiment *e, struct pm_clone_spec **specs, int *count)
{
    const struct pm_config *c = e->config;
    struct pm_device_info *list = NULL;
    struct pm_clone_spec *s = pm_arena_alloc(e->arena,
                                             sizeof *s * (size_t)(c->devices_count + 1));
    size_t known, index;
    char where[512];
    int err = PM_OK;

    PM_TRY(pm_device_list(&list, &known));
    for (int i = 0; i < c->devices_count; i++) {
        const struct pm_config_device *d = &c->devices[i];

        snprintf(where, sizeof where, "%s: devices[%d]", pm_config_source(c, "devices"), i);
        PM_TRY(pm_device_find(list, known, d->name, where, &index));
        s[i].info = list[index];
        s[i].share = d->share > 0 ? d->share : 1;
        s[i].threads = s[i].info.caps.on_host_cores ? d->threads : 0;
        s[i].place = i;
        s[i].slow = injected_slowness(i);
        injected_faults(&s[i], i);
    }
    *specs = s;
    *count = c->devices_count;
out:
    pm_free(list);
    return err;
}

int pm_experiment_say_devices(const struct pm_experiment *e)
{
    struct pm_device_info *list = NULL;
    size_t known, index;
    int err = PM_OK;

    PM_TRY(pm_device_list(&list, &known));
    PM_TRY(pm_device_find(list, known, "auto", "devices", &index));
    for (int i = 0; i < e->config->devices_count; i++)
        if (strcmp(e->config->devices[i].name, "auto") == 0 && list[index].caps.on_host_cores)
            PM_INFO("device", "auto selects the CPU: %s", pm_device_absence(list, known));
out:
    pm_free(list);
    return err;
}
