/* run_lock: flock on RUN/lock. The kernel drops it when the process dies, however it dies; the file
 * itself stays, since removing it would let two processes lock two files of one name. */
#include <errno.h>
#include <fcntl.h>
#include <pumice/checkpoint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

struct pm_run_lock {
    int fd;
};

/* Process id the holder wrote, 0 when not known. */
static long holder(int fd)
{
    char text[32] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    return n > 0 ? strtol(text, NULL, 10) : 0;
}

static int refuse(const char *run, int fd)
{
    long pid = holder(fd);

    if (pid > 0)
        return pm_fail(PM_EFAIL,
                       "%s: process %ld is training in this folder; wait for it, stop it (kill %ld "
                       "saves a checkpoint first) or set run.folder to another",
                       run, pid, pid);
    return pm_fail(PM_EFAIL,
                   "%s: another process is training in this folder; wait for it or set run.folder to "
                   "another",
                   run);
}

static void write_pid(int fd)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());

    /* The number only helps messages: a disk that is full must not keep the lock from being taken. */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n)
        PM_DEBUG("run", "the lock's process id could not be written: %s", strerror(errno));
}

int pm_run_lock(const char *run, struct pm_run_lock **out)
{
    int err = PM_OK, fd = -1;
    struct pm_str path = { 0 };

    PM_TRY(pm_make_folders(run));
    pm_str_add(&path, "%s/lock", run);
    fd = open(path.text, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be opened: %s; set run.folder to a writable one",
                       path.text, strerror(errno)));
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR)
            continue;
        if (errno == EWOULDBLOCK)
            PM_TRY(refuse(run, fd));
        PM_WARN("run", "%s: this file system has no locks (%s); do not train in it twice at a time",
                run, strerror(errno));
        break;
    }
    write_pid(fd);
    *out = pm_malloc(sizeof **out);
    (*out)->fd = fd;
    fd = -1;
out:
    if (fd >= 0)
        close(fd);
    pm_str_free(&path);
    return err;
}

void pm_run_unlock(struct pm_run_lock **l)
{
    if (!*l)
        return;
    if (ftruncate((*l)->fd, 0) != 0)
        PM_DEBUG("run", "the lock's process id could not be removed: %s", strerror(errno));
    close((*l)->fd);
    pm_free(*l);
    *l = NULL;
}
