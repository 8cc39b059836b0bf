/* check_findings: runs the rows of check_findings.def. */
#include "jobs/check_findings.h"

#include <cjson/cJSON.h>
#include <stdarg.h>

static const struct pm_check_finding *const rows[] = {
#define PM_CHECK_FINDING(name) &pm_check_finding_##name,
#include "jobs/check_findings.def"
#undef PM_CHECK_FINDING
};

cJSON *pm_check_add(struct pm_check *k, enum pm_check_level level, const char *key,
                    const char *format, ...)
{
    static const char *const names[] = { "note", "warning" };
    cJSON *o = cJSON_CreateObject();
    struct pm_str text = { 0 };
    va_list ap;

    va_start(ap, format);
    pm_str_add_args(&text, format, ap);
    va_end(ap);
    cJSON_AddStringToObject(o, "level", names[level]);
    cJSON_AddStringToObject(o, "key", key);
    cJSON_AddStringToObject(o, "text", text.text);
    cJSON_AddItemToArray(k->list, o);
    pm_str_free(&text);
    return o;
}

int pm_check_findings_run(struct pm_check *k)
{
    int err = PM_OK;

    for (size_t i = 0; i < PM_COUNT(rows); i++)
        if (k->e || !rows[i]->data)
            PM_TRY(rows[i]->run(k));
out:
    return err;
}
