/* choices: the tables of nets, optimizers and preprocessings as a config's open sections. */
#include <pumice/data.h>
#include <pumice/net.h>
#include <pumice/train.h>

#include "train/optimizer.h"

struct pm_open_sections pm_train_choices(struct pm_arena *a)
{
    size_t nets, optimizers, preprocessings;
    const struct pm_net_row *const *net = pm_net_rows(&nets);
    const struct pm_optimizer *const *optimizer = pm_optimizers(&optimizers);
    const struct pm_preprocessing *const *preprocessing = pm_preprocessings(&preprocessings);
    struct pm_open_row *rows =
        pm_arena_alloc(a, (nets + optimizers + preprocessings) * sizeof *rows);
    struct pm_open_sections open = {
        .models = { rows, nets, .refusal = pm_net_refusal },
        .optimizers = { rows + nets, optimizers },
        .preprocessings = { rows + nets + optimizers, preprocessings,
                            .known_as = pm_preprocessing_of_net },
    };

    for (size_t i = 0; i < nets; i++)
        *rows++ =
            (struct pm_open_row){ net[i]->name, net[i]->help, net[i]->opts, net[i]->preprocessing };
    for (size_t i = 0; i < optimizers; i++)
        *rows++ = (struct pm_open_row){ optimizer[i]->name, optimizer[i]->help, optimizer[i]->opts,
                                        NULL };
    for (size_t i = 0; i < preprocessings; i++)
        *rows++ = (struct pm_open_row){ preprocessing[i]->name, preprocessing[i]->help,
                                        preprocessing[i]->opts, NULL };
    return open;
}
