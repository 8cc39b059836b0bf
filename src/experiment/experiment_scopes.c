/* experiment_scopes: selects the trained variables and their factors, by optim.freeze,
 * optim.multipliers and init.trainable_scopes. Each is a regular expression that must match at the
 * beginning of a variable's name. */
#include "experiment/experiment_parts.h"

struct pm_experiment_regexes {
    regex_t *freeze, *multiplier, *scope;
    int freezes, multipliers, scopes; /* compiled so far */
    bool scopes_logged;               /* scopes without a match were logged */
};

/* Compiles a pattern that must match at the start of a name, as TF-Slim's scopes do. */
static int compile(const struct pm_config *c, const char *key, const char *pattern, regex_t *out)
{
    char message[256];
    struct pm_str text = { 0 };
    int bad;

    pm_str_add(&text, "^(%s)", pattern);
    bad = regcomp(out, text.text, REG_EXTENDED | REG_NOSUB);
    pm_str_free(&text);
    if (!bad)
        return PM_OK;
    regerror(bad, out, message, sizeof message);
    return pm_fail(PM_ECONFIG, "%s: %s: \"%s\" is not a regular expression: %s", c->path, key,
                   pattern, message);
}

int pm_experiment_compile_scopes(struct pm_experiment *e)
{
    const struct pm_config *c = e->config;
    struct pm_experiment_regexes *r = pm_arena_alloc(e->arena, sizeof *r);
    size_t size = sizeof(regex_t);
    int err = PM_OK;

    e->regexes = r;
    r->freeze = pm_arena_alloc(e->arena, size * ((size_t)c->optim.freeze.count + 1));
    r->scope = pm_arena_alloc(e->arena, size * ((size_t)c->init.trainable_scopes.count + 1));
    r->multiplier = pm_arena_alloc(e->arena, size * ((size_t)c->optim.multiplier_count + 1));
    for (; r->freezes < c->optim.freeze.count; r->freezes++)
        PM_TRY(compile(c, "optim.freeze", c->optim.freeze.v[r->freezes], &r->freeze[r->freezes]));
    for (; r->scopes < c->init.trainable_scopes.count; r->scopes++)
        PM_TRY(compile(c, "init.trainable_scopes", c->init.trainable_scopes.v[r->scopes],
                       &r->scope[r->scopes]));
    for (; r->multipliers < c->optim.multiplier_count; r->multipliers++)
        PM_TRY(compile(c, "optim.multipliers", c->optim.multiplier[r->multipliers].pattern,
                       &r->multiplier[r->multipliers]));
out:
    return err;
}

static bool matches(const regex_t *r, const char *name)
{
    return regexec(r, name, 0, NULL, 0) == 0;
}

float pm_experiment_multiplier(const char *variable, void *ctx)
{
    const struct pm_experiment *e = ctx;
    const struct pm_experiment_regexes *r = e->regexes;
    bool trained = r->scopes == 0;

    for (int i = 0; i < r->scopes && !trained; i++)
        trained = matches(&r->scope[i], variable);
    for (int i = 0; i < r->freezes && trained; i++)
        trained = !matches(&r->freeze[i], variable);
    if (!trained)
        return 0;
    for (int i = 0; i < r->multipliers; i++)
        if (matches(&r->multiplier[i], variable))
            return e->config->optim.multiplier[i].factor;
    return 1;
}

/* Checks that some variable is trained. Logs once the scopes that match nothing. */
int pm_experiment_check_trainable(const struct pm_experiment *e, const struct pm_net *net)
{
    struct pm_experiment_regexes *r = e->regexes;
    int trainable = 0, trained = 0;

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
                       "%s: init.trainable_scopes and optim.freeze exclude all %d variables of the "
                       "net from training; names are like %s",
                       e->config->path, trainable, net->vars[0]->name);
    for (int k = 0; k < r->scopes && !r->scopes_logged; k++) {
        int hits = 0;
        for (int i = 0; i < net->var_count; i++)
            hits += matches(&r->scope[k], net->vars[i]->name);
        if (hits == 0)
            PM_WARN("train", "init.trainable_scopes: no variable's name begins with \"%s\"",
                    e->config->init.trainable_scopes.v[k]);
    }
    r->scopes_logged = true;
    return PM_OK;
}

void pm_experiment_free_scopes(struct pm_experiment *e)
{
    struct pm_experiment_regexes *r = e->regexes;

    for (int i = 0; r && i < r->freezes; i++)
        regfree(&r->freeze[i]);
    for (int i = 0; r && i < r->scopes; i++)
        regfree(&r->scope[i]);
    for (int i = 0; r && i < r->multipliers; i++)
        regfree(&r->multiplier[i]);
}
