/* golden_file: reads the JSON files of tests/golden/, draws their scripts' numbers, compares. */
#ifndef PM_GOLDEN_FILE_H
#define PM_GOLDEN_FILE_H

#include "base/unit.h"

#include <cjson/cJSON.h>

/* The next number of the sequence n -> (n 1103515245 + 12345) mod 2^31, reduced to 0 .. below -
 * 1. */
static inline int number(uint32_t *n, int below)
{
    *n = (*n * 1103515245u + 12345u) & 0x7fffffffu;
    return (int)(*n >> 16) % below;
}

static inline void near(double a, double b)
{
    if (!(fabs(a - b) < 1e-12))
        fail_msg("%.17g is not %.17g", a, b);
}

/* Reads tests/golden/NAME; free with cJSON_Delete. */
static inline cJSON *read_golden(const char *name)
{
    const char *source = getenv("PUMICE_SOURCE");
    char path[1024], *text = NULL;
    cJSON *all;

    snprintf(path, sizeof path, "%s/tests/golden/%s", source ? source : ".", name);
    if (pm_file_read(path, &text, NULL) < 0)
        fail_msg("%s", pm_error_text());
    all = cJSON_Parse(text);
    pm_free(text);
    if (!all)
        fail_msg("%s is no JSON", path);
    return all;
}

/* The numbers of `list` are got[0..count-1]. A number that is 0 there is 0 here; others may differ
 * by limit times the largest of the list. device, of, name: for messages. */
static inline void compare_golden(const char *device, const char *of, const cJSON *list,
                                  const char *name, const float *got, size_t count, double limit)
{
    const cJSON *item;
    double largest = 0;
    size_t i = 0;

    assert_int_equal(cJSON_GetArraySize(list), count);
    cJSON_ArrayForEach(item, list)
        largest = fmax(largest, fabs(item->valuedouble));
    cJSON_ArrayForEach(item, list) {
        if (!(fabs((double)got[i] - item->valuedouble) <= limit * largest) ||
            (item->valuedouble == 0 && got[i] != 0))
            fail_msg("%s: %s: %s %zu is %.8g, the golden %.8g", device, of, name, i,
                     (double)got[i], item->valuedouble);
        i++;
    }
}

#endif
