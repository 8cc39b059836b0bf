/* The recognition task: symbols of texts, the reading of logits, and metrics, against counts by
 * hand; a merged score has the bits of one that saw every batch. */
#include "base/unit.h"

#include <cjson/cJSON.h>

#include "tasks/recognition/recognition.h"

enum { CLASSES = 4, STEPS = 5, MOST = 3 }; /* a, b, c and the blank */

static struct pm_task *made(struct pm_arena *a)
{
    struct pm_task *t = pm_arena_alloc(a, sizeof *t);
    struct pm_charset *c = pm_arena_alloc(a, sizeof *c);

    c->count = 3;
    c->letters = pm_arena_copy(a, (const uint32_t[]){ 'a', 'b', 'c' }, 3 * sizeof *c->letters);
    c->sorted = pm_arena_copy(a, (const int[]){ 0, 1, 2 }, 3 * sizeof *c->sorted);
    *t = (struct pm_task){ .charset = c, .steps = STEPS, .data = { .charset = "test",
                           .max_num_steps = MOST } };
    t->facts.num_classes = CLASSES;
    t->reported = pm_recognition_reported_create();
    return t;
}

static struct pm_letters letters_of(const char *text)
{
    struct pm_letters l = { 0 };

    assert_int_equal(pm_letters_read(text, strlen(text), false, "test", &l), PM_OK);
    return l;
}

/* Logits whose largest ones are these classes: a letter, or - for the blank. */
static void put_logits(const char *path, float *out)
{
    memset(out, 0, (size_t)(STEPS * CLASSES) * sizeof *out);
    for (int i = 0; i < STEPS; i++)
        out[i * CLASSES + (path[i] == '-' ? CLASSES - 1 : path[i] - 'a')] = 2;
}

/* ---- reading ----------------------------------------------------------------------------- */

static void reads(void **state)
{
    static const struct { const char *path, *text; } cases[] = {
        { "-----", "" }, { "aaaaa", "a" }, { "a-a-a", "aaa" }, { "abcba", "abcba" },
        { "--bb-", "b" }, { "bb-bb", "bb" }, { "c---c", "cc" },
    };
    struct pm_arena *a = pm_arena_create();
    struct pm_task *t = made(a);
    /* Each of the five steps chooses a class with e^2 / (e^2 + 3). */
    const double expected = pow(exp(2) / (exp(2) + 3), STEPS);
    float z[STEPS * CLASSES];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_letters l;
        struct pm_str text = { 0 };
        double score;

        put_logits(cases[i].path, z);
        pm_recognition_read(t, z, STEPS, &l, &score);
        pm_letters_text(&l, &text);
        assert_string_equal(text.text ? text.text : "", cases[i].text);
        assert_true(fabs(score - expected) < 1e-12);
        pm_str_free(&text);
        pm_letters_free(&l);
    }
    pm_recognition_reported_destroy(&t->reported);
    pm_arena_destroy(&a);
}

/* Of equal logits the lowest class counts; a logit that is not finite reads nothing. */
static void odd_logits(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_task *t = made(a);
    float z[STEPS * CLASSES] = { 0 };
    struct pm_letters l;
    double score;

    (void)state;
    pm_recognition_read(t, z, STEPS, &l, &score);
    assert_true(l.count == 1 && l.code[0] == 'a');
    assert_true(fabs(score - pow(0.25, STEPS)) < 1e-15);
    pm_letters_free(&l);
    z[STEPS * CLASSES - 1] = NAN;
    pm_recognition_read(t, z, STEPS, &l, &score);
    assert_true(l.count == 0 && isnan(score));
    pm_letters_free(&l);
    assert_int_equal(pm_recognition_steps(t, PM_SHAPE3(2, 7, CLASSES)), 7);
    assert_int_equal(pm_recognition_steps(t, PM_SHAPE4(2, 1, 7, CLASSES)), 7);
    assert_int_equal(pm_recognition_steps(t, PM_SHAPE4(2, 2, 7, CLASSES)), 0);
    assert_int_equal(pm_recognition_steps(t, PM_SHAPE3(2, 7, CLASSES + 1)), 0);
    assert_int_equal(pm_recognition_steps(t, PM_SHAPE2(2, CLASSES)), 0);
    pm_recognition_reported_destroy(&t->reported);
    pm_arena_destroy(&a);
}

/* ---- symbols ----------------------------------------------------------------------------- */

static void symbols(void **state)
{
    static const struct {
        const char *text;
        int unk, count, symbols[MOST];
    } cases[] = {
        { "", 0, 0, { 0 } },
        { "cab", 0, 3, { 2, 0, 1 } },
        { "cabbage", 0, 3, { 2, 0, 1 } }, /* cut */
        { "xb", 2, 2, { 2, 1 } },         /* x is learnt as c */
        { "xbx", -1, 1, { 1 } },          /* x is left out */
        { "xxxxa", -1, 1, { 0 } },        /* letters that are left out do not count */
    };
    struct pm_arena *a = pm_arena_create();
    struct pm_task *t = made(a);

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_letters l = letters_of(cases[i].text);
        int32_t out[MOST] = { -7, -7, -7 };

        t->data.unk_label = cases[i].unk;
        assert_int_equal(pm_recognition_symbols(t, &l, "record 1", out), cases[i].count);
        for (int k = 0; k < MOST; k++)
            assert_int_equal(out[k], k < cases[i].count ? cases[i].symbols[k] : -7);
        pm_letters_free(&l);
    }
    pm_recognition_reported_destroy(&t->reported);
    pm_arena_destroy(&a);
}

/* Counts the lines about texts from right to left that these give. The symbols keep the order of
 * the text. */
static int turned_lines(struct pm_task *t, const char *const *texts)
{
    FILE *log = tmpfile();
    char line[1024];
    int count = 0;

    pm_log_file(log);
    for (; *texts; texts++) {
        struct pm_letters l = letters_of(*texts);
        int32_t out[MOST];

        assert_int_equal(pm_recognition_symbols(t, &l, "record 7", out), 2);
        assert_true(out[0] == 2 && out[1] == 0);
        pm_letters_free(&l);
    }
    pm_log_file(NULL);
    rewind(log);
    while (fgets(line, sizeof line, log))
        if (strstr(line, "right to left")) {
            assert_contains(line, "record 7: the letter U+05D0 of the text");
            assert_contains(line, "write these texts in that order");
            count++;
        }
    fclose(log);
    return count;
}

/* CTC reads from left to right, so another direction is reported, once. */
static void directions(void **state)
{
    static const char *const left[] = { "ca", NULL };
    static const char *const right[] = { "c\xd7\x90" "a", "ca", "c\xd7\x90" "a", NULL };
    struct pm_arena *a = pm_arena_create();
    struct pm_task *t = made(a);

    (void)state;
    t->data.unk_label = -1;
    assert_int_equal(turned_lines(t, left), 0);
    t->model.predictor = PM_PREDICTOR_ATTENTION;
    assert_int_equal(turned_lines(t, right), 0);
    t->model.predictor = PM_PREDICTOR_CTC;
    assert_int_equal(turned_lines(t, right), 1);
    pm_recognition_reported_destroy(&t->reported);
    pm_arena_destroy(&a);
}

/* ---- metrics ----------------------------------------------------------------------------- */

enum { PICTURES = 6 };
static const struct {
    const char *path, *truth, *lexicon; /* lexicon: words between spaces */
} pictures[PICTURES] = {
    { "ab---", "ab", "" },
    { "abc--", "A-B-C", "" }, /* right for word_accuracy only */
    { "a----", "abc", "abc b" }, /* distance 2 to abc, 1 to b: the wrong word of the lexicon */
    { "ab---", "abc", "abc ccc" }, /* the right word of the lexicon */
    { "-----", "", "" },
    { "c----", "", "" }, /* distance 1 over a length of 0, which counts as 1 */
};

static struct pm_recognition_truth *truth_of(int i)
{
    struct pm_recognition_truth *truth = pm_calloc(1, sizeof *truth);
    char words[64], *save = NULL;

    truth->text = letters_of(pictures[i].truth);
    truth->lexicon = pm_calloc(4, sizeof *truth->lexicon);
    snprintf(words, sizeof words, "%s", pictures[i].lexicon);
    for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
        truth->lexicon[truth->words++] = letters_of(w);
    return truth;
}

/* Adds pictures first..last - 1 as a batch of four, with a loss of 1.5 for each of the four. */
static void add(struct pm_score *m, int first, int last)
{
    float z[4 * STEPS * CLASSES] = { 0 };
    const void *outputs[] = { z };
    void *host[4] = { NULL };
    uint64_t record[4] = { 0 };

    for (int i = first; i < last; i++) {
        put_logits(pictures[i].path, z + (i - first) * STEPS * CLASSES);
        host[i - first] = truth_of(i);
        record[i - first] = (uint64_t)(100 + i);
    }
    assert_int_equal(pm_recognition_score_add(m, &(struct pm_batch){
                         .examples = 4, .valid = last - first, .record = record, .host = host },
                         outputs, 1.5), PM_OK);
    for (int i = 0; i < 4; i++)
        pm_recognition_truth_free(host[i]);
}

static char *report_of(const struct pm_score *m)
{
    cJSON *object = cJSON_CreateObject();
    char *text;

    pm_recognition_score_report(m, object);
    text = cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    return text;
}

static void metrics(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_task *t = made(a);
    struct pm_score *m = pm_recognition_score_create(t);
    uint64_t records[PM_MAX_SAMPLES];
    /* Distances over lengths: 0, 5/5, 2/3, 1/3, 0, 1. */
    const double sum = 1 + 2.0 / 3 + 1.0 / 3 + 1;
    cJSON *o = cJSON_CreateObject();

    (void)state;
    add(m, 0, 4);
    add(m, 4, 6);
    pm_recognition_score_report(m, o);
    assert_true(cJSON_GetObjectItem(o, "word_accuracy")->valuedouble == 3.0 / 6);
    assert_true(cJSON_GetObjectItem(o, "exact_accuracy")->valuedouble == 2.0 / 6);
    assert_true(fabs(cJSON_GetObjectItem(o, "total_edit_distance")->valuedouble - sum) < 1e-12);
    assert_true(fabs(cJSON_GetObjectItem(o, "edit_distance")->valuedouble - sum / 6) < 1e-12);
    assert_true(cJSON_GetObjectItem(o, "lexicon_accuracy")->valuedouble == 0.5);
    assert_true(cJSON_GetObjectItem(o, "loss")->valuedouble == 2 * 4 * 1.5 / 6);
    cJSON_Delete(o);
    /* The worst first; equal ones by their record. */
    static const uint64_t order[PICTURES] = { 101, 105, 102, 103, 100, 104 };
    assert_int_equal(pm_recognition_score_samples(m, records), PICTURES);
    for (int i = 0; i < PICTURES; i++)
        assert_true(records[i] == order[i]);
    pm_recognition_score_destroy(&m);
    pm_recognition_reported_destroy(&t->reported);
    pm_arena_destroy(&a);
}

static void merged(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_task *t = made(a);
    struct pm_score *whole = pm_recognition_score_create(t), *sum = pm_recognition_score_create(t);
    struct pm_str bytes[2] = { { 0 } }, packs[2] = { { 0 } };
    static const int cuts[] = { 0, 4, 6 };

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct pm_score *part = pm_recognition_score_create(t);

        add(whole, cuts[k], cuts[k + 1]);
        add(part, cuts[k], cuts[k + 1]);
        pm_recognition_score_pack(part, &packs[k]);
        assert_int_equal(pm_recognition_score_merge(sum, packs[k].text, packs[k].length), PM_OK);
        pm_recognition_score_destroy(&part);
    }
    pm_recognition_score_pack(whole, &bytes[0]);
    pm_recognition_score_pack(sum, &bytes[1]);
    assert_int_equal(bytes[0].length, bytes[1].length);
    assert_memory_equal(bytes[0].text, bytes[1].text, bytes[0].length);
    char *one = report_of(whole), *two = report_of(sum);
    assert_string_equal(one, two);
    free(one);
    free(two);
    /* Every shorter pack is refused. */
    for (size_t size = 0; size < packs[0].length; size++) {
        struct pm_score *m = pm_recognition_score_create(t);

        assert_int_equal(pm_recognition_score_merge(m, packs[0].text, size), PM_EDATA);
        pm_recognition_score_destroy(&m);
    }
    for (int k = 0; k < 2; k++) {
        pm_str_free(&bytes[k]);
        pm_str_free(&packs[k]);
    }
    pm_recognition_score_destroy(&whole);
    pm_recognition_score_destroy(&sum);
    pm_recognition_reported_destroy(&t->reported);
    pm_arena_destroy(&a);
}

/* More pictures than the report shows: the worst stay, whatever the order. */
static void many_pictures(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_task *t = made(a);
    struct pm_score *m = pm_recognition_score_create(t);
    uint64_t records[PM_MAX_SAMPLES];

    (void)state;
    for (int i = 0; i < 20; i++) {
        add(m, 0, 4);
        add(m, 4, 6);
    }
    /* 20 times record 101 and 20 times 105, which are equally bad. */
    assert_int_equal(pm_recognition_score_samples(m, records), PM_MAX_SAMPLES);
    for (int i = 0; i < PM_MAX_SAMPLES; i++)
        assert_true(records[i] == (i < 20 ? 101 : 105));
    pm_recognition_score_destroy(&m);
    pm_recognition_reported_destroy(&t->reported);
    pm_arena_destroy(&a);
}

/* ---- attention --------------------------------------------------------------------------- */

/* Targets of texts of every length: the letters' classes, the end, and padding; a full text has no
 * room for its end. */
static void targets(void **state)
{
    static const int32_t letters[] = { 2, 0, 1 };
    static const int32_t expected[][MOST] = {
        { 1, -1, -1 }, { 4, 1, -1 }, { 4, 2, 1 }, { 4, 2, 3 },
    };
    struct pm_arena *a = pm_arena_create();
    struct pm_task *t = made(a);
    int32_t out[MOST];

    (void)state;
    for (int count = 0; count <= MOST; count++) {
        pm_recognition_targets(t, letters, count, out);
        assert_memory_equal(out, expected[count], sizeof out);
    }
    pm_recognition_reported_destroy(&t->reported);
    pm_arena_destroy(&a);
}

enum { BEAMS = 2 };
/* A search of one picture: classes, parents, columns and totals of two beams, MOST steps each. */
struct search {
    int32_t symbols[BEAMS * MOST], parents[BEAMS * MOST], columns[BEAMS * MOST];
    float totals[BEAMS * MOST];
};

static struct pm_recognised read_searches(struct pm_task *t, const struct search *s, int count)
{
    const void *outputs[2 * PM_RECOGNITION_OUTPUTS];
    struct pm_recognised r;

    for (int k = 0; k < count; k++) {
        const void **own = outputs + k * PM_RECOGNITION_OUTPUTS;

        own[PM_RECOGNITION_SYMBOLS] = s[k].symbols, own[PM_RECOGNITION_PARENTS] = s[k].parents;
        own[PM_RECOGNITION_COLUMNS] = s[k].columns, own[PM_RECOGNITION_TOTALS] = s[k].totals;
    }
    pm_recognition_read_example(t, outputs, 0, &r);
    return r;
}

static void expect_text(struct pm_recognised r, const char *text, double score)
{
    struct pm_str got = { 0 };

    pm_letters_text(&r.text, &got);
    assert_string_equal(got.text ? got.text : "", text);
    assert_true(isnan(score) ? isnan(r.score) : fabs(r.score - score) < 1e-6);
    pm_str_free(&got);
    pm_recognised_free(&r);
}

/* Texts and columns of beams that change places, end, tie, or do not exist. */
static void beams(void **state)
{
    /* Beam 0 is b then a, beam 1 is a full text; the last steps cross. */
    struct search s = { { 2, 3, 2, 3, 2, 4 }, { 0, 1, 0, 0, 0, 1 }, { 5, 6, 7, 8, 9, 10 },
                        { -1, -2, -3, -1, -2, -2 } };
    const struct search ended = { { 1, 1, 1, 2, 1, 1 }, { 0, 0, 0, 0, 1, 1 }, { 0 },
                                  { -1, -1, -1, -2, -2, -2 } };
    struct search inside = { { 2, 1, 3, 2, 1, 1 }, { 0, 0, 0, 0, 0, 0 }, { 0 },
                             { -1, -1, -1, -1, -1, -1 } };
    struct pm_arena *a = pm_arena_create();
    struct pm_task *t = made(a);
    struct pm_recognised r;

    (void)state;
    t->model = (struct pm_recognition_model){ .predictor = PM_PREDICTOR_ATTENTION,
                                              .beam_width = BEAMS };
    r = read_searches(t, &s, 1);
    /* The last letter is beam 1's own, from beam 1's a, from beam 0's a. */
    assert_int_equal(r.columns[0], 5);
    assert_int_equal(r.columns[1], 6);
    assert_int_equal(r.columns[2], 10);
    expect_text(r, "aac", exp(-2));
    expect_text(read_searches(t, &ended, 1), "", exp(-1));
    expect_text(read_searches(t, &inside, 1), "a", exp(-1)); /* nothing counts after an end */
    s.totals[2] = s.totals[5]; /* a tie: the first beam */
    expect_text(read_searches(t, &s, 1), "bba", exp(-2));
    for (int i = 0; i < BEAMS * MOST; i++)
        inside.totals[i] = -1e30f;
    expect_text(read_searches(t, &inside, 1), "", NAN);
    pm_recognition_reported_destroy(&t->reported);
    pm_arena_destroy(&a);
}

/* The backward predictor's text is turned around; of two the more probable counts, and the forward
 * one if they tie. */
static void two_predictors(void **state)
{
    struct search s[2] = {
        { { 2, 3, 1, 1, 1, 1 }, { 0 }, { 1, 2, 3, 0, 0, 0 }, { -1, -2, -2, -9, -9, -9 } },
        { { 4, 3, 1, 1, 1, 1 }, { 0 }, { 4, 5, 6, 0, 0, 0 }, { -1, -2, -2, -9, -9, -9 } },
    };
    struct pm_arena *a = pm_arena_create();
    struct pm_task *t = made(a);
    struct pm_recognised r;

    (void)state;
    t->model = (struct pm_recognition_model){ .predictor = PM_PREDICTOR_ATTENTION,
                                              .attention_direction = PM_READING_BOTH,
                                              .beam_width = BEAMS };
    expect_text(read_searches(t, s, 2), "ab", exp(-2));
    s[1].totals[MOST - 1] = -1.5f;
    r = read_searches(t, s, 2);
    assert_true(r.backward);
    assert_int_equal(r.columns[0], 5);
    assert_int_equal(r.columns[1], 4);
    expect_text(r, "bc", exp(-1.5));
    t->model.attention_direction = PM_READING_BACKWARD;
    expect_text(read_searches(t, s, 1), "ba", exp(-2));
    pm_recognition_reported_destroy(&t->reported);
    pm_arena_destroy(&a);
}

/* ---- marks ------------------------------------------------------------------------------- */

/* A straightened picture of 2 x 3 pixels, grey; the darkest one is -1, which becomes 1. */
enum { STRAIGHT = 6 };
static const float straight[] = { -1, 0, 1, 0, 0, 0 };

/* Sets attention, and a transformer. */
static void straighten(struct pm_task *t)
{
    t->model = (struct pm_recognition_model){ .predictor = PM_PREDICTOR_ATTENTION,
                                              .beam_width = BEAMS };
    t->straight = (struct pm_recognition_straight){ "sampler", 2, 3, 1 };
}

/* Adds a picture that is read as "ab" in the columns 1 and 4. */
static void add_read(struct pm_score *m, uint64_t record)
{
    const struct search s = { { 2, 3, 1, 1, 1, 1 }, { 0 }, { 1, 4, 2, 0, 0, 0 },
                              { -1, -2, -2, -9, -9, -9 } };
    const void *outputs[] = { s.symbols, s.parents, s.columns, s.totals, straight };
    struct pm_recognition_truth *truth = pm_calloc(1, sizeof *truth);
    void *host[] = { truth };

    truth->text = letters_of("ba");
    assert_int_equal(pm_recognition_score_add(m, &(struct pm_batch){
                         .examples = 1, .valid = 1, .record = &record, .host = host },
                         outputs, 1.5), PM_OK);
    pm_recognition_truth_free(truth);
}

/* The columns and the straightened picture of a sample survive the way to another process, and are
 * shown; packs of other pictures or with columns beyond the steps are refused. */
static void marks_merge(void **state)
{
    static const uint8_t expected[STRAIGHT] = { 1, 128, 255, 128, 128, 128 };
    struct pm_arena *a = pm_arena_create();
    struct pm_task *t = made(a), other;
    struct pm_score *m, *sum;
    struct pm_str pack = { 0 };
    struct pm_image8 im;

    (void)state;
    straighten(t);
    /* The sampler of a list of layers, then a transformer, which has an output for its points. */
    assert_true(pm_recognition_straight(t, (const void *[]){ 0, 0, 0, 0, straight, 0 }, 0, &im));
    assert_memory_equal(im.pixels, expected, STRAIGHT);
    pm_image_free(&im);
    t->model.transformer = PM_TRANSFORMER_TPS;
    assert_true(pm_recognition_straight(t, (const void *[]){ 0, 0, 0, 0, 0, straight }, 0, &im));
    assert_memory_equal(im.pixels, expected, STRAIGHT);
    pm_image_free(&im);
    t->model.transformer = PM_TRANSFORMER_NONE;
    m = pm_recognition_score_create(t), sum = pm_recognition_score_create(t);
    add_read(m, 7);
    pm_recognition_score_pack(m, &pack);
    assert_int_equal(pm_recognition_score_merge(sum, pack.text, pack.length), PM_OK);
    struct pm_str again = { 0 };
    pm_recognition_score_pack(sum, &again);
    assert_true(again.length == pack.length && !memcmp(again.text, pack.text, pack.length));
    pm_str_free(&again);
    for (size_t size = 0; size < pack.length; size++) {
        struct pm_score *cut = pm_recognition_score_create(t);

        assert_int_equal(pm_recognition_score_merge(cut, pack.text, size), PM_EDATA);
        pm_recognition_score_destroy(&cut);
    }
    /* The last column is before the picture's bytes. */
    pack.text[pack.length - STRAIGHT - 8] = STEPS;
    assert_int_equal(pm_recognition_score_merge(sum, pack.text, pack.length), PM_EDATA);
    pack.text[pack.length - STRAIGHT - 8] = 4;
    other = *t, other.straight.width = 4;
    struct pm_score *wider = pm_recognition_score_create(&other);
    assert_int_equal(pm_recognition_score_merge(wider, pack.text, pack.length), PM_EDATA);
    pm_recognition_score_destroy(&wider);
    pm_recognition_score_destroy(&m);
    pm_recognition_score_destroy(&sum);
    pm_str_free(&pack);
    pm_recognition_reported_destroy(&t->reported);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets), cmocka_unit_test(beams), cmocka_unit_test(two_predictors),
        cmocka_unit_test(reads), cmocka_unit_test(odd_logits), cmocka_unit_test(symbols),
        cmocka_unit_test(directions),
        cmocka_unit_test(metrics), cmocka_unit_test(merged), cmocka_unit_test(many_pictures),
        cmocka_unit_test(marks_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
