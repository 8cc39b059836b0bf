/* Commands that write a pair of files over an earlier pair: after a kill at any time, the
 * earlier pair or the new one can be read, never parts of both. The next command with the same
 * target removes temporary files of a killed one. */
#include "faults/faults.h"

#include <pumice/data.h>

static char *old_checkpoint, *new_checkpoint;

static bool same_values(const char *a, const char *b)
{
    struct result r = run(NULL, "checkpoint diff %s %s", a, b);
    const bool same = r.code == 0;

    if (r.code != 0 && r.code != 1)
        fail_msg("%s", r.err);
    drop(&r);
    return same;
}

/* The number of the command's calls on files in FOLDER/pair. */
static int count_calls(const char *command)
{
    struct how how = with_faults("PM_FAULT_PATH=/pair/ PM_FAULT_LOG=%s", in("calls"));
    int n = 0;

    unlink(in("calls"));
    check(run(&how, "%s", command), 0);
    char *text = get_text(in("calls"));
    for (char *p = text; (p = strchr(p, '\n')); p++)
        n++;
    pm_free(text);
    return n;
}

static int count_files(const char *pattern)
{
    struct pm_arena *a = pm_arena_create();
    char **names;
    size_t n;

    assert_int_equal(pm_glob(a, in("pair/%s", pattern), &names, &n), PM_OK);
    pm_arena_destroy(&a);
    return (int)n;
}

static void killed_at(int n, const char *what, const char *command)
{
    struct how how = with_faults("PM_FAULT_PATH=/pair/ PM_FAULT_AT=%d PM_FAULT_DO=%s", n, what);
    struct result r = run(&how, "%s", command);

    if (r.code != -SIGKILL)
        fail_msg("call %d: exit code %d: %s", n, r.code, r.err);
    drop(&r);
}

/* ---- export ------------------------------------------------------------------------------ */

static char *export_of(int step)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "export %s %s export.weights=beside eval.checkpoint=%d", in("run"),
               in("pair/m.onnx"), step);
    return s.text;
}

static void export_over_a_pair(void **state)
{
    char *of_old = export_of(2), *of_new = export_of(4);
    int olds = 0, news = 0;

    (void)state;
    assert_int_equal(mkdir(in("pair"), 0777), 0);
    check(run(NULL, "%s", of_old), 0);
    check(run(NULL, "checkpoint convert %s %s", in("pair/m.onnx"), in("old.safetensors")), 0);
    check(run(NULL, "%s", of_new), 0);
    check(run(NULL, "checkpoint convert %s %s", in("pair/m.onnx"), in("new.safetensors")), 0);
    assert_false(same_values(in("old.safetensors"), in("new.safetensors")));
    check(run(NULL, "%s", of_old), 0);
    const int calls = count_calls(of_new);
    assert_true(calls > 8);
    for (int n = 1; n <= calls; n++) {
        check(run(NULL, "%s", of_old), 0);
        assert_int_equal(count_files("*.data"), 1); /* the file of a killed export was removed,
                                                     * too */
        assert_int_equal(count_files("*.tmp-*"), 0);
        killed_at(n, "kill_after", of_new);
        const bool is_old = same_values(in("pair/m.onnx"), in("old.safetensors"));

        if (!is_old && !same_values(in("pair/m.onnx"), in("new.safetensors")))
            fail_msg("killed after call %d the model has the weights of neither", n);
        olds += is_old, news += !is_old;
    }
    assert_true(olds > 4 && news > 0);
    check(run(NULL, "%s", of_new), 0);
    assert_int_equal(count_files("*.data"), 1);
    pm_free(of_old);
    pm_free(of_new);
}

/* ---- checkpoint convert ------------------------------------------------------------------ */

static char *conversion_of(const char *checkpoint)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "checkpoint convert %s %s force=true", checkpoint, in("pair/model.ckpt"));
    return s.text;
}

/* TensorFlow fixes the names, so the earlier index is removed before the data are replaced. In
 * between there is no checkpoint, and the command must be run again. */
static void convert_over_a_bundle(void **state)
{
    char *of_old = conversion_of(old_checkpoint), *of_new = conversion_of(new_checkpoint);
    int none = 0, found = 0, left = 0;

    (void)state;
    pm_remove_tree(in("pair"));
    assert_int_equal(mkdir(in("pair"), 0777), 0);
    check(run(NULL, "%s", of_old), 0);
    const int calls = count_calls(of_new);
    for (int n = 1; n <= calls; n++) {
        check(run(NULL, "%s", of_old), 0);
        assert_int_equal(count_files("*.tmp-*"), 0);
        killed_at(n, "kill_after", of_new);
        left += count_files("*.tmp-*") > 0;
        if (!pm_file_exists(in("pair/model.ckpt.index"))) {
            none++;
            continue;
        }
        found++;
        if (!same_values(in("pair/model.ckpt"), old_checkpoint) &&
            !same_values(in("pair/model.ckpt"), new_checkpoint))
            fail_msg("killed after call %d the checkpoint has the values of neither", n);
    }
    assert_true(none > 0 && found > 4 && left > 4);
    pm_free(of_old);
    pm_free(of_new);
}

static void report_over_a_page(void **state)
{
    char *report = NULL;
    struct pm_str s = { 0 };
    int left = 0;

    (void)state;
    pm_remove_tree(in("pair"));
    assert_int_equal(mkdir(in("pair"), 0777), 0);
    pm_str_add(&s, "report %s --out %s", in("run"), in("pair/page.html"));
    report = s.text;
    const int calls = count_calls(report);
    for (int n = 1; n <= calls; n++) {
        killed_at(n, "kill_after", report);
        left += count_files("*.tmp-*") > 0;
        check(run(NULL, "%s", report), 0);
        assert_int_equal(count_files("*.tmp-*"), 0);
    }
    assert_true(left > 0);
    pm_free(report);
}

/* ---- dataset convert --------------------------------------------------------------------- */

static void put_photo(const char *path, uint8_t grey)
{
    const struct pm_image8 im = { 1, 1, 1, &grey };
    uint8_t *png = NULL;
    size_t size;

    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    assert_int_equal(pm_file_write(path, png, size), PM_OK);
    pm_free(png);
}

/* The data folder has its name at every moment, with the old data or the new. */
static void convert_over_a_data_folder(void **state)
{
    char *convert = NULL;
    struct pm_str s = { 0 };

    (void)state;
    pm_remove_tree(in("pair"));
    assert_int_equal(pm_make_folders(in("photos/a")), PM_OK);
    assert_int_equal(mkdir(in("pair"), 0777), 0);
    put_photo(in("photos/a/1.png"), 1);
    pm_str_add(&s, "dataset convert folder %s %s validation=0 force=true", in("photos"),
               in("pair/data"));
    convert = s.text;
    check(run(NULL, "%s", convert), 0);
    struct how how = with_faults("PM_FAULT_CALLS=rename,renameat2 PM_FAULT_PATH=/pair/ "
                                 "PM_FAULT_LOG=%s", in("names"));
    check(run(&how, "%s", convert), 0);
    char *text = get_text(in("names"));
    int calls = 0;
    for (char *p = text; (p = strchr(p, '\n')); p++)
        calls++;
    pm_free(text);
    assert_true(calls > 0);
    for (int n = 1; n <= calls; n++) {
        how = with_faults("PM_FAULT_CALLS=rename,renameat2 PM_FAULT_PATH=/pair/ PM_FAULT_AT=%d "
                          "PM_FAULT_DO=kill_after", n);
        struct result r = run(&how, "%s", convert);
        assert_int_equal(r.code, -SIGKILL);
        drop(&r);
        check(run(NULL, "dataset inspect %s --check", in("pair/data")), 0);
        assert_int_equal(count_files("data.former*"), 0);
    }
    check(run(NULL, "%s", convert), 0);
    assert_int_equal(count_files("*"), 1);
    pm_free(convert);
}

static int set_up(void **state)
{
    (void)state;
    if (make_world(true) < 0)
        return -1;
    check(run(NULL,
              "train %s run.folder=%s run.steps=4 run.save_every_steps=2 model.layers.0.filters=16",
              in("net.json"), in("run")),
          0);
    old_checkpoint = pm_strdup(in("run/checkpoints/step-000002.safetensors"));
    new_checkpoint = pm_strdup(in("run/checkpoints/step-000004.safetensors"));
    return 0;
}

static int tear_down(void **state)
{
    pm_free(old_checkpoint);
    pm_free(new_checkpoint);
    return drop_world(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(export_over_a_pair),
        cmocka_unit_test(convert_over_a_bundle),
        cmocka_unit_test(report_over_a_page),
        cmocka_unit_test(convert_over_a_data_folder),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
