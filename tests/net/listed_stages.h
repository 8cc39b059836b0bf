/* listed_stages: the layers of a two-stage detector's stages as lists for model.first_stage_layers
 * and model.second_stage_layers. */
#ifndef LISTED_STAGES_H
#define LISTED_STAGES_H

#include "net/named_net.h"

#define FIRST "FirstStageFeatureExtractor/"
#define SECOND "SecondStageFeatureExtractor/"

/* Takes the scope from the beginning of a name in a list. */
static inline void shorten(cJSON *name, const char *scope)
{
    const size_t length = strlen(scope);

    if (strncmp(name->valuestring, scope, length) == 0) {
        char *rest = pm_strdup(name->valuestring + length);

        cJSON_SetValuestring(name, rest);
        pm_free(rest);
    }
}

/* Returns the layers of this scope, with names without it. The inputs do not name the rows that
 * count in batch norm. */
static inline cJSON *list_of(const cJSON *layers, const char *scope)
{
    cJSON *list = cJSON_CreateArray(), *v;
    const cJSON *layer;

    cJSON_ArrayForEach(layer, layers) {
        const char *name = cJSON_GetObjectItem(layer, "name")->valuestring;

        if (strncmp(name, scope, strlen(scope)) != 0)
            continue;
        cJSON *own = cJSON_Duplicate(layer, true), *inputs = cJSON_GetObjectItem(own, "inputs");
        const int last = cJSON_GetArraySize(inputs) - 1;

        shorten(cJSON_GetObjectItem(own, "name"), scope);
        if (last > 0 && strcmp(cJSON_GetArrayItem(inputs, last)->valuestring, "count") == 0)
            cJSON_DeleteItemFromArray(inputs, last);
        cJSON_ArrayForEach(v, inputs)
            shorten(v, scope);
        cJSON_AddItemToArray(list, own);
    }
    assert_true(cJSON_GetArraySize(list) > 0);
    return list;
}

/* Returns the options `own`, a JSON object, with these lists; NULL: without. */
static inline char *with_lists(const char *own, const cJSON *first, const cJSON *second)
{
    cJSON *options = cJSON_Parse(own);

    assert_non_null(options);
    if (first)
        cJSON_AddItemToObject(options, "first_stage_layers", cJSON_Duplicate(first, true));
    if (second)
        cJSON_AddItemToObject(options, "second_stage_layers", cJSON_Duplicate(second, true));
    char *text = cJSON_PrintUnformatted(options);
    cJSON_Delete(options);
    return text;
}

#endif
