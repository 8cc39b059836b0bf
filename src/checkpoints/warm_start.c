/* warm_start: loads a checkpoint's values into a model for training or evaluation. All variables
 * are looked up before the first is read (match.c). */
#include "checkpoints/init_rules.h"
#include "checkpoints/match.h"
#include "checkpoints/warm_start.h"

#include <pumice/names.h>
#include <limits.h>
#include <string.h>

int pm_values_translate(struct pm_checkpoint *c, const struct pm_variables *v)
{
    int err = PM_OK;

    if (pm_names_are_torch(c->tensors)) {
        PM_TRY(pm_names_torch(v, c->tensors, &c->tensors));
        PM_INFO("checkpoint", "%s: PyTorch's names and layouts are translated to those of the net",
                c->path);
    } else if (pm_names_are_inception_trainer(c->tensors)) {
        PM_TRY(pm_names_from_inception_trainer(c->tensors, &c->tensors));
        PM_INFO("checkpoint", "%s: the Inception trainer's names are translated to TF-Slim's",
                c->path);
    } else if (strcmp(pm_tensor_file_format(c->tensors), "ONNX") == 0) {
        PM_TRY(pm_names_onnx(v, c->tensors, &c->tensors));
    }
out:
    return err;
}

/* ---- eval and predict ------------------------------------------------------------------- */

int pm_checkpoint_choose_averages(const struct pm_checkpoint *from, int wanted, const char *place,
                                  const char *key, bool *use)
{
    *use = wanted != PM_AVERAGES_OFF && pm_checkpoint_averages(from) > 0;
    if (wanted == PM_AVERAGES_ON && !*use)
        return pm_fail(PM_EDATA,
                       "%s: %s is on, but %s has no moving averages (training keeps them if "
                       "optim.moving_average_decay is set); set it to auto or off",
                       place, key, from->path);
    return PM_OK;
}

static int check_whole(const struct pm_match *m, const char *where)
{
    const char *path = m->from->path, *name;
    struct pm_str more = { 0 };
    char is[96], wanted[64];
    int i, err = PM_OK;

    if (m->count[PM_FATE_MISSHAPEN]) {
        i = m->first[PM_FATE_MISSHAPEN];
        pm_match_classes(m, &more);
        err =
            pm_fail(PM_EDATA,
                    "%s: %d of the net's %d variables have other shapes in %s, the first "
                    "is '%s', %s there and %s in the net%s: model.name and model.num_classes must "
                    "be those of the checkpoint",
                    where, m->count[PM_FATE_MISSHAPEN], m->v->count, path, m->v->list[i].name,
                    pm_file_tensor_shape(m->of[i].tensor, is),
                    pm_shape_text(m->v->list[i].shape, wanted), more.text ? more.text : "");
    } else if (m->count[PM_FATE_MISSING]) {
        name = m->v->list[m->first[PM_FATE_MISSING]].name;
        pm_match_nearest(m, name, &more);
        err = pm_fail(PM_EDATA, "%s: %d of the net's %d variables are not in %s, the first is "
                      "'%s'%s: is it a checkpoint of this net (model.name)?", where,
                      m->count[PM_FATE_MISSING], m->v->count, path, name,
                      more.text ? more.text : "");
    } else if (m->count[PM_FATE_LATE]) {
        err = pm_fail(PM_EDATA,
                      "%s: %d ranges of the quantised net are not in %s, the first is '%s': the "
                      "checkpoint was trained without quantisation: set model.quantize_delay to "
                      "-1, or start a quantised training from it (init.checkpoint)",
                      where, m->count[PM_FATE_LATE], path, m->v->list[m->first[PM_FATE_LATE]].name);
    }
    pm_str_free(&more);
    return err;
}

int pm_values_find(const struct pm_variables *v, struct pm_checkpoint *from, bool averages,
                   const char *where, struct pm_match *out)
{
    int err = PM_OK;

    *out = (struct pm_match){ 0 };
    PM_TRY(pm_values_translate(from, v));
    pm_match_make(from, v, averages, NULL, NULL, out);
    pm_match_tell(out, "", 8);
    PM_TRY(check_whole(out, where));
out:
    if (err < 0)
        pm_match_free(out);
    return err;
}

int pm_values_load(struct pm_variables *v, struct pm_checkpoint *from, bool averages,
                   const char *where)
{
    int err = PM_OK;
    struct pm_match m = { 0 };

    PM_TRY(pm_values_find(v, from, averages, where, &m));
    PM_TRY(pm_match_write(&m, v));
out:
    pm_match_free(&m);
    return err;
}

/* ---- init.checkpoint -------------------------------------------------------------------- */

/* Warns of scopes that match no variable: they are a typing mistake, or meant for another net. */
static void warn_of_idle_scopes(const struct pm_variables *v, const struct pm_strings *scopes)
{
    const char **names = pm_malloc(((size_t)v->count + 1) * sizeof *names);

    for (int i = 0; i < v->count; i++)
        names[i] = v->list[i].name;
    for (int k = 0; k < scopes->count; k++) {
        const struct pm_strings scope = { 1, &scopes->v[k] };
        const char *near;
        int hits = 0;

        for (int i = 0; i < v->count; i++)
            hits += pm_match_begins(names[i], &scope);
        near = hits ? NULL : pm_nearest(scopes->v[k], names, (size_t)v->count);
        if (hits == 0)
            PM_WARN("init", "init.exclude_scopes: no variable's name begins with \"%s\"%s%s",
                    scopes->v[k], near ? "; the nearest is " : "", near ? near : "");
    }
    pm_free(names);
}

static int nothing_taken(const struct pm_match *m, const struct pm_config_init *init,
                         const char *where)
{
    const bool classifier = init->type == PM_INIT_CLASSIFICATION;
    struct pm_str near = { 0 };
    int err;

    if (m->count[PM_FATE_MISSING])
        pm_match_nearest(m, m->v->list[m->first[PM_FATE_MISSING]].name, &near);
    err = pm_fail(PM_EDATA,
                  "%s: %s has no value for this net: of the net's %d variables, %d are missing%s, "
                  "%d have other shapes, %d are excluded; name a checkpoint of the same net%s",
                  where, m->from->path, m->v->count, m->count[PM_FATE_MISSING],
                  near.text ? near.text : "", m->count[PM_FATE_MISSHAPEN],
                  m->count[PM_FATE_EXCLUDED] + m->count[PM_FATE_OUTSIDE],
                  !m->names    ? ""
                  : classifier ? ", or set init.type to \"detection\" if it is a detector's"
                               : ", or set init.type to \"classification\" if it is a "
                                 "classifier's");
    pm_str_free(&near);
    return err;
}

static int misshapen(const struct pm_match *m, const char *where, const char *scopes)
{
    const int i = m->first[PM_FATE_MISSHAPEN];
    struct pm_str classes = { 0 };
    char is[96], wanted[64];
    int err;

    pm_match_classes(m, &classes);
    err = pm_fail(PM_EDATA,
                  "%s: %d of %d variables have other shapes in %s, the first is '%s', %s "
                  "there and %s in the net%s: %s%s",
                  where, m->count[PM_FATE_MISSHAPEN], m->v->count, m->from->path,
                  m->v->list[i].name, pm_file_tensor_shape(m->of[i].tensor, is),
                  pm_shape_text(m->v->list[i].shape, wanted), classes.text ? classes.text : "",
                  scopes ? "to give such variables their initial values, set "
                         : "name the beginnings of such names in init.exclude_scopes",
                  scopes ? scopes : "");
    pm_str_free(&classes);
    return err;
}

static int missing(const struct pm_match *m, const char *where, const char *scopes)
{
    const char *name = m->v->list[m->first[PM_FATE_MISSING]].name;
    struct pm_str near = { 0 };
    int err;

    pm_match_nearest(m, name, &near);
    err = pm_fail(PM_EDATA,
                  "%s: %d of %d variables are not in %s, the first is '%s'%s: %s%s, or set "
                  "init.ignore_missing",
                  where, m->count[PM_FATE_MISSING], m->v->count, m->from->path, name,
                  near.text ? near.text : "",
                  scopes ? "set " : "name the beginnings of such names in init.exclude_scopes",
                  scopes ? scopes : "");
    pm_str_free(&near);
    return err;
}

static int check(const struct pm_match *m, const struct pm_config_init *init, const char *where)
{
    char *scopes;
    int err = PM_OK;

    if (m->count[PM_FATE_TAKEN] == 0)
        return nothing_taken(m, init, where);
    if (m->names) /* a detector's rules restore what fits */
        return PM_OK;
    scopes = pm_match_scopes(m, !init->ignore_missing);
    if (m->count[PM_FATE_MISSHAPEN])
        err = misshapen(m, where, scopes);
    else if (m->count[PM_FATE_MISSING] && !init->ignore_missing)
        err = missing(m, where, scopes);
    pm_free(scopes);
    return err;
}

/* Logs what init.type and init.load_all leave out. */
static void tell_rules(const struct pm_match *m, const struct pm_config_init *init)
{
    const char *type = init->type == PM_INIT_CLASSIFICATION ? "classification" : "detection";
    const int outside = m->count[PM_FATE_OUTSIDE];

    if (outside)
        PM_INFO("init", "%d %s initial values, the first is %s: init.type \"%s\" "
                "restores the feature extractor only%s", outside,
                pm_plural(outside, "variable keeps its", "variables keep their"),
                m->v->list[m->first[PM_FATE_OUTSIDE]].name, type,
                init->type == PM_INIT_DETECTION ? "; init.load_all restores all" : "");
    if (!m->names && (init->type == PM_INIT_CLASSIFICATION || init->load_all))
        PM_WARN("init", "%s has no effect: this net has no feature extractor with a scope of its "
                "own (FeatureExtractor/), so its variables are restored by their names",
                init->load_all ? "init.load_all" : "init.type");
}

int pm_values_warm_start(struct pm_variables *v, const struct pm_config_init *init,
                         const char *place)
{
    int err = PM_OK;
    struct pm_checkpoint *from = NULL;
    struct pm_match m = { 0 };
    struct pm_arena *arena = pm_arena_create();
    const char *const *names = pm_init_names(v, init->type, init->load_all, arena);
    bool averages;
    char where[512];

    snprintf(where, sizeof where, "%s: init.checkpoint", place);
    PM_TRY(pm_checkpoint_open(NULL, init->checkpoint, where, &from));
    PM_TRY(pm_checkpoint_choose_averages(from, init->averages, place, "init.averages", &averages));
    PM_TRY(pm_values_translate(from, v));
    pm_match_make(from, v, averages, &init->exclude_scopes, names, &m);
    if (m.count[PM_FATE_TAKEN])
        pm_match_tell(&m, names || init->ignore_missing ? ", keeps its initial value" : "",
                      names ? 8 : INT_MAX);
    tell_rules(&m, init);
    warn_of_idle_scopes(v, &init->exclude_scopes);
    pm_match_tell_rest(&m);
    PM_TRY(check(&m, init, where));
    PM_TRY(pm_match_write(&m, v));
    PM_INFO("init", "%d of %d variables from %s (%s), %d excluded, %d missing",
            m.count[PM_FATE_TAKEN], v->count, from->path, pm_tensor_file_format(from->tensors),
            m.count[PM_FATE_EXCLUDED], m.count[PM_FATE_MISSING]);
    if (m.count[PM_FATE_LATE])
        PM_INFO("init",
                "%d ranges of the quantised net are not in it: they are tracked from now on",
                m.count[PM_FATE_LATE]);
    if (m.count[PM_FATE_MISSHAPEN])
        PM_INFO("init", "%d %s initial values", m.count[PM_FATE_MISSHAPEN],
                pm_plural(m.count[PM_FATE_MISSHAPEN], "variable of another shape keeps its",
                          "variables of another shape keep their"));
    if (averages)
        PM_INFO("init", "%d of the values are its moving averages (init.averages)", m.averages);
out:
    pm_arena_destroy(&arena);
    pm_match_free(&m);
    pm_checkpoint_close(&from);
    return err;
}
