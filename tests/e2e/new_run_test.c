/* pumice new: the config that it writes is valid, and its commands run as printed. */
#include "program.h"

#include "checkpoints/published.h"
#include "jobs/new_config.h"

#include <pumice/config.h>
#include <pumice/data.h>

#define PHOTOS "Bl\xc3\xbctenfotos & 'mehr'"
#define QUOTED "'Bl\xc3\xbctenfotos & '\\''mehr'\\'''"

static void put_photo(const char *path, int seed, int side)
{
    struct pm_image8 im = { side, side, 3, pm_malloc((size_t)(side * side * 3)) };
    uint8_t *data = NULL;
    size_t size = 0;

    for (int i = 0; i < side * side * 3; i++)
        im.pixels[i] = (uint8_t)(64 + (i * (seed % 7 + 1) + seed * 37) % 150);
    assert_int_equal(pm_image_encode_jpeg(&im, 90, &data, &size), PM_OK);
    assert_int_equal(pm_file_write(path, data, size), PM_OK);
    pm_free(data);
    pm_image_free(&im);
}

static void put_photos(const char *place, int count, int side)
{
    assert_int_equal(pm_make_folders(in("%s", place)), PM_OK);
    for (int i = 0; i < count; i++)
        put_photo(in("%s/p %d.jpg", place, i), i, side);
}

static void put_empty(const char *path)
{
    char *parent = pm_strdup(path);

    *strrchr(parent, '/') = '\0';
    assert_int_equal(pm_make_folders(parent), PM_OK);
    pm_free(parent);
    put_text(path, "x");
}

static cJSON *new_json(const char *arguments)
{
    struct result r = run(NULL, "new %s --json", arguments);
    cJSON *o = r.code == 0 ? cJSON_Parse(r.out) : NULL;

    if (!o)
        fail_msg("%s: %d %s", arguments, r.code, r.err);
    drop(&r);
    return o;
}

/* Runs a printed command with overrides that shorten it. */
static void run_command(const char *command, const char *more)
{
    assert_int_equal(strncmp(command, "pumice ", 7), 0);
    check(run(NULL, "%s %s", command + 7, more), 0);
}

/* A folder whose name needs quotes, with a huge picture: every printed command works. */
static void photos(void **state)
{
    cJSON *o, *list;
    char *text;
    struct result r;

    (void)state;
    put_photos(PHOTOS "/rot/a", 9, 32);
    put_photos(PHOTOS "/wei\xc3\x9f", 9, 32);
    put_photo(in(PHOTOS "/rot/gro\xc3\x9f.jpg"), 3, 1500);
    assert_int_equal(symlink(".", in(PHOTOS "/rot/a/again")), 0);
    assert_int_equal(symlink("..", in(PHOTOS "/rot/a/above")), 0);
    r = run(NULL, "new " QUOTED);
    assert_contains(r.out, "19 pictures of 2 classes (rot 10, wei\xc3\x9f 9), usually 32 pixels, "
                    "at most 1500\n");
    assert_contains(r.out, "  pumice train 'Bl\xc3\xbctenfotos & '\\''mehr'\\''.json'");
    check(r, 0);
    text = get_text(in(PHOTOS ".json"));
    assert_contains(text, "\"convert\": { \"validation\": 0.3, \"max_side\": 576 }");
    assert_contains(text, "\"mobilenet_v1_025\"");
    pm_free(text);
    r = run(NULL, "config check " QUOTED ".json");
    assert_contains(r.out, "nothing wrong");
    check(r, 0);
    check(run(NULL, "new " QUOTED), 2, "the file exists already: name another one with --out");
    o = new_json(QUOTED " --force");
    list = cJSON_GetObjectItem(o, "commands");
    assert_int_equal(cJSON_GetArraySize(list), 4);
    assert_string_equal(cJSON_GetObjectItem(o, "task")->valuestring, "classification");
    run_command(cJSON_GetArrayItem(list, 0)->valuestring,
                "input.size=32 run.epochs=2 eval.every_steps=1");
    run_command(cJSON_GetArrayItem(list, 1)->valuestring, "input.size=32");
    run_command(cJSON_GetArrayItem(list, 2)->valuestring, "input.size=32");
    run_command(cJSON_GetArrayItem(list, 3)->valuestring, "");
    assert_true(pm_file_exists(in(PHOTOS ".onnx")));
    assert_true(pm_is_folder(in(PHOTOS ".pumice")));
    cJSON_Delete(o);
}

/* What has a picture's name, but is none: the size is unknown, and a pipe does not block. */
static void no_pictures(void **state)
{
    (void)state;
    put_photos("odd/a", 4, 32);
    put_photos("odd/b", 4, 32);
    put_text(in("odd/a/text.jpg"), "x");
    put_text(in("odd/a/empty.jpg"), "");
    assert_int_equal(mkfifo(in("odd/b/pipe.jpg"), 0600), 0);
    put_photo(in("odd/beside.jpg"), 1, 32);
    struct result r = run(NULL, "new odd");
    assert_contains(r.out, "11 pictures of 2 classes (a 6, b 5), usually 32 pixels");
    assert_contains(r.out, "; 1 picture is beside the class folders and left out\n");
    assert_contains(r.out, "add init.checkpoint=imagenet to the first train");
    check(r, 0);
}

/* Data folders that are converted already, for each task: the config fits the data. */
static void records(void **state)
{
    static const char *const tasks[] = { "classification", "segmentation", "detection" };
    static const char *const sizes[] = { "32", "65", "128" }; /* less work than those written */

    (void)state;
    check(run(NULL, "dataset make shapes %s size=64 train=20 validation=2 test=0", in("shapes")),
          0);
    for (size_t i = 0; i < PM_COUNT(tasks); i++) {
        char arguments[300];
        cJSON *o, *list;
        struct result r;

        snprintf(arguments, sizeof arguments, "shapes --task %s --out %s.json", tasks[i], tasks[i]);
        o = new_json(arguments);
        list = cJSON_GetObjectItem(o, "commands");
        assert_string_equal(cJSON_GetObjectItem(o, "task")->valuestring, tasks[i]);
        r = run(NULL, "config check %s.json", tasks[i]);
        assert_contains(r.out, "nothing wrong");
        check(r, 0);
        snprintf(arguments, sizeof arguments, "run.epochs=null run.steps=1 run.batch_size=2 "
                 "eval.every_steps=1 schedule.warmup_steps=0 run.folder=short input.size=%s",
                 sizes[i]);
        run_command(cJSON_GetArrayItem(list, 0)->valuestring, arguments);
        pm_remove_tree(in("short"));
        cJSON_Delete(o);
    }
}

/* The layouts of the converters: the first command converts. */
static void layouts(void **state)
{
    cJSON *o;

    (void)state;
    put_empty(in("boxes [1]/JPEGImages/a.jpg"));
    put_empty(in("boxes [1]/Annotations/a.xml"));
    put_empty(in("boxes [1]/SegmentationClass/a.png"));
    o = new_json("'boxes [1]'");
    assert_string_equal(cJSON_GetObjectItem(o, "task")->valuestring, "detection");
    assert_string_equal(cJSON_GetArrayItem(cJSON_GetObjectItem(o, "commands"), 0)->valuestring,
                        "pumice dataset convert voc 'boxes [1]' 'data/boxes [1]'");
    cJSON_Delete(o);
    o = new_json("'boxes [1]' --task segmentation --out s.json");
    assert_string_equal(cJSON_GetArrayItem(cJSON_GetObjectItem(o, "commands"), 0)->valuestring,
                        "pumice dataset convert voc_segmentation 'boxes [1]' 'data/boxes [1]'");
    cJSON_Delete(o);
    check(run(NULL, "config check s.json"), 0);
    /* A list of files beside photos by class does not make them boxes, unless the task says so. */
    put_photos("mixed/a", 3, 16);
    put_photos("mixed/b", 3, 16);
    put_empty(in("mixed/list.csv"));
    o = new_json("mixed");
    assert_string_equal(cJSON_GetObjectItem(o, "task")->valuestring, "classification");
    cJSON_Delete(o);
    o = new_json("mixed --task detection --force");
    assert_string_equal(cJSON_GetObjectItem(o, "task")->valuestring, "detection");
    cJSON_Delete(o);
}

/* Published weights in the cache are used; otherwise the config proposes them in a comment. */
static void weights(void **state)
{
    static const char *const tasks[] = { "classification", "segmentation", "detection" };
    const char *const line = "\n  \"init\": { \"checkpoint\": \"imagenet\" },\n";

    (void)state;
    for (size_t i = 0; i < PM_COUNT(tasks); i++) {
        const struct pm_new_choice *c = pm_new_choose(tasks[i], 16, 2);
        const struct pm_published *p = pm_published_first(c->net, "tensorflow");
        char *text;
        struct result r;

        assert_non_null(p);
        check(run(NULL, "new shapes --task %s --out w.json --force", tasks[i]), 0);
        text = get_text(in("w.json"));
        assert_null(strstr(text, line));
        assert_contains(text, "\n  // \"init\": { \"checkpoint\": \"imagenet\" },\n");
        pm_free(text);
        assert_int_equal(pm_make_folders(in("cache/pumice/checkpoints/%s", p->name)), PM_OK);
        check(run(NULL, "new shapes --task %s --out w.json --force", tasks[i]), 0);
        text = get_text(in("w.json"));
        assert_contains(text, line);
        pm_free(text);
        r = run(NULL, "config check w.json");
        assert_contains(r.out, "nothing wrong");
        check(r, 0);
        pm_remove_tree(in("cache"));
    }
}

static void mistakes(void **state)
{
    (void)state;
    put_photos("flat", 2, 16);
    put_photos("one/only", 2, 16);
    put_photos("gap/a", 2, 16);
    assert_int_equal(pm_make_folders(in("gap/b")), PM_OK);
    assert_int_equal(pm_make_folders(in("nothing")), PM_OK);
    check(run(NULL, "new"), 2, "new needs one folder");
    put_text(in("note.txt"), "x");
    check(run(NULL, "new note.txt"), 3, "note.txt: this is a file; name the folder");
    check(run(NULL, "new Meine Fotos"), 2, "but has 'Meine' and 'Fotos': quote a name with spaces");
    check(run(NULL, "new flat run.steps=3"), 2, "new needs one folder");
    check(run(NULL, "new missing"), 3, "missing: no such folder");
    check(run(NULL, "new flat"), 3, "put the pictures of each class into a subfolder");
    check(run(NULL, "new one"), 3, "a classifier needs at least two");
    check(run(NULL, "new gap"), 3, "class b has no pictures");
    check(run(NULL, "new nothing"), 3, "no pictures are found in it");
    check(run(NULL, "new gap --task detection"), 3, "no annotations for task detection",
          "voc, coco");
    check(run(NULL, "new gap --task detektion"), 2, "the tasks are classification");
    check(run(NULL, "new mixed --out nowhere/x.json"), 1, "nowhere/x.json");
    assert_false(pm_file_exists(in("flat.json")));
}

/* Every number of pictures and classes has a row, and more of them never give a smaller net. */
static void choices(void **state)
{
    static const char *const tasks[] = { "classification", "segmentation", "detection" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(tasks); i++)
        for (size_t pictures = 1; pictures <= 100000000; pictures *= 10)
            for (int classes = 1; classes <= 100000; classes *= 10) {
                const struct pm_new_choice *c = pm_new_choose(tasks[i], pictures, classes);
                const struct pm_new_choice *more = pm_new_choose(tasks[i], pictures * 10, classes);

                assert_true(c && more && more >= c);
                assert_true(pm_new_choose(tasks[i], pictures, classes * 10) >= c);
            }
    assert_null(pm_new_choose("matting", 1, 1));
}

static int prepare(void **state)
{
    (void)state;
    folder = make_folder();
    setenv("XDG_CACHE_HOME", in("cache"), 1); /* no weights of the user */
    return chdir(folder);
}

static int clean(void **state)
{
    (void)state;
    drop_folder(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices),
        cmocka_unit_test(photos), cmocka_unit_test(no_pictures),
        cmocka_unit_test(records),
        cmocka_unit_test(layouts),
        cmocka_unit_test(weights),
        cmocka_unit_test(mistakes),
    };

    return cmocka_run_group_tests(tests, prepare, clean);
}
