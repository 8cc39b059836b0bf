/* run_lock: flock on RUN/lock. The kernel drops the lock when the process ends in any way. The file
 * itself stays: removing it would let two processes lock two files of one name. */
#include <errno.h>
#include <fcntl.h>
#include <pumice/checkpoint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOST_TEXT = 256 };

struct pm_run_lock {
    int fd;
    char *path; /* owned: RUN/lock */
};

/* Reads "PID HOST", which the holder wrote; false if unknown. */
static bool holder(int fd, long *pid, char host[HOST_TEXT])
{
    char text[HOST_TEXT + 32] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    snprintf(host, HOST_TEXT, "this machine");
    *pid = n > 0 ? strtol(text, NULL, 10) : 0;
    sscanf(text, "%*d %255s", host);
    return *pid > 0;
}

static int refuse(const char *run, int fd)
{
    char host[HOST_TEXT];
    long pid;

    if (holder(fd, &pid, host))
        return pm_fail(
            PM_EFAIL,
            "%s: process %ld on %s is training in this folder; wait for it, stop it (kill "
            "%ld saves a checkpoint first) or choose another folder",
            run, pid, host, pid);
    return pm_fail(
        PM_EFAIL,
        "%s: another process is training in this folder; wait for it or choose another folder",
        run);
}

static void write_pid(int fd)
{
    char text[HOST_TEXT + 32], host[HOST_TEXT] = "";
    int n = snprintf(text, sizeof text, "%ld %s\n", (long)getpid(),
                     gethostname(host, sizeof host - 1) == 0 ? host : "");

    /* The number only helps messages, so a full disk must not prevent locking. */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n)
        PM_DEBUG("run", "the lock's process id could not be written: %s", strerror(errno));
}

int pm_run_lock(const char *run, struct pm_run_lock **out)
{
    int err = PM_OK, fd = -1;
    struct pm_str path = { 0 };

    if (pm_make_folders(run) < 0)
        PM_TRY(pm_fail(PM_EFAIL, "run.folder: %s; set it to a place that can be written",
                       pm_error_text()));
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
        PM_WARN(
            "run",
            "%s: this file system has no locks (%s); do not start a second training in this folder",
            run, strerror(errno));
        break;
    }
    write_pid(fd);
    *out = pm_malloc(sizeof **out);
    (*out)->fd = fd;
    (*out)->path = pm_strdup(path.text);
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
    pm_free((*l)->path);
    pm_free(*l);
    *l = NULL;
}

bool pm_run_lock_holds(const struct pm_run_lock *l, bool saved)
{
    struct stat opened, there;
    struct pm_str checkpoints = { 0 };

    if (!l)
        return true;
    pm_str_add(&checkpoints, "%.*s/checkpoints", (int)(strrchr(l->path, '/') - l->path), l->path);
    const bool has = fstat(l->fd, &opened) == 0 && stat(l->path, &there) == 0 &&
                     opened.st_dev == there.st_dev && opened.st_ino == there.st_ino &&
                     (!saved || pm_is_folder(checkpoints.text));
    pm_str_free(&checkpoints);
    return has;
}

bool pm_run_is_locked(const char *run)
{
    struct pm_str path = { 0 };
    bool locked = false;

    pm_str_add(&path, "%s/lock", run);
    int fd;
    if (pm_file_exists(path.text) && pm_file_open(path.text, &fd, NULL) == PM_OK) {
        locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        close(fd);
    }
    pm_str_free(&path);
    return locked;
}
