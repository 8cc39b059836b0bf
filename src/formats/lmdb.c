/* lmdb: lmdb.h has the contract. A file is an array of pages of equal size. Pages 0 and 1 hold the
 * two versions of the roots; the one of the later transaction counts. A branch page holds keys and
 * pages, a leaf page keys and values; large values have pages of their own. */
#include "formats/lmdb.h"

#include <string.h>
#include <unistd.h>

#include "formats/little.h"
#include "formats/tfrecord.h"

enum {
    HEAD = 16, /* bytes of a page's header: its number 8, unused 2, flags 2, lower 2, upper 2 */
    NODE = 8,  /* bytes of a node's header: 6 of numbers, the key's size 2 */
    META = 136, /* bytes of the roots after the header */
    BRANCH = 1, LEAF = 2, OVERFLOW = 4, /* flags of pages */
    BIG = 1,                            /* flags of nodes */
    DEEPEST = 32,
    LEAST_PAGE = 256, MOST_PAGE = 65536,
    DUPLICATES = 4, /* a flag of a database: several values may share a key */
};
static const uint32_t magic = 0xbeefc0de, version = 1;
static const uint64_t no_page = UINT64_MAX; /* the root of an empty database */

struct pm_lmdb {
    char *path; /* owned, as fd */
    int fd;
    uint64_t size, pages; /* bytes; pages in use */
    uint64_t root;
    unsigned page; /* bytes of a page */
};

const char *pm_lmdb_path(const struct pm_lmdb *l)
{
    return l->path;
}

/* ---- the roots ---------------------------------------------------------------------------- */

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* head: the file's first HEAD + 4 bytes. */
static int check_magic(const struct pm_lmdb *l, const uint8_t *head)
{
    const char *const what = "read it on such a machine, and write it anew on this one";

    if (pm_little(head + HEAD, 4) == magic)
        return PM_OK;
    if (pm_little(head + 12, 4) == magic || big_endian(head + 12) == magic)
        return pm_fail(PM_EDATA, "%s: an LMDB file of a machine with 32-bit words: %s, with 64-bit "
                       "words", l->path, what);
    if (big_endian(head + HEAD) == magic)
        return pm_fail(PM_EDATA, "%s: an LMDB file of a big-endian machine: %s", l->path, what);
    return pm_fail(PM_EDATA, "%s: not an LMDB file: give a data.mdb, or its folder", l->path);
}

/* Takes the roots of one version if it is sound and later than *latest. Offsets are those of
 * MDB_meta. */
static void take_meta(struct pm_lmdb *l, const uint8_t *m, unsigned page, uint64_t *latest,
                      unsigned *flags, bool *any)
{
    const uint8_t *main_db = m + 24 + 48;
    const uint64_t transaction = pm_little(m + 128, 8);

    if (pm_little(m, 4) != magic || pm_little(m + 4, 4) != version ||
        pm_little(m + 24, 4) != page || (*any && transaction <= *latest))
        return;
    *any = true;
    *latest = transaction;
    *flags = (unsigned)pm_little(main_db + 4, 2);
    l->root = pm_little(main_db + 40, 8);
    l->pages = pm_little(m + 120, 8) + 1;
}

static int read_roots(struct pm_lmdb *l)
{
    uint8_t meta[HEAD + META];
    uint64_t latest = 0;
    unsigned flags = 0;
    bool any = false;
    int err = PM_OK;

    if (l->size < sizeof meta)
        PM_TRY(pm_fail(PM_EDATA, "%s: not an LMDB file, or cut short: it has %llu bytes", l->path,
                       (unsigned long long)l->size));
    PM_TRY(pm_read_at(l->fd, meta, sizeof meta, 0, l->path));
    PM_TRY(check_magic(l, meta));
    if (pm_little(meta + HEAD + 4, 4) != version)
        PM_TRY(pm_fail(PM_EDATA, "%s: version %u of LMDB's format; only version %u is read",
                       l->path, (unsigned)pm_little(meta + HEAD + 4, 4), version));
    l->page = (unsigned)pm_little(meta + HEAD + 24, 4);
    if (l->page < LEAST_PAGE || l->page > MOST_PAGE || l->page & (l->page - 1))
        PM_TRY(pm_fail(PM_EDATA, "%s: damaged: pages of %u bytes", l->path, l->page));
    if (l->size < 2 * (uint64_t)l->page)
        PM_TRY(pm_fail(PM_EDATA, "%s: cut short: it has %llu bytes, not two pages of %u", l->path,
                       (unsigned long long)l->size, l->page));
    take_meta(l, meta + HEAD, l->page, &latest, &flags, &any);
    PM_TRY(pm_read_at(l->fd, meta, sizeof meta, l->page, l->path));
    take_meta(l, meta + HEAD, l->page, &latest, &flags, &any);
    if (!any)
        PM_TRY(pm_fail(PM_EDATA, "%s: damaged: neither version of its root can be read", l->path));
    if (l->pages == 0 || l->pages > l->size / l->page)
        PM_TRY(pm_fail(PM_EDATA, "%s: cut short: it has %llu pages, its root counts %llu: copy it "
                       "again", l->path, (unsigned long long)(l->size / l->page),
                       (unsigned long long)l->pages));
    if (flags & DUPLICATES)
        PM_TRY(pm_fail(PM_EDATA, "%s: several values share a key, which is not supported",
                       l->path));
out:
    return err;
}

int pm_lmdb_open(const char *path, struct pm_lmdb **out)
{
    struct pm_lmdb *l = pm_calloc(1, sizeof *l);
    struct pm_str file = { 0 };
    int err = PM_OK;

    l->fd = -1;
    pm_str_add(&file, "%s%s", path, pm_is_folder(path) ? "/data.mdb" : "");
    l->path = pm_strdup(file.text);
    PM_TRY(pm_file_open(l->path, &l->fd, &l->size));
    PM_TRY(read_roots(l));
    *out = l;
    l = NULL;
out:
    pm_str_free(&file);
    pm_lmdb_close(&l);
    return err;
}

void pm_lmdb_close(struct pm_lmdb **l)
{
    if (*l) {
        if ((*l)->fd >= 0)
            close((*l)->fd);
        pm_free((*l)->path);
    }
    pm_free(*l);
    *l = NULL;
}

/* ---- pages -------------------------------------------------------------------------------- */

static int damaged(const struct pm_lmdb *l, uint64_t number, const char *what)
{
    return pm_fail(PM_EDATA, "%s: page %llu is damaged: %s: copy the file again", l->path,
                   (unsigned long long)number, what);
}

/* Reads `size` bytes from the beginning of a page. */
static int read_page(const struct pm_lmdb *l, uint64_t number, uint8_t *out, size_t size)
{
    if (number >= l->pages)
        return damaged(l, number, "the file ends before it");
    return pm_read_at(l->fd, out, size, number * l->page, l->path);
}

/* A node of a page; its pointers point into the page. */
struct node {
    const uint8_t *key, *value;
    size_t key_size, value_size; /* value_size: a leaf's, else 0 */
    unsigned flags;
    uint64_t page; /* a branch's */
};

/* Reads node i. What the page holds of it must lie inside the page. */
static int read_node(const struct pm_lmdb *l, uint64_t number, const uint8_t *page, unsigned i,
                     struct node *out)
{
    const size_t at = (size_t)pm_little(page + HEAD + 2 * i, 2);
    const bool branch = pm_little(page + 10, 2) & BRANCH;

    if (at < HEAD || at + NODE > l->page)
        return damaged(l, number, "an entry lies outside of the page");
    const uint8_t *p = page + at;
    const uint64_t low = pm_little(p, 4);

    *out = (struct node){ .key = p + NODE, .key_size = (size_t)pm_little(p + 6, 2),
                          .flags = (unsigned)pm_little(p + 4, 2) };
    out->value = out->key + out->key_size;
    if (branch)
        out->page = low | (uint64_t)out->flags << 32;
    else
        out->value_size = (size_t)low;
    const size_t inside = branch ? 0 : out->flags & BIG ? 8 : out->value_size;

    if (inside > l->page || at + NODE + out->key_size + inside > l->page)
        return damaged(l, number, "an entry reaches beyond the page");
    return PM_OK;
}

/* As LMDB compares: bytes, then the shorter first. */
static int compare(const char *key, size_t size, const struct node *n)
{
    const size_t common = size < n->key_size ? size : n->key_size;
    const int order = common ? memcmp(key, n->key, common) : 0;

    return order ? order : size < n->key_size ? -1 : size > n->key_size;
}

/* Finds the last node whose key is not above this one. A branch's first node counts as below all
 * keys. *equal: its key is this one. Returns its place; -1: there is none. PM_EDATA in *err. */
static int find_node(const struct pm_lmdb *l, uint64_t number, const uint8_t *page,
                     const char *key, unsigned count, bool branch, struct node *out, bool *equal,
                     int *err)
{
    int first = branch ? 1 : 0, last = (int)count;

    *equal = false;
    while (first < last) {
        const int middle = first + (last - first) / 2;
        struct node n;

        if ((*err = read_node(l, number, page, (unsigned)middle, &n)) < 0)
            return -1;
        const int order = compare(key, strlen(key), &n);
        if (order < 0) {
            last = middle;
        } else {
            first = middle + 1;
            *equal = order == 0;
            if (order == 0)
                break;
        }
    }
    if (first > 0)
        *err = read_node(l, number, page, (unsigned)first - 1, out);
    return first - 1;
}

static int read_big(const struct pm_lmdb *l, const struct node *n, char *out)
{
    const uint64_t number = pm_little(n->value, 8);
    uint8_t head[HEAD];
    int err = PM_OK;

    PM_TRY(read_page(l, number, head, sizeof head));
    if (!(pm_little(head + 10, 2) & OVERFLOW))
        PM_TRY(damaged(l, number, "it should hold a large value"));
    PM_TRY(pm_read_at(l->fd, out, n->value_size, number * l->page + HEAD, l->path));
out:
    return err;
}

static int copy_value(const struct pm_lmdb *l, uint64_t number, const struct node *n, char **out,
                      size_t *size)
{
    char *copy = NULL;
    int err = PM_OK;

    if (n->flags & ~(unsigned)BIG)
        PM_TRY(damaged(l, number, "its entry is a database of its own, not a value"));
    if (n->value_size > l->size)
        PM_TRY(damaged(l, number, "a value is longer than the file"));
    copy = pm_malloc(n->value_size + 1);
    if (n->flags & BIG)
        PM_TRY(read_big(l, n, copy));
    else if (n->value_size)
        memcpy(copy, n->value, n->value_size);
    copy[n->value_size] = '\0';
    *out = copy, copy = NULL;
    *size = n->value_size;
    err = 1;
out:
    pm_free(copy);
    return err;
}

int pm_lmdb_get(const struct pm_lmdb *l, const char *key, char **out, size_t *size)
{
    uint8_t *page = pm_malloc(l->page);
    uint64_t number = l->root;
    int err = PM_OK;

    for (unsigned depth = 0; number != no_page; depth++) {
        struct node n;
        bool equal = false;

        if (depth == DEEPEST)
            PM_TRY(damaged(l, number, "the tree is deeper than any of LMDB's"));
        PM_TRY(read_page(l, number, page, l->page));
        const unsigned kind = (unsigned)pm_little(page + 10, 2);
        const unsigned lower = (unsigned)pm_little(page + 12, 2);

        if (!(kind & (BRANCH | LEAF)) || lower < HEAD || lower > l->page)
            PM_TRY(damaged(l, number, "it is neither a branch nor a leaf"));
        const int at = find_node(l, number, page, key, (lower - HEAD) / 2, kind & BRANCH, &n,
                                 &equal, &err);
        PM_TRY(err);
        if (kind & BRANCH && lower - HEAD >= 2) {
            number = n.page;
            continue;
        }
        if (at >= 0 && equal)
            err = out ? copy_value(l, number, &n, out, size) : 1;
        break;
    }
out:
    pm_free(page);
    return err;
}
