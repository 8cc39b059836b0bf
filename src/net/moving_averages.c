/* moving_averages: layers pass their moving averages to pm_moving_average. At the end of the step,
 * one call updates all of them. The layers' means and variances of the step become parts of one
 * block, and a table says where each layer's values lie. If several layers update one variable,
 * such as the scales of an image pyramid, each further one belongs to a further call, in the
 * layers' order. */
#include "net/calls.h"

#include <assert.h>
#include <string.h>

#include "batch_norm_update.params.h"

enum { WORDS = 8 }; /* of the table for each chunk */

struct pm_moving {
    int moment[2], average[2]; /* values: mean, variance */
    int channels, round;       /* number of earlier layers that update the same variables */
    float rate, factor;
};

/* ---- the kernel ------------------------------------------------------------------------- */

static void update_channels(const uint32_t *at, int first, int end, const float *moments,
                            float *values)
{
    const float *mean = moments + at[0], *variance = moments + at[1];
    float *moving_mean = values + at[2], *moving_variance = values + at[3], rate, factor;

    memcpy(&rate, at + 5, sizeof rate);
    memcpy(&factor, at + 6, sizeof factor);
    for (int k = first; k < end; k++) {
        if (variance[k] < 0) /* of no values */
            continue;
        moving_mean[k] -= rate * (moving_mean[k] - mean[k]);
        moving_variance[k] -= rate * (moving_variance[k] - variance[k] * factor);
    }
}

/* Items are the channels of all chunks; a chunk may have fewer channels than items. */
static void update_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const uint32_t *flag = a->buf[1], *table = a->buf[2];

    for (size_t i = begin, next; *flag && i < end; i = next) {
        const size_t chunk = i / MOVING_CHUNK, first = chunk * MOVING_CHUNK;
        const uint32_t *at = table + chunk * WORDS;
        const size_t channels = first + at[4];

        next = first + MOVING_CHUNK < end ? first + MOVING_CHUNK : end;
        update_channels(at, (int)(i - first), (int)((channels < next ? channels : next) - first),
                        a->buf[0], a->buf[3]);
    }
}

static const struct pm_kernel row = {
    .name = "batch_norm_update", .bufs = "r:moments r:flag r:table u:values",
    .params_size = sizeof(struct batch_norm_update_params), .cpu = update_cpu,
};

/* ---- collecting ------------------------------------------------------------------------- */

static bool share_a_variable(const struct pm_moving *a, const struct pm_moving *b)
{
    for (int i = 0; i < 2; i++)
        if (a->average[i] == b->average[0] || a->average[i] == b->average[1])
            return true;
    return false;
}

void pm_moving_average(struct pm_calls *c, struct pm_tensor mean, struct pm_tensor variance,
                       struct pm_tensor moving_mean, struct pm_tensor moving_variance, float rate,
                       float factor)
{
    struct pm_moving m = {
        .moment = { mean.value, variance.value },
        .average = { moving_mean.value, moving_variance.value },
        .channels = (int)pm_count(mean), .rate = rate, .factor = factor,
    };

    if (!c->moving)
        c->moving = pm_arena_alloc(c->arena, (size_t)c->net->count * sizeof *c->moving);
    assert(c->moving_count < c->net->count);
    for (int i = 0; i < c->moving_count; i++)
        if (share_a_variable(&m, &c->moving[i]) && m.round <= c->moving[i].round)
            m.round = c->moving[i].round + 1;
    c->moving[c->moving_count++] = m;
}

/* ---- the call --------------------------------------------------------------------------- */

/* Writes the chunks of a layer. Returns their number; table may be NULL. */
static int list_chunks(const struct pm_moving *m, const size_t *moment, const size_t *average,
                       uint32_t *table)
{
    int chunks = 0;

    for (int k = 0; k < m->channels; k += MOVING_CHUNK, chunks++) {
        const int left = m->channels - k;
        uint32_t *to = table ? table + (size_t)chunks * WORDS : NULL;

        if (!to)
            continue;
        for (int i = 0; i < 2; i++) {
            to[i] = (uint32_t)(moment[i] / sizeof(float)) + (uint32_t)k;
            to[2 + i] = (uint32_t)(average[i] / sizeof(float)) + (uint32_t)k;
        }
        to[4] = (uint32_t)(left < MOVING_CHUNK ? left : MOVING_CHUNK);
        memcpy(to + 5, &m->rate, sizeof m->rate);
        memcpy(to + 6, &m->factor, sizeof m->factor);
    }
    return chunks;
}

/* Appends the call for the layers of one round. Returns false if there are none. */
static bool append_round(struct pm_calls *c, int round, struct pm_tensor moments,
                         const size_t *moment, struct pm_tensor values, const size_t *average,
                         struct pm_tensor flag)
{
    struct batch_norm_update_params p = { 0 };
    uint32_t *table;
    int chunks = 0;

    for (int i = 0; i < c->moving_count; i++)
        if (c->moving[i].round == round)
            p.chunks += list_chunks(&c->moving[i], NULL, NULL, NULL);
    if (p.chunks == 0)
        return false;
    table = pm_calloc((size_t)p.chunks * WORDS, sizeof *table);
    for (int i = 0; i < c->moving_count; i++)
        if (c->moving[i].round == round)
            chunks += list_chunks(&c->moving[i], moment + 2 * i, average + 2 * i,
                                  table + (size_t)chunks * WORDS);
    pm_call(c, &row, (size_t)p.chunks * MOVING_CHUNK, &p,
            PM_BUFS(moments, flag,
                    pm_calls_constant(c, "layers", table, PM_SHAPE2(p.chunks, WORDS), PM_U32),
                    values));
    pm_free(table);
    return true;
}

static void append_updates(struct pm_calls *c, struct pm_tensor flag)
{
    const int count = 2 * c->moving_count;
    int *value = pm_calloc(2 * (size_t)count + 1, sizeof *value);
    size_t *at = pm_calloc(2 * (size_t)count + 1, sizeof *at);
    struct pm_tensor moments, averages;

    for (int i = 0; i < c->moving_count; i++) {
        memcpy(value + 2 * i, c->moving[i].moment, sizeof c->moving[i].moment);
        memcpy(value + count + 2 * i, c->moving[i].average, sizeof c->moving[i].average);
    }
    if (count > 0) {
        moments = pm_calls_join(c, "moments", value, count, at);
        averages = pm_calls_variables_span(c, value + count, count, at + count);
        for (int i = 0; append_round(c, i, moments, at, averages, at + count, flag);)
            i++;
    }
    c->moving_count = 0;
    pm_free(value);
    pm_free(at);
}

void pm_calls_node_update(struct pm_calls *c, struct pm_node *n, struct pm_tensor flag)
{
    n->layer->update(n, c, flag);
    append_updates(c, flag);
}

void pm_calls_layer_updates(struct pm_calls *c, struct pm_tensor flag)
{
    for (int i = 0; i < c->net->count; i++) {
        struct pm_node *n = c->net->nodes[i];

        if (!n->layer->update)
            continue;
        c->label = n->name;
        pm_calls_bind_variables(c, n, false);
        n->layer->update(n, c, flag);
    }
    c->label = "moving averages";
    append_updates(c, flag);
}
