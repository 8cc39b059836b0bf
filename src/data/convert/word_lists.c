/* word_lists: word_lists.h has the contract. Lines have the form of ICDAR's word recognition, which
 * most later sets of words use. JSON has the form of annotation tools: an object in each line, or
 * one list of objects. LMDB files have the keys of the first CRNN program: num-samples,
 * image-000000001, label-000000001 and so on. */
#include "data/convert/word_lists.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert/annotated.h"
#include "data/convert/json_reader.h"
#include "formats/lmdb.h"

/* ---- pictures ----------------------------------------------------------------------------- */

/* Adds a word whose picture is a file. of: its lexicon and key points, if it has some. */
static int add_file(struct pm_word_lists *l, const char *name, const char *text,
                    struct pm_word of, const char *where, size_t line)
{
    struct pm_arena *a = l->words->arena;
    struct pm_str tried = { 0 };
    const char *found = NULL;
    int err = PM_OK;

    PM_TRY(pm_word_check(name, strlen(name), where, line));
    PM_TRY(pm_word_check(text, strlen(text), where, line));
    for (const char *p = name; p[0] == '.' && p[1] == '/'; p = name)
        name = p + 2;
    if (!pm_path_inside(name))
        PM_TRY(pm_fail(PM_EDATA, "%s:%zu: the picture \"%.200s\" is not below the data's folder: "
                       "write its path from there", where, line, name));
    for (const char *const *f = l->folders; *f && !found; f++) {
        const char *path = pm_arena_printf(a, "%s/%s", *f, name);

        found = pm_file_exists(path) ? path : NULL;
        pm_str_add(&tried, "%s%s", tried.length ? ", " : "", *f);
    }
    if (!found)
        PM_TRY(pm_fail(PM_EDATA, "%s:%zu: the picture %.200s does not exist in %s: add it, or set "
                       "images to its folder", where, line, name, tried.text));
    of.path = found;
    of.name = pm_arena_strdup(a, name);
    of.text = pm_arena_strdup(a, text);
    pm_words_add(l->words, of);
out:
    pm_str_free(&tried);
    return err;
}

/* ---- lines -------------------------------------------------------------------------------- */

struct lines {
    struct pm_word_lists *lists;
    const char *path;
};

/* PICTURE<tab>TEXT, PICTURE TEXT, or PICTURE, "TEXT". */
static int take_line(void *ctx, const char *line, size_t number)
{
    const struct lines *l = ctx;
    struct pm_arena *a = l->lists->words->arena;
    const char *tab = strchr(line, '\t'), *blank = tab ? tab : strchr(line, ' ');

    if (!blank || blank == line)
        return pm_fail(PM_EDATA, "%s:%zu: \"%.100s\" is not a picture and its text, with a tab or "
                       "a space between them", l->path, number, line);
    const bool comma = blank[-1] == ',';
    const char *name = pm_arena_printf(a, "%.*s", (int)(blank - line) - comma, line);
    const char *text = tab ? blank + 1 : blank + strspn(blank, " ");

    return add_file(l->lists, name, comma ? pm_word_unquoted(a, text) : text,
                    (struct pm_word){ 0 }, l->path, number);
}

/* ---- JSON --------------------------------------------------------------------------------- */

/* What is read of one object. */
struct entry {
    const char *picture, *text, *lexicon; /* in the arena; NULL: not there */
    float *keypoints;                     /* [numbers], in the arena */
    size_t numbers;
    unsigned line;                        /* where it begins */
    bool list;                            /* it holds a list of objects instead */
};

static bool is_one_of(const char *key, const char *const *names)
{
    while (*names && strcmp(key, *names) != 0)
        names++;
    return *names != NULL;
}

static const char *const picture_keys[] = { "filename", "file_name", "img_path", "image_path",
                                            "image",    "path",      NULL };
static const char *const text_keys[] = { "text", "transcript", "transcription", "label", NULL };

static int read_text(struct pm_word_lists *l, struct pm_json_reader *r, const char **out)
{
    const int err = pm_json_text(r);

    if (err == PM_OK)
        *out = pm_arena_strdup(l->words->arena, r->text);
    return err;
}

#define DIGITS "-0123456789" /* a number begins with one of these */

/* PM_EDATA if the next value does not begin with one of these characters. */
static int expect(struct pm_json_reader *r, const char *begins, const char *what)
{
    const int next = pm_json_next(r);

    return next > 0 && strchr(begins, next) ? PM_OK : pm_json_reader_fail(r, "%s", what);
}

static int read_words(struct pm_word_lists *l, struct pm_json_reader *r, const char **out)
{
    static const char what[] = "a list of words, [\"one\", ...], as \"lexicon\"";
    struct pm_str all = { 0 };
    size_t n = 0;
    int err = PM_OK, more;

    PM_TRY(expect(r, "[", what));
    PM_TRY(pm_json_enter(r, '['));
    while ((more = pm_json_item(r, &n)) > 0) {
        PM_TRY(expect(r, "\"" DIGITS, what));
        PM_TRY(pm_json_text(r));
        PM_TRY(pm_word_check(r->text, strlen(r->text), r->path, r->line));
        pm_str_add(&all, "%s%s", n > 1 ? "\t" : "", r->text);
    }
    PM_TRY(more);
    if (all.length == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s:%u: the lexicon has no word: remove it, or add words",
                       r->path, r->line));
    *out = pm_arena_strdup(l->words->arena, all.text);
out:
    pm_str_free(&all);
    return err;
}

/* The list "instances" of one picture: its only object has the text. */
static int read_instances(struct pm_word_lists *l, struct pm_json_reader *r, struct entry *e)
{
    size_t n = 0;
    int err = PM_OK, more;

    PM_TRY(pm_json_enter(r, '['));
    while ((more = pm_json_item(r, &n)) > 0) {
        size_t members = 0;

        if (n > 1)
            PM_TRY(pm_json_reader_fail(r, "one instance: a picture of a word has one text"));
        PM_TRY(pm_json_enter(r, '{'));
        while ((more = pm_json_member(r, &members)) > 0)
            PM_TRY(is_one_of(r->text, text_keys) ? read_text(l, r, &e->text) : pm_json_skip(r));
        PM_TRY(more);
    }
    PM_TRY(more);
out:
    return err;
}

/* The list of x, y in pixels. It is checked when the picture's size is known. */
static int read_points(struct pm_word_lists *l, struct pm_json_reader *r, struct entry *e)
{
    static const char what[] = "a list of numbers, [x, y, ...], as \"keypoints\"";
    size_t n = 0, capacity = 0;
    float *list = NULL;
    double v = 0;
    int err = PM_OK, more;

    e->numbers = 0;
    PM_TRY(expect(r, "[", what));
    PM_TRY(pm_json_enter(r, '['));
    while ((more = pm_json_item(r, &n)) > 0) {
        PM_TRY(expect(r, DIGITS, what));
        PM_TRY(pm_json_number(r, &v));
        PM_GROW(list, e->numbers, capacity);
        list[e->numbers++] = (float)v;
    }
    PM_TRY(more);
    if (e->numbers > 0)
        e->keypoints = pm_arena_copy(l->words->arena, list, e->numbers * sizeof *list);
out:
    pm_free(list);
    return err;
}

static int read_object(struct pm_word_lists *l, struct pm_json_reader *r, bool outer);

static int read_objects(struct pm_word_lists *l, struct pm_json_reader *r)
{
    size_t n = 0;
    int err = PM_OK, more;

    PM_TRY(pm_json_enter(r, '['));
    while ((more = pm_json_item(r, &n)) > 0)
        PM_TRY(read_object(l, r, false));
    PM_TRY(more);
out:
    return err;
}

static int read_member(struct pm_word_lists *l, struct pm_json_reader *r, bool outer,
                       struct entry *e)
{
    if (is_one_of(r->text, picture_keys))
        return read_text(l, r, &e->picture);
    if (is_one_of(r->text, text_keys))
        return read_text(l, r, &e->text);
    if (!strcmp(r->text, "lexicon"))
        return read_words(l, r, &e->lexicon);
    if (!strcmp(r->text, "keypoints"))
        return read_points(l, r, e);
    if (!strcmp(r->text, "instances"))
        return read_instances(l, r, e);
    if (outer && !strcmp(r->text, "data_list")) {
        e->list = true;
        return read_objects(l, r);
    }
    return pm_json_skip(r);
}

/* outer: it may be {"data_list": [object, ...]}. */
static int read_object(struct pm_word_lists *l, struct pm_json_reader *r, bool outer)
{
    struct entry e = { .line = r->line };
    size_t n = 0;
    int err = PM_OK, more;

    PM_TRY(pm_json_enter(r, '{'));
    while ((more = pm_json_member(r, &n)) > 0)
        PM_TRY(read_member(l, r, outer, &e));
    PM_TRY(more);
    if (e.list)
        goto out;
    if (!e.picture || !e.text)
        PM_TRY(pm_fail(PM_EDATA, "%s:%u: the object has no %s: write {\"filename\": \"1.jpg\", "
                       "\"text\": \"word\"}", r->path, r->line,
                       e.picture ? "text" : "filename"));
    PM_TRY(add_file(l, e.picture, e.text, (struct pm_word){
        .lexicon = e.lexicon, .keypoints = e.keypoints, .numbers = e.numbers,
        .keypoints_at = pm_arena_printf(l->words->arena, "%s:%u", r->path, e.line) }, r->path,
        r->line));
out:
    return err;
}

static int add_json(struct pm_word_lists *l, const char *path)
{
    struct pm_json_reader r = { 0 };
    int err = PM_OK;

    PM_TRY(pm_json_reader_open(path, &r));
    if (pm_json_next(&r) == '[')
        PM_TRY(read_objects(l, &r));
    else
        while (pm_json_next(&r) == '{') /* one object, or one in each line */
            PM_TRY(read_object(l, &r, true));
    PM_TRY(pm_json_end(&r));
out:
    pm_json_reader_close(&r);
    return err;
}

/* ---- LMDB --------------------------------------------------------------------------------- */

enum { MOST_NUMBER = 999999999 }; /* keys have nine digits */

static int read_count(const struct pm_lmdb *db, int64_t *count)
{
    char *text = NULL, *end = NULL;
    size_t size = 0;
    const int found = pm_lmdb_get(db, "num-samples", &text, &size);
    int err = PM_OK;

    PM_TRY(found);
    if (found == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: has no key num-samples: the keys should be num-samples, "
                       "image-000000001, label-000000001, ...", pm_lmdb_path(db)));
    *count = strtoll(text, &end, 10);
    if (end == text || *end || (size_t)(end - text) != size || *count < 1 || *count > MOST_NUMBER)
        PM_TRY(pm_fail(PM_EDATA, "%s: num-samples: \"%.40s\" is outside 1..%d", pm_lmdb_path(db),
                       text, MOST_NUMBER));
    err = PM_OK;
out:
    pm_free(text);
    return err;
}

/* A label that is JSON names a picture file. */
static int add_label_json(struct pm_word_lists *l, const char *where, const char *text)
{
    cJSON *o = NULL;
    int err = PM_OK;

    PM_TRY(pm_json_parse(where, text, &o));
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "filename"));
    const char *word = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "text"));

    if (!name || !word)
        PM_TRY(pm_fail(PM_EDATA, "%s: has no %s", where, name ? "text" : "filename"));
    PM_TRY(add_file(l, name, word, (struct pm_word){ 0 }, where, 1));
out:
    cJSON_Delete(o);
    return err;
}

static int add_sample(struct pm_word_lists *l, const struct pm_lmdb *db, int64_t number)
{
    struct pm_arena *a = l->words->arena;
    const char *key = pm_arena_printf(a, "image-%09lld", (long long)number);
    const char *label = pm_arena_printf(a, "label-%09lld", (long long)number);
    const char *where = pm_arena_printf(a, "%s: %s", pm_lmdb_path(db), label);
    char *text = NULL;
    size_t size = 0;
    int err = PM_OK, found = 0, image = 0;

    PM_TRY(found = pm_lmdb_get(db, label, &text, &size));
    if (found == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s is missing, but num-samples counts it", where));
    PM_TRY(pm_word_check(text, size, where, 0));
    PM_TRY(image = pm_lmdb_get(db, key, NULL, NULL));
    if (!image && text[0] == '{') {
        PM_TRY(add_label_json(l, where, text));
        goto out;
    }
    if (!image)
        PM_TRY(pm_fail(PM_EDATA, "%s: %s is missing, the picture of %s", pm_lmdb_path(db), key,
                       label));
    pm_words_add(l->words, (struct pm_word){ .path = pm_lmdb_path(db), .name = key, .lmdb = db,
                                             .text = pm_arena_strdup(a, text) });
    err = PM_OK;
out:
    pm_free(text);
    return err < 0 ? err : PM_OK;
}

static int add_lmdb(struct pm_word_lists *l, const char *path)
{
    struct pm_lmdb *db = NULL;
    int64_t count = 0;
    int err = PM_OK;

    PM_TRY(pm_lmdb_open(path, &db));
    PM_GROW(l->lmdb, l->lmdb_count, l->lmdb_capacity);
    l->lmdb[l->lmdb_count++] = db;
    PM_TRY(read_count(db, &count));
    for (int64_t i = 1; i <= count; i++)
        PM_TRY(add_sample(l, db, i));
out:
    return err;
}

/* ---- all ---------------------------------------------------------------------------------- */

int pm_word_list_add(struct pm_word_lists *l, const char *path)
{
    struct lines lines = { l, path };

    if (pm_is_folder(path) || pm_ends_with(path, ".mdb") || pm_ends_with(path, ".lmdb"))
        return add_lmdb(l, path);
    if (pm_ends_with(path, ".json") || pm_ends_with(path, ".jsonl"))
        return add_json(l, path);
    return pm_lines_add(l->words->arena, path, take_line, &lines);
}

void pm_word_lists_free(struct pm_word_lists *l)
{
    for (size_t i = 0; i < l->lmdb_count; i++)
        pm_lmdb_close(&l->lmdb[i]);
    pm_free(l->lmdb);
}
