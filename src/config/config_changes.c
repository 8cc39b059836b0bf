/* config_changes: config_changes.h has the contract. */
#include "config/config_changes.h"

#include <cjson/cJSON.h>
#include <string.h>

static const struct {
    const char *key; /* "SECTION." for all keys of a section that have no row */
    enum pm_key_class class;
} classes[] = {
#define PM_KEY(key, class) { key, PM_KEY_##class },
#include "config/key_classes.def"
#undef PM_KEY
};

static int find(const char *key, size_t length)
{
    for (size_t i = 0; i < PM_COUNT(classes); i++)
        if (strlen(classes[i].key) == length && memcmp(classes[i].key, key, length) == 0)
            return (int)classes[i].class;
    return -1;
}

int pm_key_class(const char *key)
{
    const char *dot = strchr(key, '.');
    const int own = find(key, strlen(key));

    return own >= 0 || !dot ? own : find(key, (size_t)(dot + 1 - key));
}

/* ---- changes ---------------------------------------------------------------------------- */

void pm_config_changes_free(struct pm_config_changes *l)
{
    for (size_t i = 0; i < l->count; i++) {
        pm_free(l->list[i].key);
        cJSON_Delete(l->list[i].was);
        cJSON_Delete(l->list[i].is);
    }
    pm_free(l->list);
    *l = (struct pm_config_changes){ 0 };
}

void pm_config_changes_add(struct pm_config_changes *l, const char *key, enum pm_key_class class,
                           const struct cJSON *was, const struct cJSON *is)
{
    PM_GROW(l->list, l->count, l->capacity);
    l->list[l->count++] = (struct pm_config_change){
        pm_strdup(key), class, was ? cJSON_Duplicate(was, true) : cJSON_CreateNull(),
        is ? cJSON_Duplicate(is, true) : cJSON_CreateNull() };
}

static bool is_list_of_objects(const struct cJSON *v)
{
    return cJSON_IsArray(v) && cJSON_IsObject(v->child);
}

/* Appends what differs between two values of a key: members of objects, and of lists of objects of
 * the same length, one by one: "model.layers.0.filters". */
static void add_differences(const char *key, enum pm_key_class class, const struct cJSON *was,
                            const struct cJSON *is, struct pm_config_changes *out)
{
    const bool objects = cJSON_IsObject(was) && cJSON_IsObject(is);
    const struct cJSON *v, *other;
    int i = 0;

    if (was && is && cJSON_Compare(was, is, true))
        return;
    if (!objects && !(is_list_of_objects(was) && is_list_of_objects(is) &&
                      cJSON_GetArraySize(was) == cJSON_GetArraySize(is))) {
        pm_config_changes_add(out, key, class, was, is);
        return;
    }
    cJSON_ArrayForEach(v, is)
    {
        struct pm_str path = { 0 };

        other = objects ? cJSON_GetObjectItemCaseSensitive(was, v->string)
                        : cJSON_GetArrayItem(was, i);
        pm_str_add(&path, "%s.", key);
        if (objects)
            pm_str_add(&path, "%s", v->string);
        else
            pm_str_add(&path, "%d", i);
        add_differences(path.text, class, other, v, out);
        pm_str_free(&path);
        i++;
    }
    cJSON_ArrayForEach(v, was)
        if (objects && !cJSON_GetObjectItemCaseSensitive(is, v->string)) {
            struct pm_str path = { 0 };

            pm_str_add(&path, "%s.%s", key, v->string);
            pm_config_changes_add(out, path.text, class, v, NULL);
            pm_str_free(&path);
        }
}

static void compare(const char *key, const struct cJSON *was, const struct cJSON *is,
                    struct pm_config_changes *out)
{
    const int class = pm_key_class(key);

    if (was && class != PM_KEY_FREE && class != PM_KEY_WHOLE)
        add_differences(key, class < 0 ? PM_KEY_RESULT : (enum pm_key_class)class, was, is, out);
}

void pm_config_compare(const struct cJSON *was, const struct cJSON *is,
                       struct pm_config_changes *out)
{
    const struct cJSON *section, *v;

    cJSON_ArrayForEach(section, is)
    {
        const struct cJSON *before = cJSON_GetObjectItemCaseSensitive(was, section->string);

        if (!cJSON_IsObject(section))
            compare(section->string, before, section, out);
        else if (cJSON_IsObject(before))
            cJSON_ArrayForEach(v, section)
            {
                struct pm_str key = { 0 };

                pm_str_add(&key, "%s.%s", section->string, v->string);
                compare(key.text, cJSON_GetObjectItemCaseSensitive(before, v->string), v, out);
                pm_str_free(&key);
            }
    }
}

static void add_to_identity(struct pm_sha256 *hash, const char *key, const struct cJSON *v)
{
    char *text = cJSON_PrintUnformatted(v);

    if (pm_key_class(key) != PM_KEY_FREE) {
        pm_sha256_add(hash, key, strlen(key) + 1);
        pm_sha256_add(hash, text, strlen(text) + 1);
    }
    cJSON_free(text);
}

void pm_config_identity(const struct cJSON *dump, char out[PM_IDENTITY])
{
    const struct cJSON *section, *v;
    struct pm_sha256 hash;
    char hex[65];

    pm_sha256_start(&hash);
    cJSON_ArrayForEach(section, dump)
    {
        if (!cJSON_IsObject(section)) {
            add_to_identity(&hash, section->string, section);
            continue;
        }
        cJSON_ArrayForEach(v, section)
        {
            struct pm_str key = { 0 };

            pm_str_add(&key, "%s.%s", section->string, v->string);
            add_to_identity(&hash, key.text, v);
            pm_str_free(&key);
        }
    }
    pm_sha256_end(&hash, hex);
    snprintf(out, PM_IDENTITY, "%.*s", PM_IDENTITY - 1, hex);
}

void pm_config_value_text(const struct cJSON *value, struct pm_str *out)
{
    enum { MOST = 60 };
    char *text = value ? cJSON_PrintUnformatted(value) : NULL;
    size_t length = text ? strlen(text) : 0, shown = length;

    if (length > MOST) /* not inside a character of UTF-8 */
        for (shown = MOST; shown > 0 && ((unsigned char)text[shown] & 0xc0) == 0x80; shown--)
            ;
    pm_str_add(out, "%.*s%s", (int)shown, text ? text : "", shown < length ? "..." : "");
    cJSON_free(text);
}
