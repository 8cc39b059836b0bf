/* sketch: see sketch.h. */
#include "net/sketch.h"

#include "net/layout.h"

#include <string.h>

/* ---- reading the calls ------------------------------------------------------------------ */

/* Operations charged per byte moved: about what devices compute in that time. */
#define WORK_OF_A_BYTE 16.0

static double work_of(const struct pm_calls *c, const struct pm_planned_call *call)
{
    double flops = call->kernel->flops ? call->kernel->flops(call->params, call->count)
                                       : (double)call->count;
    double bytes = 0;

    for (int i = 0; i < call->bufs; i++)
        if (call->buf[i] >= 0)
            bytes += (double)c->values[call->buf[i]].bytes;
    return flops > WORK_OF_A_BYTE * bytes ? flops : WORK_OF_A_BYTE * bytes;
}

static void sketch_call(struct pm_sketch *s, const struct pm_calls *c, int index)
{
    const struct pm_planned_call *call = &c->calls[s->lead + index];
    struct pm_sketch_call *k = &s->call[index];
    struct pm_buf_spec spec[PM_MAX_BUFS];

    pm_call_bufs(call->kernel, call->params, spec);
    k->bufs = call->bufs;
    for (int i = 0; i < call->bufs; i++) {
        k->buf[i] = call->buf[i];
        k->access[i] = spec[i].access;
    }
    k->pairs = pm_kernel_inplace(call->kernel, k->pair);
    k->work = work_of(c, call);
}

static void sketch_value(struct pm_sketch *s, const struct pm_calls *c, int index)
{
    const struct pm_value *v = &c->values[index];
    struct pm_sketch_value *x = &s->value[index];
    size_t room = (v->bytes + PM_LAYOUT_ALIGNMENT - 1) / PM_LAYOUT_ALIGNMENT * PM_LAYOUT_ALIGNMENT;
    bool transfer = v->kind == PM_VALUE_INPUT || v->kind == PM_VALUE_OUTPUT;
    const struct pm_value *owner = v->within < 0 ? v : &c->values[v->within];
    const int end = s->lead + s->calls;

    x->producer = x->last_forward = -1;
    x->mergeable = v->kind == PM_VALUE_ACTIVATION;
    x->input = v->kind == PM_VALUE_INPUT;
    x->later = v->kind == PM_VALUE_OUTPUT || v->last >= end || owner->last >= end;
    if (owner->kind == PM_VALUE_ACTIVATION && owner->first >= 0 && owner->first < s->lead)
        s->base += v == owner ? room : 0;
    else if (transfer && v->micro_batch != 0)
        s->base += room;
    else if (transfer || v->kind == PM_VALUE_ACTIVATION || v->kind == PM_VALUE_SCRATCH)
        x->bytes = room;
}

/* Whether running a call again gives the same result. It must overwrite all of its outputs, and
 * each of its buffers must have only one writer. writers: number of calls that write a value. */
static bool is_repeatable(const struct pm_sketch *s, const struct pm_sketch_call *k,
                          const int *writers)
{
    for (int i = 0; i < k->bufs; i++) {
        const struct pm_sketch_value *v = k->buf[i] < 0 ? NULL : &s->value[k->buf[i]];

        if (!v || pm_access_own(k->access[i]))
            continue;
        if (k->access[i] == 'u' || writers[k->buf[i]] > 1 || (k->access[i] == 'w' && !v->mergeable))
            return false;
    }
    return true;
}

/* Whether a value is far smaller than the inputs it is made from, as statistics are. Such values
 * are kept. */
static bool is_small(const struct pm_sketch *s, const struct pm_sketch_call *k, int value)
{
    size_t largest = 0;

    for (int i = 0; i < k->bufs; i++)
        if (k->buf[i] >= 0 && k->access[i] == 'r' && s->value[k->buf[i]].bytes > largest)
            largest = s->value[k->buf[i]].bytes;
    return s->value[value].bytes * 16 <= largest;
}

static void find_droppable(struct pm_sketch *s)
{
    int *writers = pm_calloc((size_t)s->values + 1, sizeof *writers);

    for (int i = 0; i < s->calls; i++)
        for (int b = 0; b < s->call[i].bufs; b++) {
            int v = s->call[i].buf[b];

            if (v < 0)
                continue;
            if (s->call[i].access[b] != 'r' && writers[v]++ == 0 && i < s->forward)
                s->value[v].producer = i;
            if (i < s->forward)
                s->value[v].last_forward = i;
            else
                s->value[v].backward |= s->call[i].access[b] == 'r';
        }
    for (int i = 0; i < s->forward; i++) {
        const struct pm_sketch_call *k = &s->call[i];

        for (int b = 0; is_repeatable(s, k, writers) && b < k->bufs; b++)
            if (k->buf[b] >= 0 && k->access[b] == 'w')
                s->value[k->buf[b]].droppable = !s->value[k->buf[b]].later &&
                                                !is_small(s, k, k->buf[b]);
    }
    pm_free(writers);
}

/* ---- the order of a choice ---------------------------------------------------------------- */

/* Returns the instance of buffer b that a turn uses: a value, or s->values + value for its
 * recomputed copy. */
static int instance(const struct pm_sketch *s, const struct pm_sketch_turn *t, int b)
{
    const struct pm_sketch_call *k = &s->call[t->call];
    int v = k->buf[b];

    if (t->again && k->access[b] != 'r')
        return s->values + v;
    return t->call < s->forward && !t->again ? v : s->now[v];
}

static void touch(struct pm_sketch *s, int instance, int turn)
{
    if (s->first[instance] < 0)
        s->first[instance] = turn;
    s->last[instance] = turn;
}

static void take_turn(struct pm_sketch *s, int call, bool again)
{
    struct pm_sketch_turn *t = &s->turn[s->turns];

    *t = (struct pm_sketch_turn){ call, again };
    for (int b = 0; b < s->call[call].bufs; b++)
        if (s->call[call].buf[b] >= 0)
            touch(s, instance(s, t, b), s->turns);
    s->turns++;
}

/* Runs the forward call of a dropped value again, unless it has already run again. */
static void make_again(struct pm_sketch *s, const bool *dropped, int value,
                       struct pm_sketch_outcome *out)
{
    const struct pm_sketch_call *k;

    if (!dropped[value] || s->now[value] != value)
        return;
    k = &s->call[s->value[value].producer];
    for (int b = 0; b < k->bufs; b++)
        if (k->buf[b] >= 0 && k->access[b] == 'r')
            make_again(s, dropped, k->buf[b], out);
    take_turn(s, s->value[value].producer, true);
    for (int b = 0; b < k->bufs; b++)
        if (k->buf[b] >= 0 && k->access[b] == 'w' && dropped[k->buf[b]])
            s->now[k->buf[b]] = s->values + k->buf[b];
    out->work += k->work;
    out->again++;
}

/* ---- memory ------------------------------------------------------------------------------- */

static size_t bytes_of(const struct pm_sketch *s, int instance)
{
    return s->value[instance < s->values ? instance : instance - s->values].bytes;
}

static int root(const struct pm_sketch *s, int instance)
{
    while (s->alias[instance] >= 0)
        instance = s->alias[instance];
    return instance;
}

/* Merges in-place calls as plan.c does with the real calls. */
static void merge(struct pm_sketch *s, int turn)
{
    const struct pm_sketch_turn *t = &s->turn[turn];
    const struct pm_sketch_call *k = &s->call[t->call];

    for (int i = 0; i < k->pairs; i++) {
        int y = k->pair[i][0], x = k->pair[i][1];

        if (k->buf[y] < 0 || k->buf[x] < 0 || !s->value[k->buf[y]].mergeable ||
            !s->value[k->buf[x]].mergeable)
            continue;
        int iy = instance(s, t, y), r = root(s, instance(s, t, x));
        bool fits = s->alias[iy] < 0 && s->first[iy] == turn && s->last[r] == turn &&
                    bytes_of(s, r) >= bytes_of(s, iy);
        for (int b = 0; fits && b < k->bufs; b++)
            fits = b == x || k->buf[b] < 0 || root(s, instance(s, t, b)) != r;
        if (fits) {
            s->alias[iy] = r;
            if (s->last[iy] > s->last[r])
                s->last[r] = s->last[iy];
        }
    }
}

static size_t peak_of(struct pm_sketch *s, int *at)
{
    int64_t live = 0, peak = 0;

    memset(s->change, 0, ((size_t)s->turns + 1) * sizeof *s->change);
    for (int i = 0; i < 2 * s->values; i++) {
        const struct pm_sketch_value *v = &s->value[i < s->values ? i : i - s->values];

        if (s->first[i] < 0 || s->alias[i] >= 0 || v->bytes == 0)
            continue;
        s->change[v->input ? 0 : s->first[i]] += (int64_t)v->bytes;
        s->change[v->later && i < s->values ? s->turns : s->last[i] + 1] -= (int64_t)v->bytes;
    }
    for (int i = 0; i < s->turns; i++) {
        live += s->change[i];
        if (live > peak)
            peak = live, *at = i;
    }
    return (size_t)peak + s->base;
}

struct pm_sketch_outcome pm_sketch_judge(struct pm_sketch *s, const bool *dropped)
{
    struct pm_sketch_outcome out = { 0 };
    size_t list = 2 * (size_t)s->values * sizeof(int);

    memset(s->first, -1, list);
    memset(s->last, -1, list);
    memset(s->alias, -1, list);
    for (int i = 0; i < s->values; i++)
        s->now[i] = i;
    s->turns = 0;
    for (int i = 0; i < s->forward; i++)
        take_turn(s, i, false);
    for (int i = s->forward; i < s->calls; i++) {
        const struct pm_sketch_call *k = &s->call[i];

        for (int b = 0; b < k->bufs; b++)
            if (k->buf[b] >= 0 && k->access[b] == 'r')
                make_again(s, dropped, k->buf[b], &out);
        take_turn(s, i, false);
    }
    for (int i = 0; i < s->turns; i++)
        merge(s, i);
    out.peak = peak_of(s, &out.at);
    return out;
}

/* ---- making and freeing ------------------------------------------------------------------ */

/* Returns the forward call of a backward call: the last forward call whose results it reads. */
static int forward_of(const struct pm_sketch *s, const struct pm_sketch_call *k)
{
    int at = -1;

    for (int b = 0; b < k->bufs; b++)
        if (k->buf[b] >= 0 && k->access[b] == 'r' && s->value[k->buf[b]].producer > at)
            at = s->value[k->buf[b]].producer;
    return at;
}

/* Computes live bytes as pm_sketch_judge does with nothing dropped, without droppable values. */
static void find_beside(struct pm_sketch *s)
{
    bool *none = pm_calloc((size_t)s->values + 1, sizeof *none);
    int64_t live = 0;
    int at = s->forward - 1;

    pm_sketch_judge(s, none);
    for (int i = 0; i < s->values; i++)
        if (s->value[i].droppable && s->first[i] >= 0 && s->alias[i] < 0) {
            s->change[s->first[i]] -= (int64_t)s->value[i].bytes;
            s->change[s->last[i] + 1] += (int64_t)s->value[i].bytes;
        }
    for (int i = 0; i < s->calls; i++) {
        live += s->change[i];
        if (i < s->forward)
            continue;
        int now = forward_of(s, &s->call[i]);
        at = now >= 0 ? now : at;
        if (live > (int64_t)s->beside[at])
            s->beside[at] = (size_t)live;
    }
    pm_free(none);
}

struct pm_sketch *pm_sketch_create(const struct pm_calls *c)
{
    struct pm_sketch *s = pm_calloc(1, sizeof *s);
    size_t values = 2 * (size_t)c->value_count + 1;

    s->lead = c->lead;
    while (s->lead + s->forward < c->call_count &&
           c->calls[s->lead + s->forward].phase == PM_PHASE_FORWARD)
        s->forward++;
    s->calls = s->forward;
    while (s->lead + s->calls < c->call_count &&
           c->calls[s->lead + s->calls].phase == PM_PHASE_BACKWARD)
        s->calls++;
    s->values = c->value_count;
    s->call = pm_calloc((size_t)s->calls + 1, sizeof *s->call);
    s->value = pm_calloc((size_t)s->values + 1, sizeof *s->value);
    s->beside = pm_calloc((size_t)s->forward + 1, sizeof *s->beside);
    s->turn = pm_calloc((size_t)(s->calls + s->forward) + 1, sizeof *s->turn);
    s->change = pm_calloc((size_t)(s->calls + s->forward) + 2, sizeof *s->change);
    s->first = pm_calloc(values, sizeof *s->first);
    s->last = pm_calloc(values, sizeof *s->last);
    s->alias = pm_calloc(values, sizeof *s->alias);
    s->now = pm_calloc(values, sizeof *s->now);
    for (int i = 0; i < s->calls; i++)
        sketch_call(s, c, i);
    for (int i = 0; i < s->values; i++)
        sketch_value(s, c, i);
    find_droppable(s);
    find_beside(s);
    return s;
}

void pm_sketch_destroy(struct pm_sketch **s)
{
    if (*s) {
        pm_free((*s)->call);
        pm_free((*s)->value);
        pm_free((*s)->beside);
        pm_free((*s)->turn);
        pm_free((*s)->change);
        pm_free((*s)->first);
        pm_free((*s)->last);
        pm_free((*s)->alias);
        pm_free((*s)->now);
        pm_free(*s);
    }
    *s = NULL;
}
