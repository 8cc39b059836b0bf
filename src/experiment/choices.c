/* choices: the tables of nets, optimizers, preprocessings, augmentations and tasks, as open
 * sections of a config. */
#include <assert.h>
#include <pumice/sample.h>
#include <pumice/net.h>
#include <pumice/task.h>
#include <pumice/train.h>

#include "optim/optimizer.h"

static struct pm_open_row row_of_net(const struct pm_net_row *net)
{
    return (struct pm_open_row){ .name = net->name, .help = net->help, .opts = net->opts,
                                 .preprocessing = net->preprocessing, .objects = net->objects,
                                 .task = net->task };
}

struct pm_open_sections pm_train_choices(struct pm_arena *a)
{
    size_t nets, optimizers, preprocessings, augmentations;
    const struct pm_net_row *const *net = pm_net_rows(&nets);
    const struct pm_optimizer *const *optimizer = pm_optimizers(&optimizers);
    const struct pm_preprocessing *const *preprocessing = pm_preprocessings(&preprocessings);
    const struct pm_augmentation *const *augmentation = pm_augmentations(&augmentations);
    struct pm_open_row *rows =
        pm_arena_alloc(a, (2 * nets + optimizers + preprocessings + augmentations) * sizeof *rows);
    struct pm_open_row *variants = rows + nets + optimizers + preprocessings + augmentations;
    struct pm_open_sections open = {
        .models = { rows, nets, .refusal = pm_net_refusal },
        .optimizers = { rows + nets, optimizers },
        .preprocessings = { rows + nets + optimizers, preprocessings,
                            .known_as = pm_net_preprocessing },
        .augmentations = { rows + nets + optimizers + preprocessings, augmentations },
    };
    open.tasks = pm_open_tasks(&open.task_count);

    for (size_t i = 0; i < nets; i++, rows++) {
        *rows = row_of_net(net[i]);
        if (!net[i]->torch && !net[i]->rotated_objects)
            continue;
        assert(!(net[i]->torch && net[i]->rotated_objects) && "a row has one variant");
        variants[i] = row_of_net(net[i]->torch ? net[i]->torch : net[i]);
        rows->variant = &variants[i];
        rows->variant_key = net[i]->torch ? "conventions" : "boxes";
        rows->variant_value = net[i]->torch ? "torch" : "rotated";
        if (!net[i]->torch)
            variants[i].objects = net[i]->rotated_objects;
    }
    for (size_t i = 0; i < optimizers; i++)
        *rows++ = (struct pm_open_row){ .name = optimizer[i]->name, .help = optimizer[i]->help,
                                        .opts = optimizer[i]->opts };
    for (size_t i = 0; i < preprocessings; i++)
        *rows++ = (struct pm_open_row){ .name = preprocessing[i]->name,
                                        .help = preprocessing[i]->help,
                                        .opts = preprocessing[i]->opts };
    for (size_t i = 0; i < augmentations; i++)
        *rows++ = (struct pm_open_row){ .name = augmentation[i]->name,
                                        .help = augmentation[i]->help,
                                        .opts = augmentation[i]->opts };
    return open;
}
