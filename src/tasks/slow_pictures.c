/* Slow pictures, as slow_pictures.h describes. */
#include "tasks/slow_pictures.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

static const char advice[] = "shrink large pictures once, with max_side=1024 for pumice dataset "
                             "convert folder, or data.convert={\"max_side\": 1024} if data.folder "
                             "holds the pictures themselves";

/* Whether the name is new. When the table is full, pictures count again in each epoch. */
static bool is_new(struct pm_slow_pictures *s, const char *name)
{
    const uint64_t hash = pm_hash_bytes(name, strlen(name), 0) | 1;

    for (size_t i = 0; i < PM_SLOW_KNOWN; i++) {
        uint64_t *at = &s->known[(hash + i) % PM_SLOW_KNOWN];

        if (*at == hash)
            return false;
        if (*at == 0) {
            *at = hash;
            return true;
        }
    }
    return true;
}

static bool is_power_of_ten(size_t n)
{
    while (n >= 10 && n % 10 == 0)
        n /= 10;
    return n == 1;
}

bool pm_slow_pictures_add(struct pm_slow_pictures *s, const struct pm_slow_picture *p,
                          struct pm_str *text)
{
    if (p->seconds <= PM_SLOW_SECONDS || !is_new(s, p->name))
        return false;
    s->count++;
    s->seconds += p->seconds;
    if (s->count <= PM_SLOW_NAMED)
        pm_str_add(text, "%s: %d x %d pixels take %.1f s to decode, in every epoch: %s", p->name,
                   p->width, p->height, p->seconds, advice);
    else if (is_power_of_ten(s->count))
        pm_str_add(text, "%zu pictures take more than %g s to decode, %.0f s together: %s",
                   s->count, PM_SLOW_SECONDS, s->seconds, advice);
    else
        return false;
    return true;
}

void pm_slow_picture_log(const struct pm_slow_picture *p)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct pm_slow_pictures all;
    struct pm_str text = { 0 };

    if (p->seconds <= PM_SLOW_SECONDS)
        return;
    pthread_mutex_lock(&lock);
    const bool said = pm_slow_pictures_add(&all, p, &text);
    pthread_mutex_unlock(&lock);
    if (said)
        PM_WARN("data", "%s", text.text);
    pm_str_free(&text);
}

double pm_thread_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
