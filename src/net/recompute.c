/* recompute: a choice begins with segments. Borders cut the forward pass into segments. Values that
 * cross a border are kept, all others are dropped. The backward pass recomputes one segment after
 * the other from the values kept at its beginning.
 *
 * For a budget b, least[j] is the fewest bytes kept of the first j calls. It is the minimum over i
 * < j of least[i] + (bytes made in calls i..j-1 that cross j), under the condition least[i] + (most
 * bytes live while the backward pass goes through calls j-1..i) <= b. Values kept after a segment
 * are already freed when the segment is recomputed. Budgets are tried from large to small, and each
 * choice is judged by the real peak (sketch.h).
 *
 * A choice below the limit then keeps further values again, as long as the limit holds. The values
 * that save the most work per byte come first. So results of convolutions are kept first, and cheap
 * values stay dropped: normalised, activated, joined and pooled values. */
#include "net/recompute.h"

#include "net/share_moments.h"
#include "net/sketch.h"

#include <stdlib.h>
#include <string.h>

/* ---- segments --------------------------------------------------------------------------- */

struct search {
    struct pm_sketch *s;
    size_t *least;  /* [forward + 1] */
    int *from;      /* start of the last segment before j */
    bool *dropped;  /* the choice being tried */
    bool *best;
    struct pm_sketch_outcome outcome; /* outcome of `best` */
    struct candidate { int value; double gain; } *order;
};

/* Computes the bytes of call i's droppable values that cross a border before call j, and the bytes
 * of those that the backward pass reads. */
static void weigh(const struct pm_sketch *s, int i, int j, size_t *cross, size_t *wanted)
{
    const struct pm_sketch_call *k = &s->call[i];

    for (int b = 0; b < k->bufs; b++) {
        const struct pm_sketch_value *v = k->buf[b] < 0 ? NULL : &s->value[k->buf[b]];

        if (!v || k->access[b] != 'w' || !v->droppable)
            continue;
        if (v->last_forward >= j)
            *cross += v->bytes;
        if (v->backward)
            *wanted += v->bytes;
    }
}

static bool cut(struct search *x, size_t budget)
{
    const struct pm_sketch *s = x->s;

    x->least[0] = 0;
    for (int j = 1; j <= s->forward; j++) {
        size_t cross = 0, high = 0;

        x->least[j] = SIZE_MAX;
        for (int i = j; i-- > 0 && high <= budget;) {
            high = s->beside[i] > high ? s->beside[i] : high;
            weigh(s, i, j, &cross, &high);
            if (x->least[i] > budget || high > budget - x->least[i] ||
                x->least[i] + cross >= x->least[j])
                continue;
            x->least[j] = x->least[i] + cross;
            x->from[j] = i;
        }
    }
    return x->least[s->forward] != SIZE_MAX;
}

/* Drops the values that do not cross the end of their segment. */
static void drop_insides(struct search *x)
{
    const struct pm_sketch *s = x->s;

    memset(x->dropped, 0, (size_t)s->values * sizeof *x->dropped);
    for (int end = s->forward; end > 0; end = x->from[end])
        for (int i = x->from[end]; i < end; i++)
            for (int b = 0; b < s->call[i].bufs; b++) {
                int v = s->call[i].buf[b];

                if (v >= 0 && s->call[i].access[b] == 'w' && s->value[v].droppable &&
                    s->value[v].last_forward < end)
                    x->dropped[v] = true;
            }
}

/* ---- keeping values again ------------------------------------------------------------------ */

static int by_gain(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return x->gain != y->gain ? (x->gain < y->gain ? 1 : -1) : x->value - y->value;
}

static struct pm_sketch_outcome take_back(struct search *x, size_t limit)
{
    const struct pm_sketch *s = x->s;
    struct pm_sketch_outcome outcome = pm_sketch_judge(x->s, x->dropped);
    int count = 0;

    for (int v = 0; v < s->values; v++)
        if (x->dropped[v])
            x->order[count++] = (struct candidate){
                v, s->call[s->value[v].producer].work / (double)s->value[v].bytes };
    qsort(x->order, (size_t)count, sizeof *x->order, by_gain);
    for (int i = 0; i < count; i++) {
        struct pm_sketch_outcome now;

        x->dropped[x->order[i].value] = false;
        now = pm_sketch_judge(x->s, x->dropped);
        if (now.peak <= limit || now.peak <= outcome.peak)
            outcome = now;
        else
            x->dropped[x->order[i].value] = true;
    }
    return outcome;
}

/* ---- choosing --------------------------------------------------------------------------- */

static bool is_better(struct pm_sketch_outcome a, struct pm_sketch_outcome b, size_t limit)
{
    size_t p = a.peak > limit ? a.peak : limit, q = b.peak > limit ? b.peak : limit;

    return p != q ? p < q : a.work < b.work;
}

static void consider(struct search *x, struct pm_sketch_outcome outcome, size_t limit)
{
    if (!is_better(outcome, x->outcome, limit))
        return;
    x->outcome = outcome;
    memcpy(x->best, x->dropped, (size_t)x->s->values * sizeof *x->best);
}

/* While it helps, also drops one more value: of those live at the peak, the best one to drop. */
static void drop_more(struct search *x, size_t limit)
{
    const struct pm_sketch *s = x->s;

    while (x->outcome.peak > limit) {
        int at = pm_sketch_judge(x->s, x->best).at, count = 0;
        size_t before = x->outcome.peak;

        for (int v = 0; v < s->values; v++)
            if (s->value[v].droppable && !x->best[v] && s->first[v] >= 0 && s->first[v] <= at &&
                s->last[v] >= at)
                x->order[count++].value = v;
        memcpy(x->dropped, x->best, (size_t)s->values * sizeof *x->dropped);
        for (int i = 0; i < count; i++) {
            x->dropped[x->order[i].value] = true;
            consider(x, pm_sketch_judge(x->s, x->dropped), limit);
            x->dropped[x->order[i].value] = false;
        }
        if (x->outcome.peak == before)
            return;
    }
}

static void choose(struct search *x, size_t limit)
{
    size_t values = (size_t)x->s->values;
    struct pm_sketch_outcome last = { 0 };

    for (double budget = (double)x->outcome.peak; cut(x, (size_t)budget); budget *= 0.9) {
        struct pm_sketch_outcome outcome;

        drop_insides(x);
        outcome = pm_sketch_judge(x->s, x->dropped);
        if (outcome.peak == last.peak && outcome.work == last.work)
            continue;
        last = outcome;
        consider(x, take_back(x, limit), limit);
    }
    if (x->outcome.peak <= limit)
        return;
    drop_more(x, limit);
    memcpy(x->dropped, x->best, values * sizeof *x->dropped);
    consider(x, take_back(x, limit), limit);
}

/* ---- the list of calls ------------------------------------------------------------------- */

struct rewriting {
    struct pm_calls *c;
    const struct pm_sketch *s;
    const bool *dropped;
    struct pm_planned_call *calls; /* the new list */
    int count;
    int *now; /* per original value: the value that holds its contents now */
};

static int second_self(struct rewriting *r, int value)
{
    struct pm_calls *c = r->c;
    struct pm_value v = c->values[value];

    PM_GROW(c->values, c->value_count, c->value_capacity);
    v.within = -1;
    c->values[c->value_count] = v;
    return c->value_count++;
}

/* Appends call `index` of the old list, which is call `turn->call` of its micro-batch. */
static void add_turn(struct rewriting *r, const struct pm_sketch_turn *turn, int index)
{
    const struct pm_sketch_call *k = &r->s->call[turn->call];
    struct pm_planned_call *call = &r->calls[r->count++];

    *call = r->c->calls[index];
    if (turn->again)
        call->phase = PM_PHASE_AGAIN;
    for (int b = 0; b < call->bufs; b++) {
        int value = call->buf[b];

        if (value < 0)
            continue;
        if (turn->again && k->access[b] != 'r') {
            call->buf[b] = second_self(r, value);
            if (k->access[b] == 'w' && r->dropped[k->buf[b]])
                r->now[value] = call->buf[b];
        } else if (turn->again || turn->call >= r->s->forward) {
            call->buf[b] = r->now[value];
        }
    }
}

/* Rewrites the list of calls. All micro-batches have the same calls on their own values. */
static void rewrite(struct pm_calls *c, const struct pm_sketch *s, const bool *dropped)
{
    int batches = c->options->micro_batches, rest = s->lead + batches * s->calls;
    struct rewriting r = { .c = c, .s = s, .dropped = dropped };

    r.calls = pm_calloc((size_t)(s->lead + batches * s->turns + c->call_count - rest) + 1,
                        sizeof *r.calls);
    r.now = pm_calloc((size_t)c->value_count + 1, sizeof *r.now);
    for (int i = 0; i < c->value_count; i++)
        r.now[i] = i;
    for (int i = 0; i < s->lead; i++)
        r.calls[r.count++] = c->calls[i];
    for (int m = 0; m < batches; m++)
        for (int i = 0; i < s->turns; i++)
            add_turn(&r, &s->turn[i], s->lead + m * s->calls + s->turn[i].call);
    for (int i = rest; i < c->call_count; i++)
        r.calls[r.count++] = c->calls[i];
    pm_free(c->calls);
    pm_free(r.now);
    c->calls = r.calls;
    c->call_count = c->call_capacity = r.count;
    pm_calls_count_lifetimes(c);
    pm_drop_moments(c);
}

void pm_recompute(struct pm_calls *c, size_t limit, double share, struct pm_recomputed *out)
{
    struct pm_sketch *s = pm_sketch_create(c);
    size_t values = (size_t)s->values + 1, borders = (size_t)s->forward + 1;
    struct search x = { .s = s, .least = pm_calloc(borders, sizeof *x.least),
                        .from = pm_calloc(borders, sizeof *x.from),
                        .dropped = pm_calloc(values, sizeof *x.dropped),
                        .best = pm_calloc(values, sizeof *x.best),
                        .order = pm_calloc(values, sizeof *x.order) };
    double work = 0;

    x.outcome = pm_sketch_judge(s, x.best);
    out->live_without = x.outcome.peak;
    if (share > 0 && (double)limit > share * (double)out->live_without)
        limit = (size_t)(share * (double)out->live_without);
    out->limit = limit;
    if (out->live_without > limit)
        choose(&x, limit);
    x.outcome = pm_sketch_judge(s, x.best);
    for (int i = 0; i < s->calls; i++)
        work += s->call[i].work;
    out->peak = x.outcome.peak;
    out->again = x.outcome.again;
    out->work = work > 0 ? x.outcome.work / work : 0;
    if (out->again > 0)
        rewrite(c, s, x.best);
    pm_free(x.least);
    pm_free(x.from);
    pm_free(x.dropped);
    pm_free(x.best);
    pm_free(x.order);
    pm_sketch_destroy(&s);
}
