/* trainer_balance: shares out the batch by the measured speeds of the clones (run.balance "auto",
 * balancer.h). With several processes, all measure the same steps, and the chief decides. */
#include "train/trainer.h"

#include <pumice/replicas.h>

/* Describes the clones of all processes to the balancer. */
static void list_clones(struct pm_trainer *t)
{
    const struct pm_trainer_replicas *x = &t->replicas;

    for (int i = 0, rank = 0, left = x->r ? x->of_rank[0] : 0; i < t->balance.count; i++, left--) {
        struct pm_balanced *k = &t->balance.clones[i];

        while (x->r && left == 0)
            left = x->of_rank[++rank];
        k->host = x->r ? pm_replicas_host(x->r, rank) : NULL;
        k->device = x->r ? x->names[i] : t->run.specs[i].info.name;
        k->share = x->r ? x->shares[i] : t->run.specs[i].share;
    }
}

/* Sets the shares that the next clones get. */
static void take_shares(struct pm_trainer *t)
{
    const struct pm_trainer_replicas *x = &t->replicas;

    for (int i = 0; i < t->balance.count; i++)
        if (x->r)
            x->shares[i] = t->balance.clones[i].share;
    for (int i = 0; i < t->run.spec_count; i++)
        t->run.specs[i].share = t->balance.clones[x->first + i].share;
}

/* Replaces the shares of all processes by the chief's. */
static int agree(struct pm_trainer *t)
{
    int err = PM_OK;

    PM_TRY(pm_trainer_agree(t, &t->balance.step, sizeof t->balance.step));
    PM_TRY(pm_trainer_agree(t, &t->balance.moved, sizeof t->balance.moved));
    for (int i = 0; i < t->balance.count; i++)
        PM_TRY(pm_trainer_agree(t, &t->balance.clones[i].share, sizeof(double)));
out:
    return err;
}

void pm_trainer_measure_again(struct pm_trainer *t)
{
    const bool measuring = t->balance.step >= 0;
    const int count = t->replicas.r ? t->replicas.count : t->run.spec_count;

    pm_balancer_free(&t->balance);
    pm_balancer_start(&t->balance, count);
    list_clones(t);
    if (!measuring || count == 1)
        t->balance.step = -1;
}

int pm_trainer_start_balance(struct pm_trainer *t)
{
    const struct pm_config *c = t->run.c;
    int err = PM_OK;

    if (c->run.balance != PM_BALANCE_AUTO)
        t->balance.step = -1;
    pm_trainer_measure_again(t);
    if (t->balance.step < 0)
        return PM_OK;
    if (pm_trainer_is_chief(t) &&
        pm_balancer_load(c->run.folder, t->balance.clones, t->balance.count))
        t->balance.step = -1;
    PM_TRY(agree(t));
    take_shares(t);
out:
    return err;
}

/* Keeps the values and changes the shares: makes nets and plans again. */
static int rebalance(struct pm_trainer *t)
{
    int err = PM_OK;

    PM_TRY(pm_trainer_snapshot(t));
    pm_watch_leave(t->watch);
    pm_evaluator_destroy(&t->saving.evaluator);
    pm_clones_destroy(&t->run.clones);
    PM_TRY(pm_trainer_clones(t));
    PM_TRY(pm_trainer_restore(t));
    if (t->replicas.r) /* its slice of the batch is another one */
        PM_TRY(pm_trainer_loader(t));
out:
    return err;
}

int pm_trainer_balance(struct pm_trainer *t)
{
    int err = PM_OK;

    if (!pm_balancer_step(&t->balance, t->run.clones))
        return PM_OK;
    PM_TRY(agree(t));
    take_shares(t);
    if (t->balance.moved && pm_trainer_is_chief(t))
        pm_balancer_say(&t->balance);
    /* Shares without a lost device are not saved: a later start uses all devices again. */
    if (!pm_trainer_lost(t)[0] && pm_trainer_is_chief(t))
        PM_TRY(pm_balancer_save(t->run.c->run.folder, t->balance.clones, t->balance.count));
    if (t->balance.moved)
        PM_TRY(rebalance(t));
out:
    return err;
}
