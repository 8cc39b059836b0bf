/* photos: finds and makes the conversion of a folder of pictures, as photos.h describes. */
#include "data/photos.h"

#include "data/convert/convert.h"
#include "data/folder_chain.h"
#include "data/making_private.h"
#include "data/shards.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct pm_converter pm_converter_folder;

/* The converter has the same limit of levels. */
enum { MOST_LEVELS = 32, DIGEST_DIGITS = 12 };

/* ---- which kind of folder ------------------------------------------------------------------- */

/* Whether a picture lies in a folder, or anywhere below it. */
static bool has_picture(const char *folder, bool below, int level,
                        const struct pm_folder_chain *above)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_folder_chain own;
    char **names = NULL;
    size_t n = 0;
    bool found = false;

    if (level > MOST_LEVELS || !pm_folder_enter(folder, above, &own) ||
        pm_list_folder(a, folder, &names, &n) < 0)
        n = 0;
    for (size_t i = 0; i < n && !found; i++)
        found = names[i][0] != '.' && pm_image_named(names[i]) &&
                !pm_is_folder(pm_arena_printf(a, "%s/%s", folder, names[i]));
    for (size_t i = 0; below && i < n && !found; i++) {
        const char *path = pm_arena_printf(a, "%s/%s", folder, names[i]);

        found = names[i][0] != '.' && pm_is_folder(path) &&
                has_picture(path, true, level + 1, &own);
    }
    pm_arena_destroy(&a);
    return found;
}

static bool has_records(struct pm_arena *a, const char *folder, char *const *names, size_t n)
{
    struct pm_shard_name shard;

    for (size_t i = 0; i < n; i++)
        if (pm_shard_parse(names[i], &shard))
            return true;
    return pm_file_exists(pm_arena_printf(a, "%s/dataset.json", folder));
}

enum pm_folder_kind pm_folder_kind(const char *folder)
{
    struct pm_arena *a = pm_arena_create();
    enum pm_folder_kind kind = PM_FOLDER_OTHER;
    char **names = NULL;
    size_t n = 0;

    if (!pm_is_folder(folder) || pm_list_folder(a, folder, &names, &n) < 0)
        kind = PM_FOLDER_MISSING;
    else if (has_records(a, folder, names, n))
        kind = PM_FOLDER_RECORDS;
    for (size_t i = 0; kind == PM_FOLDER_OTHER && i < n; i++) {
        const char *path = pm_arena_printf(a, "%s/%s", folder, names[i]);

        if (names[i][0] != '.' && pm_is_folder(path) && has_picture(path, true, 1, NULL))
            kind = PM_FOLDER_PHOTOS;
    }
    if (kind == PM_FOLDER_OTHER && has_picture(folder, false, 0, NULL))
        kind = PM_FOLDER_PICTURES;
    pm_arena_destroy(&a);
    return kind;
}

int pm_photos_classes(struct pm_arena *a, const char *folder, const char ***names, int *count)
{
    return pm_class_folders(a, pm_folder_root(a, folder), names, count);
}

/* ---- the digest ----------------------------------------------------------------------------- */

/* Adds every picture in and below a folder, in the order of the names. below: its path below the
 * first folder, with a slash at the end. */
static int add_pictures(struct pm_sha256 *sha, const char *folder, const char *below, int level,
                        const struct pm_folder_chain *above)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_folder_chain own;
    char **names = NULL;
    size_t n = 0;
    struct stat st;
    int err = PM_OK;

    if (!pm_folder_enter(folder, above, &own) && above)
        goto out;
    PM_TRY(pm_list_folder(a, folder, &names, &n));
    for (size_t i = 0; i < n; i++) {
        const char *path = pm_arena_printf(a, "%s/%s", folder, names[i]);

        if (names[i][0] == '.' || stat(path, &st) != 0)
            continue;
        if (S_ISDIR(st.st_mode) && level < MOST_LEVELS) {
            PM_TRY(add_pictures(sha, path, pm_arena_printf(a, "%s%s/", below, names[i]),
                                level + 1, &own));
        } else if (pm_image_named(names[i])) {
            const char *line = pm_arena_printf(a, "%s%s\t%" PRId64 "\t%" PRId64 ".%09ld\n", below,
                                               names[i], (int64_t)st.st_size,
                                               (int64_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
            pm_sha256_add(sha, line, strlen(line));
        }
    }
out:
    pm_arena_destroy(&a);
    return err;
}

static int read_options(const struct cJSON *options, const char *where, struct pm_arena *a,
                        void **cfg)
{
    const struct pm_converter *c = &pm_converter_folder;

    *cfg = pm_arena_alloc(a, c->cfg_size + 1);
    if (options && !cJSON_IsObject(options))
        return pm_fail(PM_ECONFIG, "%s: an object with options of dataset convert folder is "
                       "needed, such as { \"validation\": 0.2, \"max_side\": 1024 }", where);
    return pm_opts_parse(c->opts, options, NULL, *cfg, a, where);
}

int pm_photos_check_options(const struct cJSON *options, const char *where)
{
    struct pm_arena *a = pm_arena_create();
    void *cfg;
    const int err = read_options(options, where, a, &cfg);

    pm_arena_destroy(&a);
    return err;
}

static int make_digest(struct pm_arena *a, const char *folder, const void *cfg, const char **out)
{
    static const char version[] = "pumice photos 1\n";
    struct pm_sha256 sha;
    cJSON *options = cJSON_CreateObject();
    char hex[65], *text;
    int err = PM_OK;

    pm_opts_dump(pm_converter_folder.opts, cfg, options, false);
    text = cJSON_PrintUnformatted(options);
    pm_sha256_start(&sha);
    pm_sha256_add(&sha, version, sizeof version - 1);
    pm_sha256_add(&sha, text, strlen(text));
    PM_TRY(add_pictures(&sha, folder, "", 0, NULL));
    pm_sha256_end(&sha, hex);
    *out = pm_arena_printf(a, "%.*s", DIGEST_DIGITS, hex);
out:
    cJSON_free(text);
    cJSON_Delete(options);
    return err;
}

/* ---- the place ------------------------------------------------------------------------------ */

/* The folder without slashes at the end; its real path if the name is "." or "..", beside which
 * nothing can lie. */
static const char *plain_name(struct pm_arena *a, const char *folder)
{
    char *name = pm_arena_strdup(a, folder), *real;
    const char *slash, *last;

    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--)
        name[n - 1] = '\0';
    slash = strrchr(name, '/');
    last = slash ? slash + 1 : name;
    if (strcmp(last, ".") && strcmp(last, ".."))
        return name;
    real = realpath(name, NULL);
    if (real)
        name = pm_arena_strdup(a, real);
    free(real);
    return name;
}

static const char *place_of(struct pm_arena *a, const char *cache, const char *digest)
{
    return pm_arena_printf(a, "%s/%s", cache, digest);
}

static bool is_made(struct pm_arena *a, const char *place)
{
    return pm_file_exists(pm_arena_printf(a, "%s/dataset.json", place));
}

/* Finds the first conversion of `began` that exists in the cache. */
static const char *find_began(struct pm_arena *a, const char *cache, const char *began,
                              const char *now, bool *changed)
{
    char *list = pm_arena_strdup(a, began), *save = NULL;
    const char *found = NULL;

    *changed = true;
    for (char *d = strtok_r(list, ",", &save); d; d = strtok_r(NULL, ",", &save)) {
        if (!strcmp(d, now)) {
            *changed = false;
            return NULL;
        }
        if (!found && !strchr(d, '/') && d[0] != '.' && is_made(a, place_of(a, cache, d)))
            found = d;
    }
    return found;
}

void pm_shell_word(struct pm_str *s, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./,:=+@%-";
    bool quote = !word[0];

    for (const char *c = word; *c && !quote; c++)
        quote = !((unsigned char)*c >= 0x80 || strchr(plain, *c));
    if (!quote) {
        pm_str_add(s, "%s", word);
        return;
    }
    pm_str_add(s, "'");
    for (const char *c = word; *c; c++)
        if (*c == '\'')
            pm_str_add(s, "'\\''");
        else
            pm_str_add(s, "%c", *c);
    pm_str_add(s, "'");
}

static int cannot_write(const char *folder, const char *cache)
{
    struct pm_str word = { 0 };
    int err;

    pm_shell_word(&word, folder);
    err = pm_fail(PM_EFAIL, "%s: the converted pictures cannot be written to %s: %s. Convert them "
                  "to another place with pumice dataset convert folder %s data/photos, and set "
                  "data.folder to data/photos", folder, cache, pm_error_text(), word.text);
    pm_str_free(&word);
    return err;
}

/* ---- making --------------------------------------------------------------------------------- */

/* Opens and locks CACHE/lock. The kernel drops the lock when the process ends in any way. */
static int lock_cache(struct pm_arena *a, const char *folder, const char *cache, int *out)
{
    const char *path = pm_arena_printf(a, "%s/lock", cache);
    int fd = -1, err = PM_OK;

    if (pm_make_folders(cache) < 0)
        PM_TRY(cannot_write(folder, cache));
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        pm_fail(PM_EFAIL, "%s: %s", path, strerror(errno));
        PM_TRY(cannot_write(folder, cache));
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        PM_INFO("data", "%s: another process converts these pictures: waiting for it", folder);
    while (flock(fd, LOCK_EX) != 0)
        if (errno != EINTR) {
            PM_DEBUG("data", "%s: this file system has no locks: %s", path, strerror(errno));
            break;
        }
    *out = fd;
out:
    return err;
}

/* Removes what killed processes left, and counts the finished conversions. The lock is held. */
static size_t clean_cache(struct pm_arena *a, const char *cache)
{
    char **names = NULL;
    size_t n = 0, made = 0;

    if (pm_list_folder(a, cache, &names, &n) < 0)
        return 0;
    for (size_t i = 0; i < n; i++) {
        char *mark = strstr(names[i], ".tmp-");

        if (mark)
            pm_temporaries_clean(pm_arena_printf(a, "%s/%.*s", cache, (int)(mark - names[i]),
                                                 names[i]));
        else
            made += is_made(a, place_of(a, cache, names[i]));
    }
    return made;
}

static int make(struct pm_arena *a, const char *folder, const char *cache, const char *digest,
                const void *cfg)
{
    const char *place = place_of(a, cache, digest), *slash = strrchr(folder, '/');
    struct pm_making *m = NULL;
    int lock = -1, err = PM_OK;

    PM_TRY(lock_cache(a, folder, cache, &lock));
    if (is_made(a, place)) /* by the process that held the lock */
        goto out;
    const size_t former = clean_cache(a, cache);
    if (former)
        PM_INFO("data", "%s: the pictures or data.convert changed since the last conversion: "
                "converting them again to %s", folder, place);
    else
        PM_INFO("data", "%s: converting the pictures once, to %s", folder, place);
    PM_TRY(pm_making_create(place, slash && slash[1] ? slash + 1 : folder, false, &m));
    m->digest = digest;
    PM_TRY(pm_converter_folder.convert(cfg, folder, m));
    PM_TRY(pm_making_finish(m));
    if (former)
        PM_INFO("data", "%s: %zu former %s stay%s, for runs that began with %s: remove what no "
                "run needs", cache, former, former == 1 ? "conversion" : "conversions",
                former == 1 ? "s" : "", former == 1 ? "it" : "them");
out:
    pm_making_destroy(&m);
    if (lock >= 0)
        close(lock);
    return err;
}

const char *pm_photos_last(struct pm_arena *a, const char *folder)
{
    const char *cache = pm_arena_printf(a, "%s.pumice", plain_name(a, folder)), *last = NULL;
    char **names = NULL;
    size_t n = 0;
    struct timespec newest = { 0 };

    if (!pm_is_folder(cache) || pm_list_folder(a, cache, &names, &n) < 0)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const char *place = place_of(a, cache, names[i]);
        struct stat st;

        if (strchr(names[i], '.') ||
            stat(pm_arena_printf(a, "%s/dataset.json", place), &st) != 0)
            continue;
        if (!last || st.st_mtim.tv_sec > newest.tv_sec ||
            (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec > newest.tv_nsec)) {
            newest = st.st_mtim;
            last = place;
        }
    }
    return last;
}

int pm_photos_find(struct pm_arena *a, const struct pm_photos_want *want, struct pm_photos *out)
{
    const char *folder = plain_name(a, want->folder);
    const char *cache = pm_arena_printf(a, "%s.pumice", folder), *began = NULL;
    void *cfg;
    int err = PM_OK;

    *out = (struct pm_photos){ 0 };
    PM_TRY(read_options(want->options, want->where, a, &cfg));
    PM_TRY(make_digest(a, folder, cfg, &out->digest));
    if (want->began)
        began = find_began(a, cache, want->began, out->digest, &out->changed);
    out->kept = began != NULL;
    const char *place = place_of(a, cache, began ? began : out->digest);
    if (!is_made(a, place) && want->make)
        PM_TRY(make(a, folder, cache, out->digest, cfg));
    if (is_made(a, place))
        out->place = place;
out:
    return err;
}
