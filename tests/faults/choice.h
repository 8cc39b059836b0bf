/* choice: selects which of the counted calls a fault library disturbs, and how. Shared by
 * preload.c (system calls) and vulkan_loader.c (Vulkan calls). The environment variables, where
 * X is PM_FAULT or PM_VULKAN_FAULT:
 *
 *   X_CALLS=write,rename  names of the calls that are counted; unset: all that the library knows
 *   X_PATH=text           counts only calls on files whose path contains this text; unset: all
 *   X_AT=17               disturbs the 17th counted call; 17+: that one and all later ones
 *   X_SEED=5 X_RATE=0.01  disturbs each counted call with this probability, by the seed
 *   X_DO=ENOSPC           the fault (the libraries list the words); "any": chosen by the seed
 *   X_LOG=file            appends each counted call as a line "NUMBER CALL PATH"
 *
 * A disturbed call prints one line on standard error that begins with "fault: ". Calls are
 * counted from 1 in each process, over all threads. */
#ifndef FAULTS_CHOICE_H
#define FAULTS_CHOICE_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct fault_choice {
    const char *calls, *path, *what; /* NULL: all; NULL: all; NULL: none */
    unsigned long at, seed;
    bool onwards;
    double rate;
    int log; /* -1: none */
    atomic_ulong count;
};

static const char *fault_setting(const char *prefix, const char *name)
{
    char key[64];
    const char *value;

    snprintf(key, sizeof key, "%s_%s", prefix, name);
    value = getenv(key);
    return value && value[0] ? value : NULL;
}

static void fault_choice_read(struct fault_choice *c, const char *prefix)
{
    const char *at = fault_setting(prefix, "AT"), *seed = fault_setting(prefix, "SEED");
    const char *rate = fault_setting(prefix, "RATE"), *log = fault_setting(prefix, "LOG");
    char *end = NULL;

    c->calls = fault_setting(prefix, "CALLS");
    c->path = fault_setting(prefix, "PATH");
    c->what = fault_setting(prefix, "DO");
    c->at = at ? strtoul(at, &end, 10) : 0;
    c->onwards = end && *end == '+';
    c->seed = seed ? strtoul(seed, NULL, 10) : 0;
    c->rate = rate ? strtod(rate, NULL) : 0;
    c->log = log ? (int)syscall(SYS_openat, AT_FDCWD, log,
                                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)
                 : -1;
}

/* SplitMix64: a number of 64 bits for each (seed, number). */
static uint64_t fault_mix(uint64_t seed, uint64_t number)
{
    uint64_t z = seed * UINT64_C(0xd1342543de82ef95) + (number + 1) * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* True when the list "a,b,c" holds the word. */
static bool fault_listed(const char *list, const char *word)
{
    const size_t n = strlen(word);

    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

/* Writes to standard error or to the log without the calls that are disturbed. */
static void fault_print(int fd, const char *text)
{
    if (fd >= 0 && syscall(SYS_write, fd, text, strlen(text)) < 0)
        return;
}

/* Counts a call. Returns the word of X_DO when the call is to be disturbed, else NULL; for "any"
 * one of the `count` words in `any`. */
static const char *fault_count(struct fault_choice *c, const char *call, const char *path,
                               const char *const *any, unsigned count)
{
    const char *what = c->what;
    char line[1400];
    unsigned long n;
    bool chosen;

    if ((c->calls && !fault_listed(c->calls, call)) || (c->path && !strstr(path, c->path)))
        return NULL;
    n = atomic_fetch_add(&c->count, 1) + 1;
    snprintf(line, sizeof line, "%lu %s %.1000s\n", n, call, path);
    fault_print(c->log, line);
    chosen = c->at && (c->onwards ? n >= c->at : n == c->at);
    chosen |= (double)(fault_mix(c->seed, 2 * n) >> 11) * 0x1p-53 < c->rate;
    if (!chosen || !what)
        return NULL;
    if (strcmp(what, "any") == 0)
        what = any[fault_mix(c->seed, 2 * n + 1) % count];
    snprintf(line, sizeof line, "fault: call %lu, %s %.1000s: %s\n", n, call, path, what);
    fault_print(2, line);
    return what;
}

#endif
