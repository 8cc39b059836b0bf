/* recognition_score: the metrics of an evaluation. A text is right if it equals the true one:
 * word_accuracy compares digits and Latin letters only, as lower-case letters, as the original
 * program; exact_accuracy compares all. edit_distance is Levenshtein's distance over the length of
 * the true text, or over 1 if it is empty. */
#include "tasks/recognition/recognition.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include <pumice/draw.h>

#include "tasks/record.h"
#include "tasks/score_pack.h"

enum metric { WORD, EXACT, EDIT_MEAN, EDIT_SUM, LEXICON, POINTS, LOSS };
const struct pm_metric_kind pm_recognition_metrics[] = {
    { "word_accuracy", true, "eval/WordAccuracy", "a charset without letters beyond ASCII" },
    { "exact_accuracy", true, NULL, NULL },
    { "edit_distance", false, NULL, NULL },
    { "total_edit_distance", false, "eval/TotalEditDistance", NULL },
    { "lexicon_accuracy", true, NULL, NULL },
    { "keypoint_distance", false, NULL, "model.transformer=tps" },
    { "loss", false, "losses/loss", NULL }, /* in training's chart */
    { 0 },
};

static bool is_ascii(const struct pm_charset *c)
{
    for (int i = 0; i < c->count; i++)
        if (c->letters[i] >= 128)
            return false;
    return true;
}

void pm_recognition_list_metrics(const struct pm_task *t, struct pm_metric_list *out)
{
    for (int i = is_ascii(t->charset) ? WORD : EXACT; i <= LOSS; i++) {
        if (i == POINTS && !pm_recognition_has_points(t))
            continue;
        PM_GROW(out->list, out->count, out->capacity);
        out->list[out->count++] = &pm_recognition_metrics[i];
    }
}

/* ---- sums -------------------------------------------------------------------------------- */

/* A picture for the report. */
struct shown {
    uint64_t record;
    double distance; /* edit distance over the length */
    char *truth, *text; /* owned */
    double score;
    int *columns; /* [letters], owned: of the sequence, a column for each letter; NULL with CTC */
    int letters;
    struct pm_image8 straight; /* owned; without pixels if there is no transformer */
};
struct pm_score {
    const struct pm_task *task; /* borrowed */
    uint64_t count, right, exact, lexicons, in_lexicon;
    struct pm_score_sum distance, loss;
    struct pm_score_sum off, squared; /* struct pm_point_errors of the records with key points */
    struct shown worst[PM_MAX_SAMPLES]; /* sorted: worse ones first, then by record */
    int shown;
};

struct pm_score *pm_recognition_score_create(const struct pm_task *t)
{
    struct pm_score *m = pm_calloc(1, sizeof *m);

    m->task = t;
    return m;
}

static void free_shown(struct shown *s)
{
    pm_free(s->truth);
    pm_free(s->text);
    pm_free(s->columns);
    pm_image_free(&s->straight);
}

static char *text_of(const struct pm_letters *l)
{
    struct pm_str text = { 0 };

    pm_letters_text(l, &text);
    return text.text ? text.text : pm_strdup("");
}

void pm_recognition_score_destroy(struct pm_score **m)
{
    if (*m) {
        for (int i = 0; i < (*m)->shown; i++)
            free_shown(&(*m)->worst[i]);
        pm_score_sum_free(&(*m)->distance);
        pm_score_sum_free(&(*m)->loss);
        pm_score_sum_free(&(*m)->off);
        pm_score_sum_free(&(*m)->squared);
    }
    pm_free(*m);
    *m = NULL;
}

static bool is_before(const struct shown *a, const struct shown *b)
{
    return a->distance != b->distance ? a->distance > b->distance : a->record < b->record;
}

/* Whether a picture comes before one of those that are kept, or there is room for it. */
static bool is_shown(const struct pm_score *m, const struct shown *s)
{
    return m->shown < PM_MAX_SAMPLES || is_before(s, &m->worst[m->shown - 1]);
}

/* Takes the picture, which is freed if enough others come before it. */
static void add_shown(struct pm_score *m, struct shown s)
{
    int at = m->shown;

    if (!is_shown(m, &s)) {
        free_shown(&s);
        return;
    }
    while (at > 0 && is_before(&s, &m->worst[at - 1]))
        at--;
    if (m->shown == PM_MAX_SAMPLES)
        free_shown(&m->worst[--m->shown]);
    memmove(m->worst + at + 1, m->worst + at, (size_t)(m->shown - at) * sizeof *m->worst);
    m->worst[at] = s;
    m->shown++;
}

static bool are_equal_stripped(const struct pm_letters *a, const struct pm_letters *b)
{
    struct pm_letters copy[2];
    bool equal;

    for (int i = 0; i < 2; i++) {
        const struct pm_letters *from = i ? b : a;

        copy[i].count = from->count;
        copy[i].code = pm_malloc(((size_t)from->count + 1) * sizeof *from->code);
        memcpy(copy[i].code, from->code, (size_t)from->count * sizeof *from->code);
        pm_letters_strip(&copy[i]);
    }
    equal = pm_letters_equal(&copy[0], &copy[1]);
    pm_letters_free(&copy[0]);
    pm_letters_free(&copy[1]);
    return equal;
}

/* outputs: of the batch; i: the example in it. Takes the columns out of r. */
static void add_example(struct pm_score *m, struct pm_recognised *r, const void *const *outputs,
                        size_t i, const struct pm_recognition_truth *truth, uint64_t record)
{
    const struct pm_letters text = r->text;
    const double distance = (double)pm_edit_distance(&text, &truth->text) /
                            (truth->text.count > 0 ? truth->text.count : 1);
    struct shown s = { .record = record, .distance = distance, .score = r->score };

    m->count++;
    if (isfinite(r->score)) { /* else nothing was read, also if the true text is empty */
        m->right += are_equal_stripped(&text, &truth->text);
        m->exact += pm_letters_equal(&text, &truth->text);
    }
    pm_score_sum_add(&m->distance, distance);
    if (truth->words > 0) {
        const int near = pm_nearest_word(&text, truth->lexicon, truth->words);

        m->lexicons++;
        m->in_lexicon += isfinite(r->score) && are_equal_stripped(&truth->lexicon[near],
                                                                  &truth->text);
    }
    if (!is_shown(m, &s))
        return;
    s.truth = text_of(&truth->text);
    s.text = text_of(&text);
    s.columns = r->columns, r->columns = NULL;
    s.letters = text.count;
    pm_recognition_straight(m->task, outputs, i, &s.straight);
    add_shown(m, s);
}

static void add_points(struct pm_score *m, const float *points, const float *truth)
{
    struct pm_point_errors e;

    if (!points || !truth)
        return;
    e = pm_recognition_point_errors(m->task, points, truth);
    pm_score_sum_add(&m->off, e.distance);
    pm_score_sum_add(&m->squared, e.squared);
}

int pm_recognition_score_add(struct pm_score *m, const struct pm_batch *batch,
                             const void *const *outputs, double loss)
{
    for (int i = 0; i < batch->valid; i++) {
        const struct pm_recognition_truth *truth = batch->host[i];
        struct pm_recognised r;

        pm_recognition_read_example(m->task, outputs, (size_t)i, &r);
        add_points(m, pm_recognition_control_points(m->task, outputs, (size_t)i), truth->points);
        add_example(m, &r, outputs, (size_t)i, truth,
                    batch->record ? batch->record[i] : m->count);
        pm_recognised_free(&r);
    }
    /* The layer divides the sum by all examples of the batch, also those that do not exist. */
    pm_score_sum_add(&m->loss, loss * batch->examples);
    return PM_OK;
}

/* ---- packs ------------------------------------------------------------------------------- */

static size_t straight_bytes(const struct pm_task *t)
{
    const struct pm_recognition_straight *s = &t->straight;

    return s->node ? (size_t)s->height * (size_t)s->width * (size_t)s->channels : 0;
}

static struct pm_str describe_pack(const struct pm_score *m)
{
    struct pm_str text = { 0 };

    pm_str_add(&text, "recognition, %s, lower_case %d, predictor %d, steps %d, transformer %d, "
               "straight %zu",
               m->task->data.charset, m->task->data.lower_case, m->task->model.predictor,
               m->task->steps, m->task->model.transformer, straight_bytes(m->task));
    return text;
}

static void pack_shown(const struct pm_score *m, const struct shown *s, struct pm_str *out)
{
    pm_pack_int(out, s->record);
    pm_pack_double(out, s->distance);
    pm_pack_double(out, s->score);
    pm_pack_text(out, s->truth);
    pm_pack_text(out, s->text);
    pm_pack_int(out, s->columns ? (uint64_t)s->letters : 0);
    for (int i = 0; i < s->letters && s->columns; i++)
        pm_pack_int(out, (uint64_t)s->columns[i]);
    pm_str_bytes(out, s->straight.pixels, straight_bytes(m->task));
}

/* Sets u->damaged if it is no picture. Free s in any case. */
static void unpack_shown(const struct pm_score *m, struct pm_unpack *u, struct shown *s)
{
    const struct pm_recognition_straight *straight = &m->task->straight;
    const size_t size = straight_bytes(m->task);
    const bool attention = m->task->model.predictor == PM_PREDICTOR_ATTENTION;
    const void *pixels;

    *s = (struct shown){ .record = pm_unpack_int(u) };
    s->distance = pm_unpack_double(u);
    s->score = pm_unpack_double(u);
    s->truth = pm_unpack_text(u);
    s->text = pm_unpack_text(u);
    s->letters = (int)pm_unpack_count(u, sizeof(uint64_t));
    s->columns = attention ? pm_malloc(((size_t)s->letters + 1) * sizeof *s->columns) : NULL;
    u->damaged |= !s->truth || !s->text || (!attention && s->letters > 0);
    for (int i = 0; i < s->letters && attention; i++)
        s->columns[i] = (int)pm_unpack_below(u, (uint64_t)m->task->steps);
    pixels = pm_unpack_bytes(u, size);
    s->straight = (struct pm_image8){ straight->height, straight->width, straight->channels, NULL };
    if (size > 0 && pixels && !u->damaged) {
        s->straight.pixels = pm_malloc(size);
        memcpy(s->straight.pixels, pixels, size);
    }
}

void pm_recognition_score_pack(const struct pm_score *m, struct pm_str *out)
{
    const size_t begin = pm_score_pack_begin(out, describe_pack(m));

    pm_pack_int(out, m->count);
    pm_pack_int(out, m->right);
    pm_pack_int(out, m->exact);
    pm_pack_int(out, m->lexicons);
    pm_pack_int(out, m->in_lexicon);
    pm_score_sum_pack(&m->distance, out);
    pm_score_sum_pack(&m->loss, out);
    pm_score_sum_pack(&m->off, out);
    pm_score_sum_pack(&m->squared, out);
    pm_pack_int(out, (uint64_t)m->shown);
    for (int i = 0; i < m->shown; i++)
        pack_shown(m, &m->worst[i], out);
    pm_score_pack_end(out, begin);
}

int pm_recognition_score_merge(struct pm_score *m, const void *bytes, size_t size)
{
    enum { LEAST = 6 * sizeof(uint64_t) }; /* bytes of a picture */
    struct pm_unpack u;
    int err = PM_OK;

    PM_TRY(pm_score_unpack_begin(&u, bytes, size, describe_pack(m)));
    m->count += pm_unpack_int(&u);
    m->right += pm_unpack_int(&u);
    m->exact += pm_unpack_int(&u);
    m->lexicons += pm_unpack_int(&u);
    m->in_lexicon += pm_unpack_int(&u);
    pm_score_sum_merge(&m->distance, &u);
    pm_score_sum_merge(&m->loss, &u);
    pm_score_sum_merge(&m->off, &u);
    pm_score_sum_merge(&m->squared, &u);
    for (size_t n = pm_unpack_count(&u, LEAST); n > 0 && !u.damaged; n--) {
        struct shown s;

        unpack_shown(m, &u, &s);
        if (u.damaged) {
            free_shown(&s);
            break;
        }
        add_shown(m, s);
    }
    PM_TRY(pm_score_unpack_end(&u));
out:
    return err;
}

/* ---- results ----------------------------------------------------------------------------- */

void pm_recognition_score_report(const struct pm_score *m, struct cJSON *object)
{
    const double n = (double)m->count, pointed = (double)m->off.count;
    double loss = m->loss.value / n;

    /* cJSON writes null for a number that is not finite: without examples. */
    if (is_ascii(m->task->charset))
        cJSON_AddNumberToObject(object, "word_accuracy", (double)m->right / n);
    cJSON_AddNumberToObject(object, "exact_accuracy", (double)m->exact / n);
    cJSON_AddNumberToObject(object, "edit_distance", m->distance.value / n);
    cJSON_AddNumberToObject(object, "total_edit_distance", m->distance.value);
    cJSON_AddNumberToObject(object, "lexicon_accuracy",
                            (double)m->in_lexicon / (double)m->lexicons);
    if (pm_recognition_has_points(m->task))
        cJSON_AddNumberToObject(object, "keypoint_distance", m->off.value / pointed);
    if (pm_recognition_learns_points(m->task) && pointed > 0)
        loss += m->task->loss.keypoint_weight * m->squared.value / pointed;
    cJSON_AddNumberToObject(object, "loss", loss);
}

void pm_recognition_score_detail(const struct pm_score *m, struct cJSON *object)
{
    (void)m;
    cJSON_AddStringToObject(object, "of", "texts");
}

int pm_recognition_score_samples(const struct pm_score *m, uint64_t records[PM_MAX_SAMPLES])
{
    for (int i = 0; i < m->shown; i++)
        records[i] = m->worst[i].record;
    return m->shown;
}

int pm_recognition_score_sample(const struct pm_score *m, int i, const uint8_t *record,
                                size_t size, const char *where, struct cJSON *object,
                                struct pm_drawings *drawings)
{
    const struct shown *s = &m->worst[i];
    int err = PM_OK;

    if (i >= m->shown)
        return pm_fail(PM_EFAIL, "%s: is not one of the evaluation's pictures", where);
    cJSON_AddStringToObject(object, "truth", s->truth);
    cJSON_AddStringToObject(object, "text", s->text);
    cJSON_AddNumberToObject(object, "edit_distance", s->distance);
    cJSON_AddNumberToObject(object, "probability", s->score);
    cJSON_AddBoolToObject(object, "right", s->distance == 0 && isfinite(s->score));
    pm_recognition_add_marks(m->task, s->columns, s->letters, object);
    PM_TRY(pm_record_picture(&m->task->facts, record, size, where,
                             pm_drawings_add(drawings, "image")));
    if (s->straight.pixels)
        pm_draw_canvas(&s->straight, 1, pm_drawings_add(drawings, "straightened"));
out:
    return err;
}
