/* small_process: functions that must need little memory run in a process with a limit. */
#ifndef SMALL_PROCESS_H
#define SMALL_PROCESS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unit.h"

static inline size_t peak_kib(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (size_t)u.ru_maxrss;
}

/* Runs fn in a process that may use 64 MiB more address space than this one. The address
 * sanitizer reserves address space, so it gets no limit. Returns what fn returned. */
static inline bool in_small_process(bool (*fn)(const char *path), const char *path)
{
    int status;
    const pid_t pid = fork();

    if (pid == 0) {
#ifndef __SANITIZE_ADDRESS__
        struct rlimit limit;
        long pages = 0;
        FILE *f = fopen("/proc/self/statm", "r");
        if (!f || fscanf(f, "%ld", &pages) != 1)
            _exit(2);
        fclose(f);
        limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (64 << 20);
        limit.rlim_max = limit.rlim_cur;
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            _exit(3);
#endif
        _exit(fn(path) ? 0 : 1);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

#endif
