/* Errors: one line per thread, and fault injection for the tests.
 *
 * PM_FAIL_AT=n makes the n-th PM_TRY site that the process reaches fail once; sites are numbered
 * by first hit, so a test that walks n upward visits every fallible place it can reach. */
#include <pumice/base.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_text[2048];

bool pm_faults_on;
static long fault_at;
static int fault_sites; /* sites seen so far; under fault_lock */
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void read_fault_env(void)
{
    const char *text = getenv("PM_FAIL_AT");

    fault_at = text ? strtol(text, NULL, 10) : 0;
    pm_faults_on = fault_at > 0;
}

int pm_fail(enum pm_error err, const char *fmt, ...)
{
    char text[sizeof last_text]; /* the arguments may be the last text itself */
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (char *c = text; *c; c++)
        if (*c == '\n')
            *c = ' ';
    memcpy(last_text, text, sizeof text);
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

int pm_fault(int *site, const char *file, int line)
{
    bool hit = false;

    pthread_mutex_lock(&fault_lock);
    if (*site == 0) {
        *site = ++fault_sites;
        hit = *site == fault_at;
    }
    pthread_mutex_unlock(&fault_lock);
    if (!hit)
        return PM_OK;
    return pm_fail(PM_EFAIL, "%s:%d: injected fault number %ld (PM_FAIL_AT)", file, line, fault_at);
}
