/* experiment_scopes: selects the trained variables and their factors, by optim.trainable,
 * init.trainable_scopes, optim.freeze and optim.multipliers. Each is a regular expression that must
 * match at the beginning of a variable's name (base/patterns.h). */
#include "experiment/experiment_parts.h"

#include "base/patterns.h"

/* Lists that allow come before the list that freezes. */
enum list { TRAINABLE, SCOPES, FREEZE, MULTIPLIERS, LISTS };
static const char *const keys[LISTS] = { "optim.trainable", "init.trainable_scopes", "optim.freeze",
                                         "optim.multipliers" };

struct pm_experiment_regexes {
    struct pm_patterns *list[LISTS];
    struct pm_strings texts[LISTS];
    bool checked;
};

int pm_experiment_compile_scopes(struct pm_experiment *e)
{
    const struct pm_config *c = e->config;
    struct pm_experiment_regexes *r = pm_arena_alloc(e->arena, sizeof *r);
    const char **factors = pm_arena_alloc(e->arena, ((size_t)c->optim.multiplier_count + 1)
                                                        * sizeof *factors);
    int err = PM_OK;

    for (int i = 0; i < c->optim.multiplier_count; i++)
        factors[i] = c->optim.multiplier[i].pattern;
    *r = (struct pm_experiment_regexes) {
        .texts = { c->optim.trainable, c->init.trainable_scopes, c->optim.freeze,
                   { c->optim.multiplier_count, factors } },
    };
    e->regexes = r;
    for (int i = 0; i < LISTS; i++)
        PM_TRY(pm_patterns_compile(
            r->texts[i].v, r->texts[i].count,
            pm_arena_printf(e->arena, "%s: %s", pm_config_source(c, keys[i]), keys[i]),
            &r->list[i]));
out:
    return err;
}

static bool allowed(const struct pm_patterns *p, const char *name)
{
    return pm_patterns_count(p) == 0 || pm_patterns_find(p, name) >= 0;
}

float pm_experiment_multiplier(const char *variable, void *ctx)
{
    const struct pm_experiment *e = ctx;
    const struct pm_experiment_regexes *r = e->regexes;
    int factor;

    if (!allowed(r->list[TRAINABLE], variable) || !allowed(r->list[SCOPES], variable) ||
        pm_patterns_find(r->list[FREEZE], variable) >= 0)
        return 0;
    factor = pm_patterns_find(r->list[MULTIPLIERS], variable);
    return factor >= 0 ? e->config->optim.multiplier[factor].factor : 1;
}

/* Checks that each pattern of a list matches a variable. A factor for no variable is an error, as
 * in TF-Slim; the other lists only get a warning. A task's own factors may match nothing. */
static int check_list(const struct pm_experiment *e, const struct pm_net *net, enum list which)
{
    const struct pm_experiment_regexes *r = e->regexes;
    const struct pm_strings *texts = &r->texts[which];

    for (int k = 0; k < texts->count; k++) {
        int hits = 0;

        for (int i = 0; i < net->var_count; i++)
            hits += pm_patterns_one(r->list[which], k, net->vars[i]->name);
        if (hits || !*texts->v[k])
            continue;
        if (which != MULTIPLIERS)
            PM_WARN("train", "%s: no variable's name begins with \"%s\"", keys[which],
                    texts->v[k]);
        else if (e->config->optim.multipliers)
            return pm_fail(PM_ECONFIG, "%s: %s: no variable's name begins with \"%s\", so its "
                           "factor changes nothing; names are like %s", e->config->path,
                           keys[which], texts->v[k], net->vars[0]->name);
    }
    return PM_OK;
}

/* Checks that every pattern can be matched within the limits. */
static int check_limits(const struct pm_experiment_regexes *r, const struct pm_net *net)
{
    for (int k = 0; k < LISTS; k++)
        for (int i = 0; i < net->var_count; i++)
            if (pm_patterns_find(r->list[k], net->vars[i]->name) == PM_ECONFIG)
                return PM_ECONFIG;
    return PM_OK;
}

int pm_experiment_check_trainable(const struct pm_experiment *e, const struct pm_net *net)
{
    struct pm_experiment_regexes *r = e->regexes;
    int trainable = 0, trained = 0, err = PM_OK;

    PM_TRY(check_limits(r, net));
    for (int i = 0; i < net->var_count; i++) {
        const bool is = net->vars[i]->trainable;
        trainable += is;
        trained += is && pm_experiment_multiplier(net->vars[i]->name, (void *)e) != 0;
    }
    if (trainable == 0)
        return pm_fail(PM_ECONFIG, "%s: the net has nothing to train: no layer of it has weights",
                       e->config->path);
    if (trained == 0)
        return pm_fail(PM_ECONFIG,
                       "%s: optim.trainable, init.trainable_scopes, optim.freeze and "
                       "optim.multipliers exclude all %d variables of the net from training; names "
                       "are like %s",
                       pm_config_source(e->config, "optim.trainable"), trainable,
                       net->vars[0]->name);
    for (int k = 0; k < LISTS && !r->checked; k++)
        PM_TRY(check_list(e, net, k));
    r->checked = true;
out:
    return err;
}

void pm_experiment_free_scopes(struct pm_experiment *e)
{
    struct pm_experiment_regexes *r = e->regexes;

    for (int i = 0; r && i < LISTS; i++)
        pm_patterns_destroy(&r->list[i]);
}
