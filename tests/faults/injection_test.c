/* The fault libraries follow choice.h: the chosen call fails or ends the process, other calls
 * are made, and a seed chooses the same calls each time. */
#include "faults/faults.h"

static struct result train(struct how how, const char *name, const char *more)
{
    return run(&how, "train %s run.folder=%s %s", in("net.json"), in("%s", name), more);
}

static void a_call_fails(void **state)
{
    (void)state;
    check(train(with_faults("PM_FAULT_CALLS=write PM_FAULT_PATH=failing/config.json PM_FAULT_AT=1 "
                            "PM_FAULT_DO=ENOSPC"), "failing", ""),
          1, in("failing/config.json"), "No space left");
    check(train(with_faults("PM_FAULT_CALLS=write PM_FAULT_PATH=failing/config.json PM_FAULT_AT=2 "
                            "PM_FAULT_DO=ENOSPC"), "failing", ""), 0);
}

static void a_call_is_the_last(void **state)
{
    struct result r;

    (void)state;
    r = train(with_faults("PM_FAULT_CALLS=rename PM_FAULT_PATH=killed/latest PM_FAULT_AT=1 "
                          "PM_FAULT_DO=kill_before"), "killed", "");
    assert_int_equal(r.code, -SIGKILL);
    assert_true(was_disturbed(&r));
    assert_false(pm_file_exists(in("killed/latest")));
    drop(&r);
    r = train(with_faults("PM_FAULT_CALLS=rename PM_FAULT_PATH=killed/latest PM_FAULT_AT=1 "
                          "PM_FAULT_DO=kill_after"), "killed", "run.steps=6");
    assert_int_equal(r.code, -SIGKILL);
    assert_true(pm_file_exists(in("killed/latest")));
    drop(&r);
}

static void a_seed_chooses(void **state)
{
    char *first = NULL;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct result r = train(with_faults("PM_FAULT_PATH=seeded/ PM_FAULT_CALLS=rename,mkdir "
                                            "PM_FAULT_SEED=3 PM_FAULT_RATE=0.2 PM_FAULT_DO=any"),
                                "seeded", "");
        const char *line = strstr(r.err, "fault: call ");

        assert_non_null(line);
        char *copy = pm_strdup(line);
        copy[strcspn(copy, "\n")] = '\0';
        if (first)
            assert_string_equal(first, copy);
        pm_free(first);
        first = copy;
        drop(&r);
        pm_remove_tree(in("seeded"));
    }
    pm_free(first);
}

static void a_vulkan_call_fails(void **state)
{
    struct pm_str all = { 0 };

    (void)state;
    if (!has_lavapipe()) {
        print_message("lavapipe is not installed\n");
        skip();
    }
    pm_str_add(&all, "PM_VULKAN_LOADER='%s' PM_VULKAN_FAULT_CALLS=AllocateMemory "
               "PM_VULKAN_FAULT_AT=1+ PM_VULKAN_FAULT_DO=OUT_OF_DEVICE_MEMORY",
               getenv("PUMICE_VULKAN_FAULTS"));
    check(train((struct how){ .environment = all.text }, "vulkan", "devices='[\"llvmpipe\"]'"), 4,
          "VK_ERROR_OUT_OF_DEVICE_MEMORY");
    pm_str_free(&all);
}

static int set_up(void **state)
{
    (void)state;
    return getenv("PUMICE_FAULTS") && getenv("PUMICE_VULKAN_FAULTS") ? make_world(true) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_fails),
        cmocka_unit_test(a_call_is_the_last),
        cmocka_unit_test(a_seed_chooses),
        cmocka_unit_test(a_vulkan_call_fails),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
