/* Runs that are interrupted: the connection is lost, the reader of the output ends, or the run
 * folder is removed. The run saves its state if it can. */
#include "faults/faults.h"

/* Starts training without an end in a separate process. The first checkpoint exists on return. */
static pid_t endless(const char *name, const char *before, const char *after)
{
    struct pm_str command = { 0 };
    pid_t pid = fork();

    if (pid == 0) {
        reset_signals();
        pm_str_add(&command, "%s \"$PUMICE_PROGRAM\" train %s run.folder=%s run.steps=0 "
                   "run.log_every_steps=1 run.save_every_steps=0 run.save_every_secs=0.05 "
                   "run.keep=2 2>%s %s </dev/null",
                   before, in("net.json"), in("%s", name), in("%s.err", name), after);
        execl("/bin/sh", "sh", "-c", command.text, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 3000 && !pm_file_exists(in("%s/latest", name)); i++)
        usleep(10000);
    assert_true(pm_file_exists(in("%s/latest", name)));
    return pid;
}

/* Exit code; -number when a signal ended the process. A process that runs for more than 30 s is
 * killed. */
static int ended(pid_t pid)
{
    int status = 0;
    pid_t done = 0;

    for (int i = 0; i < 3000 && done == 0; i++) {
        done = waitpid(pid, &status, WNOHANG);
        if (done == 0)
            usleep(10000);
    }
    if (done == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        fail_msg("the run does not end");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int newest(const char *name)
{
    char *text = get_text(in("%s/latest", name));
    int step = -1;

    assert_int_equal(sscanf(text, "checkpoints/step-%d", &step), 1);
    pm_free(text);
    return step;
}

/* Waits until the run has logged a step. */
static void wait_for_step(const char *name, int step)
{
    char line[64];
    bool found = false;

    snprintf(line, sizeof line, "\"step\": %d,", step);
    for (int i = 0; i < 6000 && !found; i++) {
        char *text = pm_file_exists(in("%s/metrics.jsonl", name))
                         ? get_text(in("%s/metrics.jsonl", name))
                         : NULL;
        found = text && strstr(text, line);
        pm_free(text);
        usleep(10000);
    }
    assert_true(found);
}

/* ---- signals ----------------------------------------------------------------------------- */

/* A terminal that closes sends SIGHUP more than once: from the shell and from the kernel. */
static void connection_lost(void **state)
{
    pid_t pid = endless("gone", "exec", "");

    (void)state;
    for (int i = 0; i < 3; i++) {
        kill(pid, SIGHUP);
        usleep(2000);
    }
    assert_int_equal(ended(pid), 129);
    char *text = get_text(in("gone.err")), stopped[64];
    snprintf(stopped, sizeof stopped, "stopped by a signal at step %d; the run is saved",
             newest("gone"));
    assert_contains(text, stopped);
    pm_free(text);
    assert_int_equal(temporaries(in("gone")), 0);
}

/* nohup makes SIGHUP ignored. */
static void connection_lost_under_nohup(void **state)
{
    pid_t pid = endless("stays", "trap '' HUP; exec", "");

    (void)state;
    const int before = newest("stays");
    kill(pid, SIGHUP);
    for (int i = 0; i < 3000 && newest("stays") == before; i++)
        usleep(10000);
    assert_int_not_equal(newest("stays"), before);
    kill(pid, SIGTERM);
    assert_int_equal(ended(pid), 143);
}

/* A second Ctrl-C or SIGTERM ends the run at once. An earlier SIGHUP does not count as the
 * first. */
static void two_signals_end_at_once(void **state)
{
    static const int sent[][3] = { { SIGINT, SIGTERM }, { SIGHUP, SIGTERM, SIGTERM } };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(sent); i++) {
        char name[16];
        snprintf(name, sizeof name, "twice%zu", i);
        pid_t pid = endless(name, "exec env PM_HANG=0:60", "run.hang_seconds=0");
        const int last = sent[i][2] ? 2 : 1;

        wait_for_step(name, 59);
        sleep(1); /* time for a save; then step 60 begins, which never ends */
        for (int k = 0; k < last; k++) {
            kill(pid, sent[i][k]);
            usleep(100000);
            assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        }
        kill(pid, sent[i][last]);
        assert_int_equal(ended(pid), -sent[i][last]);
    }
}

/* `pumice train ... 2>&1 | head -3` ends like a lost connection. */
static void reader_gone(void **state)
{
    struct pm_str command = { 0 };
    int status;

    (void)state;
    pm_str_add(&command,
               "{ \"$PUMICE_PROGRAM\" train %s run.folder=%s run.steps=0 run.log_every_steps=1 "
               "run.save_every_steps=0; echo $? >%s; } 2>&1 | head -3 >/dev/null",
               in("net.json"), in("piped"), in("code"));
    status = system(command.text);
    assert_int_equal(status, 0);
    char *code = get_text(in("code"));
    assert_string_equal(code, "141\n");
    pm_free(code);
    assert_true(pm_file_exists(in("piped/latest")));
    pm_str_free(&command);
}

/* ---- the run folder ---------------------------------------------------------------------- */

/* One line reports the lost folder; name: the run's. */
static void check_lost_folder(const char *name)
{
    struct result r = { .err = get_text(in("%s.err", name)) };
    const char *last;

    assert_int_equal(error_lines(&r, &last), 1);
    assert_contains(last, in("%s", name));
    assert_contains(last, "was removed, moved or replaced");
    assert_contains(last, "lost");
    assert_contains(last, "run the same command");
    pm_free(r.err);
}

static void folder_removed(void **state)
{
    pid_t pid = endless("removed", "exec", "eval.every_steps=10");

    (void)state;
    for (int i = 0; i < 1000 && pm_is_folder(in("removed")); i++)
        pm_remove_tree(in("removed")); /* the run may write a file in between */
    assert_int_equal(ended(pid), 1);
    check_lost_folder("removed");
    assert_false(pm_is_folder(in("removed")));
}

static void folder_moved(void **state)
{
    pid_t pid = endless("moving", "exec", "eval.every_steps=10");

    (void)state;
    assert_int_equal(rename(in("moving"), in("there")), 0);
    assert_int_equal(ended(pid), 1);
    check_lost_folder("moving");
    char *text = get_text(in("moving.err"));
    assert_null(strstr(text, "warning: ")); /* no second warning */
    pm_free(text);
    assert_false(pm_is_folder(in("moving")));
    const int step = newest("there");
    check(run(NULL, "train %s run.folder=%s run.steps=%d", in("net.json"), in("there"), step + 1),
          0);
    assert_int_equal(newest("there"), step + 1);
}

/* A new folder of that name belongs to another run. */
static void folder_replaced(void **state)
{
    pid_t pid = endless("replaced", "exec", "");

    (void)state;
    assert_int_equal(rename(in("replaced"), in("former")), 0);
    assert_int_equal(mkdir(in("replaced"), 0777), 0);
    assert_int_equal(ended(pid), 1);
    check_lost_folder("replaced");
    assert_int_equal(rmdir(in("replaced")), 0); /* the new folder is still empty */
}

/* Names of new folders are synced to the disk, including the run folder's. */
static void new_folders_are_synced(void **state)
{
    const struct how how = with_faults("PM_FAULT_CALLS=mkdir,fsync PM_FAULT_LOG=%s", in("calls"));
    static const char *const folders[] = { "/x", "/x/y", "/x/y/run", "/x/y/run/checkpoints" };
    static const char *const parents[] = { "", "/x", "/x/y", "/x/y/run" };
    char *text = NULL;

    (void)state;
    check(run(&how, "train %s run.folder=%s", in("net.json"), in("x/y/run")), 0);
    if (pm_file_read(in("calls"), &text, NULL) < 0)
        fail_msg("%s", pm_error_text());
    for (size_t i = 0; i < PM_COUNT(folders); i++) {
        char make[600], sync[600];

        snprintf(make, sizeof make, " mkdir %s%s\n", folder, folders[i]);
        snprintf(sync, sizeof sync, " fsync %s%s\n", folder, parents[i]);
        const char *at = strstr(text, make);
        assert_non_null(at);
        if (!strstr(at, sync))
            fail_msg("no%s after%s", sync, make);
    }
    pm_free(text);
}

/* A job in the background of a shell ignores SIGINT; what a test starts does not. */
static void signals_are_not_ignored(void **state)
{
    char *program = pm_strdup(getenv("PUMICE_PROGRAM"));

    (void)state;
    put_text(in("stops"), "#!/bin/sh\nkill -INT $$\nexit 7\n");
    chmod(in("stops"), 0755);
    signal(SIGINT, SIG_IGN);
    setenv("PUMICE_PROGRAM", in("stops"), 1);
    struct result r = run(NULL, "now");
    setenv("PUMICE_PROGRAM", program, 1);
    signal(SIGINT, SIG_DFL);
    assert_int_equal(r.code, -SIGINT);
    drop(&r);
    pm_free(program);
}

static int set_up(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connection_lost),
        cmocka_unit_test(connection_lost_under_nohup),
        cmocka_unit_test(two_signals_end_at_once),
        cmocka_unit_test(reader_gone),
        cmocka_unit_test(folder_removed),
        cmocka_unit_test(folder_moved),
        cmocka_unit_test(folder_replaced),
        cmocka_unit_test(new_folders_are_synced),
        cmocka_unit_test(signals_are_not_ignored),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
