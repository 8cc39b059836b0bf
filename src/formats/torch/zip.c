/* Zip archives as PyTorch writes them: uncompressed entries, found through the directory at the end
 * of the file, also in the 64-bit format. Only the directory is allocated, and the file contains
 * it, so its size is bounded by the file. */
#include "formats/torch/torch.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    END_SIZE = 22, LOCATOR_SIZE = 20, END64_SIZE = 56, ENTRY_SIZE = 46, LOCAL_SIZE = 30,
    LONGEST_END = END_SIZE + 65535, MAX_DIRECTORY = 256 << 20,
};

/* Position of the directory. */
struct directory {
    uint64_t at, size, count;
};

/* Reads the 64-bit end record if a locator precedes the end record at `at`. */
static int read_end64(const struct pm_tensor_file *f, uint64_t at, struct directory *d)
{
    int err = PM_OK;
    uint8_t locator[LOCATOR_SIZE], end[END64_SIZE];
    uint64_t where;

    if (at < LOCATOR_SIZE)
        return PM_OK;
    PM_TRY(pm_tensor_file_read(f, 0, at - LOCATOR_SIZE, LOCATOR_SIZE, locator));
    if (memcmp(locator, "PK\6\7", 4) != 0)
        return PM_OK;
    where = pm_little(locator + 8, 8);
    if (at < END64_SIZE || where > at - END64_SIZE)
        PM_TRY(pm_fail(PM_EDATA, "%s: the zip archive's end is damaged at offset %llu", f->path,
                       (unsigned long long)(at - LOCATOR_SIZE)));
    PM_TRY(pm_tensor_file_read(f, 0, where, END64_SIZE, end));
    if (memcmp(end, "PK\6\6", 4) != 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: the zip archive's end is damaged at offset %llu", f->path,
                       (unsigned long long)where));
    d->count = pm_little(end + 32, 8);
    d->size = pm_little(end + 40, 8);
    d->at = pm_little(end + 48, 8);
out:
    return err;
}

static int find_directory(const struct pm_tensor_file *f, struct directory *d)
{
    int err = PM_OK;
    uint64_t file_size = f->sources[0].size;
    size_t size = file_size < LONGEST_END ? (size_t)file_size : LONGEST_END, i;
    uint8_t *tail = pm_malloc(size + 1);

    PM_TRY(pm_tensor_file_read(f, 0, file_size - size, size, tail));
    for (i = size < END_SIZE ? 0 : size - END_SIZE + 1; i > 0; i--) {
        const uint8_t *p = tail + i - 1;
        if (memcmp(p, "PK\5\6", 4) == 0 && pm_little(p + 20, 2) == size - (i - 1) - END_SIZE) {
            *d = (struct directory){ .count = pm_little(p + 10, 2), .size = pm_little(p + 12, 4),
                                     .at = pm_little(p + 16, 4) };
            break;
        }
    }
    if (i == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: a zip archive without its end: cut short at %llu bytes?",
                       f->path, (unsigned long long)file_size));
    PM_TRY(read_end64(f, file_size - size + i - 1, d));
    if (d->at > file_size || d->size > file_size - d->at || d->count > d->size / ENTRY_SIZE ||
        d->size > MAX_DIRECTORY)
        PM_TRY(pm_fail(
            PM_EDATA,
            "%s: the zip archive's directory (%llu entries, %llu bytes at offset %llu) does "
            "not lie in the file's %llu bytes",
            f->path, (unsigned long long)d->count, (unsigned long long)d->size,
            (unsigned long long)d->at, (unsigned long long)file_size));
out:
    pm_free(tail);
    return err;
}

/* Reads the 64-bit values of the sizes and the offset whose 32-bit fields are saturated. */
static bool read_extra(const uint8_t *extra, size_t size, struct pm_zip_entry *e)
{
    uint64_t *full[3], at = 4;
    size_t n = 0;

    if (e->size == UINT32_MAX)
        full[n++] = &e->size;
    if (e->packed == UINT32_MAX)
        full[n++] = &e->packed;
    if (e->header == UINT32_MAX)
        full[n++] = &e->header;
    for (; n && size >= 4; at = 4) {
        size_t length = (size_t)pm_little(extra + 2, 2);
        if (length > size - 4)
            return false;
        if (pm_little(extra, 2) == 1) {
            for (size_t i = 0; i < n; i++, at += 8) {
                if (at + 8 > 4 + length)
                    return false;
                *full[i] = pm_little(extra + at, 8);
            }
            return true;
        }
        extra += 4 + length;
        size -= 4 + length;
    }
    return true;
}

/* Reads the directory entry at p; *used is its length in bytes. */
static bool read_entry(struct pm_arena *a, const uint8_t *p, size_t room, struct pm_zip_entry *e,
                       size_t *used)
{
    if (room < ENTRY_SIZE || memcmp(p, "PK\1\2", 4) != 0)
        return false;
    size_t name = (size_t)pm_little(p + 28, 2), extra = (size_t)pm_little(p + 30, 2);
    *used = ENTRY_SIZE + name + extra + (size_t)pm_little(p + 32, 2);
    if (*used > room || memchr(p + ENTRY_SIZE, 0, name))
        return false;
    *e = (struct pm_zip_entry){
        .flags = (uint16_t)pm_little(p + 8, 2),
        .method = (uint16_t)pm_little(p + 10, 2),
        .crc = (uint32_t)pm_little(p + 16, 4),
        .packed = pm_little(p + 20, 4),
        .size = pm_little(p + 24, 4),
        .header = pm_little(p + 42, 4),
    };
    char *text = pm_arena_alloc(a, name + 1);
    memcpy(text, p + ENTRY_SIZE, name);
    e->name = text;
    return read_extra(p + ENTRY_SIZE + name, extra, e);
}

static int by_name(const void *a, const void *b)
{
    const struct pm_zip_entry *x = a, *y = b;

    return strcmp(x->name, y->name);
}

int pm_zip_open(const struct pm_tensor_file *f, struct pm_arena *a, struct pm_zip *out)
{
    int err = PM_OK;
    struct directory d = { 0 };
    uint8_t *bytes = NULL;
    size_t at = 0, used = 0;

    PM_TRY(find_directory(f, &d));
    bytes = pm_malloc((size_t)d.size + 1);
    PM_TRY(pm_tensor_file_read(f, 0, d.at, (size_t)d.size, bytes));
    *out = (struct pm_zip){ .f = f, .count = (size_t)d.count };
    out->entries = pm_arena_alloc(a, (out->count + 1) * sizeof *out->entries);
    for (size_t i = 0; i < out->count; i++, at += used)
        if (!read_entry(a, bytes + at, (size_t)d.size - at, &out->entries[i], &used))
            PM_TRY(pm_fail(PM_EDATA, "%s: the zip archive's directory is damaged at offset %llu",
                           f->path, (unsigned long long)(d.at + at)));
    if (out->count)
        qsort(out->entries, out->count, sizeof *out->entries, by_name);
    for (size_t i = 1; i < out->count; i++)
        if (strcmp(out->entries[i - 1].name, out->entries[i].name) == 0)
            PM_TRY(pm_fail(PM_EDATA, "%s: the zip archive has '%.200s' twice", f->path,
                           out->entries[i].name));
out:
    pm_free(bytes);
    return err;
}

const struct pm_zip_entry *pm_zip_find(const struct pm_zip *z, const char *name)
{
    struct pm_zip_entry key = { .name = name };

    return z->count ? bsearch(&key, z->entries, z->count, sizeof key, by_name) : NULL;
}

int pm_zip_place(const struct pm_zip *z, const struct pm_zip_entry *e, uint64_t *at)
{
    int err = PM_OK;
    uint64_t file_size = z->f->sources[0].size;
    uint8_t local[LOCAL_SIZE];

    if (e->flags & 1)
        PM_TRY(
            pm_fail(PM_EDATA, "%s: '%.200s' is encrypted in the zip archive", z->f->path, e->name));
    if (e->method != 0)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: '%.200s' is compressed in the zip archive (method %d); torch.save does "
                       "not compress, like zip -0",
                       z->f->path, e->name, e->method));
    if (file_size < LOCAL_SIZE || e->header > file_size - LOCAL_SIZE)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: '%.200s' of the zip archive begins at offset %llu, beyond its end",
                       z->f->path, e->name, (unsigned long long)e->header));
    PM_TRY(pm_tensor_file_read(z->f, 0, e->header, LOCAL_SIZE, local));
    *at = e->header + LOCAL_SIZE + pm_little(local + 26, 2) + pm_little(local + 28, 2);
    if (memcmp(local, "PK\3\4", 4) != 0 || e->packed != e->size || *at > file_size ||
        e->size > file_size - *at)
        PM_TRY(pm_fail(
            PM_EDATA,
            "%s: the zip archive's entry '%.200s' of %llu bytes at offset %llu is damaged",
            z->f->path, e->name, (unsigned long long)e->size, (unsigned long long)e->header));
out:
    return err;
}

int pm_zip_check(const struct pm_zip *z, const struct pm_zip_entry *e, uint64_t at)
{
    int err = PM_OK;
    enum { PIECE = 16 << 10 };
    uint8_t piece[PIECE];
    uLong crc = crc32(0, NULL, 0);

    if (e->crc == 0)
        return PM_OK;
    for (uint64_t done = 0; done < e->size;) {
        size_t n = e->size - done < PIECE ? (size_t)(e->size - done) : PIECE;
        PM_TRY(pm_tensor_file_read(z->f, 0, at + done, n, piece));
        crc = crc32(crc, piece, (uInt)n);
        done += n;
    }
    if (crc != e->crc)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: '%.200s' is damaged: its crc32 is %08lx, the archive's says %08lx",
                       z->f->path, e->name, (unsigned long)crc, (unsigned long)e->crc));
out:
    return err;
}
