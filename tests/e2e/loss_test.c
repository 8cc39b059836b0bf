/* Failing devices in whole runs. A device that is lost at any time is opened again, and the run
 * ends with the bits of an undisturbed one. Among several devices, one that is lost again, hangs
 * or cannot be opened is left out, and the others train the whole batch. Without enough memory
 * the run reports what it needs and can be resumed. PM_LOSE and PM_HANG cause losses, and on a
 * software Vulkan driver replaced entries of the table of Vulkan functions. */
#include "device/drivers.h"
#include "device/vulkan/device_vk.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>

static char folder[] = "/tmp/pumice-loss-XXXXXX";
static const char *software; /* address of a software driver's device, or NULL */
static const char *validated; /* an override that turns on the validation layer where it is
                               * installed */

static const char text[] =
    "{ \"model\": { \"layers\": ["
    "  { \"name\": \"conv\", \"layer\": \"conv2d\", \"filters\": 4, \"activation\": \"relu\" },"
    "  { \"name\": \"norm\", \"layer\": \"batch_norm\" },"
    "  { \"name\": \"drop\", \"layer\": \"dropout\", \"keep\": 0.8 },"
    "  { \"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 4 } ] },"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\" },"
    "  \"input\": { \"preprocessing\": \"lenet\", \"size\": 16 },"
    "  \"optim\": { \"name\": \"momentum\" },"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },"
    "  \"run\": { \"steps\": 8, \"batch_size\": 12, \"log_every_steps\": 1,"
    "             \"snapshot_every_steps\": 2, \"save_every_steps\": 4 },"
    "  \"eval\": { \"every_steps\": 4, \"batch_size\": 10 } }";

/* ---- a run ------------------------------------------------------------------------------ */

/* Trains in folder/name on the devices (a JSON list). Returns the error code. */
static int train(const char *name, const char *devices, const char *override)
{
    struct pm_arena *arena = pm_arena_create();
    struct pm_open_sections choices = pm_train_choices(arena);
    struct pm_config *config = NULL;
    char path[256], run[256], list[256];
    const char *overrides[] = { run, list, "run.verify=off", override }; /* counted submissions */
    int signal = 0, err;

    snprintf(path, sizeof path, "%s/net.json", folder);
    snprintf(run, sizeof run, "run.folder=%s/%s", folder, name);
    snprintf(list, sizeof list, "devices=%s", devices);
    if (pm_config_load(path, overrides, override ? 4 : 3, &choices, &config) < 0)
        fail_msg("%s", pm_error_text());
    err = pm_train(config, NULL, &signal, NULL);
    pm_config_destroy(&config);
    pm_arena_destroy(&arena);
    return err;
}

static void trained(int err)
{
    if (err < 0)
        fail_msg("%s", pm_error_text());
}

static char *read_file(const char *name, const char *file, size_t *size)
{
    char path[256], *data;

    snprintf(path, sizeof path, "%s/%s/%s", folder, name, file);
    if (pm_file_read(path, &data, size) < 0)
        fail_msg("%s", pm_error_text());
    return data;
}

static void assert_said(const char *name, const char *part)
{
    char *log = read_file(name, "log.txt", NULL);

    assert_contains(log, part);
    pm_free(log);
}

static void assert_not_said(const char *name, const char *part)
{
    char *log = read_file(name, "log.txt", NULL);

    if (strstr(log, part))
        fail_msg("%s has '%s': %s", name, part, log);
    pm_free(log);
}

/* Compares the tensors of the last checkpoints. */
static void assert_same_bits(const char *one, const char *other)
{
    size_t a_size, b_size;
    char *a = read_file(one, "checkpoints/step-000008.safetensors", &a_size);
    char *b = read_file(other, "checkpoints/step-000008.safetensors", &b_size);

    assert_int_equal(a_size, b_size);
    assert_memory_equal(a, b, a_size);
    pm_free(a), pm_free(b);
}

/* Each step and each evaluation is logged exactly once, with the same losses. */
static void assert_same_story(const char *one, const char *other)
{
    char *text_a = read_file(one, "metrics.jsonl", NULL), *rest_a;
    char *text_b = read_file(other, "metrics.jsonl", NULL), *rest_b;
    char *a = strtok_r(text_a, "\n", &rest_a), *b = strtok_r(text_b, "\n", &rest_b);

    for (; a && b; a = strtok_r(NULL, "\n", &rest_a), b = strtok_r(NULL, "\n", &rest_b)) {
        cJSON *x = cJSON_Parse(a), *y = cJSON_Parse(b);
        static const char *const keys[] = { "kind", "step", "loss", "accuracy" };

        for (size_t i = 0; i < PM_COUNT(keys); i++)
            if (!cJSON_Compare(cJSON_GetObjectItem(x, keys[i]), cJSON_GetObjectItem(y, keys[i]),
                               true) && cJSON_GetObjectItem(x, keys[i]))
                fail_msg("%s differs: %s and %s", keys[i], a, b);
        cJSON_Delete(x), cJSON_Delete(y);
    }
    if (a || b)
        fail_msg("%s and %s have unlike numbers of lines", one, other);
    pm_free(text_a), pm_free(text_b);
}

/* ---- losses on any device --------------------------------------------------------------- */

static void test_lost_and_opened_again(void **state)
{
    (void)state;
    trained(train("whole", "[\"cpu\"]", NULL));
    for (int at = 1; at <= 8; at++) {
        char name[32], lose[32];

        snprintf(name, sizeof name, "lost%d", at);
        snprintf(lose, sizeof lose, "0:%d", at);
        setenv("PM_LOSE", lose, 1);
        trained(train(name, "[\"cpu\"]", NULL));
        unsetenv("PM_LOSE");
        assert_said(name, "opening devices[0], cpu, again");
        assert_same_bits("whole", name);
        assert_same_story("whole", name);
    }
}

/* One of three devices is lost once: all three continue, with the bits of three. */
static void test_one_of_three_comes_back(void **state)
{
    (void)state;
    trained(train("three", "[\"cpu\",\"cpu\",\"cpu\"]", NULL));
    setenv("PM_LOSE", "1:6", 1);
    trained(train("three_lost", "[\"cpu\",\"cpu\",\"cpu\"]", NULL));
    unsetenv("PM_LOSE");
    assert_said("three_lost", "opening devices[1], cpu, again, from step 4");
    assert_not_said("three_lost", "left out");
    assert_same_bits("three", "three_lost");
}

/* A device is lost again: the other one continues with the whole batch. Here that happens from
 * the first step on, so the bits are those of that device alone. It also works for the first
 * clone. A later start follows the config and uses both again; it warns that the bits differ. */
static void test_one_of_two_is_left_out(void **state)
{
    static const char *const lose[] = { "0:1:2", "1:1:2" };
    char *log;

    (void)state;
    for (int i = 0; i < 2; i++) {
        char name[32];

        snprintf(name, sizeof name, "left%d", i);
        setenv("PM_LOSE", lose[i], 1);
        trained(train(name, "[\"cpu\",\"cpu\"]", NULL));
        unsetenv("PM_LOSE");
        assert_said(name, i ? "devices[1], cpu" : "devices[0], cpu");
        assert_said(name, "is left out from now on: 1 device resumes from step 0");
        assert_said(name, "the batch of 12 is now on");
        assert_same_bits("whole", name);
        assert_same_story("whole", name);
    }
    log = read_file("left1", "checkpoints/step-000008.json", NULL);
    assert_contains(log, "\"lost\": \"devices[1] (cpu) at step 0\"");
    pm_free(log);
    trained(train("left1", "[\"cpu\",\"cpu\"]", "run.steps=10"));
    assert_said("left1", "devices changed since the checkpoint");
    assert_said("left1", "(6), ");
}

/* A device that is lost again and again: one line of error, and the run can be resumed from the
 * last checkpoint. */
static void test_lost_for_good(void **state)
{
    (void)state;
    setenv("PM_LOSE", "0:1:99", 1);
    assert_int_equal(train("gone", "[\"cpu\"]", NULL), PM_ELOST);
    unsetenv("PM_LOSE");
    assert_contains(pm_error_text(), "loss number 4 of cpu");
    assert_contains(pm_error_text(), "submissions down to 12.5 ms");
    assert_int_equal(pm_exit_code(PM_ELOST), 4);
    trained(train("gone", "[\"cpu\"]", NULL));
    assert_same_bits("whole", "gone");
}

/* A call that never ends: a single device ends the run, which can be started again. With two
 * devices the other one continues. */
static void test_hanging_cpu(void **state)
{
    (void)state;
    setenv("PM_HANG", "0:6", 1);
    assert_int_equal(train("hung", "[\"cpu\"]", "run.hang_seconds=2"), PM_ELOST);
    assert_contains(pm_error_text(), "was lost: no call ended for");
    assert_contains(pm_error_text(), "in train, call ");
    assert_contains(pm_error_text(), "cannot be ended");
    setenv("PM_HANG", "1:6", 1);
    trained(train("one_hung", "[\"cpu\",\"cpu\",\"cpu\"]", "run.hang_seconds=2"));
    unsetenv("PM_HANG");
    assert_said("one_hung", "no call ended for");
    assert_said("one_hung", "devices[1], cpu");
    assert_said("one_hung", "2 devices resume from step 4");
    trained(train("hung", "[\"cpu\"]", NULL));
    assert_same_bits("whole", "hung");
}

/* ---- losses on a Vulkan device ---------------------------------------------------------- */

static struct vk real;
static struct faults {
    int submit_lost;   /* the submission that reports a lost device; 0 = none */
    int compile_lost;  /* the pipeline that does; 0 = none */
    int submit_hangs;  /* the first submission that never ends; 0 = none */
    bool always_hangs; /* submissions of devices opened later do not end either */
    int compile_hangs; /* the pipeline that never compiles; 0 = none */
    int refusals;      /* the number of devices that cannot be opened after the loss */
    int no_memory;     /* the first allocation that fails; 0 = none */
    int submits, compiles, allocations, openings;
    bool lost, hangs;
    uint64_t reached;
} faults;

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue q, uint32_t n, const VkSubmitInfo *s,
                                             VkFence fence)
{
    faults.submits++;
    if (faults.submits == faults.submit_lost) {
        faults.lost = true;
        return VK_ERROR_DEVICE_LOST;
    }
    if (faults.submits == faults.submit_hangs)
        faults.hangs = true;
    return real.QueueSubmit(q, n, s, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_for(VkDevice d, const VkSemaphoreWaitInfo *w,
                                               uint64_t timeout)
{
    return faults.hangs ? VK_TIMEOUT : real.WaitSemaphores(d, w, timeout);
}

static VKAPI_ATTR VkResult VKAPI_CALL read_counter(VkDevice d, VkSemaphore s, uint64_t *value)
{
    VkResult r = VK_SUCCESS;

    if (!faults.hangs)
        r = real.GetSemaphoreCounterValue(d, s, &faults.reached);
    *value = faults.reached;
    return r;
}

static pthread_mutex_t compile_gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t faults_lock = PTHREAD_MUTEX_INITIALIZER; /* threads of hung devices may
                                                                 * still run */

static VKAPI_ATTR VkResult VKAPI_CALL compile(VkDevice d, VkPipelineCache c, uint32_t n,
                                              const VkComputePipelineCreateInfo *info,
                                              const VkAllocationCallbacks *a, VkPipeline *out)
{
    pthread_mutex_lock(&faults_lock);
    const int number = ++faults.compiles;
    const bool lost = number == faults.compile_lost, hangs = number == faults.compile_hangs;
    pthread_mutex_unlock(&faults_lock);

    if (lost)
        return VK_ERROR_DEVICE_LOST;
    if (hangs) { /* until the test opens the gate */
        pthread_mutex_lock(&compile_gate);
        pthread_mutex_unlock(&compile_gate);
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    return real.CreateComputePipelines(d, c, n, info, a, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice p, const VkDeviceCreateInfo *i,
                                                    const VkAllocationCallbacks *a, VkDevice *out)
{
    if ((faults.lost || faults.hangs) && faults.refusals-- > 0)
        return VK_ERROR_INITIALIZATION_FAILED;
    faults.openings++;
    faults.hangs = faults.hangs && faults.always_hangs;
    return real.CreateDevice(p, i, a, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice d, const VkMemoryAllocateInfo *info,
                                               const VkAllocationCallbacks *a, VkDeviceMemory *out)
{
    if (++faults.allocations >= faults.no_memory && faults.no_memory > 0)
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    return real.AllocateMemory(d, info, a, out);
}

static void on_load(struct vk *vk)
{
    if (vk->CreateDevice != create_device)
        real.CreateDevice = vk->CreateDevice;
    vk->CreateDevice = create_device;
    if (!vk->QueueSubmit)
        return;
    real.QueueSubmit = vk->QueueSubmit;
    real.WaitSemaphores = vk->WaitSemaphores;
    real.GetSemaphoreCounterValue = vk->GetSemaphoreCounterValue;
    real.CreateComputePipelines = vk->CreateComputePipelines;
    real.AllocateMemory = vk->AllocateMemory;
    vk->QueueSubmit = submit;
    vk->WaitSemaphores = wait_for;
    vk->GetSemaphoreCounterValue = read_counter;
    vk->CreateComputePipelines = compile;
    vk->AllocateMemory = allocate;
}

static int train_with(struct faults f, const char *name, const char *others, const char *override)
{
    char devices[256];
    int err;

    snprintf(devices, sizeof devices, "[\"%s\"%s]", software, others);
    pthread_mutex_lock(&faults_lock);
    faults = f;
    pthread_mutex_unlock(&faults_lock);
    pm_vk_loaded = on_load;
    err = train(name, devices, override);
    pm_vk_loaded = NULL;
    return err;
}

static void need_driver(void)
{
    if (!software) {
        print_message("no software Vulkan driver is installed\n");
        skip();
    }
}

/* A loss at any time: while values are copied to the device at the start, in the first step, in
 * a later one, while values are copied out, in an evaluation. */
static void test_lost_at_any_submission(void **state)
{
    enum { PLACES = 12 };
    int submits;

    (void)state;
    need_driver();
    trained(train_with((struct faults){ 0 }, "gpu", "", NULL));
    submits = faults.submits;
    for (int i = 0; i < PLACES; i++) {
        char name[32];

        snprintf(name, sizeof name, "gpu%d", i);
        trained(train_with((struct faults){ .submit_lost = 1 + i * (submits - 1) / (PLACES - 1) },
                           name, "", validated));
        assert_true(faults.lost);
        assert_said(name, "VK_ERROR_DEVICE_LOST");
        assert_said(name, "with submissions of 50 ms");
        assert_same_bits("gpu", name);
        assert_same_story("gpu", name);
    }
}

static void test_lost_while_compiling(void **state)
{
    (void)state;
    need_driver();
    trained(train_with((struct faults){ .compile_lost = 3 }, "compiling", "", NULL));
    assert_said("compiling", "VK_ERROR_DEVICE_LOST");
    assert_same_bits("gpu", "compiling");
}

/* The run waits for a card that needs time to reset, but not for one that never returns. */
static void test_refuses_to_open_again(void **state)
{
    (void)state;
    need_driver();
    trained(train_with((struct faults){ .submit_lost = 40, .refusals = 1 }, "late", "", NULL));
    assert_said("late", "VK_ERROR_INITIALIZATION_FAILED");
    assert_same_bits("gpu", "late");
    trained(train_with((struct faults){ .submit_lost = 40, .refusals = 9 }, "away",
                       ",\"cpu\"", NULL));
    assert_said("away", "devices[0], vulkan:");
    assert_said("away", "is left out from now on: 1 device resumes");
}

/* A wait never ends and is reported with the calls. With two devices the other one continues; a
 * single device is opened again beside the hanging one. */
static void test_hanging_driver(void **state)
{
    (void)state;
    need_driver();
    trained(train_with((struct faults){ .submit_hangs = 40 }, "hangs", ",\"cpu\"",
                       "run.hang_seconds=2"));
    assert_said("hangs", "no submission ended for");
    assert_said("hangs", "calls ");
    assert_said("hangs", "is left out from now on");
    assert_said("hangs", "its memory is freed only at exit");
    trained(train_with((struct faults){ .submit_hangs = 40 }, "hangs_alone", "",
                       "run.hang_seconds=2"));
    assert_said("hangs_alone", "no submission ended for");
    assert_said("hangs_alone", "opening devices[0]");
    assert_same_bits("gpu", "hangs_alone");
}

/* The log in the run folder reports the end, as train's caller does. */
static void assert_ended(int err, const char *part)
{
    assert_int_equal(err, PM_ELOST);
    assert_int_equal(pm_exit_code(err), 4);
    assert_contains(pm_error_text(), software);
    assert_contains(pm_error_text(), part);
}

/* Nothing ends: the single device is opened once more, not four times, also when copies work and
 * the first step hangs. The run can be started again. */
static void test_hanging_from_the_start(void **state)
{
    static const char *const names[] = { "dead", "dead_step" };

    (void)state;
    need_driver();
    for (int i = 0; i < 2; i++) {
        assert_ended(train_with((struct faults){ .submit_hangs = i ? 12 : 1, .always_hangs = true },
                                names[i], "", "run.hang_seconds=2"),
                     "hung 2 times before anything ran on it");
        assert_contains(pm_error_text(), "(run.hang_seconds=2)");
        assert_contains(pm_error_text(), "run.segment_ms");
        assert_int_equal(faults.openings, 2);
    }
    trained(train_with((struct faults){ 0 }, "dead", "", NULL));
    assert_same_bits("gpu", "dead");
}

/* A driver that never finishes a shader: with two devices the other one continues; a single
 * device ends the run, because the compiling thread cannot be ended. */
static void test_endless_compile(void **state)
{
    (void)state;
    need_driver();
    pthread_mutex_lock(&compile_gate);
    trained(train_with((struct faults){ .compile_hangs = 3 }, "stuck", ",\"cpu\"",
                       "run.compile_seconds=3"));
    assert_said("stuck", "compiles shaders: ");
    assert_said("stuck", "finished no shader for");
    assert_said("stuck", "is left out from now on: 1 device resumes from step 0");
    assert_ended(train_with((struct faults){ .compile_hangs = 3 }, "stuck_alone", "",
                            "run.compile_seconds=3"), "run the same command");
    assert_int_equal(faults.openings, 1);
    pthread_mutex_unlock(&compile_gate);
    trained(train_with((struct faults){ 0 }, "stuck_alone", "", NULL));
    assert_same_bits("gpu", "stuck_alone");
}

/* ---- memory ----------------------------------------------------------------------------- */

/* Each allocation fails in turn, until a run needs no more. There is one line with the remedy,
 * and the run folder can be used again. With two devices the line names the device. */
static void test_no_memory(void **state)
{
    int total;

    (void)state;
    need_driver();
    trained(train_with((struct faults){ 0 }, "roomy", "", "eval.every_steps=0"));
    total = faults.allocations;
    assert_true(total > 4);
    for (int n = 1; n <= total; n++) {
        assert_int_equal(train_with((struct faults){ .no_memory = n }, "tight", "",
                                    "eval.every_steps=0"), PM_EMEMORY);
        assert_contains(pm_error_text(), "no memory for a buffer of");
        assert_contains(pm_error_text(), "run.micro_batches");
    }
    assert_int_equal(pm_exit_code(PM_EMEMORY), 4);
    trained(train_with((struct faults){ 0 }, "tight", "", "eval.every_steps=0"));
    assert_same_bits("roomy", "tight");
    assert_int_equal(train_with((struct faults){ .no_memory = 4 }, "tight2", ",\"cpu\"", NULL),
                     PM_EMEMORY);
    assert_contains(pm_error_text(), "clone 1 of 2 (");
    assert_contains(pm_error_text(), "6 of the batch's 12 examples");
    assert_contains(pm_error_text(), "devices[0].share");
}

/* ---- main ------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    static char body[4096];
    char path[256], command[512];

    (void)state;
    snprintf(body, sizeof body, text, folder);
    snprintf(path, sizeof path, "%s/net.json", folder);
    snprintf(command, sizeof command, "\"$PUMICE_PROGRAM\" dataset make shapes %s/data size=16 "
             "train=60 validation=10 test=20 > /dev/null 2>&1", folder);
    return pm_file_write(path, body, strlen(body)) < 0 ? -1 : system(command);
}

static int tear_down(void **state)
{
    (void)state;
    return pm_remove_tree(folder);
}

/* Prefers lavapipe, which is the faster driver. */
static void find_driver(struct pm_device_info *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].kind == PM_KIND_SOFTWARE && list[i].usable &&
            (!software || strstr(list[i].name, "llvmpipe")))
            software = list[i].address;
}

static void find_layer(const struct pm_device_info *list, size_t count)
{
    struct pm_device *d = NULL;

    for (size_t i = 0; i < count && software && !validated; i++)
        if (list[i].address == software &&
            pm_device_open(&list[i], &(struct pm_device_options){ .validate = true }, &d) == PM_OK)
            validated = "run.validate=true";
    pm_device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_and_opened_again),
        cmocka_unit_test(test_one_of_three_comes_back),
        cmocka_unit_test(test_one_of_two_is_left_out),
        cmocka_unit_test(test_lost_for_good),
        cmocka_unit_test(test_hanging_cpu),
        cmocka_unit_test(test_lost_at_any_submission),
        cmocka_unit_test(test_lost_while_compiling),
        cmocka_unit_test(test_refuses_to_open_again),
        cmocka_unit_test(test_hanging_driver),
        cmocka_unit_test(test_hanging_from_the_start),
        cmocka_unit_test(test_endless_compile),
        cmocka_unit_test(test_no_memory),
    };
    struct pm_device_info *list = NULL;
    size_t count = 0;
    int failed;

    if (!getenv("PUMICE_PROGRAM") || !mkdtemp(folder)) {
        print_message("skipped: PUMICE_PROGRAM does not name the program\n");
        return 77;
    }
    use_software_drivers();
    if (pm_device_list(&list, &count) < 0)
        count = 0;
    find_driver(list, count);
    find_layer(list, count);
    failed = cmocka_run_group_tests(tests, set_up, tear_down);
    pm_free(list);
    return failed ? 1 : 0;
}

/* The memory of a hanging device stays allocated; the leak sanitizer must ignore it. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libvulkan\nleak:libvk_swiftshader\nleak:libLLVM\n";
}
