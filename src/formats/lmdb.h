/* lmdb, internal to src/: reads one value after the other from a file of LMDB, the B+tree that sets
 * of cut words are often kept in (data.mdb, data version 1, as 64-bit machines with little-endian
 * numbers write it). Only the main database is read; it must not have values that share a key.
 *
 * The file is read by this code and not by liblmdb: that maps the file and trusts each page number,
 * offset and length in it, so a damaged file ends the process. Here each of them is checked before
 * it is used. Format: lmdb.h and mdb.c of LMDB 0.9. */
#ifndef PUMICE_FORMATS_LMDB_H
#define PUMICE_FORMATS_LMDB_H

#include <pumice/base.h>

struct pm_lmdb;
/* Opens a file, or data.mdb in a folder. PM_EDATA, with one line, if it is not such a file, if
 * another kind of machine wrote it, or if pages are missing at its end. */
int pm_lmdb_open(const char *path, struct pm_lmdb **out);
void pm_lmdb_close(struct pm_lmdb **l); /* accepts NULL in *l */
/* Reads the value of a key: a copy with a NUL after its size, which the caller frees with pm_free.
 * out and size NULL: only looks for the key.
 * Returns 1, or 0 without a value if the key is absent. PM_EDATA for a damaged page, with its
 * number; PM_EFAIL if reading fails. Thread-safe. */
int pm_lmdb_get(const struct pm_lmdb *l, const char *key, char **out, size_t *size);
/* The file's path, for messages; borrowed from l. */
const char *pm_lmdb_path(const struct pm_lmdb *l);

#endif
