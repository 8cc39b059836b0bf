/* The table of new_choices.def. */
#include "jobs/new_config.h"

#include <limits.h>
#include <string.h>

static const struct pm_new_choice rows[] = {
#define PM_CHOICE(...) { __VA_ARGS__ },
#include "jobs/new_choices.def"
#undef PM_CHOICE
};

const struct pm_new_choice *pm_new_choose(const char *task, size_t pictures, int classes)
{
    for (size_t i = 0; i < PM_COUNT(rows); i++)
        if (!strcmp(rows[i].task, task) && pictures <= rows[i].most_pictures &&
            classes <= rows[i].most_classes)
            return &rows[i];
    return NULL;
}
