/* process: signals that stop a program, and its own file. */
#include <pumice/base.h>

#include <signal.h>
#include <unistd.h>

void pm_catch_stop_signals(void (*handler)(int number))
{
    static const int always[] = { SIGINT, SIGTERM }, unless_ignored[] = { SIGHUP, SIGPIPE };
    const struct sigaction a = { .sa_handler = handler, .sa_flags = SA_RESTART };
    struct sigaction before;

    for (size_t i = 0; i < PM_COUNT(always); i++)
        sigaction(always[i], &a, NULL);
    for (size_t i = 0; i < PM_COUNT(unless_ignored); i++)
        if (sigaction(unless_ignored[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(unless_ignored[i], &a, NULL);
}

int pm_own_path(char *out, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", out, size - 1);

    if (length < 0)
        return pm_fail(PM_EFAIL, "/proc/self/exe cannot be read: is /proc mounted?");
    out[length] = '\0';
    return PM_OK;
}
