/* Training with random faults, drawn by a seed: system calls on the run folder's files that fail
 * or kill the process, and Vulkan calls that fail. Each run must end normally, die by the
 * injected kill, or report its error in one line with the exit code of the README. Started again
 * without faults, it must end bit for bit like a run without faults.
 *
 * PUMICE_FAULT_RUNS is the number of runs of each kind (10; ./dev test --long: 100),
 * PUMICE_FAULT_SEED the first seed (1). A failed run is reported with its seed.
 * PUMICE_FAULT_RUNS=1 PUMICE_FAULT_SEED=17 repeats it. */
#include "e2e/same_run.h"
#include "faults/faults.h"

#define OPTIONS                                                                                    \
    "run.steps=60 run.save_every_steps=5 run.keep=2 run.keep_best=loss "             \
    "run.log_every_steps=4 eval.every_steps=8"

static struct result train(const struct how *how, const char *name, const char *device)
{
    return run(how, "train %s run.folder=%s devices='[\"%s\"]' " OPTIONS, in("net.json"),
               in("%s", name), device);
}

/* A run without faults, made once for each device. */
static const char *whole_on(const char *device)
{
    if (!pm_is_folder(in("whole-%s", device)))
        check(train(NULL, in("whole-%s", device) + strlen(folder) + 1, device), 0);
    return in("whole-%s", device);
}

/* True when a warning names the file. An injected kill at the file does not count. */
static bool warned_of(const char *said, const char *file)
{
    for (const char *line = said; (line = strstr(line, "warning: ")) != NULL; line++) {
        const char *at = strstr(line, file);

        if (at && at < line + strcspn(line, "\n"))
            return true;
    }
    return false;
}

/* Compares what must be the same. Files that are optional may be incomplete when a warning names
 * them. */
static void compare(const char *whole, const char *torn, const char *said)
{
    if (strstr(said, "is used instead")) { /* another kernel with other roundings is in use, and
                                            * a warning was printed */
        print_message("a kernel was replaced: bits are not compared\n");
        return;
    }
    same_checkpoints(whole, torn);
    same_run_file(whole, torn, "latest");
    if (!warned_of(said, "metrics.jsonl"))
        same_metrics(whole, torn);
    if (!warned_of(said, "per_class.csv"))
        same_run_file(whole, torn, "eval/per_class.csv");
}

/* codes: the allowed exit codes besides 0, ended by 0. */
static void faulty_run(const struct how *how, const char *device, const int *codes, bool kills)
{
    char *whole = pm_strdup(whole_on(device)), *torn = pm_strdup(in("torn"));
    const char *last;
    bool right;

    pm_remove_tree(torn);
    struct result r = train(how, "torn", device);
    print_message("exit code %d after: %.*s\n", r.code,
                  was_disturbed(&r) ? (int)strcspn(strstr(r.err, "fault: "), "\n") : 0,
                  was_disturbed(&r) ? strstr(r.err, "fault: ") : "");
    right = r.code == 0 || (kills && r.code == -SIGKILL);
    for (const int *c = codes; *c; c++)
        right |= r.code == *c;
    if (!right || error_lines(&r, &last) != (r.code > 0))
        fail_msg("exit code %d, %d lines of errors: %s", r.code, error_lines(&r, &last), r.err);
    check(train(NULL, "torn", device), 0);
    compare(whole, torn, r.err);
    assert_int_equal(temporaries(torn), 0);
    drop(&r);
    pm_free(whole);
    pm_free(torn);
}

static void system_calls(void **state)
{
    const struct how how = with_faults("PM_FAULT_PATH=/torn PM_FAULT_DO=any PM_FAULT_RATE=0.003 "
                                       "PM_FAULT_SEED=%d", *(int *)*state);

    /* One file that cannot be written, and one that cannot be read. */
    faulty_run(&how, "cpu", (const int[]){ 1, 3, 0 }, true);
}

static void vulkan_calls(void **state)
{
    struct pm_str all = { 0 };

    if (!has_lavapipe()) {
        print_message("lavapipe is not installed\n");
        skip();
    }
    pm_str_add(&all, "PM_VULKAN_LOADER='%s' PM_VULKAN_FAULT_DO=any PM_VULKAN_FAULT_RATE=0.003 "
               "PM_VULKAN_FAULT_SEED=%d", getenv("PUMICE_VULKAN_FAULTS"), *(int *)*state);
    whole_on("llvmpipe");
    faulty_run(&(struct how){ .environment = all.text }, "llvmpipe", (const int[]){ 4, 0 }, false);
    pm_str_free(&all);
}

static int number_from(const char *name, int otherwise)
{
    const char *text = getenv(name);
    const int n = text ? atoi(text) : otherwise;

    return n > 0 ? n : otherwise;
}

int main(void)
{
    static const struct {
        const char *name;
        CMUnitTestFunction run;
    } kinds[] = { { "system calls", system_calls }, { "Vulkan calls", vulkan_calls } };
    const int runs = number_from("PUMICE_FAULT_RUNS", 10),
              first = number_from("PUMICE_FAULT_SEED", 1);
    struct pm_arena *a = pm_arena_create();
    struct CMUnitTest *tests = pm_calloc(PM_COUNT(kinds) * (size_t)runs, sizeof *tests);
    int *seeds = pm_calloc((size_t)runs, sizeof *seeds);
    size_t n = 0;

    if (!getenv("PUMICE_FAULTS") || !getenv("PUMICE_VULKAN_FAULTS") || make_world(true) < 0)
        return 1;
    for (size_t k = 0; k < PM_COUNT(kinds); k++)
        for (int i = 0; i < runs; i++) {
            seeds[i] = first + i;
            tests[n++] = (struct CMUnitTest){
                .name = pm_arena_printf(a, "%s, seed %d", kinds[k].name, seeds[i]),
                .test_func = kinds[k].run, .initial_state = &seeds[i] };
        }
    const int failed = _cmocka_run_group_tests("random faults", tests, n, NULL, drop_world);
    pm_free(tests);
    pm_free(seeds);
    pm_arena_destroy(&a);
    return failed;
}
