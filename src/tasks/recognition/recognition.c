/* recognition: the text of a picture.
 *
 * A sample is the picture of image/encoded after the preprocessing, and the symbols of
 * image/transcript. The net gives logits for each step from left to right. The loss is that of CTC
 * (layer ctc_loss); the blank is the class after the last letter. With model.predictor=attention
 * the net gives a sequence, and a decoder writes the text from it (recognition_attention.c). */
#include "tasks/recognition/recognition.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "tasks/record.h"

/* ---- options ----------------------------------------------------------------------------- */

static const struct pm_opt data_opts[] = {
    PM_STRING(pm_recognition_data, charset, "lowercase",
              "letters that the net reads: lowercase (0-9, a-z), allcases (also A-Z), "
              "allcases_symbols (the 94 printable characters of ASCII), or a file with one letter "
              "in each line"),
    PM_BOOL(pm_recognition_data, lower_case, false, "make the letters of all texts lower-case"),
    PM_INT(pm_recognition_data, unk_label, 0, -1, 1 << 20,
           "number of the letter, from 0, that stands for letters that the charset lacks; -1 "
           "leaves them out"),
    PM_INT(pm_recognition_data, max_num_steps, 30, 1, 511,
           "largest number of letters of a text; training cuts longer ones. With "
           "model.predictor=attention: the steps of the predictor, for the letters and the end"),
    { 0 },
};
static const struct pm_opt model_opts[] = {
    PM_ENUM(pm_recognition_model, transformer, PM_TRANSFORMER_NONE, "none|tps",
            "recognition: straighten pictures before the net reads them: tps = a small net places "
            "points along the text, and a thin-plate spline moves them to the borders"),
    PM_JSON(pm_recognition_model, spatial_transformer,
            "recognition: options of the transformer that model.transformer names, an object with "
            "the keys below; null = their defaults"),
    PM_ENUM(pm_recognition_model, predictor, PM_PREDICTOR_CTC, "ctc|attention",
            "recognition: how the text comes from the net's steps: each step shows a letter or a "
            "blank (ctc), or a second recurrent layer writes one letter after the other and "
            "attends to the steps (attention)"),
    PM_ENUM(pm_recognition_model, attention_direction, PM_READING_FORWARD, "forward|backward|both",
            "recognition with attention: write texts from the first letter or from the last one; "
            "both = two predictors; the more probable one of their texts counts"),
    PM_INT(pm_recognition_model, attention_units, 256, 1, 1024,
           "recognition with attention: numbers that are compared for each step"),
    PM_INT(pm_recognition_model, decoder_units, 256, 1, 1 << 14,
           "recognition with attention: numbers of the state of the layer that writes"),
    PM_INT(pm_recognition_model, beam_width, 5, 1, 16,
           "recognition with attention: texts that evaluation and prediction continue at each "
           "step; 1 = only the most probable letter"),
    { 0 },
};
static const struct pm_task_section sections[] = {
    { "data", data_opts }, { "model", model_opts },
    { "model.spatial_transformer", pm_spatial_transformer_opts },
    { "loss", pm_recognition_loss_opts }, { 0 },
};
static const struct pm_task_default defaults[] = {
    { "input.size", "[32, 100]" },
    { "optim.epsilon", "1e-8", "optim.name", "adam" },
    { 0 },
};

/* ---- the object -------------------------------------------------------------------------- */

/* Options of attention are refused without it, unless they have their defaults: the config of a run
 * folder writes all of them. */
static int read_model(const struct pm_config *c, struct pm_recognition_model *out)
{
    struct pm_recognition_model usual;
    int err = PM_OK;

    PM_TRY(pm_config_read(c, "model", model_opts, out));
    PM_TRY(pm_opts_parse(model_opts, NULL, NULL, &usual, c->arena, "model"));
    const struct { const char *key; bool same; } of_attention[] = {
        { "model.attention_direction", out->attention_direction == usual.attention_direction },
        { "model.attention_units", out->attention_units == usual.attention_units },
        { "model.decoder_units", out->decoder_units == usual.decoder_units },
        { "model.beam_width", out->beam_width == usual.beam_width },
    };

    for (size_t i = 0; i < PM_COUNT(of_attention) && out->predictor == PM_PREDICTOR_CTC; i++)
        if (!of_attention[i].same)
            PM_TRY(pm_fail(PM_ECONFIG, "%s: %s has no effect with model.predictor=ctc: remove it, "
                           "or set model.predictor=attention",
                           pm_config_source(c, of_attention[i].key), of_attention[i].key));
out:
    return err;
}

static int read_charset(const struct pm_config *c, struct pm_arena *a,
                        struct pm_recognition_data *data, const struct pm_charset **out)
{
    int err = PM_OK;

    PM_TRY(pm_config_read(c, "data", data_opts, data));
    PM_TRY(pm_charset_open(data->charset,
                           pm_arena_printf(a, "%s: data.charset",
                                           pm_config_source(c, "data.charset")), a, out));
    if (data->unk_label >= (*out)->count)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: data.unk_label: %d is outside -1..%d: the charset has %d "
                       "letters", pm_config_source(c, "data.unk_label"), data->unk_label,
                       (*out)->count - 1, (*out)->count));
out:
    return err;
}

/* Classes beside the letters: the blank, or the start and the end. */
static int other_classes(const struct pm_recognition_model *m)
{
    return m->predictor == PM_PREDICTOR_ATTENTION ? PM_RECOGNITION_LETTERS : 1;
}

static int classes(const struct pm_config *c, struct pm_arena *a, struct pm_dataset_info *info)
{
    struct pm_recognition_data data;
    struct pm_recognition_model model;
    const struct pm_charset *charset;
    const char **names;
    int err = PM_OK, first;

    PM_TRY(read_model(c, &model));
    PM_TRY(read_charset(c, a, &data, &charset));
    first = model.predictor == PM_PREDICTOR_ATTENTION ? PM_RECOGNITION_LETTERS : 0;
    info->num_classes = charset->count + other_classes(&model);
    names = pm_arena_alloc(a, (size_t)info->num_classes * sizeof *names);
    for (int i = 0; i < charset->count; i++) {
        struct pm_str text = { 0 };

        pm_utf8_add(&text, charset->letters[i]);
        names[first + i] = pm_arena_strdup(a, text.text);
        pm_str_free(&text);
    }
    if (first > 0) {
        names[PM_RECOGNITION_START] = "(start)";
        names[PM_RECOGNITION_END] = "(end)";
    } else {
        names[charset->count] = "(blank)";
    }
    info->labels = names;
out:
    return err;
}

static void close_task(struct pm_task **t)
{
    if (*t) {
        pm_recognition_reported_destroy(&(*t)->reported);
        pm_arena_destroy(&(*t)->arena);
    }
    pm_free(*t);
    *t = NULL;
}

static int check(const struct pm_task *t)
{
    int err = PM_OK;

    PM_TRY(pm_record_check(&t->facts, 2));
    if (t->facts.num_classes != t->charset->count + other_classes(&t->model))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: model.num_classes: %d, but data.charset has %d letters "
                       "and a net has %s: remove model.num_classes",
                       pm_config_source(t->facts.config, "model.num_classes"),
                       t->facts.num_classes, t->charset->count,
                       t->model.predictor == PM_PREDICTOR_ATTENTION
                           ? "two classes more, the start and the end"
                           : "one class more, the blank"));
    if (t->facts.eval_height != t->facts.height || t->facts.eval_width != t->facts.width)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: input.eval_size: %d x %d, but recognition needs the "
                       "size of the training, %d x %d: remove input.eval_size",
                       pm_config_source(t->facts.config, "input.eval_size"), t->facts.eval_height,
                       t->facts.eval_width, t->facts.height, t->facts.width));
    PM_TRY(pm_record_check_augment(&t->facts, pm_recognition_learns_points(t)
                                                  ? PM_CARRIES_KEYPOINTS : 0));
out:
    return err;
}

static int open_task(const struct pm_task_facts *facts, struct pm_task **out)
{
    struct pm_task *t = pm_calloc(1, sizeof *t);
    int err = PM_OK;

    t->facts = *facts;
    t->arena = pm_arena_create();
    t->reported = pm_recognition_reported_create();
    PM_TRY(read_model(facts->config, &t->model));
    PM_TRY(read_charset(facts->config, t->arena, &t->data, &t->charset));
    PM_TRY(pm_recognition_read_transformer(facts->config, t));
    PM_TRY(pm_recognition_read_loss(facts->config, t));
    PM_TRY(check(t));
    *out = t, t = NULL;
out:
    close_task(&t);
    return err;
}

static void describe(const struct pm_task *t, struct pm_str *out)
{
    pm_str_add(out, "%d %s", t->charset->count,
               pm_plural(t->charset->count, "letter", "letters"));
}

static int picture(const struct pm_task *t, const uint8_t *record, size_t size, const char *where,
                   struct pm_image8 *out)
{
    return pm_record_picture(&t->facts, record, size, where, out);
}

/* ---- the net ----------------------------------------------------------------------------- */

static bool has_attention(const struct pm_task *t)
{
    return t->model.predictor == PM_PREDICTOR_ATTENTION;
}

static struct pm_net_ends net_ends(const struct pm_task *t)
{
    return (struct pm_net_ends){ .sequence = has_attention(t) };
}

static int check_heads(const struct pm_task *t, const struct pm_heads *heads, int batch)
{
    const struct pm_node *logits = pm_heads_main(heads);
    char text[64];

    (void)batch;
    if (has_attention(t))
        return pm_recognition_check_sequence(heads);
    if (pm_recognition_steps(t, logits->out_shape) < 1)
        return pm_fail(PM_ECONFIG, "the net's last layer, %s, gives %s, but reading needs "
                       "[pictures, steps, %d] or [pictures, 1, steps, %d]: %d letters and the "
                       "blank", logits->name, pm_shape_text(logits->out_shape, text),
                       t->facts.num_classes, t->facts.num_classes, t->charset->count);
    return PM_OK;
}

static int settle(struct pm_task *t, struct pm_frame frame, const struct pm_heads *heads,
                  const struct pm_net_maker *maker)
{
    const struct pm_shape s = pm_heads_main(heads)->out_shape;
    const int err = check_heads(t, heads, 0);

    (void)frame, (void)maker;
    if (err == PM_OK) {
        t->steps = s.dim[s.rank - 2];
        pm_recognition_find_straight(t, pm_heads_main(heads));
    }
    return err;
}

static void add_ctc(struct pm_net *net, struct pm_node *logits, const struct pm_task *t)
{
    pm_net_add_many(net, "loss", (struct pm_node *[]){ logits, pm_net_find(net, "labels"),
                                                       pm_net_find(net, "label_lengths") }, 3,
                    "ctc_loss blank=%d", pm_recognition_blank(t));
}

/* Adds the loss of the texts. */
static void add_text_loss(struct pm_net *net, const struct pm_heads *heads,
                          const struct pm_task *t)
{
    if (net->error)
        return;
    net->error = check_heads(t, heads, 0);
    if (net->error)
        return;
    if (has_attention(t))
        pm_recognition_add_decoders(net, pm_heads_main(heads), t);
    else
        add_ctc(net, pm_heads_main(heads), t);
}

static void add_loss(struct pm_net *net, const struct pm_heads *heads,
                     const struct pm_net_maker *maker, const struct pm_task *t)
{
    (void)maker;
    add_text_loss(net, heads, t);
    if (!net->error && pm_recognition_learns_points(t))
        pm_recognition_add_points_loss(net, t);
}

/* Adds the inputs of the labels and the loss of the texts. The score computes that of points. */
static void add_eval_loss(struct pm_net *net, const struct pm_heads *heads, const struct pm_task *t,
                          int n)
{
    struct pm_field_list fields = { 0 };

    pm_recognition_fields(t, false, (struct pm_frame){ t->facts.height, t->facts.width }, &fields);
    for (int i = PM_RECOGNITION_LABELS; i < fields.count; i++) {
        const struct pm_field *f = &fields.list[i];
        const struct pm_shape s = f->shape.rank ? PM_SHAPE2(n, f->shape.dim[0]) : PM_SHAPE1(n);

        pm_net_set_values(pm_net_input(net, f->name, s, f->type), f->values);
    }
    pm_free(fields.list);
    add_text_loss(net, heads, t);
}

static int add_outputs(struct pm_net *net, struct pm_node *images,
                       const struct pm_net_maker *maker, const struct pm_task *t, enum pm_use use,
                       struct pm_outputs *out)
{
    struct pm_heads heads = { 0 };
    int err = PM_OK;

    PM_TRY(maker->heads(maker->ctx, net, images, &heads));
    PM_TRY(net->error);
    PM_TRY(check_heads(t, &heads, 0));
    if (use == PM_USE_EVAL)
        add_eval_loss(net, &heads, t, images->out_shape.dim[0]);
    PM_TRY(net->error);
    if (has_attention(t))
        pm_recognition_add_searches(net, pm_heads_main(&heads), t, use == PM_USE_EVAL,
                                    use == PM_USE_EXPORT, out);
    else
        pm_outputs_add(net, out, pm_heads_main(&heads), PM_PLACES_NONE);
    if (!net->error && pm_recognition_has_points(t) && use != PM_USE_EXPORT)
        pm_outputs_add(net, out, pm_net_find(net, PM_SPATIAL_TRANSFORMER_POINTS), PM_PLACES_NONE);
    if (use != PM_USE_EXPORT)
        pm_recognition_add_straight(t, net, out);
    err = net->error;
out:
    return err;
}

/* With CTC the model reads the texts itself. With attention its reader does, from the logits. */
static void exporting(const struct pm_task *t, struct pm_task_export *out)
{
    if (!has_attention(t))
        out->end = PM_END_BEST_PATH;
}

static const char ctc_rule[] =
    "the class with the largest logit at each step, without repetitions, then without blanks: the "
    "first `lengths` numbers of `symbols`; `score` is the probability of this path";
#define LARGEST                                                                                    \
    "take the class with the largest logit at each step, without the start, up to the first end"
/* By enum pm_reading. */
static const char *const attention_rules[] = {
    LARGEST,
    LARGEST ". Reverse the letters: the net writes the last letter first",
    LARGEST ". Do so for each output. Reverse the letters of the second output: it writes the last "
    "letter first. The probability of a text is the product of the softmax of its classes, the "
    "end included. Take the more probable text; the first output's if both are equal",
};

static int export_notes(const struct pm_task *t, struct cJSON *object)
{
    static const char *const directions[] = { "forward", "backward", "both" };
    struct pm_str letters = { 0 };

    for (int i = 0; i < t->charset->count; i++)
        pm_utf8_add(&letters, t->charset->letters[i]);
    cJSON_AddStringToObject(object, "letters", letters.text);
    if (has_attention(t)) {
        cJSON_AddNumberToObject(object, "start", PM_RECOGNITION_START);
        cJSON_AddNumberToObject(object, "end", PM_RECOGNITION_END);
        cJSON_AddNumberToObject(object, "first_letter", PM_RECOGNITION_LETTERS);
        cJSON_AddStringToObject(object, "direction", directions[t->model.attention_direction]);
        cJSON_AddStringToObject(object, "reading",
                                attention_rules[t->model.attention_direction]);
    } else {
        cJSON_AddNumberToObject(object, "blank", pm_recognition_blank(t));
        cJSON_AddStringToObject(object, "reading", ctc_rule);
    }
    pm_str_free(&letters);
    return PM_OK;
}

/* Texts whose symbols need more steps than the net has, per picture: they teach nothing. */
static const struct pm_batch_metric batch_metrics[] = {
    { "impossible_texts", "losses/impossible_texts", "loss/impossible" }, { 0 },
};

/* ---- predictions ------------------------------------------------------------------------- */

static int present(const struct pm_task *t, struct pm_frame frame, const void *const *outputs,
                   const struct pm_image8 *shown, struct cJSON *object,
                   struct pm_drawings *drawings)
{
    struct pm_recognised r;
    struct pm_str words = { 0 };

    (void)frame;
    pm_recognition_read_example(t, outputs, 0, &r);
    pm_letters_text(&r.text, &words);
    cJSON_AddStringToObject(object, "text", words.text ? words.text : "");
    cJSON_AddNumberToObject(object, "score", r.score);
    pm_recognition_add_marks(t, r.columns, r.text.count, object);
    pm_recognition_add_points(t, pm_recognition_control_points(t, outputs, 0), object);
    if (drawings)
        pm_recognition_draw(t, shown, &r, words.text ? words.text : "", outputs, drawings);
    pm_str_free(&words);
    pm_recognised_free(&r);
    return PM_OK;
}

static void print(const struct cJSON *object, struct pm_str *out)
{
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(object, "text");
    const cJSON *score = cJSON_GetObjectItemCaseSensitive(object, "score");

    pm_str_add(out, "  %s (%.2f)", text->valuestring, score->valuedouble);
}

const struct pm_task_row pm_task_recognition = {
    .config = { .name = "recognition", .sections = sections, .metrics = pm_recognition_metrics,
                .defaults = defaults },
    .prediction = "the text and its probability; --json: text, score, and with attention\n"
                  "the place of each letter, 0 to 1 of the width that the net reads;\n"
                  "NAME.png with the text below the picture, with attention also lines from\n"
                  "the letters to their places. With a transformer the lines are in\n"
                  "NAME-straight.png, the straightened picture\n",
    .converters = "words, icdar",
    .classes = classes, .open = open_task, .close = close_task, .describe = describe,
    .batch_metrics = batch_metrics, .exporting = exporting, .export_notes = export_notes,
    .fields = pm_recognition_fields, .make = pm_recognition_make,
    .whole_batch = pm_recognition_whole_batch, .set_sum = pm_recognition_set_sum,
    .free_host = pm_recognition_truth_free, .picture = picture, .settle = settle,
    .before_net = pm_recognition_before_net, .net_ends = net_ends,
    .check_heads = check_heads, .add_loss = add_loss, .add_outputs = add_outputs,
    .marks = pm_recognition_marks, .metrics = pm_recognition_list_metrics,
    .score_create = pm_recognition_score_create,
    .score_destroy = pm_recognition_score_destroy, .score_add = pm_recognition_score_add,
    .score_pack = pm_recognition_score_pack, .score_merge = pm_recognition_score_merge,
    .score_report = pm_recognition_score_report, .score_detail = pm_recognition_score_detail,
    .score_samples = pm_recognition_score_samples, .sample_side = 256,
    .score_sample = pm_recognition_score_sample, .present = present, .print = print,
};
