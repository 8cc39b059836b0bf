/* Texts to recognise: a charset file, a transcript, a lexicon and the floats of key points,
 * separated by FUZZ_BETWEEN. Bit 0 of the first byte sets data.lower_case. Reading a text in normal
 * form again must not change it. The symbols of a text must give it back if the charset has all of
 * its letters. Edges of key points are divided within the limits of their points. */
#include "fuzz.h"

#include "data/word_points.h"
#include "tasks/recognition/recognition.h"

enum { MOST_STEPS = 64 };

static void check_again(const struct pm_letters *l, bool lower)
{
    struct pm_str text = { 0 };
    struct pm_letters again = { 0 };

    pm_letters_text(l, &text);
    /* Lower-case letters of a text in normal form may be composed anew, so only the others stay. */
    if (pm_letters_read(text.text ? text.text : "", text.length, lower, "own", &again) < 0 ||
        (!lower && !pm_letters_equal(l, &again)))
        __builtin_trap();
    pm_letters_free(&again);
    pm_str_free(&text);
}

static void check_symbols(const struct pm_task *t, const struct pm_letters *l)
{
    int32_t symbols[MOST_STEPS];
    struct pm_str text = { 0 }, own = { 0 };
    const int count = pm_recognition_symbols(t, l, "fuzz", symbols);
    bool all = l->count <= MOST_STEPS;

    if (count < 0 || count > MOST_STEPS)
        __builtin_trap();
    for (int i = 0; i < count; i++)
        if (symbols[i] < 0 || symbols[i] >= t->charset->count)
            __builtin_trap();
    for (int i = 0; i < l->count; i++)
        all = all && pm_charset_find(t->charset, l->code[i]) >= 0;
    pm_charset_text(t->charset, symbols, count, &text);
    pm_letters_text(l, &own);
    if (all && (text.length != own.length ||
                (text.length && memcmp(text.text, own.text, own.length) != 0)))
        __builtin_trap();
    pm_str_free(&text);
    pm_str_free(&own);
}

/* The record of a transcript and a lexicon. */
static struct pm_example *record(const uint8_t *text, size_t length, const uint8_t *lexicon,
                                 size_t lexicon_length)
{
    struct pm_example_builder *b = pm_example_builder_create();
    struct pm_example *e = NULL;
    uint8_t *bytes = NULL;
    size_t size = 0;

    pm_example_add_bytes(b, "image/transcript", text, length);
    pm_example_add_bytes(b, "image/lexicon", lexicon, lexicon_length);
    pm_example_serialise(b, &bytes, &size);
    if (pm_example_parse(bytes, size, "own", &e) < 0)
        abort();
    pm_free(bytes);
    pm_example_builder_destroy(&b);
    return e;
}

static void read_texts(const struct pm_task *t, const struct pm_example *e)
{
    struct pm_recognition_truth *truth = pm_calloc(1, sizeof *truth);

    if (pm_recognition_text(t, e, "fuzz", &truth->text) == PM_OK) {
        check_again(&truth->text, t->data.lower_case);
        check_symbols(t, &truth->text);
        if (pm_recognition_lexicon(t, e, "fuzz", truth) == PM_OK && truth->words > 0 &&
            truth->text.count < 256) {
            const int near = pm_nearest_word(&truth->text, truth->lexicon, truth->words);

            if (near < 0 || near >= truth->words)
                __builtin_trap();
        }
        pm_letters_strip(&truth->text);
    }
    pm_recognition_truth_free(truth);
}

/* Key points of a picture of 100 x 100. A sum of two rounded products may pass its limits by their
 * last bit. */
static void read_points(const uint8_t *data, size_t size)
{
    enum { SIDE = 100, MOST = 256, PARTS = 10 };
    float v[MOST], out[2 * 2 * PARTS];
    const size_t count = size / sizeof *v < MOST ? size / sizeof *v : MOST;
    const struct pm_word_points p = { v, (int)(count / 4) };

    if (count > 0)
        memcpy(v, data, count * sizeof *v);
    if (pm_word_points_check(v, count, SIDE, SIDE, "fuzz") < 0)
        return;
    pm_word_points_divide(&p, PARTS, out);
    for (int i = 0; i < 2 * 2 * PARTS; i++)
        if (!(out[i] >= -SIDE - 1e-4f && out[i] <= 2 * SIDE + 1e-4f))
            __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const file[] = { "charset.txt" };
    struct pm_arena *a = pm_arena_create();
    struct pm_task t = { .data = { .unk_label = -1, .max_num_steps = MOST_STEPS },
                         .reported = pm_recognition_reported_create() };
    size_t at = 1;

    fuzz_begin();
    if (size > 0) {
        fuzz_put_parts(file, 1, data, size, &at);
        const size_t text = at, length = fuzz_part(data, size, &at);
        const size_t lexicon = at, lexicon_length = fuzz_part(data, size, &at);

        read_points(data + at, size - at);
        t.data.lower_case = data[0] & 1;
        if (pm_charset_open(pm_file_exists(fuzz_path(file[0])) ? fuzz_path(file[0]) : "lowercase",
                            "fuzz", a, &t.charset) == PM_OK) {
            struct pm_example *e =
                record(data + text, length, data + (lexicon_length ? lexicon : 0), lexicon_length);
            read_texts(&t, e);
            pm_example_destroy(&e);
        }
    }
    pm_recognition_reported_destroy(&t.reported);
    pm_arena_destroy(&a);
    return 0;
}
