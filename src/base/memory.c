/* Host memory that is always available: a failed allocation ends the process with one line.
 * Allocations whose size comes from foreign bytes are the exception: pm_try_realloc returns
 * NULL. */
#include <pumice/base.h>

#include <stdlib.h>
#include <string.h>

static uint64_t allocations, freed;

static void *checked(void *p, size_t size)
{
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    if (!p) {
        fprintf(stderr, "error: out of host memory: an allocation of %zu bytes failed\n", size);
        abort();
    }
    return p;
}

/* Zero bytes are allocated as one byte, so NULL always means failure. */
void *pm_malloc(size_t size)
{
    return checked(malloc(size ? size : 1), size);
}

void *pm_calloc(size_t count, size_t size)
{
    if (!count || !size)
        count = size = 1;
    return checked(calloc(count, size), count * size);
}

void *pm_realloc(void *p, size_t size)
{
    /* counts the old block as freed: the new block replaces it */
    __atomic_fetch_add(&freed, p != NULL, __ATOMIC_RELAXED);
    return checked(realloc(p, size ? size : 1), size);
}

void *pm_try_realloc(void *p, size_t size)
{
    void *new = realloc(p, size ? size : 1);

    __atomic_fetch_add(&allocations, new && !p, __ATOMIC_RELAXED);
    return new;
}

char *pm_strdup(const char *s)
{
    size_t size = strlen(s) + 1;

    return memcpy(pm_malloc(size), s, size);
}

void pm_free(void *p)
{
    __atomic_fetch_add(&freed, p != NULL, __ATOMIC_RELAXED);
    free(p);
}

uint64_t pm_alloc_count(void)
{
    return __atomic_load_n(&allocations, __ATOMIC_RELAXED);
}

uint64_t pm_live_count(void)
{
    return __atomic_load_n(&allocations, __ATOMIC_RELAXED) -
           __atomic_load_n(&freed, __ATOMIC_RELAXED);
}
