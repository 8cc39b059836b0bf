/* dataset download, in parts: what there is to fetch, fetching one file, unpacking one archive. */
#ifndef PM_DOWNLOAD_H
#define PM_DOWNLOAD_H

#include <signal.h>

#include <pumice/base.h>

/* ---- archives.c: what is fetched -------------------------------------------------------- */

struct pm_archive {
    const char *name;             /* of the file */
    uint64_t size;                /* bytes; 0 = not known */
    const char *sha256;           /* 64 hexadecimal digits */
    const char *const *addresses; /* the file's own, tried in this order; NULL-terminated */
    bool packed;                  /* a tar or zip file, to be unpacked; else the converter reads it */
};
struct pm_download {
    const char *name;      /* the data set's, and its converter's */
    const char *help;      /* one line, no full stop */
    const char *inside;    /* folder of the unpacked files that the converter is given; "" = all */
    const char *by_hand;   /* not NULL: nobody may fetch it without an account; what to do instead */
    const struct pm_archive *archives;
    size_t archive_count;
};
const struct pm_download *pm_downloads(size_t *count);

/* ---- fetch.c: one file ------------------------------------------------------------------ */

struct pm_fetch {
    const char *name;             /* for messages */
    const char *const *addresses; /* NULL-terminated */
    const char *path;             /* of the finished file; PATH.part until it is whole */
    uint64_t size;                /* 0 = not known */
    uint64_t most;                /* bytes that are fetched at most where the size is not known */
    const char *sha256;
    const volatile sig_atomic_t *stop; /* not 0: end soon; NULL = never */
};
/* Fetches it, going on where PATH.part ends, and gives it its name when the checksum is right. A file
 * that is there and right is left alone. PM_EFAIL: no address could be reached, the disk, stopped;
 * PM_EDATA: what came is not what was meant to come. The disk keeps 256 MiB free; what was fetched of a
 * file of unknown size that does not fit, or has more than `most` bytes, is removed. */
int pm_fetch(const struct pm_fetch *f);

/* ---- unpack.c: one archive -------------------------------------------------------------- */

/* Regular files and folders of a tar, tar.gz or zip file into folder (made where it is not there).
 * PM_EDATA, with the entry, for anything that is no such thing or would lie outside, and for damage. */
int pm_unpack(const char *path, const char *folder, const volatile sig_atomic_t *stop);

#endif
