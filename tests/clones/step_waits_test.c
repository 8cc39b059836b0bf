/* A training step of SSD and RetinaNet is submitted as a whole. Between its first and its last
 * submission the host neither waits for the device nor reads its memory, and every row runs on the
 * device. So the next step can be submitted, too, before the first one ends. Replaced entries of
 * the table of Vulkan functions count. */
#include "device/drivers.h"
#include "measure/steps.h"

#include <pumice/train.h>

static struct vk real;
/* Since the first submission after reset(). Counts up to the last submission so far, and counts of
 * later calls, which a further submission would add to them. */
static struct counts {
    int submits, waits, copies;
    int later_waits, later_copies;
} counts;

static void waits(void)
{
    counts.later_waits += counts.submits > 0;
}

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue q, uint32_t n, const VkSubmitInfo *s,
                                             VkFence fence)
{
    counts.submits++;
    counts.waits += counts.later_waits;
    counts.copies += counts.later_copies;
    counts.later_waits = counts.later_copies = 0;
    return real.QueueSubmit(q, n, s, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_for(VkDevice d, const VkSemaphoreWaitInfo *w,
                                               uint64_t timeout)
{
    waits();
    return real.WaitSemaphores(d, w, timeout);
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_idle(VkDevice d)
{
    waits();
    return real.DeviceWaitIdle(d);
}

static VKAPI_ATTR VkResult VKAPI_CALL read_counter(VkDevice d, VkSemaphore s, uint64_t *value)
{
    waits();
    return real.GetSemaphoreCounterValue(d, s, value);
}

static VKAPI_ATTR VkResult VKAPI_CALL map(VkDevice d, VkDeviceMemory m, VkDeviceSize offset,
                                          VkDeviceSize size, VkMemoryMapFlags flags, void **out)
{
    waits();
    return real.MapMemory(d, m, offset, size, flags, out);
}

/* A step's own copies were recorded before. */
static VKAPI_ATTR void VKAPI_CALL copy(VkCommandBuffer c, VkBuffer from, VkBuffer to, uint32_t n,
                                       const VkBufferCopy *regions)
{
    counts.later_copies += counts.submits > 0;
    real.CmdCopyBuffer(c, from, to, n, regions);
}

static void on_load(struct vk *vk)
{
    if (!vk->QueueSubmit || vk->QueueSubmit == submit)
        return;
    real = *vk;
    vk->QueueSubmit = submit;
    vk->WaitSemaphores = wait_for;
    vk->DeviceWaitIdle = wait_idle;
    vk->GetSemaphoreCounterValue = read_counter;
    vk->MapMemory = map;
    vk->CmdCopyBuffer = copy;
}

static void reset(void)
{
    counts = (struct counts){ 0 };
}

/* ---- steps ------------------------------------------------------------------------------- */

static const char ssd[] =
    "{\"task\": \"detection\", \"model\": {\"name\": \"ssd_mobilenet_v2\", \"num_classes\": 3,"
    "  \"depth_multiplier\": 0.25}, \"input\": {\"size\": 96, \"preprocessing\": \"ssd\"},"
    " \"loss\": {\"classification\": {\"type\": \"weighted_sigmoid\"}, \"hard_example_miner\": {"
    "  \"num_hard_examples\": 300, \"iou_threshold\": 0.99, \"loss_type\": \"classification\","
    "  \"max_negatives_per_positive\": 3}},"
    " \"optim\": {\"name\": \"momentum\"}, \"schedule\": {\"base_lr\": 0.01},"
    " \"run\": {\"batch_size\": 2, \"segment_ms\": 1, \"verify\": \"off\"},"
    " \"devices\": [\"llvmpipe\"]}";
static const char retinanet[] =
    "{\"task\": \"detection\", \"model\": {\"name\": \"retinanet_50\", \"num_classes\": 3,"
    "  \"background_class\": false},"
    " \"input\": {\"size\": 129, \"preprocessing\": \"ssd\"},"
    " \"optim\": {\"name\": \"momentum\"}, \"schedule\": {\"base_lr\": 0.01},"
    " \"run\": {\"batch_size\": 1, \"segment_ms\": 1, \"verify\": \"off\"},"
    " \"devices\": [\"llvmpipe\"]}";

struct setup {
    struct pm_arena *arena;
    struct pm_config *config;
    struct pm_steps steps;
};

static void set_up(struct setup *s, const char *text)
{
    s->arena = pm_arena_create();
    const struct pm_open_sections open = pm_train_choices(s->arena);

    ok(pm_config_parse("t.json", text, NULL, 0, &open, &s->config));
    ok(pm_steps_open(&s->steps, s->config, true));
    ok(pm_steps_clones(&s->steps, false));
}

static void tear_down(struct setup *s)
{
    pm_steps_close(&s->steps);
    pm_config_destroy(&s->config);
    pm_arena_destroy(&s->arena);
}

static void rows_run_on_the_device(const struct pm_plan *p)
{
    size_t count;

    pm_plan_calls(p, &count);
    for (size_t i = 0; i < count; i++)
        assert_string_not_equal(pm_plan_variant(p, i), "cpu");
}

static void no_waits(const char *text)
{
    struct setup s;

    set_up(&s, text);
    rows_run_on_the_device(pm_clones_plan(s.steps.clones, 0, 0));
    reset();
    ok(pm_steps_submit(&s.steps));
    assert_true(counts.submits > 3);
    assert_int_equal(counts.waits, 0);
    assert_int_equal(counts.copies, 0);
    ok(pm_steps_submit(&s.steps)); /* a second step behind it */
    assert_int_equal(counts.waits + counts.later_waits, 0);
    assert_int_equal(counts.copies + counts.later_copies, 0);
    ok(pm_steps_collect(&s.steps));
    assert_true(counts.later_waits > 0);
    ok(pm_steps_collect(&s.steps));
    assert_true(s.steps.finite);
    tear_down(&s);
}

/* The counters see a wait and a copy between two submissions. */
static void planted(void **state)
{
    struct pm_variables *v;
    struct setup s;
    float value;

    (void)state;
    set_up(&s, ssd);
    v = pm_clones_variables(s.steps.clones, 0);
    reset();
    ok(pm_steps_submit(&s.steps));
    ok(pm_buffer_read(pm_clones_device(s.steps.clones, 0), v->values, 0, &value, sizeof value));
    ok(pm_steps_submit(&s.steps));
    assert_true(counts.waits > 0 && counts.copies > 0);
    ok(pm_steps_collect(&s.steps));
    ok(pm_steps_collect(&s.steps));
    tear_down(&s);
}

static void step_of_ssd(void **state)
{
    (void)state;
    no_waits(ssd);
}

static void step_of_retinanet(void **state)
{
    (void)state;
    no_waits(retinanet);
}

static bool has_lavapipe(void)
{
    struct pm_device_info *list = NULL;
    size_t count = 0, index;
    const bool found = pm_device_list(&list, &count) == PM_OK &&
                       pm_device_find(list, count, "llvmpipe", "test", &index) == PM_OK;

    pm_free(list);
    return found;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_of_ssd),
        cmocka_unit_test(step_of_retinanet),
        cmocka_unit_test(planted),
    };

    use_software_drivers();
    if (!has_lavapipe()) {
        print_message("skipped: lavapipe is not installed\n");
        return 77;
    }
    pm_vk_loaded = on_load;
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
