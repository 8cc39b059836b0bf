/* Running conversions: threads, signals, the command line. */
#include <signal.h>

#include "convert_common.h"

static void threads(void **state)
{
    char src[300], dst[2][300];

    (void)state;
    scratch_make();
    snprintf(src, sizeof src, "%s/raw", scratch);
    make_class("raw/a", 0, 150);
    make_class("raw/b", 0, 40);
    put_text("raw/b/broken.png", "x");
    for (int k = 0; k < 2; k++) {
        snprintf(dst[k], sizeof dst[k], "%s/t%d", scratch, k);
        assert_int_equal(pm_dataset_convert("flowers", src, dst[k],
                                            k ? "num_threads=7 validation=50"
                                              : "num_threads=1 validation=50"), PM_OK);
    }
    struct pm_arena *a = pm_arena_create();
    char **names = NULL;
    size_t count = 0;
    assert_int_equal(pm_list_folder(a, dst[0], &names, &count), PM_OK);
    assert_int_equal(count, 12);
    for (size_t i = 0; i < count; i++) {
        char *text[2] = { NULL }, path[800];
        size_t size[2] = { 0 };
        for (int k = 0; k < 2; k++) {
            snprintf(path, sizeof path, "%s/%s", dst[k], names[i]);
            assert_int_equal(pm_file_read(path, &text[k], &size[k]), PM_OK);
        }
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(text[0], text[1], size[0]);
        pm_free(text[0]);
        pm_free(text[1]);
    }
    pm_arena_destroy(&a);
    scratch_remove();
}

/* A conversion stopped by a signal leaves no file. The next one removes the files of a killed
 * process. */
static void signals(void **state)
{
    const char *program = need_program();
    char dst[300];
    static const int numbers[] = { SIGINT, SIGTERM, SIGKILL };

    (void)state;
    scratch_make();
    snprintf(dst, sizeof dst, "%s/s", scratch);
    for (size_t k = 0; k < PM_COUNT(numbers); k++) {
        const pid_t child = fork();
        if (child == 0) {
            if (!freopen("/dev/null", "w", stderr))
                _exit(99);
            execl(program, program, "dataset", "make", "shapes", dst, "size=256", "train=1000000",
                  (char *)NULL);
            _exit(99);
        }
        char **names = NULL;
        size_t count = 0;
        struct pm_arena *a = pm_arena_create();
        while (count == 0) { /* until the conversion has begun */
            usleep(20000);
            assert_int_equal(pm_list_folder(a, scratch, &names, &count), PM_OK);
            if (count == 1 && k == 2)
                assert_non_null(strstr(names[0], "s.tmp-"));
        }
        pm_arena_destroy(&a);
        int status = 0;
        usleep(200000);
        assert_int_equal(kill(child, numbers[k]), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (numbers[k] == SIGKILL) {
            assert_true(WIFSIGNALED(status));
            break;
        }
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 128 + numbers[k]);
        assert_only(0);
    }
    output_of("dataset make shapes s size=16 train=4", 0);
    assert_only(1);
    scratch_remove();
}

/* Flags in the form of the original programs, values with blanks, and the help of each format. */
static void command(void **state)
{
    static const char convert[] =
        "dataset convert build_image_data 'my raw' out --train_directory 'my raw/train set' "
        "--train_shards=3 seed=1";
    char line[300];
    size_t count = 0;

    (void)state;
    need_program();
    scratch_make();
    make_class("my raw/train set/b", 1, 4);
    output_of(convert, 0);
    struct pm_dataset *d = opened(in_scratch("out"), "train", 4);
    assert_int_equal(pm_dataset_get_info(d)->files, 3);
    pm_dataset_close(&d);
    put_text("out/mine", "x");
    snprintf(line, sizeof line, "%s --force", convert);
    output_of(line, 0);
    assert_false(pm_file_exists(in_scratch("out/mine")));
    const char *text = output_of("dataset convert --help", 0);
    const struct pm_converter *const *rows = pm_converters(&count);
    for (size_t i = 0; i < count; i++) {
        char wanted[300];
        snprintf(wanted, sizeof wanted, "\n%s: %s\n", rows[i]->name, rows[i]->help);
        assert_says(text, wanted);
    }
    assert_says(text, "validation_shards=128");
    assert_says(text, "force=false");
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads),
        cmocka_unit_test(signals),
        cmocka_unit_test(command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
