/* The list of tasks, and the lists that tasks fill. */
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

struct pm_image8 *pm_drawings_add(struct pm_drawings *d, const char *what)
{
    PM_GROW(d->list, d->count, d->capacity);
    d->list[d->count] = (struct pm_drawing){ .what = what };
    return &d->list[d->count++].image;
}

void pm_drawings_free(struct pm_drawings *d)
{
    for (size_t i = 0; i < d->count; i++)
        pm_image_free(&d->list[i].image);
    pm_free(d->list);
    *d = (struct pm_drawings){ 0 };
}

/* Doubles the lists; the node names have a NULL at the end. */
static void grow_outputs(struct pm_net *net, struct pm_outputs *out)
{
    const size_t count = (size_t)out->count;
    const struct pm_outputs old = *out;

    out->capacity = 2 * old.capacity + 4;
    out->node = pm_arena_alloc(net->arena, ((size_t)out->capacity + 1) * sizeof *out->node);
    out->places = pm_arena_alloc(net->arena, (size_t)out->capacity * sizeof *out->places);
    if (count == 0)
        return;
    memcpy(out->node, old.node, count * sizeof *out->node);
    memcpy(out->places, old.places, count * sizeof *out->places);
}

void pm_outputs_add(struct pm_net *net, struct pm_outputs *out, const struct pm_node *node,
                    enum pm_places places)
{
    if (out->count == out->capacity)
        grow_outputs(net, out);
    out->node[out->count] = node->name;
    out->places[out->count++] = places;
}
