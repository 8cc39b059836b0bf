/* A whole configuration: the printed form of an accepted one is accepted and prints the same
 * again. config_base_fuzz covers base files. */
#include <string.h>

#include "fuzz_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = pm_malloc(size + 1);

    memcpy(text, data, size);
    text[size] = 0;
    if (!strstr(text, "base\""))
        fuzz_check_config(fuzz_resolve_config(text));
    pm_free(text);
    return 0;
}
