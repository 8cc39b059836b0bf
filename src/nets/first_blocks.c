/* first_blocks: finds the classifier by the names of the detector's variables, which begin with
 * SCOPE/CLASSIFIER/. */
#include "nets/first_blocks.h"

#include <string.h>

/* A classifier's scope in full, or its beginning, and the layers of its stem and first block. */
static const struct { const char *classifier, *layers; } rows[] = {
    { "resnet_v1_", "(conv1|block1)/" },
    { "MobilenetV1/", "Conv2d_[01](_|/)" },
    { "MobilenetV2/", "(Conv|expanded_conv)/" },
    { "MobilenetV3/", "(Conv|expanded_conv)/" },
    { "InceptionV2/", "(Conv2d_[12]|Mixed_3b/)" },
    { "InceptionV3/", "(Conv2d_[1-4]|Mixed_5b/)" },
    { "InceptionResnetV2/", "(Conv2d_[1-4]|Mixed_5b/|Repeat/)" },
};

static const char *const scopes[] = { "FirstStageFeatureExtractor/", "FeatureExtractor/" };

/* Returns what follows the prefix in a text, or NULL if the text does not begin with it. */
static const char *after(const char *text, const char *prefix)
{
    const size_t length = strlen(prefix);

    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* Returns the expression for the classifier that this variable belongs to, or NULL. */
static const char *of_variable(const char *name, struct pm_arena *a)
{
    for (size_t s = 0; s < PM_COUNT(scopes); s++) {
        const char *rest = after(name, scopes[s]), *slash = rest ? strchr(rest, '/') : NULL;

        for (size_t i = 0; slash && i < PM_COUNT(rows); i++)
            if (after(rest, rows[i].classifier))
                return pm_arena_printf(a, "%.*s%s", (int)(slash + 1 - name), name, rows[i].layers);
    }
    return NULL;
}

const char *pm_net_first_blocks(const struct pm_net *net, struct pm_arena *a)
{
    for (int i = 0; i < net->var_count; i++) {
        const char *text = of_variable(net->vars[i]->name, a);

        if (text)
            return text;
    }
    return NULL;
}
