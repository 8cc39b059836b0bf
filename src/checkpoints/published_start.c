/* published_start: init.checkpoint "imagenet". The row of the config's net is loaded as if its path
 * were given, with the settings that such a start needs:
 *
 * - The last layer is excluded if it has other classes. The shapes of its variables show that: they
 *   are equal except for the last dimension, which is the row's number of classes.
 * - The file's moving averages are used if it has any, because the published accuracy is theirs.
 * - A segmentation net or a detector gets its backbone's values only. */
#include "checkpoints/init_rules.h"
#include "checkpoints/match.h"
#include "checkpoints/published.h"
#include "checkpoints/warm_start.h"

#include <cjson/cJSON.h>
#include <string.h>

bool pm_published_is_wanted(const struct pm_config *c)
{
    return c->init.checkpoint && strcmp(c->init.checkpoint, PM_PUBLISHED_IMAGENET) == 0;
}

/* Returns the net's conventions: as the config sets them, or the net's default. NULL: the net has
 * no such option. In the arena. */
static const char *conventions_of(const struct pm_config *c, struct pm_arena *a)
{
    cJSON *all = pm_config_dump(c);
    const char *value = cJSON_GetStringValue(
        cJSON_GetObjectItem(cJSON_GetObjectItem(all, "model"), "conventions"));
    const char *copy = value ? pm_arena_strdup(a, value) : NULL;

    cJSON_Delete(all);
    return copy;
}

const struct pm_published *pm_published_of(const struct pm_config *c)
{
    struct pm_arena *a = pm_arena_create();
    const struct pm_published *p =
        c->model.name ? pm_published_first(c->model.name, conventions_of(c, a)) : NULL;

    pm_arena_destroy(&a);
    return p;
}

int pm_published_check(const struct pm_config *c)
{
    int err = PM_OK;
    struct pm_arena *a = NULL;
    const struct pm_published *p;
    char where[512];

    if (!pm_published_is_wanted(c))
        return PM_OK;
    if (c->init.restore == PM_RESTORE_ALL)
        return pm_fail(PM_ECONFIG,
                       "%s: init.restore: \"all\" continues a training, but a published checkpoint "
                       "has no step and no optimizer slots: leave init.restore out",
                       pm_config_source(c, "init.restore"));
    snprintf(where, sizeof where, "%s: init.checkpoint", pm_config_source(c, "init.checkpoint"));
    a = pm_arena_create();
    err = pm_published_for(c->model.name, conventions_of(c, a), where, &p);
    pm_arena_destroy(&a);
    return err;
}

/* ---- the last layer ---------------------------------------------------------------------- */

/* Whether variable i would fit if the checkpoint had as many classes as the net. */
static bool is_head(const struct pm_match *m, int i, int classes)
{
    const struct pm_file_tensor *t = m->of[i].tensor;
    struct pm_shape s = m->v->list[i].shape;

    if (m->of[i].fate != PM_FATE_MISSHAPEN || t->rank == 0 || s.rank == 0 ||
        t->dim[t->rank - 1] != classes)
        return false;
    s.dim[s.rank - 1] = classes;
    return pm_checkpoint_fits(t, s);
}

/* Adds the names of the last layer's variables to init.exclude_scopes. */
static int exclude_head(const struct pm_published *p, const char *path, const char *where,
                        const struct pm_variables *v, struct pm_arena *a,
                        struct pm_config_init *init)
{
    int err = PM_OK, added = 0, theirs = 0;
    struct pm_checkpoint *from = NULL;
    struct pm_match m = { 0 };
    const int have = init->exclude_scopes.count;
    const char **scopes = pm_arena_alloc(a, (size_t)(have + v->count + 1) * sizeof *scopes);

    PM_TRY(pm_checkpoint_open(NULL, path, where, &from));
    PM_TRY(pm_values_translate(from, v));
    pm_match_make(from, v, false, &init->exclude_scopes, NULL, &m);
    for (int i = 0; i < have; i++)
        scopes[i] = init->exclude_scopes.v[i];
    for (int i = 0; i < v->count; i++)
        if (is_head(&m, i, p->classes)) {
            const struct pm_shape *s = &v->list[i].shape;
            theirs = s->dim[s->rank - 1];
            scopes[have + added++] = pm_arena_strdup(a, v->list[i].name);
        }
    init->exclude_scopes = (struct pm_strings){ have + added, scopes };
    if (added)
        PM_INFO("init", "the last layer keeps its initial values: it has %d classes in %s and %d "
                "in the net", p->classes, p->name, theirs);
out:
    pm_match_free(&m);
    pm_checkpoint_close(&from);
    return err;
}

/* ---- the start --------------------------------------------------------------------------- */

/* Keeps the origin of the weights in the run folder. */
static int write_origin(const struct pm_config *c, const char *run, const struct pm_published *p,
                        const struct pm_published_copy *copy, struct pm_arena *a)
{
    int err = PM_OK;
    cJSON *o = cJSON_CreateObject();
    char *text;

    cJSON_AddStringToObject(o, "checkpoint", c->init.checkpoint);
    cJSON_AddStringToObject(o, "name", p->name);
    cJSON_AddStringToObject(o, "address", copy->address);
    cJSON_AddStringToObject(o, "file", pm_published_file_name(p));
    cJSON_AddStringToObject(o, "sha256", copy->sha256);
    cJSON_AddStringToObject(o, "sha256_published", p->sha256);
    cJSON_AddStringToObject(o, "licence", p->licence);
    text = pm_json_print(o);
    PM_TRY(pm_file_write(pm_arena_printf(a, "%s/init.json", run), text, strlen(text)));
out:
    pm_free(text);
    cJSON_Delete(o);
    return err;
}

static void tell(const struct pm_config *c, const struct pm_published *p,
                 const struct pm_published_copy *copy, bool backbone)
{
    const char *is = c->input.preprocessing;

    PM_INFO("init", "%s is %s, %d classes of %s, from %s, SHA-256 %s", PM_PUBLISHED_IMAGENET,
            p->name, p->classes, p->data, copy->address, copy->sha256);
    if (p->settings[0])
        PM_INFO("init", "%s was trained with %s", p->name, p->settings);
    if (!backbone && is && strcmp(is, p->preprocessing) != 0)
        PM_WARN("init", "%s was trained with input.preprocessing \"%s\"; this config has \"%s\", "
                "whose pixel values may differ", p->name, p->preprocessing, is);
}

int pm_published_start(const struct pm_config *c, const struct pm_variables *v, const char *run,
                       struct pm_arena *a, struct pm_config_init *init)
{
    int err = PM_OK;
    const struct pm_published *p;
    struct pm_published_copy copy;
    const char *where =
        pm_arena_printf(a, "%s: init.checkpoint", pm_config_source(c, "init.checkpoint"));
    const bool torch = v->conventions == PM_CONVENTIONS_TORCH;

    *init = c->init;
    if (!pm_published_is_wanted(c))
        return PM_OK;
    PM_TRY(pm_published_for(c->model.name, torch ? "torch" : "tensorflow", where, &p));
    const bool backbone = p->classes == 0 || strcmp(p->net, c->model.name) != 0;
    const char *advice = pm_arena_printf(
        a, "run 'pumice checkpoint download %s --from ADDRESS' with another server", p->name);
    PM_TRY(pm_published_get(p, &(struct pm_published_want){ .advice = advice }, a, &copy));
    init->checkpoint = copy.path;
    if (strcmp(pm_config_origin(c, "init.averages"), "default") == 0)
        init->averages = PM_AVERAGES_AUTO;
    if (pm_init_names(v, PM_INIT_CLASSIFICATION, false, a))
        init->type = PM_INIT_CLASSIFICATION;
    if (backbone)
        init->ignore_missing = true;
    else
        PM_TRY(exclude_head(p, copy.path, where, v, a, init));
    tell(c, p, &copy, backbone);
    if (run)
        PM_TRY(write_origin(c, run, p, &copy, a));
out:
    return err;
}
