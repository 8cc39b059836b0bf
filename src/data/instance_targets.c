/* instance_targets: the header describes the targets. Two passes go over runs of pixels that are
 * equal in both maps. The first pass sums each segment's rows and columns; the second writes the
 * targets run by run. Between them, each segment's Gaussian square is drawn from one table. */
#include "data/instance_targets.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct pm_instance_options pm_instance_options_of(int mode)
{
    return (struct pm_instance_options){ .mode = mode, .small_area = 4096, .small_weight = 3,
                                         .divisor = 1000, .ignore_label = -1 };
}

struct segment {
    uint64_t count, rows, columns; /* number of pixels, and sums of their coordinates */
    double y, x;                   /* mean coordinates */
    bool crowd;
};

struct work {
    const struct pm_instance_options *o;
    const int32_t *labels, *instances;
    int height, width;
    uint32_t *slot;         /* [num_classes][divisor]: 0 or segment slot - 1; [][0]: crowd */
    bool *thing;            /* [num_classes] */
    struct segment *segment;
    size_t count, room;
};

/* Number of equal pixels from `first` on, up to `width`. */
static int run_of(const int32_t *labels, const int32_t *instances, int first, int width)
{
    int x = first + 1;

    while (x < width && labels[x] == labels[first] && instances[x] == instances[first])
        x++;
    return x - first;
}

static bool is_ignored(const struct work *w, int32_t label)
{
    return label < 0 || label >= w->o->num_classes || label == w->o->ignore_label;
}

/* Returns the slot of the pixel's segment; NULL if the pixel belongs to no segment. */
static uint32_t *slot_of(const struct work *w, int32_t label, int32_t instance)
{
    if (is_ignored(w, label) || !w->thing[label])
        return NULL;
    const int64_t base = (int64_t)label * w->o->divisor, n = instance - base;
    return w->slot + base + (n > 0 && n < w->o->divisor ? n : 0);
}

static struct segment *segment_of(struct work *w, int32_t label, int32_t instance)
{
    uint32_t *slot = slot_of(w, label, instance);

    if (!slot)
        return NULL;
    if (!*slot) {
        PM_GROW(w->segment, w->count, w->room);
        w->segment[w->count++] = (struct segment){ .crowd = (slot - w->slot) % w->o->divisor == 0 };
        *slot = (uint32_t)w->count;
    }
    return &w->segment[*slot - 1];
}

static void measure(struct work *w)
{
    for (int y = 0; y < w->height; y++) {
        const int32_t *labels = w->labels + (size_t)y * (size_t)w->width;
        const int32_t *instances = w->instances + (size_t)y * (size_t)w->width;

        for (int x = 0, n; x < w->width; x += n) {
            n = run_of(labels, instances, x, w->width);
            struct segment *s = segment_of(w, labels[x], instances[x]);
            if (!s)
                continue;
            s->count += (uint64_t)n;
            s->rows += (uint64_t)y * (uint64_t)n;
            s->columns += (uint64_t)n * (uint64_t)(2 * x + n - 1) / 2;
        }
    }
    for (size_t i = 0; i < w->count; i++) {
        struct segment *s = &w->segment[i];
        s->y = (double)s->rows / (double)s->count;
        s->x = (double)s->columns / (double)s->count;
    }
}

/* ---- centres ------------------------------------------------------------------------------ */

/* Fills bell with exp(-d^2 / (2 sigma^2)) for d = 0 .. 3 sigma + 1. A pixel's Gaussian is the
 * product of its row's and its column's value. */
static int make_bell(const struct pm_instance_options *o, double *bell)
{
    const int sigma = o->sigma ? o->sigma : o->mode == PM_INSTANCE_SEED4 ? 5 : 8;

    for (int d = 0; d <= 3 * sigma + 1; d++)
        bell[d] = exp(-(double)d * d / (2.0 * sigma * sigma));
    return 3 * sigma + 1;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static void paste(const struct work *w, const struct segment *s, const double *bell, int reach,
                  float *center)
{
    const int cy = (int)s->y, cx = (int)s->x;
    const int last_y = least(cy + reach, w->height - 1), last_x = least(cx + reach, w->width - 1);

    for (int y = cy > reach ? cy - reach : 0; y <= last_y; y++) {
        const double across = bell[y < cy ? cy - y : y - cy];
        float *row = center + (size_t)y * (size_t)w->width;

        for (int x = cx > reach ? cx - reach : 0; x <= last_x; x++) {
            const float v = (float)(across * bell[x < cx ? cx - x : x - cx]);
            row[x] = v > row[x] ? v : row[x];
        }
    }
}

static void paste_all(const struct work *w, float *center)
{
    const size_t pixels = (size_t)w->height * (size_t)w->width;
    const bool seed4 = w->o->mode == PM_INSTANCE_SEED4;
    double bell[3 * PM_MAX_INSTANCE_SIGMA + 2];
    const int reach = make_bell(w->o, bell);

    memset(center, 0, pixels * sizeof *center);
    for (size_t i = 0; i < w->count; i++)
        if (!seed4 || !w->segment[i].crowd)
            paste(w, &w->segment[i], bell, reach, center);
    for (size_t i = 0; i < pixels && seed4; i++)
        center[i] = rintf(255 * center[i]) / 2;
}

/* ---- targets written run by run ----------------------------------------------------------- */

static void fill(float *out, int count, float value)
{
    for (int i = 0; i < count; i++)
        out[i] = value;
}

static void offsets(const struct segment *s, bool seed4, int y, int x, int n, float *out)
{
    const double down = s->y - y;

    for (int i = 0; i < n; i++) {
        const double right = s->x - (x + i);
        out[2 * i] = (float)(seed4 ? rint(fabs(down)) : down);
        out[2 * i + 1] = (float)(seed4 ? rint(fabs(right)) : right);
    }
}

static float semantic_weight(const struct work *w, const struct segment *s)
{
    if (!s)
        return 1;
    return s->crowd ? 0 : s->count < (uint64_t)w->o->small_area ? w->o->small_weight : 1;
}

/* Writes a run of n pixels at (y, x). s: their segment, or NULL. ignored: the pixels have no
 * class. */
static void write_run(const struct work *w, const struct segment *s, bool ignored, int y, int x,
                      int n, const struct pm_instance_target *out)
{
    const size_t at = (size_t)y * (size_t)w->width + (size_t)x;
    const bool seed4 = w->o->mode == PM_INSTANCE_SEED4;
    const bool crowd = s && s->crowd;

    if (s && !(seed4 && crowd))
        offsets(s, seed4, y, x, n, out->offset + 2 * at);
    else
        fill(out->offset + 2 * at, 2 * n, 0);
    fill(out->center_weight + at, n, seed4 || !(ignored || crowd));
    fill(out->offset_weight + 2 * at, 2 * n, seed4 || (s && !crowd));
    fill(out->semantic_weight + at, n, seed4 ? 1 : semantic_weight(w, s));
}

static void write_all(struct work *w, const struct pm_instance_target *out)
{
    for (int y = 0; y < w->height; y++) {
        const int32_t *labels = w->labels + (size_t)y * (size_t)w->width;
        const int32_t *instances = w->instances + (size_t)y * (size_t)w->width;

        for (int x = 0, n; x < w->width; x += n) {
            n = run_of(labels, instances, x, w->width);
            write_run(w, segment_of(w, labels[x], instances[x]), is_ignored(w, labels[x]), y, x, n,
                      out);
        }
    }
}

void pm_instance_targets(const struct pm_instance_options *o, const int32_t *labels,
                         const int32_t *instances, int height, int width,
                         const struct pm_instance_target *out)
{
    struct work w = {
        .o = o, .labels = labels, .instances = instances, .height = height, .width = width
    };

    assert(o->sigma >= 0 && o->sigma <= PM_MAX_INSTANCE_SIGMA && o->divisor > 1);
    w.slot = pm_calloc((size_t)o->num_classes * (size_t)o->divisor, sizeof *w.slot);
    w.thing = pm_calloc((size_t)o->num_classes, sizeof *w.thing);
    for (int i = 0; i < o->things.count; i++)
        w.thing[o->things.v[i]] = true;
    measure(&w);
    paste_all(&w, out->center);
    write_all(&w, out);
    pm_free(w.slot);
    pm_free(w.thing);
    pm_free(w.segment);
}
