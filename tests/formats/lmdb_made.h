/* lmdb_made: LMDB files for tests, made by hand: a root, leaves of two entries, and pages of large
 * values. The form is that of LMDB 0.9 on a 64-bit machine with little-endian numbers. */
#ifndef LMDB_MADE_H
#define LMDB_MADE_H

#include <pumice/base.h>

#include <string.h>

struct made_entry {
    const char *key; /* sorted by bytes */
    const char *value;
    size_t size;
};
enum { MADE_PAGE = 512, MADE_PAGES = 64, MADE_INSIDE = 150 /* larger values have own pages */ };
struct made_lmdb {
    uint8_t bytes[MADE_PAGE * MADE_PAGES];
    size_t pages;
};

static inline void made_number(uint8_t *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static inline uint8_t *made_page(struct made_lmdb *m, unsigned flags)
{
    uint8_t *p = m->bytes + MADE_PAGE * m->pages;

    made_number(p, m->pages++, 8);
    made_number(p + 10, flags, 2);
    made_number(p + 12, 16, 2);
    made_number(p + 14, MADE_PAGE, 2);
    return p;
}

/* Adds a node; its header's numbers are low and high. */
static inline void made_node(uint8_t *page, uint64_t low, unsigned high, const char *key,
                             const void *data, size_t size)
{
    const size_t length = strlen(key), all = (8 + length + size + 1) & ~(size_t)1;
    const unsigned lower = page[12] | (unsigned)page[13] << 8;
    const size_t upper = (size_t)(page[14] | page[15] << 8) - all;
    uint8_t *node = page + upper;

    made_number(page + lower, upper, 2);
    made_number(page + 12, lower + 2, 2);
    made_number(page + 14, upper, 2);
    made_number(node, low, 4);
    made_number(node + 4, high, 2);
    made_number(node + 6, length, 2);
    memcpy(node + 8, key, length);
    if (size)
        memcpy(node + 8 + length, data, size);
}

static inline void made_meta(struct made_lmdb *m, int k, uint64_t root, uint64_t transaction)
{
    uint8_t *p = m->bytes + MADE_PAGE * k;

    made_number(p, (uint64_t)k, 8);
    made_number(p + 10, 8, 2);
    made_number(p + 16, 0xbeefc0de, 4);
    made_number(p + 20, 1, 4);
    made_number(p + 40, MADE_PAGE, 4); /* of the database of free pages */
    memset(p + 80, 255, 8);
    made_number(p + 128, root, 8);
    made_number(p + 136, m->pages - 1, 8);
    made_number(p + 144, transaction, 8);
}

static inline void made_leaf_entry(struct made_lmdb *m, size_t leaf, const struct made_entry *e)
{
    uint8_t place[8] = { 0 };

    if (e->size <= MADE_INSIDE) {
        made_node(m->bytes + MADE_PAGE * leaf, e->size, 0, e->key, e->value, e->size);
        return;
    }
    made_number(place, m->pages, 8);
    made_node(m->bytes + MADE_PAGE * leaf, e->size, 1, e->key, place, 8);
    uint8_t *p = made_page(m, 4);
    memcpy(p + 16, e->value, e->size);
    m->pages += (16 + e->size + MADE_PAGE - 1) / MADE_PAGE - 1;
}

/* Page 0 keeps an older version without entries; page 1 has the newer one. */
static inline void made_lmdb(struct made_lmdb *m, const struct made_entry *entries, size_t count)
{
    const size_t leaves = (count + 1) / 2;

    memset(m, 0, sizeof *m);
    m->pages = 2;
    uint8_t *root = made_page(m, 1);

    for (size_t i = 0; i < leaves; i++)
        made_page(m, 2);
    for (size_t i = 0; i < count; i++) {
        if (i % 2 == 0)
            made_node(root, 3 + i / 2, 0, i ? entries[i].key : "", NULL, 0);
        made_leaf_entry(m, 3 + i / 2, &entries[i]);
    }
    made_meta(m, 0, UINT64_MAX, 1);
    made_meta(m, 1, 2, 2);
}

#endif
