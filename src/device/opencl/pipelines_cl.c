/* pipelines_cl: translates a module to OpenCL C and builds it. A file keeps each built kernel. */
#include "device/opencl/device_cl.h"

#include <stdlib.h>
#include <string.h>

/* ---- building ----------------------------------------------------------------------- */

/* Fails with the first line of the compiler's log that speaks of an error, else its first line. */
static int rejected(struct cl_device *d, cl_program program, cl_int r)
{
    size_t size = 0;
    char *log = NULL, *line;
    int err;

    d->cl.GetProgramBuildInfo(program, d->physical.device, CL_PROGRAM_BUILD_LOG, 0, NULL, &size);
    log = pm_calloc(size + 1, 1);
    if (size > 0)
        d->cl.GetProgramBuildInfo(program, d->physical.device, CL_PROGRAM_BUILD_LOG, size, log,
                                  NULL);
    PM_DEBUG("opencl", "%s", log);
    line = strstr(log, "error");
    while (line && line > log && line[-1] != '\n')
        line--;
    line = line ? line : log + strspn(log, " \n");
    line[strcspn(line, "\n")] = '\0';
    err = pm_fail(PM_EDEVICE, "the driver's compiler rejects it (%s)%s%.120s",
                  pm_cl_result_name(r), line[0] ? ": " : "", line);
    pm_free(log);
    return err;
}

static int build(struct cl_device *d, cl_program program)
{
    cl_int r = d->cl.BuildProgram(program, 1, &d->physical.device, d->build_options, NULL, NULL);

    return r == CL_SUCCESS ? PM_OK : rejected(d, program, r);
}

/* A driver may give a built kernel less than the device's limits. rusticl of Mesa 22.3 reports 32
 * for every kernel and runs the size that the kernel requires. */
static int check_built(struct cl_device *d, const struct cl_pipeline *p)
{
    int err = PM_OK;
    const uint32_t *local = p->kernel.local;
    const size_t wanted = (size_t)local[0] * local[1] * local[2];
    size_t most = 0;
    cl_int r;
    cl_kernel kernel = d->cl.CreateKernel(p->program, "pm_kernel", &r);

    PM_TRY(pm_cl_result(r, "CreateKernel"));
    PM_TRY(cl(d->cl.GetKernelWorkGroupInfo(kernel, d->physical.device, CL_KERNEL_WORK_GROUP_SIZE,
                                           sizeof most, &most, NULL)));
    if (most < wanted && strncmp(d->shared.base.info.driver, "rusticl", 7) != 0)
        PM_TRY(pm_fail(PM_EDEVICE, "its workgroups have %zu invocations, but the built kernel "
                       "allows only %zu", wanted, most));
out:
    if (kernel)
        d->cl.ReleaseKernel(kernel);
    return err;
}

/* ---- built kernels on disk ------------------------------------------------------------ */

static void cache_path(const struct cl_device *d, const struct pm_str *text, struct pm_str *path)
{
    struct pm_sha256 sum;
    char hash[65];

    if (d->cache.length == 0)
        return;
    pm_sha256_start(&sum);
    pm_sha256_add(&sum, text->text, text->length);
    pm_sha256_end(&sum, hash);
    pm_str_add(path, "%s/%s", d->cache.text, hash);
}

/* Makes a program from a binary; NULL: the driver rejects it. */
static cl_program from_binary(struct cl_device *d, const void *binary, size_t size)
{
    const unsigned char *bytes = binary;
    cl_int r, status = CL_SUCCESS;
    cl_program program = d->cl.CreateProgramWithBinary(d->context, 1, &d->physical.device, &size,
                                                       &bytes, &status, &r);

    if (r == CL_SUCCESS && status == CL_SUCCESS)
        r = d->cl.BuildProgram(program, 1, &d->physical.device, d->build_options, NULL, NULL);
    if (r == CL_SUCCESS && status == CL_SUCCESS)
        return program;
    PM_DEBUG("opencl", "the driver rejects a binary (%s)", pm_cl_result_name(r));
    if (program)
        d->cl.ReleaseProgram(program);
    return NULL;
}

/* Makes the program from a kept binary. False: there is none, or it is damaged. */
static bool load(struct cl_device *d, const char *path, cl_program *out)
{
    char *file = NULL;
    size_t size = 0;
    const char *body = path ? pm_pipeline_cache_load(path, "opencl", &file, &size) : NULL;

    *out = body ? from_binary(d, body, size) : NULL;
    pm_free(file);
    return *out != NULL;
}

/* Keeps the program's binary on disk. */
static void keep(struct cl_device *d, const char *path, cl_program program)
{
    size_t size = 0;
    unsigned char *binary = NULL;

    if (!path || d->cl.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL)
                     != CL_SUCCESS || size == 0)
        return;
    binary = pm_malloc(size);
    if (d->cl.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL)
        == CL_SUCCESS)
        pm_pipeline_cache_save(path, "opencl", binary, size);
    pm_free(binary);
}

/* ---- one pipeline ------------------------------------------------------------------- */

/* Software drivers compile one kernel at a time. PoCL compiles under a lock of its own, so more
 * threads gain nothing; and with two of them, a start with PoCL 3.1 was seen to stop in its
 * compiler. */
static int make(struct cl_device *d, struct cl_pipeline *p, const struct pm_str *text)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    const bool alone = d->shared.base.info.kind == PM_KIND_SOFTWARE;
    int err = PM_OK;
    struct pm_str path = { 0 };
    const char *source = text->text;
    cl_int r;

    if (alone)
        pthread_mutex_lock(&one);
    cache_path(d, text, &path);
    if (load(d, path.text, &p->program))
        goto out;
    p->program = d->cl.CreateProgramWithSource(d->context, 1, &source, &text->length, &r);
    PM_TRY(pm_cl_result(r, "CreateProgramWithSource"));
    PM_TRY(build(d, p->program));
    keep(d, path.text, p->program);
out:
    if (alone)
        pthread_mutex_unlock(&one);
    pm_str_free(&path);
    return err;
}

/* PM_OPENCL_TEXT=FOLDER keeps the text of every kernel that is built: FOLDER/NAME-HASH.cl. */
static void dump(const char *name, const struct pm_str *text)
{
    const char *folder = getenv("PM_OPENCL_TEXT");
    struct pm_str path = { 0 };

    if (!folder)
        return;
    pm_str_add(&path, "%s/%s-%016llx.cl", folder, name,
               (unsigned long long)pm_hash_bytes(text->text, text->length, 0));
    if (pm_make_folders(folder) < 0 || pm_file_write(path.text, text->text, text->length) < 0)
        PM_WARN("opencl", "PM_OPENCL_TEXT: %s", pm_error_text());
    pm_str_free(&path);
}

static int compile(struct pm_shader_device *shared, struct pm_pipeline *base, const uint32_t *words,
                   size_t count)
{
    int err = PM_OK;
    struct cl_device *d = (struct cl_device *)shared;
    struct cl_pipeline *p = (struct cl_pipeline *)base;
    const struct pm_cl_dialect dialect = { .fma = d->physical.fma };
    struct pm_str text = { 0 };

    PM_TRACE("opencl", "building %s", base->shader->name);
    PM_TRY(pm_cl_translate(base->shader->name, words, count, &dialect, &text, &p->kernel));
    dump(base->shader->name, &text);
    PM_TRY(make(d, p, &text));
    PM_TRY(check_built(d, p));
out:
    if (err < 0 && p->program) {
        d->cl.ReleaseProgram(p->program);
        p->program = NULL;
    }
    pm_str_free(&text);
    return err;
}

static void destroy(struct pm_shader_device *shared, struct pm_pipeline *p)
{
    struct cl_device *d = (struct cl_device *)shared;

    d->cl.ReleaseProgram(((struct cl_pipeline *)p)->program);
}

static const struct pm_pipeline_ops ops = {
    .log = "opencl",
    .pipeline_size = sizeof(struct cl_pipeline),
    .compile = compile,
    .destroy = destroy,
};

/* ---- all ---------------------------------------------------------------------------- */

/* Built kernels of a driver have a folder of their own, named after everything that a build depends
 * on except the kernel's text. */
static void find_cache(struct cl_device *d)
{
    const struct pm_device_info *i = &d->shared.base.info;
    struct pm_str key = { 0 };

    if (!pm_pipeline_cache_folder(&d->cache))
        return;
    pm_str_add(&key, "%s|%s|%s", i->driver, i->name, d->build_options);
    pm_str_add(&d->cache, "/opencl-%016llx",
               (unsigned long long)pm_hash_bytes(key.text, key.length, 0));
    pm_str_free(&key);
}

void pm_cl_pipelines_open(struct cl_device *d)
{
    snprintf(d->build_options, sizeof d->build_options, "-cl-std=CL1.2 -w%s",
             d->physical.rounded_divide ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    find_cache(d);
    pm_pipelines_open(&d->shared, &ops);
}

void pm_cl_pipelines_close(struct cl_device *d, bool idle)
{
    pm_pipelines_close(&d->shared, idle);
    pm_str_free(&d->cache);
}

uint64_t pm_cl_shaders(const struct pm_device *d)
{
    return pm_hash_bytes(PUMICE_TRANSLATOR, strlen(PUMICE_TRANSLATOR), pm_shader_hash(d));
}
