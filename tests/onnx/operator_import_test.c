/* Single ONNX operators compared with ONNX Runtime's outputs (tests/golden/onnx_operators.py).
 * Arguments: a device (default cpu), then the names of cases (default all). */
#include "onnx/import_common.h"

static struct pm_device *device;

static void one_case(void **state)
{
    run_case(device, *state);
}

int main(int argc, char **argv)
{
    const char *source = getenv("PUMICE_SOURCE");
    struct pm_arena *a = pm_arena_create();
    const char *folder =
        pm_arena_printf(a, "%s/tests/golden/onnx_operators", source ? source : ".");
    static struct CMUnitTest tests[200];
    size_t count = 0, found = 0;
    char **names;

    use_software_drivers();
    if (pm_list_folder(a, folder, &names, &found) < 0 || found == 0) {
        print_message("%s: no cases\n", folder);
        return 1;
    }
    for (size_t i = 0; i < found && count < PM_COUNT(tests); i++) {
        bool wanted = argc < 3;

        for (int k = 2; k < argc; k++)
            wanted |= strstr(names[i], argv[k]) != NULL;
        if (wanted)
            tests[count++] = (struct CMUnitTest){ .name = names[i],
                                                  .test_func = one_case,
                                                  .initial_state = pm_arena_printf(
                                                      a, "%s/%s", folder, names[i]) };
    }
    device = device_named(argc > 1 ? argv[1] : "cpu");
    if (!device) {
        print_message("skipped: %s\n", pm_error_text());
        return 77;
    }
    const int failed = _cmocka_run_group_tests("operators", tests, count, NULL, NULL);
    pm_device_close(&device);
    pm_arena_destroy(&a);
    return failed;
}
