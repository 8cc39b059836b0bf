/* arrangement: see arrangement.h. */
#include "device/arrangement.h"

#include <math.h>
#include <string.h>

enum { LOOK_AHEAD = 32 }; /* calls that are tried before a barrier */

struct range {
    const struct pm_buffer *buffer;
    size_t begin, end;
    bool write;
};
struct arranger {
    const struct pm_arrange_input *in;
    bool *added;           /* per call */
    struct pm_arrangement *s;
    bool open;             /* a segment is open */
    double seconds;        /* estimated, of the open segment */
    struct range *ranges;  /* used since the last barrier */
    size_t count, capacity;
};

/* ---- hazards ------------------------------------------------------------------------ */

static bool overlap(const struct range *r, const struct pm_place *p)
{
    return r->buffer == p->buffer && r->begin < p->offset + p->size && p->offset < r->end;
}

static bool hazard(const struct arranger *r, const struct pm_bound_call *c,
                   const struct pm_buf_spec *spec, int bufs)
{
    for (int i = 0; i < bufs; i++)
        for (size_t k = 0; c->buf[i].buffer && k < r->count; k++)
            if ((r->ranges[k].write || pm_access_writes(spec[i].access)) &&
                overlap(&r->ranges[k], &c->buf[i]))
                return true;
    return false;
}

/* Whether two calls must keep their order: one writes a byte range that the other uses. */
static bool ordered(const struct pm_bound_call *a, const struct pm_bound_call *b)
{
    struct pm_buf_spec x[PM_MAX_BUFS], y[PM_MAX_BUFS];
    const int m = pm_kernel_bufs(a->kernel, x), n = pm_kernel_bufs(b->kernel, y);

    for (int i = 0; i < m; i++) {
        const struct pm_place *q = &a->buf[i];
        const struct range used = { q->buffer, q->offset, q->offset + q->size, false };

        for (int k = 0; q->buffer && k < n; k++)
            if ((pm_access_writes(x[i].access) || pm_access_writes(y[k].access)) &&
                overlap(&used, &b->buf[k]))
                return true;
    }
    return false;
}

static void touch(struct arranger *r, const struct pm_bound_call *c,
                  const struct pm_buf_spec *spec, int bufs)
{
    for (int i = 0; i < bufs; i++) {
        const struct pm_place *p = &c->buf[i];

        if (!p->buffer || p->size == 0)
            continue;
        PM_GROW(r->ranges, r->count, r->capacity);
        r->ranges[r->count++] = (struct range){ p->buffer, p->offset, p->offset + p->size,
                                                pm_access_writes(spec[i].access) };
    }
}

/* ---- segments ----------------------------------------------------------------------- */

static void open_segment(struct arranger *r, size_t call)
{
    struct pm_arrangement *s = r->s;

    if (r->open)
        return;
    PM_GROW(s->segments, s->segment_count, s->segment_capacity);
    s->segments[s->segment_count++] = (struct pm_submission){ s->count, s->count, call, call };
    r->open = true;
    r->seconds = 0;
    r->count = 0;
}

static void close_segment(struct arranger *r)
{
    struct pm_submission *g = &r->s->segments[r->s->segment_count - 1];

    if (!r->open)
        return;
    g->end = r->s->count;
    for (size_t i = g->begin; i < g->end; i++) {
        const size_t call = r->s->list[i].call;

        g->first = call < g->first ? call : g->first;
        g->last = call > g->last ? call : g->last;
    }
    r->open = false;
}

/* ---- dispatches --------------------------------------------------------------------- */

/* Estimates a call's seconds from the guessed speed of its device. */
static double estimate(const struct pm_arrange_input *in, const struct pm_bound_call *c)
{
    double flops = c->kernel->flops ? c->kernel->flops(c->params, c->count) : (double)c->count;
    double bytes = 0;

    for (int i = 0; i < PM_MAX_BUFS; i++)
        bytes += (double)c->buf[i].size;
    return flops / in->flops + bytes / in->bytes;
}

/* Returns the longest axis, along which a dispatch is split. */
static int longest(const uint32_t groups[3])
{
    int axis = 2;

    for (int k = 1; k >= 0; k--)
        if (groups[k] > groups[axis])
            axis = k;
    return axis;
}

static struct pm_arranged *add(struct pm_arrangement *s, size_t call, int dispatch)
{
    PM_GROW(s->list, s->count, s->capacity);
    s->list[s->count] = (struct pm_arranged){ .call = call, .dispatch = dispatch };
    return &s->list[s->count++];
}

/* Adds a dispatch in as many parts as its work needs. wait: a barrier stands before it. */
static void add_dispatch(struct arranger *r, size_t call, int index, double seconds, bool wait)
{
    const uint32_t *groups = r->in->picks[call]->d[index].groups;
    const double bound = r->in->segment_seconds, wanted = ceil(seconds / bound);
    const int axis = longest(groups);
    uint32_t parts = 1;

    if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0)
        return;
    if (!r->in->whole[call][index] && wanted > 1)
        parts = wanted < groups[axis] ? (uint32_t)wanted : groups[axis];
    for (uint32_t i = 0; i < parts; i++) {
        struct pm_arranged *x;

        if (r->open && r->seconds > 0 && r->seconds + seconds / parts > bound) {
            close_segment(r);
            wait = false;
        }
        open_segment(r, call);
        x = add(r->s, call, index);
        memcpy(x->groups, groups, sizeof x->groups);
        x->base[axis] = (uint32_t)((uint64_t)groups[axis] * i / parts);
        x->groups[axis] = (uint32_t)((uint64_t)groups[axis] * (i + 1) / parts) - x->base[axis];
        x->barrier = wait;
        if (wait) {
            r->count = 0;
            r->s->counts.barriers++;
        }
        wait = false;
        r->seconds += seconds / parts;
    }
    r->s->counts.dispatches++;
}

/* ---- bytes -------------------------------------------------------------------------- */

uint64_t pm_call_bytes(const struct pm_bound_call *c, const size_t scratch[PM_MAX_BUFS])
{
    struct pm_buf_spec spec[PM_MAX_BUFS];
    const int bufs = pm_call_bufs(c->kernel, c->params, spec);
    uint64_t bytes = 0;

    for (int i = 0; i < bufs; i++) {
        const uint64_t size = c->buf[i].size;

        if (!c->buf[i].buffer)
            continue;
        switch (spec[i].access) {
        case 'u': bytes += 2 * size; break;
        case 't':
        case 'z': bytes += 2 * (scratch ? scratch[i] : size); break;
        default: bytes += size;
        }
    }
    return bytes;
}

/* ---- the arrangement ------------------------------------------------------------------- */

static void add_call(struct arranger *r, size_t index)
{
    const struct pm_bound_call *c = &r->in->desc->calls[index];
    const struct pm_picks *picks = r->in->picks[index];
    struct pm_buf_spec spec[PM_MAX_BUFS];
    const int bufs = pm_kernel_bufs(c->kernel, spec);
    const size_t from = r->s->count;
    const double seconds = estimate(r->in, c) / (picks->count ? picks->count : 1);

    for (int i = 0; i < picks->count; i++)
        add_dispatch(r, index, i, seconds,
                     r->open && (i > 0 || r->in->timed || hazard(r, c, spec, bufs)));
    if (r->s->count == from && r->in->timed) {
        open_segment(r, index);
        add(r->s, index, -1);
    }
    if (r->s->count > from)
        r->s->list[from].begins = r->s->list[r->s->count - 1].ends = true;
    r->s->counts.bytes_moved += pm_call_bytes(c, picks->scratch);
    touch(r, c, spec, bufs);
    r->added[index] = true;
}

/* Whether a barrier must stand before the call. */
static bool must_wait(const struct arranger *r, size_t index)
{
    const struct pm_bound_call *c = &r->in->desc->calls[index];
    struct pm_buf_spec spec[PM_MAX_BUFS];
    const int bufs = pm_kernel_bufs(c->kernel, spec);

    return r->open && hazard(r, c, spec, bufs);
}

/* Adds calls behind `index` that need no barrier, before the one that `index` needs. They pass only
 * calls that are independent of them. */
static void add_independent(struct arranger *r, size_t index, size_t end)
{
    const struct pm_bound_call *calls = r->in->desc->calls;

    end = end - index > LOOK_AHEAD ? index + LOOK_AHEAD : end;
    for (size_t i = index + 1; i < end; i++) {
        bool may = !r->added[i] && r->in->picks[i]->count == 1 && !must_wait(r, i);

        for (size_t k = index; may && k < i; k++)
            may = r->added[k] || !ordered(&calls[k], &calls[i]);
        if (may)
            add_call(r, i);
    }
}

/* Adds the calls begin .. end - 1. */
static void add_calls(struct arranger *r, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        if (r->added[i])
            continue;
        if (!r->in->timed && must_wait(r, i))
            add_independent(r, i, end);
        add_call(r, i);
    }
}

/* Returns the number of calls that the next output behind `begin` waits for, or all. */
static size_t next_out(const struct pm_program_desc *desc, size_t begin)
{
    size_t next = desc->calls_count;

    for (size_t i = 0; i < desc->out_count; i++)
        if (desc->out_after[i] > begin && desc->out_after[i] < next)
            next = desc->out_after[i];
    return next;
}

/* Ends the segment if an output waits for exactly `done` calls. */
static void serve_outs(struct arranger *r, size_t done)
{
    const struct pm_program_desc *desc = r->in->desc;
    bool wanted = false;

    for (size_t i = 0; i < desc->out_count; i++)
        wanted |= desc->out_after[i] == done;
    if (!wanted)
        return;
    if (done == 0) /* before any call: the output follows a segment without calls */
        open_segment(r, 0);
    close_segment(r);
    for (size_t i = 0; i < desc->out_count; i++)
        if (desc->out_after[i] == done)
            r->s->out_segment[i] = r->s->segment_count - 1;
}

void pm_arrange(const struct pm_arrange_input *in, struct pm_arrangement *out)
{
    const size_t count = in->desc->calls_count;
    struct arranger r = { .in = in, .s = out, .added = pm_calloc(count + 1, sizeof *r.added) };

    *out = (struct pm_arrangement){ 0 };
    out->out_segment = pm_calloc(in->desc->out_count + 1, sizeof *out->out_segment);
    serve_outs(&r, 0);
    for (size_t i = 0; i < count; i = next_out(in->desc, i)) {
        add_calls(&r, i, next_out(in->desc, i));
        serve_outs(&r, next_out(in->desc, i));
    }
    if (out->segment_count == 0) /* the program only copies in */
        open_segment(&r, 0);
    close_segment(&r);
    out->counts.segments = out->segment_count;
    pm_free(r.ranges);
    pm_free(r.added);
}

void pm_arrangement_free(struct pm_arrangement *s)
{
    pm_free(s->list);
    pm_free(s->segments);
    pm_free(s->out_segment);
    *s = (struct pm_arrangement){ 0 };
}
