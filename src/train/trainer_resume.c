/* trainer_resume: a run folder belongs to one run. Before training resumes in it, its config.json
 * and the newest checkpoint's classes are compared with the config and the data. Values are
 * compared as resolved, so that a default that is written out is no change. key_classes.def says
 * which keys may change. run.json records the changes with which training went on:
 *
 *     "changes": [ { "step": 600, "key": "schedule.base_lr", "old": 0.01, "new": 0.001 }, ... ]
 *
 * step: the updates that were done before the change. run.json is written before config.json. If
 * the process is killed between, the next start finds the same changes and records them once. */
#include "train/trainer.h"

#include <cjson/cJSON.h>
#include <string.h>

/* ---- files of the run folder ------------------------------------------------------------- */

/* Reads RUN/NAME; NULL if it does not exist or cannot be read. */
static cJSON *read_json(const struct pm_trainer *t, const char *name)
{
    char path[4096], *text = NULL;
    cJSON *json = NULL;

    snprintf(path, sizeof path, "%s/%s", t->run.c->run.folder, name);
    if (!pm_file_exists(path))
        return NULL;
    if (pm_text_read(path, PM_MOST_TEXT, &text) < 0 || pm_json_parse(path, text, &json) < 0)
        PM_WARN("train", "%s; the run resumes without comparing with it", pm_error_text());
    pm_free(text);
    return json;
}

static int write_json(const struct pm_trainer *t, const char *name, const cJSON *json)
{
    char path[4096], *text = pm_json_print(json);
    int err = PM_OK;

    snprintf(path, sizeof path, "%s/%s", t->run.c->run.folder, name);
    PM_TRY(pm_file_write(path, text, strlen(text)));
out:
    pm_free(text);
    return err;
}

/* ---- resolved values --------------------------------------------------------------------- */

static cJSON *member(cJSON *tree, const char *section, const char *key)
{
    cJSON *object = cJSON_GetObjectItemCaseSensitive(tree, section);

    return key ? cJSON_GetObjectItemCaseSensitive(object, key) : object;
}

/* Sets a member that exists; value is then owned by the tree, else freed. */
static void replace(cJSON *tree, const char *section, const char *key, cJSON *value)
{
    if (!member(tree, section, key) ||
        !cJSON_ReplaceItemInObjectCaseSensitive(member(tree, section, NULL), key, value))
        cJSON_Delete(value);
}

/* Adds the defaults of a table to an object; text (may be NULL): its options in place of the
 * object's. An object that does not fit the table stays. */
static void add_defaults(const struct pm_opt *opts, cJSON *object, const char *text,
                         struct pm_arena *a)
{
    const char *also[64];
    size_t size = 0, others = 0;
    const cJSON *v;

    cJSON_ArrayForEach(v, object)
        if (pm_opts_find(opts, v->string) < 0 && others + 1 < PM_COUNT(also))
            also[others++] = pm_arena_strdup(a, v->string);
    also[others] = NULL;
    for (const struct pm_opt *o = opts; o->type; o++)
        if (o->offset + sizeof(struct pm_strings) > size)
            size = o->offset + sizeof(struct pm_strings); /* the largest type */
    void *values = pm_arena_alloc(a, size + 1);

    if ((text ? pm_opts_parse_text(opts, text, values, a, "")
              : pm_opts_parse(opts, object, also, values, a, "")) < 0)
        return;
    for (const struct pm_opt *o = opts; o->type; o++)
        if (o->type != PM_OPT_JSON)
            cJSON_DeleteItemFromObjectCaseSensitive(object, o->key);
    cJSON *all = cJSON_CreateObject();
    pm_opts_dump(opts, values, all, false);
    for (const struct pm_opt *o = opts; o->type; o++)
        if (o->type != PM_OPT_JSON)
            cJSON_AddItemToObject(object, o->key,
                                  cJSON_DetachItemFromObjectCaseSensitive(all, o->key));
    cJSON_Delete(all);
}

static void resolve_layers(cJSON *list, struct pm_arena *a)
{
    cJSON *item;

    cJSON_ArrayForEach(item, list)
    {
        const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "layer"));
        const struct pm_layer *layer = kind ? pm_layer_find(kind) : NULL;

        if (layer && layer->opts)
            add_defaults(layer->opts, item, NULL, a);
        resolve_layers(cJSON_GetObjectItemCaseSensitive(item, "layers"), a);
    }
}

/* Resolves the task's objects inside sections, such as model.matcher. One that is not set has the
 * net's options, else the task's defaults. */
static void resolve_objects(const struct pm_config *c, cJSON *tree, struct pm_arena *a)
{
    const struct pm_task_section *s = c->task_row ? c->task_row->sections : NULL;

    for (; s && s->section; s++) {
        const char *dot = strchr(s->section, '.');
        const struct pm_object_default *o = c->model_row ? c->model_row->objects : NULL;

        if (!dot)
            continue;
        const char *section = pm_arena_printf(a, "%.*s", (int)(dot - s->section), s->section);
        const bool unset = cJSON_IsNull(member(tree, section, dot + 1));

        while (o && o->key && strcmp(o->key, s->section) != 0)
            o++;
        if (unset)
            replace(tree, section, dot + 1, cJSON_CreateObject());
        if (cJSON_IsObject(member(tree, section, dot + 1)))
            add_defaults(s->opts, member(tree, section, dot + 1), unset && o ? o->text : NULL, a);
    }
}

/* Brings values of a config that mean the same to the same form. */
static void resolve(const struct pm_trainer *t, cJSON *tree)
{
    const struct pm_config *c = t->run.c;
    struct pm_arena *a = pm_arena_create();
    const char *name = cJSON_GetStringValue(member(tree, "input", "preprocessing"));
    const char *known = name ? pm_net_preprocessing(name) : NULL;

    resolve_layers(member(tree, "model", "layers"), a);
    resolve_layers(member(tree, "model", "first_stage_layers"), a);
    resolve_layers(member(tree, "model", "second_stage_layers"), a);
    resolve_objects(c, tree, a);
    if (known)
        replace(tree, "input", "preprocessing", cJSON_CreateString(known));
    if (cJSON_IsNull(member(tree, "optim", "weight_decay")) && t->run.e->net_row)
        replace(tree, "optim", "weight_decay",
                cJSON_CreateNumber((double)t->run.e->net_row->weight_decay));
    pm_arena_destroy(&a);
}

/* Sets a member, or removes it if the value is not known, so that it is not compared. */
static void set_fact(cJSON *tree, const char *section, const char *key, const cJSON *value)
{
    if (value)
        replace(tree, section, key, cJSON_Duplicate(value, true));
    else
        cJSON_DeleteItemFromObjectCaseSensitive(member(tree, section, NULL), key);
}

/* Sets what the config may leave open: the size and the classes. size: [height, width,
 * channels]. */
static void set_facts(cJSON *tree, const cJSON *size, const cJSON *classes)
{
    cJSON *sides = cJSON_CreateArray();

    size = cJSON_GetArraySize(size) == 3 ? size : NULL;
    for (int i = 0; i < 2 && size; i++)
        cJSON_AddItemToArray(sides, cJSON_Duplicate(cJSON_GetArrayItem(size, i), true));
    set_fact(tree, "input", "size", size ? sides : NULL);
    set_fact(tree, "input", "channels", cJSON_GetArrayItem(size, 2));
    set_fact(tree, "model", "num_classes", cJSON_IsNumber(classes) ? classes : NULL);
    cJSON_Delete(sides);
}

/* ---- comparing --------------------------------------------------------------------------- */

/* Whether a key holds a path: those of the data and of an ONNX model. */
static bool is_path(const char *key)
{
    const char *end = strrchr(key, '.');

    return strcmp(key, "model.onnx") == 0 ||
           (strncmp(key, "data.folder", 11) == 0 && strcmp(end, ".folder") == 0);
}

/* A file or folder that was moved, or that has another path: not another one. */
static enum pm_key_class class_of_path(const struct pm_config_change *change)
{
    const char *was = cJSON_GetStringValue(change->was), *is = cJSON_GetStringValue(change->is);

    if (was && is && pm_same_file(was, is))
        return PM_KEY_FREE;
    return was && is && !pm_file_exists(was) && !pm_is_folder(was) ? PM_KEY_RESULT : PM_KEY_RUN;
}

/* Compares a list of the data's classes with that of the checkpoint. */
static void compare_classes(const cJSON *was, const cJSON *is, struct pm_config_changes *out)
{
    static const char *const lists[] = { "labels", "map_labels", "box_labels" };

    for (size_t k = 0; k < PM_COUNT(lists); k++) {
        const cJSON *a = cJSON_GetObjectItemCaseSensitive(was, lists[k]);
        const cJSON *b = cJSON_GetObjectItemCaseSensitive(is, lists[k]);
        const int count = cJSON_GetArraySize(a);
        char what[96];

        if (!cJSON_IsArray(a) || !cJSON_IsArray(b) || cJSON_Compare(a, b, true))
            continue;
        if (count != cJSON_GetArraySize(b)) {
            cJSON *x = cJSON_CreateNumber(count), *y = cJSON_CreateNumber(cJSON_GetArraySize(b));

            snprintf(what, sizeof what, "number of the data's %s", lists[k]);
            pm_config_changes_add(out, what, PM_KEY_RUN, x, y);
            cJSON_Delete(x);
            cJSON_Delete(y);
            continue;
        }
        for (int i = 0; i < count; i++)
            if (!cJSON_Compare(cJSON_GetArrayItem(a, i), cJSON_GetArrayItem(b, i), true)) {
                snprintf(what, sizeof what, "entry %d of the data's %s", i, lists[k]);
                pm_config_changes_add(out, what, PM_KEY_RUN, cJSON_GetArrayItem(a, i),
                                      cJSON_GetArrayItem(b, i));
                break;
            }
    }
}

/* Another number of records in the same folder: the data was converted again. */
static void compare_records(const struct pm_trainer *t, const cJSON *was,
                            struct pm_config_changes *out)
{
    cJSON *is = cJSON_CreateNumber((double)pm_dataset_get_info(t->run.e->train)->count);

    if (cJSON_IsNumber(was) && !cJSON_Compare(was, is, true))
        pm_config_changes_add(out, "number of training records", PM_KEY_RESULT, was, is);
    cJSON_Delete(is);
}

/* Another number of steps is free (key_classes.def), but a learning rate that falls over the whole
 * run, and a drop path that does, then have other values. */
static void compare_length(const struct pm_trainer *t, const cJSON *was, cJSON *config,
                           struct pm_config_changes *out)
{
    const struct pm_config *c = t->run.c;
    const size_t examples = pm_dataset_get_info(t->run.e->train)->count;
    const double steps = cJSON_GetNumberValue(was);
    const cJSON *keep = member(config, "model", "drop_path_keep");
    const bool drops = cJSON_GetNumberValue(keep) < 1 &&
                       cJSON_IsNull(member(config, "model", "drop_path_steps"));
    cJSON *is = cJSON_CreateNumber((double)t->run.e->steps);
    struct pm_schedule before, now;

    if (steps >= 0 && steps < 0x1p53 && !cJSON_Compare(was, is, true) &&
        (drops || (pm_schedule_make(&c->schedule, examples, c->run.batch_size, c->devices_count,
                                    (int64_t)steps, &before) == PM_OK &&
                   pm_schedule_make(&c->schedule, examples, c->run.batch_size, c->devices_count,
                                    t->run.e->steps, &now) == PM_OK &&
                   before.decay_steps != now.decay_steps)))
        pm_config_changes_add(out, "number of steps of the run", PM_KEY_RESULT, was, is);
    cJSON_Delete(is);
}

static void compare_config(struct pm_trainer *t, cJSON *was, const cJSON *state)
{
    const struct pm_task_facts *f = &t->run.e->facts;
    cJSON *is = pm_config_dump(t->run.c), *run = read_json(t, "run.json");
    cJSON *size = cJSON_CreateIntArray((const int[]){ f->height, f->width, f->channels }, 3);
    cJSON *classes = cJSON_CreateNumber(f->num_classes), *data = cJSON_Parse(t->start.data_json);
    struct pm_config_changes *l = &t->resume.changes;

    resolve(t, was);
    resolve(t, is);
    set_facts(was, cJSON_GetObjectItem(run, "input"), cJSON_GetObjectItem(run, "classes"));
    set_facts(is, size, classes);
    pm_config_compare(was, is, l);
    for (size_t i = 0; i < l->count; i++)
        if (is_path(l->list[i].key))
            l->list[i].class = class_of_path(&l->list[i]);
    compare_classes(cJSON_GetObjectItem(state, "data"), data, l);
    compare_records(t, cJSON_GetObjectItem(run, "train_examples"), l);
    compare_length(t, cJSON_GetObjectItem(run, "steps"), is, l);
    cJSON_Delete(is);
    cJSON_Delete(run);
    cJSON_Delete(size);
    cJSON_Delete(classes);
    cJSON_Delete(data);
}

static int refuse(const struct pm_trainer *t)
{
    const struct pm_config_changes *l = &t->resume.changes;
    const struct pm_config *c = t->run.c;
    struct pm_str text = { 0 };
    int err = PM_OK;

    for (size_t i = 0; i < l->count; i++) {
        if (l->list[i].class != PM_KEY_RUN)
            continue;
        pm_str_add(&text, "%s%s: ", text.text ? ", " : "", l->list[i].key);
        pm_config_value_text(l->list[i].was, &text);
        pm_str_add(&text, " -> ");
        pm_config_value_text(l->list[i].is, &text);
    }
    if (text.text)
        err = pm_fail(PM_ECONFIG,
                      "%s: run.folder: %s: this folder holds another run (%s); set run.folder, or "
                      "start from it with init.checkpoint=%s and another run.folder",
                      pm_config_source(c, "run.folder"), c->run.folder, text.text, c->run.folder);
    pm_str_free(&text);
    return err;
}

int pm_trainer_check_resume(struct pm_trainer *t)
{
    const int64_t newest = pm_checkpoint_newest_step(t->run.c->run.folder);
    cJSON *was, *state, *run;
    char name[64];
    int err = PM_OK;

    if (newest < 0)
        return PM_OK;
    snprintf(name, sizeof name, "checkpoints/step-%06lld.json", (long long)newest);
    state = read_json(t, name);
    was = read_json(t, "config.json");
    if (!was) { /* the checkpoint has two of its values */
        was = cJSON_CreateObject();
        run = cJSON_AddObjectToObject(was, "run");
        cJSON_AddItemReferenceToObject(run, "seed", cJSON_GetObjectItem(state, "seed"));
        cJSON_AddItemReferenceToObject(run, "batch_size", cJSON_GetObjectItem(state, "batch_size"));
    }
    compare_config(t, was, state);
    cJSON_Delete(was);
    cJSON_Delete(state);
    PM_TRY(refuse(t));
out:
    return err;
}

/* ---- recording --------------------------------------------------------------------------- */

static cJSON *find_record(cJSON *list, const char *key, double step)
{
    cJSON *r;

    cJSON_ArrayForEach(r, list)
    {
        const char *is = cJSON_GetStringValue(cJSON_GetObjectItem(r, "key"));
        const double at = cJSON_GetNumberValue(cJSON_GetObjectItem(r, "step"));

        if (is && strcmp(is, key) == 0 && at == step)
            return r;
    }
    return NULL;
}

/* Adds a change. Changes of a key at the same step, with no training between, become one. */
static void add_record(cJSON *list, double step, const char *key, const cJSON *was, const cJSON *is)
{
    cJSON *r = find_record(list, key, step);

    if (!r) {
        r = cJSON_CreateObject();
        cJSON_AddNumberToObject(r, "step", step);
        cJSON_AddStringToObject(r, "key", key);
        cJSON_AddItemToObject(r, "old", cJSON_Duplicate(was, true));
        cJSON_AddItemToObject(r, "new", cJSON_Duplicate(is, true));
        cJSON_AddItemToArray(list, r);
    } else if (cJSON_Compare(cJSON_GetObjectItem(r, "old"), is, true)) {
        cJSON_Delete(cJSON_DetachItemViaPointer(list, r)); /* undone */
    } else {
        cJSON_ReplaceItemInObject(r, "new", cJSON_Duplicate(is, true));
    }
}

/* Reads the changes recorded so far. Those of later steps, which are trained again, count as
 * changes of this step. */
static cJSON *past_records(const struct pm_trainer *t, double step)
{
    cJSON *run = read_json(t, "run.json"), *list = cJSON_CreateArray();
    const cJSON *r;

    cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(run, "changes"))
    {
        const double at = cJSON_GetNumberValue(cJSON_GetObjectItem(r, "step"));
        const char *key = cJSON_GetStringValue(cJSON_GetObjectItem(r, "key"));

        if (key && at >= 0)
            add_record(list, at < step ? at : step, key, cJSON_GetObjectItem(r, "old"),
                       cJSON_GetObjectItem(r, "new"));
    }
    cJSON_Delete(run);
    return list;
}

void pm_trainer_note_changes(struct pm_trainer *t, uint64_t step)
{
    const struct pm_config_changes *l = &t->resume.changes;

    if (t->run.changes)
        return;
    t->run.changes = past_records(t, (double)step);
    for (size_t i = 0; i < l->count; i++) {
        const struct pm_config_change *v = &l->list[i];
        struct pm_str text = { 0 };

        if (v->class != PM_KEY_RESULT)
            continue;
        pm_config_value_text(v->was, &text);
        pm_str_add(&text, " -> ");
        pm_config_value_text(v->is, &text);
        PM_INFO("train", "%s: %s, from step %llu on", v->key, text.text, (unsigned long long)step);
        add_record(t->run.changes, (double)step, v->key, v->was, v->is);
        pm_str_free(&text);
    }
}

int pm_trainer_write_config(const struct pm_trainer *t)
{
    cJSON *config = pm_config_dump(t->run.c), *run = NULL;
    int err = PM_OK;

    if (cJSON_GetArraySize(t->run.changes) > 0) {
        run = read_json(t, "run.json");
        if (!run)
            run = cJSON_CreateObject();
        cJSON_DeleteItemFromObjectCaseSensitive(run, "changes");
        cJSON_AddItemToObject(run, "changes", cJSON_Duplicate(t->run.changes, true));
        PM_TRY(write_json(t, "run.json", run));
    }
    PM_TRY(write_json(t, "config.json", config));
out:
    cJSON_Delete(config);
    cJSON_Delete(run);
    return err;
}

bool pm_trainer_was_begun(const struct pm_trainer *t)
{
    static const char *const files[] = { "config.json", "metrics.jsonl" };
    bool begun = false;

    for (size_t i = 0; i < PM_COUNT(files); i++) {
        char path[4096];

        snprintf(path, sizeof path, "%s/%s", t->run.c->run.folder, files[i]);
        begun |= pm_file_exists(path);
    }
    return begun;
}
