/* published_cache: the folder of a published checkpoint in the user's cache. It is filled beside
 * its place and renamed into it, so that a process that dies leaves nothing that looks complete. */
#include "checkpoints/published.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/download/download.h"
#include "data/inside.h"

static const uint64_t most_bytes = (uint64_t)2 << 30; /* the largest published file has 0.6 GiB */
static const char source_name[] = "source.json";

struct work {
    const struct pm_published *p;
    const struct pm_published_want *want;
    struct pm_arena *arena;
    const char *cache, *folder, *file; /* the row's folder and its downloaded file, in the cache */
    struct pm_published_copy *out;
};

/* ---- places ------------------------------------------------------------------------------ */

/* A relative XDG_CACHE_HOME is ignored, as its specification demands. */
static int find_cache(struct work *w)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (cache && cache[0] == '/')
        w->cache = pm_arena_printf(w->arena, "%s/pumice/checkpoints", cache);
    else if (home && home[0] == '/')
        w->cache = pm_arena_printf(w->arena, "%s/.cache/pumice/checkpoints", home);
    else
        return pm_fail(PM_EFAIL, "no folder for downloaded checkpoints: set XDG_CACHE_HOME or HOME "
                                 "to an absolute path");
    w->folder = pm_arena_printf(w->arena, "%s/%s", w->cache, w->p->name);
    w->file = pm_arena_printf(w->arena, "%s/%s", w->cache, pm_published_file_name(w->p));
    return PM_OK;
}

/* ---- the checkpoint among the files of an archive ---------------------------------------- */

struct found {
    const char *path; /* below the folder; TensorFlow's V2 format: the prefix */
    int count;
    struct pm_str names;
};

static void take(struct found *f, const char *path, size_t length, struct pm_arena *a)
{
    f->path = pm_arena_printf(a, "%.*s", (int)length, path);
    f->count++;
    pm_str_add(&f->names, "%s%s", f->count > 1 ? ", " : "", f->path);
}

/* Searches the files below folder/sub. Hidden files are no checkpoints: macOS adds ._NAME beside
 * NAME. depth: folders that may follow. inside: part of the path that is needed, or NULL. */
static int search(const char *folder, const char *sub, const char *inside, int depth,
                  struct pm_arena *a, struct found *f)
{
    int err = PM_OK;
    char **names;
    size_t count;

    PM_TRY(pm_list_folder(a, pm_arena_printf(a, "%s/%s", folder, sub), &names, &count));
    for (size_t i = 0; i < count; i++) {
        const char *path = pm_arena_printf(a, "%s/%s", sub, names[i]);
        const size_t n = strlen(path);

        if (names[i][0] == '.') {
            continue;
        } else if (pm_is_folder(pm_arena_printf(a, "%s/%s", folder, path))) {
            if (depth > 0)
                PM_TRY(search(folder, path, inside, depth - 1, a, f));
        } else if (inside && !strstr(path, inside)) {
            continue;
        } else if (pm_ends_with(path, ".index")) {
            take(f, path, n - strlen(".index"), a);
        } else if (pm_ends_with(path, ".ckpt")) {
            take(f, path, n, a);
        }
    }
out:
    return err;
}

static int find_checkpoint(const struct work *w, const char *folder, const char **out)
{
    enum { DEEPEST = 6 };
    int err = PM_OK;
    struct found f = { 0 };

    PM_TRY(search(folder, ".", w->p->inside, DEEPEST, w->arena, &f));
    if (f.count != 1)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: %s checkpoint in the archive (files *.index or *.ckpt%s%s)%s%s: this "
                       "is not the published file; remove it",
                       w->file, f.count ? "more than one" : "no", w->p->inside ? " below " : "",
                       w->p->inside ? w->p->inside : "", f.count ? ": " : "",
                       f.count ? f.names.text : ""));
    *out = f.path + 2; /* after "./" */
out:
    pm_str_free(&f.names);
    return err;
}

/* ---- the folder -------------------------------------------------------------------------- */

static int write_source(const struct work *w, const char *folder, const char *checkpoint)
{
    int err = PM_OK;
    cJSON *o = cJSON_CreateObject();
    char *text = NULL;

    cJSON_AddStringToObject(o, "name", w->p->name);
    cJSON_AddStringToObject(o, "address", w->out->address);
    cJSON_AddStringToObject(o, "file", pm_published_file_name(w->p));
    cJSON_AddStringToObject(o, "sha256", w->out->sha256);
    cJSON_AddStringToObject(o, "checkpoint", checkpoint);
    text = pm_json_print(o);
    PM_TRY(pm_file_write(pm_arena_printf(w->arena, "%s/%s", folder, source_name), text,
                         strlen(text)));
out:
    pm_free(text);
    cJSON_Delete(o);
    return err;
}

/* Gives the downloaded file its name in the folder. A symbolic link that the user made gets an
 * absolute target, because a relative one would lead elsewhere from there. */
static int place_file(const struct work *w, const char *inner)
{
    struct stat st;
    const bool is_link = lstat(w->file, &st) == 0 && S_ISLNK(st.st_mode);
    char *target = is_link ? realpath(w->file, NULL) : NULL;
    const bool placed = target ? symlink(target, inner) == 0
                               : link(w->file, inner) == 0 || rename(w->file, inner) == 0;
    const int reason = errno;

    free(target);
    return placed ? PM_OK : pm_fail(PM_EFAIL, "%s: cannot be moved to %s: %s", w->file, inner,
                                    strerror(reason));
}

/* Fills a temporary folder: unpacks the archive, or adds a second name of the file. */
static int fill(const struct work *w, const char *folder)
{
    int err = PM_OK;
    const char *checkpoint = pm_published_file_name(w->p);

    if (pm_published_is_packed(w->p)) {
        err = pm_unpack(w->file, folder, w->want->stop);
        if (err == PM_EDATA && unlink(w->file) == 0) {
            struct pm_str why = { 0 };
            pm_str_add(&why, "%s", pm_error_text());
            pm_fail(PM_EDATA, "%s. The file was removed; repeat the command to download it again",
                    why.text);
            pm_str_free(&why);
        }
        PM_TRY(err);
        PM_TRY(find_checkpoint(w, folder, &checkpoint));
    } else {
        PM_TRY(place_file(w, pm_arena_printf(w->arena, "%s/%s", folder, checkpoint)));
    }
    PM_TRY(write_source(w, folder, checkpoint));
    w->out->path = pm_arena_printf(w->arena, "%s/%s", w->folder, checkpoint);
out:
    return err;
}

/* Makes the folder from the downloaded file, which is removed. Another process may have made the
 * same folder meanwhile. */
static int settle(const struct work *w)
{
    int err = PM_OK, lock = -1;
    char *temporary = NULL;

    PM_TRY(pm_temporary_folder(w->folder, &temporary, &lock));
    PM_TRY(fill(w, temporary));
    if (rename(temporary, w->folder) != 0 && errno != ENOTEMPTY && errno != EEXIST)
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be renamed to %s: %s", temporary, w->folder,
                       strerror(errno)));
    PM_TRY(pm_sync_parent(w->folder));
    unlink(w->file);
out:
    if (temporary && pm_is_folder(temporary)) {
        struct pm_str why = { 0 };
        if (err < 0)
            pm_str_add(&why, "%s", pm_error_text());
        if (pm_remove_tree(temporary) < 0 && err == PM_OK)
            err = PM_EFAIL;
        else if (why.text)
            pm_fail(err, "%s", why.text);
        pm_str_free(&why);
    }
    if (lock >= 0)
        close(lock);
    pm_free(temporary);
    return err;
}

static int damaged(const struct work *w, const char *what)
{
    return pm_fail(PM_EDATA, "%s: %s; remove the folder, and the checkpoint is downloaded again",
                   w->folder, what);
}

static const char *text_of(const struct work *w, const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);

    return cJSON_IsString(v) ? pm_arena_strdup(w->arena, v->valuestring) : NULL;
}

/* Reads a complete folder. Checks the digest of a file that is no archive; TensorFlow's files
 * contain checksums of their own. */
static int open_folder(const struct work *w)
{
    int err = PM_OK;
    const char *path = pm_arena_printf(w->arena, "%s/%s", w->folder, source_name), *checkpoint;
    char *text = NULL, hex[65];
    cJSON *o = NULL;

    if (!pm_file_exists(path))
        PM_TRY(damaged(w, "it has no source.json"));
    PM_TRY(pm_text_read(path, PM_MOST_TEXT, &text));
    PM_TRY(pm_json_parse(path, text, &o));
    checkpoint = text_of(w, o, "checkpoint");
    w->out->address = text_of(w, o, "address");
    w->out->sha256 = text_of(w, o, "sha256");
    if (!checkpoint || !pm_is_inside(checkpoint) || !w->out->address || !w->out->sha256)
        PM_TRY(damaged(w, "its source.json is not one of Pumice"));
    w->out->path = pm_arena_printf(w->arena, "%s/%s", w->folder, checkpoint);
    if (pm_published_is_packed(w->p))
        goto out;
    if (!pm_file_exists(w->out->path))
        PM_TRY(damaged(w, "the checkpoint's file is missing"));
    PM_TRY(pm_fetch_sum(w->out->path, w->want->stop, hex));
    if (strcmp(hex, w->out->sha256) != 0)
        PM_TRY(damaged(w, "the SHA-256 of the checkpoint's file has changed"));
out:
    cJSON_Delete(o);
    pm_free(text);
    return err;
}

static int download(const struct work *w)
{
    int err = PM_OK;
    const char *sha256 = w->p->sha256, *name = pm_published_file_name(w->p);
    const bool brought = pm_file_exists(w->file);
    char hex[65];

    w->out->address = w->want->from ? pm_fetch_address(w->want->from, name, w->arena)
                                    : w->p->address;
    if (w->want->sums)
        PM_TRY(pm_fetch_sum_in(w->want->sums, name, w->arena, &sha256));
    if (!brought)
        PM_INFO("checkpoint", "%s: downloading %s", w->p->name, w->out->address);
    PM_TRY(pm_make_folders(w->cache));
    PM_TRY(pm_fetch(&(struct pm_fetch){
        .name = name,
        .addresses = (const char *const[]){ w->out->address, NULL },
        .path = w->file,
        .most = most_bytes,
        .sha256 = sha256,
        .stop = w->want->stop,
        .on_failure = w->want->advice,
        .on_full = "set XDG_CACHE_HOME to a folder on another disk",
        .on_longer = "",
    }, hex));
    w->out->sha256 = pm_arena_strdup(w->arena, hex);
    PM_INFO("checkpoint", "%s: SHA-256 %s (%s)", name, hex,
            w->want->sums    ? "as in the list"
            : sha256[0] ? "its first digits are those that the publisher states"
                        : "the publisher states none");
out:
    return err;
}

int pm_published_get(const struct pm_published *p, const struct pm_published_want *want,
                     struct pm_arena *a, struct pm_published_copy *out)
{
    int err = PM_OK;
    struct work w = { .p = p, .want = want, .arena = a, .out = out };

    *out = (struct pm_published_copy){ 0 };
    PM_TRY(find_cache(&w));
    if (!pm_is_folder(w.folder)) {
        PM_TRY(download(&w));
        PM_TRY(settle(&w));
    } else {
        PM_TRY(open_folder(&w));
    }
out:
    return err;
}

bool pm_published_is_here(const struct pm_published *p)
{
    struct pm_arena *a = pm_arena_create();
    struct work w = { .p = p, .arena = a };
    const bool here = find_cache(&w) == PM_OK && (pm_is_folder(w.folder) || pm_file_exists(w.file));

    pm_arena_destroy(&a);
    return here;
}
