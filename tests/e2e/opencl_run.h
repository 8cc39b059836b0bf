/* Shared by the tests of whole runs on an OpenCL device, PoCL: a net on drawn shapes. Kernels stay
 * in the cache of the OpenCL tests, outside of the test's own folder. */
#ifndef OPENCL_RUN_H
#define OPENCL_RUN_H

#include "e2e/program.h"
#include "e2e/same_run.h"

/* The config without its model. Two devices with twice the batch run the same kernels as one. */
static const char small_config[] =
    "{ \"model\": %s,\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 1 },\n"
    "  \"input\": { \"preprocessing\": \"lenet\", \"size\": 28 },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"opencl:0\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.001 },\n"
    "  \"run\": { \"steps\": 6, \"batch_size\": 8, \"log_every_steps\": 1,\n"
    "           \"save_every_steps\": 2, \"keep\": 2 },\n"
    "  \"eval\": { \"every_steps\": 3, \"batch_size\": 8 } }\n";

static const char on_both[] = "run.batch_size=16 'devices=[\"opencl:0\",\"cpu\"]'";

/* Starts a run, ends it with SIGKILL after this time, and lets it end. It must have the bits of the
 * undisturbed run. */
static inline void killed_run(const char *whole, const char *torn, const double *seconds,
                              int kills, const char *more)
{
    char arguments[2048], name[512], a[512], b[512];

    snprintf(name, sizeof name, "%s", in("killed"));
    snprintf(arguments, sizeof arguments, "train %s run.folder=%s %s", in("net.json"),
             in("%s", torn), more);
    for (int i = 0; i < kills; i++) {
        const pid_t pid = start(NULL, name, arguments);
        struct result r;

        usleep((useconds_t)(1e6 * seconds[i]));
        kill(pid, SIGKILL);
        r = finish(pid, name);
        drop(&r);
    }
    check(train_net(NULL, torn, more), 0);
    snprintf(a, sizeof a, "%s", in("%s", whole));
    snprintf(b, sizeof b, "%s", in("%s", torn));
    same_run(a, b);
}

static inline int make_opencl_world(const char *model)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    char *kept = cache ? pm_strdup(cache) : NULL;
    struct pm_str text = { 0 };

    if (make_world(false) < 0)
        return -1;
    if (kept)
        setenv("XDG_CACHE_HOME", kept, 1);
    pm_free(kept);
    pm_str_add(&text, small_config, model, folder);
    put_text(in("net.json"), text.text);
    pm_str_free(&text);
    check(run(NULL, "dataset make shapes %s size=28 train=40 validation=8 test=20", in("data")), 0);
    return 0;
}

/* Returns 0 if the program lists a usable OpenCL device. Otherwise it prints one line and returns
 * the test's exit code: 77 (skipped) if the driver is not installed, else 1. */
static inline int without_opencl(void)
{
    const char *driver = getenv("OCL_ICD_VENDORS");

    if (!driver || access(driver, R_OK) != 0) {
        print_message("skipped: PoCL (package pocl-opencl-icd) is not installed\n");
        return 77;
    }
    if (getenv("PUMICE_PROGRAM") &&
        system("\"$PUMICE_PROGRAM\" devices opencl:0 >/dev/null 2>&1") == 0)
        return 0;
    print_message("%s is installed, but PUMICE_PROGRAM lists no opencl:0\n", driver);
    return 1;
}

#endif
