/* shared_pictures: a list of decoded pictures. A picture in use is not replaced; if all are in use,
 * the new one is used and freed. Two threads may decode the same picture at once: then one of the
 * two is not kept. */
#include "data/convert/shared_pictures.h"

#include <pthread.h>
#include <string.h>

#include <pumice/thread.h>

struct kept {
    char *path; /* owned; NULL: the place is free */
    struct pm_picture picture;
    int users;
    uint64_t used; /* the larger, the later */
};

struct pm_shared_pictures {
    pthread_mutex_t mutex; /* of all that follows, except pictures in use */
    struct kept *kept;     /* [count] */
    int count;
    uint64_t clock;
};

struct pm_shared_pictures *pm_shared_pictures_create(void)
{
    struct pm_shared_pictures *s = pm_calloc(1, sizeof *s);

    pthread_mutex_init(&s->mutex, NULL);
    s->count = pm_threads();
    s->kept = pm_calloc((size_t)s->count, sizeof *s->kept);
    return s;
}

void pm_shared_pictures_destroy(struct pm_shared_pictures **s)
{
    if (!*s)
        return;
    for (int i = 0; i < (*s)->count; i++) {
        pm_picture_free(&(*s)->kept[i].picture);
        pm_free((*s)->kept[i].path);
    }
    pthread_mutex_destroy(&(*s)->mutex);
    pm_free((*s)->kept);
    pm_free(*s);
    *s = NULL;
}

/* The kept picture of this path, now in use by one more; NULL: it is not kept. */
static struct kept *find(struct pm_shared_pictures *s, const char *path)
{
    struct kept *found = NULL;

    pthread_mutex_lock(&s->mutex);
    for (int i = 0; i < s->count && !found; i++)
        if (s->kept[i].path && !strcmp(s->kept[i].path, path))
            found = &s->kept[i];
    if (found) {
        found->users++;
        found->used = ++s->clock;
    }
    pthread_mutex_unlock(&s->mutex);
    return found;
}

static void release(struct pm_shared_pictures *s, struct kept *k)
{
    pthread_mutex_lock(&s->mutex);
    k->users--;
    pthread_mutex_unlock(&s->mutex);
}

/* Keeps a picture in place of the one that was not used for the longest time. Takes it over, or
 * frees it. */
static void keep(struct pm_shared_pictures *s, const char *path, struct pm_picture *p)
{
    struct kept *to = NULL;

    pthread_mutex_lock(&s->mutex);
    for (int i = 0; i < s->count; i++) {
        struct kept *k = &s->kept[i];

        if (k->path && !strcmp(k->path, path)) {
            to = NULL;
            break;
        }
        if (k->users == 0 && (!to || k->used < to->used))
            to = k;
    }
    if (to) {
        const struct kept old = *to;

        *to = (struct kept){ .path = pm_strdup(path), .picture = *p, .used = ++s->clock };
        *p = old.picture;
        pm_free(old.path);
    }
    pthread_mutex_unlock(&s->mutex);
    pm_picture_free(p);
}

int pm_shared_pictures_part(struct pm_shared_pictures *s, const char *path, pm_picture_part *cut,
                            const void *ctx, struct pm_picture *out)
{
    struct kept *kept = find(s, path);
    struct pm_picture own = { 0 };
    int err = PM_OK;

    *out = (struct pm_picture){ 0 };
    if (kept) {
        err = cut(&kept->picture, ctx, out);
        release(s, kept);
        return err;
    }
    PM_TRY(pm_picture_read(path, &own));
    PM_TRY(cut(&own, ctx, out));
    keep(s, path, &own);
    own = (struct pm_picture){ 0 };
out:
    pm_picture_free(&own);
    return err;
}

static int cut_window(const struct pm_picture *whole, const void *ctx, struct pm_picture *out)
{
    const int *w = ctx;

    return pm_picture_crop(whole, w[0], w[1], w[2], w[3], out);
}

int pm_shared_pictures_crop(struct pm_shared_pictures *s, const char *path, const int window[4],
                            struct pm_picture *out)
{
    return pm_shared_pictures_part(s, path, cut_window, window, out);
}
