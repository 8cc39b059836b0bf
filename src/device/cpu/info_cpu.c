/* info_cpu: describes the CPU without opening it. */
#include "device/backend.h"

#include <pumice/thread.h>

#include <string.h>
#include <unistd.h>

static void cpu_name(char *name, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];

    snprintf(name, size, "CPU");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');

        if (strncmp(line, "model name", 10) == 0 && colon) {
            snprintf(name, size, "%s", colon + 2);
            name[strcspn(name, "\n")] = 0;
            break;
        }
    }
    if (f)
        fclose(f);
}

void pm_cpu_info(struct pm_device_info *info)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    memset(info, 0, sizeof *info);
    snprintf(info->address, sizeof info->address, "cpu");
    cpu_name(info->name, sizeof info->name);
#ifdef PUMICE_DNNL
    snprintf(info->driver, sizeof info->driver, "Pumice %s with oneDNN and OpenBLAS",
             PUMICE_VERSION);
#else
    snprintf(info->driver, sizeof info->driver, "Pumice %s with OpenBLAS", PUMICE_VERSION);
#endif
    info->kind = PM_KIND_CPU;
    info->memory_bytes = (uint64_t)pages * (uint64_t)page;
    info->usable = true;
    info->caps = (struct pm_caps){
        .on_host_cores = true,
        .subgroup_size = 1,
        .max_buffer_bytes = info->memory_bytes,
        .int64 = true,
        .threads = pm_threads(),
    };
}
