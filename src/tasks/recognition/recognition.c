/* recognition: the text of a picture.
 *
 * A sample is the picture of image/encoded after the preprocessing, and the symbols of
 * image/transcript. The net gives logits for each step from left to right. The loss is that of CTC
 * (layer ctc_loss); the blank is the class after the last letter. */
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
           "largest number of letters of a text; training cuts longer ones"),
    { 0 },
};
static const struct pm_task_section sections[] = {
    { "data", data_opts }, { "model", pm_recognition_model_opts },
    { "model.spatial_transformer", pm_spatial_transformer_opts }, { 0 },
};
static const struct pm_task_default defaults[] = {
    { "input.size", "[32, 100]" },
    { "optim.epsilon", "1e-8", "optim.name", "adam" },
    { 0 },
};

/* ---- the object -------------------------------------------------------------------------- */

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

static int classes(const struct pm_config *c, struct pm_arena *a, struct pm_dataset_info *info)
{
    struct pm_recognition_data data;
    const struct pm_charset *charset;
    const char **names;
    int err = PM_OK;

    PM_TRY(read_charset(c, a, &data, &charset));
    names = pm_arena_alloc(a, ((size_t)charset->count + 1) * sizeof *names);
    for (int i = 0; i < charset->count; i++) {
        struct pm_str text = { 0 };

        pm_utf8_add(&text, charset->letters[i]);
        names[i] = pm_arena_strdup(a, text.text);
        pm_str_free(&text);
    }
    names[charset->count] = "(blank)";
    info->num_classes = charset->count + 1;
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
    if (t->facts.num_classes != t->charset->count + 1)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: model.num_classes: %d, but data.charset has %d letters "
                       "and a net has one class more, the blank: remove model.num_classes",
                       pm_config_source(t->facts.config, "model.num_classes"),
                       t->facts.num_classes, t->charset->count));
    if (t->facts.eval_height != t->facts.height || t->facts.eval_width != t->facts.width)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: input.eval_size: %d x %d, but recognition needs the "
                       "size of the training, %d x %d: remove input.eval_size",
                       pm_config_source(t->facts.config, "input.eval_size"), t->facts.eval_height,
                       t->facts.eval_width, t->facts.height, t->facts.width));
    PM_TRY(pm_record_check_augment(&t->facts, 0));
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
    PM_TRY(read_charset(facts->config, t->arena, &t->data, &t->charset));
    PM_TRY(pm_recognition_read_model(facts->config, t));
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

static int check_heads(const struct pm_task *t, const struct pm_heads *heads, int batch)
{
    const struct pm_node *logits = pm_heads_main(heads);
    char text[64];

    (void)batch;
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
    (void)frame, (void)maker;
    t->steps = pm_recognition_steps(t, pm_heads_main(heads)->out_shape);
    return check_heads(t, heads, 0);
}

static void add_ctc(struct pm_net *net, struct pm_node *logits, const struct pm_task *t)
{
    pm_net_add_many(net, "loss", (struct pm_node *[]){ logits, pm_net_find(net, "labels"),
                                                       pm_net_find(net, "label_lengths") }, 3,
                    "ctc_loss blank=%d", pm_recognition_blank(t));
}

static void add_loss(struct pm_net *net, const struct pm_heads *heads,
                     const struct pm_net_maker *maker, const struct pm_task *t)
{
    (void)maker;
    if (net->error)
        return;
    net->error = check_heads(t, heads, 0);
    if (!net->error)
        add_ctc(net, pm_heads_main(heads), t);
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
    pm_outputs_add(net, out, pm_heads_main(&heads), PM_PLACES_NONE);
    if (use == PM_USE_EVAL) {
        const int n = images->out_shape.dim[0];

        pm_net_input(net, "labels", PM_SHAPE2(n, t->data.max_num_steps), PM_I32);
        pm_net_input(net, "label_lengths", PM_SHAPE1(n), PM_I32);
        add_ctc(net, pm_heads_main(&heads), t);
    }
    err = net->error;
out:
    return err;
}

static void exporting(const struct pm_task *t, struct pm_task_export *out)
{
    out->texts = true;
    out->blank = pm_recognition_blank(t);
}

static int export_notes(const struct pm_task *t, struct cJSON *object)
{
    struct pm_str letters = { 0 };

    for (int i = 0; i < t->charset->count; i++)
        pm_utf8_add(&letters, t->charset->letters[i]);
    cJSON_AddStringToObject(object, "letters", letters.text);
    cJSON_AddNumberToObject(object, "blank", pm_recognition_blank(t));
    cJSON_AddStringToObject(object, "reading", "the class with the largest logit at each step, "
                            "without repetitions, then without blanks: the first `lengths` numbers "
                            "of `symbols`; `score` is the probability of this path");
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
    struct pm_letters text = { 0 };
    struct pm_str words = { 0 };
    double score;

    (void)frame;
    pm_recognition_read(t, outputs[0], t->steps, &text, &score);
    pm_letters_text(&text, &words);
    cJSON_AddStringToObject(object, "text", words.text ? words.text : "");
    cJSON_AddNumberToObject(object, "score", score);
    if (drawings)
        pm_recognition_draw(shown, words.text ? words.text : "", NULL,
                            pm_drawings_add(drawings, ""));
    pm_str_free(&words);
    pm_letters_free(&text);
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
    .prediction = "the text and its probability; --json: text, score;\n"
                  "NAME.png with the text below the picture\n",
    .converters = "words, icdar",
    .classes = classes, .open = open_task, .close = close_task, .describe = describe,
    .batch_metrics = batch_metrics, .exporting = exporting, .export_notes = export_notes,
    .fields = pm_recognition_fields, .make = pm_recognition_make,
    .free_host = pm_recognition_truth_free, .picture = picture, .settle = settle,
    .before_net = pm_recognition_before_net,
    .check_heads = check_heads, .add_loss = add_loss, .add_outputs = add_outputs,
    .metrics = pm_recognition_list_metrics, .score_create = pm_recognition_score_create,
    .score_destroy = pm_recognition_score_destroy, .score_add = pm_recognition_score_add,
    .score_pack = pm_recognition_score_pack, .score_merge = pm_recognition_score_merge,
    .score_report = pm_recognition_score_report, .score_detail = pm_recognition_score_detail,
    .score_samples = pm_recognition_score_samples, .sample_side = 256,
    .score_sample = pm_recognition_score_sample, .present = present, .print = print,
};
