/* dataset download: downloads, unpacks and converts the archives of a data set.
 *
 * Archives are kept in a folder of their own, DST.download by default, until the data set is
 * complete. A repeated command does not download finished archives again. */
#include <string.h>

#include <pumice/data.h>

#include "data/download/download.h"

struct work {
    const struct pm_download *source;
    const struct pm_download_options *o;
    struct pm_arena *arena;
    const char *raw; /* folder of the archives */
};

static int fail_unknown(const char *name)
{
    struct pm_str all = { 0 };
    size_t count;
    const struct pm_download *s = pm_downloads(&count);

    for (size_t i = 0; i < count; i++)
        pm_str_add(&all, "%s%s (%s)", i ? ", " : "", s[i].name, s[i].help);
    const int err = pm_fail(PM_ECONFIG, "dataset download: %s%s; known: %s",
                            name[0] ? "unknown data set " : "which data set?", name, all.text);
    pm_str_free(&all);
    return err;
}

static int find_source(const char *name, const struct pm_download **out)
{
    size_t count;
    const struct pm_download *s = pm_downloads(&count);

    for (size_t i = 0; i < count; i++)
        if (strcmp(s[i].name, name) == 0) {
            *out = &s[i];
            return s[i].by_hand ? pm_fail(PM_ECONFIG, "dataset download %s: %s", name, s[i].by_hand)
                                : PM_OK;
        }
    return fail_unknown(name);
}

/* ---- checksums of another mirror ------------------------------------------------------------ */

/* The line "HEX  NAME" of sha256sum's output for this file. */
static int sum_in(const char *sums, const char *text, const char *name, struct pm_arena *a,
                  const char **out)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t hex = strspn(line, "0123456789abcdefABCDEF");
        const size_t n = strlen(name);
        const char *rest = line + hex;
        if (hex != 64 || rest[0] != ' ' || (rest[1] != ' ' && rest[1] != '*'))
            continue;
        if (strncmp(rest + 2, name, n) == 0 && (rest[2 + n] == '\n' || rest[2 + n] == '\0')) {
            char *copy = pm_arena_strdup(a, line);
            copy[64] = '\0';
            *out = copy;
            return PM_OK;
        }
    }
    return pm_fail(PM_EDATA, "%s: no line \"SHA-256  %s\" in it", sums, name);
}

int pm_fetch_sum_in(const char *sums, const char *name, struct pm_arena *a, const char **out)
{
    int err = PM_OK;
    char *text = NULL;

    PM_TRY(pm_text_read(sums, PM_MOST_TEXT, &text));
    PM_TRY(sum_in(sums, text, name, a, out));
out:
    pm_free(text);
    return err;
}

const char *pm_fetch_address(const char *from, const char *name, struct pm_arena *a)
{
    const size_t n = strlen(from);

    return pm_arena_printf(a, "%s%s%s", from, n && from[n - 1] == '/' ? "" : "/", name);
}

/* The archive with the addresses and checksums that the options replace. */
static int resolve(const struct work *w, const struct pm_archive *a, struct pm_archive *out)
{
    int err = PM_OK;

    *out = *a;
    if (w->o->from) {
        const char **list = pm_arena_alloc(w->arena, 2 * sizeof *list);
        list[0] = pm_fetch_address(w->o->from, a->name, w->arena);
        out->addresses = list;
    }
    if (w->o->sums) {
        PM_TRY(pm_fetch_sum_in(w->o->sums, a->name, w->arena, &out->sha256));
        if (strcmp(out->sha256, a->sha256) != 0)
            out->size = 0;
    }
out:
    return err;
}

/* ---- the steps ------------------------------------------------------------------------------ */

static int fetch_all(const struct work *w)
{
    int err = PM_OK;
    uint64_t bytes = 0;
    char text[24];

    for (size_t i = 0; i < w->source->archive_count; i++)
        bytes += w->source->archives[i].size;
    PM_INFO("data", "%s: %zu %s, %s, to %s", w->source->name, w->source->archive_count,
            pm_plural((double)w->source->archive_count, "archive", "archives"),
            pm_bytes_text(bytes, text), w->raw);
    for (size_t i = 0; i < w->source->archive_count; i++) {
        struct pm_archive a;
        PM_TRY(resolve(w, &w->source->archives[i], &a));
        PM_TRY(pm_fetch(&(struct pm_fetch){
            .name = a.name,
            .addresses = a.addresses,
            .path = pm_arena_printf(w->arena, "%s/%s", w->raw, a.name),
            .size = a.size,
            .most = w->o->most ? w->o->most : PM_DOWNLOAD_MOST,
            .sha256 = a.sha256,
            .stop = w->o->stop,
        }, NULL));
    }
out:
    return err;
}

/* Replaces the folder: a partly unpacked archive is useless. */
static int unpack_all(const struct work *w, const char *folder, bool *any)
{
    int err = PM_OK;

    *any = false;
    PM_TRY(pm_remove_tree(folder));
    for (size_t i = 0; i < w->source->archive_count; i++)
        if (w->source->archives[i].packed) {
            *any = true;
            PM_TRY(pm_unpack(
                pm_arena_printf(w->arena, "%s/%s", w->raw, w->source->archives[i].name), folder,
                w->o->stop));
        }
out:
    return err;
}

/* Removes the archives, and the folder if we made it and it is empty. */
static int tidy(const struct work *w, const char *unpacked)
{
    int err = PM_OK;

    PM_TRY(pm_remove_tree(unpacked));
    if (w->o->keep_archives) {
        PM_INFO("data", "the archives are kept in %s", w->raw);
        return PM_OK;
    }
    for (size_t i = 0; i < w->source->archive_count; i++)
        PM_TRY(pm_remove_tree(
            pm_arena_printf(w->arena, "%s/%s", w->raw, w->source->archives[i].name)));
    if (!w->o->raw)
        PM_TRY(pm_remove_tree(w->raw));
out:
    return err;
}

static int work(const struct work *w, const char *dst)
{
    int err = PM_OK;
    bool any = false;
    const char *unpacked = pm_arena_printf(w->arena, "%s/unpacked", w->raw);

    PM_TRY(pm_dataset_convert_ready(w->source->name, dst, w->o->options));
    if (err == 1)
        return PM_OK;
    PM_TRY(pm_make_folders(w->raw));
    PM_TRY(fetch_all(w));
    PM_TRY(unpack_all(w, unpacked, &any));
    const char *src = !any                 ? w->raw
                      : w->source->inside[0] ? pm_arena_printf(w->arena, "%s/%s", unpacked,
                                                               w->source->inside)
                                             : unpacked;
    PM_TRY(pm_dataset_convert(w->source->name, src, dst, w->o->options));
    PM_TRY(tidy(w, unpacked));
out:
    return err;
}

static const char *without_slash(struct pm_arena *a, const char *path)
{
    char *copy = pm_arena_strdup(a, path);

    for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
        copy[n - 1] = '\0';
    return copy;
}

int pm_dataset_download(const char *name, const char *dst, const struct pm_download_options *o)
{
    int err = PM_OK;
    struct work w = { .o = o, .arena = pm_arena_create() };

    PM_TRY(find_source(name, &w.source));
    w.raw = o->raw ? o->raw
                   : pm_arena_printf(w.arena, "%s.download", without_slash(w.arena, dst));
    PM_TRY(work(&w, dst));
out:
    pm_arena_destroy(&w.arena);
    return err;
}
