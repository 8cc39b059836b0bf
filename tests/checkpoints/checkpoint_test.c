/* Checkpoints: saved states are restored, named checkpoints are opened, and the newest complete
 * one is found when others are damaged. Also retention, the best checkpoint, and removal of
 * temporary files. */
#include "checkpoint_setup.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <time.h>

/* Changes the last byte of a file. */
static void damage(const char *name)
{
    char *text;
    size_t size;

    assert_int_equal(pm_file_read(file_of(name), &text, &size), 0);
    text[size - 1] ^= 1;
    assert_int_equal(pm_file_write(file_of(name), text, size), 0);
    pm_free(text);
}

static void saves_and_opens(void **state)
{
    struct pm_checkpoint *c = NULL;
    struct pm_shape shape;
    float v[SIZE];
    char *text, latest[256];

    (void)state;
    assert_int_equal(pm_checkpoint_open_newest(run, &c), 0);
    assert_null(c);
    assert_int_equal(pm_checkpoint_newest_step(run), -1);
    assert_int_equal(pm_checkpoint_open(run, NULL, "x.json: eval.checkpoint", &c), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "x.json: eval.checkpoint"));
    assert_int_equal(save(0, 5), 0);
    assert_int_equal(save(123, 5), 0);
    assert_true(there("step-000123.safetensors") && there("step-000123.json"));
    assert_newest(123);
    assert_int_equal(pm_checkpoint_newest_step(run), 123);
    snprintf(latest, sizeof latest, "%s/latest", run);
    assert_int_equal(pm_file_read(latest, &text, NULL), 0);
    assert_string_equal(text, "checkpoints/step-000123.safetensors\n");
    pm_free(text);

    assert_int_equal(pm_checkpoint_open(run, "latest", "w", &c), 0);
    assert_true(pm_checkpoint_has(c, "net/w", &shape) && shape.rank == 2 && shape.dim[1] == 5);
    assert_true(pm_checkpoint_has(c, "power", &shape) && shape.rank == 0);
    assert_false(pm_checkpoint_has(c, "net/v", NULL));
    assert_int_equal(pm_checkpoint_read(c, "net/w", PM_SHAPE2(5, 3), v), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "3x5"));
    assert_non_null(strstr(pm_error_text(), "5x3"));
    assert_int_equal(pm_checkpoint_read(c, "net/ww", PM_SHAPE2(3, 5), v), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "'net/w'"));
    pm_checkpoint_close(&c);
}

static void opens_what_a_user_names(void **state)
{
    static const char *const names[] = { NULL, "", "latest", "20" };
    struct pm_checkpoint *c = NULL;
    char folder[600];

    (void)state;
    save(10, 5), save(20, 5);
    for (size_t i = 0; i < PM_COUNT(names); i++) {
        assert_int_equal(pm_checkpoint_open(run, names[i], "w", &c), 0);
        assert_holds(c, 20);
        pm_checkpoint_close(&c);
    }
    assert_int_equal(pm_checkpoint_open(run, "10", "w", &c), 0);
    assert_holds(c, 10);
    pm_checkpoint_close(&c);
    assert_int_equal(pm_checkpoint_open(NULL, run, "w", &c), 0);
    assert_holds(c, 20);
    pm_checkpoint_close(&c);
    snprintf(folder, sizeof folder, "%s/checkpoints", run);
    assert_int_equal(pm_checkpoint_open("elsewhere", folder, "w", &c), 0);
    assert_holds(c, 20);
    pm_checkpoint_close(&c);
    assert_int_equal(pm_checkpoint_open(NULL, file_of("step-000010.safetensors"), "w", &c), 0);
    assert_holds(c, 10);
    pm_checkpoint_close(&c);

    assert_int_equal(pm_checkpoint_open(run, "15", "w", &c), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "10, 20"));
    assert_int_equal(pm_checkpoint_open(run, "best", "w", &c), PM_EDATA);
    assert_int_equal(pm_checkpoint_open(NULL, "nowhere", "w", &c), PM_EDATA);
    damage("step-000010.safetensors");
    assert_int_equal(pm_checkpoint_open(run, "10", "w", &c), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "sha256"));
    assert_int_equal(pm_checkpoint_open(NULL, file_of("step-000010.safetensors"), "w", &c),
                     PM_EDATA);
    assert_null(c);
}

static void foreign_file_has_no_state(void **state)
{
    float v = 2;
    struct pm_file_tensor t = { .name = "v", .type = PM_DTYPE_F32, .data = &v };
    struct pm_checkpoint *c = NULL;
    char path[256];

    (void)state;
    snprintf(path, sizeof path, "%s/foreign.safetensors", base);
    assert_int_equal(pm_safetensors_write(path, &t, 1, NULL, NULL), 0);
    assert_int_equal(pm_checkpoint_open(NULL, path, "w", &c), 0);
    assert_int_equal(c->step, 0);
    assert_null(c->state);
    pm_checkpoint_close(&c);
}

/* A config lies beside the tensors; a record is read, also a damaged one. */
static void json_beside_is_no_record(void **state)
{
    static const struct { const char *text; int err; } cases[] = {
        { "{\"task\": \"classification\", \"model\": {\"name\": \"lenet\"}}", PM_OK },
        { "{\"task\": // with a comment\n \"classification\"}", PM_OK },
        { "[1, 2]", PM_OK },
        { "{\"step\": 3, \"file\": \"own.safetensors\", \"sha256\": \"00\"}", PM_EDATA },
    };
    float v = 2;
    struct pm_file_tensor t = { .name = "v", .type = PM_DTYPE_F32, .data = &v };
    struct pm_checkpoint *c = NULL;
    char path[256], json[256];

    (void)state;
    snprintf(path, sizeof path, "%s/own.safetensors", base);
    snprintf(json, sizeof json, "%s/own.json", base);
    assert_int_equal(pm_safetensors_write(path, &t, 1, NULL, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(pm_file_write(json, cases[i].text, strlen(cases[i].text)), PM_OK);
        assert_int_equal(pm_checkpoint_open(NULL, path, "w", &c), cases[i].err);
        pm_checkpoint_close(&c);
    }
}

static void newest_stay(void **state)
{
    (void)state;
    for (uint64_t step = 1; step <= 9; step++)
        assert_int_equal(save(step, 3), 0);
    assert_false(there("step-000006.json") || there("step-000006.safetensors"));
    assert_true(there("step-000007.json") && there("step-000008.json") &&
                there("step-000009.json"));
    assert_int_equal(save(10, 0), 0);
    assert_true(there("step-000007.json"));
    /* The order follows the step numbers, not the names. */
    assert_int_equal(save(999999, 0), 0);
    assert_int_equal(save(1000000, 2), 0);
    assert_true(there("step-999999.json") && there("step-1000000.json"));
    assert_false(there("step-000010.json"));
    assert_newest(1000000);
}

static void set_hours_ago(uint64_t step, double hours)
{
    char name[64];
    struct timespec now, times[2];

    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec -= (time_t)(hours * 3600);
    times[0] = times[1] = now;
    snprintf(name, sizeof name, "step-%06d.json", (int)step);
    assert_int_equal(utimensat(AT_FDCWD, file_of(name), times, 0), 0);
}

/* One checkpoint an hour by simulated time; every third one is kept (they are 1.01 hours apart,
 * because times are stored in seconds). */
static void hours_stay(void **state)
{
    struct pm_keep keep = { .newest = 1, .every_hours = 3 };

    (void)state;
    for (uint64_t hour = 1; hour <= 12; hour++) {
        assert_int_equal(save_in(run, hour, keep), 0);
        set_hours_ago(hour, 100 - 1.01 * (double)hour);
        if (hour == 1) { /* the first one began the window: write its simulated time to keep.json */
            unlink(file_of("keep.json"));
            assert_int_equal(save_in(run, 1, (struct pm_keep){ .newest = 1 }), 0);
            set_hours_ago(1, 98.99);
        }
    }
    for (uint64_t hour = 1; hour <= 12; hour++) {
        char name[64];
        snprintf(name, sizeof name, "step-%06d.json", (int)hour);
        /* 1 starts the window: 4, 7 and 10 are 3, 6 and 9 hours after it; 12 is the newest. */
        assert_int_equal(there(name), hour == 4 || hour == 7 || hour == 10 || hour == 12);
    }
}

static void best_stays(void **state)
{
    struct pm_checkpoint *c = NULL;
    bool is;

    (void)state;
    save(1, 1);
    assert_int_equal(pm_checkpoint_keep_best(run, 1, "accuracy", 0.5, true, &is), 0);
    assert_true(is);
    save(2, 1);
    assert_int_equal(pm_checkpoint_keep_best(run, 2, "accuracy", 0.7, true, &is), 0);
    assert_true(is);
    assert_false(there("best-000001.json") || there("best-000001.safetensors"));
    for (uint64_t step = 3; step < 6; step++) {
        save(step, 1);
        double value = step == 4 ? NAN : 0.7;
        assert_int_equal(pm_checkpoint_keep_best(run, step, "accuracy", value, true, &is), 0);
        assert_false(is);
    }
    assert_false(there("step-000002.json"));
    assert_int_equal(pm_checkpoint_open(run, "best", "w", &c), 0);
    assert_holds(c, 2);
    pm_checkpoint_close(&c);
    assert_newest(5);
    /* Another metric; lower values of it are better. */
    assert_int_equal(pm_checkpoint_keep_best(run, 5, "loss", 3, false, &is), 0);
    assert_true(is);
    save(6, 1);
    assert_int_equal(pm_checkpoint_keep_best(run, 6, "loss", 2.9, false, &is), 0);
    assert_true(is);
    assert_int_equal(pm_checkpoint_open(run, "best", "w", &c), 0);
    assert_holds(c, 6);
    pm_checkpoint_close(&c);
    assert_int_equal(pm_checkpoint_clean(run), 0);
    assert_true(there("best-000006.safetensors"));
    assert_int_equal(pm_checkpoint_keep_best(run, 99, "loss", 1, false, NULL), PM_EDATA);
}

/* A metric without a value, such as a precision without any annotation, still gives a best
 * checkpoint. */
static void best_of_nothing(void **state)
{
    struct pm_checkpoint *c = NULL;
    bool is;

    (void)state;
    save(1, 1);
    assert_int_equal(pm_checkpoint_keep_best(run, 1, "map", NAN, true, &is), 0);
    assert_true(is);
    save(2, 1);
    assert_int_equal(pm_checkpoint_keep_best(run, 2, "map", NAN, true, &is), 0);
    assert_false(is);
    assert_int_equal(pm_checkpoint_open(run, "best", "w", &c), 0);
    assert_holds(c, 1);
    pm_checkpoint_close(&c);
    save(3, 1);
    assert_int_equal(pm_checkpoint_keep_best(run, 3, "map", 0, true, &is), 0);
    assert_true(is);
    assert_int_equal(pm_checkpoint_open(run, "best", "w", &c), 0);
    assert_holds(c, 3);
    pm_checkpoint_close(&c);
}

static void damaged_newest_is_passed_over(void **state)
{
    struct pm_checkpoint *c = NULL;

    (void)state;
    save(1, 5), save(2, 5), save(3, 5), save(4, 5);
    damage("step-000004.safetensors");
    assert_newest(3);
    assert_int_equal(truncate(file_of("step-000003.safetensors"), 100), 0);
    assert_newest(2);
    assert_int_equal(truncate(file_of("step-000002.json"), 20), 0);
    assert_newest(1);
    unlink(file_of("step-000001.safetensors"));
    assert_int_equal(pm_checkpoint_open_newest(run, &c), PM_EDATA);
    assert_null(c);
    /* Training resumes from before the damaged ones, so the new checkpoint counts as the newest. */
    assert_int_equal(save(2, 1), 0);
    assert_newest(2);
    assert_false(there("step-000003.json") || there("step-000004.json"));
}

static void same_step_again(void **state)
{
    float v = 1;
    struct pm_state_tensor t = { "v", { 0 }, &v };
    struct pm_keep keep = { .newest = 2 };

    (void)state;
    save(5, 2);
    assert_int_equal(pm_checkpoint_save(run, 5, &t, 1, "{\"step\": 7}", &keep), 0);
    struct pm_checkpoint *c = NULL;
    assert_int_equal(pm_checkpoint_open_newest(run, &c), 0);
    assert_int_equal(c->step, 5);
    assert_true(pm_checkpoint_has(c, "v", NULL));
    pm_checkpoint_close(&c);
    assert_false(there("step-000005.safetensors.before"));
    assert_int_equal(pm_checkpoint_save(run, 6, &t, 1, "not json", &keep), PM_EFAIL);
}

static void leftovers_are_removed(void **state)
{
    (void)state;
    save(1, 5);
    assert_int_equal(pm_file_write(file_of("step-000002.safetensors"), "x", 1), 0);
    assert_int_equal(pm_file_write(file_of("step-000003.json.tmp-77-abc"), "x", 1), 0);
    assert_int_equal(pm_file_write(file_of("notes.txt"), "mine", 4), 0);
    assert_newest(1);
    assert_true(there("step-000002.safetensors")); /* a search removes nothing */
    assert_int_equal(pm_checkpoint_clean(run), 0);
    assert_false(there("step-000002.safetensors") || there("step-000003.json.tmp-77-abc"));
    assert_true(there("notes.txt") && there("step-000001.safetensors"));
    assert_int_equal(pm_checkpoint_keep_best(run, 1, "accuracy", 0.5, true, NULL), 0);
    assert_int_equal(pm_file_write(file_of("best-000002.json"), "{}", 2), 0);
    assert_int_equal(pm_file_write(file_of("best-000002.safetensors"), "x", 1), 0);
    assert_int_equal(pm_checkpoint_clean(run), 0);
    assert_false(there("best-000002.json") || there("best-000002.safetensors"));
    assert_true(there("best-000001.json") && there("best-000001.safetensors"));
}

static bool in_run(const char *name)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "%s/%s", run, name);
    const bool found = pm_file_exists(s.text);
    pm_str_free(&s);
    return found;
}

static void put_in_run(const char *name)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "%s/%s", run, name);
    assert_int_equal(pm_file_write(s.text, "x", 1), 0);
    pm_str_free(&s);
}

/* Temporaries beside the checkpoints: those of training, and those of an evaluation that died. */
static void leftovers_of_the_run(void **state)
{
    /* Larger than any process number. */
    static const char *const left[] = { "run.json.tmp-77-abc", "latest.tmp-77-abc",
                                        "eval/per_class.csv.tmp-77-abc",
                                        "evaluation.json.tmp-1999999999-abc",
                                        "report.html.tmp-1999999999-abc",
                                        "eval_test/per_class.csv.tmp-1999999999-abc",
                                        "eval_a_b-00001/per_class.csv.tmp-1999999999-abc" };
    static const char *const folders[] = { "eval", "eval_test", "eval_a_b-00001" };
    struct pm_str folder = { 0 };
    char alive[2][64];

    (void)state;
    save(1, 5);
    for (size_t i = 0; i < PM_COUNT(folders); i++) {
        pm_str_add(&folder, "%s/%s", run, folders[i]);
        assert_int_equal(pm_make_folders(folder.text), 0);
        pm_str_free(&folder);
    }
    for (size_t i = 0; i < PM_COUNT(left); i++)
        put_in_run(left[i]);
    snprintf(alive[0], 64, "evaluation.json.tmp-%ld-abc", (long)getpid());
    snprintf(alive[1], 64, "eval_test/per_class.csv.tmp-%ld-abc", (long)getpid());
    put_in_run(alive[0]);
    put_in_run(alive[1]);
    put_in_run("notes.tmp-77-abc");
    put_in_run("eval_test/events.tmp-1999999999-abc");
    assert_int_equal(pm_checkpoint_clean(run), 0);
    for (size_t i = 0; i < PM_COUNT(left); i++)
        assert_false(in_run(left[i]));
    assert_true(in_run(alive[0]) && in_run(alive[1]) && in_run("notes.tmp-77-abc"));
    assert_true(in_run("eval_test/events.tmp-1999999999-abc")); /* not a name that Pumice uses */
    assert_true(there("step-000001.safetensors"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(saves_and_opens),       TEST(opens_what_a_user_names),
        TEST(foreign_file_has_no_state), TEST(json_beside_is_no_record), TEST(newest_stay),
        TEST(hours_stay),            TEST(best_stays),
        TEST(best_of_nothing),
        TEST(damaged_newest_is_passed_over), TEST(same_step_again),
        TEST(leftovers_are_removed), TEST(leftovers_of_the_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
