/* preload: a library for LD_PRELOAD that makes system calls fail or kills the process at them.
 * choice.h describes the environment variables (PM_FAULT_...). The library knows these calls:
 * open, write, pwrite, fsync, rename, renameat2, link, unlink, mkdir, truncate,
 * mmap (of files). PM_FAULT_DO:
 *
 *   kill_before  SIGKILL before the call
 *   kill_after   SIGKILL after it
 *   kill_within  SIGKILL after half of a write; like kill_before for other calls
 *   ENOSPC, EIO, EACCES, EMFILE, ENOMEM, EROFS   the call is not made and fails with this error
 *   any          one of kill_before, kill_after, kill_within, ENOSPC, EIO
 *
 * Calls that the C library makes for its own streams (fopen, fwrite) are not counted. The
 * library is built without sanitizers; a sanitized program needs
 * ASAN_OPTIONS=verify_asan_link_order=0 to load it. */
#include "faults/choice.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>

static struct fault_choice choice = { .log = -1 };

__attribute__((constructor)) static void read_settings(void)
{
    fault_choice_read(&choice, "PM_FAULT");
}

/* The function of this name in the next library. */
#define REAL(name) ((__typeof__(&name))next(#name))

static void *next(const char *name)
{
    void *p = dlsym(RTLD_NEXT, name);

    if (!p)
        abort();
    return p;
}

enum { NOTHING, FAIL, KILL_BEFORE, KILL_AFTER, KILL_WITHIN };

struct verdict {
    int kind;  /* one of the constants above */
    int error; /* the error number for FAIL */
};

static struct verdict judge(const char *call, const char *path)
{
    static const struct {
        const char *word;
        struct verdict v;
    } words[] = {
        { "ENOSPC", { FAIL, ENOSPC } },      { "EIO", { FAIL, EIO } },
        { "kill_before", { KILL_BEFORE, 0 } }, { "kill_after", { KILL_AFTER, 0 } },
        { "kill_within", { KILL_WITHIN, 0 } }, { "EACCES", { FAIL, EACCES } },
        { "EMFILE", { FAIL, EMFILE } },      { "ENOMEM", { FAIL, ENOMEM } },
        { "EROFS", { FAIL, EROFS } },
    };
    static const char *const any[] = { "ENOSPC", "EIO", "kill_before", "kill_after",
                                       "kill_within" };
    const int saved = errno;
    const char *what = fault_count(&choice, call, path, any, sizeof any / sizeof *any);

    errno = saved;
    if (!what)
        return (struct verdict){ NOTHING, 0 };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(what, words[i].word) == 0)
            return words[i].v;
    fault_print(2, "fault: PM_FAULT_DO has a word that is not known\n");
    abort();
}

static void die(void)
{
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;)
        pause();
}

static struct verdict judge_fd(const char *call, int fd)
{
    char link[64], path[1024];
    const int saved = errno;
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    errno = saved;
    return judge(call, path);
}

/* BODY makes the call; V is the decision about it, RESULT the type of its value, FAILED its
 * value on an error. */
#define DISTURB(RESULT, FAILED, V, BODY)                                                           \
    do {                                                                                           \
        const struct verdict v_ = (V);                                                             \
        if (v_.kind == KILL_BEFORE || v_.kind == KILL_WITHIN)                                      \
            die();                                                                                 \
        if (v_.kind == FAIL) {                                                                     \
            errno = v_.error;                                                                      \
            return FAILED;                                                                         \
        }                                                                                          \
        RESULT result_ = (BODY);                                                                   \
        if (v_.kind == KILL_AFTER)                                                                 \
            die();                                                                                 \
        return result_;                                                                            \
    } while (0)

/* ---- files ------------------------------------------------------------------------------- */

static mode_t mode_of(int flags, va_list ap)
{
    return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(ap, int) : 0;
}

#define OPEN(NAME)                                                                                 \
    int NAME(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, flags);                                                                       \
        const mode_t mode = mode_of(flags, ap);                                                    \
        va_end(ap);                                                                                \
        DISTURB(int, -1, judge("open", path), REAL(NAME)(path, flags, mode));                      \
    }
OPEN(open)
OPEN(open64)

int mkostemp(char *path, int flags)
{
    DISTURB(int, -1, judge("open", path), REAL(mkostemp)(path, flags));
}

int mkostemp64(char *path, int flags)
{
    DISTURB(int, -1, judge("open", path), REAL(mkostemp64)(path, flags));
}

static void write_half(int fd, const void *data, size_t size, const off_t *at)
{
    if (at)
        (void)!syscall(SYS_pwrite64, fd, data, size / 2, *at);
    else
        (void)!syscall(SYS_write, fd, data, size / 2);
    die();
}

ssize_t write(int fd, const void *data, size_t size)
{
    const struct verdict v = judge_fd("write", fd);

    if (v.kind == KILL_WITHIN)
        write_half(fd, data, size, NULL);
    DISTURB(ssize_t, -1, v, REAL(write)(fd, data, size));
}

#define PWRITE(NAME)                                                                               \
    ssize_t NAME(int fd, const void *data, size_t size, off_t at)                                  \
    {                                                                                              \
        const struct verdict v = judge_fd("pwrite", fd);                                           \
        if (v.kind == KILL_WITHIN)                                                                 \
            write_half(fd, data, size, &at);                                                       \
        DISTURB(ssize_t, -1, v, REAL(NAME)(fd, data, size, at));                                   \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

int fsync(int fd)
{
    DISTURB(int, -1, judge_fd("fsync", fd), REAL(fsync)(fd));
}

int ftruncate(int fd, off_t size)
{
    DISTURB(int, -1, judge_fd("truncate", fd), REAL(ftruncate)(fd, size));
}

/* ---- names ------------------------------------------------------------------------------- */

int rename(const char *from, const char *to)
{
    DISTURB(int, -1, judge("rename", to), REAL(rename)(from, to));
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    DISTURB(int, -1, judge("renameat2", to),
            REAL(renameat2)(from_folder, from, to_folder, to, flags));
}

int link(const char *from, const char *to)
{
    DISTURB(int, -1, judge("link", to), REAL(link)(from, to));
}

int unlink(const char *path)
{
    DISTURB(int, -1, judge("unlink", path), REAL(unlink)(path));
}

int mkdir(const char *path, mode_t mode)
{
    DISTURB(int, -1, judge("mkdir", path), REAL(mkdir)(path, mode));
}

/* ---- maps -------------------------------------------------------------------------------- */

#define MMAP(NAME)                                                                                 \
    void *NAME(void *at, size_t size, int protection, int flags, int fd, off_t offset)             \
    {                                                                                              \
        if (fd < 0)                                                                                \
            return REAL(NAME)(at, size, protection, flags, fd, offset);                            \
        DISTURB(void *, MAP_FAILED, judge_fd("mmap", fd),                                          \
                REAL(NAME)(at, size, protection, flags, fd, offset));                              \
    }
MMAP(mmap)
MMAP(mmap64)
