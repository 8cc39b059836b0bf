/* every_device: opens the usable devices of this machine, one after the other. */
#ifndef EVERY_DEVICE_H
#define EVERY_DEVICE_H

#include "device/drivers.h"

struct every_device {
    struct pm_device *d; /* the open one */
    struct pm_device_info *list;
    size_t count, next;
};

/* Closes e->d and opens the next device. Returns false after the last one. Begins with zeros. */
static inline bool next_device(struct every_device *e)
{
    if (!e->list)
        ok(pm_device_list(&e->list, &e->count));
    pm_device_close(&e->d);
    while (e->next < e->count && !e->list[e->next].usable)
        e->next++;
    if (e->next == e->count) {
        pm_free(e->list);
        return false;
    }
    ok(pm_device_open(&e->list[e->next++], &(struct pm_device_options){ .threads = 1 }, &e->d));
    return true;
}

static inline void on_every_device(void (*test)(struct pm_device *d))
{
    struct every_device e = { 0 };

    while (next_device(&e))
        test(e.d);
}

/* Defines the test test_NAME, which runs NAME on every device. */
#define ON_EVERY_DEVICE(name)                \
    static void test_##name(void **state)    \
    {                                        \
        (void)state;                         \
        on_every_device(name);               \
    }

/* Opens the CPU with this number of threads. */
static inline struct pm_device *cpu_with(int threads)
{
    struct pm_device_info *list = NULL;
    struct pm_device *d = NULL;
    size_t count, index;

    ok(pm_device_list(&list, &count));
    ok(pm_device_find(list, count, "cpu", "test", &index));
    ok(pm_device_open(&list[index], &(struct pm_device_options){ .threads = threads }, &d));
    pm_free(list);
    return d;
}

#endif
