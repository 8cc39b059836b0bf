/* Checkpoints when the process dies or the disk fails: complete checkpoints stay complete and
 * are found. Only one process may write to a run folder. */
#include "checkpoint_setup.h"

#include <errno.h>
#include <pumice/rng.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- dying process --------------------------------------------------------------------- */

/* Saves without a pause: new steps, and sometimes the same step twice. */
static void save_for_ever(uint64_t first)
{
    for (uint64_t step = first;; step++) {
        if (save(step, 2) < 0 || (step % 3 == 0 && save(step, 2) < 0))
            _exit(1);
        if (step % 4 == 0 && pm_checkpoint_keep_best(run, step, "m", (double)step, true, NULL) < 0)
            _exit(2);
    }
}

static void killed_at_any_moment(void **state)
{
    struct pm_rng r = pm_rng_make(11, pm_hash("kill"), 0, 0);
    uint64_t seen = 0, kills = 0;

    (void)state;
    assert_int_equal(save(1, 2), 0);
    /* On a busy machine a child does little before it is killed; then there are more and longer
     * rounds. */
    for (int round = 0; round < 60 || (seen < 20 && round < 1000); round++) {
        struct pm_checkpoint *c = NULL;
        uint64_t first = seen + 1;
        pid_t child = fork();
        int status;
        if (child == 0)
            save_for_ever(first);
        usleep((useconds_t)pm_rng_int(&r, 0, 20000 + 200 * round));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        kills++;
        assert_int_equal(pm_checkpoint_open_newest(run, &c), 0);
        assert_holds(c, c->step);
        assert_true(c->step >= seen); /* a complete checkpoint stays complete */
        assert_true((int64_t)c->step == pm_checkpoint_newest_step(run)); /* and the newest is
                                                                          * whole */
        seen = c->step;
        pm_checkpoint_close(&c);
    }
    print_message("%d kills, %d steps saved\n", (int)kills, (int)seen);
    assert_int_equal(save(seen + 1, 2), 0);
    struct pm_arena *a = pm_arena_create();
    char **names;
    size_t count;
    assert_int_equal(pm_list_folder(a, file_of(""), &names, &count), 0);
    for (size_t i = 0; i < count; i++)
        assert_null(strstr(names[i], ".tmp-"));
    assert_true(count <= 7); /* two pairs, a best pair, best.json */
    pm_arena_destroy(&a);
}

/* ---- failing disk ---------------------------------------------------------------------- */

/* Files may not grow beyond 600 bytes, so writing the tensors fails half-way. */
static void file_size_limit(void **state)
{
    struct rlimit former, small;

    (void)state;
    assert_int_equal(save(1, 5), 0);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &former);
    small = former;
    small.rlim_cur = 200;
    setrlimit(RLIMIT_FSIZE, &small);
    int err = save(2, 1);
    setrlimit(RLIMIT_FSIZE, &former);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(err, PM_EFAIL);
    assert_non_null(strstr(pm_error_text(), "step-000001 is still good"));
    assert_non_null(strstr(pm_error_text(), strerror(EFBIG)));
    assert_newest(1);
    assert_false(there("step-000002.safetensors") || there("step-000002.json"));
    assert_int_equal(save(2, 1), 0);
    assert_newest(2);
}

/* Runs in its own mount namespace: saves to a small tmpfs until it is full, then with it
 * read-only. Exits with 77 when mounting is not allowed. */
static void full_disk_child(void)
{
    enum { BIG = 40000 };
    static float w[BIG];
    struct pm_state_tensor t = { "w", PM_SHAPE1(BIG), w };
    struct pm_keep all = { .newest = 0 };
    struct pm_checkpoint *c = NULL;
    uint64_t step = 0;
    char text[2048];

    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", run, "tmpfs", 0, "size=1m") != 0)
        _exit(77);
    while (step < 100 && pm_checkpoint_save(run, step + 1, &t, 1, "{}", &all) == 0)
        step++;
    snprintf(text, sizeof text, "%s", pm_error_text());
    if (step < 2 || step >= 100 || !strstr(text, strerror(ENOSPC)) || !strstr(text, "still good"))
        _exit(2);
    if (pm_checkpoint_open_newest(run, &c) < 0 || !c || c->step != step)
        _exit(3);
    pm_checkpoint_close(&c);
    if (mount("none", run, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0)
        _exit(77);
    if (pm_checkpoint_save(run, step + 1, &t, 1, "{}", &all) != PM_EFAIL ||
        !strstr(pm_error_text(), strerror(EROFS)))
        _exit(4);
    struct pm_run_lock *lock = NULL;
    if (pm_run_lock(run, &lock) != PM_EFAIL || !strstr(pm_error_text(), run))
        _exit(5);
    if (pm_checkpoint_open_newest(run, &c) < 0 || !c || c->step != step)
        _exit(6);
    _exit(0);
}

static void full_disk(void **state)
{
    int status;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        full_disk_child();
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("a small file system cannot be mounted here: full disk not tried\n");
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- the lock -------------------------------------------------------------------------- */

static void lock_refuses_a_second(void **state)
{
    struct pm_run_lock *lock = NULL, *second = NULL;
    char pid[32];
    int to[2], from[2], status;
    char byte;

    (void)state;
    assert_int_equal(pm_run_lock(run, &lock), 0);
    snprintf(pid, sizeof pid, "process %d ", (int)getpid());
    assert_int_equal(pm_run_lock(run, &second), PM_EFAIL);
    assert_null(second);
    assert_non_null(strstr(pm_error_text(), pid));
    pm_run_unlock(&lock);
    assert_null(lock);
    assert_int_equal(pm_run_lock(run, &lock), 0);
    pm_run_unlock(&lock);

    /* A child holds the lock and is killed. Then the lock is free again. */
    assert_int_equal(pipe(to) | pipe(from), 0);
    pid_t child = fork();
    if (child == 0) {
        byte = pm_run_lock(run, &lock) == 0 ? 'y' : 'n';
        if (write(from[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(from[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    snprintf(pid, sizeof pid, "process %d ", (int)child);
    assert_int_equal(pm_run_lock(run, &lock), PM_EFAIL);
    assert_non_null(strstr(pm_error_text(), pid));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    assert_int_equal(pm_run_lock(run, &lock), 0);
    pm_run_unlock(&lock);
    close(to[0]), close(to[1]), close(from[0]), close(from[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(killed_at_any_moment),
        TEST(file_size_limit),
        TEST(full_disk),
        TEST(lock_refuses_a_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
