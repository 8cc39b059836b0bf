/* published: pretrained checkpoints that torchvision, TF-Slim and DeepLab publish, for
 * pumice checkpoint download and init.checkpoint "imagenet".
 *
 * A checkpoint lies in the user's cache, in a folder of its own:
 *
 *     $XDG_CACHE_HOME/pumice/checkpoints/ROW/            (~/.cache without XDG_CACHE_HOME)
 *         source.json    address, digest, and the checkpoint's path below the folder
 *         ...            the downloaded file, or what its archive contains
 *
 * The folder gets its name when it is complete. A download in progress is FILE.part beside it, and
 * a complete file that is not unpacked yet is FILE. So a file that was copied there by hand is
 * found, too. */
#ifndef PM_PUBLISHED_H
#define PM_PUBLISHED_H

#include <signal.h>

#include <pumice/checkpoint.h>
#include <pumice/config.h>
#include <pumice/plan.h>

/* A published checkpoint (published.def). */
struct pm_published {
    const char *name;
    const char *net;           /* model.name */
    const char *conventions;   /* model.conventions */
    const char *preprocessing; /* input.preprocessing of its training */
    const char *settings;      /* further keys that it needs, "a.b=1 c.d=2"; "" = none */
    int classes;               /* of its last layer; 0: the net has no layer that would match */
    const char *data;          /* what it was trained on, the pretraining first */
    const char *address;       /* https; the part after the last slash is the file's name */
    const char *sha256;        /* the published first digits; "" = none */
    const char *inside;        /* part of the checkpoint's path in an archive with several; or
                                * NULL */
    const char *licence;       /* of the repository that publishes it */
};
const struct pm_published *pm_published_rows(size_t *count);
/* Another net whose backbone starts from a row: NULL-terminated by net. */
struct pm_published_backbone {
    const char *net, *row;
};
const struct pm_published_backbone *pm_published_backbones(void);
/* Finds a row by its name. PM_ECONFIG, with the nearest name. */
int pm_published_find(const char *name, const struct pm_published **out);
/* Finds the row that init.checkpoint "imagenet" means for a net and its conventions ("tensorflow"
 * or "torch"; NULL: any). net may be NULL: a config without model.name. PM_ECONFIG lists the nets
 * that have a row. where: "x.json: init.checkpoint". */
int pm_published_for(const char *net, const char *conventions, const char *where,
                     const struct pm_published **out);
/* The same without an error: NULL if there is no such row. net is not NULL. */
const struct pm_published *pm_published_first(const char *net, const char *conventions);
/* Returns the row's file name. */
const char *pm_published_file_name(const struct pm_published *p);
/* Whether the row's file is an archive. */
bool pm_published_is_packed(const struct pm_published *p);

/* ---- the cache (published_cache.c) ------------------------------------------------------ */

struct pm_published_want {
    const char *from;    /* another server's folder; NULL: the published address */
    const char *sums;    /* file of lines "SHA-256  NAME" for that server; NULL: the row's digits */
    const char *advice;  /* what else to do if no server answers: "give another server with
                          * --from" */
    const volatile sig_atomic_t *stop; /* not 0: stop soon; NULL = never stop */
};
/* A checkpoint in the cache. Texts are in the caller's arena. */
struct pm_published_copy {
    const char *path;    /* for pm_checkpoint_open */
    const char *address; /* where it came from; the row's for a file that was copied by hand */
    const char *sha256;  /* of the downloaded file, 64 digits */
};
/* Makes the row's checkpoint available: from the cache, else from a file that was copied into it,
 * else by a download. Several processes may call it at once; one of them downloads and the others
 * fail with a message. PM_EFAIL: no server answered, or the disk. PM_EDATA: the file is not the
 * published one, or its archive has no checkpoint. */
int pm_published_get(const struct pm_published *p, const struct pm_published_want *want,
                     struct pm_arena *a, struct pm_published_copy *out);

/* Whether the row's checkpoint, or its downloaded file, lies in the cache, so that pm_published_get
 * needs no network. Opens no file. */
bool pm_published_is_here(const struct pm_published *p);

/* ---- init.checkpoint (published_start.c) ------------------------------------------------ */

/* The value of init.checkpoint that stands for a published checkpoint. */
#define PM_PUBLISHED_IMAGENET "imagenet"
bool pm_published_is_wanted(const struct pm_config *c);
/* Returns the row that "imagenet" means for this config's net, or NULL if there is none. */
const struct pm_published *pm_published_of(const struct pm_config *c);
/* Checks init.checkpoint "imagenet" without a network: the net has a row, and init.restore fits.
 * PM_ECONFIG. Any other value is PM_OK. */
int pm_published_check(const struct pm_config *c);
/* Resolves init.checkpoint "imagenet" for a new run: gets the row of the config's net, adds to
 * init.exclude_scopes the last layer if its classes differ, and writes RUN/init.json with the
 * file's origin and digest. run: the run folder; NULL: this file is not written. Any other value is
 * copied unchanged. Pointers in *init are the config's or in the arena. v: the net's variables,
 * without memory. */
int pm_published_start(const struct pm_config *c, const struct pm_variables *v, const char *run,
                       struct pm_arena *a, struct pm_config_init *init);

#endif
