/* Calls of the rows of training, data and evaluation. */
#include "jobs/pipeline/fields.h"

#include <cjson/cJSON.h>
#include <string.h>

static int bool_of(const struct pm_pipeline *p, const struct pm_proto_text *message,
                   const char *field, bool absent, bool *out)
{
    const struct pm_proto_text *f = pm_pipeline_find(message, field);

    *out = absent;
    if (f && !pm_proto_text_bool(f, out))
        return pm_pipeline_fail(p, f, "true or false is needed");
    return PM_OK;
}

static int needs_text(const struct pm_pipeline *p, const struct pm_proto_text *f)
{
    return f->kind == PM_PROTO_TEXT_STRING
               ? PM_OK
               : pm_pipeline_fail(p, f, "a text in quotes is needed, found: %.40s",
                                  f->kind == PM_PROTO_TEXT_MESSAGE ? "{" : f->value);
}

/* ---- optimizer and rates -------------------------------------------------------------------- */

/* The optimizer, and the moving averages, which are on by default. */
PM_PIPELINE_CALL(optimizer)
{
    double decay = 0;
    bool averages = true;
    int err = PM_OK;

    PM_TRY(bool_of(p, f, "use_moving_average", true, &averages));
    PM_TRY(pm_pipeline_number_of(p, f, "moving_average_decay", 0.9999, &decay));
    pm_pipeline_set(p, "optim.moving_average_decay", pm_pipeline_number(averages ? decay : 0));
    if (averages)
        pm_pipeline_set(p, "optim.moving_average_ramp", cJSON_CreateFalse());
    PM_TRY(pm_pipeline_fields(p, row->of, f, object));
out:
    return err;
}

PM_PIPELINE_CALL(optimizer_name)
{
    const char *const name = strcmp(row->field, "rms_prop_optimizer") == 0 ? "rmsprop"
                             : strcmp(row->field, "adam_optimizer") == 0   ? "adam"
                             : strcmp(row->field, "nadam_optimizer") == 0  ? "nadam"
                             : strcmp(row->field, "adadelta_optimizer") == 0 ? "adadelta"
                                                                           : "momentum";
    int err = PM_OK;

    pm_pipeline_set(p, "optim.name", cJSON_CreateString(name));
    if (strcmp(name, "adadelta") == 0) /* TensorFlow's default; there is no field for it */
        pm_pipeline_set(p, "optim.epsilon", cJSON_CreateNumber(1e-8));
    PM_TRY(pm_pipeline_fields(p, row->of, f, object));
out:
    return err;
}

/* Manual steps with warmup: a ramp, up or down, from the first rate to the second, up to the first
 * step. The schedule's steps then count from the end of the ramp. */
static int ramp_to_first_step(struct pm_pipeline *p, const struct pm_proto_text *f)
{
    cJSON *steps = pm_pipeline_get(p, "schedule.boundaries");
    cJSON *rates = pm_pipeline_get(p, "schedule.rates"), *step;
    double first, rate = 0;
    bool warmup = false;
    int err = PM_OK;

    PM_TRY(bool_of(p, f, "warmup", false, &warmup));
    if (!warmup || !steps)
        goto out;
    PM_TRY(pm_pipeline_number_of(p, f, "initial_learning_rate", 0.002, &rate));
    first = steps->child->valuedouble;
    pm_pipeline_set(p, "schedule.warmup_steps", cJSON_CreateNumber(first));
    pm_pipeline_set(p, "schedule.warmup_lr", pm_pipeline_number(rate));
    pm_pipeline_set(p, "schedule.warmup_shift", cJSON_CreateTrue());
    pm_pipeline_set(p, "schedule.base_lr", cJSON_DetachItemFromArray(rates, 0));
    cJSON_DeleteItemFromArray(steps, 0);
    cJSON_ArrayForEach(step, steps)
        cJSON_SetNumberValue(step, step->valuedouble - first);
    if (!steps->child) { /* the rate after the ramp is the last */
        pm_pipeline_set(p, "schedule.policy", cJSON_CreateString("fixed"));
        cJSON_DeleteItemFromObject(pm_pipeline_get(p, "schedule"), "boundaries");
        cJSON_DeleteItemFromObject(pm_pipeline_get(p, "schedule"), "rates");
    }
out:
    return err;
}

/* total_steps counts from the run's beginning, schedule.decay_steps from that of the decay. After
 * it the rate is 0. */
static int cosine_length(struct pm_pipeline *p, const struct pm_proto_text *f)
{
    double total = 0, warmup = 0, hold = 0;
    int err = PM_OK;

    PM_TRY(pm_pipeline_number_of(p, f, "total_steps", 4000000, &total));
    PM_TRY(pm_pipeline_number_of(p, f, "warmup_steps", 10000, &warmup));
    PM_TRY(pm_pipeline_number_of(p, f, "hold_base_rate_steps", 0, &hold));
    if (total <= warmup + hold)
        PM_TRY(pm_pipeline_fail(p, f, "total_steps: %.0f is not above warmup_steps (%.0f) and "
                                "hold_base_rate_steps (%.0f) together: nothing is left for the "
                                "decay", total, warmup, hold));
    pm_pipeline_set(p, "schedule.decay_steps", cJSON_CreateNumber(total - warmup - hold));
    pm_pipeline_set(p, "schedule.end_lr", cJSON_CreateNumber(0));
    if (warmup > 0)
        pm_pipeline_set(p, "schedule.warmup_shift", cJSON_CreateTrue());
out:
    return err;
}

PM_PIPELINE_CALL(policy)
{
    const bool exponential = strcmp(row->field, "exponential_decay_learning_rate") == 0;
    const bool cosine = strcmp(row->field, "cosine_decay_learning_rate") == 0;
    const bool manual = strcmp(row->field, "manual_step_learning_rate") == 0;
    const char *const name = exponential ? "exponential"
                             : cosine    ? "cosine"
                             : manual    ? "piecewise"
                                         : "fixed";
    double steps = 0, rate = 0;
    int err = PM_OK;

    pm_pipeline_set(p, "schedule.policy", cJSON_CreateString(name));
    PM_TRY(pm_pipeline_fields(p, row->of, f, object));
    if (cosine)
        PM_TRY(cosine_length(p, f));
    if (manual)
        PM_TRY(ramp_to_first_step(p, f));
    if (!exponential)
        goto out;
    PM_TRY(pm_pipeline_number_of(p, f, "burnin_steps", 0, &steps));
    PM_TRY(pm_pipeline_number_of(p, f, "burnin_learning_rate", 0, &rate));
    if (steps > 0) {
        pm_pipeline_set(p, "schedule.warmup_shape", cJSON_CreateString("constant"));
        pm_pipeline_set(p, "schedule.warmup_shift", cJSON_CreateTrue());
        if (rate == 0) { /* the base rate */
            PM_TRY(pm_pipeline_number_of(p, f, "initial_learning_rate", 0.002, &rate));
            pm_pipeline_set(p, "schedule.warmup_lr", pm_pipeline_number(rate));
        }
    }
out:
    return err;
}

static void append(struct pm_pipeline *p, const char *key, cJSON *value)
{
    if (!pm_pipeline_get(p, key))
        pm_pipeline_set(p, key, cJSON_CreateArray());
    cJSON_AddItemToArray(pm_pipeline_get(p, key), value);
}

PM_PIPELINE_CALL(rate_step)
{
    double step = 0, rate = 0;
    int err = PM_OK;

    PM_TRY(pm_pipeline_number_of(p, f, "step", 0, &step));
    PM_TRY(pm_pipeline_number_of(p, f, "learning_rate", 0.002, &rate));
    if (step == 0) { /* before the first boundary it is base_lr */
        pm_pipeline_set(p, "schedule.base_lr", pm_pipeline_number(rate));
        goto out;
    }
    append(p, "schedule.boundaries", cJSON_CreateNumber(step));
    append(p, "schedule.rates", pm_pipeline_number(rate));
    (void)row, (void)object;
out:
    return err;
}

PM_PIPELINE_CALL(bias_multiplier)
{
    cJSON *factor = NULL, *multipliers;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &factor));
    if (cJSON_GetNumberValue(factor) != 0) {
        multipliers = cJSON_CreateObject();
        cJSON_AddItemToObject(multipliers, ".*/biases", factor);
        pm_pipeline_set(p, "optim.multipliers", multipliers);
        factor = NULL;
    }
out:
    cJSON_Delete(factor);
    return err;
}

/* ---- warm start ------------------------------------------------------------------------------ */

/* What the checkpoint was trained for: its type, else from_detection_checkpoint, whose default is
 * false. */
static int set_checkpoint_type(struct pm_pipeline *p)
{
    const struct pm_proto_text *type = pm_pipeline_find(p->tree, "fine_tune_checkpoint_type");
    bool detection = false;
    int err = PM_OK;

    if (type && type->kind == PM_PROTO_TEXT_STRING && *type->value)
        goto out;
    PM_TRY(bool_of(p, p->tree, "from_detection_checkpoint", false, &detection));
    pm_pipeline_set(p, "init.type",
                    cJSON_CreateString(detection ? "detection" : "classification"));
out:
    return err;
}

PM_PIPELINE_CALL(checkpoint)
{
    int err = PM_OK;

    (void)row, (void)object;
    PM_TRY(needs_text(p, f));
    if (!*f->value)
        goto out;
    pm_pipeline_set(p, "init.checkpoint", cJSON_CreateString(f->value));
    PM_TRY(set_checkpoint_type(p));
out:
    return err;
}

PM_PIPELINE_CALL(checkpoint_type)
{
    int err = PM_OK;

    (void)row, (void)object;
    PM_TRY(needs_text(p, f));
    if (!strcmp(f->value, "detection") || !strcmp(f->value, "classification"))
        pm_pipeline_set(p, "init.type", cJSON_CreateString(f->value));
    else if (*f->value)
        pm_pipeline_note(p, f, true, "\"%s\" is a type of TensorFlow 2: init.type is "
                         "\"classification\" or \"detection\"", f->value);
out:
    return err;
}

PM_PIPELINE_CALL(from_detection)
{
    bool yes;

    (void)row, (void)object;
    return bool_of(p, p->tree, f->name, false, &yes); /* set with the checkpoint */
}

/* ---- readers --------------------------------------------------------------------------------- */

PM_PIPELINE_CALL(train_reader)
{
    bool taken = false;
    int err = PM_OK;

    PM_TRY(pm_pipeline_queue(p, row, f, object, &taken));
    if (taken)
        goto out;
    if (pm_pipeline_get(p, "data.train_split")) {
        pm_pipeline_note(p, f, true, "a second reader: use data.folders");
        goto out;
    }
    PM_TRY(pm_pipeline_fields(p, row->of, f, object));
out:
    return err;
}

/* The reader of evaluation sets its split. Its classes have to be those of training. */
PM_PIPELINE_CALL(eval_reader)
{
    cJSON *map = NULL;
    int err = PM_OK;

    if (pm_pipeline_get(p, "data.eval_split")) {
        pm_pipeline_note(p, f, true, "a second reader of evaluation: pumice eval reads one split");
        goto out;
    }
    map = cJSON_Duplicate(pm_pipeline_get(p, "data.label_map"), true);
    p->evaluation = true;
    PM_TRY(pm_pipeline_fields(p, row->of, f, object));
    if (map && !cJSON_Compare(map, pm_pipeline_get(p, "data.label_map"), true)) {
        pm_pipeline_note(p, f, true, "its label_map_path differs from that of training, which "
                         "is used");
        pm_pipeline_set(p, "data.label_map", map);
        map = NULL;
    }
out:
    p->evaluation = false;
    cJSON_Delete(map);
    return err;
}

/* Sets a key from the reader of training; evaluation does not have it. */
static int of_training(struct pm_pipeline *p, const struct pm_pipeline_row *row,
                       const struct pm_proto_text *f, const char *key)
{
    cJSON *value = NULL;
    int err = PM_OK;

    PM_TRY(pm_pipeline_value(p, row->type, f, &value));
    if (!p->evaluation) {
        pm_pipeline_set(p, key, value);
        value = NULL;
    }
out:
    cJSON_Delete(value);
    return err;
}

/* 0 needs no key: the records are repeated without end. */
PM_PIPELINE_CALL(epochs)
{
    cJSON *value = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &value));
    if (value->valuedouble != 0)
        PM_TRY(of_training(p, row, f, "run.epochs"));
out:
    cJSON_Delete(value);
    return err;
}

/* Evaluation counts every object, so the number bounds training only. */
PM_PIPELINE_CALL(max_boxes)
{
    (void)object;
    return of_training(p, row, f, "data.max_boxes");
}

PM_PIPELINE_CALL(cutoff)
{
    (void)object;
    return of_training(p, row, f, "data.cutoff_boxes");
}

PM_PIPELINE_CALL(every_nth)
{
    const char *key = p->evaluation ? "eval.sample_1_of_n" : "data.sample_1_of_n";
    cJSON *n = NULL;
    int err = PM_OK;

    (void)object;
    PM_TRY(pm_pipeline_value(p, row->type, f, &n));
    pm_pipeline_set(p, key, n);
out:
    return err;
}

/* Files of records: their folder, and their name or pattern as the split. */
PM_PIPELINE_CALL(input_path)
{
    const char *key = p->evaluation ? "data.eval_split" : "data.train_split";
    int err = PM_OK;

    (void)row, (void)object;
    PM_TRY(needs_text(p, f));
    const char *slash = strrchr(f->value, '/'), *name = slash ? slash + 1 : f->value;
    const char *folder = !slash ? "." : slash == f->value ? "/" :
                         pm_arena_printf(p->arena, "%.*s", (int)(slash - f->value), f->value);
    const char *set = cJSON_GetStringValue(pm_pipeline_get(p, "data.folder"));
    if (pm_pipeline_get(p, key)) {
        pm_pipeline_note(p, f, true, "a second path: put the files into one folder and name them "
                         "by one pattern, or use data.folders");
        goto out;
    }
    if (!set)
        pm_pipeline_set(p, "data.folder", cJSON_CreateString(folder));
    else if (strcmp(set, folder) != 0)
        pm_pipeline_note(p, f, true, "the folder %s is not that of training, %s: put the files "
                         "into one folder", folder, set);
    pm_pipeline_set(p, key, cJSON_CreateString(name));
out:
    return err;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

PM_PIPELINE_CALL(metrics_set)
{
    static const char *const sets[][2] = {
        { "coco_detection_metrics", "coco" },
        { "pascal_voc_detection_metrics", "voc" },
        { "weighted_pascal_voc_detection_metrics", "weighted_voc" },
        { "precision_at_recall_detection_metrics", "voc" },
        { "oid_V2_detection_metrics", "open_images" },
        { "oid_challenge_detection_metrics", "open_images_challenge" },
        { "open_images_V2_detection_metrics", "open_images" },
        { "coco_mask_metrics", "coco_masks" },
        { "pascal_voc_instance_segmentation_metrics", "voc_masks" },
        { "weighted_pascal_voc_instance_segmentation_metrics", "voc_masks" },
    };
    int err = PM_OK;

    (void)row, (void)object;
    PM_TRY(needs_text(p, f));
    if (strcmp(f->value, "recognition_metrics") == 0)
        goto out; /* always measured */
    for (size_t i = 0; i < PM_COUNT(sets); i++)
        if (strcmp(sets[i][0], f->value) == 0) {
            append(p, "eval.metrics", cJSON_CreateString(sets[i][1]));
            goto out;
        }
    pm_pipeline_note(p, f, true, "\"%s\" is not among the metrics here", f->value);
out:
    return err;
}

PM_PIPELINE_CALL(recall_range)
{
    double low, high;
    cJSON *range;
    int err = PM_OK;

    (void)row, (void)object, (void)f;
    PM_TRY(pm_pipeline_number_of(p, p->tree, "recall_lower_bound", 0, &low));
    PM_TRY(pm_pipeline_number_of(p, p->tree, "recall_upper_bound", 1, &high));
    range = cJSON_CreateArray();
    cJSON_AddItemToArray(range, pm_pipeline_number(low));
    cJSON_AddItemToArray(range, pm_pipeline_number(high));
    pm_pipeline_set(p, "eval.recall_range", range);
out:
    return err;
}

PM_PIPELINE_CALL(averages)
{
    bool on = false;
    int err = PM_OK;

    (void)row, (void)object;
    PM_TRY(bool_of(p, p->tree, f->name, false, &on));
    pm_pipeline_set(p, "eval.averages", cJSON_CreateString(on ? "on" : "off"));
out:
    return err;
}
