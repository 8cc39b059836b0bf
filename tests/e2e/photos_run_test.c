/* data.folder as a folder of pictures by class: it is converted once, again when the pictures
 * change, and a run keeps the pictures that it began with. */
#include "e2e/same_run.h"
#include "program.h"

#include <dirent.h>
#include <sys/file.h>
#include <utime.h>

#include <pumice/data.h>

#define PHOTOS "pictures/Meine Bilder"

static void put_photo(const char *path, int seed)
{
    struct pm_image8 im = { 40, 48, 3, pm_malloc(40 * 48 * 3) };
    uint8_t *data = NULL;
    size_t size = 0;

    for (int i = 0; i < 40 * 48 * 3; i++)
        im.pixels[i] = (uint8_t)(64 + (i * (seed % 7 + 1) + seed * 37) % 150);
    assert_int_equal(pm_image_encode_jpeg(&im, 90, &data, &size), PM_OK);
    assert_int_equal(pm_file_write(path, data, size), PM_OK);
    pm_free(data);
    pm_image_free(&im);
}

static void put_photos(const char *class, int first, int count)
{
    assert_int_equal(pm_make_folders(in(PHOTOS "/%s", class)), PM_OK);
    for (int i = first; i < first + count; i++)
        put_photo(in(PHOTOS "/%s/p %d.jpg", class, i), i);
}

static void remove_photos(void)
{
    pm_remove_tree(in(PHOTOS));
    pm_remove_tree(in(PHOTOS ".pumice"));
}

/* A class whose photos are in a subfolder and whose name is not ASCII, and another class. */
static void fresh_photos(void)
{
    remove_photos();
    put_photos("\xc3\x84pfel/Garten 1", 0, 12);
    put_photos("birnen", 100, 8);
}

static void put_config(void)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "{ \"model\": { \"layers\": [ { \"layer\": \"conv2d\", \"name\": \"c\", "
               "\"filters\": 4, \"kernel\": 3, \"stride\": 4 }, { \"layer\": \"flatten\" }, "
               "{ \"layer\": \"fully_connected\", \"units\": 2 } ] },\n"
               "\"data\": { \"folder\": \"%s\", \"eval_split\": \"validation\" },\n"
               "\"input\": { \"size\": 16, \"preprocessing\": \"inception\" },\n"
               "\"run\": { \"folder\": \"%s\", \"steps\": 4, \"batch_size\": 4 },\n"
               "\"eval\": { \"every_steps\": 2, \"batch_size\": 4 },\n"
               "\"devices\": [\"cpu\"] }\n", in(PHOTOS), in("run"));
    put_text(in("photos.json"), s.text);
    pm_str_free(&s);
}

static struct result photos(const char *command, const char *more)
{
    return run(NULL, "%s %s %s", command, in("photos.json"), more);
}

/* Returns the number of finished conversions; *name: the last one's, in a static buffer. */
static int conversions(const char **name)
{
    static char last[300];
    DIR *dir = opendir(in(PHOTOS ".pumice"));
    int count = 0;

    for (struct dirent *e; dir && (e = readdir(dir));)
        if (pm_file_exists(in(PHOTOS ".pumice/%s/dataset.json", e->d_name))) {
            snprintf(last, sizeof last, "%s", e->d_name);
            count++;
        }
    if (dir)
        closedir(dir);
    if (name)
        *name = last;
    return count;
}

static void expect_silence(struct result r, const char *text)
{
    assert_null(strstr(r.err, text));
    check(r, 0);
}

/* Every command that reads the data; only those that need the records convert. */
static void once(void **state)
{
    struct result r;

    (void)state;
    fresh_photos();
    r = photos("config check", "");
    assert_contains(r.out, "nothing wrong\nnote: the pictures of ");
    check(r, 0);
    r = run(NULL, "dataset inspect '%s'", in(PHOTOS));
    assert_contains(r.out, "2 classes (birnen, \xc3\x84pfel)\n  pictures: birnen x 8, "
                    "\xc3\x84pfel x 12\n  The pictures are not converted yet");
    check(r, 0);
    check(photos("config show --plan", ""), 0);
    check(photos("config check", "run.batch_size=auto"), 0);
    check(photos("config show", "run.batch_size=auto"), 0);
    assert_int_equal(conversions(NULL), 0);
    check(photos("train", ""), 0, PHOTOS ": converting the pictures once, to ",
          "train 18 (birnen 7, \xc3\x84pfel 11), validation 2 (birnen 1, \xc3\x84pfel 1); 2 "
          "classes");
    assert_int_equal(conversions(NULL), 1);
    expect_silence(photos("train", "run.steps=6"), "convert");
    expect_silence(photos("eval", ""), "convert");
    expect_silence(photos("config check", ""), "convert");
    r = run(NULL, "dataset inspect '%s/' --check", in(PHOTOS));
    assert_contains(r.out, "labels: 0 x 7, 1 x 11");
    check(r, 0);
    r = run(NULL, "predict %s '%s'", in("photos.json"), in(PHOTOS "/birnen"));
    assert_contains(r.out, "\xc3\x84pfel ");
    check(r, 0);
    assert_int_equal(conversions(NULL), 1);
    pm_remove_tree(in("run"));
}

/* A picture is added: a new run converts again, a resumed one gives the bits of an uninterrupted
 * one, and its evaluation stays the same. */
static void changed(void **state)
{
    struct result r;

    (void)state;
    fresh_photos();
    check(photos("train", "run.steps=6"), 0);
    rename(in("run"), in("whole"));
    check(photos("train", "run.steps=2"), 0);
    put_photo(in(PHOTOS "/birnen/new.jpg"), 300);
    check(photos("train", "run.steps=6"), 0, "warning: ", "changed since ",
          "it goes on with the pictures that it began with");
    same_run_file(in("whole"), in("run"), "checkpoints/step-000006.safetensors");
    assert_int_equal(conversions(NULL), 1);
    r = photos("eval", "");
    assert_contains(r.out, "2 pictures");
    check(r, 0, "it goes on with the pictures that it began with");
    pm_remove_tree(in("run"));
    check(photos("train", ""), 0, "changed since the last conversion: converting them again",
          "train 19 (birnen 8, ", "1 former conversion stays");
    assert_int_equal(conversions(NULL), 2);
    pm_remove_tree(in("run"));
    pm_remove_tree(in("whole"));
}

/* Time and size of a file, names, and options count; other files do not. The conversion of a run
 * may be gone. */
static void digest(void **state)
{
    const char *name;

    (void)state;
    fresh_photos();
    check(photos("train", ""), 0);
    put_text(in(PHOTOS "/birnen/notes.txt"), "nothing");
    expect_silence(photos("train", "run.steps=5"), "convert");
    conversions(&name);
    assert_int_equal(utime(in(PHOTOS "/birnen/p 100.jpg"), &(struct utimbuf){ 1, 1 }), 0);
    pm_remove_tree(in(PHOTOS ".pumice/%s", name));
    check(photos("train", "run.steps=6"), 0, "converting the pictures once",
          "the conversion that it began with is gone");
    pm_remove_tree(in("run"));
    check(photos("train", "'data.convert={\"validation\":0.5,\"max_side\":20}'"), 0,
          "converting them again", "validation 10 (birnen 4, \xc3\x84pfel 6)");
    check(photos("eval", "'data.convert={\"validation\":0.5,\"max_side\":20}'"), 0);
    pm_remove_tree(in("run"));
}

/* A killed conversion leaves nothing that a later one uses or keeps. */
static void killed(void **state)
{
    (void)state;
    fresh_photos();
    for (int i = 1000; i < 1200; i++)
        put_photo(in(PHOTOS "/birnen/%d.jpg", i), i);
    for (int i = 0; i < 4; i++) {
        const pid_t pid = start(NULL, in("killed"), "train photos.json");
        struct result r;

        usleep(20000 * (useconds_t)(i + 1));
        kill(pid, SIGKILL);
        r = finish(pid, in("killed"));
        drop(&r);
    }
    check(photos("train", ""), 0);
    assert_int_equal(conversions(NULL), 1);
    assert_int_equal(temporaries(in(PHOTOS ".pumice")), 0);
    pm_remove_tree(in("run"));
}

/* The second process waits for the first one and uses its conversion. */
static void together(void **state)
{
    char arguments[2][1500];
    pid_t pid[2];
    int made = 0;

    (void)state;
    fresh_photos();
    for (int i = 0; i < 2; i++) {
        snprintf(arguments[i], sizeof arguments[i], "train %s run.folder=%s", in("photos.json"),
                 in("run%d", i));
        pid[i] = start(NULL, in("process%d", i), arguments[i]);
    }
    for (int i = 0; i < 2; i++) {
        struct result r = finish(pid[i], in("process%d", i));

        made += strstr(r.err, "validation 2 (") != NULL;
        check(r, 0);
    }
    assert_int_equal(made, 1);
    assert_int_equal(conversions(NULL), 1);
    same_run_file(in("run0"), in("run1"), "checkpoints/step-000004.safetensors");
    pm_remove_tree(in("run0"));
    pm_remove_tree(in("run1"));
}

/* Each mistake has one line with the remedy. */
static void mistakes(void **state)
{
    (void)state;
    fresh_photos();
    check(photos("train", "'data.convert={\"max_sides\":3}'"), 2, "did you mean 'max_side'");
    check(photos("train", "data.convert=3"), 2, "data.convert: an object with options");
    check(run(NULL, "train %s 'data.folder=%s'", in("photos.json"), in(PHOTOS "/birnen")), 3,
          "put the pictures of each class into a subfolder");
    assert_int_equal(pm_make_folders(in("empty/inner")), PM_OK);
    check(run(NULL, "train %s data.folder=%s", in("photos.json"), in("empty")), 3,
          "neither TFRecord files (pumice dataset convert makes them) nor pictures in subfolders");
    assert_int_equal(pm_make_folders(in(PHOTOS "/leer")), PM_OK);
    check(photos("train", ""), 3, "leer: this class has no pictures: add some");
    assert_int_equal(conversions(NULL), 0);
    assert_int_equal(temporaries(in(PHOTOS ".pumice")), 0);
}

/* Detection and segmentation need another converter, which the layout tells if it is known. */
static void other_tasks(void **state)
{
    (void)state;
    fresh_photos();
    check(photos("train", "task=detection model.layers=null model.name=ssd_mobilenet_v2 "
                 "input.preprocessing=null"), 3,
          "task detection also needs their annotations", "voc, coco, yolo");
    assert_int_equal(pm_make_folders(in("streets/images/train")), PM_OK);
    assert_int_equal(pm_make_folders(in("streets/labels/train")), PM_OK);
    check(run(NULL, "train %s task=segmentation model.layers=null model.name=deeplab_mobilenet_v2 "
              "input.preprocessing=null data.folder=%s", in("photos.json"), in("streets")), 3,
          "this folder is not converted yet: run pumice dataset convert pairs ");
}

/* A place that cannot be written names the command; a finished conversion needs no writing. */
static void read_only(void **state)
{
    const struct how nobody = { .as_nobody = true };

    (void)state;
    fresh_photos();
    chmod(folder, 0777);
    chmod(in("pictures"), 0755);
    remove(in("run.out")); /* they belong to the user of this test */
    remove(in("run.err"));
    assert_int_equal(pm_make_folders(in("open")), PM_OK);
    chmod(in("open"), 0777);
    check(run(&nobody, "train %s run.folder=%s", in("photos.json"), in("open/run")), 1,
          "cannot be written to ", "Convert them to another place with pumice dataset convert "
          "folder '", " data/photos, and set data.folder to data/photos");
    remove(in("run.out"));
    remove(in("run.err"));
    check(photos("train", ""), 0);
    remove(in("run.out"));
    remove(in("run.err"));
    check(run(&nobody, "train %s run.folder=%s", in("photos.json"), in("open/run")), 0);
    pm_remove_tree(in("run"));
}

static int prepare(void **state)
{
    (void)state;
    folder = make_folder();
    put_config();
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
        cmocka_unit_test(once),
        cmocka_unit_test(changed),
        cmocka_unit_test(digest),
        cmocka_unit_test(killed),
        cmocka_unit_test(together),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(other_tasks),
        cmocka_unit_test(read_only),
    };

    return cmocka_run_group_tests(tests, prepare, clean);
}
