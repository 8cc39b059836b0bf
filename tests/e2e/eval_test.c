/* pumice eval: its output, and the files that it writes to the run folder. */
#include "e2e/program.h"

#include <dirent.h>

#include <pumice/data.h>
#include <pumice/tensor_file.h>

static struct result evaluate(const char *more)
{
    return run(NULL, "eval %s run.folder=%s %s", in("net.json"), in("run"), more);
}

/* Number of event files in a folder of the run. */
static int event_files(const char *name)
{
    DIR *d = opendir(in("run/%s", name));
    const struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d)) != NULL)
        n += strstr(e->d_name, ".tfevents.") != NULL;
    if (d)
        closedir(d);
    return n;
}

static void per_class_in_json(void **state)
{
    struct result r = evaluate("--json");
    cJSON *json = json_of(&r);
    const cJSON *rows = cJSON_GetObjectItem(json, "per_class"), *row;
    double support = 0, right = 0, predicted = 0, label = 0;

    (void)state;
    assert_int_equal(cJSON_GetArraySize(rows), 4);
    cJSON_ArrayForEach(row, rows)
    {
        const cJSON *precision = cJSON_GetObjectItem(row, "precision");
        const double own = number_of(row, "right");

        assert_true(number_of(row, "label") == label++);
        assert_non_null(cJSON_GetStringValue(cJSON_GetObjectItem(row, "name")));
        support += number_of(row, "support");
        predicted += number_of(row, "predicted");
        right += own;
        assert_float_equal(number_of(row, "recall"), own / number_of(row, "support"), 1e-12);
        if (number_of(row, "predicted") > 0)
            assert_float_equal(precision->valuedouble, own / number_of(row, "predicted"), 1e-12);
        else
            assert_true(cJSON_IsNull(precision));
        assert_float_equal(number_of(row, "f1"), 2 * own / (number_of(row, "support") +
                                                           number_of(row, "predicted")), 1e-12);
    }
    assert_true(support == 20 && predicted == 20);
    assert_float_equal(number_of(cJSON_GetObjectItem(json, "metrics"), "accuracy"), right / 20,
                       1e-12);
    cJSON_Delete(json);
    check(r, 0);
}

static void text_for_people(void **state)
{
    struct result r = evaluate("");

    (void)state;
    assert_non_null(strstr(r.out, "step 6, 20 pictures"));
    assert_non_null(strstr(r.out, "\n  accuracy       "));
    assert_null(strstr(r.out, "recall_at_5")); /* there are only 4 classes */
    assert_non_null(
        strstr(r.out, "  class                     pictures  precision     recall         f1"));
    assert_non_null(strstr(r.out, "\n  triangle "));
    check(r, 0);
}

/* One line names how many variables a checkpoint of another net lacks, and then the error. */
static void checkpoint_of_another_net(void **state)
{
    struct result r = evaluate("model.layers=null model.name=resnet_v1_18");
    int lines = 0;

    (void)state;
    for (const char *at = r.err; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    if (lines > 6)
        fail_msg("%d lines: %s", lines, r.err);
    assert_non_null(strstr(r.err, "of the net's 102 variables are not in "));
    check(r, 3, "are not in", "is it a checkpoint of this net");
}

/* Each split has its own folder. */
static void files_by_split(void **state)
{
    const char *line;
    int lines = 0;

    (void)state;
    assert_int_equal(event_files("eval"), 1); /* training's own file */
    const int before = event_files("eval_test");
    check(evaluate("eval.checkpoint=3"), 0);
    assert_int_equal(event_files("eval_test"), before + 1);
    char *csv = get_text(in("run/eval_test/per_class.csv"));
    for (line = csv; (line = strchr(line, '\n')) != NULL; line++)
        lines++;
    assert_int_equal(lines, 5);
    assert_non_null(
        strstr(csv, "step,label,name,support,predicted,right,precision,recall,f1\n3,0,disc,"));
    pm_free(csv);
    check(evaluate("data.eval_split=validation"), 0);
    assert_true(pm_file_exists(in("run/eval_validation/per_class.csv")));
    csv = get_text(in("run/eval/per_class.csv")); /* from the evaluation during training */
    assert_non_null(strstr(csv, "\n6,3,ring,"));
    pm_free(csv);
}

/* A checkpoint of another run or program gets a folder of its own below eval_SPLIT, so that it is
 * not drawn into the run's curves. Its event file has the checkpoint's step. */
static void other_checkpoints(void **state)
{
    struct pm_arena *a = pm_arena_create();
    const int before = event_files("eval_test");
    char **files = NULL;
    size_t count = 0;
    struct result r;

    (void)state;
    assert_int_equal(pm_make_folders(in("kept")), PM_OK);
    check(run(NULL, "checkpoint convert %s %s", in("run"), in("kept/model.ckpt-6")), 0);
    for (int i = 0; i < 2; i++) { /* into the run's folder, and into one that is not there yet */
        const char *to = i ? "other" : "run";

        r = run(NULL, "eval %s run.folder=%s eval.checkpoint=%s", in("net.json"), in("%s", to),
                in("kept/model.ckpt-6"));
        assert_contains(r.err, "evaluating ");
        assert_contains(r.err, "kept/model.ckpt-6 (TensorFlow V2 checkpoint)");
        check(r, 0);
        assert_int_equal(pm_glob(a, in("%s/eval_test/model.ckpt-6-*/events.out.tfevents.*", to),
                                 &files, &count), PM_OK);
        assert_int_equal(count, 1);
        *strrchr(files[0], '/') = '\0';
        assert_true(has_tag(files[0], "eval/Accuracy"));
        assert_int_equal(pm_glob(a, in("%s/eval_test/model.ckpt-6-*/per_class.csv", to), &files,
                                 &count), PM_OK);
        assert_int_equal(count, 1);
        char *csv = get_text(files[0]);
        assert_non_null(strstr(csv, "\n6,0,disc,"));
        pm_free(csv);
    }
    assert_int_equal(event_files("eval_test"), before);
    assert_false(pm_file_exists(in("other/config.json")));
    /* A run can still begin in that folder. */
    check(run(NULL, "train %s run.folder=%s run.steps=1", in("net.json"), in("other")), 0);
    check(run(NULL, "eval %s run.folder=null eval.checkpoint=%s", in("net.json"),
              in("kept/model.ckpt-6")), 0);
    pm_arena_destroy(&a);
}

static int values_of(const struct pm_file_tensor *t, void *dst)
{
    const struct pm_tensor_file *f = t->from;

    return pm_tensor_file_bytes(f, pm_tensor_file_find(f, t->name), 0, (size_t)t->bytes, dst);
}

/* A copy of the run's values in a file that does not state their step. */
static void without_step(void **state)
{
    struct pm_tensor_file *f;
    struct pm_file_tensor list[64];
    size_t n;

    (void)state;
    assert_int_equal(pm_tensor_file_open(in("run/checkpoints/step-000006.safetensors"), &f), 0);
    n = pm_tensor_file_count(f);
    assert_in_range(n, 1, PM_COUNT(list));
    for (size_t i = 0; i < n; i++) {
        list[i] = *pm_tensor_file_get(f, i);
        list[i].data = NULL;
        list[i].fill = values_of;
        list[i].from = f;
    }
    assert_int_equal(pm_safetensors_write(in("bare.safetensors"), list, n, NULL, NULL), 0);
    pm_tensor_file_close(&f);
    struct result r =
        run(NULL, "eval %s eval.checkpoint=%s", in("net.json"), in("bare.safetensors"));
    assert_non_null(strstr(r.out, "bare.safetensors, 20 pictures"));
    check(r, 0);
    r = run(NULL, "eval %s eval.checkpoint=%s --json", in("net.json"), in("bare.safetensors"));
    assert_non_null(strstr(r.out, "\"step\": null"));
    check(r, 0);
}

static void watching(void **state)
{
    const int before = event_files("eval_test");
    int warnings = 0;

    (void)state;
    struct result r = evaluate("--watch run.steps=6");
    for (const char *at = r.out; (at = strstr(at, "step 6, 20 pictures")) != NULL; at++)
        warnings++;
    assert_int_equal(warnings, 1);
    assert_null(strstr(r.out, "precision"));
    check(r, 0);
    assert_int_equal(event_files("eval_test"), before + 1);
    for (int known = 0; known < 2; known++) { /* the end of the run, which is not reached */
        r = evaluate(known ? "--watch run.steps=1000 eval.max_runs=1"
                           : "--watch run.steps=0 eval.max_runs=1");
        assert_contains(r.out, "step 6, 20 pictures");
        check(r, 0);
    }
    check(evaluate("--watch --json"), 2, "--watch");
}

/* A file that cannot be written gives one warning, and the result is still printed. */
static void without_the_folder(void **state)
{
    (void)state;
    pm_remove_tree(in("run/eval_test"));
    put_text(in("run/eval_test"), "in the way\n");
    struct result r = evaluate("");
    assert_non_null(strstr(r.err, "this evaluation is not stored"));
    assert_non_null(strstr(r.out, "accuracy"));
    check(r, 0);
    assert_int_equal(unlink(in("run/eval_test")), 0);
}

static void put_picture(const char *name)
{
    uint8_t pixels[12 * 12] = { 77 }, *png;
    const struct pm_image8 im = { 12, 12, 1, pixels };
    size_t size;

    assert_int_equal(pm_image_encode_png(&im, &png, &size), 0);
    assert_int_equal(pm_file_write(in("pictures/%s", name), png, size), 0);
    pm_free(png);
}

/* predict: files that are not pictures are reported and skipped; the others are predicted. */
static void damaged_pictures(void **state)
{
    int position = 0;
    const cJSON *image;

    (void)state;
    assert_int_equal(pm_make_folders(in("pictures")), 0);
    for (int i = 0; i < 10; i++)
        put_picture((char[]){ (char)('a' + i), '.', 'p', 'n', 'g', 0 });
    put_text(in("pictures/c.png"), "no picture\n");
    put_text(in("pictures/j.png"), "");
    struct result r = run(NULL, "predict %s %s run.folder=%s --json --out %s", in("net.json"),
                          in("pictures"), in("run"), in("drawn"));
    cJSON *json = json_of(&r);
    assert_true(number_of(json, "damaged") == 2);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "images")), 10);
    cJSON_ArrayForEach(image, cJSON_GetObjectItem(json, "images"))
    {
        const bool bad = position == 2 || position == 9;
        assert_int_equal(cJSON_HasObjectItem(image, "error"), bad);
        assert_int_equal(cJSON_HasObjectItem(image, "top"), !bad);
        position++;
    }
    assert_contains(r.err, "pictures/c.png");
    assert_true(pm_file_exists(in("drawn/b.png")) && !pm_file_exists(in("drawn/c.png")));
    cJSON_Delete(json);
    check(r, 3, "2 of 10 files could not be read");
    r = run(NULL, "predict %s %s run.folder=%s", in("net.json"), in("pictures/c.png"), in("run"));
    check(r, 3, "1 of 1 files");
}

/* Drawings keep the folders of the pictures. Only equal names in one folder get a number. */
static void folders_of_drawings(void **state)
{
    static const char *const names[] = { "x.png", "ants/x.png", "ants/y.png", "bees/old/x.png" };
    char path[64];

    (void)state;
    assert_int_equal(pm_make_folders(in("nested/ants")), 0);
    assert_int_equal(pm_make_folders(in("nested/bees/old")), 0);
    for (size_t i = 0; i < PM_COUNT(names); i++) {
        snprintf(path, sizeof path, "../nested/%s", names[i]);
        put_picture(path);
    }
    check(run(NULL, "predict %s %s/ run.folder=%s --out %s", in("net.json"), in("nested"),
              in("run"), in("all")), 0);
    for (size_t i = 0; i < PM_COUNT(names); i++)
        assert_true(pm_file_exists(in("all/%s", names[i])));
    /* Several folders, and a file. */
    check(run(NULL, "predict %s %s/nested/ants %s/nested/bees %s/nested/x.png run.folder=%s "
                    "--out %s", in("net.json"), in("."), in("."), in("."), in("run"),
              in("several")), 0);
    assert_true(pm_file_exists(in("several/ants/x.png")));
    assert_true(pm_file_exists(in("several/bees/old/x.png")));
    assert_true(pm_file_exists(in("several/x.png")));
    /* Equal names of one folder. */
    put_picture("../nested/ants/x.PNG");
    check(run(NULL, "predict %s %s run.folder=%s --out %s", in("net.json"), in("nested/ants"),
              in("run"), in("equal")), 0);
    assert_true(pm_file_exists(in("equal/x.png")) && pm_file_exists(in("equal/1-x.png")));
    /* The drawing of nested/ants/x.png would replace the picture. */
    check(run(NULL, "predict %s %s/nested/ants %s/nested/bees run.folder=%s --out %s",
              in("net.json"), in("."), in("."), in("run"), in("nested")), 2,
          "which could be overwritten");
}

static int make(void **state)
{
    (void)state;
    if (make_world(true) < 0)
        return -1;
    check(run(NULL, "train %s run.folder=%s run.steps=6 run.save_every_steps=3 eval.every_steps=3",
              in("net.json"), in("run")), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(per_class_in_json), cmocka_unit_test(text_for_people),
        cmocka_unit_test(files_by_split),    cmocka_unit_test(other_checkpoints),
        cmocka_unit_test(without_step),
        cmocka_unit_test(watching),          cmocka_unit_test(without_the_folder),
        cmocka_unit_test(damaged_pictures),  cmocka_unit_test(folders_of_drawings),
        cmocka_unit_test(checkpoint_of_another_net),
    };
    return cmocka_run_group_tests(tests, make, drop_world);
}
