/* experiment_photos: data.folder may be a folder of pictures by class. The experiment then reads
 * its conversion (data/photos.h).
 *
 * A run keeps the pictures that it began with, because its checkpoint names the conversion. Other
 * pictures would also be divided differently, and evaluation would see training pictures. */
#include "experiment/experiment_classes.h"
#include "experiment/experiment_parts.h"

#include "data/layouts.h"
#include "data/photos.h"

#include <cjson/cJSON.h>
#include <string.h>

static const char *options_place(struct pm_arena *a, const struct pm_config *c)
{
    return pm_arena_printf(a, "%s: data.convert", pm_config_source(c, "data.convert"));
}

/* ---- messages ------------------------------------------------------------------------------- */

/* The folder has no records, and the task cannot read its pictures. */
static int wrong_folder(const struct pm_experiment *e, const char *folder, enum pm_folder_kind kind)
{
    const char *others = e->task_row->converters, *task = e->task_row->config.name;
    const struct pm_layout *l = pm_layout_find(folder, task);
    struct pm_str word = { 0 };
    int err;

    pm_shell_word(&word, folder);
    if (l)
        err = pm_fail(PM_EDATA, "%s: this folder is not converted yet: run pumice dataset convert "
                      "%s %s data/%s, and set data.folder to data/%s", folder, l->converter,
                      word.text, l->converter, l->converter);
    else if (others && (kind == PM_FOLDER_PHOTOS || kind == PM_FOLDER_PICTURES))
        err = pm_fail(PM_EDATA, "%s: this folder has pictures, but task %s also needs their "
                      "annotations: make a data folder with pumice dataset convert FORMAT %s "
                      "data/NAME, where FORMAT is one of %s", folder, task, word.text, others);
    else if (others)
        err = pm_fail(PM_EDATA, "%s: there are no TFRecord files in it: make them with pumice "
                      "dataset convert FORMAT SRC DST, where FORMAT is one of %s", folder, others);
    else if (kind == PM_FOLDER_PICTURES)
        err = pm_fail(PM_EDATA, "%s: its pictures are not in subfolders: put the pictures of each "
                      "class into a subfolder with the name of the class", folder);
    else
        err = pm_fail(PM_EDATA, "%s: there are neither TFRecord files (pumice dataset convert "
                      "makes them) nor pictures in subfolders, one for each class", folder);
    pm_str_free(&word);
    return err;
}

static void report_change(const struct pm_config *c, const char *folder,
                          const struct pm_photos *found)
{
    if (found->kept)
        PM_WARN("data", "%s: the pictures or data.convert changed since %s began: it goes on with "
                "the pictures that it began with (%s). To use the new ones, set another run.folder",
                folder, c->run.folder, found->place);
    else if (found->changed)
        PM_WARN("data", "%s: the pictures or data.convert changed since %s began, and the "
                "conversion that it began with is gone: it continues with the current pictures. "
                "Evaluation may see pictures that it was trained on. To begin anew, set "
                "another run.folder", folder, c->run.folder);
}

/* ---- finding the conversion ----------------------------------------------------------------- */

/* Reads the digests of the conversions that the run began with. */
static const char *began_with(struct pm_experiment *e)
{
    const char *run = e->config->run.folder, *digest = NULL;
    struct pm_checkpoint *from = NULL;
    cJSON *state = NULL;

    if (!run || !pm_is_folder(run) || pm_checkpoint_open_newest(run, &from) < 0 || !from)
        return NULL;
    state = from->state ? cJSON_Parse(from->state) : NULL;
    digest = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(state, "data"), "digest"));
    digest = digest ? pm_arena_strdup(e->arena, digest) : NULL;
    cJSON_Delete(state);
    pm_checkpoint_close(&from);
    return digest;
}

/* Replaces the folder by its conversion if it is a folder of pictures. */
static int find_one(struct pm_experiment *e, const char **folder)
{
    const struct pm_config *c = e->config;
    const enum pm_folder_kind kind = pm_folder_kind(*folder);
    struct pm_photos found;
    int err = PM_OK;

    if (kind == PM_FOLDER_RECORDS && c->data.convert)
        PM_WARN("data", "data.convert is ignored: %s is converted already", *folder);
    if (kind == PM_FOLDER_MISSING || kind == PM_FOLDER_RECORDS)
        return PM_OK;
    if (kind != PM_FOLDER_PHOTOS || e->task_row->converters)
        return wrong_folder(e, *folder, kind);
    PM_TRY(pm_photos_find(e->arena, &(struct pm_photos_want){
        .folder = *folder, .options = c->data.convert, .where = options_place(e->arena, c),
        .began = began_with(e), .make = true }, &found));
    report_change(c, *folder, &found);
    *folder = found.place;
out:
    return err;
}

int pm_experiment_find_photos(struct pm_experiment *e)
{
    struct pm_config *own = pm_arena_copy(e->arena, e->config, sizeof *own);
    const char *given = own->data.folder, **folder;
    int err = PM_OK;

    PM_TRY(find_one(e, &own->data.folder));
    for (size_t i = 0; (folder = pm_experiment_folder(e, i)) != NULL; i++)
        if (!strcmp(*folder, given))
            *folder = own->data.folder;
        else
            PM_TRY(find_one(e, folder));
    e->config = own;
out:
    return err;
}

bool pm_experiment_unconverted(const struct pm_config *c)
{
    const struct pm_task_row *task = pm_task_find(c->task);
    struct pm_arena *a = pm_arena_create();
    struct pm_photos found = { 0 };
    bool unconverted = false;

    if (c->data.folder && task && !task->converters &&
        pm_folder_kind(c->data.folder) == PM_FOLDER_PHOTOS)
        unconverted = pm_photos_find(a, &(struct pm_photos_want){
            .folder = c->data.folder, .options = c->data.convert,
            .where = options_place(a, c) }, &found) == PM_OK && !found.place;
    pm_arena_destroy(&a);
    return unconverted;
}

/* ---- without the conversion ----------------------------------------------------------------- */

int pm_experiment_check_convert(const struct pm_experiment *e)
{
    const struct pm_config *c = e->config;

    if (!c->data.convert)
        return PM_OK;
    if (e->task_row->converters)
        return pm_fail(PM_ECONFIG,
                       "%s: data.convert: task %s reads data folders only: remove the "
                       "key",
                       pm_config_source(c, "data.convert"), e->task_row->config.name);
    return pm_photos_check_options(c->data.convert, options_place(e->arena, c));
}

int pm_experiment_describe_data(struct pm_experiment *e)
{
    const char *folder = e->config->data.folder;
    const char **names = NULL;
    int err = PM_OK;

    if (pm_folder_kind(folder) != PM_FOLDER_PHOTOS || e->task_row->converters)
        return pm_dataset_describe(e->arena, folder, &e->data);
    PM_TRY(pm_photos_classes(e->arena, folder, &names, &e->data.num_classes));
    e->data.labels = names;
out:
    return err;
}
