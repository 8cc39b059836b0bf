/* check_finding_rate: whether the learning rate is about 100 times off.
 *
 * For each optimizer, `usual` is the rate of published recipes that train a net from initial values
 * with a batch of up to 256 pictures. Two facts give the limits:
 *
 * - Above 100 times the usual rate, no published recipe trains: the first steps are larger than
 *   the weights, and the loss becomes infinite or constant. Plain gradient steps may grow in
 *   proportion to batches above 256 (Goyal et al. 2017), and so does this limit.
 * - Fine-tuning uses rates down to a hundredth of the usual one. Below a hundredth of that, which
 *   is 1e-4 of the usual rate, a run of usual length hardly changes its weights.
 *
 * The usual rates:
 *
 * - Plain gradient steps: 0.2. Momentum m adds up about 1 / (1 - m) gradients, so the rate is
 *   divided by that sum: 0.02 for 0.9. Slim's and DeepLab's recipes have 0.007 to 0.1.
 * - rmsprop, adam, nadam, adamw divide the gradient by its root mean square, so a step is about as
 *   large as the rate: 0.001 (Kingma and Ba 2015). With an epsilon of 0.001 or more, which is above
 *   the usual root mean square of gradients, the division does nothing: their steps are then plain
 *   gradient steps. TensorFlow's recipes for RMSProp use epsilon 1.
 * - lamb's step is the rate times the weights' norm: 0.01 (You et al. 2020).
 * - adagrad and ftrl divide by the root of a sum that grows: 0.05. adadelta's own unit is 1 (Zeiler
 *   2012); TensorFlow's recipes have 0.01, which is within the limits.
 *
 * A second row finds adam and its kin with epsilon 1, the default of TF-Slim's flags, and a rate
 * that suits the paper's epsilon of 1e-8. The steps are then plain gradient steps at a hundredth of
 * their usual rate. */
#include "jobs/check_findings.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#define PLAIN 0.2
#define LARGE_EPSILON 1e-3

static const struct {
    const char *optimizer;
    double usual;
    bool plain;   /* its steps are gradients times the rate */
    bool divides; /* by the root mean square of the gradient plus epsilon */
} rows[] = {
    { "sgd", PLAIN, true, false },     { "momentum", PLAIN, true, false },
    { "rmsprop", 0.001, false, true }, { "adam", 0.001, false, true },
    { "adamw", 0.001, false, true },   { "nadam", 0.001, false, true },
    { "lamb", 0.01, false, false },    { "adagrad", 0.05, false, false },
    { "ftrl", 0.05, false, false },    { "adadelta", 1, false, false },
};

/* Returns a number among the optimizer's options, or `without`. */
static double option(const cJSON *all, const char *key, double without)
{
    const cJSON *v = cJSON_GetObjectItem(all, key);

    return cJSON_IsNumber(v) ? v->valuedouble : without;
}

/* What is usual for the config's optimizer with its options. */
struct usual {
    double rate;    /* 0: unknown */
    double without; /* the rate if epsilon were small */
    double epsilon;
    bool plain;     /* its steps are plain gradient steps */
};

static void find_usual(const struct pm_config *c, const cJSON *all, struct usual *out)
{
    const double sum = 1 / fmax(1 - option(all, "momentum", 0), 1e-3);

    *out = (struct usual){ .epsilon = option(all, "epsilon", 0) };
    for (size_t i = 0; i < PM_COUNT(rows); i++)
        if (strcmp(rows[i].optimizer, c->optim.name) == 0) {
            out->plain = rows[i].plain || (rows[i].divides && out->epsilon >= LARGE_EPSILON);
            out->rate = (out->plain ? PLAIN : rows[i].usual) / sum;
            out->without = rows[i].usual / sum;
        }
}

double pm_check_largest_rate(const struct pm_config_schedule *s)
{
    double most = s->base_lr;

    for (int i = 0; s->policy == PM_POLICY_PIECEWISE && i < s->rates.count; i++)
        most = fmax(most, (double)s->rates.v[i]);
    return most;
}

static int read_usual(const struct pm_config *c, struct usual *out)
{
    const struct pm_optimizer *o = pm_optimizer_find(c->optim.name);
    void *cfg = pm_calloc(1, o->cfg_size + 1);
    cJSON *all = cJSON_CreateObject();
    int err = PM_OK;

    PM_TRY(pm_config_read(c, "optim", o->opts, cfg));
    if (o->opts)
        pm_opts_dump(o->opts, cfg, all, false);
    find_usual(c, all, out);
out:
    cJSON_Delete(all);
    pm_free(cfg);
    return err;
}

int pm_check_plain_steps(const struct pm_config *c, bool *plain)
{
    struct usual usual = { 0 };
    int err = PM_OK;

    PM_TRY(read_usual(c, &usual));
    *plain = usual.plain;
out:
    return err;
}

static int check_rate(struct pm_check *k)
{
    const struct pm_config *c = k->config;
    const double rate = pm_check_largest_rate(&c->schedule);
    struct usual usual = { 0 };
    int err = PM_OK;

    PM_TRY(read_usual(c, &usual));
    const double scale = usual.plain ? fmax(1, c->run.batch_size / 256.0) : 1;

    if (usual.rate > 0 &&
        (rate >= 100 * usual.rate * scale * (1 - 1e-9) || rate <= 1e-4 * usual.rate))
        pm_check_add(k, PM_CHECK_WARNING, "schedule.base_lr",
                       "schedule.base_lr: %g is far too %s for %s with these options, whose usual "
                       "rate is about %.2g; fine-tuning uses down to %.2g",
                       rate, rate > usual.rate ? "large" : "small", c->optim.name, usual.rate,
                       usual.rate / 100);
out:
    return err;
}
const struct pm_check_finding pm_check_finding_rate = { false, check_rate };

/* TensorFlow's recipes for RMSProp mean their epsilon of 1, so RMSProp is not warned of. */
static int check_epsilon(struct pm_check *k)
{
    const struct pm_config *c = k->config;
    const double rate = pm_check_largest_rate(&c->schedule);
    const bool adam = strstr(c->optim.name, "adam") != NULL;
    struct usual usual = { 0 };
    int err = PM_OK;

    PM_TRY(read_usual(c, &usual));
    if (adam && usual.plain && rate <= 10 * usual.without * (1 + 1e-9))
        pm_check_add(k, PM_CHECK_WARNING, "optim.epsilon",
                     "optim.epsilon: %g is larger than usual gradients, so %s does not divide by "
                     "their size, and training with schedule.base_lr %g is slow. Set "
                     "optim.epsilon=1e-8, or a rate of about %g",
                     usual.epsilon, c->optim.name, rate, usual.rate);
out:
    return err;
}
const struct pm_check_finding pm_check_finding_epsilon = { false, check_epsilon };
