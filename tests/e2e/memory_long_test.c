/* Memory does not grow after the first hundred steps: 2,000 steps of a tiny net with log lines,
 * evaluations, checkpoints and event files. Samples are taken after each evaluation, when only
 * the loader's threads work. Their memory varies, so the least of the first samples is compared
 * with the least of the last ones. */
#include "device/drivers.h"
#include "device/vulkan/device_vk.h"

#include <pumice/train.h>

#include <malloc.h>

enum { STEPS = 2000, EVERY = 100, SAMPLES = STEPS / EVERY, WINDOW = 5, FIRST = 2 };

static char folder[] = "/tmp/pumice-memory-XXXXXX";
static const char *software; /* address of a software driver's device, or NULL */

static const char text[] =
    "{ \"model\": { \"layers\": ["
    "  { \"name\": \"conv\", \"layer\": \"conv2d\", \"filters\": 4, \"stride\": 2,"
    "    \"activation\": \"relu\" },"
    "  { \"name\": \"norm\", \"layer\": \"batch_norm\" },"
    "  { \"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 4 } ] },"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\" },"
    "  \"input\": { \"preprocessing\": \"lenet\", \"size\": 16 },"
    "  \"optim\": { \"name\": \"momentum\" },"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.001 },"
    "  \"run\": { \"steps\": 2000, \"batch_size\": 8, \"log_every_steps\": 100, \"keep\": 3,"
    "             \"snapshot_every_steps\": 50, \"save_every_steps\": 100,"
    "             \"keep_best\": \"none\" },"
    "  \"eval\": { \"every_steps\": 100, \"batch_size\": 10 } }";

/* ---- sampling memory -------------------------------------------------------------------- */

struct sample {
    double blocks;  /* blocks of pm_malloc in use */
    double bytes;   /* bytes of malloc in use, by Pumice and libraries */
    double rss;     /* resident bytes of the process */
    double objects; /* Vulkan objects in use */
};
static struct sample samples[4 * SAMPLES];
static int lines; /* lines of the log */
static int objects;

static void sample(void)
{
    struct mallinfo2 m = mallinfo2();
    FILE *f = fopen("/proc/self/statm", "r");
    long size = 0, pages = 0;

    if (f && fscanf(f, "%ld %ld", &size, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    if (lines < 4 * SAMPLES)
        samples[lines] = (struct sample){ (double)pm_live_count(), (double)(m.uordblks + m.hblkhd),
                                      (double)pages * (double)sysconf(_SC_PAGESIZE), objects };
    lines++;
}

/* ---- Vulkan's objects, through the table of functions ------------------------------------ */

static struct vk real;

#define COUNTED(make, info, handle, drop)                                                          \
    static VKAPI_ATTR VkResult VKAPI_CALL count_##make(                                            \
        VkDevice d, const info *i, const VkAllocationCallbacks *a, handle *out)                    \
    {                                                                                              \
        objects++;                                                                                 \
        return real.make(d, i, a, out);                                                            \
    }                                                                                              \
    static VKAPI_ATTR void VKAPI_CALL count_##drop(VkDevice d, handle h,                           \
                                                   const VkAllocationCallbacks *a)                 \
    {                                                                                              \
        objects -= h != VK_NULL_HANDLE;                                                            \
        real.drop(d, h, a);                                                                        \
    }
#define KINDS(K)                                                                                   \
    K(AllocateMemory, VkMemoryAllocateInfo, VkDeviceMemory, FreeMemory)                            \
    K(CreateBuffer, VkBufferCreateInfo, VkBuffer, DestroyBuffer)                                   \
    K(CreateShaderModule, VkShaderModuleCreateInfo, VkShaderModule, DestroyShaderModule)           \
    K(CreateCommandPool, VkCommandPoolCreateInfo, VkCommandPool, DestroyCommandPool)               \
    K(CreateSemaphore, VkSemaphoreCreateInfo, VkSemaphore, DestroySemaphore)                       \
    K(CreateQueryPool, VkQueryPoolCreateInfo, VkQueryPool, DestroyQueryPool)
KINDS(COUNTED)

/* Command buffers are freed with their pool, but a step or an evaluation that makes one still
 * grows. */
static VKAPI_ATTR VkResult VKAPI_CALL count_commands(VkDevice d,
                                                     const VkCommandBufferAllocateInfo *info,
                                                     VkCommandBuffer *out)
{
    objects += (int)info->commandBufferCount;
    return real.AllocateCommandBuffers(d, info, out);
}

static void on_load(struct vk *vk)
{
    if (!vk->QueueSubmit) /* the instance's table; the device's comes later */
        return;
    real = *vk;
#define REPLACE(make, info, handle, drop) vk->make = count_##make, vk->drop = count_##drop;
    KINDS(REPLACE)
    vk->AllocateCommandBuffers = count_commands;
}

/* ---- a run ------------------------------------------------------------------------------ */

static void train(const char *device)
{
    struct pm_arena *arena = pm_arena_create();
    struct pm_open_sections choices = pm_train_choices(arena);
    struct pm_config *config = NULL;
    char path[256], run[256], list[256];
    /* Verification would add log lines at the first start. */
    const char *overrides[] = { run, list, "run.verify=off" };
    int signal = 0;

    snprintf(path, sizeof path, "%s/net.json", folder);
    /* Each has a folder of its own, else the log has a line about the equal run beside it. */
    snprintf(run, sizeof run, "run.folder=%s/%s/run", folder, device);
    snprintf(list, sizeof list, "devices=[\"%s\"]", device);
    lines = objects = 0;
    pm_vk_loaded = on_load;
    pm_log_hooks(NULL, sample);
    if (pm_config_load(path, overrides, 3, &choices, &config) < 0 ||
        pm_train(config, NULL, &signal, NULL) < 0)
        fail_msg("%s", pm_error_text());
    pm_log_hooks(NULL, NULL);
    pm_vk_loaded = NULL;
    pm_config_destroy(&config);
    pm_arena_destroy(&arena);
}

static double least(const double *v)
{
    double least = v[0];

    for (int i = 1; i < WINDOW; i++)
        least = fmin(least, v[i]);
    return least;
}

/* Growth of a member of the samples between the first window and the last one. Each EVERY steps
 * add a line of the log and one of the evaluation; there is one line at the start, and two at the
 * end. */
static double growth(size_t member)
{
    double first[WINDOW], last[WINDOW];

    assert_int_equal(lines, 3 + 2 * SAMPLES);
    for (int i = 0; i < WINDOW; i++) {
        const char *a = (const char *)&samples[2 * (FIRST + i)];
        const char *b = (const char *)&samples[2 * (SAMPLES - i)];

        memcpy(&first[i], a + member, sizeof *first);
        memcpy(&last[i], b + member, sizeof *last);
    }
    print_message("    least of the first measurements %.0f, of the last %.0f\n", least(first),
                  least(last));
    return least(last) - least(first);
}

/* Between the windows lie 14 evaluations, checkpoints and sets of events, and 1,400 steps. A
 * block lost in each evaluation would show as 14. */
static void assert_no_growth(void)
{
    assert_true(growth(offsetof(struct sample, blocks)) < 7);
}

static void test_cpu(void **state)
{
    (void)state;
    train("cpu");
    assert_no_growth();
    /* Memory of libraries: 14 times the smallest block would be 448 bytes. Lists of names that
     * double their size may grow once. */
    assert_true(growth(offsetof(struct sample, bytes)) < 14 * 1024);
    /* Freed memory stays with the process: each thread's heap may keep 128 KiB at its top, and
     * holes between used blocks. A batch's pictures lost in each step would be 8 KiB * 1,400. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* these keep freed memory */
    assert_true(growth(offsetof(struct sample, rss)) < 2 << 20);
#endif
}

/* The driver's own memory is not tested. */
static void test_vulkan(void **state)
{
    (void)state;
    if (!software) {
        print_message("no software Vulkan driver is installed\n");
        skip();
    }
    train(software);
    assert_no_growth();
    assert_true(growth(offsetof(struct sample, objects)) == 0);
    assert_true(samples[2 * SAMPLES].objects > 10);
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
             "train=100 validation=10 test=20 > /dev/null 2>&1", folder);
    return pm_file_write(path, body, strlen(body)) < 0 ? -1 : system(command);
}

static int tear_down(void **state)
{
    (void)state;
    return pm_remove_tree(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_vulkan),
    };
    static char address[32];
    struct pm_device_info *list = NULL;
    size_t count = 0;
    int failed;

    (void)argc;
    if (!getenv("GLIBC_TUNABLES")) { /* otherwise blocks in a thread's cache count as in use */
        setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
        execv("/proc/self/exe", argv);
    }
    if (!getenv("PUMICE_PROGRAM") || !mkdtemp(folder)) {
        print_message("skipped: PUMICE_PROGRAM does not name the program\n");
        return 77;
    }
    setenv("TERM", "dumb", 1); /* the progress line would use the log's hooks */
    use_software_drivers();
    if (pm_device_list(&list, &count) < 0)
        count = 0;
    for (size_t i = 0; i < count; i++)
        if (list[i].kind == PM_KIND_SOFTWARE && list[i].usable &&
            (!software || strstr(list[i].name, "llvmpipe"))) {
            snprintf(address, sizeof address, "%s", list[i].address);
            software = address;
        }
    pm_free(list);
    failed = cmocka_run_group_tests(tests, set_up, tear_down);
    return failed ? 1 : 0;
}
