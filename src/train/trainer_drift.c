/* trainer_drift: compares the values of all processes at snapshots, and replaces those that differ
 * from the chief's. */
#include "train/trainer.h"

#include <pumice/thread.h>

#include <stdlib.h>
#include <string.h>

/* PM_FLIP=1:7 flips a bit of rank 1's values after step 7, to test pm_trainer_mend_drift. */
int pm_trainer_flip(struct pm_trainer *t)
{
    const char *text = t->replicas.sync ? getenv("PM_FLIP") : NULL;
    struct pm_variables *v = pm_clones_master(t->run.clones);
    uint32_t bits;
    int rank, step, err = PM_OK;

    if (!text || sscanf(text, "%d:%d", &rank, &step) != 2 ||
        rank != pm_replicas_rank(t->replicas.r) || (uint64_t)step != t->run.step)
        return PM_OK;
    PM_TRY(pm_buffer_read(v->device, v->values, 0, &bits, sizeof bits));
    bits ^= 1;
    PM_TRY(pm_buffer_write(v->device, v->values, 0, &bits, sizeof bits));
out:
    return err;
}

enum { HASHED = 1 << 20 }; /* bytes of a piece */

struct hashing {
    const char *block;
    size_t bytes;
    uint64_t *hash; /* of each piece */
};

static void hash_pieces(void *ctx, size_t begin, size_t end)
{
    const struct hashing *h = ctx;

    for (size_t k = begin; k < end; k++) {
        const size_t left = h->bytes - k * HASHED;

        h->hash[k] = pm_hash_bytes(h->block + k * HASHED, left < HASHED ? left : HASHED, k);
    }
}

/* The hash does not depend on the number of threads. */
static uint64_t hash_block(struct pm_state *s, int i)
{
    void *block;
    size_t bytes;
    uint64_t hash;

    if (!pm_state_block(s, i, &block, &bytes))
        return 0;
    const size_t pieces = (bytes + HASHED - 1) / HASHED;
    struct hashing h = { block, bytes, pm_calloc(pieces + 1, sizeof *h.hash) };

    pm_parallel(pieces, 1, hash_pieces, &h);
    hash = pm_hash_bytes(h.hash, pieces * sizeof *h.hash, (uint64_t)i);
    pm_free(h.hash);
    return hash;
}

/* Returns the first variable whose values differ from the chief's, or NULL. */
static int find_variable(struct pm_trainer *t, const char **out)
{
    const struct pm_variables *v = pm_clones_master(t->run.clones);
    uint64_t *own = pm_calloc((size_t)v->count, sizeof *own);
    uint64_t *chief = pm_calloc((size_t)v->count, sizeof *chief);
    int err = PM_OK;

    for (int i = 0; i < v->count; i++)
        own[i] = chief[i] = pm_hash_bytes(pm_state_value(t->snapshot.state, v, i),
                                          pm_shape_count(v->list[i].shape) * sizeof(float), 1);
    PM_TRY(pm_replicas_broadcast(t->replicas.r, 0, chief, (size_t)v->count * sizeof *chief));
    *out = NULL;
    for (int i = 0; i < v->count && !*out; i++)
        if (own[i] != chief[i])
            *out = v->list[i].name;
out:
    pm_free(own);
    pm_free(chief);
    return err;
}

int pm_trainer_mend_drift(struct pm_trainer *t)
{
    struct pm_replicas *r = t->replicas.sync;
    const int ranks = pm_replicas_count(r), rank = pm_replicas_rank(r);
    uint64_t own[2 + PM_MAX_SLOTS] = { 0 }, *all;
    const char *name = NULL;
    bool unlike = false;
    int err = PM_OK;

    if (!r)
        return PM_OK;
    all = pm_calloc((size_t)ranks, sizeof own);
    for (size_t i = 0; i < PM_COUNT(own); i++)
        own[i] = hash_block(t->snapshot.state, (int)i);
    PM_TRY(pm_replicas_allgather(r, own, sizeof own, all));
    for (int k = 1; k < ranks; k++)
        unlike |= memcmp(all, all + (size_t)k * PM_COUNT(own), sizeof own) != 0;
    if (!unlike)
        goto out;
    PM_TRY(find_variable(t, &name));
    if (memcmp(all, own, sizeof own) != 0)
        PM_WARN("replicas",
                "step %llu: the values of rank %d (%s) differ from rank 0's, first in %s: memory "
                "or a library of this host may be faulty; rank 0's values replace them",
                (unsigned long long)t->run.step, rank, pm_replicas_host(r, rank),
                name ? name : "an optimizer slot or a moving average");
    PM_TRY(pm_trainer_share_start(t));
out:
    pm_free(all);
    return err;
}
