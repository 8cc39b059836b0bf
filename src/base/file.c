/* Files and folders. Failed reads are PM_EDATA (the input is missing or unreadable); failed writes
 * are PM_EFAIL (the disk). new_file.c makes new files that appear whole or not at all. */
#include <pumice/base.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names the kind of a file that is not regular. */
static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a folder; a file is needed"
           : S_ISFIFO(mode) ? "a pipe; a regular file is needed: write its contents to a file first"
           : S_ISSOCK(mode) ? "a socket; a regular file is needed"
           : S_ISCHR(mode) || S_ISBLK(mode) ? "a device; a regular file is needed"
                                            : "not a regular file; a regular file is needed";
}

int pm_file_open(const char *path, int *fd, uint64_t *size)
{
    /* Without O_NONBLOCK, opening a pipe waits for a writer. */
    const int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const int why = errno;
    struct stat st;

    *fd = -1;
    if (opened < 0 && (why != ENXIO || stat(path, &st) < 0)) /* ENXIO: a socket */
        return pm_fail(PM_EDATA, "%s: cannot be opened: %s", path, strerror(why));
    if (opened >= 0 && fstat(opened, &st) < 0) {
        close(opened);
        return pm_fail(PM_EDATA, "%s: cannot be opened: %s", path, strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        if (opened >= 0)
            close(opened);
        return pm_fail(PM_EDATA, "%s: is %s", path, kind_of(st.st_mode));
    }
    *fd = opened;
    if (size)
        *size = (uint64_t)st.st_size;
    return PM_OK;
}

/* Grows s so that `more` bytes and a zero fit. The size comes from a file, so a lack of memory is
 * an error. */
static int make_room(struct pm_str *s, uint64_t more, const char *path)
{
    char buf[24],
        *text = more < SIZE_MAX - s->length ? pm_try_realloc(s->text, s->length + more + 1) : NULL;

    if (!text)
        return pm_fail(PM_EDATA, "%s: %s do not fit into memory", path, pm_bytes_text(more, buf));
    s->text = text;
    s->capacity = s->length + more + 1;
    return PM_OK;
}

/* Reads from fd's position to the end of the file. The expected size is not trusted: a file may
 * grow, and files in /proc have size 0. */
static int read_rest(int fd, const char *path, uint64_t expected, uint64_t most, struct pm_str *s)
{
    int err = PM_OK;
    char buf[24];
    ssize_t got = 0;

    PM_TRY(make_room(s, expected + 1, path)); /* one more, so that the read detects the end without
                                               * growing */
    while ((got = read(fd, s->text + s->length, s->capacity - s->length - 1)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            PM_TRY(pm_fail(PM_EDATA, "%s: reading failed: %s", path, strerror(errno)));
        s->length += (size_t)got;
        if (s->length > most)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: the file is larger than %s, the limit for this kind of file", path,
                           pm_bytes_text(most, buf)));
        if (s->capacity - s->length < 2)
            PM_TRY(make_room(s, s->length + 4096, path));
    }
    s->text[s->length] = '\0';
out:
    return err;
}

static int read_whole(const char *path, uint64_t most, char **out, size_t *size)
{
    int err = PM_OK, fd = -1;
    uint64_t bytes = 0;
    char is[24], limit[24];
    struct pm_str s = { 0 };

    PM_TRY(pm_file_open(path, &fd, &bytes));
    if (bytes > most)
        PM_TRY(pm_fail(
            PM_EDATA,
            "%s: the file has %s, but this kind of file has at most %s: is it the right file?",
            path, pm_bytes_text(bytes, is), pm_bytes_text(most, limit)));
    PM_TRY(read_rest(fd, path, bytes, most, &s));
    *out = s.text;
    *size = s.length;
    s = (struct pm_str){ 0 };
out:
    pm_str_free(&s);
    if (fd >= 0)
        close(fd);
    return err;
}

int pm_file_read(const char *path, char **out, size_t *size)
{
    size_t unused;

    return read_whole(path, UINT64_MAX, out, size ? size : &unused);
}

static const char byte_order_mark[] = "\xef\xbb\xbf"; /* of UTF-8 */

int pm_text_read(const char *path, uint64_t most, char **out)
{
    int err = PM_OK;
    char *text = NULL;
    size_t size = 0;

    PM_TRY(read_whole(path, most, &text, &size));
    if (strlen(text) != size)
        PM_TRY(pm_fail(PM_EDATA, "%s: this is not a text file: it has a zero byte at offset %zu",
                       path, strlen(text)));
    if (strncmp(text, byte_order_mark, strlen(byte_order_mark)) == 0)
        memmove(text, text + strlen(byte_order_mark), size - strlen(byte_order_mark) + 1);
    *out = text, text = NULL;
out:
    pm_free(text);
    return err;
}

const char *pm_write_error(int code)
{
    return code == EFBIG ? "File too large: beyond the limit on file sizes (ulimit -f) or the file "
                           "system's; raise the limit and run the same command again"
                         : strerror(code);
}

int pm_write_all(int fd, const char *path, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return pm_fail(PM_EFAIL, "%s: writing failed: %s", path, pm_write_error(errno));
        data += n;
        size -= (size_t)n;
    }
    return PM_OK;
}

/* Returns the folder part of path, "." if it has none; the caller frees it. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = pm_strdup(slash ? path : ".");

    if (slash)
        folder[slash == path ? 1 : slash - path] = '\0';
    return folder;
}

/* Syncs path's folder. Some network file systems refuse to sync a folder and offer no better way,
 * so only real I/O errors count. */
int pm_sync_parent(const char *path)
{
    int err = PM_OK;
    char *folder = folder_of(path);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 && errno != EACCES) /* EACCES: the folder may be written but not listed */
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be opened: %s", folder, strerror(errno)));
    if (fd >= 0 && fsync(fd) < 0 && errno != EINVAL && errno != ENOTSUP)
        PM_TRY(pm_fail(PM_EFAIL, "%s: sync failed: %s", folder, strerror(errno)));
out:
    if (fd >= 0)
        close(fd);
    pm_free(folder);
    return err;
}

bool pm_file_exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

bool pm_is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool pm_same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int pm_make_folder(const char *path)
{
    if (mkdir(path, 0777) == 0)
        return pm_sync_parent(path);
    if (errno != EEXIST || !pm_is_folder(path))
        return pm_fail(PM_EFAIL, "%s: the folder cannot be made: %s", path,
                       errno == EEXIST ? "there is a file of that name" : strerror(errno));
    return PM_OK;
}

int pm_make_folders(const char *path)
{
    int err = PM_OK;
    char *copy = pm_strdup(path);

    for (char *end = copy + 1; copy[0]; end++) {
        char saved = *end;
        if (saved != '/' && saved != '\0')
            continue;
        *end = '\0';
        if (end[-1] != '/')
            PM_TRY(pm_make_folder(copy));
        *end = saved;
        if (saved == '\0')
            break;
    }
out:
    pm_free(copy);
    return err;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

int pm_remove_tree(const char *path)
{
    struct stat st;

    if (lstat(path, &st) < 0 && errno == ENOENT)
        return PM_OK;
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        return pm_fail(PM_EFAIL, "%s: cannot be removed: %s", path, strerror(errno));
    return PM_OK;
}

int pm_glob(struct pm_arena *a, const char *pattern, char ***paths, size_t *count)
{
    glob_t g;
    int status = glob(pattern, 0, NULL, &g);

    *paths = NULL;
    *count = 0;
    if (status == GLOB_NOMATCH)
        return PM_OK;
    if (status != 0)
        return pm_fail(PM_EDATA, "%s: cannot be listed: %s", pattern,
                       status == GLOB_NOSPACE ? "out of memory" : strerror(errno));
    *count = g.gl_pathc;
    *paths = pm_arena_alloc(a, g.gl_pathc * sizeof **paths);
    for (size_t i = 0; i < g.gl_pathc; i++)
        (*paths)[i] = pm_arena_strdup(a, g.gl_pathv[i]);
    globfree(&g);
    return PM_OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int pm_list_folder(struct pm_arena *a, const char *path, char ***names, size_t *count)
{
    DIR *dir = opendir(path);
    char **list = NULL;
    size_t n = 0, capacity = 0;

    if (!dir)
        return pm_fail(PM_EDATA, "%s: cannot be listed: %s", path, strerror(errno));
    for (struct dirent *e; (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        PM_GROW(list, n, capacity);
        list[n++] = pm_arena_strdup(a, e->d_name);
    }
    closedir(dir);
    if (n)
        qsort(list, n, sizeof *list, by_bytes); /* by bytes: the order must not depend on the
                                                 * locale */
    *names = pm_arena_copy(a, list, n * sizeof *list);
    *count = n;
    pm_free(list);
    return PM_OK;
}
