/* icdar: scenes with words, as in ICDAR's competitions of robust reading. A label file has a line
 * for each word: x1,y1,x2,y2,x3,y3,x4,y4,transcript with four corners (2015), or x0 y0 x1 y1
 * "transcript" with an upright box (2013), separated by commas or spaces. A word becomes an object
 * of the class text with a rotated box; with words=true, it becomes a picture of its own with its
 * transcript. A transcript of ### marks a word that cannot be read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert/annotated.h"
#include "data/convert/pair_records.h"
#include "data/convert/word_records.h"
#include "data/rotated_box.h"

enum { DIFFICULT, LEFT_OUT };
struct icdar_cfg {
    struct pm_detection_cfg common;
    const char *images, *labels, *lexicon;
    int illegible;
    bool words;
};

static const struct pm_opt opts[] = {
    PM_STRING(icdar_cfg, images, NULL, "folder of the pictures in SRC; null = the usual ones"),
    PM_STRING(icdar_cfg, labels, NULL, "folder of the label files in SRC; null = the usual ones"),
    PM_ENUM(icdar_cfg, illegible, DIFFICULT, "difficult|skip",
            "words with the transcript ###: mark them as difficult, or leave them out"),
    PM_BOOL(icdar_cfg, words, false, "cut the words from the scenes by their quadrangles, for "
            "recognition; words with the transcript ### are left out"),
    PM_STRING(icdar_cfg, lexicon, NULL, "words=true: file with a word in each line, which becomes "
              "image/lexicon"),
    PM_OPT_UNANNOTATED(PM_UNANNOTATED_ERROR),
    PM_OPTS_DETECTION,
    { 0 },
};

struct job {
    const struct icdar_cfg *cfg;
    struct pm_annotations s;
    struct pm_arena *arena; /* of s */
    struct pm_words words;  /* words=true, as the following */
    size_t unread, empty;   /* words that are left out: ###, no transcript */
};

/* ---- label files ----------------------------------------------------------------------------- */

enum { BOX_NUMBERS = 4, MOST_NUMBERS = 8 };
static const char form[] = "a line is x1,y1,x2,y2,x3,y3,x4,y4,transcript, or x0,y0,x1,y1,"
                           "\"transcript\"";

/* Reads the numbers of a word, with their separators: eight, or four. Returns the transcript. If a
 * line has five numbers and nothing else, the fifth is the transcript: "20 10 60 30 2012". *count
 * is any number from 0 to 8 if the line is not of this form. */
static const char *take_numbers(const char *line, double v[MOST_NUMBERS], int *count)
{
    static const double most = 1e7;
    const char *after_box = line;

    for (*count = 0; *count < MOST_NUMBERS;) {
        char *end = NULL;
        const double number = strtod(line, &end);

        after_box = *count <= BOX_NUMBERS ? line : after_box;
        /* The number ends with its separator, or it is a part of the transcript. */
        if (end == line || !strchr(", \t", *end) || !(fabs(number) <= most))
            break;
        v[(*count)++] = number;
        end += strspn(end, " \t");
        line = *end == ',' ? end + 1 + strspn(end + 1, " \t") : end;
    }
    if (*count == BOX_NUMBERS + 1 && !*line && !strchr(after_box, ',')) {
        *count = BOX_NUMBERS;
        return after_box;
    }
    return line;
}

/* A word that becomes a picture. corners: as in pm_word. */
static int add_word(struct job *j, const struct pm_source *scene, const char *text,
                    const double *corners, const char *where, unsigned number)
{
    int err = PM_OK;

    if (!text[0]) {
        j->empty++;
        return PM_OK;
    }
    PM_TRY(pm_word_check(text, strlen(text), where, number));
    pm_words_add(&j->words, (struct pm_word){
        .path = scene->path, .text = text, .corners = corners,
        .corners_at = pm_arena_printf(j->arena, "%s:%u", where, number),
        .name = pm_arena_printf(j->arena, "%s:%u", scene->name, number) });
out:
    return err;
}

static int take_line(struct job *j, const struct pm_source *scene, const char *line,
                     const char *where, unsigned number)
{
    int err = PM_OK, count = 0, class = 0;
    double v[MOST_NUMBERS], *corners = pm_arena_alloc(j->arena, sizeof v);
    const char *text = take_numbers(line, v, &count);

    if (count != MOST_NUMBERS &&
        !(count == BOX_NUMBERS && text[0] && (text[0] == '"' || !strchr(text, ','))))
        PM_TRY(pm_fail(PM_EDATA, "%s:%u: begins with %d number%s; %s", where, number, count,
                       count == 1 ? "" : "s", form));
    text = pm_word_unquoted(j->arena, text);
    const bool illegible = !strcmp(text, "###");
    j->unread += illegible;
    if (illegible && (j->cfg->illegible == LEFT_OUT || j->cfg->words))
        return PM_OK;
    if (count == BOX_NUMBERS && (v[2] < v[0] || v[3] < v[1]))
        PM_TRY(pm_fail(PM_EDATA, "%s:%u: x0 %g, y0 %g are right of or below x1 %g, y1 %g: exchange "
                       "them", where, number, v[0], v[1], v[2], v[3]));
    for (int k = 0; k < PM_CORNERS; k++) {
        corners[2 * k] = count == MOST_NUMBERS ? v[2 * k + 1] : v[k < 2 ? 1 : 3];
        corners[2 * k + 1] = count == MOST_NUMBERS ? v[2 * k] : v[k % 3 ? 2 : 0];
    }
    if (j->cfg->words)
        return add_word(j, scene, text, corners, where, number);
    PM_TRY(class = pm_annotations_class(&j->s, "text", where, number));
    pm_annotations_object(&j->s, (struct pm_annotated_object){
        .corners = corners, .class = class, .line = number,
        .marks = illegible ? PM_MARK_DIFFICULT : 0 });
    err = PM_OK;
out:
    return err;
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* gt_STEM.txt, or STEM.txt; NULL: there is neither. */
static const char *label_file(struct job *j, const char *folder, const char *stem)
{
    const char *path = pm_arena_printf(j->arena, "%s/gt_%s.txt", folder, stem);

    if (pm_file_exists(path))
        return path;
    path = pm_arena_printf(j->arena, "%s/%s.txt", folder, stem);
    return pm_file_exists(path) ? path : NULL;
}

static int add_picture(struct job *j, const struct pm_source *picture, const char *labels)
{
    int err = PM_OK;
    char **lines = NULL;
    size_t count = 0;
    const char *stem = pm_stem(j->arena, picture->name), *where = label_file(j, labels, stem);
    const struct pm_annotated of = { .path = picture->path, .filename = picture->name,
                                     .where = where ? where : picture->path };

    if (!where) {
        err = pm_annotations_missing(&j->s, j->cfg->common.unannotated, picture->path,
                                     pm_arena_printf(j->arena, "%s/gt_%s.txt does not exist",
                                                     labels, stem));
        if (err == 1)
            pm_annotations_picture(&j->s, of);
        return err < 0 ? err : PM_OK;
    }
    PM_TRY(pm_lines_of(j->arena, where, &lines, &count));
    pm_annotations_picture(&j->s, of);
    for (size_t i = 0; i < count; i++)
        if (lines[i][0])
            PM_TRY(take_line(j, picture, lines[i], where, (unsigned)i + 1));
out:
    return err;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Names the first label file without a picture. */
static int warn_unused(struct job *j, const char *labels, const char *pictures)
{
    int err = PM_OK;
    char **names = NULL;
    size_t count = 0;

    PM_TRY(pm_list_folder(j->arena, labels, &names, &count));
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], "gt_", 3) || !pm_ends_with(names[i], ".txt") ||
            pm_picture_of_stem(j->arena, pictures, pm_stem(j->arena, names[i] + 3)))
            continue;
        PM_WARN("data", "%s/%s: has no picture in %s: add it, or remove the file", labels,
                names[i], pictures);
        break;
    }
out:
    return err;
}

static int add_folder(struct job *j, const char *split, const char *pictures, const char *labels)
{
    int err = PM_OK;
    struct pm_sources list = { 0 };

    pm_annotations_split(&j->s, split);
    pm_words_split(&j->words, split);
    PM_TRY(pm_sources_folder(j->arena, pictures, 0, &list));
    if (list.count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: has no pictures (" PM_IMAGE_ENDINGS "); set images and "
                       "labels to their folders in SRC", pictures));
    PM_TRY(warn_unused(j, labels, pictures));
    for (size_t i = 0; i < list.count; i++)
        PM_TRY(add_picture(j, &list.item[i], labels));
out:
    pm_sources_free(&list);
    return err;
}

/* The usual folders below root, or root itself. */
static int add_usual(struct job *j, const char *split, const char *root)
{
    static const char *const picture_names[] = { "images", "imgs", NULL };
    static const char *const label_names[] = { "gt", "labels", "annotations", NULL };
    const char *pictures = pm_first_folder(j->arena, root, picture_names);
    const char *labels = pm_first_folder(j->arena, root, label_names);

    return add_folder(j, split, pictures ? pictures : root, labels ? labels : root);
}

/* The folders of ICDAR 2015. */
static int add_2015(struct job *j, const char *src, bool *any)
{
    static const char *const names[][3] = {
        { "train", "ch4_training_images", "ch4_training_localization_transcription_gt" },
        { "test", "ch4_test_images", "Challenge4_Test_Task1_GT" },
    };
    int err = PM_OK;

    for (size_t k = 0; k < PM_COUNT(names); k++) {
        const char *pictures = pm_arena_printf(j->arena, "%s/%s", src, names[k][1]);
        const char *labels = pm_arena_printf(j->arena, "%s/%s", src, names[k][2]);

        if (!pm_is_folder(pictures) || !pm_is_folder(labels))
            continue;
        *any = true;
        PM_TRY(add_folder(j, names[k][0], pictures, labels));
    }
out:
    return err;
}

/* pm_annotations_convert's add */
static int add_all(void *ctx, const char *src)
{
    int err = PM_OK;
    struct job *j = ctx;
    const struct icdar_cfg *c = j->cfg;
    bool any = false;

    j->arena = j->s.arena;
    j->s.rotated = true;
    j->s.has = PM_HAS_DIFFICULT;
    if (c->images || c->labels)
        return add_folder(j, NULL,
                          pm_arena_printf(j->arena, "%s/%s", src, c->images ? c->images : ""),
                          pm_arena_printf(j->arena, "%s/%s", src, c->labels ? c->labels : ""));
    PM_TRY(add_2015(j, src, &any));
    if (any)
        return PM_OK;
    for (int k = 0; k < PM_SPLITS; k++) {
        const char *root = pm_split_folder(j->arena, src, k);

        if (root)
            PM_TRY(add_usual(j, pm_split_names[k], root));
    }
    if (!j->s.splits)
        PM_TRY(add_usual(j, NULL, src));
out:
    return err;
}

/* pm_words_convert's add */
static int add_words(void *ctx, const char *src)
{
    struct job *j = ctx;
    int err = PM_OK;

    PM_TRY(add_all(j, src));
    PM_INFO("data", "%zu words of %zu scenes; left out: %zu with ###, %zu without a transcript",
            j->words.count, j->s.pictures, j->unread, j->empty);
out:
    return err;
}

/* The words of all scenes, each as a picture. */
static int convert_words(struct job *j, const char *src, struct pm_making *m)
{
    const struct icdar_cfg *c = j->cfg;
    int err = PM_OK;

    PM_TRY(pm_annotations_start(&j->s, &c->common));
    j->words = (struct pm_words){ .arena = j->s.arena, .bad = c->common.bad,
                                  .exif = c->common.exif, .validation = c->common.validation,
                                  .seed = (uint64_t)c->common.seed };
    PM_TRY(pm_words_convert(&j->words, c->lexicon, src, add_words, j, m));
out:
    pm_annotations_free(&j->s);
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    const struct icdar_cfg *c = config;
    struct job j = { .cfg = c };
    int err = PM_OK;

    if (c->lexicon && !c->words)
        err = pm_fail(PM_ECONFIG, "dataset convert icdar: lexicon=%s: needs words=true",
                      c->lexicon);
    else if (c->words)
        err = convert_words(&j, src, m);
    else
        err = pm_annotations_convert(&j.s, &c->common, src, add_all, &j, m);
    pm_words_free(&j.words);
    return err;
}

const struct pm_converter pm_converter_icdar = {
    .name = "icdar",
    .help = "ICDAR's scenes with words as rotated boxes, or the words cut out of them",
    .layout =
        "SRC/ch4_training_images/ID.jpg with "
        "SRC/ch4_training_localization_transcription_gt/gt_ID.txt (ICDAR 2015), or\n"
        "SRC/train, SRC/validation and SRC/test with images/ID.jpg and gt_ID.txt or gt/gt_ID.txt. "
        "Or these in SRC: a part\n"
        "of the pictures becomes validation. Other folders: images=FOLDER labels=FOLDER. A "
        "line is a word:\n"
        "x1,y1,x2,y2,x3,y3,x4,y4,transcript, or x0,y0,x1,y1,\"transcript\". words=true writes each "
        "word as a picture with its transcript.",
    .own_name = true,
    .opts = opts,
    .cfg_size = sizeof(struct icdar_cfg),
    .convert = convert,
};
