/* With type "classification" the checkpoint is a classifier's: it has the feature extractor's
 * variables without the detector's scope. With "detection" it is a detector's: the feature
 * extractor is restored, the predictors only with load_all.
 *
 * Faster R-CNN has two feature extractors, which together have the variables of one classifier. If
 * a variable of each is looked up under the same name, the later one is restored: the second stage
 * has the layer whose output the net uses. In a detector's checkpoint the API searches for these
 * scopes anywhere in a name. */
#include "checkpoints/init_rules.h"

#include <string.h>

struct rule {
    const char *net;       /* nets with variables below this scope */
    enum pm_init_type type;
    const char *scope;     /* restored are variables whose names begin with it */
    bool strip;            /* looked up without the scope */
    const char *from, *to; /* then a name that begins with `from` begins with `to` instead */
    bool anywhere;         /* the scope may be anywhere in the name */
};

static const struct rule rules[] = {
    { "FeatureExtractor/", PM_INIT_CLASSIFICATION, "FeatureExtractor/", true },
    { "FeatureExtractor/", PM_INIT_DETECTION, "FeatureExtractor/", false },
    { "FirstStageFeatureExtractor/", PM_INIT_CLASSIFICATION, "FirstStageFeatureExtractor/", true },
    /* Its second stage is the classifier's third group of blocks. */
    { "FirstStageFeatureExtractor/", PM_INIT_CLASSIFICATION, "SecondStageFeatureExtractor/", true,
      "InceptionResnetV2/Repeat/", "InceptionResnetV2/Repeat_2/" },
    { "FirstStageFeatureExtractor/", PM_INIT_DETECTION, "FirstStageFeatureExtractor",
      .anywhere = true },
    { "FirstStageFeatureExtractor/", PM_INIT_DETECTION, "SecondStageFeatureExtractor",
      .anywhere = true },
    { "Retina_FPN/", PM_INIT_CLASSIFICATION, "Retina_FPN/", false },
    { "Retina_FPN/", PM_INIT_DETECTION, "Retina_FPN/", false },
};

static bool begins(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

static bool is_net(const struct pm_variables *v, const char *scope)
{
    for (int i = 0; i < v->count; i++)
        if (begins(v->list[i].name, scope))
            return true;
    return false;
}

/* Returns the scope that the rules know this net by, or NULL. */
static const char *net_of(const struct pm_variables *v)
{
    for (size_t i = 0; i < PM_COUNT(rules); i++)
        if ((i == 0 || strcmp(rules[i].net, rules[i - 1].net) != 0) && is_net(v, rules[i].net))
            return rules[i].net;
    return NULL;
}

static bool matches(const struct rule *r, const char *name)
{
    return r->anywhere ? strstr(name, r->scope) != NULL : begins(name, r->scope);
}

static const char *name_by(const struct rule *r, const char *name, struct pm_arena *a)
{
    const char *rest = r->strip ? name + strlen(r->scope) : name;

    if (r->from && begins(rest, r->from))
        return pm_arena_printf(a, "%s%s", r->to, rest + strlen(r->from));
    return rest;
}

/* Clears names that a later variable has, too. */
static void keep_last(const char **names, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = i + 1; k < count && names[i]; k++)
            if (names[k] && strcmp(names[i], names[k]) == 0)
                names[i] = NULL;
}

const char *const *pm_init_names(const struct pm_variables *v, int type, bool all,
                                 struct pm_arena *a)
{
    const char *net = net_of(v), **names;

    if (!net)
        return NULL;
    names = pm_arena_alloc(a, ((size_t)v->count + 1) * sizeof *names);
    for (int i = 0; i < v->count; i++) {
        const char *name = v->list[i].name;

        names[i] = all && type == PM_INIT_DETECTION ? name : NULL;
        for (size_t k = 0; k < PM_COUNT(rules) && !names[i]; k++)
            if (strcmp(rules[k].net, net) == 0 && rules[k].type == (enum pm_init_type)type &&
                matches(&rules[k], name))
                names[i] = name_by(&rules[k], name, a);
    }
    keep_last(names, v->count);
    return names;
}
