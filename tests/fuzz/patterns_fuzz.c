/* Regular expressions of a config, matched with names of variables: the first line is the pattern,
 * each further line a name. A match takes at most a bounded number of steps. */
#include "base/patterns.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = pm_malloc(size + 1), *rest = text, *pattern, *name;
    struct pm_patterns *p = NULL;

    memcpy(text, data, size);
    text[size] = '\0';
    pattern = strsep(&rest, "\n");
    if (pm_patterns_compile((const char *const *)&pattern, 1, "fuzz", &p) == PM_OK)
        while ((name = strsep(&rest, "\n"))) {
            int found = pm_patterns_find(p, name);

            if (found != 0 && found != PM_NO_PATTERN && found != PM_ECONFIG)
                __builtin_trap();
            if (*pattern == '\0' && found != PM_NO_PATTERN)
                __builtin_trap();
        }
    pm_patterns_destroy(&p);
    pm_free(text);
    return 0;
}
