/* bench_report: see bench_report.h. */
#include "measure/bench_report.h"

#include <cjson/cJSON.h>
#include <sys/resource.h>

static void add_memory(cJSON *o, struct pm_plan_memory m)
{
    cJSON *memory = cJSON_AddObjectToObject(o, "memory");

    cJSON_AddNumberToObject(memory, "activations", (double)m.activations);
    cJSON_AddNumberToObject(memory, "variables", (double)m.variables);
    cJSON_AddNumberToObject(memory, "gradients", (double)m.gradients);
    cJSON_AddNumberToObject(memory, "slots", (double)m.slots);
    cJSON_AddNumberToObject(memory, "constants", (double)m.constants);
    cJSON_AddNumberToObject(memory, "staging", (double)m.staging);
}

int pm_bench_add_device(cJSON *list, const struct pm_plan *plan, int examples,
                        struct pm_plan_memory m)
{
    const struct pm_device *d = pm_plan_device(plan);
    const struct pm_device_info *info = pm_device_get_info(d);
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "address", info->address);
    cJSON_AddStringToObject(o, "name", info->name);
    cJSON_AddStringToObject(o, "driver", info->driver);
    if (info->caps.threads > 0)
        cJSON_AddNumberToObject(o, "threads", pm_device_caps(d)->threads);
    cJSON_AddNumberToObject(o, "examples", examples);
    cJSON_AddNumberToObject(o, "memory_bytes", (double)pm_device_memory_used(d));
    add_memory(o, m);
    cJSON_AddItemToArray(list, o);
    return pm_plan_counts_json(plan, o);
}

uint64_t pm_bench_peak_bytes(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}
