/* Unpacking: libarchive reads and we write. Only regular files and folders with plain relative
 * names are unpacked, so that nothing can be written outside the folder: it is empty at first, and
 * without links no name inside it leads out of it. The size in an entry is not trusted; it is only
 * compared with the free space of the disk. */
#include "data/download/download.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <pumice/progress.h>

#include "data/download/libraries.h"
#include "data/inside.h"

enum { BLOCK = 1 << 18 };

struct unpacking {
    const struct pm_libarchive *l;
    struct archive *archive;
    const char *path, *folder;
    const volatile sig_atomic_t *stop;
    struct pm_str target;
    char *block; /* [BLOCK], owned */
    struct pm_progress *bar;
    uint64_t files;
};

static const char *reason(const struct unpacking *u)
{
    const char *text = u->l->error_string(u->archive);
    return text ? text : "no reason given";
}

static int check_space(const struct unpacking *u, const char *name, int64_t size)
{
    struct statvfs v;
    char wanted[24], free[24];

    if (statvfs(u->folder, &v) != 0 || size <= (int64_t)v.f_bavail * (int64_t)v.f_frsize)
        return PM_OK;
    return pm_fail(PM_EFAIL, "%s: entry %s declares %s, but the disk of %s has %s free", u->path,
                   name, pm_bytes_text((uint64_t)size, wanted), u->folder,
                   pm_bytes_text((uint64_t)v.f_bavail * v.f_frsize, free));
}

static int write_file(struct unpacking *u, struct archive_entry *e, const char *name)
{
    int err = PM_OK, fd = -1;
    const char *slash = strrchr(u->target.text, '/');

    if (u->l->entry_size_is_set(e))
        PM_TRY(check_space(u, name, u->l->entry_size(e)));
    struct pm_str parent = { 0 };
    pm_str_add(&parent, "%.*s", (int)(slash - u->target.text), u->target.text);
    err = pm_make_folders(parent.text);
    pm_str_free(&parent);
    PM_TRY(err);
    fd = open(u->target.text, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        PM_TRY(
            pm_fail(PM_EFAIL, "%s: cannot be written: %s", u->target.text, pm_write_error(errno)));
    for (;;) {
        const ssize_t n = u->l->read_data(u->archive, u->block, BLOCK);
        if (n < 0)
            PM_TRY(pm_fail(PM_EDATA, "%s: entry %s is damaged: %s", u->path, name, reason(u)));
        if (n == 0)
            break;
        PM_TRY(pm_write_all(fd, u->target.text, u->block, (size_t)n));
        if (u->stop && *u->stop)
            PM_TRY(pm_fail(PM_EFAIL, "%s: unpacking was stopped", u->path));
    }
    u->files++;
out:
    if (fd >= 0 && close(fd) != 0 && err == PM_OK)
        err = pm_fail(PM_EFAIL, "%s: cannot be written: %s", u->target.text, pm_write_error(errno));
    return err;
}

static int unpack_entry(struct unpacking *u, struct archive_entry *e)
{
    const char *plain = u->l->entry_pathname(e); /* NULL: not representable in the locale */
    const char *name = plain ? plain : u->l->entry_pathname_utf8(e);
    const unsigned type = u->l->entry_filetype(e);

    if (!name || !pm_is_inside(name))
        return pm_fail(PM_EDATA, "%s: entry '%.200s' would be outside the folder; unpacking stops",
                       u->path, name ? name : "");
    if (u->l->entry_hardlink(e) || (type != AE_IFREG && type != AE_IFDIR))
        return pm_fail(PM_EDATA,
                       "%s: entry '%.200s' is a link or a device; only files and folders are "
                       "unpacked",
                       u->path, name);
    u->target.length = 0;
    pm_str_add(&u->target, "%s/%s", u->folder, name);
    if (type == AE_IFDIR)
        return pm_make_folders(u->target.text);
    return write_file(u, e, name);
}

static int unpack_all(struct unpacking *u)
{
    int err = PM_OK, status;
    struct archive_entry *e = NULL;

    if (u->l->read_open_filename(u->archive, u->path, 1 << 16) != ARCHIVE_OK)
        PM_TRY(pm_fail(PM_EDATA, "%s: cannot be unpacked: %s", u->path, reason(u)));
    while ((status = u->l->read_next_header(u->archive, &e)) != ARCHIVE_EOF) {
        if (status < ARCHIVE_WARN)
            PM_TRY(pm_fail(PM_EDATA, "%s: damaged after %llu files: %s", u->path,
                           (unsigned long long)u->files, reason(u)));
        PM_TRY(unpack_entry(u, e));
        const int64_t done = u->l->filter_bytes(u->archive, -1);
        pm_progress_count(u->bar, (uint64_t)(done > 0 ? done : 0) / 1000000, u->files, -1);
    }
    if (u->files == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: holds no files", u->path));
out:
    return err;
}

int pm_unpack(const char *path, const char *folder, const volatile sig_atomic_t *stop)
{
    int err = PM_OK;
    struct stat st;
    struct unpacking u = { .path = path, .folder = folder, .stop = stop };
    const char *slash = strrchr(path, '/');
    char unit[96];

    PM_TRY(pm_libarchive_load(&u.l));
    PM_TRY(pm_make_folders(folder));
    if (stat(path, &st) != 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: cannot be read: %s", path, strerror(errno)));
    u.block = pm_malloc(BLOCK);
    u.archive = u.l->read_new();
    u.l->read_support_filter_gzip(u.archive);
    u.l->read_support_format_tar(u.archive);
    u.l->read_support_format_zip(u.archive);
    snprintf(unit, sizeof unit, "unpacked %.70s, MB", slash ? slash + 1 : path);
    u.bar = pm_progress_start(&(struct pm_progress_options){
        .what = "data", .unit = unit, .speed = "files", .last = (uint64_t)st.st_size / 1000000 });
    PM_TRY(unpack_all(&u));
out:
    pm_progress_end(&u.bar);
    if (u.archive)
        u.l->read_free(u.archive);
    pm_free(u.block);
    pm_str_free(&u.target);
    return err;
}
