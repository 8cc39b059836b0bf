/* Findings of converted pictures. Equal pictures have the same bytes in their records, found by
 * their SHA-256. */
#include "data/convert/findings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A photo with the lens covered has a mean of 0 to 5 of 255; a night scene has more. */
#define NEARLY_BLACK 6.0
/* A picture with a shorter side than this shows nothing, whatever its colours are. */
enum { LEAST_SIDE = 4, MOST_NAMED = 20 };

struct entry {
    char digest[65];
    const char *split, *class_name, *path;
    int height, width;
    double mean; /* of the samples, 0..255 */
};
struct pm_findings {
    pthread_mutex_t lock;
    struct entry *entry; /* owned */
    size_t count, capacity;
};

struct pm_findings *pm_findings_create(void)
{
    struct pm_findings *f = pm_calloc(1, sizeof *f);

    pthread_mutex_init(&f->lock, NULL);
    return f;
}

void pm_findings_destroy(struct pm_findings **f)
{
    if (*f) {
        pthread_mutex_destroy(&(*f)->lock);
        pm_free((*f)->entry);
    }
    pm_free(*f);
    *f = NULL;
}

/* Of grey and colours, without alpha. */
static double mean_of(const struct pm_image8 *im)
{
    const size_t pixels = (size_t)im->height * (size_t)im->width;
    const int n = im->channels, colors = n - (n % 2 == 0);
    uint64_t sum = 0;

    for (size_t i = 0; i < pixels; i++)
        for (int c = 0; c < colors; c++)
            sum += im->pixels[i * (size_t)n + (size_t)c];
    return (double)sum / (double)(pixels * (size_t)colors);
}

void pm_findings_add(struct pm_findings *f, const char *split, const char *class_name,
                     const char *path, const struct pm_picture *p)
{
    struct entry e = { .split = split, .class_name = class_name, .path = path,
                       .height = p->image.height, .width = p->image.width,
                       .mean = mean_of(&p->image) };
    struct pm_sha256 sha;

    pm_sha256_start(&sha);
    pm_sha256_add(&sha, p->data, p->size);
    pm_sha256_end(&sha, e.digest);
    pthread_mutex_lock(&f->lock);
    PM_GROW(f->entry, f->count, f->capacity);
    f->entry[f->count++] = e;
    pthread_mutex_unlock(&f->lock);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

static int by_digest(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const int digests = strcmp(x->digest, y->digest), splits = strcmp(x->split, y->split);

    return digests ? digests : splits ? splits : by_path(a, b);
}

static void warn_more(size_t count, const char *what)
{
    if (count > MOST_NAMED)
        PM_WARN("data", "%zu more %s", count - MOST_NAMED, what);
}

static bool is_small(const struct entry *e)
{
    return e->height < LEAST_SIDE || e->width < LEAST_SIDE;
}

/* The entries are sorted by path, here and in report_black. */
static void report_small(const struct pm_findings *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->count; i++)
        if (is_small(&f->entry[i]) && n++ < MOST_NAMED)
            PM_WARN("data", "%s: is too small: %dx%d pixels. Remove it, or replace it by a larger "
                    "one", f->entry[i].path, f->entry[i].width, f->entry[i].height);
    warn_more(n, "pictures are too small");
}

static void report_black(const struct pm_findings *f)
{
    size_t n = 0;

    for (size_t i = 0; i < f->count; i++)
        if (!is_small(&f->entry[i]) && f->entry[i].mean < NEARLY_BLACK && n++ < MOST_NAMED)
            PM_WARN("data", "%s: is nearly black: its mean is %.1f of 255. Remove it if it shows "
                    "nothing", f->entry[i].path, f->entry[i].mean);
    warn_more(n, "pictures are nearly black");
}

/* The entries are sorted. Returns the index after those with the digest and split of entry i. */
static size_t end_of_split(const struct pm_findings *f, size_t i)
{
    const struct entry *a = &f->entry[i];

    while (++i < f->count && !strcmp(a->digest, f->entry[i].digest) &&
           !strcmp(a->split, f->entry[i].split))
        ;
    return i;
}

/* Names each picture that a later split has, too, with the first one of that split. */
static void report_equal(struct pm_findings *f)
{
    size_t n = 0;

    qsort(f->entry, f->count, sizeof *f->entry, by_digest);
    for (size_t i = 0, next = 0; i < f->count; i++) {
        next = next > i ? next : end_of_split(f, i);
        const struct entry *a = &f->entry[i], *b = &f->entry[next];

        if (next < f->count && !strcmp(a->digest, b->digest) && n++ < MOST_NAMED)
            PM_WARN("data", "%s (%s) and %s (%s) are the same picture%s: remove one of them, "
                    "because evaluation must not see training pictures%s", a->path, a->split,
                    b->path, b->split, strcmp(a->class_name, b->class_name)
                        ? ", but their classes differ" : "",
                    strcmp(a->class_name, b->class_name)
                        ? "; the other one must have the right class" : "");
    }
    warn_more(n, "pictures are in two splits");
}

void pm_findings_report(struct pm_findings *f)
{
    if (!f->count)
        return;
    qsort(f->entry, f->count, sizeof *f->entry, by_path);
    report_small(f);
    report_black(f);
    report_equal(f);
}
