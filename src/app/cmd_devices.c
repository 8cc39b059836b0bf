/* pumice devices: lists every device, why one is not usable, and which devices a name selects. */
#include "app/app.h"

#include <cjson/cJSON.h>
#include <string.h>

#include <pumice/measure.h>

static const char *const kinds[] = {
    [PM_KIND_CPU] = "cpu", [PM_KIND_DISCRETE] = "discrete", [PM_KIND_INTEGRATED] = "integrated",
    [PM_KIND_VIRTUAL] = "virtual", [PM_KIND_SOFTWARE] = "software",
};
static const char *const classes[] = {
    [PM_CLASS_OTHER] = "other", [PM_CLASS_LAVAPIPE] = "lavapipe",
    [PM_CLASS_SWIFTSHADER] = "swiftshader", [PM_CLASS_POCL] = "pocl",
    [PM_CLASS_AMD_RDNA] = "amd_rdna", [PM_CLASS_AMD_GCN] = "amd_gcn",
    [PM_CLASS_NVIDIA] = "nvidia", [PM_CLASS_INTEL] = "intel",
};

static const char *why(const struct pm_device_info *d)
{
    switch (d->kind) {
    case PM_KIND_DISCRETE:
        return "discrete GPUs come first; among several, Vulkan before OpenCL, then the most "
               "memory";
    case PM_KIND_INTEGRATED:
        return "no usable discrete GPU is there, and an integrated one comes before the CPU";
    case PM_KIND_VIRTUAL:
        return "no usable discrete or integrated GPU is there";
    default:
        return "there is no usable GPU, and software drivers are used only if they are named";
    }
}

/* ---- text --------------------------------------------------------------------------- */

static void add_text(struct pm_str *s, const struct pm_device_info *d)
{
    const struct pm_caps *c = &d->caps;
    char memory[24], buffer[24], shared[24];

    pm_str_add(s, "%s  %s\n", d->address, d->name);
    if (!d->usable)
        pm_str_add(s, "    not usable  %s\n", d->reason);
    pm_str_add(s, "    driver      %s\n", d->driver);
    pm_str_add(s, "    kind        %s, %s of memory\n", kinds[d->kind],
               pm_bytes_text(d->memory_bytes, memory));
    if (!c->runs_shaders) {
        pm_str_add(s, "    threads     %d\n", c->threads);
        return;
    }
    pm_str_add(s, "    uuid        %s%s%s\n", d->uuid[0] ? d->uuid : "none",
               d->pci[0] ? ", PCI " : "", d->pci);
    pm_str_add(s, "    limits      buffers of %s, workgroups of %u (%ux%ux%u) with %s shared\n",
               pm_bytes_text(c->max_buffer_bytes, buffer), c->max_workgroup_invocations,
               c->max_workgroup_size[0], c->max_workgroup_size[1], c->max_workgroup_size[2],
               pm_bytes_text(c->shared_bytes, shared));
    pm_str_add(s, "    kernels     for %s, subgroups of %u\n", classes[c->device_class],
               c->subgroup_size);
    if (c->compute_units > 0)
        pm_str_add(s, "    units       %u compute units%s\n", c->compute_units,
                   c->compute_units_guessed ? " (a guess: the driver does not report them)" : "");
    pm_str_add(s, "    features    %s\n", d->features[0] ? d->features : "none that are optional");
}

static int print_text(const struct pm_device_info *list, size_t count, const char *name,
                      size_t index, const struct pm_speed_peak *peak)
{
    struct pm_str s = { 0 };
    char bytes[24];
    int err;

    for (size_t i = 0; i < count; i++) {
        add_text(&s, &list[i]);
        if (peak && i == index)
            pm_str_add(&s, "    measured    %.1f GFLOP/s of multiply-adds in registers, %.1f GB/s "
                       "copying %s\n", peak->gflops, peak->gigabytes,
                       pm_bytes_text(peak->copy_bytes, bytes));
    }
    pm_str_add(&s, "%s%s means %s (%s)", count ? "\n" : "", name, list[index].address,
               list[index].name);
    if (strcmp(name, "auto") == 0)
        pm_str_add(&s, ": %s", why(&list[index]));
    pm_str_add(&s, "\n");
    err = app_print(s.text);
    pm_str_free(&s);
    return err;
}

/* ---- JSON --------------------------------------------------------------------------- */

static cJSON *three(const uint32_t v[3])
{
    cJSON *list = cJSON_CreateArray();

    for (int i = 0; i < 3; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(v[i]));
    return list;
}

static cJSON *words(const char *text)
{
    cJSON *list = cJSON_CreateArray();
    char word[64];

    for (size_t n; *text; text += n + (text[n] == ' ')) {
        n = strcspn(text, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        cJSON_AddItemToArray(list, cJSON_CreateString(word));
    }
    return list;
}

static cJSON *device_json(const struct pm_device_info *d)
{
    const struct pm_caps *c = &d->caps;
    cJSON *o = cJSON_CreateObject(), *limits;

    cJSON_AddStringToObject(o, "address", d->address);
    cJSON_AddStringToObject(o, "name", d->name);
    cJSON_AddStringToObject(o, "driver", d->driver);
    cJSON_AddStringToObject(o, "kind", kinds[d->kind]);
    cJSON_AddBoolToObject(o, "usable", d->usable);
    if (!d->usable)
        cJSON_AddStringToObject(o, "reason", d->reason);
    cJSON_AddNumberToObject(o, "memory_bytes", (double)d->memory_bytes);
    if (!c->runs_shaders) {
        cJSON_AddNumberToObject(o, "threads", c->threads);
        return o;
    }
    cJSON_AddStringToObject(o, "uuid", d->uuid);
    cJSON_AddStringToObject(o, "pci", d->pci);
    cJSON_AddStringToObject(o, "class", classes[c->device_class]);
    cJSON_AddItemToObject(o, "features", words(d->features));
    limits = cJSON_AddObjectToObject(o, "limits");
    cJSON_AddNumberToObject(limits, "max_buffer_bytes", (double)c->max_buffer_bytes);
    cJSON_AddNumberToObject(limits, "shared_bytes", c->shared_bytes);
    cJSON_AddNumberToObject(limits, "subgroup_size", c->subgroup_size);
    cJSON_AddNumberToObject(limits, "compute_units", c->compute_units);
    cJSON_AddBoolToObject(limits, "compute_units_guessed", c->compute_units_guessed);
    cJSON_AddNumberToObject(limits, "max_workgroup_invocations", c->max_workgroup_invocations);
    cJSON_AddItemToObject(limits, "max_workgroup_size", three(c->max_workgroup_size));
    cJSON_AddItemToObject(limits, "max_groups", three(c->max_groups));
    return o;
}

static int print_json(const struct pm_device_info *list, size_t count, const char *name,
                      size_t index, const struct pm_speed_peak *peak, struct app_globals *g)
{
    cJSON *o = cJSON_CreateObject(), *devices = cJSON_AddArrayToObject(o, "devices"), *measured;
    int err;

    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToArray(devices, device_json(&list[i]));
    if (peak) {
        measured = cJSON_AddObjectToObject(cJSON_GetArrayItem(devices, (int)index), "measured");
        cJSON_AddNumberToObject(measured, "gflops", peak->gflops);
        cJSON_AddNumberToObject(measured, "gigabytes_per_second", peak->gigabytes);
        cJSON_AddNumberToObject(measured, "copy_bytes", (double)peak->copy_bytes);
    }
    cJSON_AddStringToObject(o, "asked", name);
    cJSON_AddStringToObject(o, "picked", list[index].address);
    if (strcmp(name, "auto") == 0)
        cJSON_AddStringToObject(o, "why", why(&list[index]));
    err = app_print_json(g, o);
    cJSON_Delete(o);
    return err;
}

/* ---- the command -------------------------------------------------------------------- */

static int measure(const struct pm_device_info *info, struct pm_speed_peak *out)
{
    struct pm_device *d = NULL;
    int err = PM_OK;

    PM_TRY(pm_device_open(info, NULL, &d));
    PM_TRY(pm_measure_peak(d, 2, out));
out:
    pm_device_close(&d);
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    int err = PM_OK;
    bool measured = app_take_flag(&argc, argv, "--measure");
    struct pm_speed_peak peak = { 0 }, *shown = measured ? &peak : NULL;
    struct pm_arena *a = pm_arena_create();
    struct app_args args;
    struct pm_device_info *list = NULL;
    size_t count = 0, index = 0;
    const char *name = "auto";

    PM_TRY(app_args(argc, argv, "devices", a, &args));
    if (args.words_count > 1 || args.overrides_count > 0)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: devices takes one name at most, as \"auto\" or "
                       "\"vulkan:0\""));
    if (args.words_count == 1)
        name = args.words[0];
    PM_TRY(pm_device_list(&list, &count));
    PM_TRY(pm_device_find(list, count, name, "command line", &index));
    if (measured)
        PM_TRY(measure(&list[index], &peak));
    PM_TRY(g->json ? print_json(list, count, name, index, shown, g)
                   : print_text(list, count, name, index, shown));
out:
    pm_free(list);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_devices = {
    .name = "devices", .help = "lists devices and what they can do",
    .usage = "[NAME] [--measure]",
    .details =
        "Lists every device with the address, name and UUID that a config can use, and its\n"
        "limits and features. If two drivers offer the same GPU, the better one is used; Vulkan\n"
        "comes before OpenCL. Software drivers (lavapipe, SwiftShader, PoCL) are used only if a\n"
        "config names them.\n"
        "\n"
        "NAME is an entry of a config's \"devices\": auto (the default), cpu, vulkan:0, opencl:0,\n"
        "a UUID or a part of a name. The last line shows the device that NAME selects.\n"
        "\n"
        "--measure measures the peak of this device: multiply-adds in registers, and a copy that\n"
        "is too large for its caches. `pumice bench kernels` measures how much of it the kernels\n"
        "reach.\n"
        "\n"
        "    pumice devices\n"
        "    pumice devices radeon --measure --json\n",
    .run = run,
};
