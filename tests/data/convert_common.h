/* Shared by the tests of converters: small pictures to convert, reading of records, and runs of
 * the program. */
#ifndef PUMICE_TESTS_CONVERT_COMMON_H
#define PUMICE_TESTS_CONVERT_COMMON_H

#include "data_common.h"

#include <sys/wait.h>

/* Example i of a split; the caller destroys it. */
static inline struct pm_example *example(struct pm_dataset *d, size_t i)
{
    struct pm_example *e = NULL;
    uint8_t *buf = NULL;
    size_t capacity = 0, size = 0;

    assert_int_equal(pm_dataset_read(d, i, &buf, &capacity, &size), PM_OK);
    assert_int_equal(pm_example_parse(buf, size, "record", &e), PM_OK);
    pm_free(buf);
    return e;
}

static inline int64_t integer(const struct pm_example *e, const char *key)
{
    int64_t v = -1;
    assert_int_equal(pm_example_int(e, key, &v), 1);
    return v;
}

static inline struct pm_image8 image(const struct pm_example *e, const char *key, int channels)
{
    struct pm_image8 im;
    const uint8_t *data = NULL;
    size_t size = 0;

    assert_int_equal(pm_example_bytes(e, key, &data, &size), 1);
    assert_int_equal(pm_image_decode(data, size, channels, 0, key, &im), PM_OK);
    return im;
}

static inline void assert_text(const struct pm_example *e, const char *key, const char *want)
{
    const uint8_t *data = NULL;
    size_t size = 0;
    assert_int_equal(pm_example_bytes(e, key, &data, &size), 1);
    assert_int_equal(size, strlen(want));
    assert_memory_equal(data, want, size);
}

static inline struct pm_dataset *opened(const char *folder, const char *split, size_t count)
{
    struct pm_dataset *d = NULL;
    if (pm_dataset_open(folder, split, &d) < 0)
        fail_msg("%s", pm_error_text());
    assert_int_equal(pm_dataset_get_info(d)->count, count);
    return d;
}

/* The scratch folder must hold only the given names, and so no temporary file. */
static inline void assert_only(size_t count)
{
    struct pm_arena *a = pm_arena_create();
    char **names = NULL;
    size_t n = 0;
    assert_int_equal(pm_list_folder(a, scratch, &names, &n), PM_OK);
    for (size_t i = 0; i < n; i++)
        assert_null(strstr(names[i], ".tmp"));
    assert_int_equal(n, count);
    pm_arena_destroy(&a);
}

/* Writes a picture of one colour, by which it can be recognised. */
static inline void put_png(const char *path, int value, int height)
{
    struct pm_image8 im = { height, 6, 3, pm_malloc((size_t)height * 18) };
    uint8_t *png = NULL;
    size_t size = 0;

    memset(im.pixels, value, (size_t)height * 18);
    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    assert_int_equal(pm_file_write(path, png, size), PM_OK);
    pm_free(png);
    pm_image_free(&im);
}

static inline void make_class(const char *folder, int first, int count)
{
    char name[400];

    assert_int_equal(pm_make_folders(in_scratch(folder)), PM_OK);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s/a [%d] b%s", folder, first + i, i % 2 ? ".PNG" : ".png");
        put_png(in_scratch(name), first + i, 5 + i % 3);
    }
}

static inline void put_text(const char *name, const char *text)
{
    assert_int_equal(pm_file_write(in_scratch(name), text, strlen(text)), PM_OK);
}

/* Writes a small JPEG of one grey, by which it can be recognised. */
static inline void put_jpeg(const char *path, int value)
{
    struct pm_image8 im = { 8, 8, 3, pm_malloc(192) };
    uint8_t *jpeg = NULL;
    size_t size = 0;

    memset(im.pixels, value, 192);
    assert_int_equal(pm_image_encode_jpeg(&im, 100, &jpeg, &size), PM_OK);
    assert_int_equal(pm_file_write(path, jpeg, size), PM_OK);
    pm_free(jpeg);
    pm_image_free(&im);
}

static inline int grey_of(const struct pm_example *e)
{
    struct pm_image8 im = image(e, "image/encoded", 1);
    const int v = im.pixels[0];
    pm_image_free(&im);
    return v;
}

static inline size_t values(const struct pm_example *e, const char *key, float *out, size_t most)
{
    const float *v = NULL;
    size_t n = 0;
    assert_int_equal(pm_example_floats(e, key, &v, &n), 1);
    assert_true(n <= most);
    if (n)
        memcpy(out, v, n * sizeof *out);
    return n;
}

/* The path of the program. Without it the running test is skipped with a line. */
static inline const char *need_program(void)
{
    const char *program = getenv("PUMICE_PROGRAM");

    if (!program) {
        print_message("skipped: PUMICE_PROGRAM is not set (run by ctest)\n");
        skip();
    }
    return program;
}

/* Runs the program with arguments in shell syntax in the scratch folder. It must end with this
 * code. Returns its output and errors, in static storage. */
static inline const char *output_of(const char *arguments, int code)
{
    static char text[1 << 16];
    char line[1200];

    snprintf(line, sizeof line, "cd '%s' && '%s' %s 2>&1", scratch, need_program(), arguments);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    const int status = pclose(f);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
        fail_msg("%s ended with %d, not %d: %s", arguments,
                 WIFEXITED(status) ? WEXITSTATUS(status) : -1, code, text);
    return text;
}

static inline void assert_says(const char *text, const char *wanted)
{
    if (!strstr(text, wanted))
        fail_msg("\"%s\" is not in: %s", wanted, text);
}

#endif
