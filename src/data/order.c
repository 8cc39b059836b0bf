/* order: which record training takes for each place of each batch. Everything is a function of the
 * seed and the example's number, so that a resumed run continues with the same records.
 *
 * Parts with a share of the batch: the places of a batch are dealt to the parts like the lines of a
 * slope, so that every slice of a batch (of a clone, of a micro-batch) has its share of each part.
 * Example number n of part k is record n of its own endless queue.
 *
 * Parts with weights: the part of example g is drawn from (seed, g). Its number in its part is the
 * count of earlier examples that drew the same part; prefix sums over blocks of examples are kept,
 * and computed up to the first step when a run is resumed.
 *
 * Records that come more often than others (pm_order_repeat) have the factors r[i] >= 1. Epoch e
 * has N = ceil(sum r) places. With S[i] = N / sum r * (r[0] + ... + r[i]) and u drawn for each
 * epoch, record i has the places j with S[i - 1] <= j + u < S[i]: floor or ceil of r[i], by chance,
 * r[i] on average. This is systematic sampling (Madow 1949): no table of an epoch is needed. */
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include <pumice/rng.h>

#include "data/order.h"

enum { BLOCK = 1024 };

struct part {
    uint64_t first, records; /* in the dataset */
    uint64_t places;         /* of an epoch: records, or more if some are repeated */
    uint64_t seed;
    int share;               /* of each batch */
    double *until;           /* [records], owned: S of above; NULL: every record once */
};
struct pm_order {
    struct part *part; /* [parts], owned */
    size_t parts;
    uint64_t seed;
    int batch;
    bool in_order;
    int *of_place, *in_part; /* [batch], owned: the place's part, and its number there */
    double *chance;          /* [parts], owned: sums of the weights; NULL: shares */
    pthread_mutex_t lock;    /* guards the following */
    uint64_t *before;        /* [blocks][parts], owned: examples of each part before the block */
    size_t blocks, capacity;
};

/* ---- making --------------------------------------------------------------------------------- */

/* Deals the places: each to the part that lacks most of its share so far. */
static void deal(struct pm_order *o)
{
    int *used = pm_calloc(o->parts, sizeof *used);

    for (int p = 0; p < o->batch; p++) {
        size_t best = 0;
        int64_t most = INT64_MIN;

        for (size_t k = 0; k < o->parts; k++) {
            const int64_t lacks =
                (int64_t)o->part[k].share * (p + 1) - (int64_t)used[k] * o->batch;

            if (used[k] < o->part[k].share && lacks > most) {
                most = lacks;
                best = k;
            }
        }
        o->of_place[p] = (int)best;
        o->in_part[p] = used[best]++;
    }
    pm_free(used);
}

static void set_weights(struct pm_order *o, const struct pm_order_part *parts)
{
    double sum = 0, before = 0;

    for (size_t k = 0; k < o->parts; k++)
        sum += parts[k].weight;
    o->chance = pm_calloc(o->parts, sizeof *o->chance);
    for (size_t k = 0; k < o->parts; k++)
        o->chance[k] = before += parts[k].weight / sum;
}

struct pm_order *pm_order_create(const struct pm_order_part *parts, size_t count, int batch,
                                 uint64_t seed, bool in_order)
{
    struct pm_order *o = pm_calloc(1, sizeof *o);
    uint64_t first = 0;
    int shares = 0;

    *o = (struct pm_order){ .part = pm_calloc(count, sizeof *o->part), .parts = count,
                            .seed = seed, .batch = batch, .in_order = in_order };
    for (size_t k = 0; k < count; k++) {
        /* The first part has the seed of a run with one folder, and so its order. */
        o->part[k] = (struct part){ .first = first, .records = parts[k].records,
                                    .places = parts[k].records,
                                    .seed = seed + k * UINT64_C(0x9E3779B97F4A7C15),
                                    .share = parts[k].share };
        first += parts[k].records;
        shares += parts[k].share;
    }
    pthread_mutex_init(&o->lock, NULL);
    o->of_place = pm_calloc((size_t)batch, sizeof *o->of_place);
    o->in_part = pm_calloc((size_t)batch, sizeof *o->in_part);
    if (shares == 0) {
        set_weights(o, parts);
    } else {
        assert(shares == batch);
        deal(o);
    }
    return o;
}

void pm_order_destroy(struct pm_order **order)
{
    struct pm_order *o = *order;

    if (!o)
        return;
    for (size_t k = 0; k < o->parts; k++)
        pm_free(o->part[k].until);
    pthread_mutex_destroy(&o->lock);
    pm_free(o->before);
    pm_free(o->chance);
    pm_free(o->of_place);
    pm_free(o->in_part);
    pm_free(o->part);
    pm_free(o);
    *order = NULL;
}

void pm_order_repeat(struct pm_order *o, size_t part, const float *factor)
{
    struct part *p = &o->part[part];
    double sum = 0;

    pm_free(p->until);
    p->until = pm_malloc(p->records * sizeof *p->until);
    for (uint64_t i = 0; i < p->records; i++) {
        assert(factor[i] >= 1);
        p->until[i] = sum += (double)factor[i];
    }
    p->places = (uint64_t)ceil(sum * (1 - 1e-12));
    for (uint64_t i = 0; i < p->records; i++)
        p->until[i] *= (double)p->places / sum;
}

uint64_t pm_order_places(const struct pm_order *o)
{
    uint64_t sum = 0;

    for (size_t k = 0; k < o->parts; k++)
        sum += o->part[k].places;
    return sum;
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* Draws the part of example g. */
static size_t draw_part(const struct pm_order *o, uint64_t g)
{
    struct pm_rng r = pm_rng_make(o->seed, pm_hash("data.folders"), (uint32_t)(g >> 32),
                                  (uint32_t)g);
    const double v = pm_rng_uniform(&r);
    size_t k = 0;

    while (k + 1 < o->parts && v >= o->chance[k])
        k++;
    return k;
}

/* Returns the examples of the part before a block. Extends the sums up to this block. */
static uint64_t count_before(struct pm_order *o, uint64_t block, size_t part)
{
    pthread_mutex_lock(&o->lock);
    while (o->blocks <= block) {
        const size_t b = o->blocks++;

        if (o->capacity < o->blocks * o->parts) {
            o->capacity = 2 * o->blocks * o->parts;
            o->before = pm_realloc(o->before, o->capacity * sizeof *o->before);
        }
        uint64_t *at = o->before + b * o->parts;
        if (b == 0) {
            memset(at, 0, o->parts * sizeof *at);
            continue;
        }
        memcpy(at, at - o->parts, o->parts * sizeof *at);
        for (uint64_t g = (b - 1) * BLOCK; g < b * BLOCK; g++)
            at[draw_part(o, g)]++;
    }
    const uint64_t count = o->before[block * o->parts + part];
    pthread_mutex_unlock(&o->lock);
    return count;
}

/* Returns the example's part, and its number there. */
static const struct part *part_of(struct pm_order *o, uint64_t step, int place, uint64_t *number)
{
    if (!o->chance) {
        const struct part *p = &o->part[o->of_place[place]];

        *number = step * (uint64_t)p->share + (uint64_t)o->in_part[place];
        return p;
    }
    const uint64_t g = step * (uint64_t)o->batch + (uint64_t)place, block = g / BLOCK;
    const size_t part = draw_part(o, g);
    *number = count_before(o, block, part);
    for (uint64_t i = block * BLOCK; i < g; i++)
        *number += draw_part(o, i) == part;
    return &o->part[part];
}

/* Returns the record of a place of an epoch, if records are repeated. */
static uint64_t repeated(const struct part *p, uint64_t epoch, uint64_t place)
{
    struct pm_rng r = pm_rng_make(p->seed, pm_hash("data.repeat_threshold"),
                                  (uint32_t)(epoch >> 32), (uint32_t)epoch);
    const double at = (double)place + pm_rng_uniform(&r);
    uint64_t low = 0, high = p->records - 1; /* the first record with until > at */

    while (low < high) {
        const uint64_t middle = (low + high) / 2;

        if (p->until[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t pm_order_record(struct pm_order *o, uint64_t step, int place, uint64_t passed)
{
    uint64_t n;
    const struct part *p = part_of(o, step, place, &n);
    const uint64_t epoch = n / p->places, at = (n % p->places + passed) % p->places;
    const uint64_t chosen = o->in_order ? at : pm_permute(p->seed, epoch, p->places, at);

    return p->first + (p->until ? repeated(p, epoch, chosen) : chosen);
}
