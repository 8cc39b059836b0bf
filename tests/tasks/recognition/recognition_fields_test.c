/* From records of words to the fields of a batch: labels of all lengths for CTC and for predictors
 * in both directions, letters that are folded, composed or unknown, what an evaluation keeps, and
 * records that are refused. */
#include "base/unit.h"

#include <pumice/train.h>

#include "experiment/experiment.h"
#include "tasks/recognition/recognition.h"

enum { MOST = 4, HEIGHT = 16, WIDTH = 48 };

struct setup {
    struct pm_arena *arena;
    struct pm_config *config;
    struct pm_experiment *e;
};

/* data: further keys of that section; model: of that one. */
static struct setup set_up(const char *model, const char *data)
{
    struct setup s = { .arena = pm_arena_create() };
    const struct pm_open_sections open = pm_train_choices(s.arena);
    const char *text = pm_arena_printf(s.arena,
        "{\"task\": \"recognition\", \"model\": {\"layers\": [\n"
        "  {\"name\": \"c\", \"layer\": \"conv2d\", \"filters\": 37, \"kernel\": [16, 4], "
        "\"stride\": [16, 4], \"padding\": \"valid\"}]%s},\n"
        " \"data\": {\"charset\": \"lowercase\", \"max_num_steps\": 4%s},\n"
        " \"input\": {\"size\": [16, 48], \"preprocessing\": \"ssd\"}}", model, data);

    if (pm_config_parse("t.json", text, NULL, 0, &open, &s.config) < 0 ||
        pm_experiment_open(s.config, 0, &s.e) < 0)
        fail_msg("%s", pm_error_text());
    return s;
}

static void tear_down(struct setup *s)
{
    pm_experiment_close(&s->e);
    pm_config_destroy(&s->config);
    pm_arena_destroy(&s->arena);
}

struct fields {
    float images[HEIGHT * WIDTH * 3];
    int32_t first[MOST], second[MOST]; /* labels; backward labels, or the length */
    struct pm_recognition_truth *truth;
};

/* Makes the fields of a record. text NULL: it has none. size of the text, which may hold zeros. */
static int make(const struct setup *s, bool train, const char *text, size_t length,
                const char *lexicon, struct fields *f)
{
    struct pm_sampler sampler = { s->e->task, train, s->e->task_row };
    struct pm_example_builder *b = pm_example_builder_create();
    uint8_t pixels[HEIGHT * WIDTH * 3] = { 0 }, *png = NULL, *data = NULL;
    const struct pm_image8 im = { HEIGHT, WIDTH, 3, pixels };
    size_t size = 0, bytes = 0;
    void *out[] = { f->images, f->first, f->second }, *host = NULL;

    memset(f, 0, sizeof *f);
    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    pm_example_add_bytes(b, "image/encoded", png, size);
    if (text)
        pm_example_add_bytes(b, "image/transcript", text, length);
    if (lexicon)
        pm_example_add_bytes(b, "image/lexicon", lexicon, strlen(lexicon));
    pm_example_serialise(b, &data, &bytes);
    const int err = s->e->task_row->make(&sampler, &(struct pm_loader_record){
        .bytes = data, .size = bytes, .where = "words.tfrecord record 3",
        .frame = { HEIGHT, WIDTH }, .host = &host }, out);
    f->truth = host;
    pm_example_builder_destroy(&b);
    pm_free(png);
    pm_free(data);
    return err;
}

static void fields_of(const struct setup *s, bool train, const char *text, const char *lexicon,
                      struct fields *f)
{
    if (make(s, train, text, strlen(text), lexicon, f) < 0)
        fail_msg("%s", pm_error_text());
}

/* Texts and their letters, after data.lower_case and unk_label -1, as numbers in the charset. The
 * letters of the longer ones are cut at either end, by the direction of reading. */
static const struct {
    const char *text;
    int count, forward[MOST], backward[MOST];
} cases[] = {
    { "", 0, { 0 }, { 0 } },
    { "b", 1, { 11 }, { 11 } },
    { "A1z", 3, { 10, 1, 35 }, { 35, 1, 10 } },
    { "full", 4, { 15, 30, 21, 21 }, { 21, 21, 30, 15 } },
    { "longer", 4, { 21, 24, 23, 16 }, { 27, 14, 16, 23 } },
    { "a-b", 2, { 10, 11 }, { 11, 10 } },                   /* the charset lacks it */
    { "\xd7\x90" "a\xd7\x91" "b", 2, { 10, 11 }, { 11, 10 } },
    { "e\xcc\x81" "ab", 2, { 10, 11 }, { 11, 10 } },        /* e and its accent are one letter */
};

/* Each direction has its letters and the end; a full text has no room for it. */
static void attention(void **state)
{
    struct setup s = set_up(", \"predictor\": \"attention\", \"attention_direction\": \"both\"",
                            ", \"lower_case\": true, \"unk_label\": -1");
    struct fields f;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        fields_of(&s, true, cases[i].text, NULL, &f);
        for (int k = 0; k < MOST; k++) {
            const bool in = k < cases[i].count;
            const int after = k == cases[i].count ? PM_RECOGNITION_END : -1;

            assert_int_equal(f.first[k], in ? PM_RECOGNITION_LETTERS + cases[i].forward[k] : after);
            assert_int_equal(f.second[k],
                             in ? PM_RECOGNITION_LETTERS + cases[i].backward[k] : after);
        }
        assert_null(f.truth);
    }
    tear_down(&s);
}

static void ctc(void **state)
{
    struct setup s = set_up("", ", \"lower_case\": true, \"unk_label\": -1");
    struct fields f;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        fields_of(&s, true, cases[i].text, NULL, &f);
        assert_int_equal(f.second[0], cases[i].count);
        for (int k = 0; k < MOST; k++)
            assert_int_equal(f.first[k], k < cases[i].count ? cases[i].forward[k] : 0);
    }
    tear_down(&s);
    s = set_up("", ""); /* without folding, and with 0 for the unknown */
    fields_of(&s, true, "aAa", NULL, &f);
    assert_true(f.second[0] == 3 && f.first[0] == 10 && f.first[1] == 0 && f.first[2] == 10);
    tear_down(&s);
}

/* An evaluation keeps the whole text, folded, and the words of the lexicon. A lexicon of nothing
 * is none. */
static void truths(void **state)
{
    static const struct {
        const char *lexicon;
        int words;
    } lexicons[] = { { NULL, 0 }, { "", 0 }, { "\t\t", 0 }, { "One\ttwo three", 2 },
                     { "\tone\t", 1 } };
    struct setup s = set_up("", ", \"lower_case\": true");
    struct fields f;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(lexicons); i++) {
        fields_of(&s, false, "Longer-", lexicons[i].lexicon, &f);
        assert_non_null(f.truth);
        assert_int_equal(f.truth->text.count, 7);
        assert_true(f.truth->text.code[0] == 'l' && f.truth->text.code[6] == '-');
        assert_int_equal(f.truth->words, lexicons[i].words);
        if (f.truth->words)
            assert_true(f.truth->lexicon[0].count == 3 && f.truth->lexicon[0].code[0] == 'o');
        pm_recognition_truth_free(f.truth);
    }
    tear_down(&s);
}

static void refused(void **state)
{
    static const struct {
        const char *text, *lexicon, *message;
        size_t size;
    } wrong[] = {
        { NULL, NULL, "words.tfrecord record 3: the record has no image/transcript", 0 },
        { "ab\xff", NULL, "words.tfrecord record 3: image/transcript: the text \"ab", 3 },
        { "ab\xff", NULL, "is not UTF-8 at its byte 2", 3 },
        { "ab\xc3", NULL, "is not UTF-8 at its byte 2", 3 }, /* cut inside of a letter */
        { "a\nb", NULL, "has a control character at its byte 1", 3 },
        { "a\0b", NULL, "has a control character at its byte 1", 3 },
        { "ab", "x\ty\xff", "record 3: image/lexicon: the text \"y", 2 },
    };
    struct setup s = set_up("", "");
    struct fields f;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(wrong); i++) {
        assert_int_equal(make(&s, false, wrong[i].text, wrong[i].size, wrong[i].lexicon, &f),
                         PM_ECORRUPT);
        assert_contains(pm_error_text(), wrong[i].message);
        assert_true(pm_is_line(pm_error_text()));
        assert_null(f.truth);
    }
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention), cmocka_unit_test(ctc), cmocka_unit_test(truths),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
