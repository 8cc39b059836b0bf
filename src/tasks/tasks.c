/* The list of tasks. */
#include <pumice/task.h>

#include <string.h>

#define PM_TASK(name) extern const struct pm_task_row pm_task_##name;
#include "tasks/tasks.def"
#undef PM_TASK

static const struct pm_task_row *const tasks[] = {
#define PM_TASK(name) &pm_task_##name,
#include "tasks/tasks.def"
#undef PM_TASK
};

const struct pm_task_row *const *pm_tasks(size_t *count)
{
    *count = PM_COUNT(tasks);
    return tasks;
}

static const struct pm_open_task *const open_tasks[] = {
#define PM_TASK(name) &pm_task_##name.config,
#include "tasks/tasks.def"
#undef PM_TASK
};

const struct pm_open_task *const *pm_open_tasks(size_t *count)
{
    *count = PM_COUNT(open_tasks);
    return open_tasks;
}

const struct pm_task_row *pm_task_find(const char *name)
{
    for (size_t i = 0; i < PM_COUNT(tasks); i++)
        if (strcmp(tasks[i]->config.name, name) == 0)
            return tasks[i];
    return NULL;
}
