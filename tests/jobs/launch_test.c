/* launch: lists of hosts and host files, networks, the words of mpirun, which hosts answer, the
 * notes of processes, and how an end is judged. */
#include "base/unit.h"

#include "jobs/launch.h"

#include <pumice/replicas.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct pm_arena *arena;
static char *folder;

static const char *in(const char *name)
{
    return pm_arena_printf(arena, "%s/%s", folder, name);
}

/* ---- hosts ------------------------------------------------------------------------------- */

static void same_hosts(const struct pm_launch_hosts *h, const char *expected)
{
    struct pm_str text = { 0 };

    for (size_t i = 0; i < h->count; i++)
        pm_str_add(&text, "%s%s:%d", i ? "," : "", h->list[i].name, h->list[i].processes);
    assert_string_equal(text.text, expected);
    pm_str_free(&text);
}

static void lists_of_hosts(void **state)
{
    static const struct {
        const char *text, *expected; /* the list, or a part of the error */
        bool good;
    } cases[] = {
        { "a", "a:1", true },
        { "big:2,small", "big:2,small:1", true },
        { "a:2,b,a:3,b", "a:5,b:2", true },
        { "10.0.0.4:800", "10.0.0.4:800", true },
        { "", "'' is not the name of a host", false },
        { "a,", "'' is not the name of a host", false },
        { ",a", "'' is not the name of a host", false },
        { ":2", "'' is not the name of a host", false },
        { "a b", "'a b' is not the name of a host", false },
        { "me@a", "'me@a' is not the name of a host", false },
        { "-x", "'-x' is not the name of a host", false },
        { "a:", "host a: '' is not a number of processes, 1 to 800", false },
        { "a:0", "host a: '0' is not", false },
        { "a:-1", "host a: '-1' is not", false },
        { "a:2x,b", "host a: '2x' is not", false },
        { "a:801", "host a: '801' is not", false },
        { "a:99999999999", "is not a number", false },
        { "a:500,b:301", "801 processes, but a training has at most 800", false },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_launch_hosts h;
        const int err = pm_launch_read_hosts(cases[i].text, "here", arena, &h);

        assert_int_equal(err, cases[i].good ? PM_OK : PM_ECONFIG);
        if (cases[i].good) {
            same_hosts(&h, cases[i].expected);
        } else {
            assert_contains(pm_error_text(), "here: ");
            assert_contains(pm_error_text(), cases[i].expected);
        }
    }
}

static void host_files(void **state)
{
    static const struct {
        const char *text, *expected;
        int err;
    } cases[] = {
        { "big slots=2\nsmall\n", "big:2,small:1", PM_OK },
        { "# all\n\n  big\tslots=2 max_slots=4 # this one\r\nsmall", "big:2,small:1", PM_OK },
        { "a\nb slots=x\n", "hosts:2: host b: 'x' is not a number", PM_ECONFIG },
        { "a\n\nb cpus=2\n", "hosts:3: 'cpus=2' after the host's name: only slots=N", PM_ECONFIG },
        { "# none\n", "hosts: no host is named", PM_ECONFIG },
        { "", "hosts: no host is named", PM_ECONFIG },
    };
    struct pm_launch_hosts h;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        assert_int_equal(pm_file_write(in("hosts"), cases[i].text, strlen(cases[i].text)), PM_OK);
        assert_int_equal(pm_launch_read_hostfile(in("hosts"), arena, &h), cases[i].err);
        if (cases[i].err == PM_OK)
            same_hosts(&h, cases[i].expected);
        else
            assert_contains(pm_error_text(), cases[i].expected);
    }
    assert_int_equal(pm_launch_read_hostfile(in("nothing"), arena, &h), PM_EDATA);
}

/* An agent that answers for one host, fails for another, and never ends for a third. */
static void hosts_that_answer(void **state)
{
    static const char agent[] = "#!/bin/sh\n"
                                "[ \"$2\" = true ] || exit 9\n"
                                "case $1 in good) exit 0 ;; bad) exit 1 ;; esac\n"
                                "sleep 100\n";
    struct pm_launch_hosts h;
    struct pm_str missing = { 0 };
    char own[256] = "";

    (void)state;
    assert_int_equal(pm_file_write(in("agent"), agent, sizeof agent - 1), PM_OK);
    assert_int_equal(chmod(in("agent"), 0700), 0);
    setenv("OMPI_MCA_plm_rsh_agent", pm_arena_printf(arena, "  %s : rsh", in("agent")), 1);
    assert_int_equal(gethostname(own, sizeof own - 1), 0);
    assert_int_equal(pm_launch_read_hosts(pm_arena_printf(arena, "bad,%s:2,good,localhost", own),
                                          "", arena, &h), PM_OK);
    assert_int_equal(pm_launch_others(&h), 2);
    pm_launch_keep_answering(&h, PM_LAUNCH_ANSWER_SECONDS, &missing);
    same_hosts(&h, pm_arena_printf(arena, "%s:2,good:1,localhost:1", own));
    assert_string_equal(missing.text, "bad");
    pm_str_free(&missing);

    assert_int_equal(pm_launch_read_hosts("slow,good", "", arena, &h), PM_OK);
    const double begun = pm_seconds();
    pm_launch_keep_answering(&h, 1, &missing);
    same_hosts(&h, "good:1");
    assert_string_equal(missing.text, "slow");
    assert_true(pm_seconds() - begun < 12);
    pm_str_free(&missing);

    setenv("OMPI_MCA_plm_rsh_agent", in("no-agent"), 1);
    assert_int_equal(pm_launch_read_hosts("good", "", arena, &h), PM_OK);
    pm_launch_keep_answering(&h, PM_LAUNCH_ANSWER_SECONDS, &missing);
    assert_int_equal(h.count, 0);
    pm_str_free(&missing);
    unsetenv("OMPI_MCA_plm_rsh_agent");
}

static void interfaces(void **state)
{
    static const char *const bad[] = { "", "lo,", "1.2.3/24", "1.2.3.4/33", "1.2.3.4/", "1.2.3.4/x",
                                       "a b", "/24", "averyverylongname" };

    (void)state;
    assert_int_equal(pm_launch_check_interface("lo"), PM_OK);
    assert_int_equal(pm_launch_check_interface("127.0.0.0/8"), PM_OK);
    assert_int_equal(pm_launch_check_interface("127.0.0.77/8,lo"), PM_OK);
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        assert_int_equal(pm_launch_check_interface(bad[i]), PM_ECONFIG);
        assert_contains(pm_error_text(), "is neither the name of an interface");
    }
    assert_int_equal(pm_launch_check_interface("192.0.2.128/30"), PM_ECONFIG);
    assert_contains(pm_error_text(), "no interface 192.0.2.128/30: it has ");
    assert_contains(pm_error_text(), "lo (127.0.0.1/8)");
    assert_int_equal(pm_launch_check_interface("lo,none0"), PM_ECONFIG);
    assert_contains(pm_error_text(), "no interface none0");
}

/* ---- the command ------------------------------------------------------------------------- */

static void same_command(const struct pm_launch *l, const char *expected)
{
    static const char *const program[] = { "/opt/pumice", "train", "it's.json",
                                           "devices=[\"cpu\"]", "" };
    struct pm_str text = { 0 };

    pm_launch_print(pm_launch_command(l, program, PM_COUNT(program), arena), &text);
    assert_string_equal(text.text, expected);
    pm_str_free(&text);
}

static void words_of_mpirun(void **state)
{
    struct pm_launch l = { .processes = 3, .here = true };

    (void)state;
    same_command(&l, "mpirun --bind-to none --map-by node:OVERSUBSCRIBE -n 3 --mca "
                     "odls_base_sigkill_timeout 60 /opt/pumice train 'it'\\''s.json' "
                     "'devices=[\"cpu\"]' ''");
    l = (struct pm_launch){ .interface = "192.168.1.0/24", .here = true };
    assert_int_equal(pm_launch_read_hosts("big:2,small", "", arena, &l.hosts), PM_OK);
    same_command(&l, "mpirun --bind-to none --map-by node -n 3 --host big:2,small:1 --mca "
                     "odls_base_sigkill_timeout 60 --mca btl_tcp_if_include 192.168.1.0/24 --mca "
                     "oob_tcp_if_include 192.168.1.0/24 /opt/pumice train 'it'\\''s.json' "
                     "'devices=[\"cpu\"]' ''");
    l.here = false;
    l.interface = NULL;
    same_command(&l, "mpirun --bind-to none --map-by node -n 3 --host big:2,small:1 --mca "
                     "odls_base_sigkill_timeout 10 /opt/pumice train 'it'\\''s.json' "
                     "'devices=[\"cpu\"]' ''");
}

/* ---- notes ------------------------------------------------------------------------------- */

/* Starts a process that notes its start as this rank, and ends with a note, or waits. */
static pid_t start(int rank, int code, bool lost, bool waits)
{
    const pid_t pid = fork();

    if (pid != 0)
        return pid;
    setenv("OMPI_COMM_WORLD_RANK", pm_arena_printf(arena, "%d", rank), 1);
    setenv(PM_LAUNCH_VARIABLE, folder, 1);
    pm_launch_note_start();
    printf("out of %d\n", rank);
    fflush(stdout);
    fprintf(stderr, "err of %d\n", rank);
    while (waits)
        pause();
    pm_launch_note_end(code, lost);
    _exit(code);
}

static void read_all(int fd, const char *part)
{
    char text[4096];
    const ssize_t n = read(fd, text, sizeof text - 1);

    assert_true(n > 0);
    text[n] = '\0';
    assert_contains(text, part);
}

static void wait_for(int started, struct pm_launch_notes *n)
{
    for (int i = 0; i < 500; i++, usleep(10000)) {
        pm_launch_read_notes(folder, n);
        if (n->started == started)
            return;
    }
    fail_msg("%d processes have started, not %d", n->started, started);
}

static void notes_of_processes(void **state)
{
    struct pm_launch_notes n;
    int from[2], status;
    pid_t waiting, other;

    (void)state;
    assert_null(pm_launch_make_pipes(folder, from));
    pm_launch_read_notes(folder, &n);
    assert_int_equal(n.started, 0);
    assert_int_equal(n.code, -1);
    waiting = start(0, 0, false, true);
    wait_for(1, &n);
    assert_int_equal(n.running, 1);
    assert_int_equal(n.first, waiting);
    assert_int_equal(n.code, -1);
    waitpid(start(2, 4, true, false), &status, 0);
    wait_for(2, &n);
    assert_int_equal(n.code, 4);
    assert_true(n.lost && n.failed && !n.chief);
    assert_int_equal(n.running, 1);
    read_all(from[0], "out of 2");
    read_all(from[1], "err of 0");
    other = start(1, 0, false, true);
    wait_for(3, &n);
    kill(other, SIGKILL);
    do /* also before its parent has waited for it */
        pm_launch_read_notes(folder, &n);
    while (n.running == 2);
    assert_int_equal(n.killed, 1);
    pm_launch_signal_rest(folder, SIGTERM);
    assert_int_equal(waitpid(waiting, &status, 0), waiting);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_int_equal(waitpid(other, &status, 0), other);
    waitpid(start(0, 0, false, false), &status, 0);
    pm_launch_read_notes(folder, &n);
    assert_true(n.chief && n.code == 0 && n.running == 0 && n.first == 0);
    close(from[0]);
    close(from[1]);
}

static void ends_are_judged(void **state)
{
    static const struct {
        int code;        /* noted; -1: none */
        int mpirun, signal;
        bool noted, killed, cut, away;
        int expected;
        bool lost;
    } cases[] = {
        { 0, 0, 0, .expected = 0 },
        { 0, 137, 0, .killed = true, .expected = 0 },
        { 2, 2, 0, .expected = 2 },
        { 3, 143, 0, .cut = true, .killed = true, .expected = 3 },
        { 1, 1, 0, .expected = 1 },
        { 4, 4, 0, .expected = 4 },                              /* a device */
        { 4, 4, 0, .noted = true, .expected = 4, .lost = true }, /* a rank */
        { 143, 143, 0, .expected = 143 },                        /* a signal at a rank */
        { 129, 137, 0, .expected = 4, .lost = true },
        { 143, 1, 0, .cut = true, .expected = 143 },
        { 129, 0, 0, .cut = true, .killed = true, .expected = 4, .lost = true },
        { -1, 137, 0, .killed = true, .expected = 4, .lost = true },
        { -1, 139, 0, .expected = 4, .lost = true },
        { 143, 143, SIGINT, .expected = 130 },
        { 143, 143, SIGTERM, .expected = 143 },
        { 0, 0, SIGTERM, .expected = 0 },
        { 4, 4, SIGTERM, .noted = true, .expected = 4 },
        { -1, 1, SIGHUP, .killed = true, .expected = 129 },
        { -1, 1, 0, .expected = 1 },
        { -1, 2, 0, .away = true, .expected = 2 },
        { -1, 137, 0, .away = true, .expected = 4, .lost = true },
        { -1, 255, 0, .away = true, .expected = -1 },
        { -1, 1, 0, .away = true, .expected = -1 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        const struct pm_launch_end e = {
            .mpirun = cases[i].mpirun, .signal = cases[i].signal, .cut = cases[i].cut,
            .here = !cases[i].away,
            .notes = { .started = !cases[i].away, .killed = cases[i].killed,
                       .code = cases[i].code, .lost = cases[i].noted } };
        bool lost;

        if (pm_launch_judge(&e, &lost) != cases[i].expected || lost != cases[i].lost)
            fail_msg("case %zu: %d%s", i, pm_launch_judge(&e, &lost), lost ? ", lost" : "");
    }
    /* Nothing has started, and this machine is one of the hosts. */
    assert_int_equal(pm_launch_judge(&(struct pm_launch_end){
        .mpirun = 2, .here = true, .notes.code = -1 }, &(bool){ false }), -1);
}

/* ------------------------------------------------------------------------------------------ */

static int set_up(void **state)
{
    (void)state;
    arena = pm_arena_create();
    folder = make_folder();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    drop_folder(folder);
    pm_arena_destroy(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_hosts),
        cmocka_unit_test(host_files),
        cmocka_unit_test(hosts_that_answer),
        cmocka_unit_test(interfaces),
        cmocka_unit_test(words_of_mpirun),
        cmocka_unit_test(notes_of_processes),
        cmocka_unit_test(ends_are_judged),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
