/* word_records: word_records.h has the contract. */
#include "data/convert/word_records.h"

#include <math.h>
#include <string.h>

#include "data/convert/annotated.h"
#include "data/convert/shared_pictures.h"
#include "data/projection.h"
#include "data/word_points.h"
#include "formats/lmdb.h"

/* ---- texts -------------------------------------------------------------------------------- */

int pm_word_check(const char *text, size_t size, const char *where, size_t line)
{
    const int shown = (int)(size < 100 ? size : 100);
    char at[32] = "";

    if (line)
        snprintf(at, sizeof at, ":%zu", line);
    for (size_t i = 0; i < size;) {
        uint32_t code = 0;
        const int n = pm_utf8_next(text + i, size - i, &code);

        if (n == 0)
            return pm_fail(PM_EDATA, "%s%s: the text \"%.*s\" is not UTF-8 at its byte %zu: save "
                           "the file as UTF-8", where, at, shown, text, i);
        if (code < 0x20 || (code >= 0x7f && code < 0xa0))
            return pm_fail(PM_EDATA, "%s%s: the text \"%.*s\" has a control character at its byte "
                           "%zu: remove it", where, at, shown, text, i);
        i += (size_t)n;
    }
    return PM_OK;
}

const char *pm_word_unquoted(struct pm_arena *a, const char *text)
{
    const size_t size = strlen(text);
    const bool quoted = size >= 2 && text[0] == '"' && text[size - 1] == '"';

    return quoted ? pm_arena_printf(a, "%.*s", (int)size - 2, text + 1) : text;
}

/* Reads a file with a word in each line into the form of image/lexicon, in the arena. PM_EDATA if
 * there is no word in it, or one of them fails pm_word_check. */
static int read_lexicon(struct pm_arena *a, const char *path, const char **out)
{
    struct pm_str all = { 0 };
    char **lines = NULL;
    size_t count = 0;
    int err = PM_OK;

    PM_TRY(pm_lines_of(a, path, &lines, &count));
    for (size_t i = 0; i < count; i++) {
        if (!lines[i][0])
            continue;
        PM_TRY(pm_word_check(lines[i], strlen(lines[i]), path, i + 1));
        pm_str_add(&all, "%s%s", all.length ? "\t" : "", lines[i]);
    }
    if (all.length == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: the lexicon has no word: write one in each line", path));
    *out = pm_arena_strdup(a, all.text);
out:
    pm_str_free(&all);
    return err;
}

/* ---- the list ----------------------------------------------------------------------------- */

void pm_words_split(struct pm_words *s, const char *name)
{
    PM_GROW(s->split, s->splits, s->splits_capacity);
    s->split[s->splits++] = (struct pm_word_split){ name, s->count };
}

void pm_words_add(struct pm_words *s, struct pm_word of)
{
    const struct pm_word *before = s->count > 0 ? &s->word[s->count - 1] : NULL;
    const bool same = of.corners && before && before->corners && !strcmp(before->path, of.path);

    s->groups += !same;
    of.group = s->groups - 1;
    if (!of.lexicon)
        of.lexicon = s->lexicon;
    PM_GROW(s->word, s->count, s->capacity);
    s->word[s->count++] = of;
}

void pm_words_free(struct pm_words *s)
{
    pm_free(s->word);
    pm_free(s->split);
}

/* ---- cutting ------------------------------------------------------------------------------ */

enum { LEAST_SIDE = 2, MOST_SIDE = 4096 }; /* pixels of a word that is cut */

struct cut {
    const struct pm_word *word;
    int exif;
};

/* Whether the corners go clockwise around a convex quadrangle. The other direction would mirror the
 * word. */
static bool is_clockwise(const float u[4], const float v[4])
{
    int turns = 0;

    for (int i = 0; i < 4; i++) {
        const int j = (i + 1) % 4, k = (i + 2) % 4;
        const float turn = (u[j] - u[i]) * (v[k] - v[j]) - (v[j] - v[i]) * (u[k] - u[j]);

        turns += turn > 0;
    }
    return turns == 4;
}

static int side(const float u[4], const float v[4], int a, int b, int c, int d)
{
    const float mean = (hypotf(u[b] - u[a], v[b] - v[a]) + hypotf(u[d] - u[c], v[d] - v[c])) / 2;

    return mean < MOST_SIDE ? (int)(mean + 0.5f) : MOST_SIDE;
}

/* A pixel of the whole picture between its centres, edges repeated. */
static float sample(const struct pm_image8 *im, float u, float v, int c)
{
    const float x = fminf(fmaxf(u - 0.5f, 0), (float)(im->width - 1));
    const float y = fminf(fmaxf(v - 0.5f, 0), (float)(im->height - 1));
    const int x0 = (int)x, y0 = (int)y;
    const int x1 = x0 + 1 < im->width ? x0 + 1 : x0, y1 = y0 + 1 < im->height ? y0 + 1 : y0;
    const float a = x - (float)x0, b = y - (float)y0;
    const uint8_t *p = im->pixels + c;
    const size_t step = (size_t)im->channels, row = (size_t)im->width * step;
    const float top = (1 - a) * p[(size_t)y0 * row + (size_t)x0 * step] +
                      a * p[(size_t)y0 * row + (size_t)x1 * step];
    const float low = (1 - a) * p[(size_t)y1 * row + (size_t)x0 * step] +
                      a * p[(size_t)y1 * row + (size_t)x1 * step];

    return (1 - b) * top + b * low;
}

static void warp(const struct pm_image8 *from, const struct pm_projection *p,
                 struct pm_image8 *out)
{
    uint8_t *to = out->pixels;

    for (int y = 0; y < out->height; y++)
        for (int x = 0; x < out->width; x++) {
            float u, v;

            pm_project(p, ((float)x + 0.5f) / (float)out->width,
                       ((float)y + 0.5f) / (float)out->height, &u, &v);
            for (int c = 0; c < out->channels; c++)
                *to++ = (uint8_t)(sample(from, u, v, c) + 0.5f);
        }
}

/* The corners in pixels of the upright picture. */
static void place_corners(const struct pm_picture *p, const struct cut *cut, float u[4],
                          float v[4])
{
    const int turn = pm_box_orientation(cut->exif, p, 0, 0);
    const double height = p->image.height, width = p->image.width;
    const bool across = turn >= 5;

    for (int k = 0; k < 4; k++) {
        double y = cut->word->corners[2 * k] / (across ? width : height);
        double x = cut->word->corners[2 * k + 1] / (across ? height : width);

        pm_turn_point(turn, &y, &x);
        u[k] = (float)(x * width);
        v[k] = (float)(y * height);
    }
}

/* pm_picture_part: a word by its quadrangle. PM_EDATA if there is nothing to read in it. */
static int cut_word(const struct pm_picture *whole, const void *ctx, struct pm_picture *out)
{
    const struct cut *cut = ctx;
    const struct pm_image8 *im = &whole->image;
    struct pm_image8 part = { .channels = im->channels };
    float u[4], v[4];
    int err = PM_OK;

    place_corners(whole, cut, u, v);
    part.width = side(u, v, 0, 1, 3, 2);
    part.height = side(u, v, 0, 3, 1, 2);
    const float least_u = fminf(fminf(u[0], u[1]), fminf(u[2], u[3]));
    const float most_u = fmaxf(fmaxf(u[0], u[1]), fmaxf(u[2], u[3]));
    const float least_v = fminf(fminf(v[0], v[1]), fminf(v[2], v[3]));
    const float most_v = fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3]));

    if (part.width < LEAST_SIDE || part.height < LEAST_SIDE || !is_clockwise(u, v))
        PM_TRY(pm_fail(PM_EDATA, "%s: its corners are not those of a convex quadrangle of at "
                       "least %d x %d pixels, clockwise from the text's left top: correct them",
                       cut->word->corners_at, LEAST_SIDE, LEAST_SIDE));
    if (most_u <= 0 || most_v <= 0 || least_u >= (float)im->width || least_v >= (float)im->height)
        PM_TRY(pm_fail(PM_EDATA, "%s: it is outside of the picture %s, which is %d pixels wide and "
                       "%d high: correct its corners", cut->word->corners_at, cut->word->path,
                       im->width, im->height));
    const struct pm_projection p = pm_projection_to(u, v);

    *out = (struct pm_picture){ .orientation = 1, .format = whole->format };
    part.pixels = pm_malloc((size_t)part.height * (size_t)part.width * (size_t)part.channels);
    warp(im, &p, &part);
    PM_TRY(pm_picture_pixels(out, &part));
out:
    pm_image_free(&part);
    return err;
}

/* ---- records ------------------------------------------------------------------------------ */

void pm_word_record(struct pm_example_builder *b, const void *encoded, size_t size,
                    const char *format, int height, int width, const char *name, const char *text,
                    const char *lexicon)
{
    const int64_t rows = height, columns = width;

    pm_example_add_bytes(b, "image/encoded", encoded, size);
    pm_add_text(b, "image/format", format);
    pm_add_text(b, "image/filename", name);
    pm_example_add_ints(b, "image/height", &rows, 1);
    pm_example_add_ints(b, "image/width", &columns, 1);
    pm_add_text(b, "image/transcript", text);
    if (lexicon)
        pm_add_text(b, "image/lexicon", lexicon);
}

/* A part of a list: those of its groups that belong to one split. */
struct part {
    const struct pm_words *words;
    const size_t *index; /* of words */
    struct pm_shared_pictures *pictures;
};

static int read_lmdb(const struct pm_word *w, struct pm_picture *out)
{
    char *bytes = NULL, where[512];
    size_t size = 0;
    const int found = pm_lmdb_get(w->lmdb, w->name, &bytes, &size);

    *out = (struct pm_picture){ 0 };
    snprintf(where, sizeof where, "%s: %s", w->path, w->name);
    if (found == 0)
        return pm_fail(PM_EDATA, "%s is missing", where);
    return found < 0 ? found : pm_picture_take(where, bytes, size, out);
}

static int add_points(struct pm_example_builder *b, const struct pm_word *w,
                      const struct pm_picture *p)
{
    float corners[PM_WORD_CORNERS];
    int err = PM_OK;

    if (w->corners) {
        pm_word_points_of_picture(p->image.height, p->image.width, corners);
        pm_example_add_floats(b, "image/keypoints", corners, PM_WORD_CORNERS);
    } else if (w->numbers > 0) {
        PM_TRY(pm_word_points_check(w->keypoints, w->numbers, p->image.height, p->image.width,
                                    w->keypoints_at));
        pm_example_add_floats(b, "image/keypoints", w->keypoints, w->numbers);
    }
out:
    return err;
}

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    struct part *part = ctx;
    const struct pm_word *w = &part->words->word[part->index[i]];
    const struct cut cut = { w, part->words->exif };
    struct pm_picture p = { 0 };
    int err = PM_OK;

    PM_TRY(w->corners ? pm_shared_pictures_part(part->pictures, w->path, cut_word, &cut, &p)
           : w->lmdb  ? read_lmdb(w, &p)
                      : pm_picture_read(w->path, &p));
    pm_word_record(b, p.data, p.size, p.format, p.image.height, p.image.width, w->name, w->text,
                   w->lexicon);
    PM_TRY(add_points(b, w, &p));
    err = 1;
out:
    pm_picture_free(&p);
    return pm_picture_failed(err, part->words->bad);
}

/* Writes these words as a split. */
static int write_part(const struct pm_words *s, struct pm_making *m, const char *name,
                      const size_t *index, size_t count)
{
    const struct pm_sharding sharding = { PM_CUT_SIZE, 5000, PM_NAMES_SLIM };
    struct part part = { .words = s, .index = index, .pictures = pm_shared_pictures_create() };
    const int err = pm_making_split(m, name, count, &sharding, fill, &part);

    pm_shared_pictures_destroy(&part.pictures);
    return err;
}

/* Divides words without splits: whole groups, chosen by the seed. */
static int write_shares(const struct pm_words *s, struct pm_making *m, size_t first, size_t end)
{
    const size_t first_group = s->word[first].group;
    const size_t groups = s->word[end - 1].group - first_group + 1;
    const size_t held_out = (size_t)((double)groups * s->validation + 0.5);
    size_t *index = NULL;
    int err = PM_OK;

    if (held_out >= groups)
        PM_TRY(pm_fail(PM_ECONFIG, "validation=%g leaves none of the %zu pictures for training: "
                       "set a smaller validation", s->validation, groups));
    index = pm_malloc((end - first) * sizeof *index);
    for (int part = 0; part < 2; part++) { /* train, validation */
        size_t n = 0;

        for (size_t i = first; i < end; i++) {
            const uint64_t place = pm_permute(s->seed, 0, groups, s->word[i].group - first_group);

            if ((place < held_out) == (part == 1))
                index[n++] = i;
        }
        if (n)
            PM_TRY(write_part(s, m, pm_split_names[part], index, n));
    }
out:
    pm_free(index);
    return err;
}

static int write_split(const struct pm_words *s, struct pm_making *m, const char *name,
                       size_t first, size_t end)
{
    size_t *index = NULL;
    int err = PM_OK;

    if (!name)
        return write_shares(s, m, first, end);
    index = pm_malloc((end - first) * sizeof *index);
    for (size_t i = first; i < end; i++)
        index[i - first] = i;
    err = write_part(s, m, name, index, end - first);
    pm_free(index);
    return err;
}

/* Writes all splits. */
static int write_all(const struct pm_words *s, struct pm_making *m)
{
    int err = PM_OK;

    for (size_t k = 0; k < s->splits; k++) {
        const size_t end = k + 1 < s->splits ? s->split[k + 1].first : s->count;

        if (end > s->split[k].first)
            PM_TRY(write_split(s, m, s->split[k].name, s->split[k].first, end));
        else if (s->split[k].name)
            PM_WARN("data", "%s: no words; the split is skipped", s->split[k].name);
    }
out:
    return err;
}

int pm_words_convert(struct pm_words *s, const char *lexicon, const char *src,
                     int (*add)(void *ctx, const char *src), void *ctx, struct pm_making *m)
{
    int err = PM_OK;

    if (!pm_is_folder(src))
        PM_TRY(pm_fail(PM_EDATA, "%s: no such folder", src));
    if (lexicon)
        PM_TRY(read_lexicon(s->arena, lexicon, &s->lexicon));
    PM_TRY(add(ctx, src));
    if (s->count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: there is no word to write: its lists are empty, or all of "
                       "their words are left out: add words", src));
    PM_TRY(write_all(s, m));
out:
    return err;
}
