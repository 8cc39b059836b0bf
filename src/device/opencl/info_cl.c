/* info_cl: reads a device's limits and class from its driver, decides whether it is usable, and
 * finds GPUs that another driver offers too. */
#include "device/opencl/device_cl.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* From the extensions' specifications; headers of OpenCL 1.2 lack some of them. */
enum {
    DEVICE_UUID = 0x106a,          /* cl_khr_device_uuid */
    DEVICE_PCI_BUS = 0x410f,       /* cl_khr_pci_bus_info: domain, bus, device, function */
    NV_PCI_BUS = 0x4008, NV_PCI_SLOT = 0x4009, NV_PCI_DOMAIN = 0x400a,
    AMD_TOPOLOGY = 0x4037, AMD_BOARD_NAME = 0x4038, AMD_WAVEFRONT_WIDTH = 0x4043,
};
enum { AMD = 0x1002, NVIDIA = 0x10de, INTEL = 0x8086 };
enum { LEAST_GROUP = 64, LEAST_SHARED = 16 << 10, LEAST_ARGUMENTS = 512 };

/* ---- questions to the driver -------------------------------------------------------- */

static bool has_bytes(const struct cl *cl, const struct cl_physical *p, cl_device_info what,
                      void *out, size_t size)
{
    size_t got = 0;

    memset(out, 0, size);
    return cl->GetDeviceInfo(p->device, what, size, out, &got) == CL_SUCCESS && got == size;
}

/* A number of 32 bits, or 0. */
static cl_uint word(const struct cl *cl, const struct cl_physical *p, cl_device_info what)
{
    cl_uint v = 0;

    return has_bytes(cl, p, what, &v, sizeof v) ? v : 0;
}

static uint64_t size_info(const struct cl *cl, const struct cl_physical *p, cl_device_info what)
{
    size_t v = 0;

    return has_bytes(cl, p, what, &v, sizeof v) ? v : 0;
}

static uint64_t long_info(const struct cl *cl, const struct cl_physical *p, cl_device_info what)
{
    cl_ulong v = 0;

    return has_bytes(cl, p, what, &v, sizeof v) ? v : 0;
}

/* Appends a text of any length, without spaces around it. */
static void add_text(const struct cl *cl, const struct cl_physical *p, bool platform, cl_uint what,
                     struct pm_str *out)
{
    size_t size = 0;
    char *text, *from;
    cl_int r = platform ? cl->GetPlatformInfo(p->platform, what, 0, NULL, &size)
                        : cl->GetDeviceInfo(p->device, what, 0, NULL, &size);

    if (r != CL_SUCCESS || size == 0 || size > 1 << 20)
        return;
    text = pm_calloc(size + 1, 1);
    r = platform ? cl->GetPlatformInfo(p->platform, what, size, text, NULL)
                 : cl->GetDeviceInfo(p->device, what, size, text, NULL);
    from = text + strspn(text, " ");
    for (size_t n = strlen(from); n > 0 && from[n - 1] == ' '; n--)
        from[n - 1] = '\0';
    if (r == CL_SUCCESS)
        pm_str_add(out, "%s", from);
    pm_free(text);
}

static void copy_text(const struct cl *cl, const struct cl_physical *p, bool platform, cl_uint what,
                      char *out, size_t size)
{
    struct pm_str s = { 0 };

    add_text(cl, p, platform, what, &s);
    snprintf(out, size, "%s", s.text ? s.text : "");
    pm_str_free(&s);
}

/* ---- identity ----------------------------------------------------------------------- */

static void read_uuid(const struct cl *cl, struct cl_physical *p)
{
    uint8_t u[16];
    char *s = p->info.uuid;

    if (!has_bytes(cl, p, DEVICE_UUID, u, sizeof u))
        return;
    for (size_t i = 0; i < sizeof u; i++)
        s += sprintf(s, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

static void read_pci(const struct cl *cl, struct cl_physical *p)
{
    cl_uint khr[4], slot;
    uint8_t topology[24];
    cl_uint type;
    char *out = p->info.pci;
    const size_t size = sizeof p->info.pci;

    if (has_bytes(cl, p, DEVICE_PCI_BUS, khr, sizeof khr)) {
        snprintf(out, size, "%04x:%02x:%02x.%x", khr[0] & 0xffff, khr[1] & 0xff, khr[2] & 0xff,
                 khr[3] & 0xf);
    } else if (p->vendor == NVIDIA && has_bytes(cl, p, NV_PCI_SLOT, &slot, sizeof slot)) {
        snprintf(out, size, "%04x:%02x:%02x.%x", word(cl, p, NV_PCI_DOMAIN) & 0xffff,
                 word(cl, p, NV_PCI_BUS) & 0xff, slot >> 3 & 0x1f, slot & 7);
    } else if (p->vendor == AMD && has_bytes(cl, p, AMD_TOPOLOGY, topology, sizeof topology)) {
        memcpy(&type, topology, sizeof type);
        if (type == 1) /* the last three bytes are bus, device and function */
            snprintf(out, size, "0000:%02x:%02x.%x", topology[21], topology[22] & 0x1f,
                     topology[23] & 7);
    }
}

static void read_names(const struct cl *cl, struct cl_physical *p)
{
    struct pm_device_info *info = &p->info;
    struct pm_str driver = { 0 };

    copy_text(cl, p, false, CL_DEVICE_NAME, info->name, sizeof info->name);
    if (p->vendor == AMD) { /* CL_DEVICE_NAME is the chip's code, such as gfx1100 */
        char board[160], chip[80];

        copy_text(cl, p, false, AMD_BOARD_NAME, board, sizeof board);
        snprintf(chip, sizeof chip, "%.79s", info->name);
        if (board[0])
            snprintf(info->name, sizeof info->name, "%s (%s)", board, chip);
    }
    add_text(cl, p, true, CL_PLATFORM_NAME, &driver);
    pm_str_add(&driver, " ");
    add_text(cl, p, false, CL_DRIVER_VERSION, &driver);
    snprintf(info->driver, sizeof info->driver, "%s", driver.text);
    pm_str_free(&driver);
}

/* ---- class and limits --------------------------------------------------------------- */

static bool names(const struct pm_device_info *info, const char *part)
{
    return strcasestr(info->name, part) != NULL;
}

static enum pm_device_kind kind_of(const struct cl *cl, const struct cl_physical *p)
{
    cl_device_type type = 0;

    has_bytes(cl, p, CL_DEVICE_TYPE, &type, sizeof type);
    if ((type & CL_DEVICE_TYPE_CPU) || names(&p->info, "llvmpipe") || names(&p->info, "softpipe"))
        return PM_KIND_SOFTWARE;
    if (!(type & CL_DEVICE_TYPE_GPU))
        return PM_KIND_VIRTUAL;
    return word(cl, p, CL_DEVICE_HOST_UNIFIED_MEMORY) ? PM_KIND_INTEGRATED : PM_KIND_DISCRETE;
}

/* RDNA has waves of 32. A driver that does not report them names the chip: gfx10 to gfx12, navi. */
static bool is_rdna(const struct cl *cl, const struct cl_physical *p)
{
    cl_uint wave = word(cl, p, AMD_WAVEFRONT_WIDTH);

    return wave ? wave == 32
                : names(&p->info, "gfx10") || names(&p->info, "gfx11") ||
                      names(&p->info, "gfx12") || names(&p->info, "navi");
}

static enum pm_class class_of(const struct cl *cl, const struct cl_physical *p)
{
    if (p->info.kind == PM_KIND_SOFTWARE)
        return PM_CLASS_POCL;
    switch (p->vendor) {
    case AMD:
        return is_rdna(cl, p) ? PM_CLASS_AMD_RDNA : PM_CLASS_AMD_GCN;
    case NVIDIA:
        return PM_CLASS_NVIDIA;
    case INTEL:
        return PM_CLASS_INTEL;
    default:
        return PM_CLASS_OTHER;
    }
}

/* Intel's drivers count vector engines; 16 of them are one unit. Software drivers have none, so
 * that their choice of kernels does not depend on the host. */
static uint32_t units_of(const struct cl *cl, const struct cl_physical *p)
{
    uint32_t units = word(cl, p, CL_DEVICE_MAX_COMPUTE_UNITS);

    if (p->info.kind == PM_KIND_SOFTWARE)
        return 0;
    if (p->vendor == INTEL)
        units /= 16;
    return units < 1 ? 1 : units;
}

/* OpenCL has no limit on the number of workgroups; these are the limits of NVIDIA's GPUs. */
static void read_limits(const struct cl *cl, struct cl_physical *p)
{
    struct pm_caps *c = &p->info.caps;
    const bool software = p->info.kind == PM_KIND_SOFTWARE;
    size_t sizes[3];

    c->runs_shaders = c->needs_verification = c->timed_by_queries = true;
    c->on_host_cores = software;
    c->device_class = class_of(cl, p);
    c->subgroup_size = software ? 8 : 32;
    c->int64 = !software; /* pairs of columns in 64-bit loads are slow there */
    has_bytes(cl, p, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizes, sizeof sizes);
    for (int i = 0; i < 3; i++)
        c->max_workgroup_size[i] = sizes[i] > UINT32_MAX ? UINT32_MAX : (uint32_t)sizes[i];
    c->max_workgroup_invocations = (uint32_t)size_info(cl, p, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    c->max_groups[0] = INT32_MAX;
    c->max_groups[1] = c->max_groups[2] = 65535;
    c->shared_bytes = (uint32_t)long_info(cl, p, CL_DEVICE_LOCAL_MEM_SIZE);
    c->max_buffer_bytes = long_info(cl, p, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    c->compute_units = units_of(cl, p);
    p->info.memory_bytes = long_info(cl, p, CL_DEVICE_GLOBAL_MEM_SIZE);
}

/* ---- usable? ------------------------------------------------------------------------ */

/* Returns the version as 10 * major + minor; 0 if the text is not a version. */
static int version_of(const struct cl *cl, const struct cl_physical *p)
{
    char text[64];
    int major = 0, minor = 0;

    copy_text(cl, p, false, CL_DEVICE_VERSION, text, sizeof text);
    return sscanf(text, "OpenCL %d.%d", &major, &minor) == 2 ? 10 * major + minor : 0;
}

static void refuse(struct pm_device_info *info, const char *why)
{
    if (!info->reason[0])
        snprintf(info->reason, sizeof info->reason, "%s", why);
}

static void check_limit(struct pm_device_info *info, uint64_t value, uint64_t least,
                        const char *name, const char *unit)
{
    char why[sizeof info->reason];

    snprintf(why, sizeof why, "%s: %llu%s; at least %llu are needed", name,
             (unsigned long long)value, unit, (unsigned long long)least);
    if (value < least)
        refuse(info, why);
}

static void check_usable(const struct cl *cl, struct cl_physical *p)
{
    struct pm_device_info *info = &p->info;
    const int version = version_of(cl, p);
    char profile[32], why[sizeof info->reason];

    copy_text(cl, p, false, CL_DEVICE_PROFILE, profile, sizeof profile);
    snprintf(why, sizeof why, "its driver speaks OpenCL %d.%d; 1.2 is needed", version / 10,
             version % 10);
    if (version < 12)
        refuse(info, why);
    if (!word(cl, p, CL_DEVICE_AVAILABLE))
        refuse(info, "its driver reports that it is not available");
    if (!word(cl, p, CL_DEVICE_COMPILER_AVAILABLE))
        refuse(info, "its driver has no compiler");
    if (!word(cl, p, CL_DEVICE_ENDIAN_LITTLE))
        refuse(info, "it is not little-endian");
    if (word(cl, p, CL_DEVICE_ADDRESS_BITS) != 64)
        refuse(info, "its addresses do not have 64 bits");
    if (strcmp(profile, "FULL_PROFILE") != 0)
        refuse(info, "its driver offers the embedded profile only");
    check_limit(info, info->caps.max_workgroup_invocations, LEAST_GROUP, "size of workgroups", "");
    check_limit(info, info->caps.shared_bytes, LEAST_SHARED, "local memory", " bytes");
    check_limit(info, size_info(cl, p, CL_DEVICE_MAX_PARAMETER_SIZE), LEAST_ARGUMENTS,
                "arguments of a kernel", " bytes");
    info->usable = !info->reason[0];
}

static void add_feature(struct pm_device_info *info, bool present, const char *name)
{
    size_t n = strlen(info->features);

    if (present)
        snprintf(info->features + n, sizeof info->features - n, "%s%s", n ? " " : "", name);
}

static void describe(const struct cl *cl, struct cl_physical *p)
{
    cl_device_fp_config fp = 0;

    p->vendor = word(cl, p, CL_DEVICE_VENDOR_ID);
    read_names(cl, p);
    p->info.kind = kind_of(cl, p);
    read_uuid(cl, p);
    read_pci(cl, p);
    read_limits(cl, p);
    has_bytes(cl, p, CL_DEVICE_SINGLE_FP_CONFIG, &fp, sizeof fp);
    p->fma = (fp & CL_FP_FMA) != 0;
    p->rounded_divide = (fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    check_usable(cl, p);
    add_feature(&p->info, p->info.caps.int64, "int64");
    add_feature(&p->info, p->fma, "fma");
    add_feature(&p->info, p->rounded_divide, "correctly_rounded_divide");
}

/* ---- the list ----------------------------------------------------------------------- */

static void enumerate_platform(const struct cl *cl, cl_platform_id platform,
                               struct cl_physical **list, size_t *count)
{
    cl_uint n = 0;
    cl_device_id *devices;
    struct cl_physical named = { .platform = platform };
    struct pm_str name = { 0 };

    if (cl->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &n) != CL_SUCCESS || n == 0) {
        add_text(cl, &named, true, CL_PLATFORM_NAME, &name);
        PM_DEBUG("opencl", "platform \"%s\" has no device", name.text ? name.text : "");
        pm_str_free(&name);
        return;
    }
    devices = pm_calloc(n, sizeof *devices);
    if (cl->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, devices, NULL) != CL_SUCCESS)
        n = 0;
    *list = pm_realloc(*list, (*count + n + 1) * sizeof **list);
    for (cl_uint i = 0; i < n; i++) {
        struct cl_physical *p = &(*list)[*count];

        *p = (struct cl_physical){ .platform = platform, .device = devices[i] };
        snprintf(p->info.address, sizeof p->info.address, "opencl:%zu", (*count)++);
        describe(cl, p);
    }
    pm_free(devices);
}

void pm_cl_enumerate(const struct cl *cl, struct cl_physical **out, size_t *count)
{
    cl_uint n = 0;
    cl_platform_id *platforms;
    cl_int r = cl->GetPlatformIDs(0, NULL, &n);

    *out = NULL;
    *count = 0;
    if (r != CL_SUCCESS || n == 0) {
        PM_DEBUG("opencl", "the loader finds no driver (%d)", r);
        return;
    }
    platforms = pm_calloc(n, sizeof *platforms);
    if (cl->GetPlatformIDs(n, platforms, NULL) != CL_SUCCESS)
        n = 0;
    for (cl_uint i = 0; i < n; i++)
        enumerate_platform(cl, platforms[i], out, count);
    pm_free(platforms);
}

/* ---- the same GPU under two drivers --------------------------------------------------- */

/* Returns the length of a name without its end in parentheses. Some drivers append the chip:
 * "AMD Radeon RX 7900 XTX (RADV NAVI31)". */
static size_t name_length(const char *name)
{
    const char *end = strstr(name, " (");

    return end ? (size_t)(end - name) : strlen(name);
}

/* Whether two GPUs of which the drivers tell no common identity could be one: vendor, name and
 * memory (within an eighth) agree. Drivers of an integrated GPU differ in how much of the host's
 * memory they count. One driver lists a GPU once, so two entries of it are two cards. */
static bool alike(const struct pm_device_info *a, const struct pm_device_info *b)
{
    const uint64_t more = a->memory_bytes > b->memory_bytes ? a->memory_bytes : b->memory_bytes;
    const uint64_t less = a->memory_bytes + b->memory_bytes - more;
    const size_t n = name_length(a->name);

    return strcmp(a->driver, b->driver) != 0 &&
           a->caps.device_class == b->caps.device_class && a->kind == b->kind &&
           (a->kind == PM_KIND_INTEGRATED || more - less <= more / 8) &&
           n == name_length(b->name) && strncasecmp(a->name, b->name, n) == 0;
}

/* Returns 1 for the same GPU, 0 for another one, -1 if the drivers report no common identity. */
static int same_gpu(const struct pm_device_info *a, const struct pm_device_info *b)
{
    if (a->uuid[0] && b->uuid[0] && strcmp(a->uuid, b->uuid) == 0)
        return 1;
    if (a->pci[0] && b->pci[0])
        return strcmp(a->pci, b->pci) == 0;
    return a->uuid[0] && b->uuid[0] ? 0 : -1;
}

static void hide(struct pm_device_info *cl, const struct pm_device_info *other)
{
    cl->usable = false;
    snprintf(cl->reason, sizeof cl->reason, "same GPU as %s", other->address);
}

void pm_opencl_hide_doubles(struct pm_device_info *list, size_t others, size_t count)
{
    bool *taken = pm_calloc(count + 1, sizeof *taken);

    for (int pass = 0; pass < 2; pass++) /* known identities come first */
        for (size_t i = others; i < count; i++)
            for (size_t j = 0; j < i && list[i].usable && list[i].kind != PM_KIND_SOFTWARE; j++) {
                const int same = same_gpu(&list[i], &list[j]);

                if (!list[j].usable || list[j].kind == PM_KIND_SOFTWARE || taken[j] ||
                    !(pass == 0 ? same == 1 : same == -1 && alike(&list[i], &list[j])))
                    continue;
                hide(&list[i], &list[j]);
                taken[j] = j < others && pass == 1;
            }
    pm_free(taken);
}

int pm_opencl_list(struct pm_device_info **list, size_t *count)
{
    struct cl cl;
    struct cl_physical *found = NULL;
    size_t n = 0;
    const size_t others = *count;

    if (!pm_cl_load(&cl))
        return PM_OK;
    pm_cl_enumerate(&cl, &found, &n);
    *list = pm_realloc(*list, (*count + n + 1) * sizeof **list);
    for (size_t i = 0; i < n; i++)
        (*list)[(*count)++] = found[i].info;
    pm_opencl_hide_doubles(*list, others, *count);
    pm_free(found);
    return PM_OK;
}
