/* The progress line on a terminal: its last state stays there when the work ends. */
#include <pumice/progress.h>

#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Counts to `done` of 10 without a pause, so that the line is drawn at the first count only.
 * Returns what the terminal got. */
static const char *counted(uint64_t done)
{
    static char text[4096];
    const struct winsize size = { .ws_row = 24, .ws_col = 80 };
    int master, slave;
    const int kept = dup(STDERR_FILENO);

    assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
    assert_int_equal(dup2(slave, STDERR_FILENO), STDERR_FILENO);
    struct pm_progress *p = pm_progress_start(&(struct pm_progress_options){
        .what = "predict", .unit = "picture", .last = 10 });
    for (uint64_t i = 1; i <= done; i++)
        pm_progress_count(p, i, i, -1);
    pm_progress_end(&p);
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    close(kept);
    for (size_t n = 0; n == 0 || text[n - 1] != '\n';) {
        struct pollfd ready = { .fd = master, .events = POLLIN };

        assert_int_equal(poll(&ready, 1, 10000), 1); /* the kernel hands the bytes over later */
        const ssize_t some = read(master, text + n, sizeof text - 1 - n);
        assert_true(some > 0);
        n += (size_t)some;
        text[n] = 0;
    }
    close(slave);
    close(master);
    return text;
}

static void last_state_stays(void **state)
{
    static const struct { uint64_t done; const char *line; } cases[] = {
        { 10, "picture 10/10  100 %" }, { 7, "picture 7/10   70 %" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        const char *text = counted(cases[i].done);

        if (!strstr(text, cases[i].line))
            fail_msg("the terminal got '%s'", text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(last_state_stays) };

    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
