/* Temporary files and folders: named TARGET.tmp-PID-XXXXXX beside the target until they are renamed
 * to it.
 *
 * A process that is killed leaves them behind; the next one with the same target removes them. Two
 * checks tell whether the maker still runs.
 *
 * First, it holds a flock on the file or folder. The kernel drops the lock when the process ends in
 * any way. Other containers see the lock, and so do other machines if the file system supports
 * shared locks.
 *
 * Second, its process number is checked. This covers file systems without such locks, and the
 * moment between creating and locking. Numbers are reused for other processes. So a temporary
 * without a lock that is older than a minute is left over, whichever process has its number now. */
#include <pumice/base.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SURE_SECONDS = 60 };
static const char mark[] = ".tmp-";

bool pm_is_temporary(const char *name, const char *target, long *pid)
{
    const size_t n = strlen(target);
    char *end;

    if (strncmp(name, target, n) != 0 || strncmp(name + n, mark, sizeof mark - 1) != 0)
        return false;
    name += n + sizeof mark - 1;
    *pid = strtol(name, &end, 10);
    return end > name && *pid > 0 && (!*end || *end == '-');
}

/* Returns a second descriptor with the lock. It stays open when the file itself is closed before
 * its rename. Another process may hold the lock for a moment, in is_held. */
static int hold(int fd)
{
    const int held = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    int failed = 0;

    while (held >= 0 && (failed = flock(held, LOCK_EX)) != 0 && errno == EINTR)
        ;
    if (failed)
        PM_DEBUG("files", "a temporary file cannot be locked: %s", strerror(errno));
    return held;
}

/* Whether another process holds the lock. *free: certainly no process holds it. */
static bool is_held(const char *path, bool *free)
{
    int fd = open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC); /* a folder */
    const bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    const bool held = fd >= 0 && !locked && errno == EWOULDBLOCK;

    if (fd >= 0)
        close(fd);
    *free = locked;
    return held;
}

bool pm_temporary_is_left(const char *path, long pid)
{
    const bool gone = kill((pid_t)pid, 0) != 0 && errno == ESRCH;
    struct stat st;
    bool free;

    if (lstat(path, &st) != 0 || is_held(path, &free))
        return false;
    return gone || (free && time(NULL) - st.st_mtime > SURE_SECONDS);
}

/* The last listed folder, and whether it had no temporaries of any process. So writing thousands of
 * files into one folder lists it once. */
static struct {
    pthread_mutex_t lock;
    dev_t device;
    ino_t inode;
    bool clean;
} last = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_known_clean(const struct stat *st)
{
    pthread_mutex_lock(&last.lock);
    const bool clean = last.clean && last.device == st->st_dev && last.inode == st->st_ino;
    pthread_mutex_unlock(&last.lock);
    return clean;
}

static void remember(const struct stat *st, bool clean)
{
    pthread_mutex_lock(&last.lock);
    last.device = st->st_dev;
    last.inode = st->st_ino;
    last.clean = clean;
    pthread_mutex_unlock(&last.lock);
}

static void remove_one(const char *folder, const char *name, long pid)
{
    struct pm_str path = { 0 };

    pm_str_add(&path, "%s/%s", folder, name);
    if (pm_temporary_is_left(path.text, pid)) {
        if (pm_remove_tree(path.text) < 0)
            PM_WARN("files", "cannot remove what a killed process left: %s", pm_error_text());
        else
            PM_DEBUG("files", "%s: removed; a killed process had left it", path.text);
    }
    pm_str_free(&path);
}

void pm_temporaries_clean(const char *target)
{
    const char *slash = strrchr(target, '/'), *own = slash ? slash + 1 : target;
    struct pm_str folder = { 0 };
    struct stat st;
    bool clean = true;

    pm_str_add(&folder, "%.*s", slash ? (int)(slash - target) + 1 : 1, slash ? target : ".");
    DIR *dir = stat(folder.text, &st) == 0 && !is_known_clean(&st) ? opendir(folder.text) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        long pid;
        clean &= !strstr(e->d_name, mark);
        if (pm_is_temporary(e->d_name, own, &pid))
            remove_one(folder.text, e->d_name, pid);
    }
    if (dir) {
        closedir(dir);
        remember(&st, clean);
    }
    pm_str_free(&folder);
}

/* Returns TARGET.tmp-PID-XXXXXX for mkstemp and mkdtemp. */
static char *template_of(const char *target)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "%s%s%ld-XXXXXX", target, mark, (long)getpid());
    return s.text;
}

static mode_t own_mask(void)
{
    const mode_t mask = umask(0);

    umask(mask);
    return mask;
}

int pm_temporary_file(const char *target, char **path, int *fd, int *lock)
{
    char *name = template_of(target);

    pm_temporaries_clean(target);
    *fd = mkostemp(name, O_CLOEXEC);
    if (*fd < 0) {
        pm_free(name);
        return pm_fail(PM_EFAIL, "%s: cannot be made: %s", target, strerror(errno));
    }
    *lock = hold(*fd);
    fchmod(*fd, 0666 & ~own_mask()); /* mkostemp gives 0600 */
    *path = name;
    return PM_OK;
}

int pm_temporary_folder(const char *target, char **path, int *lock)
{
    char *name = template_of(target);

    pm_temporaries_clean(target);
    if (!mkdtemp(name)) {
        pm_free(name);
        return pm_fail(PM_EFAIL, "%s: the folder cannot be made: %s", target, strerror(errno));
    }
    const int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *lock = fd < 0 ? -1 : hold(fd);
    if (fd >= 0)
        close(fd);
    chmod(name, 0777 & ~own_mask()); /* mkdtemp gives 0700 */
    *path = name;
    return PM_OK;
}
