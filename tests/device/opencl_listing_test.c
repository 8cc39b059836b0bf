/* The list of devices with OpenCL: no loader, no driver, drivers that are refused, what is read
 * from a driver, the same GPU under Vulkan and OpenCL, names, and the choice of "auto". Replaced
 * answers of PoCL and made-up lists simulate the GPUs. */
#include "device/opencl_fixture.h"

#include <sys/wait.h>

/* ---- replaced answers --------------------------------------------------------------- */

static struct answer {
    cl_device_info what;
    size_t size;
    uint8_t bytes[64];
} answers[16];
static size_t answer_count;

static CL_API_ENTRY cl_int CL_API_CALL answer(cl_device_id d, cl_device_info what, size_t size,
                                              void *out, size_t *got)
{
    for (size_t i = 0; i < answer_count; i++) {
        const struct answer *a = &answers[i];

        if (a->what != what)
            continue;
        if (a->size == 0 || (out && size < a->size))
            return CL_INVALID_VALUE;
        if (out)
            memcpy(out, a->bytes, a->size);
        if (got)
            *got = a->size;
        return CL_SUCCESS;
    }
    return real.GetDeviceInfo(d, what, size, out, got);
}

static void answers_on(struct cl *cl)
{
    real = *cl;
    cl->GetDeviceInfo = answer;
}

/* Sets the answer to a question; size 0: the driver does not know it. */
static void set_bytes(cl_device_info what, const void *bytes, size_t size)
{
    struct answer *a = &answers[answer_count++];

    assert_true(answer_count <= PM_COUNT(answers) && size <= sizeof a->bytes);
    *a = (struct answer){ .what = what, .size = size };
    if (size)
        memcpy(a->bytes, bytes, size);
}
#define SET(what, type, value) set_bytes(what, &(type){ value }, sizeof(type))
#define SET_TEXT(what, text) set_bytes(what, text, sizeof(text))

/* Returns PoCL's device with the answers set so far, which are then forgotten. */
static struct pm_device_info listed(void)
{
    struct pm_device_info *list = NULL, out;
    size_t count;

    pm_cl_loaded = answers_on;
    ok(pm_device_list(&list, &count));
    pm_cl_loaded = NULL;
    assert_true(count >= 2);
    assert_string_equal(list[0].address, "opencl:0");
    out = list[0];
    pm_free(list);
    answer_count = 0;
    return out;
}

/* ---- no loader, no driver ----------------------------------------------------------- */

/* Only the CPU is listed in this environment, and the error names the reason. */
static void lists_no_device(const char *environment, const char *why)
{
    struct pm_str command = { 0 }, text = { 0 };
    char part[4096];
    size_t n;
    FILE *f;

    pm_str_add(&command, "env %s \"$PUMICE_PROGRAM\" devices opencl:0 2>&1", environment);
    f = popen(command.text, "r");
    assert_non_null(f);
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        pm_str_bytes(&text, part, n);
    assert_int_equal(WEXITSTATUS(pclose(f)), 4);
    assert_contains(text.text, "no device \"opencl:0\"; there are: auto, cpu");
    assert_contains(text.text, why);
    pm_str_free(&command);
    pm_str_free(&text);
}

/* No loader, a library that lacks its functions, no driver, and a driver that is not there. */
static void test_no_loader(void **state)
{
    static const char absent[] = "the OpenCL loader, libOpenCL.so.1, is not installed";
    char *folder;
    struct pm_str text = { 0 }, file = { 0 };

    (void)state;
    if (!getenv("PUMICE_PROGRAM") || !getenv("PUMICE_FAULTS")) {
        print_message("skipped: PUMICE_PROGRAM and PUMICE_FAULTS are not set\n");
        skip();
    }
    folder = make_folder();
    lists_no_device("PM_OPENCL_LOADER=/nowhere/libOpenCL.so", absent);
    lists_no_device("PM_OPENCL_LOADER=\"$PUMICE_FAULTS\"", absent);
    pm_str_add(&text, "OCL_ICD_VENDORS=%s", folder);
    lists_no_device(text.text, "no OpenCL driver lists a device");
    pm_str_add(&file, "%s/broken.icd", folder);
    ok(pm_file_write(file.text, "/nowhere/driver.so\n", 19));
    lists_no_device(text.text, "no OpenCL driver lists a device");
    pm_str_free(&text);
    pm_str_free(&file);
    drop_folder(folder);
}

static CL_API_ENTRY cl_int CL_API_CALL no_platform(cl_uint n, cl_platform_id *out, cl_uint *got)
{
    (void)n, (void)out;
    if (got)
        *got = 0;
    return -1001; /* CL_PLATFORM_NOT_FOUND_KHR */
}

static CL_API_ENTRY cl_int CL_API_CALL no_device(cl_platform_id p, cl_device_type type, cl_uint n,
                                                 cl_device_id *out, cl_uint *got)
{
    (void)p, (void)type, (void)n, (void)out;
    if (got)
        *got = 0;
    return CL_DEVICE_NOT_FOUND;
}

static void without_platforms(struct cl *cl) { cl->GetPlatformIDs = no_platform; }
static void without_devices(struct cl *cl) { cl->GetDeviceIDs = no_device; }

/* Then only the CPU is listed, and a device that was there before cannot be opened. */
static void test_no_driver(void **state)
{
    void (*const hooks[])(struct cl *) = { without_platforms, without_devices };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(hooks); i++) {
        struct pm_device_info *list = NULL;
        struct pm_device *d = NULL;
        size_t count, index;

        pm_cl_loaded = hooks[i];
        ok(pm_device_list(&list, &count));
        assert_int_equal(count, 1);
        assert_int_equal(list[0].kind, PM_KIND_CPU);
        assert_contains(pm_device_absence(list, count), "no OpenCL driver lists a device");
        assert_int_equal(pm_device_open(current, NULL, &d), PM_EDEVICE);
        assert_contains(pm_error_text(), "opencl:0: ");
        assert_contains(pm_error_text(), "is no longer there");
        pm_cl_loaded = NULL;
        assert_int_equal(pm_device_find(list, count, "opencl:0", "x.json: devices", &index),
                         PM_EDEVICE);
        assert_contains(pm_error_text(), "no device \"opencl:0\"; there are: auto, cpu");
        pm_free(list);
    }
}

/* ---- refused devices ---------------------------------------------------------------- */

static void is_refused(const char *why)
{
    const struct pm_device_info info = listed();
    struct pm_device *d = NULL;
    size_t index;

    assert_false(info.usable);
    assert_string_equal(info.reason, why);
    assert_int_equal(pm_device_open(&info, NULL, &d), PM_EDEVICE);
    assert_contains(pm_error_text(), why);
    assert_int_equal(pm_device_find(&info, 1, "opencl:0", "x.json: devices", &index), PM_EDEVICE);
    assert_contains(pm_error_text(), why);
}

static void test_refused(void **state)
{
    (void)state;
    SET_TEXT(CL_DEVICE_VERSION, "OpenCL 1.1 old");
    is_refused("its driver speaks OpenCL 1.1; 1.2 is needed");
    SET_TEXT(CL_DEVICE_VERSION, "something");
    is_refused("its driver speaks OpenCL 0.0; 1.2 is needed");
    SET(CL_DEVICE_AVAILABLE, cl_bool, CL_FALSE);
    is_refused("its driver reports that it is not available");
    SET(CL_DEVICE_COMPILER_AVAILABLE, cl_bool, CL_FALSE);
    is_refused("its driver has no compiler");
    SET(CL_DEVICE_ENDIAN_LITTLE, cl_bool, CL_FALSE);
    is_refused("it is not little-endian");
    SET(CL_DEVICE_ADDRESS_BITS, cl_uint, 32);
    is_refused("its addresses do not have 64 bits");
    SET_TEXT(CL_DEVICE_PROFILE, "EMBEDDED_PROFILE");
    is_refused("its driver offers the embedded profile only");
    SET(CL_DEVICE_MAX_WORK_GROUP_SIZE, size_t, 32);
    is_refused("size of workgroups: 32; at least 64 are needed");
    SET(CL_DEVICE_LOCAL_MEM_SIZE, cl_ulong, 4096);
    is_refused("local memory: 4096 bytes; at least 16384 are needed");
    SET(CL_DEVICE_MAX_PARAMETER_SIZE, size_t, 256);
    is_refused("arguments of a kernel: 256 bytes; at least 512 are needed");
    set_bytes(CL_DEVICE_MAX_PARAMETER_SIZE, NULL, 0); /* the driver does not know the question */
    is_refused("arguments of a kernel: 0 bytes; at least 512 are needed");
}

/* ---- what is read ------------------------------------------------------------------- */

static void test_pocl(void **state)
{
    const struct pm_device_info i = listed();

    (void)state;
    assert_true(i.usable);
    assert_int_equal(i.kind, PM_KIND_SOFTWARE);
    assert_int_equal(i.caps.device_class, PM_CLASS_POCL);
    assert_true(i.caps.runs_shaders && i.caps.on_host_cores);
    assert_int_equal(i.caps.compute_units, 0);
    assert_contains(i.driver, "Portable Computing Language ");
    assert_true(i.memory_bytes > 0 && i.caps.max_buffer_bytes > 0);
    assert_int_equal(i.caps.max_groups[1], 65535);
    SET_TEXT(CL_DEVICE_VERSION, "OpenCL 1.2 enough");
    assert_true(listed().usable);
}

static void set_gpu(cl_uint vendor, const char *name)
{
    SET(CL_DEVICE_TYPE, cl_device_type, CL_DEVICE_TYPE_GPU);
    SET(CL_DEVICE_HOST_UNIFIED_MEMORY, cl_bool, CL_FALSE);
    SET(CL_DEVICE_VENDOR_ID, cl_uint, vendor);
    set_bytes(CL_DEVICE_NAME, name, strlen(name) + 1);
    SET(CL_DEVICE_MAX_COMPUTE_UNITS, cl_uint, 96);
}

/* Kind, class, units, identity and name of GPUs of each vendor, by the extensions of their
 * drivers. */
static void test_gpus(void **state)
{
    static const uint8_t uuid[16] = { 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0,
                                      1, 2, 3, 4, 5, 6, 7, 0xff };
    static const cl_uint bus[4] = { 1, 0x23, 4, 5 };
    uint8_t topology[24] = { 1 }; /* type 1: PCI, little-endian */
    struct pm_device_info i;

    (void)state;
    set_gpu(0x10de, " NVIDIA GeForce RTX 3060 ");
    SET(0x4008, cl_uint, 0x65); /* bus */
    SET(0x4009, cl_uint, 2 << 3 | 1); /* slot and function */
    SET(0x400a, cl_uint, 0);
    set_bytes(0x410f, NULL, 0); /* no cl_khr_pci_bus_info */
    i = listed();
    assert_string_equal(i.name, "NVIDIA GeForce RTX 3060");
    assert_string_equal(i.pci, "0000:65:02.1");
    assert_int_equal(i.kind, PM_KIND_DISCRETE);
    assert_int_equal(i.caps.device_class, PM_CLASS_NVIDIA);
    assert_int_equal(i.caps.compute_units, 96);
    assert_int_equal(i.caps.subgroup_size, 32);
    assert_false(i.caps.on_host_cores);

    set_gpu(0x1002, "gfx1100");
    SET_TEXT(0x4038, "AMD Radeon RX 7900 XTX");
    SET(0x4043, cl_uint, 32); /* waves of 32 */
    topology[21] = 0xc3, topology[22] = 0, topology[23] = 1;
    set_bytes(0x4037, topology, sizeof topology);
    set_bytes(0x410f, NULL, 0);
    i = listed();
    assert_string_equal(i.name, "AMD Radeon RX 7900 XTX (gfx1100)");
    assert_string_equal(i.pci, "0000:c3:00.1");
    assert_int_equal(i.caps.device_class, PM_CLASS_AMD_RDNA);
    set_gpu(0x1002, "gfx906");
    SET(0x4043, cl_uint, 64);
    i = listed();
    assert_string_equal(i.name, "gfx906");
    assert_int_equal(i.caps.device_class, PM_CLASS_AMD_GCN);
    set_gpu(0x1002, "AMD Radeon (radeonsi, navi31)");
    set_bytes(0x4043, NULL, 0);
    assert_int_equal(listed().caps.device_class, PM_CLASS_AMD_RDNA);

    set_gpu(0x8086, "Intel(R) Arc(TM) A770");
    SET(CL_DEVICE_HOST_UNIFIED_MEMORY, cl_bool, CL_TRUE);
    answers[1] = answers[--answer_count]; /* in place of set_gpu's */
    set_bytes(0x106a, uuid, sizeof uuid);
    set_bytes(0x410f, bus, sizeof bus);
    i = listed();
    assert_int_equal(i.kind, PM_KIND_INTEGRATED);
    assert_int_equal(i.caps.device_class, PM_CLASS_INTEL);
    assert_int_equal(i.caps.compute_units, 6);
    assert_string_equal(i.uuid, "12345678-9abc-def0-0102-0304050607ff");
    assert_string_equal(i.pci, "0001:23:04.5");

    set_gpu(0x10005, "llvmpipe (LLVM 15.0.6, 256 bits)");
    assert_int_equal(listed().kind, PM_KIND_SOFTWARE);
    set_gpu(0x5143, "QUALCOMM Adreno(TM)");
    assert_int_equal(listed().caps.device_class, PM_CLASS_OTHER);
}

/* ---- the same GPU under Vulkan and OpenCL ----------------------------------------------- */

/* Entries of a list: number, kind, GiB of memory, then .name and others. Those with a reason are
 * unusable. */
#define ENTRY(addr, k, gib, drv, ...) { .address = addr, .kind = PM_KIND_##k, .driver = drv,       \
                                        .memory_bytes = gib##ull << 30, __VA_ARGS__ }
#define VULKAN(n, k, gib, ...) ENTRY("vulkan:" #n, k, gib, "some Vulkan", __VA_ARGS__)
#define OPENCL(n, k, gib, ...) ENTRY("opencl:" #n, k, gib, "some OpenCL", __VA_ARGS__)
#define RUSTICL(n, k, gib, ...) ENTRY("opencl:" #n, k, gib, "rusticl", __VA_ARGS__)

static void set_usable(struct pm_device_info *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        list[i].usable = !list[i].reason[0];
}

enum { MOST = 4 };
static const struct double_case {
    const char *what;
    size_t others, count;
    const char *same[MOST]; /* of OpenCL's entries: the entry that hides it; NULL: it stays */
    struct pm_device_info list[MOST];
} doubles[] = {
    { "the same UUID", 1, 2, { "vulkan:0" },
      { VULKAN(0, DISCRETE, 16, .name = "A", .uuid = "u"),
        OPENCL(0, DISCRETE, 16, .name = "B", .uuid = "u") } },
    { "other UUIDs", 1, 2, { NULL },
      { VULKAN(0, DISCRETE, 16, .name = "A", .uuid = "u"),
        OPENCL(0, DISCRETE, 16, .name = "A", .uuid = "v") } },
    { "the same PCI address, and UUIDs that drivers made up", 1, 2, { "vulkan:0" },
      { VULKAN(0, DISCRETE, 16, .name = "A", .uuid = "u", .pci = "0000:01:00.0"),
        OPENCL(0, DISCRETE, 16, .name = "A", .uuid = "v", .pci = "0000:01:00.0") } },
    { "other PCI addresses", 1, 2, { NULL },
      { VULKAN(0, DISCRETE, 16, .name = "A", .pci = "0000:01:00.0"),
        OPENCL(0, DISCRETE, 16, .name = "A", .pci = "0000:02:00.0") } },
    { "two equal cards in another order", 2, 4, { "vulkan:1", "vulkan:0" },
      { VULKAN(0, DISCRETE, 16, .name = "A", .pci = "0000:01:00.0"),
        VULKAN(1, DISCRETE, 16, .name = "A", .pci = "0000:02:00.0"),
        OPENCL(0, DISCRETE, 16, .name = "A", .pci = "0000:02:00.0"),
        OPENCL(1, DISCRETE, 16, .name = "A", .pci = "0000:01:00.0") } },
    { "alike names", 1, 2, { "vulkan:0" },
      { VULKAN(0, DISCRETE, 16, .name = "AMD Radeon RX 7900 XTX (RADV NAVI31)", .uuid = "u"),
        OPENCL(0, DISCRETE, 16, .name = "AMD Radeon RX 7900 xtx (gfx1100)") } },
    { "a name that is the beginning of the other one", 1, 2, { NULL },
      { VULKAN(0, DISCRETE, 16, .name = "NVIDIA GeForce RTX 3060"),
        OPENCL(0, DISCRETE, 16, .name = "NVIDIA GeForce RTX 3060 Ti") } },
    { "alike names, a little less memory", 1, 2, { "vulkan:0" },
      { VULKAN(0, DISCRETE, 16, .name = "A"),
        OPENCL(0, DISCRETE, 15, .name = "A") } },
    { "alike names, half the memory", 1, 2, { NULL },
      { VULKAN(0, DISCRETE, 16, .name = "A"),
        OPENCL(0, DISCRETE, 8, .name = "A") } },
    { "alike names, other classes", 1, 2, { NULL },
      { VULKAN(0, DISCRETE, 16, .name = "A", .caps.device_class = PM_CLASS_INTEL),
        OPENCL(0, DISCRETE, 16, .name = "A") } },
    { "an integrated GPU, half the memory", 1, 2, { "vulkan:0" },
      { VULKAN(0, INTEGRATED, 16, .name = "A"),
        OPENCL(0, INTEGRATED, 8, .name = "A") } },
    { "two equal cards without identity", 2, 4, { "vulkan:0", "vulkan:1" },
      { VULKAN(0, DISCRETE, 16, .name = "A"),
        VULKAN(1, DISCRETE, 16, .name = "A"),
        OPENCL(0, DISCRETE, 16, .name = "A"),
        OPENCL(1, DISCRETE, 16, .name = "A") } },
    { "two equal cards, one of them under Vulkan, too", 1, 3, { "vulkan:0", NULL },
      { VULKAN(0, DISCRETE, 16, .name = "A"),
        OPENCL(0, DISCRETE, 16, .name = "A"),
        OPENCL(1, DISCRETE, 16, .name = "A") } },
    { "two equal cards of one OpenCL driver", 0, 2, { NULL, NULL },
      { OPENCL(0, DISCRETE, 16, .name = "A"),
        OPENCL(1, DISCRETE, 16, .name = "A") } },
    { "one card of two OpenCL drivers", 0, 2, { NULL, "opencl:0" },
      { OPENCL(0, DISCRETE, 16, .name = "A (gfx1100)"),
        RUSTICL(1, DISCRETE, 16, .name = "A (radeonsi, navi31)") } },
    { "one card of two OpenCL drivers and Vulkan", 1, 3, { "vulkan:0", "vulkan:0" },
      { VULKAN(0, DISCRETE, 16, .name = "A", .uuid = "u"),
        OPENCL(0, DISCRETE, 16, .name = "A", .uuid = "u"),
        RUSTICL(1, DISCRETE, 16, .name = "A") } },
    { "an unusable Vulkan device", 1, 2, { NULL },
      { VULKAN(0, DISCRETE, 16, .name = "A", .uuid = "u", .reason = "broken"),
        OPENCL(0, DISCRETE, 16, .name = "A", .uuid = "u") } },
    { "software", 1, 3, { NULL, NULL },
      { VULKAN(0, SOFTWARE, 16, .name = "A", .uuid = "u"),
        OPENCL(0, SOFTWARE, 16, .name = "A", .uuid = "u"),
        OPENCL(1, DISCRETE, 16, .name = "A", .uuid = "u") } },
};

static void test_doubles(void **state)
{
    (void)state;
    for (size_t c = 0; c < PM_COUNT(doubles); c++) {
        const struct double_case *x = &doubles[c];
        struct pm_device_info list[MOST];

        memcpy(list, x->list, sizeof list);
        set_usable(list, x->count);
        pm_opencl_hide_doubles(list, x->others, x->count);
        for (size_t i = 0; i < x->count; i++) {
            const char *same = i < x->others ? NULL : x->same[i - x->others];
            char reason[64] = "";

            if (same)
                snprintf(reason, sizeof reason, "same GPU as %s", same);
            if (x->list[i].reason[0])
                continue;
            if (list[i].usable != !same || strcmp(list[i].reason, reason) != 0)
                fail_msg("%s: %s is %susable: \"%s\"", x->what, list[i].address,
                         list[i].usable ? "" : "not ", list[i].reason);
        }
    }
}

/* ---- names and auto ----------------------------------------------------------------- */

static void test_names(void **state)
{
    struct pm_device_info list[] = {
        VULKAN(0, DISCRETE, 16, .name = "GeForce RTX 3060", .uuid = "u"),
        OPENCL(0, DISCRETE, 16, .name = "GeForce GTX 1060", .uuid = "v"),
        OPENCL(1, DISCRETE, 16, .name = "RTX 3060", .uuid = "u", .reason = "same GPU as vulkan:0"),
        { .address = "cpu", .name = "CPU", .kind = PM_KIND_CPU },
    };
    static const struct { const char *name; int err; size_t index; const char *text; } names[] = {
        { "opencl:0", PM_OK, 1, "" }, { "OpenCL:0", PM_OK, 1, "" }, { "1060", PM_OK, 1, "" },
        { "3060", PM_OK, 0, "" },  { "u", PM_OK, 0, "" }, { "v", PM_OK, 1, "" },
        { "geforce", PM_ECONFIG, 0, "matches both vulkan:0 (GeForce RTX 3060) and opencl:0 "
                                    "(GeForce GTX 1060); name one by its address or UUID" },
        { "opencl:1", PM_EDEVICE, 0, "cannot be used: same GPU as vulkan:0" },
        { "opencl:9", PM_EDEVICE, 0, "no device \"opencl:9\"; there are: auto, vulkan:0 (" },
    };

    (void)state;
    set_usable(list, PM_COUNT(list));
    for (size_t i = 0; i < PM_COUNT(names); i++) {
        size_t index;

        assert_int_equal(pm_device_find(list, PM_COUNT(list), names[i].name, "x.json: devices",
                                        &index), names[i].err);
        if (names[i].err == PM_OK)
            assert_int_equal(index, names[i].index);
        else
            assert_contains(pm_error_text(), names[i].text);
    }
}

/* A discrete GPU before an integrated one and before the CPU; among alike ones Vulkan first, also
 * with less memory; among OpenCL's the larger memory. Software is never chosen. */
static void test_auto(void **state)
{
    struct pm_device_info list[] = {
        OPENCL(0, SOFTWARE, 16, .name = "a"),
        VULKAN(0, INTEGRATED, 16, .name = "b"),
        OPENCL(1, INTEGRATED, 64, .name = "c"),
        OPENCL(2, DISCRETE, 16, .name = "d"), OPENCL(3, DISCRETE, 24, .name = "e"),
        VULKAN(1, DISCRETE, 8, .name = "f"), OPENCL(4, DISCRETE, 16, .name = "g"),
        { .address = "cpu", .name = "CPU", .kind = PM_KIND_CPU },
    };
    static const size_t order[] = { 5, 4, 3, 6, 1, 2, 7 };

    (void)state;
    set_usable(list, PM_COUNT(list));
    for (size_t i = 0; i < PM_COUNT(order); i++) {
        size_t index;

        ok(pm_device_find(list, PM_COUNT(list), "auto", "x.json: devices", &index));
        assert_int_equal(index, order[i]);
        list[index].usable = false;
    }
}

int main(void)
{
    const struct CMUnitTest without_driver[] = {
        cmocka_unit_test(test_no_loader), cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_names),     cmocka_unit_test(test_auto),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_driver), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_pocl),      cmocka_unit_test(test_gpus),
    };

    setenv("VK_DRIVER_FILES", "/nonexistent", 1);
    setenv("VK_ICD_FILENAMES", "/nonexistent", 1);
    if (cmocka_run_group_tests(without_driver, NULL, NULL))
        return 1;
    return on_pocl(tests, PM_COUNT(tests), NULL, NULL);
}
