/* The first checkpoint of a run comes after 60 seconds, although run.save_every_secs is longer. Not
 * by time if that is 0. */
#include "e2e/program.h"

/* Starts training without an end in FOLDER/NAME. */
static pid_t endless(const char *name, const char *more)
{
    char arguments[2048];

    snprintf(arguments, sizeof arguments,
             "train %s run.folder=%s run.steps=0 run.log_every_steps=100000 %s", in("net.json"),
             in("%s", name), more);
    return start(NULL, in("%s.run", name), arguments);
}

static void end(pid_t pid, const char *name)
{
    struct result r;

    kill(pid, SIGKILL);
    r = finish(pid, in("%s.run", name));
    assert_int_equal(r.code, -SIGKILL);
    drop(&r);
}

static void after_60_seconds(void **state)
{
    pid_t by_default = endless("timed", ""), never = endless("never", "run.save_every_secs=0");
    const double begun = pm_seconds();

    (void)state;
    while (!pm_file_exists(in("timed/latest")) && pm_seconds() - begun < 300)
        usleep(100000);
    const double seconds = pm_seconds() - begun;

    end(by_default, "timed");
    if (!(seconds >= 60 && seconds < 120))
        fail_msg("the first checkpoint came after %g seconds", seconds);
    assert_true(pm_file_exists(in("never/metrics.jsonl")));
    assert_false(pm_file_exists(in("never/latest")));
    end(never, "never");
    check(train_net(NULL, "timed", "run.steps=1"), 0, "resuming", "done at step");
}

static int set_up(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_60_seconds),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
