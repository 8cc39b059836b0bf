/* Scores of an evaluation's batches in one process against the same batches scored in several ones
 * and merged: all results must be the same bytes. Damaged packs must be refused. */
#ifndef PUMICE_TESTS_PACKED_SCORES_H
#define PUMICE_TESTS_PACKED_SCORES_H

#include "base/unit.h"
#include "tasks/score_pack.h"

#include <pumice/task.h>

#include <cjson/cJSON.h>

/* One batch as score_add gets it. */
struct scored_batch {
    struct pm_batch batch;
    const void *const *outputs;
    double loss;
};
/* The batches of an evaluation. record: shown for every example that is selected. */
struct evaluation {
    const struct pm_task_row *row;
    const struct pm_task *task;
    const struct scored_batch *batches;
    int count;
    const uint8_t *record;
    size_t record_size;
};

/* Returns numbers from 0 to below - 1 by xorshift; *state is not 0. */
static inline uint32_t drawn(uint32_t *state, uint32_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state % below;
}

/* ---- results ----------------------------------------------------------------------------- */

/* Appends all bits of the numbers in the object; cJSON prints too few digits of some. */
static inline void add_bits(struct pm_str *out, const cJSON *object)
{
    const cJSON *item;

    if (cJSON_IsNumber(object) && isnan(object->valuedouble))
        pm_str_add(out, " nan");
    else if (cJSON_IsNumber(object))
        pm_str_add(out, " %a", object->valuedouble);
    cJSON_ArrayForEach(item, object)
        add_bits(out, item);
}

/* Appends the object as text and the bits of its numbers, and deletes it. */
static inline void add_json(struct pm_str *out, cJSON *object)
{
    char *text = cJSON_PrintUnformatted(object);

    pm_str_add(out, "%s\n", text);
    add_bits(out, object);
    pm_str_add(out, "\n");
    cJSON_free(text);
    cJSON_Delete(object);
}

/* Appends the selected examples, what is shown of them, and their pictures' pixels. */
static inline void add_samples(const struct evaluation *e, const struct pm_score *m,
                               struct pm_str *out)
{
    uint64_t records[PM_MAX_SAMPLES];
    const int count = e->row->score_samples ? e->row->score_samples(m, records) : 0;

    for (int i = 0; i < count; i++) {
        struct pm_drawings drawings = { 0 };
        cJSON *object = cJSON_CreateObject();

        pm_str_add(out, "record %llu: ", (unsigned long long)records[i]);
        if (e->row->score_sample(m, i, e->record, e->record_size, "a record", object, &drawings) <
            0)
            pm_str_add(out, "%s", pm_error_text());
        add_json(out, object);
        for (size_t k = 0; k < drawings.count; k++) {
            const struct pm_image8 *im = &drawings.list[k].image;

            pm_str_add(out, "%s: %d x %d: ", drawings.list[k].what, im->height, im->width);
            if (im->pixels)
                pm_str_base64(out, im->pixels,
                              (size_t)im->height * (size_t)im->width * (size_t)im->channels);
            pm_str_add(out, "\n");
        }
        pm_drawings_free(&drawings);
    }
}

/* Appends the files that the score writes. */
static inline void add_files(const struct evaluation *e, const struct pm_score *m,
                             struct pm_str *out)
{
    struct pm_arena *a = pm_arena_create();
    char *folder = make_folder(), **names, *text;
    size_t count, size;

    if (e->row->score_write)
        assert_int_equal(e->row->score_write(m, folder), PM_OK);
    assert_int_equal(pm_list_folder(a, folder, &names, &count), PM_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pm_file_read(pm_arena_printf(a, "%s/%s", folder, names[i]), &text, &size),
                         PM_OK);
        pm_str_add(out, "%s: %s\n", names[i], text);
        pm_free(text);
    }
    drop_folder(folder);
    pm_arena_destroy(&a);
}

/* Appends everything that a score results in; files only if wanted. */
static inline void add_results(const struct evaluation *e, const struct pm_score *m, bool files,
                               struct pm_str *out)
{
    cJSON *report = cJSON_CreateObject(), *detail = cJSON_CreateObject();

    e->row->score_report(m, report);
    add_json(out, report);
    if (e->row->score_detail)
        e->row->score_detail(m, detail);
    add_json(out, detail);
    add_samples(e, m, out);
    if (files)
        add_files(e, m, out);
}

/* The results of the score must be those of the text. */
static inline void assert_results(const struct evaluation *e, const struct pm_score *m,
                                  const struct pm_str *expected)
{
    struct pm_str s = { 0 };

    add_results(e, m, true, &s);
    assert_string_equal(s.text, expected->text);
    assert_int_equal(s.length, expected->length);
    pm_str_free(&s);
}

/* ---- several processes ------------------------------------------------------------------- */

static inline void add_batch(const struct evaluation *e, struct pm_score *m, int i)
{
    const struct scored_batch *b = &e->batches[i];

    assert_int_equal(e->row->score_add(m, &b->batch, b->outputs, b->loss), PM_OK);
}

/* Packs the batches from `first` up to `end` - 1, as one process does that scores nothing else. */
static inline struct pm_str packed(const struct evaluation *e, int first, int end)
{
    struct pm_score *m = e->row->score_create(e->task);
    struct pm_str s = { 0 };

    for (int i = first; i < end; i++)
        add_batch(e, m, i);
    e->row->score_pack(m, &s);
    e->row->score_destroy(&m);
    return s;
}

static inline void merge(const struct evaluation *e, struct pm_score *m, const struct pm_str *pack)
{
    if (e->row->score_merge(m, pack->text, pack->length) < 0)
        fail_msg("%s", pm_error_text());
}

/* Deals batches to `ranks` processes. Process 0 merges the packs of the others. */
static inline void check_ranks(const struct evaluation *e, int ranks, const struct pm_str *expected)
{
    struct pm_score *m = e->row->score_create(e->task);

    for (int i = 0; i < e->count; i++) {
        if (i % ranks == 0) {
            add_batch(e, m, i);
            continue;
        }
        struct pm_str pack = packed(e, i, i + 1);

        merge(e, m, &pack);
        pm_str_free(&pack);
    }
    assert_results(e, m, expected);
    e->row->score_destroy(&m);
}

/* Packs of `length` consecutive batches. The merged score is packed and merged again. */
static inline void check_runs(const struct evaluation *e, int length, const struct pm_str *expected)
{
    struct pm_score *m = e->row->score_create(e->task), *again = e->row->score_create(e->task);
    struct pm_str whole = { 0 };

    pm_str_add(&whole, "before");
    for (int i = 0; i < e->count; i += length) {
        struct pm_str pack = packed(e, i, i + length < e->count ? i + length : e->count);

        merge(e, m, &pack);
        pm_str_free(&pack);
    }
    assert_results(e, m, expected);
    e->row->score_pack(m, &whole); /* appends */
    assert_memory_equal(whole.text, "before", 6);
    assert_int_equal(e->row->score_merge(again, whole.text + 6, whole.length - 6), PM_OK);
    assert_results(e, again, expected);
    pm_str_free(&whole);
    e->row->score_destroy(&m);
    e->row->score_destroy(&again);
}

/* All ways of dealing the batches give the same results as one process. */
static inline void check_evaluation(const struct evaluation *e)
{
    struct pm_score *m = e->row->score_create(e->task);
    struct pm_str expected = { 0 };

    for (int i = 0; i < e->count; i++)
        add_batch(e, m, i);
    add_results(e, m, true, &expected);
    e->row->score_destroy(&m);
    for (int length = 1; length <= e->count; length++)
        check_runs(e, length, &expected);
    for (int ranks = 2; ranks <= 3; ranks++)
        check_ranks(e, ranks, &expected);
    pm_str_free(&expected);
}

/* ---- damaged packs ----------------------------------------------------------------------- */


static inline void assert_refused(const struct evaluation *e, const void *bytes, size_t size)
{
    struct pm_score *m = e->row->score_create(e->task);

    assert_int_equal(e->row->score_merge(m, bytes, size), PM_EDATA);
    assert_contains(pm_error_text(), "scores from another process");
    assert_true(pm_is_line(pm_error_text()));
    e->row->score_destroy(&m);
}

/* Ends of the pack are missing: with its own header, and with one for the shorter contents. Of a
 * long pack some lengths are left out. */
static inline void check_truncated(const struct evaluation *e, const struct pm_str *pack)
{
    const size_t step = pack->length / 500 + 1;

    for (size_t size = 0; size < pack->length; size += size < 300 ? 1 : step) {
        struct pm_str s = { 0 };

        pm_str_bytes(&s, pack->text, size);
        assert_refused(e, s.text, s.length);
        if (size >= PM_SCORE_PACK_HEADER) {
            pm_score_pack_end(&s, 0);
            assert_refused(e, s.text, s.length);
        }
        pm_str_free(&s);
    }
}

/* Flips bits of the pack. Its hash finds them. With a hash that fits, contents that are still
 * possible are merged and reported, so that the sanitizers see them. Lengths and counts are often
 * near the ends. */
static inline void check_flipped(const struct evaluation *e, const struct pm_str *pack)
{
    const uint32_t length = (uint32_t)pack->length, end = length < 600 ? length : 600;
    uint32_t seed = 12345;

    for (int n = 0; n < 400; n++) {
        struct pm_score *m = e->row->score_create(e->task);
        struct pm_str s = { 0 }, results = { 0 };

        pm_str_bytes(&s, pack->text, pack->length);
        for (uint32_t flips = 1 + drawn(&seed, 3); flips > 0; flips--) {
            const uint32_t at = n % 3 == 0   ? drawn(&seed, length)
                                : n % 3 == 1 ? drawn(&seed, end)
                                             : length - 1 - drawn(&seed, end);

            s.text[at] ^= (char)(1 << drawn(&seed, 8));
        }
        if (memcmp(s.text, pack->text, s.length) != 0)
            assert_refused(e, s.text, s.length);
        pm_score_pack_end(&s, 0);
        memcpy(s.text, pack->text, 8);
        const int err = e->row->score_merge(m, s.text, s.length);
        if (err == PM_OK)
            add_results(e, m, false, &results);
        else
            assert_int_equal(err, PM_EDATA);
        e->row->score_destroy(&m);
        pm_str_free(&s);
        pm_str_free(&results);
    }
}

/* Packs of the first batch with all kinds of damage, and of other tasks. */
static inline void check_damage(const struct evaluation *e)
{
    struct pm_str pack = packed(e, 0, 1);
    struct pm_score *m = e->row->score_create(e->task);

    merge(e, m, &pack);
    check_truncated(e, &pack);
    check_flipped(e, &pack);
    pm_str_bytes(&pack, "12345678", 8);
    assert_refused(e, pack.text, pack.length);
    pm_score_pack_end(&pack, 0);
    assert_refused(e, pack.text, pack.length);
    assert_refused(e, NULL, 0);
    pm_str_free(&pack);
    e->row->score_destroy(&m);
}

/* A pack of `e` is refused by a task with other options, and the error names both. */
static inline void check_other_options(const struct evaluation *e, const struct pm_task *other,
                                       const char *own, const char *others)
{
    struct pm_str pack = packed(e, 0, 1);
    struct pm_score *m = e->row->score_create(other);

    assert_int_equal(e->row->score_merge(m, pack.text, pack.length), PM_EDATA);
    assert_contains(pm_error_text(), own);
    assert_contains(pm_error_text(), others);
    assert_contains(pm_error_text(), "but this process evaluates");
    e->row->score_destroy(&m);
    pm_str_free(&pack);
}

#endif
