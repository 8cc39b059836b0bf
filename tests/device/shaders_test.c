/* Every embedded shader, on every software driver and with AMD's compiler without a card: the
 * module follows the rules of shaders/lib/buffers.glsl, its constants can be frozen (the
 * validation layer checks the result), and it compiles. */
#include "device/drivers.h"

#include <pumice/device.h>

/* Mesa's AMD driver leaks some bytes when it is unloaded, which the address sanitizer can no
 * longer attribute to it. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* Every constant has its default from the shader's source. */
static void check_module(const struct pm_shader *s, uint32_t **words, size_t *count,
                         struct pm_module_info *m)
{
    ok(pm_spirv_freeze(s->words, s->bytes / 4, NULL, 0, UINT32_MAX, words, count, m));
    for (size_t i = 5; i < *count; i += (*words)[i] >> 16) {
        uint32_t op = (*words)[i] & 0xffff;

        if (op >= 48 && op <= 52)
            fail_msg("%s: word %zu: specialization constant left (op %u)", s->name, i, op);
    }
    if (m->push_bytes > PM_PUSH_BYTES)
        fail_msg("%s: %u bytes of push block", s->name, m->push_bytes);
    if (m->int64 && !strstr(s->name, "i64") && !strstr(s->name, "pair"))
        fail_msg("%s: uses 64-bit integers (arithmetic on a buffer reference?)", s->name);
    if ((m->float16 || m->storage16) && !strstr(s->name, "f16") && !strstr(s->name, "coop"))
        fail_msg("%s: uses 16-bit floats", s->name);
    if (m->float64)
        fail_msg("%s: uses 64-bit floats", s->name);
}

static void compile(struct vk_device *d, const struct pm_shader *s, const uint32_t *words,
                    size_t count)
{
    VkShaderModuleCreateInfo code = { .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                      .codeSize = count * 4, .pCode = words };
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = { .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                   .stage = VK_SHADER_STAGE_COMPUTE_BIT, .pName = "main" },
        .layout = d->layout,
    };
    VkPipeline p = VK_NULL_HANDLE;

    if (d->vk.CreateShaderModule(d->handle, &code, NULL, &info.stage.module) < 0)
        fail_msg("%s: no module", s->name);
    if (d->vk.CreateComputePipelines(d->handle, VK_NULL_HANDLE, 1, &info, NULL, &p) < 0)
        fail_msg("%s: no pipeline", s->name);
    d->vk.DestroyPipeline(d->handle, p, NULL);
    d->vk.DestroyShaderModule(d->handle, info.stage.module, NULL);
}

static bool can(const struct vk_device *d, const struct pm_module_info *m)
{
    const struct pm_caps *c = &d->shared.base.info.caps;

    return (!m->int64 || c->int64) && (!m->float16 || c->float16) &&
           (!m->storage16 || c->storage16) && (!m->int16 || d->physical.int16) &&
           (!m->subgroup_arithmetic || c->subgroup_arithmetic) &&
           (!m->coopmat || d->physical.has[VK_HAS_COOPMAT]) &&
           m->shared_bytes <= c->shared_bytes &&
           m->local[0] * m->local[1] * m->local[2] <= c->max_workgroup_invocations;
}

static const struct pm_device_info *current;

static void test_all(void **state)
{
    struct vk_device *d = open_device(current);
    uint64_t before = pm_device_messages();
    size_t compiled = 0, all = 0;

    (void)state;
    for (const struct pm_shader *s = pm_shader_table; s->name; s++, all++) {
        uint32_t *words = NULL;
        size_t count = 0;
        struct pm_module_info m;

        check_module(s, &words, &count, &m);
        if (can(d, &m)) {
            compile(d, s, words, count);
            compiled++;
        }
        if (pm_device_messages() != before)
            fail_msg("%s: the validation layer complains", s->name);
        pm_free(words);
    }
    print_message("%zu of %zu shaders compiled\n", compiled, all);
    assert_true(compiled > 0);
    close_device(d);
}

/* Runs on all devices that the loader lists. Returns the number of failed tests; *ran counts
 * devices. */
static int run_all(int *ran)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_all) };
    struct pm_device_info *list = NULL;
    size_t count = 0;
    int failed = 0;

    if (pm_device_list(&list, &count) < 0)
        return 1;
    for (size_t i = 0; i < count; i++) {
        current = &list[i];
        if (!current->caps.runs_shaders ||
            (!current->usable && !strstr(current->reason, "compiles shaders")))
            continue;
        failed += cmocka_run_group_tests_name(current->name, tests, NULL, NULL);
        ++*ran;
    }
    pm_free(list);
    return failed;
}

int main(void)
{
    static const char *const families[] = { "navi31", "navi21", "vega20", "polaris10" };
    static const char *const radeon[] = { "/usr/share/vulkan/icd.d/radeon_icd.json",
                                          "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json" };
    char *cache = make_folder();
    int failed, ran = 0;

    setenv("XDG_CACHE_HOME", cache, 1);
    use_software_drivers();
    failed = run_all(&ran);
    for (size_t i = 0; i < PM_COUNT(radeon); i++) {
        if (access(radeon[i], R_OK) != 0)
            continue;
        setenv("VK_DRIVER_FILES", radeon[i], 1);
        setenv("VK_ICD_FILENAMES", radeon[i], 1);
        for (size_t k = 0; k < PM_COUNT(families); k++) {
            setenv("RADV_FORCE_FAMILY", families[k], 1);
            failed += run_all(&ran);
        }
    }
    drop_folder(cache);
    if (!ran)
        print_message("skipped: no Vulkan driver is installed\n");
    return failed ? 1 : ran ? 0 : 77;
}
