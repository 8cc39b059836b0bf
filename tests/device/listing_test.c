/* The list of devices: drivers with missing features, one GPU under two drivers, no driver, and
 * the choice of "auto". Replaced entries in the table of Vulkan functions simulate these cases. */
#include "device/drivers.h"

#include <pumice/device.h>

static const struct pm_device_info *current;
static struct vk real;

static VKAPI_ATTR void VKAPI_CALL poor_features(VkPhysicalDevice p, VkPhysicalDeviceFeatures2 *f)
{
    real.GetPhysicalDeviceFeatures2(p, f);
    for (VkBaseOutStructure *s = f->pNext; s; s = s->pNext)
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)
            ((VkPhysicalDeviceVulkan12Features *)s)->scalarBlockLayout = VK_FALSE;
}

static VKAPI_ATTR void VKAPI_CALL old_properties(VkPhysicalDevice p, VkPhysicalDeviceProperties *o)
{
    real.GetPhysicalDeviceProperties(p, o);
    o->apiVersion = VK_API_VERSION_1_1;
}

/* All devices report the same discrete card; every second one has the better driver. */
static VKAPI_ATTR void VKAPI_CALL same_card(VkPhysicalDevice p, VkPhysicalDeviceProperties2 *o)
{
    static int asked;

    real.GetPhysicalDeviceProperties2(p, o);
    o->properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    for (VkBaseOutStructure *s = o->pNext; s; s = s->pNext) {
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES)
            ((VkPhysicalDeviceDriverProperties *)s)->driverID =
                ++asked % 2 ? VK_DRIVER_ID_AMD_PROPRIETARY : VK_DRIVER_ID_MESA_RADV;
        if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES)
            memset(((VkPhysicalDeviceVulkan11Properties *)s)->deviceUUID, 7, VK_UUID_SIZE);
    }
}

static void poor(struct vk *vk)
{
    if (vk->GetPhysicalDeviceFeatures2 && vk->GetPhysicalDeviceFeatures2 != poor_features)
        real.GetPhysicalDeviceFeatures2 = vk->GetPhysicalDeviceFeatures2,
        vk->GetPhysicalDeviceFeatures2 = poor_features;
}

static void old(struct vk *vk)
{
    if (vk->GetPhysicalDeviceProperties && vk->GetPhysicalDeviceProperties != old_properties)
        real.GetPhysicalDeviceProperties = vk->GetPhysicalDeviceProperties,
        vk->GetPhysicalDeviceProperties = old_properties;
}

static void twice(struct vk *vk)
{
    if (vk->GetPhysicalDeviceProperties2 && vk->GetPhysicalDeviceProperties2 != same_card)
        real.GetPhysicalDeviceProperties2 = vk->GetPhysicalDeviceProperties2,
        vk->GetPhysicalDeviceProperties2 = same_card;
}

static struct pm_device_info *list_with(void (*hook)(struct vk *), size_t *count)
{
    struct pm_device_info *list = NULL;

    pm_vk_loaded = hook;
    ok(pm_device_list(&list, count));
    pm_vk_loaded = NULL;
    return list;
}

static void test_unusable(void **state)
{
    struct pm_device *d = NULL;
    size_t count, index;
    struct pm_device_info *list = list_with(poor, &count);

    (void)state;
    assert_false(list[0].usable);
    assert_contains(list[0].reason, "scalarBlockLayout");
    assert_int_equal(pm_device_open(&list[0], NULL, &d), PM_EDEVICE);
    assert_int_equal(pm_device_find(list, count, "vulkan:0", "x.json: devices", &index),
                     PM_EDEVICE);
    assert_contains(pm_error_text(), "scalarBlockLayout");
    pm_free(list);
    list = list_with(old, &count);
    assert_false(list[0].usable);
    assert_contains(list[0].reason, "1.1; 1.2 is needed");
    pm_free(list);
}

static void test_one_gpu_two_drivers(void **state)
{
    size_t count, index;
    struct pm_device_info *list = list_with(twice, &count);

    (void)state;
    if (count >= 3) { /* two Vulkan devices and the CPU */
        assert_int_equal(list[0].kind, PM_KIND_DISCRETE);
        assert_false(list[0].usable);
        assert_string_equal(list[0].reason, "same GPU as vulkan:1");
        assert_true(list[1].usable);
        ok(pm_device_find(list, count, "auto", "x.json: devices", &index));
        assert_int_equal(index, 1);
    }
    pm_free(list);
}

/* Software rasterisers are listed, but "auto" never chooses them. */
static void test_auto(void **state)
{
    size_t count, index;
    struct pm_device_info *list = list_with(NULL, &count);
    bool software = false;

    (void)state;
    for (size_t i = 0; i < count; i++)
        software |= list[i].kind == PM_KIND_SOFTWARE;
    assert_true(software);
    ok(pm_device_find(list, count, "auto", "x.json: devices", &index));
    assert_int_not_equal(list[index].kind, PM_KIND_SOFTWARE);
    pm_free(list);
}

/* Of the usable devices: discrete, integrated, virtual, the CPU; of two alike the larger memory. */
static void test_auto_order(void **state)
{
    struct pm_device_info list[] = {
        { .address = "a", .kind = PM_KIND_VIRTUAL, .memory_bytes = 9, .usable = true },
        { .address = "b", .kind = PM_KIND_INTEGRATED, .memory_bytes = 2, .usable = true },
        { .address = "c", .kind = PM_KIND_DISCRETE, .memory_bytes = 3, .usable = true },
        { .address = "d", .kind = PM_KIND_DISCRETE, .memory_bytes = 4, .usable = true },
        { .address = "e", .kind = PM_KIND_SOFTWARE, .memory_bytes = 9, .usable = true },
        { .address = "cpu", .kind = PM_KIND_CPU, .memory_bytes = 9, .usable = true },
    };
    static const size_t order[] = { 3, 2, 1, 0, 5 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(order); i++) {
        size_t index;

        ok(pm_device_find(list, PM_COUNT(list), "auto", "x.json: devices", &index));
        assert_int_equal(index, order[i]);
        list[index].usable = false;
    }
}

static void test_no_driver(void **state)
{
    struct pm_device_info *list;
    size_t count;
    char *files = pm_strdup(getenv("VK_DRIVER_FILES")), *names = getenv("VK_ICD_FILENAMES");

    (void)state;
    names = names ? pm_strdup(names) : NULL;
    setenv("VK_DRIVER_FILES", "/nowhere.json", 1);
    setenv("VK_ICD_FILENAMES", "/nowhere.json", 1);
    list = list_with(NULL, &count);
    assert_int_equal(count, 1);
    assert_int_equal(list[0].kind, PM_KIND_CPU);
    assert_int_equal(pm_device_open(current, NULL, &(struct pm_device *){ NULL }), PM_EDEVICE);
    assert_contains(pm_error_text(), "no longer there");
    setenv("VK_DRIVER_FILES", files, 1);
    unsetenv("VK_ICD_FILENAMES");
    if (names)
        setenv("VK_ICD_FILENAMES", names, 1);
    pm_free(list);
    pm_free(files);
    pm_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unusable),
        cmocka_unit_test(test_one_gpu_two_drivers),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_auto_order),
        cmocka_unit_test(test_no_driver),
    };
    struct pm_device_info *list = NULL;
    size_t count = 0;
    int failed = 77;

    use_software_drivers();
    if (pm_device_list(&list, &count) < 0)
        count = 0;
    for (size_t i = 0; i < count && !current; i++)
        if (list[i].kind == PM_KIND_SOFTWARE && list[i].usable)
            current = &list[i];
    if (current)
        failed = cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
    else
        print_message("skipped: no software Vulkan driver is installed\n");
    pm_free(list);
    return failed;
}
