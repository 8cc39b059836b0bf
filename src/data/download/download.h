/* dataset download, its parts: the list of archives, downloading a file, unpacking an archive.
 * checkpoint download uses the latter two. */
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
    bool packed;                /* a tar or zip file, to be unpacked; else the converter reads it */
};
struct pm_download {
    const char *name;      /* name of the data set and of its converter */
    const char *help;      /* one line, no full stop */
    const char *inside;    /* folder of the unpacked files that the converter reads; "" = all */
    const char *by_hand;   /* not NULL: downloading needs an account; the text says what to do
                            * instead */
    const struct pm_archive *archives;
    size_t archive_count;
};
const struct pm_download *pm_downloads(size_t *count);

/* ---- fetch.c: one file ------------------------------------------------------------------ */

struct pm_fetch {
    const char *name;             /* for messages */
    const char *const *addresses; /* NULL-terminated */
    const char *path;             /* path of the finished file; PATH.part until it is complete */
    uint64_t size;                /* 0 = not known */
    uint64_t most;                /* limit in bytes if the size is unknown */
    const char *sha256;           /* its first hexadecimal digits, or all 64; "" = not known */
    const volatile sig_atomic_t *stop; /* not 0: stop soon; NULL = never stop */
    /* Advice in error messages, without a full stop; NULL: that of dataset download. */
    const char *on_failure;       /* "give another server with --from": no address worked */
    const char *on_full;          /* "give a --raw folder on another disk": the disk is full */
    const char *on_longer;        /* "--max-megabytes allows more": more than `most` bytes */
};
/* Downloads a file. Resumes where PATH.part ends, and renames it when the checksum matches. Does
 * nothing if the file exists with the right checksum. hex: the file's SHA-256; may be NULL.
 * PM_EFAIL: no address could be reached, a disk error, or stopped. PM_EDATA: the content differs
 * from what the checksum describes. 256 MiB of the disk stay free. A partial file of unknown size
 * that does not fit, or exceeds `most` bytes, is removed. */
int pm_fetch(const struct pm_fetch *f, char hex[65]);
/* Computes the SHA-256 of a file. PM_EFAIL when *stop is not 0; stop may be NULL. */
int pm_fetch_sum(const char *path, const volatile sig_atomic_t *stop, char hex[65]);

/* ---- download.c: another server --------------------------------------------------------- */

/* Finds a file's SHA-256 in a list with lines "HEX  NAME", the output of sha256sum. PM_EDATA. */
int pm_fetch_sum_in(const char *sums, const char *name, struct pm_arena *a, const char **out);
/* Returns FROM/NAME. */
const char *pm_fetch_address(const char *from, const char *name, struct pm_arena *a);

/* ---- unpack.c: one archive -------------------------------------------------------------- */

/* Unpacks the regular files and folders of a tar, tar.gz or zip file into folder, which is created
 * if needed. PM_EDATA, naming the entry, for other kinds of entries, paths outside the folder, and
 * damage. */
int pm_unpack(const char *path, const char *folder, const volatile sig_atomic_t *stop);

#endif
