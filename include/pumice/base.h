/* base: errors, log, arena, strings, files. Everything else stands on these.
 *
 * A function that can fail returns int: 0, or a negative PM_E... code. The lowest function that
 * knows the details calls pm_fail() with one line saying what, where, the value, the allowed range
 * and the remedy; callers pass the code up unchanged with PM_TRY. */
#ifndef PUMICE_BASE_H
#define PUMICE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PM_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* ---- errors ---------------------------------------------------------------------------- */

enum pm_error {
    PM_OK = 0,
    PM_EFAIL = -1,   /* the operation failed (disk, memory, interrupted library); exit code 1 */
    PM_ECONFIG = -2, /* configuration or command line is wrong; exit code 2 */
    PM_EDATA = -3,   /* data, checkpoint or image is bad; exit code 3 */
    PM_EDEVICE = -4, /* no usable device, or a device failed; exit code 4 */
    PM_ELOST = -5,   /* a device was lost; may be re-opened; exit code 4 if it reaches main */
    PM_ECORRUPT = -6, /* one record's bytes are damaged, which others need not be: data.on_corrupt
                         may pass over it; exit code 3 */
    PM_EMEMORY = -7, /* a device, or the host for it, has no memory for this; exit code 4 */
};

/* Records one line for this thread (no trailing newline) and returns err. Control characters in it,
 * also newlines, are escaped (pm_printable). */
int pm_fail(enum pm_error err, const char *fmt, ...) PM_PRINTF(2, 3);
/* The last recorded line of this thread, or "" when none. Valid until the next pm_fail here. */
const char *pm_error_text(void);
/* Process exit code for a returned error code: 0..4. */
int pm_exit_code(int err);
/* Fault injection: PM_FAIL_AT=n makes the n-th distinct call site (first hit order) fail once,
 * PM_FAIL_AT=file.c:line that one; PM_FAIL_AT=list names them as they are reached.
 * *site is the call site's own storage, zero at first. Returns 0 or PM_EFAIL. */
int pm_fault(int *site, const char *file, int line);
extern bool pm_faults_on;

/* Evaluates an int expression; on a negative value stores it in `err` and goes to `out`. */
#define PM_TRY(expr)                                                                               \
    do {                                                                                           \
        static int pm_site_;                                                                       \
        if (pm_faults_on && pm_fault(&pm_site_, __FILE__, __LINE__) < 0) {                         \
            err = PM_EFAIL; /* and not before: expr may be err itself */                           \
            goto out;                                                                              \
        }                                                                                          \
        if ((err = (expr)) < 0)                                                                    \
            goto out;                                                                              \
    } while (0)

/* ---- log ------------------------------------------------------------------------------- */

enum pm_level { PM_LEVEL_ERROR, PM_LEVEL_WARN, PM_LEVEL_INFO, PM_LEVEL_DEBUG, PM_LEVEL_TRACE };

/* One line to standard error (and to the file set by pm_log_file, when any). Control characters in it,
 * also newlines, are escaped (pm_printable).
 * PM_LOG=info,vulkan=trace filters by level and subsystem. Thread-safe. */
void pm_log(enum pm_level level, const char *subsystem, const char *fmt, ...) PM_PRINTF(3, 4);
bool pm_log_enabled(enum pm_level level, const char *subsystem);
void pm_log_set_level(enum pm_level level);
/* Appends all later lines to f as well; NULL stops that. Borrowed. */
void pm_log_file(FILE *f);
/* Called under the log's lock before and after each line reaches standard error, so that a
 * progress bar can make room; NULL for none. */
void pm_log_hooks(void (*before)(void), void (*after)(void));

#define PM_ERROR(sub, ...) pm_log(PM_LEVEL_ERROR, sub, __VA_ARGS__)
#define PM_WARN(sub, ...) pm_log(PM_LEVEL_WARN, sub, __VA_ARGS__)
#define PM_INFO(sub, ...) pm_log(PM_LEVEL_INFO, sub, __VA_ARGS__)
#define PM_DEBUG(sub, ...)                                                                         \
    do {                                                                                           \
        if (pm_log_enabled(PM_LEVEL_DEBUG, sub))                                                   \
            pm_log(PM_LEVEL_DEBUG, sub, __VA_ARGS__);                                              \
    } while (0)
#define PM_TRACE(sub, ...)                                                                         \
    do {                                                                                           \
        if (pm_log_enabled(PM_LEVEL_TRACE, sub))                                                   \
            pm_log(PM_LEVEL_TRACE, sub, __VA_ARGS__);                                              \
    } while (0)

/* ---- host memory ----------------------------------------------------------------------- */

/* malloc / calloc / realloc that abort with a message when host memory is gone. Counted:
 * pm_alloc_count() is the number of calls so far, by which a test sees that steps allocate nothing;
 * pm_live_count() how many of them are not freed. Freed with pm_free. */
void *pm_malloc(size_t size);
void *pm_calloc(size_t count, size_t size);
void *pm_realloc(void *p, size_t size);
char *pm_strdup(const char *s);
/* realloc for sizes that foreign bytes ask for: NULL, p being as it was, when they are refused. */
void *pm_try_realloc(void *p, size_t size);
void pm_free(void *p);
uint64_t pm_alloc_count(void);
uint64_t pm_live_count(void);

/* Bump allocator; freed as a whole by its owner. Memory comes zeroed, 16-byte aligned. */
struct pm_arena;
struct pm_arena *pm_arena_create(void);
void pm_arena_destroy(struct pm_arena **a);
void *pm_arena_alloc(struct pm_arena *a, size_t size);
void *pm_arena_copy(struct pm_arena *a, const void *src, size_t size);
char *pm_arena_strdup(struct pm_arena *a, const char *s);
char *pm_arena_printf(struct pm_arena *a, const char *fmt, ...) PM_PRINTF(2, 3);

/* Grows arr (a pointer lvalue to malloc'ed items) so that item number n fits. */
#define PM_GROW(arr, n, cap)                                                                       \
    do {                                                                                           \
        if ((size_t)(n) >= (size_t)(cap)) {                                                        \
            (cap) = (cap) ? 2 * (cap) : 16;                                                        \
            (arr) = pm_realloc((arr), (size_t)(cap) * sizeof *(arr));                              \
        }                                                                                          \
    } while (0)

/* ---- strings --------------------------------------------------------------------------- */

/* A growing text; zero-initialise, free with pm_str_free. text is NULL while empty. */
struct pm_str {
    char *text;
    size_t length, capacity;
};
void pm_str_add(struct pm_str *s, const char *fmt, ...) PM_PRINTF(2, 3);
void pm_str_add_args(struct pm_str *s, const char *fmt, va_list args) PM_PRINTF(2, 0);
void pm_str_bytes(struct pm_str *s, const void *bytes, size_t count);
/* Appends the bytes in base64. */
void pm_str_base64(struct pm_str *s, const void *bytes, size_t count);
void pm_str_free(struct pm_str *s);

/* ---- foreign text: printable.c --------------------------------------------------------- */

/* Names from foreign files are shown with control characters (C0, DEL, C1), separators of lines,
 * marks of writing direction and bytes that are no UTF-8 as \x1B or \u{202E}. Other text is unchanged, so
 * escaping twice changes nothing. The log, pm_fail and app_print do this to all that they write. */
enum { PM_PRINTABLE = 16 }; /* bytes that one character may need, with the final zero */
/* The first character of text, which has length > 0 bytes, into out. Returns the bytes in out; *used
 * is the bytes of text that it stands for. */
int pm_printable_next(const char *text, size_t length, char out[PM_PRINTABLE], int *used);
/* The whole of text in out, which has size > 0 bytes; what has no room is cut off, at a whole character.
 * Returns the length. Allocates nothing. */
size_t pm_printable(char *out, size_t size, const char *text);
void pm_str_printable(struct pm_str *s, const char *text, size_t length);
/* Appends a name for a table, escaped and filled up with blanks to `width` characters. */
void pm_str_name(struct pm_str *s, const char *text, int width);
/* Appends a field of text for a CSV file: escaped; in quotes where RFC 4180 asks for them; and with a '
 * before a first = + - or @, which a spreadsheet would take for a formula. */
void pm_str_csv(struct pm_str *s, const char *text);

/* Whether text can stand in a line of a file: no control characters (C0, DEL, C1), no separators of
 * lines. */
bool pm_is_line(const char *text);

bool pm_ends_with(const char *text, const char *end); /* true for an empty end */
/* Nearest of `count` names by edit distance (transpositions count one), or NULL when none is
 * closer than half of the name's length. */
const char *pm_nearest(const char *name, const char *const *names, size_t count);
/* 64-bit FNV-1a of a string: the random streams' key for a layer's or variable's name. */
uint64_t pm_hash(const char *s);
uint64_t pm_hash_bytes(const void *bytes, size_t count, uint64_t seed);
/* "1.5 GiB", "12 KiB"; static storage is not used: buf of at least 24 bytes is filled. */
char *pm_bytes_text(uint64_t bytes, char buf[24]);
/* Seconds on a monotonic clock. */
double pm_seconds(void);

/* ---- files ----------------------------------------------------------------------------- */

/* Failures to read are PM_EDATA (what was given is not there or not readable), failures to write
 * PM_EFAIL (the disk). */

/* Opens a file of the user's to be read. Only regular files: a pipe or a terminal would make the reader
 * wait, a device may never end. *size, unless NULL: its bytes. The caller closes *fd, which is -1
 * after a failure. PM_EDATA. Where a file may be missing, ask pm_file_exists before, so that an error that
 * is on its way keeps its text. */
int pm_file_open(const char *path, int *fd, uint64_t *size);
/* Whole regular file, NUL-terminated beyond its size; *out is freed by the caller with pm_free. size may be
 * NULL. PM_EDATA, also when it is larger than the memory that is there. */
int pm_file_read(const char *path, char **out, size_t *size);
/* The same for a text of at most `most` bytes, in which no byte is zero: a larger file is refused before
 * it is read. */
int pm_text_read(const char *path, uint64_t most, char **out);
enum {
    PM_MOST_TEXT = 64 << 20,  /* bytes of a config, a file of our own, names of classes: pm_text_read's most */
    PM_MOST_LIST = 512 << 20, /* bytes of a list with a line for each picture */
};
/* Writes under a temporary name in the same folder, fsyncs, renames, fsyncs the folder:
 * whenever the process dies, path holds the old content or the new. */
int pm_file_write(const char *path, const void *data, size_t size);
/* The same in pieces: a file under a temporary name, PATH.tmp-PID-XXXXXX in its folder, until it is
 * committed. Opening removes those that killed processes left of the same path. Abandoned (which is
 * allowed at any time, also after commit) it leaves nothing behind. */
struct pm_new_file {
    const char *path; /* borrowed */
    int fd;
    int lock; /* says that this process lives, until the file has its name; or -1 */
    char *temporary;
};
int pm_new_file_open(struct pm_new_file *f, const char *path);
int pm_new_file_add(struct pm_new_file *f, const void *data, size_t size);
int pm_new_file_sync(struct pm_new_file *f);   /* the bytes have reached the disk; commit does it too */
int pm_new_file_commit(struct pm_new_file *f); /* also frees */
void pm_new_file_abandon(struct pm_new_file *f);
/* What errno says of a write that failed, in words; static, or as strerror's. */
const char *pm_write_error(int code);
/* temporary.c: what stands beside a target until it gets its name. Both make an empty one, after
 * pm_temporaries_clean; *path is freed by the caller, *lock (or -1) is closed when the temporary is gone
 * or has its name. PM_EFAIL. */
int pm_temporary_file(const char *target, char **path, int *fd, int *lock);
int pm_temporary_folder(const char *target, char **path, int *lock);
/* Removes temporaries of the target whose makers are dead. A failure is a warning. Thread-safe. */
void pm_temporaries_clean(const char *target);
/* Whether a file's name, without folder, is that of a temporary of the target's, and its maker's number. */
bool pm_is_temporary(const char *name, const char *target, long *pid);
/* Whether the process `pid` that made this temporary file or folder is dead. */
bool pm_temporary_is_left(const char *path, long pid);
/* The folder that path lies in is synced, so that a new name in it survives a power loss. PM_EFAIL. */
int pm_sync_parent(const char *path);
/* Writes to a file that is open; path is for the error's line. */
int pm_write_all(int fd, const char *path, const char *data, size_t size);
bool pm_file_exists(const char *path);
bool pm_is_folder(const char *path);
bool pm_same_file(const char *a, const char *b); /* both are there, and one; folders too */
/* As mkdir -p; the names of new folders reach the disk. PM_EFAIL. */
int pm_make_folders(const char *path);
/* The same of the last folder only: the one that it lies in must be there. */
int pm_make_folder(const char *path);
int pm_remove_tree(const char *path);  /* as rm -rf; absent is fine */
/* Sorted paths matching a shell pattern, in the arena; none is not an error (count 0). */
int pm_glob(struct pm_arena *a, const char *pattern, char ***paths, size_t *count);
/* Sorted names in a folder without . and .., in the arena. */
int pm_list_folder(struct pm_arena *a, const char *path, char ***names, size_t *count);

/* sha256 (FIPS 180-4). */
struct pm_sha256 {
    uint32_t state[8];
    uint64_t length;
    uint8_t block[64];
};
void pm_sha256_start(struct pm_sha256 *s);
void pm_sha256_add(struct pm_sha256 *s, const void *data, size_t size);
void pm_sha256_end(struct pm_sha256 *s, char hex[65]);

#ifdef __cplusplus
}
#endif

#endif
