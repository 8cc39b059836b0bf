/* base: errors, log, arena, strings, files. All other headers use this one.
 *
 * A function that can fail returns int: 0, or a negative PM_E... code. The lowest function that
 * knows the details calls pm_fail() with one line: what is wrong, where, the value, the allowed
 * range and the remedy. Callers return the code unchanged through PM_TRY. */
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
    PM_ECORRUPT = -6, /* the bytes of one record are damaged; data.on_corrupt may skip it; exit code
                       * 3 */
    PM_EMEMORY = -7, /* a device, or the host, does not have enough memory; exit code 4 */
};

/* Records one line for this thread (without a newline at the end) and returns err. Escapes control
 * characters, including newlines (pm_printable). */
int pm_fail(enum pm_error err, const char *fmt, ...) PM_PRINTF(2, 3);
/* The last line recorded in this thread, or "". Valid until the next pm_fail in this thread. */
const char *pm_error_text(void);
/* Process exit code for a returned error code: 0..4. */
int pm_exit_code(int err);
/* Fault injection for tests. PM_FAIL_AT=n makes the n-th call site that the process reaches fail
 * once; PM_FAIL_AT=file.c:line selects a site by its position; PM_FAIL_AT=list prints each site
 * when it is reached. *site is static storage of the call site, initially zero. Returns 0 or
 * PM_EFAIL. */
int pm_fault(int *site, const char *file, int line);
extern bool pm_faults_on;

/* Evaluates an int expression; on a negative value stores it in `err` and goes to `out`. */
#define PM_TRY(expr)                                                                               \
    do {                                                                                           \
        static int pm_site_;                                                                       \
        if (pm_faults_on && pm_fault(&pm_site_, __FILE__, __LINE__) < 0) {                         \
            err = PM_EFAIL; /* only here: expr may use err */                                      \
            goto out;                                                                              \
        }                                                                                          \
        if ((err = (expr)) < 0)                                                                    \
            goto out;                                                                              \
    } while (0)

/* ---- log ------------------------------------------------------------------------------- */

enum pm_level { PM_LEVEL_ERROR, PM_LEVEL_WARN, PM_LEVEL_INFO, PM_LEVEL_DEBUG, PM_LEVEL_TRACE };

/* Writes one line to standard error, and to the file of pm_log_file if one is set. Escapes control
 * characters, including newlines (pm_printable). PM_LOG=info,vulkan=trace filters by level and
 * subsystem. Thread-safe. */
void pm_log(enum pm_level level, const char *subsystem, const char *fmt, ...) PM_PRINTF(3, 4);
bool pm_log_enabled(enum pm_level level, const char *subsystem);
void pm_log_set_level(enum pm_level level);
/* Sets a text before each line on standard error, such as the number of a process. NULL: none. */
void pm_log_prefix(const char *text);
/* Also appends all later lines to f (borrowed). NULL stops that. */
void pm_log_file(FILE *f);
/* Sets functions that are called, under the log's lock, before and after each line on standard
 * error. A progress bar uses them to make room. NULL: none. */
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

/* malloc, calloc and realloc that abort with a message if host memory is exhausted. Free with
 * pm_free. pm_alloc_count() is the number of allocations so far: tests use it to check that
 * training steps allocate nothing. pm_live_count() is the number of allocations that are not
 * freed. */
void *pm_malloc(size_t size);
void *pm_calloc(size_t count, size_t size);
void *pm_realloc(void *p, size_t size);
char *pm_strdup(const char *s);
/* realloc for sizes that come from a foreign file. Returns NULL and leaves p unchanged on
 * failure. */
void *pm_try_realloc(void *p, size_t size);
void pm_free(void *p);
uint64_t pm_alloc_count(void);
uint64_t pm_live_count(void);

/* Bump allocator. The owner frees it as a whole. Memory is zeroed and 16-byte aligned. */
struct pm_arena;
struct pm_arena *pm_arena_create(void);
void pm_arena_destroy(struct pm_arena **a);
void *pm_arena_alloc(struct pm_arena *a, size_t size);
void *pm_arena_copy(struct pm_arena *a, const void *src, size_t size);
char *pm_arena_strdup(struct pm_arena *a, const char *s);
char *pm_arena_printf(struct pm_arena *a, const char *fmt, ...) PM_PRINTF(2, 3);

/* Grows arr (an lvalue, pointer to allocated items) so that the item with index n fits. */
#define PM_GROW(arr, n, cap)                                                                       \
    do {                                                                                           \
        if ((size_t)(n) >= (size_t)(cap)) {                                                        \
            (cap) = (cap) ? 2 * (cap) : 16;                                                        \
            (arr) = pm_realloc((arr), (size_t)(cap) * sizeof *(arr));                              \
        }                                                                                          \
    } while (0)

/* ---- strings --------------------------------------------------------------------------- */

/* A text that grows. Initialise with zeros, free with pm_str_free. text is NULL while it is
 * empty. */
struct pm_str {
    char *text;
    size_t length, capacity;
};
void pm_str_add(struct pm_str *s, const char *fmt, ...) PM_PRINTF(2, 3);
void pm_str_add_args(struct pm_str *s, const char *fmt, va_list args) PM_PRINTF(2, 0);
void pm_str_bytes(struct pm_str *s, const void *bytes, size_t count);
/* Appends the bytes in base64. */
void pm_str_base64(struct pm_str *s, const void *bytes, size_t count);
/* Appends a time of at least 0 s: "34 ms", "12.3 s", "4 min 5 s", "2 h 5 min" or "3 d 4 h". */
void pm_str_duration(struct pm_str *s, double seconds);
void pm_str_free(struct pm_str *s);

/* ---- foreign text: printable.c --------------------------------------------------------- */

/* Returns the number of bytes of the UTF-8 character at text (length > 0 bytes) and its code point;
 * 0 if the bytes are not valid UTF-8. */
int pm_utf8_next(const char *text, size_t length, uint32_t *code);
/* Appends a code point, 1..0x10ffff without surrogates, as UTF-8. */
void pm_utf8_add(struct pm_str *s, uint32_t code);
/* Whether the letter is of a script that is written from right to left, such as Hebrew or Arabic:
 * Unicode's blocks whose letters have the bidirectional classes R and AL. Their decimal digits,
 * which are written from left to right, are not. */
bool pm_is_right_to_left(uint32_t code);
/* Foreign text is shown with control characters (C0, DEL, C1), line separators, marks of writing
 * direction and invalid UTF-8 escaped as \x1B or \u{202E}. Other text is unchanged, so escaping
 * twice changes nothing. The log, pm_fail and app_print escape everything that they write. */
enum { PM_PRINTABLE = 16 }; /* bytes that one character may need, with the final zero */
/* Writes the first character of text (length > 0 bytes) to out. Returns the number of bytes in out;
 * *used is the number of bytes consumed from text. */
int pm_printable_next(const char *text, size_t length, char out[PM_PRINTABLE], int *used);
/* Writes the whole text to out (size > 0 bytes), truncated at a character boundary if it does not
 * fit. Returns the length. Allocates nothing. */
size_t pm_printable(char *out, size_t size, const char *text);
void pm_str_printable(struct pm_str *s, const char *text, size_t length);
/* Appends a name for a table, escaped and padded with spaces to `width` characters. */
void pm_str_name(struct pm_str *s, const char *text, int width);
/* Appends a text field for a CSV file: escaped, quoted where RFC 4180 requires it, and with a '
 * before a leading = + - or @, which a spreadsheet would take for a formula. */
void pm_str_csv(struct pm_str *s, const char *text);

/* Whether text has neither control characters (C0, DEL, C1) nor line separators. */
bool pm_is_line(const char *text);

/* The word for `count` things: one if it is 1, else many. pm_plural(n, "class", "classes") */
const char *pm_plural(double count, const char *one, const char *many);
bool pm_ends_with(const char *text, const char *end); /* true for an empty end */
/* The nearest of `count` names by edit distance (a transposition counts one). NULL if none is
 * closer than half of the name's length. */
const char *pm_nearest(const char *name, const char *const *names, size_t count);
/* 64-bit FNV-1a hash of a string. The hash of a layer's or variable's name selects its random
 * stream. */
uint64_t pm_hash(const char *s);
uint64_t pm_hash_bytes(const void *bytes, size_t count, uint64_t seed);
/* Writes "1.5 GiB" or "12 KiB" to buf and returns it. */
char *pm_bytes_text(uint64_t bytes, char buf[24]);
/* Seconds on a monotonic clock. */
double pm_seconds(void);

/* ---- files ----------------------------------------------------------------------------- */

/* Failures to read are PM_EDATA (the given file is missing or not readable), failures to write
 * PM_EFAIL (the disk). */

/* Opens a user's file for reading. Only regular files: reading a pipe or a terminal could block, a
 * device may never end. *size (may be NULL): its size in bytes. The caller closes *fd, which is -1
 * after a failure. PM_EDATA. If a file may be missing, call pm_file_exists first: pm_fail here
 * would replace the text of an earlier error. */
int pm_file_open(const char *path, int *fd, uint64_t *size);
/* Reads a whole regular file and appends a NUL after its size. The caller frees *out with pm_free.
 * size may be NULL. PM_EDATA, also if the file does not fit into memory. */
int pm_file_read(const char *path, char **out, size_t *size);
/* The same for a text of at most `most` bytes without zero bytes. A byte order mark of UTF-8 at its
 * beginning is left out. A larger file is refused before it is read. */
int pm_text_read(const char *path, uint64_t most, char **out);
enum {
    PM_MOST_TEXT = 64 << 20,  /* limit in bytes for configs, class names and files of Pumice */
    PM_MOST_LIST = 512 << 20, /* limit in bytes for lists with one line per picture */
};
/* Writes a file: under a temporary name in the same folder, then fsync, rename, and fsync of the
 * folder. If the process dies, path has either the old or the new content. */
int pm_file_write(const char *path, const void *data, size_t size);
/* The same in pieces. The file has a temporary name, PATH.tmp-PID-XXXXXX, until it is committed.
 * Opening removes temporary files of the same path that killed processes left. pm_new_file_abandon
 * removes the temporary file; it may be called at any time, also after commit. */
struct pm_new_file {
    const char *path; /* borrowed */
    int fd;
    int lock; /* locked while the file is temporary, which shows that this process lives; or -1 */
    char *temporary;
};
int pm_new_file_open(struct pm_new_file *f, const char *path);
int pm_new_file_add(struct pm_new_file *f, const void *data, size_t size);
int pm_new_file_sync(struct pm_new_file *f);   /* fsync; commit includes it */
int pm_new_file_commit(struct pm_new_file *f); /* also frees */
void pm_new_file_abandon(struct pm_new_file *f);
/* Describes the errno of a failed write. The text is static, or that of strerror. */
const char *pm_write_error(int code);
/* temporary.c: temporary files and folders beside a target, which are later renamed to it. Both
 * functions call pm_temporaries_clean and create an empty one. The caller frees *path, and closes
 * *lock (or -1) when the temporary was renamed or removed. PM_EFAIL. */
int pm_temporary_file(const char *target, char **path, int *fd, int *lock);
int pm_temporary_folder(const char *target, char **path, int *lock);
/* Removes temporaries of the target whose creators are dead. A failure is only a warning.
 * Thread-safe. */
void pm_temporaries_clean(const char *target);
/* Whether a file name (without folder) is that of a temporary of the target. *pid: its creator. */
bool pm_is_temporary(const char *name, const char *target, long *pid);
/* Whether the process `pid` that made this temporary file or folder is dead. */
bool pm_temporary_is_left(const char *path, long pid);
/* Syncs the folder of path, so that a new name in it survives a power loss. PM_EFAIL. */
int pm_sync_parent(const char *path);
/* Writes all bytes to an open file. path is for the error message. */
int pm_write_all(int fd, const char *path, const char *data, size_t size);
bool pm_file_exists(const char *path);
bool pm_is_folder(const char *path);
bool pm_same_file(const char *a, const char *b); /* both exist and are the same file or folder */
/* Like mkdir -p, and syncs the names of new folders. PM_EFAIL. */
int pm_make_folders(const char *path);
/* The same for the last folder only: its parent must exist. */
int pm_make_folder(const char *path);
int pm_remove_tree(const char *path);  /* like rm -rf; no error if path does not exist */
/* Lists the sorted paths that match a shell pattern, in the arena. No match is not an error (count
 * 0). */
int pm_glob(struct pm_arena *a, const char *pattern, char ***paths, size_t *count);
/* Lists the sorted names in a folder, without . and .., in the arena. */
int pm_list_folder(struct pm_arena *a, const char *path, char ***names, size_t *count);

/* ---- this process: process.c ----------------------------------------------------------- */

/* Calls the handler at SIGINT and SIGTERM, and at SIGHUP and SIGPIPE: a closed terminal or output
 * pipe stops a program as Ctrl-C does, unless the signal was ignored from the start, for example by
 * nohup. Interrupted system calls go on. */
void pm_catch_stop_signals(void (*handler)(int number));
/* Writes the path of this program's file. PM_EFAIL. */
int pm_own_path(char *out, size_t size);

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
