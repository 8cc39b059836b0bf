/* New files that appear whole or not at all: written under a temporary name, synced, then
 * renamed. */
#include <pumice/base.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

int pm_new_file_open(struct pm_new_file *f, const char *path)
{
    *f = (struct pm_new_file){ .path = path, .fd = -1, .lock = -1 };
    return pm_temporary_file(path, &f->temporary, &f->fd, &f->lock);
}

int pm_new_file_add(struct pm_new_file *f, const void *data, size_t size)
{
    return pm_write_all(f->fd, f->path, data, size);
}

static void drop_temporary(struct pm_new_file *f)
{
    if (f->temporary && f->lock >= 0)
        close(f->lock);
    pm_free(f->temporary);
    f->temporary = NULL;
    f->lock = -1;
}

/* Syncs and closes the file; the lock stays. */
int pm_new_file_sync(struct pm_new_file *f)
{
    if (f->fd < 0)
        return PM_OK;
    if (fsync(f->fd) < 0)
        return pm_fail(PM_EFAIL, "%s: sync failed: %s", f->path, strerror(errno));
    int closed = close(f->fd);
    f->fd = -1;
    if (closed < 0)
        return pm_fail(PM_EFAIL, "%s: closing failed: %s", f->path, strerror(errno));
    return PM_OK;
}

int pm_new_file_commit(struct pm_new_file *f)
{
    int err = PM_OK;

    PM_TRY(pm_new_file_sync(f));
    if (rename(f->temporary, f->path) < 0)
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be replaced: %s", f->path, strerror(errno)));
    drop_temporary(f);
    PM_TRY(pm_sync_parent(f->path));
out:
    return err;
}

void pm_new_file_abandon(struct pm_new_file *f)
{
    if (f->fd >= 0 && f->temporary)
        close(f->fd);
    if (f->temporary)
        unlink(f->temporary);
    drop_temporary(f);
    *f = (struct pm_new_file){ .fd = -1, .lock = -1 };
}

int pm_file_write(const char *path, const void *data, size_t size)
{
    int err = PM_OK;
    struct pm_new_file f = { .fd = -1 };

    PM_TRY(pm_new_file_open(&f, path));
    PM_TRY(pm_new_file_add(&f, data, size));
    PM_TRY(pm_new_file_commit(&f));
out:
    pm_new_file_abandon(&f);
    return err;
}
