/* experiment_classes: finds the classes for commands that read no pictures of the data. The
 * checkpoint takes precedence over the data folder: the net keeps the classes that it was trained
 * with, even if the folder has changed. */
#include "experiment/experiment_classes.h"
#include "experiment/experiment_parts.h"

#include <cjson/cJSON.h>
#include <string.h>

/* Another process may make the same folder meanwhile. A folder gets its name when it is
 * complete. */
int pm_experiment_make_data(const struct pm_config *c)
{
    const uint64_t seed = (uint64_t)c->run.seed;
    int err;

    if (pm_is_folder(c->data.folder) || c->data.make == PM_MAKE_NONE)
        return PM_OK;
    PM_INFO("data", "%s does not exist: drawing the built-in %s", c->data.folder,
            c->data.make == PM_MAKE_BARS ? "bars" : "shapes");
    err = c->data.make == PM_MAKE_BARS
        ? pm_bars_make(c->data.folder, PM_BARS_SIZE, 4000, 500, 500, seed)
        : pm_shapes_make(c->data.folder, 64, 4000, 500, 500, seed);
    return pm_is_folder(c->data.folder) ? PM_OK : err;
}

/* Reads a checkpoint's "data", as stored by training. */
static int read_state(struct pm_experiment *e, const struct pm_checkpoint *from, bool *known)
{
    cJSON *state = from->state ? cJSON_Parse(from->state) : NULL;
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(state, "data");
    int err = PM_OK;

    *known = data != NULL;
    if (data)
        err = pm_dataset_info_parse(e->arena, data, from->path, &e->data);
    cJSON_Delete(state);
    return err;
}

/* Reads the note of an ONNX file that pumice export wrote: names of the net's classes, without
 * those that data.labels_offset leaves out. */
static int read_note(struct pm_experiment *e, const struct pm_checkpoint *from, bool *known)
{
    const char *note = pm_tensor_file_meta(from->tensors, "labels");
    const bool onnx = strcmp(pm_tensor_file_format(from->tensors), "ONNX") == 0;
    cJSON *labels = onnx && note ? cJSON_Parse(note) : NULL, *data = cJSON_CreateObject();
    int err = PM_OK;

    *known = cJSON_IsArray(labels) && cJSON_GetArraySize(labels) > 0;
    for (int i = 0; *known && i < e->facts.labels_offset; i++)
        cJSON_InsertItemInArray(labels, 0, cJSON_CreateNull());
    cJSON_AddItemToObject(data, "labels", labels);
    if (*known)
        err = pm_dataset_info_parse(e->arena, data, from->path, &e->data);
    cJSON_Delete(data);
    return err;
}

int pm_experiment_find_classes(struct pm_experiment *e, const struct pm_checkpoint *from)
{
    const struct pm_config *c = e->config;
    bool known = false;
    int err = PM_OK;

    e->from = from ? from->path : NULL;
    if (from)
        PM_TRY(read_state(e, from, &known));
    if (from && !known)
        PM_TRY(read_note(e, from, &known));
    if (known && c->data.folder && !pm_is_folder(c->data.folder))
        PM_INFO("data", "%s does not exist: the class names come from %s", c->data.folder,
                from->path);
    if (known || !c->data.folder)
        goto out;
    if (c->model.num_classes == 0)
        PM_TRY(pm_experiment_make_data(c));
    if (pm_is_folder(c->data.folder))
        PM_TRY(pm_experiment_describe_data(e));
out:
    return err;
}

/* ---- messages ---------------------------------------------------------------------------- */

const char *pm_experiment_silence(struct pm_experiment *e)
{
    const char *folder = e->config->data.folder;
    const bool there = folder && pm_is_folder(folder);

    if (e->from)
        return pm_arena_printf(e->arena, "neither %s nor %s%s contains it", e->from,
                               folder ? folder : "a data folder (data.folder is not set)",
                               folder && !there ? ", which does not exist," : "");
    if (there)
        return "the data does not contain it";
    return !folder
               ? "data.folder, which would contain it, is not set"
               : pm_arena_printf(e->arena, "%s, which would contain it, does not exist", folder);
}

const char *pm_experiment_remedy(const struct pm_experiment *e)
{
    return e->from ? "set data.folder=FOLDER to the place of the data, or set model.num_classes "
                     "(the class names are then numbers)"
                   : "set it";
}
