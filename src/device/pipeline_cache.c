/* pipeline_cache: files that keep what a driver compiled. A header stands before the driver's
 * bytes, so the driver never gets a truncated or foreign file. */
#include "device/pipelines.h"

#include <stdlib.h>
#include <string.h>

struct cache_header {
    char magic[8];
    uint64_t hash;
};
static const char cache_magic[8] = "pmpipe1";

bool pm_pipeline_cache_folder(struct pm_str *folder)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (xdg && xdg[0] == '/')
        pm_str_add(folder, "%s/pumice", xdg);
    else if (home && home[0] == '/')
        pm_str_add(folder, "%s/.cache/pumice", home);
    else
        return false;
    return true;
}

const char *pm_pipeline_cache_body(const char *file, size_t all, size_t *size)
{
    struct cache_header h;

    if (all <= sizeof h)
        return NULL;
    memcpy(&h, file, sizeof h);
    *size = all - sizeof h;
    if (memcmp(h.magic, cache_magic, sizeof h.magic) != 0 ||
        h.hash != pm_hash_bytes(file + sizeof h, *size, 0))
        return NULL;
    return file + sizeof h;
}

void pm_pipeline_cache_wrap(struct pm_str *file, const void *body, size_t size)
{
    struct cache_header h = { .hash = pm_hash_bytes(body, size, 0) };

    memcpy(h.magic, cache_magic, sizeof h.magic);
    pm_str_bytes(file, &h, sizeof h);
    pm_str_bytes(file, body, size);
}

const char *pm_pipeline_cache_load(const char *path, const char *log, char **file, size_t *size)
{
    size_t all = 0;
    const char *body = NULL;

    *file = NULL;
    if (pm_file_exists(path) && pm_file_read(path, file, &all) == PM_OK) {
        body = pm_pipeline_cache_body(*file, all, size);
        if (!body)
            PM_DEBUG(log, "%s is damaged and is ignored", path);
    }
    return body;
}

void pm_pipeline_cache_save(const char *path, const char *log, const void *body, size_t size)
{
    struct pm_str file = { 0 }, folder = { 0 };

    pm_str_add(&folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    pm_pipeline_cache_wrap(&file, body, size);
    if (pm_make_folders(folder.text) < 0 || pm_file_write(path, file.text, file.length) < 0)
        PM_DEBUG(log, "compiled shaders are not stored: %s", pm_error_text());
    pm_str_free(&file);
    pm_str_free(&folder);
}
