/* verdicts: results of earlier runs, in one small text file per device, driver and build of the
 * program.
 *
 *     pumice verdicts 1
 *     # vulkan:0, its name, its driver
 *     ok conv2d_fwd s64x64 12 34567 0.0123
 *     wrong activation_fwd activation_fwd4 1 80 3.5 y[3] of 80 is ...
 *     sum 0123456789abcdef
 *
 * The last line holds the hash of everything before it; a file without a matching last line is
 * ignored. Files are replaced whole. If two processes write at once, the later one may lose
 * verdicts of the earlier one, which costs the next start some seconds. */
#include "verify/verify_private.h"

#include <stdlib.h>
#include <string.h>

struct pm_verdicts {
    struct pm_verified *list;
    size_t count, capacity;
    char *folder, *path; /* NULL: there is no folder for caches */
    char device[640];
};

enum { SUM_LINE = 21 }; /* "sum ", 16 digits, newline */
static const char first_line[] = "pumice verdicts 1\n";
static const char *const words[] = {
    [PM_VERDICT_OK] = "ok", [PM_VERDICT_WRONG] = "wrong", [PM_VERDICT_CANNOT] = "cannot",
};

/* ---- the list --------------------------------------------------------------------------- */

const struct pm_verified *pm_verdicts_find(const struct pm_verdicts *k, const char *kernel,
                                           const char *variant)
{
    for (size_t i = 0; i < k->count; i++)
        if (strcmp(k->list[i].kernel, kernel) == 0 && strcmp(k->list[i].variant, variant) == 0)
            return &k->list[i];
    return NULL;
}

const struct pm_verified *pm_verdicts_list(const struct pm_verdicts *k, size_t *count)
{
    *count = k->count;
    return k->list;
}

static void put(struct pm_verdicts *k, const struct pm_verified *r)
{
    struct pm_verified *old = (struct pm_verified *)pm_verdicts_find(k, r->kernel, r->variant);

    if (!old) {
        PM_GROW(k->list, k->count, k->capacity);
        old = &k->list[k->count++];
    }
    *old = *r;
}

/* ---- the file --------------------------------------------------------------------------- */

static bool parse_line(const char *line, struct pm_verified *r)
{
    char word[16];
    int at = 0;

    *r = (struct pm_verified){ 0 };
    if (sscanf(line, "%15s %47s %47s %d %lu %lf %n", word, r->kernel, r->variant, &r->calls,
               &r->values, &r->worst, &at) < 6 || at == 0)
        return false;
    for (size_t i = 0; i < PM_COUNT(words); i++)
        if (strcmp(word, words[i]) == 0) {
            r->verdict = (enum pm_verdict)i;
            snprintf(r->why, sizeof r->why, "%s", line + at);
            return true;
        }
    return false;
}

/* Adds the file's verdicts; a damaged file adds none. */
static void read_file(struct pm_verdicts *k)
{
    char *text = NULL, *sum, *next, want[32];
    size_t size;

    if (!k->path || !pm_file_exists(k->path) || pm_file_read(k->path, &text, &size) < 0)
        return;
    sum = size > SUM_LINE ? text + size - SUM_LINE : text;
    snprintf(want, sizeof want, "sum %016llx\n",
             (unsigned long long)pm_hash_bytes(text, (size_t)(sum - text), 1));
    if (strncmp(text, first_line, strlen(first_line)) != 0 || strcmp(sum, want) != 0) {
        PM_DEBUG("verify", "%s is damaged and is ignored", k->path);
        pm_free(text);
        return;
    }
    *sum = 0;
    for (char *line = text + strlen(first_line); *line; line = next) {
        struct pm_verified r;
        size_t length = strcspn(line, "\n");

        next = line + length + (line[length] != 0);
        line[length] = 0;
        if (line[0] != '#' && parse_line(line, &r))
            put(k, &r);
    }
    pm_free(text);
}

static void find_path(struct pm_verdicts *k, const struct pm_device *d)
{
    const struct pm_device_info *info = pm_device_get_info(d);
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    struct pm_str folder = { 0 }, key = { 0 }, path = { 0 };

    snprintf(k->device, sizeof k->device, "%s, %s, %s", info->address, info->name, info->driver);
    pm_str_add(&key, "%s|%s|%s|%s|%llx", info->name, info->driver, info->uuid, PUMICE_VERSION,
               (unsigned long long)pm_device_shaders(d));
    if (xdg && xdg[0] == '/')
        pm_str_add(&folder, "%s/pumice", xdg);
    else if (home && home[0] == '/')
        pm_str_add(&folder, "%s/.cache/pumice", home);
    if (folder.length) {
        pm_str_add(&path, "%s/verified-%016llx.txt", folder.text,
                   (unsigned long long)pm_hash(key.text));
        k->folder = folder.text;
        k->path = path.text;
    }
    pm_str_free(&key);
}

struct pm_verdicts *pm_verdicts_load(const struct pm_device *d)
{
    struct pm_verdicts *k = pm_calloc(1, sizeof *k);

    find_path(k, d);
    read_file(k);
    return k;
}

void pm_verdicts_free(struct pm_verdicts **k)
{
    if (*k) {
        pm_free((*k)->list);
        pm_free((*k)->folder);
        pm_free((*k)->path);
        pm_free(*k);
    }
    *k = NULL;
}

void pm_verdicts_save(struct pm_verdicts *k, const struct pm_verify *v)
{
    struct pm_str s = { 0 };

    read_file(k);
    for (size_t i = 0; i < v->count; i++)
        put(k, &v->found[i]);
    if (!k->path)
        return;
    pm_str_add(&s, "%s# %s\n", first_line, k->device);
    for (size_t i = 0; i < k->count; i++) {
        const struct pm_verified *r = &k->list[i];

        pm_str_add(&s, "%s %s %s %d %lu %.6g %s\n", words[r->verdict], r->kernel, r->variant,
                   r->calls, (unsigned long)r->values, r->worst, r->why);
    }
    pm_str_add(&s, "sum %016llx\n", (unsigned long long)pm_hash_bytes(s.text, s.length, 1));
    if (pm_make_folders(k->folder) < 0 || pm_file_write(k->path, s.text, s.length) < 0)
        PM_DEBUG("verify", "verification results are not stored: %s", pm_error_text());
    pm_str_free(&s);
}
