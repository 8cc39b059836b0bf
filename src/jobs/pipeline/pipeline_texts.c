/* Calls of the rows of text recognition. */
#include "jobs/pipeline/fields.h"

#include <cjson/cJSON.h>
#include <string.h>

static bool is_recognition(const struct pm_pipeline *p)
{
    const char *task = cJSON_GetStringValue(pm_pipeline_get(p, "task"));

    return task && strcmp(task, "recognition") == 0;
}

/* ---- the model ------------------------------------------------------------------------------ */

PM_PIPELINE_CALL(recognition)
{
    pm_pipeline_set(p, "task", cJSON_CreateString("recognition"));
    pm_pipeline_set(p, "model.name", cJSON_CreateString("crnn"));
    return pm_pipeline_fields(p, row->of, f, object);
}

PM_PIPELINE_CALL(spatial_transformer)
{
    (void)object;
    pm_pipeline_set(p, "model.transformer", cJSON_CreateString("tps"));
    pm_pipeline_set(p, "model.spatial_transformer", cJSON_CreateObject());
    return pm_pipeline_fields(p, row->of, f, pm_pipeline_get(p, "model.spatial_transformer"));
}

/* Notes what the predictor's cell has in the original and lacks here. Each may be NULL. */
static void note_cell(struct pm_pipeline *p, const struct pm_proto_text *gru,
                      const struct pm_proto_text *lstm)
{
    const struct pm_proto_text *holes = lstm ? pm_pipeline_find(lstm, "use_peepholes") : NULL;
    const struct pm_proto_text *bias = lstm ? pm_pipeline_find(lstm, "forget_bias") : NULL;
    bool on = false;
    double value = 1;

    if (gru)
        pm_pipeline_note(p, gru, true, "gated recurrent units are not available: LSTM is used");
    if (holes && pm_proto_text_bool(holes, &on) && on)
        pm_pipeline_note(p, holes, true, "the predictor's cell has no peepholes");
    if (bias && pm_proto_text_number(bias, &value) && value != 1)
        pm_pipeline_note(p, bias, true, "the predictor's cell has a forget bias of 1");
}

/* One predictor writes forward or backward; two of them may write both ways. */
PM_PIPELINE_CALL(attention_predictor)
{
    const char *was = cJSON_GetStringValue(pm_pipeline_get(p, "model.attention_direction"));
    const struct pm_proto_text *reverse = pm_pipeline_find(f, "reverse");
    const struct pm_proto_text *cell = pm_pipeline_find(f, "rnn_cell");
    const struct pm_proto_text *lstm = cell ? pm_pipeline_find(cell, "lstm_cell") : NULL;
    bool back = false;
    double units = 128;
    int err = PM_OK;

    if (reverse && !pm_proto_text_bool(reverse, &back))
        PM_TRY(pm_pipeline_fail(p, reverse, "true or false is needed"));
    if (lstm)
        PM_TRY(pm_pipeline_number_of(p, lstm, "num_units", 128, &units));
    note_cell(p, cell ? pm_pipeline_find(cell, "gru_cell") : NULL, lstm);
    const char *const direction = back ? "backward" : "forward";

    pm_pipeline_set(p, "model.predictor", cJSON_CreateString("attention"));
    pm_pipeline_set(p, "model.attention_direction",
                    cJSON_CreateString(was && strcmp(was, direction) != 0 ? "both" : direction));
    pm_pipeline_set(p, "model.decoder_units", cJSON_CreateNumber(units));
    PM_TRY(pm_pipeline_fields(p, row->of, f, object));
out:
    return err;
}

/* Hyperparameters of all convolutions: keys of the model. */
PM_PIPELINE_CALL(text_hyperparams)
{
    static const char *const keys[][2] = {
        { "batch_norm_decay", "model.batch_norm_decay" },
        { "batch_norm_epsilon", "model.batch_norm_epsilon" },
        { "initializer", "model.init" },
    };
    cJSON *own = cJSON_CreateObject();
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_fields(p, row->of, f, own));
    for (size_t i = 0; i < PM_COUNT(keys); i++) {
        cJSON *value = cJSON_DetachItemFromObjectCaseSensitive(own, keys[i][0]);

        if (value)
            pm_pipeline_set(p, keys[i][1], value);
    }
out:
    cJSON_Delete(own);
    return err;
}

/* The original's default is 50 layers. */
PM_PIPELINE_CALL(text_resnet)
{
    const struct pm_proto_text *depth = pm_pipeline_find(f, "net_depth");
    const char *value = depth ? depth->value : "RESNET_50";

    if (depth && depth->kind != PM_PROTO_TEXT_WORD)
        return pm_pipeline_fail(p, depth, "a word without quotes is needed");
    pm_pipeline_set(p, "model.name", cJSON_CreateString(
        strcmp(value, "RESNET_30") == 0 ? "text_resnet30" : "text_resnet50"));
    if (strcmp(value, "RESNET_30") != 0 && strcmp(value, "RESNET_50") != 0)
        pm_pipeline_note(p, depth, true, "%s is not available: text_resnet50 takes its place",
                         value);
    return pm_pipeline_fields(p, row->of, f, object);
}

/* ---- letters and sizes ---------------------------------------------------------------------- */

/* A charset: that of the labels, or the letters that string_filtering keeps. */
PM_PIPELINE_CALL(character_set)
{
    const struct pm_proto_text *named = pm_pipeline_find(f, "built_in_set");
    const struct pm_proto_text *file = pm_pipeline_find(f, "text_file");
    const char *set = cJSON_GetStringValue(pm_pipeline_get(p, "data.charset"));
    cJSON *name = NULL;
    int err = PM_OK;

    PM_TRY(pm_pipeline_fields(p, row->of, f, object));
    if (strcmp(row->message, "StringFiltering") == 0)
        pm_pipeline_set(p, "data.unk_label", cJSON_CreateNumber(-1));
    if (named)
        PM_TRY(pm_pipeline_value(p, PM_PIPELINE_WORD, named, &name));
    else if (file)
        PM_TRY(pm_pipeline_value(p, PM_PIPELINE_TEXT, file, &name));
    if (!name)
        pm_pipeline_note(p, f, true, "text_string is not converted: write the letters into a file, "
                         "one in each line, and set data.charset to it");
    else if (!set)
        pm_pipeline_set(p, "data.charset", name), name = NULL;
    else if (strcmp(set, name->valuestring) != 0)
        pm_pipeline_note(p, f, true, "the charset %s differs from %s of the first label map, and "
                         "is not used", name->valuestring, set);
out:
    cJSON_Delete(name);
    return err;
}

/* The size after resizing is that of the pictures; the first one counts. */
PM_PIPELINE_CALL(target_size)
{
    const char *other = strcmp(row->field, "target_height") ? "target_height" : "target_width";
    const bool first = strcmp(row->field, "target_height") == 0;
    double this = 0, that = 0;
    int err = PM_OK;

    (void)object;
    if (!pm_proto_text_number(f, &this))
        PM_TRY(pm_pipeline_fail(p, f, "a number is needed"));
    PM_TRY(pm_pipeline_number_of(p, p->tree, other, 512, &that));
    if (!pm_pipeline_get(p, "input.size"))
        pm_pipeline_set(p, "input.size", cJSON_CreateDoubleArray(
            (const double[]){ first ? this : that, first ? that : this }, 2));
out:
    return err;
}

/* ---- several queues ------------------------------------------------------------------------- */

/* A number for each queue; of detection the last number counts. */
PM_PIPELINE_CALL(batch_size)
{
    cJSON *value = NULL;
    double sum = 0;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &value));
    if (!is_recognition(p))
        p->batch_count = 0;
    if (p->batch_count == PM_PIPELINE_QUEUES)
        PM_TRY(pm_pipeline_fail(p, f, "more than %d numbers", PM_PIPELINE_QUEUES));
    p->batches[p->batch_count++] = value->valuedouble;
    for (int i = 0; i < p->batch_count; i++)
        sum += p->batches[i];
    pm_pipeline_set(p, "run.batch_size", cJSON_CreateNumber(sum));
out:
    cJSON_Delete(value);
    return err;
}

/* Copies a value of the config, which a reader has just set, into an entry. */
static void copy_to(struct pm_pipeline *p, const char *key, cJSON *entry, const char *member)
{
    const cJSON *value = pm_pipeline_get(p, key);

    if (value)
        cJSON_AddItemToObject(entry, member, cJSON_Duplicate(value, true));
}

/* Appends the reader whose folder and split the config has to data.folders. */
static void add_queue(struct pm_pipeline *p)
{
    cJSON *entry = cJSON_CreateObject();

    copy_to(p, "data.folder", entry, "folder");
    copy_to(p, "data.train_split", entry, "split");
    if (!pm_pipeline_get(p, "data.folders"))
        pm_pipeline_set(p, "data.folders", cJSON_CreateArray());
    cJSON_AddItemToArray(pm_pipeline_get(p, "data.folders"), entry);
}

static void put_back(struct pm_pipeline *p, const char *key, cJSON *was)
{
    if (was)
        pm_pipeline_set(p, key, was);
    else
        cJSON_DeleteItemFromObjectCaseSensitive(pm_pipeline_get(p, "data"), strchr(key, '.') + 1);
}

int pm_pipeline_queue(struct pm_pipeline *p, const struct pm_pipeline_row *row,
                      const struct pm_proto_text *f, struct cJSON *object, bool *taken)
{
    static const char *const keys[] = { "data.folder", "data.train_split" };
    cJSON *was[PM_COUNT(keys)] = { NULL }, *data = pm_pipeline_get(p, "data");
    int err = PM_OK;

    *taken = is_recognition(p) && pm_pipeline_get(p, "data.train_split");
    if (!*taken)
        return PM_OK;
    if (!pm_pipeline_get(p, "data.folders"))
        add_queue(p);
    for (size_t i = 0; i < PM_COUNT(keys); i++)
        was[i] = cJSON_DetachItemFromObjectCaseSensitive(data, keys[i] + strlen("data."));
    err = pm_pipeline_fields(p, row->of, f, object);
    if (err == PM_OK)
        add_queue(p);
    for (size_t i = 0; i < PM_COUNT(keys); i++)
        put_back(p, keys[i], was[i]);
    return err;
}

int pm_pipeline_settle_queues(struct pm_pipeline *p, const struct pm_proto_text *root)
{
    cJSON *folders = pm_pipeline_get(p, "data.folders"), *entry;
    const int readers = folders ? cJSON_GetArraySize(folders) : 1;
    int i = 0;

    if (!is_recognition(p) || p->batch_count == 0 || (!folders && p->batch_count == 1))
        return PM_OK;
    if (!pm_pipeline_get(p, "data.train_split"))
        return PM_OK; /* the readers come in another file */
    if (readers != p->batch_count)
        return pm_pipeline_fail(p, root, "batch_size has %d number%s, but the config has %d "
                                "train_input_reader%s: write one number for each", p->batch_count,
                                p->batch_count == 1 ? "" : "s", readers, readers == 1 ? "" : "s");
    cJSON_ArrayForEach(entry, folders) {
        cJSON_DeleteItemFromObjectCaseSensitive(entry, "batch");
        cJSON_AddNumberToObject(entry, "batch", p->batches[i++]);
    }
    return PM_OK;
}
