/* JSON text: the printed form of parsed text parses and prints the same again. */
#include <cjson/cJSON.h>
#include <pumice/options.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = pm_malloc(size + 1);
    cJSON *v = NULL, *again = NULL;

    memcpy(text, data, size);
    text[size] = 0;
    if (pm_json_parse("fuzz", text, &v) == PM_OK) {
        char *first = pm_json_print(v), *second;
        if (pm_json_parse("print", first, &again) < 0)
            __builtin_trap();
        second = pm_json_print(again);
        if (strcmp(first, second) != 0)
            __builtin_trap();
        pm_free(first);
        pm_free(second);
    }
    cJSON_Delete(v);
    cJSON_Delete(again);
    pm_free(text);
    return 0;
}
