/* words: pictures of single words with their texts, from lists (word_lists.h). */
#include <string.h>

#include "data/convert/annotated.h"
#include "data/convert/word_lists.h"

struct words_cfg {
    const char *images, *labels, *lexicon;
    double validation;
    int64_t seed;
    int bad;
};

static const struct pm_opt opts[] = {
    PM_STRING(words_cfg, images, NULL, "folder of the pictures in SRC; null = the folder of the "
              "list, and the usual ones"),
    PM_STRING(words_cfg, labels, NULL, "the list in SRC, a file or a folder of LMDB; null = the "
              "usual ones"),
    PM_STRING(words_cfg, lexicon, NULL, "file with a word in each line, which becomes "
              "image/lexicon of all words that have none of their own"),
    PM_OPT_BAD(words_cfg),
    PM_OPT_BOX_SHARE(words_cfg),
    { 0 },
};

struct job {
    const struct words_cfg *cfg;
    const char *src;
    struct pm_arena *arena;
    struct pm_words words;
    struct pm_word_lists lists;
};

static const char *const usual[] = { "labels", "label", "gt", "annotations", NULL };
static const char *const splits[PM_SPLITS][4] = {
    { "train", "training", NULL },
    { "validation", "val", "valid", NULL },
    { "test", "testing", NULL },
};

/* Returns the list folder/STEM with an ending of lists, or data.mdb in the folder STEM; NULL: there
 * is none. */
static const char *list_in(const struct job *j, const char *folder, const char *const *stems)
{
    static const char *const endings[] = { ".txt", ".tsv", ".csv", ".jsonl", ".json", ".lmdb",
                                           ".lmdb/data.mdb", "/data.mdb" };

    for (; *stems; stems++)
        for (size_t k = 0; k < PM_COUNT(endings); k++) {
            const char *path = pm_arena_printf(j->arena, "%s/%s%s", folder, *stems, endings[k]);

            if (pm_file_exists(path))
                return path;
        }
    return NULL;
}

/* The usual list in a folder, or NULL. */
static const char *usual_list(const struct job *j, const char *folder)
{
    const char *path = pm_arena_printf(j->arena, "%s/data.mdb", folder);

    return pm_file_exists(path) ? path : list_in(j, folder, usual);
}

/* Reads a list as a split. root: the folder that has the pictures, or their folder. */
static int add_list(struct job *j, const char *split, const char *list, const char *root)
{
    static const char *const names[] = { "images", "imgs", "image" };
    const char *folders[PM_COUNT(names) + 3] = { NULL };
    size_t n = 0;

    if (j->cfg->images) {
        folders[n++] = pm_arena_printf(j->arena, "%s/%s", j->src, j->cfg->images);
    } else {
        folders[n++] = root;
        if (strcmp(root, j->src) != 0)
            folders[n++] = j->src;
        for (size_t k = 0; k < PM_COUNT(names); k++) {
            const char *path = pm_arena_printf(j->arena, "%s/%s", root, names[k]);

            if (pm_is_folder(path))
                folders[n++] = path;
        }
    }
    j->lists.folders = folders;
    pm_words_split(&j->words, split);
    const int err = pm_word_list_add(&j->lists, list);

    j->lists.folders = NULL;
    return err;
}

/* Reads train, validation and test, each a list in SRC or a folder of its own. */
static int add_splits(struct job *j)
{
    int err = PM_OK;

    for (int k = 0; k < PM_SPLITS; k++) {
        const char *list = list_in(j, j->src, splits[k]);
        const char *folder = pm_split_folder(j->arena, j->src, k);

        if (list)
            PM_TRY(add_list(j, pm_split_names[k], list, j->src));
        else if (folder && (list = usual_list(j, folder)) != NULL)
            PM_TRY(add_list(j, pm_split_names[k], list, folder));
    }
out:
    return err;
}

static int add_all(void *ctx, const char *src)
{
    struct job *j = ctx;
    const char *list = NULL;
    int err = PM_OK;

    if (j->cfg->labels) {
        list = pm_arena_printf(j->arena, "%s/%s", src, j->cfg->labels);
        return add_list(j, NULL, list, src);
    }
    PM_TRY(add_splits(j));
    if (j->words.splits > 0)
        goto out;
    list = usual_list(j, src);
    if (!list)
        PM_TRY(pm_fail(PM_EDATA, "%s: has no list of words (labels, label, gt, annotations "
                       "with .txt, .tsv, .csv, .jsonl, .json or .lmdb; data.mdb): set labels to "
                       "it", src));
    PM_TRY(add_list(j, NULL, list, src));
out:
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    const struct words_cfg *cfg = config;
    struct job j = { .cfg = cfg, .src = src, .arena = pm_arena_create() };

    j.words = (struct pm_words){ .arena = j.arena, .bad = cfg->bad, .validation = cfg->validation,
                                 .seed = (uint64_t)cfg->seed };
    j.lists.words = &j.words;
    const int err = pm_words_convert(&j.words, cfg->lexicon, src, add_all, &j, m);

    pm_words_free(&j.words);
    pm_word_lists_free(&j.lists);
    pm_arena_destroy(&j.arena);
    return err;
}

const struct pm_converter pm_converter_words = {
    .name = "words",
    .help = "pictures of words with their texts, from lists, JSON or LMDB",
    .layout =
        "SRC/train, SRC/validation and SRC/test with .txt, .tsv, .csv, .jsonl, .json or .lmdb, or "
        "folders of these names\n"
        "with labels.txt and so on or data.mdb. Or SRC/labels.txt and so on: a part of its words "
        "becomes validation. A line is\n"
        "PICTURE and TEXT with a tab or a space between them, or PICTURE, \"TEXT\". JSON: "
        "{\"filename\": ..., \"text\": ...} in\n"
        "each line, a list of these, or {\"data_list\": [...]}; \"lexicon\": [WORD, ...] and "
        "\"keypoints\": [X, Y, ...],\n"
        "points along the upper edge and then along the lower edge, are optional. LMDB: the keys\n"
        "num-samples, image-000000001, label-000000001 and so on.",
    .own_name = true,
    .opts = opts,
    .cfg_size = sizeof(struct words_cfg),
    .convert = convert,
};
