/* words: drawn pictures of words, for text recognition. A picture shows one word in one font, over
 * a drawn ground or a part of a photo (word_picture.h). Words are of random letters, or of a list.
 * Records hold image/encoded, format, filename, height, width, the word as image/transcript, in
 * UTF-8, and the corners of its letters as image/keypoints (data/word_points.h). Picture i of a
 * split is a function of (seed, split, i), the fonts, the words and the photos. */
#include <pthread.h>
#include <string.h>

#include "data/convert/word_records.h"
#include "data/make/word_picture.h"

enum {
    LEAST_HEIGHT = 8,
    MOST_HEIGHT = 256, /* pixels */
    MOST_LETTERS = 256,
    MOST_FONTS = 256,
    MOST_PHOTOS = 64, /* decoded at once */
};

struct words_cfg {
    int train, validation, test, height, least, most;
    const char *letters, *words, *fonts, *photos;
    int64_t seed;
};

static const struct pm_opt opts[] = {
    PM_INT(words_cfg, train, 20000, 1, 100000000, "pictures of the split train"),
    PM_INT(words_cfg, validation, 1000, 0, 100000000, "pictures of the split validation"),
    PM_INT(words_cfg, test, 1000, 0, 100000000, "pictures of the split test"),
    PM_INT(words_cfg, height, 32, LEAST_HEIGHT, MOST_HEIGHT,
           "height in pixels; the width fits the word"),
    PM_STRING(words_cfg, letters, "0123456789abcdefghijklmnopqrstuvwxyz",
              "letters of random words, one after the other"),
    PM_INT(words_cfg, least, 1, 1, MOST_LETTERS, "least number of letters of a random word"),
    PM_INT(words_cfg, most, 8, 1, MOST_LETTERS, "largest number of letters of a random word"),
    PM_STRING(words_cfg, words, NULL,
              "file with a word in each line; these are drawn instead of random ones"),
    PM_STRING(words_cfg, fonts, NULL,
              "folder with font files, .ttf or .otf, or one file; null = DejaVu Sans, Sans Mono "
              "and Serif"),
    PM_STRING(words_cfg, photos, NULL,
              "folder with photos; parts of them are the grounds; null = drawn grounds"),
    PM_INT64(words_cfg, seed, 0, 0, 9007199254740992, "of the drawings"),
    { 0 },
};

struct font {
    const char *path;
    struct pm_font *face;
    pthread_mutex_t lock; /* of the face */
};
/* What all splits are drawn from. */
struct source {
    const struct words_cfg *o;
    struct pm_arena *arena;
    uint32_t *letters; /* code points; in the arena, as the words */
    int letter_count;
    char **words;
    size_t word_count; /* 0: random words */
    struct font font[MOST_FONTS];
    int font_count;
    struct pm_image8 photo[MOST_PHOTOS];
    int photo_count;
};
struct split {
    const char *name;
    struct source *from;
};

/* ---- what is given ------------------------------------------------------------------------ */

/* Decodes text into code points, at most `most`. Returns their number, or -1 if it is not UTF-8,
 * has a control character, or is longer. */
static int decode(const char *text, uint32_t *out, int most)
{
    int count = 0;

    while (*text) {
        uint32_t code;
        const int n = pm_utf8_next(text, strlen(text), &code);

        if (n == 0 || code < 0x20 || count == most)
            return -1;
        out[count++] = code;
        text += n;
    }
    return count;
}

/* Letters are drawn from left to right. Another order would be a wrong picture of the text. */
static int check_direction(const uint32_t *letters, int count, const char *where)
{
    for (int i = 0; i < count; i++)
        if (pm_is_right_to_left(letters[i]))
            return pm_fail(PM_ECONFIG, "%s: the letter U+%04X is of a script that is written from "
                           "right to left, but words are drawn from left to right: remove it, or "
                           "convert pictures of your own (dataset convert words)", where,
                           (unsigned)letters[i]);
    return PM_OK;
}

static int read_letters(struct source *s)
{
    const int most = (int)strlen(s->o->letters);

    if (s->o->least > s->o->most)
        return pm_fail(PM_ECONFIG, "dataset make words: least: %d is more than most, %d",
                       s->o->least, s->o->most);
    s->letters = pm_arena_alloc(s->arena, (size_t)(most + 1) * sizeof *s->letters);
    s->letter_count = decode(s->o->letters, s->letters, most + 1);
    if (s->letter_count < 1)
        return pm_fail(PM_ECONFIG, "dataset make words: letters: \"%s\" is not a list of UTF-8 "
                       "letters, at least one", s->o->letters);
    return check_direction(s->letters, s->letter_count, "dataset make words: letters");
}

static int read_words(struct source *s)
{
    uint32_t letters[MOST_LETTERS];
    int err = PM_OK;

    if (!s->o->words)
        return PM_OK;
    PM_TRY(pm_file_lines(s->arena, s->o->words, &s->words, &s->word_count));
    if (s->word_count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: there is no word in it", s->o->words));
    for (size_t i = 0; i < s->word_count; i++) {
        const int count = decode(s->words[i], letters, MOST_LETTERS);

        if (count < 1)
            PM_TRY(pm_fail(PM_EDATA, "%s: word %zu, \"%.100s\", is not UTF-8 of 1 to %d letters",
                           s->o->words, i + 1, s->words[i], MOST_LETTERS));
        PM_TRY(check_direction(letters, count, pm_arena_printf(s->arena, "%s: word %zu",
                                                               s->o->words, i + 1)));
    }
out:
    return err;
}

static int add_font(struct source *s, const char *path)
{
    struct font *f = &s->font[s->font_count];
    const int err = pm_font_open(path, "dataset make words", &f->face);

    if (err < 0)
        return err;
    f->path = path;
    pthread_mutex_init(&f->lock, NULL);
    s->font_count++;
    return PM_OK;
}

static bool ends_as_font(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && (!strcasecmp(dot, ".ttf") || !strcasecmp(dot, ".otf"));
}

static int open_folder_fonts(struct source *s, const char *folder)
{
    char **names;
    size_t count;
    int err = PM_OK;

    PM_TRY(pm_list_folder(s->arena, folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        if (!ends_as_font(names[i]))
            continue;
        if (s->font_count == MOST_FONTS)
            PM_TRY(pm_fail(PM_EDATA, "%s: it has more than %d fonts: give fewer", folder,
                           MOST_FONTS));
        PM_TRY(add_font(s, pm_arena_printf(s->arena, "%s/%s", folder, names[i])));
    }
    if (s->font_count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: there is no font in it, .ttf or .otf", folder));
out:
    return err;
}

static int open_fonts(struct source *s)
{
    static const char *const usual[] = { "DejaVuSans.ttf", "DejaVuSansMono.ttf",
                                         "DejaVuSerif.ttf" };
    int err = PM_OK;
    char path[256];

    if (s->o->fonts && pm_is_folder(s->o->fonts))
        return open_folder_fonts(s, s->o->fonts);
    if (s->o->fonts)
        return add_font(s, s->o->fonts);
    for (size_t i = 0; i < PM_COUNT(usual); i++) {
        if (!pm_font_installed(usual[i], path, sizeof path))
            PM_TRY(pm_fail(PM_EFAIL, "dataset make words: the font %s is not installed: install "
                           "the package fonts-dejavu-core, or set fonts to a folder of fonts",
                           usual[i]));
        PM_TRY(add_font(s, pm_arena_strdup(s->arena, path)));
    }
out:
    return err;
}

static int read_photo(const char *path, struct pm_image8 *out)
{
    char *bytes = NULL;
    size_t size;
    int err = PM_OK;

    PM_TRY(pm_file_read(path, &bytes, &size));
    PM_TRY(pm_image_decode(bytes, size, 3, 0, path, out));
out:
    pm_free(bytes);
    return err;
}

/* Of many photos, MOST_PHOTOS at equal distances in the list are used. */
static int read_photos(struct source *s)
{
    struct pm_sources files = { 0 };
    int err = PM_OK;

    if (!s->o->photos)
        return PM_OK;
    PM_TRY(pm_sources_folder(s->arena, s->o->photos, 0, &files));
    if (files.count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: there is no picture in it (" PM_IMAGE_ENDINGS ")",
                       s->o->photos));
    const size_t used = files.count < MOST_PHOTOS ? files.count : MOST_PHOTOS;

    if (used < files.count)
        PM_INFO("data", "%s: %zu of its %zu photos are used", s->o->photos, used, files.count);
    for (size_t i = 0; i < used; i++) {
        PM_TRY(read_photo(files.item[i * files.count / used].path, &s->photo[i]));
        s->photo_count++;
    }
out:
    pm_sources_free(&files);
    return err;
}

static void close_source(struct source *s)
{
    for (int i = 0; i < s->font_count; i++) {
        pthread_mutex_destroy(&s->font[i].lock);
        pm_font_close(&s->font[i].face);
    }
    for (int i = 0; i < s->photo_count; i++)
        pm_image_free(&s->photo[i]);
}

/* ---- records ------------------------------------------------------------------------------ */

static int random_word(struct pm_rng *r, const struct source *s, uint32_t *out)
{
    int count;

    if (s->word_count) {
        const int64_t i = pm_rng_int(r, 0, (int64_t)s->word_count - 1);
        return decode(s->words[i], out, MOST_LETTERS);
    }
    count = (int)pm_rng_int(r, s->o->least, s->o->most);
    for (int i = 0; i < count; i++)
        out[i] = s->letters[pm_rng_int(r, 0, s->letter_count - 1)];
    return count;
}

/* Draws the letters of a word that the drawn font has. */
static int draw_ink(struct pm_rng *r, struct source *s, uint32_t *text, int *count,
                    struct pm_word_ink *ink)
{
    enum { TRIES = 1000 };
    struct pm_str word = { 0 };

    for (int tries = 0; tries < TRIES; tries++) {
        struct font *f = &s->font[pm_rng_int(r, 0, s->font_count - 1)];
        bool drawn;

        *count = random_word(r, s, text);
        pthread_mutex_lock(&f->lock);
        drawn = pm_word_ink(f->face, 2 * s->o->height, text, *count, ink);
        pthread_mutex_unlock(&f->lock);
        if (drawn)
            return PM_OK;
    }
    for (int i = 0; i < *count; i++)
        pm_utf8_add(&word, text[i]);
    const int err = pm_fail(PM_EDATA, "dataset make words: in %d tries, the fonts lacked letters "
                            "of the words, the last time of \"%s\": give fonts that have them, "
                            "or other letters", TRIES, word.text);

    pm_str_free(&word);
    return err;
}

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    const struct split *split = ctx;
    struct source *s = split->from;
    struct pm_rng r = pm_rng_make((uint64_t)s->o->seed, pm_hash(split->name),
                                  (uint32_t)((uint64_t)i >> 32), (uint32_t)i);
    struct pm_word_ink ink = { 0 };
    struct pm_image8 im = { 0 };
    struct pm_str word = { 0 };
    uint32_t text[MOST_LETTERS];
    uint8_t *png = NULL;
    size_t bytes;
    float points[PM_WORD_CORNERS];
    int count, err = PM_OK;
    char name[64];

    PM_TRY(draw_ink(&r, s, text, &count, &ink));
    const struct pm_image8 *photo =
        s->photo_count ? &s->photo[pm_rng_int(&r, 0, s->photo_count - 1)] : NULL;
    pm_word_draw(&r, &ink, s->o->height, photo, &im, points);
    for (int k = 0; k < count; k++)
        pm_utf8_add(&word, text[k]);
    PM_TRY(pm_image_encode_png(&im, &png, &bytes));
    snprintf(name, sizeof name, "%s_%06zu.png", split->name, i);
    pm_word_record(b, png, bytes, "png", im.height, im.width, name, word.text, NULL);
    pm_example_add_floats(b, "image/keypoints", points, PM_WORD_CORNERS);
    err = 1;
out:
    pm_str_free(&word);
    pm_free(png);
    pm_image_free(&im);
    pm_free(ink.pixels);
    return err;
}

static int make(const void *options, const char *dst)
{
    struct source *s = pm_calloc(1, sizeof *s);
    const struct words_cfg *o = options;
    const struct {
        const char *name;
        int count;
    } splits[] = { { "train", o->train }, { "validation", o->validation }, { "test", o->test } };
    const struct pm_sharding sharding = { PM_CUT_SIZE, 5000, PM_NAMES_SLIM };
    struct pm_making *m = NULL;
    int err = PM_OK;

    s->o = o;
    s->arena = pm_arena_create();
    PM_TRY(read_letters(s));
    PM_TRY(read_words(s));
    PM_TRY(open_fonts(s));
    PM_TRY(read_photos(s));
    PM_TRY(pm_making_create(dst, "words", false, &m));
    for (size_t k = 0; k < PM_COUNT(splits); k++) {
        struct split split = { splits[k].name, s };
        if (splits[k].count)
            PM_TRY(pm_making_split(m, split.name, (size_t)splits[k].count, &sharding, fill,
                                   &split));
    }
    PM_TRY(pm_making_finish(m));
out:
    pm_making_destroy(&m);
    close_source(s);
    pm_arena_destroy(&s->arena);
    pm_free(s);
    return err;
}

const struct pm_maker pm_maker_words = {
    .name = "words", .help = "pictures of words, with the word as image/transcript",
    .opts = opts, .cfg_size = sizeof(struct words_cfg), .make = make,
};
