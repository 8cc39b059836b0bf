/* Importing a model, or loading it from a checkpoint, takes at most 1.2 times the memory of its
 * weights, also when one transposed matrix holds most of them. That matrix must have the right
 * elements. */
#include "import_common.h"

#include "checkpoints/match.h"

#include <sys/resource.h>
#include <sys/wait.h>

enum { IN = 4000, OUT = 3100 }; /* 47 MiB */

static float weight(uint64_t i)
{
    return (float)(i % 1000003) / 8;
}

static int fill_weights(const struct pm_onnx_tensor *t, uint64_t begin, size_t size, void *dst)
{
    (void)t;
    for (size_t i = 0; i < size / 4; i++)
        ((float *)dst)[i] = weight(begin / 4 + i);
    return PM_OK;
}

/* A product with w, which is transposed, or with fc/weights in the order of Pumice's own nets. */
static void make_model(const char *path, bool transposed)
{
    struct pm_onnx_model *m = pm_onnx_make("g");
    const char *w = transposed ? "w" : "fc/weights";
    const int64_t shape[] = { transposed ? OUT : IN, transposed ? IN : OUT };
    struct pm_onnx_node *n = pm_onnx_add(m, "Gemm", "fc", (const char *[]){ "x", w, NULL },
                                         (const char *[]){ "y", NULL });

    pm_onnx_set_int(m, n, "transB", transposed);
    pm_onnx_add_tensor(m, w, PM_DTYPE_F32, 2, shape, NULL)->fill = fill_weights;
    pm_onnx_add_input(m, "x", PM_DTYPE_F32, 2, (const int64_t[]){ 1, IN });
    pm_onnx_add_output(m, "y", PM_DTYPE_F32, 2, (const int64_t[]){ 1, OUT });
    ok(pm_onnx_write(m, path, false, NULL));
    pm_onnx_close(&m);
}

static double peak_mib(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1024;
}

/* Returns 0 when the increase of the peak is within the limit and some rows of the weights are
 * right. */
static int judge(struct pm_variables *v, double before, bool transposed)
{
    const double ratio = (peak_mib() - before) / ((double)v->bytes / (1 << 20));
    const struct pm_variable *w = &v->list[0];
    float row[OUT];

    if (w->shape.dim[0] != IN || w->shape.dim[1] != OUT)
        return 3;
    for (size_t i = 0; i < IN; i += 57) {
        if (pm_buffer_read(v->device, v->values, v->offset[0] + i * sizeof row, row, sizeof row) <
            0)
            return 4;
        for (size_t k = 0; k < OUT; k++)
            if (row[k] != weight(transposed ? k * IN + i : i * OUT + k))
                return 5;
    }
    printf("peak of %s: %.3f times the weights\n", transposed ? "importing" : "a checkpoint",
           ratio);
    return ratio > 0.9 && ratio <= 1.2 ? 0 : 6;
}

static int failed(void)
{
    fprintf(stderr, "%s\n", pm_error_text());
    return 2;
}

static int import_there(const char *path)
{
    struct pm_device *d = device_named("cpu");
    struct pm_import *import = NULL;
    struct pm_net *net = pm_net_create();
    struct pm_variables *v = NULL;
    struct pm_node *x = pm_net_input(net, "x", (struct pm_shape){ 2, { 1, IN } }, PM_F32),
                   *y = NULL;
    const double before = peak_mib();

    if (pm_import_open(path, &import) < 0 ||
        pm_import_graph(import, net, &x, &(struct pm_import_options){ .whole = true }, &y) < 0 ||
        pm_variables_create(d, net, false, NULL, &v) < 0 || pm_variables_allocate(v) < 0 ||
        pm_variables_init(v, 1, NULL) < 0)
        return failed();
    return judge(v, before, true);
}

static int checkpoint_there(const char *path)
{
    struct pm_device *d = device_named("cpu");
    struct pm_checkpoint *from = NULL;
    struct pm_net *net = pm_net_create();
    struct pm_variables *v = NULL;
    struct pm_node *x = pm_net_input(net, "x", (struct pm_shape){ 2, { 1, IN } }, PM_F32);
    struct pm_match match;
    const double before = peak_mib();

    if (!pm_net_add(net, "fc", x, "fully_connected units=%d bias=false", OUT) ||
        pm_checkpoint_open(NULL, path, "test", &from) < 0 ||
        pm_variables_create(d, net, false, NULL, &v) < 0 || pm_variables_allocate(v) < 0)
        return failed();
    pm_match_make(from, v, false, NULL, NULL, &match);
    if (match.count[PM_FATE_TAKEN] != 1 || pm_match_write(&match, v) < 0)
        return failed();
    return judge(v, before, false);
}

/* Runs in its own process, so that other tests do not affect the peak. */
static void run_there(int (*measure)(const char *path), bool transposed)
{
    char *folder = make_folder();
    struct pm_str path = { 0 };
    int status;

    pm_str_add(&path, "%s/m.onnx", folder);
    make_model(path.text, transposed);
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        const int code = measure(path.text);
        fflush(stdout);
        _exit(code);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    pm_str_free(&path);
    drop_folder(folder);
}

static void weights_once(void **state)
{
    (void)state;
    run_there(import_there, true);
}

static void checkpoint_once(void **state)
{
    (void)state;
    run_there(checkpoint_there, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(weights_once),
                                        cmocka_unit_test(checkpoint_once) };

#ifdef __SANITIZE_ADDRESS__
    print_message("the address sanitizer keeps what is freed: memory is not measured\n");
    return 77;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
