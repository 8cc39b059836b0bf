/* recognition_samples: from records to the fields of a batch. */
#include "tasks/recognition/recognition.h"

#include <pthread.h>
#include <string.h>

#include <pumice/trace.h>

#include "tasks/record.h"

/* ---- reports ----------------------------------------------------------------------------- */

enum { MOST_REPORTED = 100 }; /* letters; more of them are not reported */
struct pm_recognition_reported {
    pthread_mutex_t lock;
    uint32_t letter[MOST_REPORTED];
    int count;
    bool cut, direction, points;
};

struct pm_recognition_reported *pm_recognition_reported_create(void)
{
    struct pm_recognition_reported *r = pm_calloc(1, sizeof *r);

    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void pm_recognition_reported_destroy(struct pm_recognition_reported **r)
{
    if (*r)
        pthread_mutex_destroy(&(*r)->lock);
    pm_free(*r);
    *r = NULL;
}

/* Warns about a letter that the charset lacks, once. */
static void report_letter(const struct pm_task *t, uint32_t letter, const char *where)
{
    struct pm_recognition_reported *r = t->reported;
    struct pm_str text = { 0 };
    bool known = false;

    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < r->count; i++)
        known |= r->letter[i] == letter;
    known |= r->count == MOST_REPORTED;
    if (!known)
        r->letter[r->count++] = letter;
    pthread_mutex_unlock(&r->lock);
    if (known)
        return;
    pm_utf8_add(&text, letter);
    if (t->data.unk_label >= 0) {
        pm_str_add(&text, "\": \"");
        pm_utf8_add(&text, t->charset->letters[t->data.unk_label]);
        PM_WARN("data", "%s: the charset lacks the letter \"%s\" is learnt in its place "
                "(data.unk_label). Set a data.charset that has it, or data.unk_label=-1 to leave "
                "it out", where, text.text);
    } else {
        PM_WARN("data", "%s: the charset lacks the letter \"%s\", which is left out: set "
                "data.charset", where, text.text);
    }
    pm_str_free(&text);
}

/* Whether it is the first call with this member of t->reported. */
static bool is_first(const struct pm_task *t, bool *reported)
{
    bool known;

    pthread_mutex_lock(&t->reported->lock);
    known = *reported;
    *reported = true;
    pthread_mutex_unlock(&t->reported->lock);
    return !known;
}

/* Warns about the first text that is cut. */
static void report_cut(const struct pm_task *t, int count, const char *where)
{
    if (is_first(t, &t->reported->cut))
        PM_WARN("data", "%s: the text has %d letters, more than data.max_num_steps, %d: training "
                "cuts it, and others like it. Raise data.max_num_steps to learn them whole", where,
                count, t->data.max_num_steps);
}

/* Warns about the first text of a script from right to left, which CTC would have to read in the
 * opposite order of its steps. */
static void report_direction(const struct pm_task *t, const struct pm_letters *text,
                             const char *where)
{
    for (int i = 0; i < text->count && t->model.predictor == PM_PREDICTOR_CTC; i++)
        if (pm_is_right_to_left(text->code[i])) {
            if (is_first(t, &t->reported->direction))
                PM_WARN("data", "%s: the letter U+%04X of the text is of a script that is written "
                        "from right to left, and texts are not turned around. "
                        "model.predictor=ctc learns letters from left to right only: write these "
                        "texts in that order, or set model.predictor=attention", where,
                        (unsigned)text->code[i]);
            return;
        }
}

int pm_recognition_symbols(const struct pm_task *t, const struct pm_letters *text,
                           const char *where, int32_t *out)
{
    int count = 0;

    report_direction(t, text, where);
    for (int i = 0; i < text->count; i++) {
        int symbol = pm_charset_find(t->charset, text->code[i]);

        if (symbol < 0) {
            report_letter(t, text->code[i], where);
            symbol = t->data.unk_label;
        }
        if (symbol < 0)
            continue;
        if (count == t->data.max_num_steps) {
            report_cut(t, text->count, where);
            break;
        }
        out[count++] = symbol;
    }
    return count;
}

/* ---- records ----------------------------------------------------------------------------- */

int pm_recognition_text(const struct pm_task *t, const struct pm_example *e, const char *where,
                        struct pm_letters *out)
{
    const uint8_t *text;
    size_t size;
    const int found = pm_example_bytes(e, "image/transcript", &text, &size);
    char key[256];

    if (found < 0)
        return found;
    if (found == 0)
        return pm_fail(PM_EDATA, "%s: the record has no image/transcript", where);
    snprintf(key, sizeof key, "%s: image/transcript", where);
    return pm_letters_read((const char *)text, size, t->data.lower_case, key, out);
}

int pm_recognition_lexicon(const struct pm_task *t, const struct pm_example *e, const char *where,
                           struct pm_recognition_truth *out)
{
    const uint8_t *text;
    size_t size, begin = 0;
    int err = PM_OK, most = 1;
    const int found = pm_example_bytes(e, "image/lexicon", &text, &size);
    char key[256];

    if (found <= 0 || size == 0)
        return found < 0 ? found : PM_OK;
    snprintf(key, sizeof key, "%s: image/lexicon", where);
    for (size_t i = 0; i < size; i++)
        most += text[i] == '\t';
    out->lexicon = pm_calloc((size_t)most, sizeof *out->lexicon);
    for (size_t i = 0; i <= size; i++) {
        if (i < size && text[i] != '\t')
            continue;
        if (i > begin) {
            PM_TRY(pm_letters_read((const char *)text + begin, i - begin, t->data.lower_case, key,
                                   &out->lexicon[out->words]));
            out->words++;
        }
        begin = i + 1;
    }
out:
    return err;
}

void pm_recognition_truth_free(void *truth)
{
    struct pm_recognition_truth *h = truth;

    if (!h)
        return;
    pm_letters_free(&h->text);
    for (int i = 0; i < h->words; i++)
        pm_letters_free(&h->lexicon[i]);
    pm_free(h->lexicon);
    pm_free(h->points);
    pm_free(h);
}

/* ---- samples ----------------------------------------------------------------------------- */

void pm_recognition_fields(const struct pm_task *t, bool train, struct pm_frame frame,
                           struct pm_field_list *out)
{
    const int most = t->data.max_num_steps;

    pm_field_add(out, pm_record_images(&t->facts, frame));
    if (t->model.predictor == PM_PREDICTOR_ATTENTION) {
        for (int k = 0; k < pm_recognition_directions(t); k++)
            pm_field_add(out, (struct pm_field){
                pm_recognition_field(t, k), PM_I32, PM_SHAPE1(most), .absent = -1,
                .values = { -1, t->facts.num_classes - 1 } });
    } else {
        pm_field_add(out, (struct pm_field){ "labels", PM_I32, PM_SHAPE1(most),
                                             .values.high = t->charset->count - 1 });
        pm_field_add(out, (struct pm_field){ "label_lengths", PM_I32, { 0 }, .absent = -1,
                                             .values.high = most });
    }
    if (train && pm_recognition_learns_points(t))
        pm_recognition_points_fields(t, out);
}

/* Writes the fields of the labels. */
static void make_labels(const struct pm_task *t, const struct pm_letters *text, const char *where,
                        void *const *out)
{
    const size_t most = (size_t)t->data.max_num_steps;
    int32_t *labels = out[PM_RECOGNITION_LABELS];

    if (t->model.predictor == PM_PREDICTOR_CTC) {
        memset(labels, 0, most * sizeof *labels);
        *(int32_t *)out[PM_RECOGNITION_LENGTHS] = pm_recognition_symbols(t, text, where, labels);
        return;
    }
    for (int k = 0; k < pm_recognition_directions(t); k++) {
        struct pm_letters l = { pm_malloc(((size_t)text->count + 1) * sizeof *l.code),
                                text->count };

        labels = out[PM_RECOGNITION_LABELS + k];
        for (int i = 0; i < l.count; i++)
            l.code[i] = text->code[pm_recognition_is_backward(t, k) ? l.count - 1 - i : i];
        pm_recognition_targets(t, labels, pm_recognition_symbols(t, &l, where, labels), labels);
        pm_letters_free(&l);
    }
}

/* Warns about the first key points that cannot be scored; the last error has the reason. */
static void report_points(const struct pm_task *t)
{
    if (is_first(t, &t->reported->points))
        PM_WARN("data", "%s. keypoint_distance leaves out this record, and others like it",
                pm_error_text());
}

/* Writes the key points: in training their fields, in evaluation those of the truth. Wrong ones are
 * an error only with the loss of key points. */
static int make_points(const struct pm_sampler *sampler, const struct pm_example *e,
                       const struct pm_image8 *picture, const struct pm_placed *placed,
                       const char *where, void *const *out, struct pm_recognition_truth *truth)
{
    const struct pm_task *t = sampler->task;
    int found;

    if (sampler->train)
        return pm_recognition_learns_points(t)
                   ? pm_recognition_make_points(t, e, picture, placed, where, out) : PM_OK;
    if (!pm_recognition_has_points(t))
        return PM_OK;
    truth->points = pm_malloc(2 * (size_t)t->transformer.num_control_points *
                              sizeof *truth->points);
    found = pm_recognition_points(t, e, picture, placed, where, truth->points);
    if (found <= 0) {
        pm_free(truth->points);
        truth->points = NULL;
    }
    if (found == PM_EDATA && !pm_recognition_learns_points(t)) {
        report_points(t);
        return PM_OK;
    }
    return found < 0 ? found : PM_OK;
}

int pm_recognition_make(void *ctx, const struct pm_loader_record *r, void *const *out)
{
    const struct pm_sampler *sampler = ctx;
    const struct pm_task *t = sampler->task;
    struct pm_recognition_truth *truth = pm_calloc(1, sizeof *truth);
    struct pm_image8 im = { 0 };
    struct pm_sample sample = { .picture = &im };
    struct pm_example *e = NULL;
    struct pm_placed placed;
    double begun = pm_trace_now();
    int err = PM_OK;

    PM_TRY(pm_record_damage(pm_example_parse(r->bytes, r->size, r->where, &e)));
    PM_TRY(pm_record_damage(pm_recognition_text(t, e, r->where, &truth->text)));
    PM_TRY(pm_record_damage(pm_recognition_lexicon(t, e, r->where, truth)));
    make_labels(t, &truth->text, r->where, out);
    PM_TRY(pm_record_damage(pm_record_open_image(
        &t->facts, sampler->train, e,
        t->facts.channels == 1 ? PM_GREY_OR_COLOR : t->facts.channels, r, &im)));
    pm_trace_here("decode", begun);
    begun = pm_trace_now();
    PM_TRY(pm_record_place(&t->facts, sampler->train, &sample, r, &placed));
    PM_TRY(pm_record_damage(make_points(sampler, e, &im, &placed, r->where, out, truth)));
    PM_TRY(pm_record_input(e, &placed, &im, out[PM_RECOGNITION_IMAGES]));
    pm_trace_here("preprocess", begun);
    if (r->host && !sampler->train) {
        *r->host = truth;
        truth = NULL;
    }
out:
    pm_recognition_truth_free(truth);
    pm_image_free(&im);
    pm_example_destroy(&e);
    return err;
}
