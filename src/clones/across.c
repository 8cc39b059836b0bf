/* across: across.h has the contract. A step allocates nothing. A word's size is a multiple of that
 * of a double, so the losses behind it are aligned. */
#include "clones/across.h"

#include "clones/clones_parts.h"

#include <pumice/replicas.h>

#include <string.h>

struct pm_across {
    struct pm_clones *c;              /* borrowed */
    struct pm_replicas *r;            /* borrowed */
    struct pm_replica_sum *sum;
    struct pm_replica_gather *words;  /* a rank's word, then the numbers of its clones */
    struct pm_replica_gather *moving; /* made by the first pm_across_take */
    char *own;                        /* this process's part of words */
    float *values;                    /* this process's part of moving */
    const char *all;                  /* of the last step's words */
    size_t *offset;                   /* [ranks] in all */
};

/* Numbers of one clone: its losses (the total, then of each loss layer), and its seconds. */
static size_t numbers_of_clone(const struct pm_clones *c)
{
    return 2 + (size_t)c->losses;
}

static size_t word_bytes(const struct pm_clones *c, int rank)
{
    return sizeof(struct pm_step_word) +
           (size_t)c->o.among.of_rank[rank] * numbers_of_clone(c) * sizeof(double);
}

struct pm_across *pm_across_create(struct pm_clones *c, size_t floats, int buckets, float *sum)
{
    struct pm_across *a = pm_calloc(1, sizeof *a);
    const int ranks = pm_replicas_count(c->o.among.replicas);
    size_t *sizes = pm_calloc((size_t)ranks, sizeof *sizes), total = 0;

    a->c = c;
    a->r = c->o.among.replicas;
    a->sum = pm_replica_sum_create(a->r, floats, buckets, c->o.among.wire, sum);
    a->offset = pm_calloc((size_t)ranks, sizeof *a->offset);
    for (int i = 0; i < ranks; i++) {
        sizes[i] = word_bytes(c, i);
        a->offset[i] = total;
        total += sizes[i];
    }
    a->words = pm_replica_gather_create(a->r, sizes);
    a->own = pm_calloc(1, word_bytes(c, pm_replicas_rank(a->r)));
    pm_free(sizes);
    return a;
}

void pm_across_destroy(struct pm_across **across)
{
    struct pm_across *a = *across;

    if (!a)
        return;
    pm_replica_sum_destroy(&a->sum);
    pm_replica_gather_destroy(&a->words);
    pm_replica_gather_destroy(&a->moving);
    pm_free(a->own);
    pm_free(a->values);
    pm_free(a->offset);
    pm_free(a);
    *across = NULL;
}

/* ---- gradients --------------------------------------------------------------------------- */

void pm_across_start(struct pm_across *a)
{
    pm_replica_sum_start(a->sum);
}

void pm_across_add(struct pm_across *a, size_t offset, size_t count, const float *part)
{
    pm_replica_sum_add(a->sum, offset, count, part);
}

int pm_across_end(struct pm_across *a)
{
    const float *sum;

    return pm_replica_sum_wait(a->sum, &sum);
}

/* ---- words, losses, seconds -------------------------------------------------------------- */

static void put_numbers(struct pm_across *a)
{
    const struct pm_clones *c = a->c;
    const size_t losses = numbers_of_clone(c) - 1;
    double *to = (double *)(void *)(pm_across_word(a) + 1);

    for (int i = 0; i < c->o.count; i++, to += losses + 1) {
        memcpy(to, c->loss + (size_t)i * losses, losses * sizeof *to);
        to[losses] = c->clone[i].seconds;
    }
}

/* Adds the losses clone by clone, in the order of all clones, and sets the seconds. */
static void take_numbers(struct pm_across *a, int slot, struct pm_step_result *r)
{
    struct pm_clones *c = a->c;
    int at = 0;

    for (int k = 0; k < pm_replicas_count(a->r); k++) {
        const struct pm_step_word *word = pm_across_word_of(a, k);
        const double *numbers = (const double *)(const void *)(word + 1);

        for (int i = 0; i < c->o.among.of_rank[k]; i++, numbers += numbers_of_clone(c)) {
            pm_clones_add_loss(c, slot, at, numbers, r);
            c->among.seconds[at++] = word->waited + numbers[numbers_of_clone(c) - 1];
        }
    }
}

/* Checks that all ranks are at the same step, and that none has lost a device. */
static int check_words(struct pm_across *a)
{
    const struct pm_step_word *own = pm_across_word(a);

    for (int k = 0; k < pm_replicas_count(a->r); k++)
        if (pm_across_word_of(a, k)->step != own->step)
            return pm_fail(PM_EFAIL,
                           "rank %d (%s) is at step %llu, but rank %d (%s) at step %llu: the "
                           "processes do not train the same run",
                           k, pm_replicas_host(a->r, k),
                           (unsigned long long)pm_across_word_of(a, k)->step,
                           pm_replicas_rank(a->r), pm_replicas_host(a->r, pm_replicas_rank(a->r)),
                           (unsigned long long)own->step);
    for (int k = 0; k < pm_replicas_count(a->r); k++)
        if (pm_across_word_of(a, k)->lost) {
            a->c->among.lost_rank = k;
            return pm_fail(PM_ELOST, "rank %d (%s) lost a device in step %llu", k,
                           pm_replicas_host(a->r, k), (unsigned long long)own->step);
        }
    return PM_OK;
}

int pm_across_words(struct pm_across *a, int slot, struct pm_step *step, struct pm_step_result *r)
{
    struct pm_step_word *own = pm_across_word(a);
    const void *all;
    int err = PM_OK;

    own->values = *step;
    put_numbers(a);
    pm_replica_gather_start(a->words, a->own);
    PM_TRY(pm_replica_gather_wait(a->words, &all));
    a->all = all;
    PM_TRY(check_words(a));
    *step = pm_across_word_of(a, 0)->values;
    take_numbers(a, slot, r);
out:
    return err;
}

struct pm_step_word *pm_across_word(struct pm_across *a)
{
    return (struct pm_step_word *)(void *)a->own;
}

const struct pm_step_word *pm_across_word_of(const struct pm_across *a, int rank)
{
    return (const struct pm_step_word *)(const void *)(a->all + a->offset[rank]);
}

/* ---- moving averages --------------------------------------------------------------------- */

_Static_assert(sizeof(struct pm_step_word) % sizeof(double) == 0, "numbers follow the word");

/* The number of a rank's clones whose batches the moving averages follow. */
static int moving_clones(const struct pm_clones *c, int rank, int ranks)
{
    const int from = c->o.batch_norm_update;

    if (from == PM_BATCH_NORM_ALL)
        return c->o.among.of_rank[rank];
    return rank == (from == PM_BATCH_NORM_LAST ? ranks - 1 : 0);
}

static void create_moving(struct pm_across *a, size_t bytes)
{
    const int ranks = pm_replicas_count(a->r);
    size_t *sizes = pm_calloc((size_t)ranks, sizeof *sizes);

    for (int k = 0; k < ranks; k++)
        sizes[k] = (size_t)moving_clones(a->c, k, ranks) * bytes;
    a->moving = pm_replica_gather_create(a->r, sizes);
    a->values = pm_calloc(1, sizes[pm_replicas_rank(a->r)] + 1);
    pm_free(sizes);
}

int pm_across_take(struct pm_across *a, struct pm_moving *m)
{
    const float *values;
    int err = PM_OK;

    if (m->bytes == 0)
        return PM_OK;
    if (!a->moving)
        create_moving(a, m->bytes);
    PM_TRY(pm_moving_begin(m));
    for (int i = 0; i < m->clones; i++) {
        PM_TRY(pm_moving_values(m, i, &values));
        memcpy((char *)a->values + (size_t)i * m->bytes, values, m->bytes);
    }
out:
    return err;
}

int pm_across_follow(struct pm_across *a, struct pm_moving *m)
{
    const int ranks = pm_replicas_count(a->r);
    const void *all;
    const float *values;
    int err = PM_OK;

    if (m->bytes == 0)
        return PM_OK;
    pm_replica_gather_start(a->moving, a->values);
    PM_TRY(pm_replica_gather_wait(a->moving, &all));
    values = all;
    for (int k = 0; k < ranks; k++)
        for (int i = 0; i < moving_clones(a->c, k, ranks); i++) {
            pm_moving_add(m, values);
            values += m->bytes / sizeof(float);
        }
out:
    return err;
}
