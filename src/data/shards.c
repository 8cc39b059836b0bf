/* Shard names. Slim, DeepLab, the detection tools and ImageNet's builder each use their own
 * pattern. All patterns are a stem that ends in the split, an optional "i-of-n" and an optional
 * ending, so one rule reads them all:
 *     mnist_train.tfrecord  flowers_train_00000-of-00005.tfrecord  train-00000-of-01024
 *     train.record-00000-of-00100  pascal_voc_seg-val-00000-of-00001.tfrecord  val.tfrecord */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "data/shards.h"

static bool cut_ending(char *s)
{
    static const char *const endings[] = { ".tfrecord", ".tfrecords", ".record" };
    const size_t n = strlen(s);
    for (size_t i = 0; i < PM_COUNT(endings); i++) {
        const size_t m = strlen(endings[i]);
        if (n > m && !strcmp(s + n - m, endings[i])) {
            s[n - m] = '\0';
            return true;
        }
    }
    return false;
}

/* Removes "-00001-of-00005" (or "_00001-of-00005") from the end. */
static bool cut_number(char *s, int *index, int *total)
{
    char *p = s + strlen(s);
    while (p > s && isdigit((unsigned char)p[-1]))
        p--;
    if (!*p || strlen(p) > 8 || p - s < 6 || memcmp(p - 4, "-of-", 4) != 0)
        return false;
    char *q = p - 4;
    while (q > s && isdigit((unsigned char)q[-1]))
        q--;
    if (q == p - 4 || p - 4 - q > 8 || q - s < 2 || (q[-1] != '-' && q[-1] != '_'))
        return false;
    *total = atoi(p);
    *index = atoi(q);
    q[-1] = '\0';
    return *total > 0;
}

bool pm_shard_parse(const char *name, struct pm_shard_name *out)
{
    *out = (struct pm_shard_name){ .index = 0 };
    if (strlen(name) >= sizeof out->stem || name[0] == '.')
        return false;
    strcpy(out->stem, name);
    bool shard = cut_ending(out->stem);
    shard |= cut_number(out->stem, &out->index, &out->total);
    shard |= cut_ending(out->stem);
    return shard;
}

bool pm_shards_stem_is(const char *stem, const char *split)
{
    const size_t n = strlen(stem), m = strlen(split);
    if (n < m || strcmp(stem + n - m, split) != 0)
        return false;
    return n == m || stem[n - m - 1] == '_' || stem[n - m - 1] == '-';
}

static size_t unique_stems(struct pm_arena *a, char *const *names, size_t count, const char **stems)
{
    struct pm_shard_name shard;
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (!pm_shard_parse(names[i], &shard))
            continue;
        bool known = false;
        for (size_t k = n; k > 0 && !known; k--) /* shards with the same stem are adjacent */
            known = !strcmp(stems[k - 1], shard.stem);
        if (!known)
            stems[n++] = pm_arena_strdup(a, shard.stem);
    }
    return n;
}

int pm_shards_stems(struct pm_arena *a, const char *folder, const char ***stems, size_t *count)
{
    char **names = NULL;
    size_t total = 0;
    const int err = pm_list_folder(a, folder, &names, &total);

    if (err < 0)
        return err;
    *stems = pm_arena_alloc(a, (total + 1) * sizeof **stems);
    *count = unique_stems(a, names, total, *stems);
    return PM_OK;
}

/* Lists "train, validation", in the folder's order; at most eight. */
static void list_splits(struct pm_arena *a, char *const *names, size_t count, struct pm_str *out)
{
    const char **stems = pm_arena_alloc(a, (count + 1) * sizeof *stems);
    const size_t n = unique_stems(a, names, count, stems);

    for (size_t i = 0; i < n && i < 8; i++) {
        const char *under = strrchr(stems[i], '_'), *dash = strrchr(stems[i], '-');
        const char *last = under > dash ? under : dash;
        pm_str_add(out, "%s%s", i ? ", " : "", last && last[1] ? last + 1 : stems[i]);
    }
}

static int nothing_found(struct pm_arena *a, const char *folder, const char *split,
                         char *const *names, size_t count)
{
    struct pm_str there = { 0 };
    int err;

    list_splits(a, names, count, &there);
    if (there.length)
        err = pm_fail(PM_EDATA, "%s: there is no split %s; the splits are: %s", folder, split,
                      there.text);
    else
        err =
            pm_fail(PM_EDATA,
                    "%s: there is no split %s, and there are no TFRecord files (such as "
                    "NAME_%s.tfrecord or %s-00000-of-00008): make them with pumice dataset convert",
                    folder, split, split, split);
    pm_str_free(&there);
    return err;
}

static int find_pattern(struct pm_arena *a, const char *folder, const char *pattern, char ***names,
                        size_t *count)
{
    const char *base;
    char **paths = NULL;
    const int err = pm_glob(a, pm_arena_printf(a, "%s/%s", folder, pattern), &paths, count);

    if (err < 0)
        return err;
    *names = pm_arena_alloc(a, (*count + 1) * sizeof **names);
    for (size_t i = 0; i < *count; i++) {
        base = paths[i] + strlen(folder) + 1;
        (*names)[i] = pm_arena_strdup(a, base);
    }
    return PM_OK;
}

static int missing(const char *folder, const char *split, int index, int total, char *const *names,
                   size_t count)
{
    return pm_fail(PM_EDATA,
                   "%s: shard %d of %d of split %s is missing (%zu are there, such as %s)", folder,
                   index, total, split, count, names[0]);
}

/* Checks that every index of 0..total-1 occurs once, all with one stem and one total.
 * sorted[count], zeroed by the caller, receives the names in that order. */
static int check_complete(const char *folder, const char *split, char **names, size_t count,
                          char **sorted)
{
    struct pm_shard_name first, s;

    pm_shard_parse(names[0], &first);
    for (size_t i = 0; i < count; i++) {
        pm_shard_parse(names[i], &s);
        if (strcmp(s.stem, first.stem) || s.total != first.total)
            return pm_fail(PM_EDATA,
                           "%s: two data sets match split %s: %s and %s; give one as a pattern, "
                           "such as \"%s*\"",
                           folder, split, names[0], names[i], first.stem);
    }
    if (first.total == 0) {
        if (count > 1)
            return pm_fail(PM_EDATA, "%s: two files match split %s: %s and %s; name one", folder,
                           split, names[0], names[1]);
        sorted[0] = names[0];
        return PM_OK;
    }
    for (size_t i = 0; i < count; i++) {
        pm_shard_parse(names[i], &s);
        if (s.index >= first.total)
            return pm_fail(PM_EDATA,
                           "%s: the number of shard %s is outside 0..%d, the range in its name",
                           folder, names[i], first.total - 1);
        if ((size_t)s.index >= count)
            continue;
        if (sorted[s.index])
            return pm_fail(PM_EDATA, "%s: shard %d of split %s exists twice: %s and %s", folder,
                           s.index, split, sorted[s.index], names[i]);
        sorted[s.index] = names[i];
    }
    for (size_t k = 0; k < count; k++)
        if (!sorted[k])
            return missing(folder, split, (int)k, first.total, names, count);
    if (count < (size_t)first.total)
        return missing(folder, split, (int)count, first.total, names, count);
    return PM_OK;
}

int pm_shards_find(struct pm_arena *a, const char *folder, const char *split, char ***names,
                   size_t *count)
{
    int err = PM_OK;
    char **all = NULL, **match;
    size_t total = 0, n = 0;
    struct pm_shard_name shard;

    if (!pm_is_folder(folder))
        PM_TRY(pm_fail(PM_EDATA, "%s: no such folder", folder));
    PM_TRY(pm_list_folder(a, folder, &all, &total));
    for (size_t i = 0; i < total; i++) {
        if (strcmp(all[i], split) || pm_is_folder(pm_arena_printf(a, "%s/%s", folder, split)))
            continue;
        *names = &all[i];
        *count = 1;
        goto out;
    }
    if (strpbrk(split, "*?[")) {
        PM_TRY(find_pattern(a, folder, split, names, count));
        if (*count == 0)
            PM_TRY(nothing_found(a, folder, split, all, total));
        goto out;
    }
    match = pm_arena_alloc(a, (total + 1) * sizeof *match);
    for (size_t i = 0; i < total; i++)
        if (pm_shard_parse(all[i], &shard) && !strcmp(shard.stem, split))
            match[n++] = all[i];
    const bool whole = n > 0;
    for (size_t i = 0; i < total && !whole; i++)
        if (pm_shard_parse(all[i], &shard) && pm_shards_stem_is(shard.stem, split))
            match[n++] = all[i];
    if (n == 0)
        PM_TRY(nothing_found(a, folder, split, all, total));
    *names = pm_arena_alloc(a, n * sizeof **names);
    PM_TRY(check_complete(folder, split, match, n, *names));
    *count = n;
out:
    return err;
}
