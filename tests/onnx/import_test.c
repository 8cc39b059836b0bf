/* ONNX models from other programs, compared with the outputs that come with them: single
 * operators and whole nets. Arguments: a device (default cpu), then the names of cases (default
 * all). */
#include "onnx/import_common.h"

static struct pm_device *device;

static void one_case(void **state)
{
    run_case(device, *state);
}

/* Runs a whole net on the input 0, 1/n, 2/n ..., from which its stored output was made. */
static void light(void **state)
{
    const char *name = *state;
    const struct pm_import_options options = { .whole = true };
    struct pm_arena *a = pm_arena_create();
    struct pm_net *net = pm_net_create();
    struct pm_import *import = NULL;
    struct pm_node *inputs[256] = { NULL }, *out = NULL;
    struct pm_onnx_tensor t;
    char names[1][16] = { "image" };
    double worst = 0;

    ok(pm_import_open(pm_arena_printf(a, "%s.onnx", name), &import));
    const struct pm_onnx_model *model = pm_import_model(import);
    const size_t count = 3 * 224 * 224;
    for (size_t i = 0; i < model->input_count; i++)
        if (model->inputs[i].rank == 4 && model->inputs[i].dim[1] == 3 &&
            model->inputs[i].dim[2] == 224)
            inputs[i] = pm_net_input(net, names[0], PM_SHAPE4(1, 3, 224, 224), PM_F32);
    float *x = pm_arena_alloc(a, count * sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)((double)i / (double)count);
    ok(pm_import_graph(import, net, inputs, &options, &out));
    float *y = run_net(device, net, out, names, &x, 1);
    const float *expected = read_tensor(pm_arena_printf(a, "%s_output_0.pb", name), a, &t);
    assert_int_equal(pm_shape_count(out->out_shape), t.count);
    for (size_t i = 0; i < t.count; i++)
        worst = fmax(worst, fabs((double)y[i] - (double)expected[i]));
    if (!(worst < 1e-6))
        fail_msg("%s: differs by %g", name, worst);
    pm_free(y);
    pm_net_destroy(&net);
    pm_import_close(&import);
    pm_arena_destroy(&a);
}

enum { MOST = 200 };

int main(int argc, char **argv)
{
    static const char *const groups[] = { "pytorch-operator", "pytorch-converted" };
    const char *data = getenv("PUMICE_DATA"), *source = getenv("PUMICE_SOURCE");
    struct pm_arena *a = pm_arena_create();
    static struct CMUnitTest tests[MOST];
    size_t count = 0;

    use_software_drivers();
    for (size_t g = 0; g < PM_COUNT(groups); g++) {
        const char *folder = pm_arena_printf(a, "%s%s/onnx/%s", data ? data : source ? source : ".",
                                             data ? "" : "/../shared/data", groups[g]);
        char **names;
        size_t found;

        if (!pm_is_folder(folder)) {
            print_message("skipped: %s is not there (set PUMICE_DATA)\n", folder);
            pm_arena_destroy(&a);
            return 77;
        }
        if (pm_list_folder(a, folder, &names, &found) < 0) {
            pm_arena_destroy(&a);
            return 1;
        }
        for (size_t i = 0; i < found && count < MOST; i++) {
            bool wanted = argc < 3;

            for (int k = 2; k < argc; k++)
                wanted |= strstr(names[i], argv[k]) != NULL;
            if (wanted)
                tests[count++] = (struct CMUnitTest){
                    .name = names[i], .test_func = one_case,
                    .initial_state = pm_arena_printf(a, "%s/%s", folder, names[i]) };
        }
    }
    static const char *const nets[] = { "bvlc_alexnet", "squeezenet", "resnet50", "inception_v1",
                                        "vgg19" };
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        bool wanted = argc < 3;

        for (int k = 2; k < argc; k++)
            wanted |= strstr(nets[i], argv[k]) != NULL;
        if (wanted)
            tests[count++] = (struct CMUnitTest){
                .name = nets[i], .test_func = light,
                .initial_state = pm_arena_printf(a, "%s%s/onnx/light/light_%s",
                                                 data ? data : source ? source : ".",
                                                 data ? "" : "/../shared/data", nets[i]) };
    }
    device = device_named(argc > 1 ? argv[1] : "cpu");
    if (!device) {
        print_message("skipped: %s\n", pm_error_text());
        return 77;
    }
    const int failed = _cmocka_run_group_tests("import", tests, count, NULL, NULL);
    pm_device_close(&device);
    pm_arena_destroy(&a);
    return failed;
}
