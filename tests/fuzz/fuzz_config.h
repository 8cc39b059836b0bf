/* Shared by the fuzz targets of configurations. */
#ifndef FUZZ_CONFIG_H
#define FUZZ_CONFIG_H

#include <pumice/config.h>
#include <pumice/net.h>
#include <pumice/task.h>

#include <cjson/cJSON.h>

enum { FUZZ_ROWS = 1024 }; /* more than any table has */
static struct pm_open_row fuzz_nets[FUZZ_ROWS], fuzz_preprocessings[FUZZ_ROWS],
    fuzz_augmentations[FUZZ_ROWS];
static const struct pm_open_row fuzz_optimizers[] = { { "sgd", "", NULL, NULL },
                                                      { "momentum", "", NULL, NULL } };

/* The sections that the program's own tables offer, and two optimizers without options; made
 * once. */
static inline const struct pm_open_sections *fuzz_open_sections(void)
{
    static struct pm_open_sections open;
    size_t n, m, k;
    const struct pm_net_row *const *net = pm_net_rows(&n);
    const struct pm_preprocessing *const *pre = pm_preprocessings(&m);
    const struct pm_augmentation *const *augmentation = pm_augmentations(&k);

    if (open.models.count)
        return &open;
    if (n > FUZZ_ROWS || m > FUZZ_ROWS || k > FUZZ_ROWS)
        __builtin_trap();
    for (size_t i = 0; i < n; i++)
        fuzz_nets[i] =
            (struct pm_open_row){ net[i]->name, "", net[i]->opts, net[i]->preprocessing };
    for (size_t i = 0; i < m; i++)
        fuzz_preprocessings[i] = (struct pm_open_row){ pre[i]->name, "", pre[i]->opts, NULL };
    for (size_t i = 0; i < k; i++)
        fuzz_augmentations[i] =
            (struct pm_open_row){ augmentation[i]->name, "", augmentation[i]->opts, NULL };
    size_t tasks;
    const struct pm_open_task *const *task = pm_open_tasks(&tasks);

    open = (struct pm_open_sections){ { fuzz_nets, n }, { fuzz_optimizers, 2 },
                                      { fuzz_preprocessings, m }, { fuzz_augmentations, k }, task,
                                      tasks };
    return &open;
}

/* Prints and destroys a configuration. Returns NULL for NULL. */
static inline char *fuzz_print_config(struct pm_config **c)
{
    char *printed = NULL;

    if (*c) {
        cJSON *dump = pm_config_dump(*c);

        printed = pm_json_print(dump);
        cJSON_Delete(dump);
    }
    pm_config_destroy(c);
    return printed;
}

/* The printed form of the configuration in text, or NULL when it is refused. */
static inline char *fuzz_resolve_config(const char *text)
{
    struct pm_config *c = NULL;

    pm_config_parse("fuzz", text, NULL, 0, fuzz_open_sections(), &c);
    return fuzz_print_config(&c);
}

/* The printed form of an accepted configuration must be accepted and print the same again. Frees
 * first. */
static inline void fuzz_check_config(char *first)
{
    if (!first)
        return;
    char *second = fuzz_resolve_config(first);

    if (!second || strcmp(first, second) != 0)
        __builtin_trap();
    pm_free(second);
    pm_free(first);
}

#endif
