/* Errors: one line per thread, and fault injection for the tests.
 *
 * PM_FAIL_AT=n makes the n-th PM_TRY site that the process reaches fail once. Sites are numbered by
 * first hit, so a test that counts n upward visits every fallible place it can reach.
 * PM_FAIL_AT=trainer.c:123 names the site instead, independent of the order of threads.
 * PM_FAIL_AT=list writes each site's name to standard error when it is first reached. */
#include <pumice/base.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_text[2048];

bool pm_faults_on;
static const char *fault_at; /* PM_FAIL_AT: a number, "file.c:line" or "list" */
static int fault_sites;      /* sites seen so far; under fault_lock, as is fault_done */
static bool fault_done;
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void read_fault_env(void)
{
    fault_at = getenv("PM_FAIL_AT");
    pm_faults_on = fault_at && fault_at[0];
}

/* Prints a line from which a test learns that n is past the last site. */
__attribute__((destructor)) static void tell_unreached(void)
{
    if (pm_faults_on && !fault_done && strcmp(fault_at, "list") != 0)
        fprintf(stderr, "PM_FAIL_AT=%s: not reached, %d places were\n", fault_at, fault_sites);
}

int pm_fail(enum pm_error err, const char *fmt, ...)
{
    char text[sizeof last_text]; /* the arguments may point into the last text itself */
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    pm_printable(last_text, sizeof last_text, text);
    return err;
}

const char *pm_error_text(void)
{
    return last_text;
}

int pm_exit_code(int err)
{
    switch (err) {
    case PM_OK:
        return 0;
    case PM_ECONFIG:
        return 2;
    case PM_EDATA:
    case PM_ECORRUPT:
        return 3;
    case PM_EDEVICE:
    case PM_ELOST:
    case PM_EMEMORY:
        return 4;
    default:
        return err > 0 ? 0 : 1;
    }
}

/* Whether the newest site must fail. Call it under fault_lock. */
static bool is_chosen(const char *name)
{
    char number[16];

    snprintf(number, sizeof number, "%d", fault_sites);
    if (strcmp(fault_at, "list") == 0)
        fprintf(stderr, "PM_FAIL_AT=%s\n", name);
    return strcmp(fault_at, name) == 0 || strcmp(fault_at, number) == 0;
}

int pm_fault(int *site, const char *file, int line)
{
    const char *slash = strrchr(file, '/');
    char name[128];
    bool hit = false;

    snprintf(name, sizeof name, "%s:%d", slash ? slash + 1 : file, line);
    pthread_mutex_lock(&fault_lock);
    if (*site == 0) {
        *site = ++fault_sites;
        hit = is_chosen(name);
        fault_done |= hit;
    }
    pthread_mutex_unlock(&fault_lock);
    if (!hit)
        return PM_OK;
    return pm_fail(PM_EFAIL, "%s: injected fault (PM_FAIL_AT)", name);
}
