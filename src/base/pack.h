/* pack: numbers and texts as bytes for another process of this program. Numbers are in the
 * machine's byte order, so the bytes suit only machines with the same one. */
#ifndef PM_PACK_H
#define PM_PACK_H

#include <pumice/base.h>

/* Appends 8 bytes: the number. */
void pm_pack_int(struct pm_str *out, uint64_t v);
/* Appends 8 bytes: the number's bits, also those of a NaN. */
void pm_pack_double(struct pm_str *out, double v);
/* Appends 8 bytes and the text's own. text may be NULL. */
void pm_pack_text(struct pm_str *out, const char *text);

/* The unread rest of packed bytes. Begin with the bytes and damaged false.
 *
 * Errors stay: a read beyond the end, or of a value outside its limits, sets damaged. That read and
 * all later ones return 0 or NULL. So a caller can read a whole item and check once, before it uses
 * the item. Nothing is reported with pm_fail. */
struct pm_unpack {
    const uint8_t *at; /* borrowed */
    size_t left;       /* bytes */
    bool damaged;
};
uint64_t pm_unpack_int(struct pm_unpack *u);
double pm_unpack_double(struct pm_unpack *u);
/* Reads a number from 0 to limit - 1. */
uint64_t pm_unpack_below(struct pm_unpack *u, uint64_t limit);
/* Reads the number of items that follow, each at least `least` > 0 bytes long. It is at most what
 * the bytes left can hold, so memory for the items is in proportion to the pack. */
size_t pm_unpack_count(struct pm_unpack *u, size_t least);
/* Returns the next `size` bytes, borrowed. */
const void *pm_unpack_bytes(struct pm_unpack *u, size_t size);
/* Reads what pm_pack_text wrote. The caller frees the text with pm_free. Returns NULL if NULL was
 * packed. */
char *pm_unpack_text(struct pm_unpack *u);

#endif
