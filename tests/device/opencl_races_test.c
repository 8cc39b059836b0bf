/* Oclgrind interprets one small call of each variant of every kernel, except one that takes minutes
 * (skipped_variant), and reports nothing: no data races, no accesses outside of buffers, no
 * barriers that only a part of a workgroup reaches. The calls are those of the verification. Their
 * buffers are exactly as long as their values. If a row's outputs may take the place of inputs,
 * that is run, too. Without Oclgrind the test is skipped. */
#include "device/drivers.h"
#include "verify/verify_private.h"

#include <stdio.h>

/* ---- Oclgrind ---------------------------------------------------------------------------- */

static char *folder, *log_path;
static size_t log_read; /* bytes of the log that were read */

/* Makes the loader use Oclgrind. It must be set up before devices are listed. */
static void use_oclgrind(const char *driver)
{
    struct pm_str icd = { 0 }, log = { 0 }, line = { 0 };

    pm_str_add(&icd, "%s/oclgrind.icd", folder);
    pm_str_add(&log, "%s/log.txt", folder);
    pm_str_add(&line, "%s\n", driver);
    ok(pm_file_write(icd.text, line.text, line.length));
    setenv("OCL_ICD_VENDORS", icd.text, 1);
    setenv("VK_DRIVER_FILES", "none", 1);
    setenv("XDG_CACHE_HOME", folder, 1);
    setenv("OCLGRIND_DATA_RACES", "1", 1);
    setenv("OCLGRIND_LOG", log.text, 1);
    setenv("OCLGRIND_MAX_ERRORS", "1000000", 1); /* in the whole process */
    unsetenv("OCLGRIND_UNIFORM_WRITES"); /* equal values in one place are no race */
    unsetenv("OCLGRIND_QUICK");
    log_path = log.text;
    pm_str_free(&icd);
    pm_str_free(&line);
}

static struct pm_device *open_oclgrind(const struct pm_shader *extra)
{
    struct pm_device_info *list = NULL;
    struct pm_device *d = NULL;
    size_t count = 0, index;

    ok(pm_device_list(&list, &count));
    ok(pm_device_find(list, count, "opencl:0", "test", &index));
    assert_contains(list[index].name, "Oclgrind");
    ok(pm_device_open(&list[index], NULL, &d)); /* this empties the log */
    ((struct pm_shader_device *)d)->pipelines.extra = extra;
    log_read = 0;
    pm_free(list);
    return d;
}

/* Returns (pm_free) the first line that the log has got since the last call, or NULL. */
static char *new_message(void)
{
    char *text = NULL, *line, *found = NULL;
    size_t size = 0;

    ok(pm_file_read(log_path, &text, &size));
    if (size > log_read) {
        line = text + log_read;
        line += strspn(line, " \t\n");
        line[strcspn(line, "\n")] = '\0';
        found = pm_strdup(line);
    }
    log_read = size;
    pm_free(text);
    return found;
}

/* ---- small calls -------------------------------------------------------------------------- */

/* A variant of a kernel, with the call that runs it. */
struct variant {
    char kernel[48], name[48];
    double work;
    size_t call; /* index among the calls of all sources */
    int level;
};
struct check {
    struct pm_device *device;
    const char *only; /* a kernel, or NULL */
    struct variant *list;
    size_t count, capacity;
    size_t next;      /* index of the next call */
    int runs, faults;
    char *first;      /* owned: the first message */
};

/* Whether a call of work x is a better test than one of work best (negative: none yet). Preferred
 * is the largest call of at most `small` operations, so that loops have several turns, else the
 * smallest one. */
static bool is_better(double x, double best)
{
    const double small = 10000;

    return best < 0 || (x <= small ? best > small || x > best : x < best);
}

/* Its smallest call takes minutes: it cuts thousands of terms into parts. Its loop is that of
 * s64x64x16, and s64x64x16_rolled_two has parts, too. */
static const char skipped_kernel[] = "conv2d_bwd_filter", skipped_variant[] = "s64x64x16_two";

static bool is_skipped(const struct pm_kernel *k, const char *name)
{
    return strcmp(k->name, skipped_kernel) == 0 && strcmp(name, skipped_variant) == 0;
}

static void offer(struct check *s, const struct pm_kernel *k, const char *name, double work,
                  int level)
{
    size_t i = 0;

    while (i < s->count &&
           (strcmp(s->list[i].kernel, k->name) != 0 || strcmp(s->list[i].name, name) != 0))
        i++;
    if (i == s->count) {
        PM_GROW(s->list, s->count, s->capacity);
        s->list[s->count++].work = -1;
    }
    if (!is_better(work, s->list[i].work))
        return;
    snprintf(s->list[i].kernel, sizeof s->list[i].kernel, "%s", k->name);
    snprintf(s->list[i].name, sizeof s->list[i].name, "%s", name);
    s->list[i].work = work;
    s->list[i].call = s->next;
    s->list[i].level = level;
}

/* The first walk through the sources chooses the calls and runs none. */
static uint32_t choose(void *ctx, const struct pm_kernel *k, const void *params, size_t count)
{
    struct check *s = ctx;
    const char *name, *last = "";

    for (int level = 0; level < 32 && (!s->only || strcmp(s->only, k->name) == 0); level++) {
        ok(pm_call_variant(s->device, k, params, count, level, &name));
        if (!name)
            break;
        if (strcmp(name, last) != 0 && !is_skipped(k, name))
            offer(s, k, name, k->flops ? k->flops(params, count) : (double)count, level);
        last = name;
    }
    s->next++;
    return 0;
}

/* The second walk runs them. */
static uint32_t chosen_levels(void *ctx, const struct pm_kernel *k, const void *params,
                              size_t count)
{
    struct check *s = ctx;
    uint32_t levels = 0;

    (void)k, (void)params, (void)count;
    for (size_t i = 0; i < s->count; i++)
        if (s->list[i].call == s->next)
            levels |= UINT32_C(1) << s->list[i].level;
    s->next++;
    return levels;
}

/* ---- one run ------------------------------------------------------------------------------ */

/* Makes buffer b of the call as long as its value, and writes what the call reads. */
static void make_buffer(struct pm_device *d, const struct pm_verify_call *call, int b, size_t bytes,
                        struct pm_bound_call *bound)
{
    const size_t whole = (bytes + 3) / 4 * 4;
    char *data;

    if (bytes == 0)
        return;
    ok(pm_buffer_create(d, whole, &bound->buf[b].buffer)); /* OpenCL's have zeros */
    bound->buf[b].size = bytes;
    if (!call->buf[b].data)
        return;
    data = pm_calloc(1, whole);
    memcpy(data, call->buf[b].data, bytes);
    ok(pm_buffer_write(d, bound->buf[b].buffer, 0, data, whole));
    pm_free(data);
}

/* Oclgrind does not know LLVM's saturating subtraction, which the optimizer makes, and the marks
 * that inlining a function leaves that returns a struct. For such kernels its compiler does
 * neither. Elsewhere it optimizes, because that makes runs several times shorter. */
static void choose_options(const struct pm_kernel *k)
{
    static const char *const plain[] = { "local_response_norm_fwd", "local_response_norm_bwd",
                                         "transpose_weights" };

    unsetenv("OCLGRIND_BUILD_OPTIONS");
    for (size_t i = 0; i < PM_COUNT(plain); i++)
        if (strcmp(k->name, plain[i]) == 0)
            setenv("OCLGRIND_BUILD_OPTIONS", "-cl-opt-disable -disable-llvm-passes", 1);
}

/* Runs a call; y: a buffer that is at the place of buffer x, or -1. */
static void run_once(struct check *s, const struct pm_verify_call *call, int level, int y, int x)
{
    const struct pm_kernel *k = call->kernel;
    struct pm_device *d = s->device;
    struct pm_bound_call bound = { .kernel = k, .label = call->label, .count = call->count };
    struct pm_program_desc desc = { .name = "races", .calls = &bound, .calls_count = 1,
                                    .slots = 1, .levels = &level };
    struct pm_program *program = NULL;
    struct pm_buf_spec spec[PM_MAX_BUFS];
    const int bufs = pm_kernel_bufs(k, spec), one = 1;
    size_t scratch[PM_MAX_BUFS];
    char *params = pm_calloc(1, k->params_size + 1), *message;
    const char *variant;
    const double begin = pm_seconds();

    memcpy(params, call->params, k->params_size);
    if (k->accumulate) /* the call then reads what it adds to */
        memcpy(params + k->accumulate - 1, &one, sizeof one);
    bound.params = params;
    ok(pm_call_variant(d, k, params, call->count, level, &variant));
    ok(pm_call_scratch(d, k, params, call->count, level, scratch));
    for (int b = 0; b < bufs; b++)
        if (b != y)
            make_buffer(d, call, b, pm_access_own(spec[b].access) ? scratch[b]
                                                                  : call->buf[b].bytes, &bound);
    if (y >= 0)
        bound.buf[y] = (struct pm_place){ bound.buf[x].buffer, 0, call->buf[y].bytes };
    choose_options(k);
    if (pm_program_create(d, &desc, &program) < 0)
        fail_msg("%s, variant %s: %s", k->name, variant, pm_error_text());
    assert_string_equal(pm_program_variant(program, 0), variant);
    ok(pm_program_submit(program, 0));
    ok(pm_program_wait(program, 0));
    pm_program_destroy(&program);
    for (int b = 0; b < bufs; b++)
        if (b != y)
            pm_buffer_destroy(d, &bound.buf[b].buffer);
    pm_free(params);
    message = new_message();
    if (message && !s->only)
        print_message("%s, variant %s (%s%s): %s\n", k->name, variant, call->label,
                      y >= 0 ? ", in place" : "", message);
    if (pm_seconds() - begin > 10)
        print_message("%s, variant %s: %.0f s\n", k->name, variant, pm_seconds() - begin);
    s->runs++;
    s->faults += message != NULL;
    if (message && !s->first)
        s->first = message, message = NULL;
    pm_free(message);
}

static int run_levels(void *ctx, const struct pm_verify_call *call, uint32_t levels)
{
    struct check *s = ctx;
    int pair[PM_MAX_INPLACE][2];
    const int pairs = pm_kernel_inplace(call->kernel, pair);

    for (int level = 0; level < 32; level++) {
        if (!(levels >> level & 1))
            continue;
        run_once(s, call, level, -1, -1);
        for (int i = 0; i < pairs; i++) {
            const int y = pair[i][0], x = pair[i][1];

            if (call->buf[y].bytes > 0 && call->buf[x].bytes >= call->buf[y].bytes)
                run_once(s, call, level, y, x);
        }
    }
    return PM_OK;
}

static void walk(struct check *s, const struct pm_verify_hooks *hooks)
{
    struct pm_verify *v = NULL;
    struct pm_verify_source source;

    ok(pm_verify_open(s->device, &v));
    v->hooks = hooks;
    s->next = 0;
    for (size_t i = 0; pm_verify_case(i, &source); i++)
        ok(pm_verify_source(v, &source));
    pm_verify_close(&v);
}

static void run_chosen(struct check *s)
{
    walk(s, &(struct pm_verify_hooks){ choose, NULL, s });
    walk(s, &(struct pm_verify_hooks){ chosen_levels, run_levels, s });
}

static void end_check(struct check *s)
{
    pm_device_close(&s->device);
    pm_free(s->list);
    pm_free(s->first);
}

/* ---- tests -------------------------------------------------------------------------------- */

static void test_all(void **state)
{
    struct check s = { .device = open_oclgrind(NULL) };

    (void)state;
    run_chosen(&s);
    print_message("%zu variants in %d runs; not run: %s, variant %s\n", s.count, s.runs,
                  skipped_kernel, skipped_variant);
    assert_true(s.count > 100);
    if (s.faults)
        fail_msg("Oclgrind reports faults in %d runs; the first: %s", s.faults, s.first);
    end_check(&s);
}

/* Returns (pm_free) the shader's words without its first barrier. */
static uint32_t *without_barrier(const struct pm_shader *shader)
{
    enum { NOP = 0, CONTROL_BARRIER = 224 };
    uint32_t *words = pm_malloc(shader->bytes);
    const size_t count = shader->bytes / 4;
    size_t i = 5;

    memcpy(words, shader->words, shader->bytes);
    while (i < count && (words[i] & 0xffff) != CONTROL_BARRIER)
        i += words[i] >> 16;
    assert_true(i + 4 <= count);
    for (int n = 0; n < 4; n++)
        words[i + (size_t)n] = 1u << 16 | NOP;
    return words;
}

static void test_missing_barrier(void **state)
{
    const struct pm_shader *real = shader_named("matmul");
    uint32_t *words = without_barrier(real);
    const struct pm_shader table[] = { { real->name, words, real->bytes }, { 0 } };
    struct check s = { .device = open_oclgrind(table), .only = "matmul" };

    (void)state;
    run_chosen(&s);
    assert_true(s.runs > 0);
    assert_contains(s.first, "data race at local memory");
    end_check(&s);
    pm_free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_missing_barrier),
    };
    const char *driver = getenv("PUMICE_OCLGRIND");
    int failed;

    if (!driver || access(driver, R_OK) != 0) {
        printf("skipped: PUMICE_OCLGRIND names no driver; install the package oclgrind\n");
        return 77;
    }
    folder = make_folder();
    use_oclgrind(driver);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_free(log_path);
    drop_folder(folder);
    return failed ? 1 : 0;
}
