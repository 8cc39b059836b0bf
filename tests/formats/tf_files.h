/* Shared by the tests of TensorFlow checkpoints: a scratch folder with files, and TensorFlow's
 * own checkpoints (tests/golden/tf_checkpoint). */
#ifndef TF_FILES_H
#define TF_FILES_H

#include <pumice/tensor_file.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/pumice-tf-damage-XXXXXX";

static inline int setup(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    return pm_remove_tree(folder);
}

/* Formats into one of 64 static buffers. */
static inline const char *text(const char *fmt, ...) PM_PRINTF(1, 2);
static inline const char *text(const char *fmt, ...)
{
    static char buf[64][512];
    static int next;
    va_list args;

    next = (next + 1) % 64;
    va_start(args, fmt);
    vsnprintf(buf[next], sizeof buf[next], fmt, args);
    va_end(args);
    return buf[next];
}

static inline const char *golden(const char *name)
{
    const char *source = getenv("PUMICE_SOURCE");

    return text("%s/tests/golden/tf_checkpoint/%s", source ? source : ".", name);
}

static inline const char *in(const char *name)
{
    return text("%s/%s", folder, name);
}

/* Writes a file without the syncs of pm_file_write. */
static inline void put(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static inline void refused(const char *path, const char *why)
{
    struct pm_tensor_file *f = NULL;

    assert_int_equal(pm_tensor_file_open(path, &f), PM_EDATA);
    assert_null(f);
    if (!strstr(pm_error_text(), why))
        fail_msg("'%s' does not say '%s'", pm_error_text(), why);
}

static inline struct pm_tensor_file *opened(const char *path)
{
    struct pm_tensor_file *f = NULL;

    if (pm_tensor_file_open(path, &f) < 0)
        fail_msg("%s", pm_error_text());
    return f;
}

static inline void copy(const char *from, const char *to)
{
    char *bytes = NULL;
    size_t size;

    assert_int_equal(pm_file_read(from, &bytes, &size), 0);
    put(to, bytes, size);
    pm_free(bytes);
}

/* True when a tensor can be read, whole and in parts with the same result. Its values must then
 * be those of `want`. */
static inline bool good(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                        const struct pm_tensor_file *want)
{
    uint8_t a[16384], b[16384];
    const struct pm_file_tensor *w = pm_tensor_file_find(want, t->name);
    const int err = pm_tensor_file_bytes(f, t, 0, (size_t)t->bytes, a);

    assert_non_null(w);
    assert_true(t->bytes <= sizeof a && w->bytes == t->bytes && w->type == t->type);
    if (t->bytes > 1)
        assert_int_equal(pm_tensor_file_bytes(f, t, 1, (size_t)t->bytes - 1, b), err);
    if (err < 0) {
        assert_int_equal(err, PM_EDATA);
        return false;
    }
    assert_int_equal(pm_tensor_file_bytes(want, w, 0, (size_t)t->bytes, b), 0);
    assert_memory_equal(a, b, t->bytes);
    return true;
}

#endif
