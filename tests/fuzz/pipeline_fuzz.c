/* Pipeline configs of the Object Detection API: the text form, and the conversion of its fields. */
#include "jobs/pipeline/fields.h"

#include <cjson/cJSON.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pm_pipeline p = { .arena = pm_arena_create(), .config = cJSON_CreateObject(),
                             .notes = cJSON_CreateArray() };
    char *text = pm_malloc(size + 1);

    memcpy(text, data, size);
    text[size] = '\0';
    if (pm_pipeline_text(&p, "fuzz", text) == PM_OK) {
        char *json = cJSON_PrintUnformatted(p.config);
        cJSON *again = json ? cJSON_Parse(json) : NULL;

        if (!again)
            __builtin_trap();
        cJSON_Delete(again);
        cJSON_free(json);
    }
    pm_free(text);
    cJSON_Delete(p.config);
    cJSON_Delete(p.notes);
    pm_arena_destroy(&p.arena);
    return 0;
}
