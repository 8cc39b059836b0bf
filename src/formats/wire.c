/* wire: wire.h has the contract. Files are read through a window of 16 KiB; large fields bypass
 * it. */
#include "formats/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_TEXT = 64 << 20 };

int pm_wire_open(struct pm_wire_file *f, const char *path)
{
    f->path = path;
    f->data = NULL;
    f->window_at = 0;
    f->window_size = 0;
    return pm_file_open(path, &f->fd, &f->size);
}

void pm_wire_close(struct pm_wire_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

int pm_wire_read(const struct pm_wire_file *f, uint64_t offset, size_t size, void *dst)
{
    if (f->data) {
        memcpy(dst, f->data + offset, size);
        return PM_OK;
    }
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(f->fd, (char *)dst + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return pm_fail(PM_EDATA, "%s: cannot read at offset %llu: %s", f->path,
                           (unsigned long long)(offset + done), strerror(errno));
        if (n == 0)
            return pm_fail(PM_EDATA,
                           "%s: ends at offset %llu while being read; expected %llu bytes", f->path,
                           (unsigned long long)(offset + done), (unsigned long long)f->size);
        done += (size_t)n;
    }
    return PM_OK;
}

/* Returns bytes at offset, at most a window. The caller has checked that they lie in the file. */
static int view_at(struct pm_wire_file *f, uint64_t offset, size_t size, const uint8_t **out)
{
    int err = PM_OK;

    if (f->data) {
        *out = f->data + offset;
        return PM_OK;
    }
    if (offset < f->window_at || offset - f->window_at > f->window_size ||
        f->window_size - (size_t)(offset - f->window_at) < size) {
        const uint64_t rest = f->size - offset;
        const size_t n = rest < PM_WIRE_WINDOW ? (size_t)rest : PM_WIRE_WINDOW;
        f->window_size = 0;
        PM_TRY(pm_wire_read(f, offset, n, f->window));
        f->window_at = offset;
        f->window_size = n;
    }
    *out = f->window + (offset - f->window_at);
out:
    return err;
}

int pm_wire_bad(const struct pm_wire *w, uint64_t offset, const char *what)
{
    return pm_fail(PM_EDATA, "%s: %s at offset %llu", w->file->path, what,
                   (unsigned long long)offset);
}

static int varint(struct pm_wire *w, uint64_t *out)
{
    int err = PM_OK;
    const uint64_t left = w->end - w->at;
    const size_t most = left < 10 ? (size_t)left : 10;
    const uint8_t *p = NULL;

    *out = 0;
    if (most)
        PM_TRY(view_at(w->file, w->at, most, &p));
    for (size_t i = 0; i < most; i++) {
        *out |= (uint64_t)(p[i] & 127) << 7 * i;
        if (p[i] < 128) {
            w->at += i + 1;
            return PM_OK;
        }
    }
    PM_TRY(pm_wire_bad(w, w->at,
                       most < 10 ? "the message ends inside a number (cut short?)"
                                 : "a number of more than 10 bytes"));
out:
    return err;
}

static int fixed(struct pm_wire *w, size_t size, uint64_t *out)
{
    int err = PM_OK;
    const uint8_t *p;

    *out = 0;
    if (w->end - w->at < size)
        PM_TRY(pm_wire_bad(w, w->at, "the message ends inside a number (cut short?)"));
    PM_TRY(view_at(w->file, w->at, size, &p));
    for (size_t i = 0; i < size; i++)
        *out |= (uint64_t)p[i] << 8 * i;
    w->at += size;
out:
    return err;
}

struct pm_wire pm_wire_all(struct pm_wire_file *f)
{
    return (struct pm_wire){ .file = f, .end = f->size };
}

struct pm_wire pm_wire_inside(const struct pm_wire *w, const struct pm_wire_field *f)
{
    return (struct pm_wire){ .file = w->file, .at = f->begin, .end = f->begin + f->size };
}

static int value(struct pm_wire *w, enum pm_wire_type type, uint64_t *out)
{
    return type == PM_WIRE_VARINT    ? varint(w, out)
           : type == PM_WIRE_FIXED64 ? fixed(w, 8, out)
                                     : fixed(w, 4, out);
}

int pm_wire_next(struct pm_wire *w, struct pm_wire_field *f)
{
    int err = PM_OK;
    uint64_t key;

    if (w->at == w->end)
        return 0;
    *f = (struct pm_wire_field){ .key = w->at };
    PM_TRY(varint(w, &key));
    f->type = key & 7;
    if (key >> 3 == 0 || key >> 3 > 0x1fffffff ||
        (f->type != PM_WIRE_VARINT && f->type != PM_WIRE_FIXED64 && f->type != PM_WIRE_BYTES &&
         f->type != PM_WIRE_FIXED32))
        PM_TRY(pm_wire_bad(w, f->key, "not a protobuf message, or damaged: no field begins"));
    f->number = (uint32_t)(key >> 3);
    f->begin = w->at;
    if (f->type != PM_WIRE_BYTES) {
        PM_TRY(value(w, f->type, &f->value));
        f->size = w->at - f->begin;
        return 1;
    }
    PM_TRY(varint(w, &f->size));
    f->begin = w->at;
    if (f->size > w->end - w->at)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: field %u at offset %llu claims %llu bytes, %llu are left (cut short?)",
                       w->file->path, f->number, (unsigned long long)f->key,
                       (unsigned long long)f->size, (unsigned long long)(w->end - w->at)));
    w->at += f->size;
    return 1;
out:
    return err;
}

int pm_wire_packed(struct pm_wire *w, enum pm_wire_type type, uint64_t *out)
{
    int err = PM_OK;

    if (w->at == w->end)
        return 0;
    PM_TRY(value(w, type, out));
    return 1;
out:
    return err;
}

int pm_wire_is(const struct pm_wire *w, const struct pm_wire_field *f, enum pm_wire_type type)
{
    return f->type == type
               ? PM_OK
               : pm_fail(PM_EDATA,
                         "%s: field %u at offset %llu has another type than this message defines",
                         w->file->path, f->number, (unsigned long long)f->key);
}

int pm_wire_text(const struct pm_wire *w, const struct pm_wire_field *f, struct pm_arena *a,
                 const char **out)
{
    int err = PM_OK;
    char *text;

    PM_TRY(pm_wire_is(w, f, PM_WIRE_BYTES));
    if (f->size > MAX_TEXT)
        PM_TRY(pm_wire_bad(w, f->key, "a text of more than 64 MiB"));
    text = pm_arena_alloc(a, (size_t)f->size + 1);
    if (f->size <= PM_WIRE_WINDOW) {
        const uint8_t *p = NULL;
        if (f->size)
            PM_TRY(view_at(w->file, f->begin, (size_t)f->size, &p));
        if (f->size)
            memcpy(text, p, (size_t)f->size);
    } else {
        PM_TRY(pm_wire_read(w->file, f->begin, (size_t)f->size, text));
    }
    if (memchr(text, 0, (size_t)f->size))
        PM_TRY(pm_wire_bad(w, f->begin, "a zero byte in a text"));
    *out = text;
out:
    return err;
}

void pm_wire_add_varint(struct pm_str *s, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;

    for (; v > 127; v >>= 7)
        bytes[n++] = (uint8_t)(v | 128);
    bytes[n++] = (uint8_t)v;
    pm_str_bytes(s, bytes, n);
}
