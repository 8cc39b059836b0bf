/* share_moments: see share_moments.h. An image has moments if one call writes it and no other call
 * changes it, and if both kernels give it the same number of rows and channels (a view may change
 * them). */
#include "net/share_moments.h"

#include <string.h>

/* Buffers of a row: its `moments`, and the image that they describe. -1: none. */
struct places { int moments, image; char access; };

static struct places places_of(const struct pm_planned_call *call)
{
    struct pm_buf_spec spec[PM_MAX_BUFS];
    struct places p = { -1, -1, 0 };
    int bufs;

    if (!call->kernel->moments)
        return p;
    bufs = pm_call_bufs(call->kernel, call->params, spec);
    for (int i = 0; i < bufs; i++)
        if (strcmp(spec[i].name, "moments") == 0)
            p.moments = i, p.access = spec[i].access;
    for (int i = bufs; i-- > 0;)
        if (i != p.moments && spec[i].access == p.access)
            p.image = i;
    return p;
}

static void set_flag(struct pm_calls *c, struct pm_planned_call *call, int flag)
{
    call->params = pm_arena_copy(c->arena, call->params, call->kernel->params_size);
    memcpy((char *)call->params + call->kernel->moments - 1, &flag, sizeof flag);
}

struct pm_tensor pm_give_moments(struct pm_calls *c, int index)
{
    const struct places p = places_of(&c->calls[index]);
    struct pm_rows image;
    struct pm_tensor t;

    if (p.access != 'w' || p.image < 0 || c->calls[index].buf[p.moments] >= 0)
        return PM_NO_TENSOR;
    image = c->calls[index].kernel->moments_of(c->calls[index].params);
    t = pm_temp(c, PM_SHAPE3((int)pm_moment_chunks(image), 2, image.channels), PM_F32);
    c->values[t.value].name = c->calls[index].label;
    c->values[t.value].micro_batch = c->values[c->calls[index].buf[p.image]].micro_batch;
    c->values[t.value].first = c->values[t.value].last = index;
    c->calls[index].buf[p.moments] = t.value;
    set_flag(c, &c->calls[index], 1);
    return t;
}

bool pm_take_moments(struct pm_calls *c, int index, struct pm_tensor moments)
{
    struct pm_planned_call *call = &c->calls[index];
    const struct places p = places_of(call);

    if (p.access != 'r' || p.image < 0 || call->buf[p.moments] >= 0)
        return false;
    call->buf[p.moments] = moments.value;
    call->buf[p.image] = -1;
    set_flag(c, call, 1);
    c->values[moments.value].last = index;
    return true;
}

/* Returns the only call that writes a value, or -1. */
static int writer_of(const struct pm_calls *c, int value)
{
    int writer = -1;

    for (int i = 0; i < c->call_count; i++) {
        struct pm_buf_spec spec[PM_MAX_BUFS];
        int bufs = pm_kernel_bufs(c->calls[i].kernel, spec);

        for (int b = 0; b < bufs; b++)
            if (c->calls[i].buf[b] == value && spec[b].access != 'r') {
                if (writer >= 0)
                    return -1;
                writer = i;
            }
    }
    return writer;
}

/* Connects call `index`, which takes moments, with the writer of its image. */
static void connect(struct pm_calls *c, int index, struct places p)
{
    const struct pm_planned_call *to = &c->calls[index], *from;
    int writer = writer_of(c, to->buf[p.image]);
    struct pm_rows wanted = to->kernel->moments_of(to->params), given;
    struct places w;

    if (writer < 0 || writer > index)
        return;
    from = &c->calls[writer];
    w = places_of(from);
    if (w.access != 'w' || w.image < 0 || from->buf[w.image] != to->buf[p.image])
        return;
    given = from->kernel->moments_of(from->params);
    if (given.rows != wanted.rows || given.channels != wanted.channels)
        return;
    if (from->buf[w.moments] < 0)
        pm_give_moments(c, writer);
    pm_take_moments(c, index, (struct pm_tensor){ .value = c->calls[writer].buf[w.moments] });
}

void pm_share_moments(struct pm_calls *c)
{
    for (int i = 0; i < c->call_count; i++) {
        const struct places p = places_of(&c->calls[i]);

        if (p.access == 'r' && p.image >= 0 && c->calls[i].buf[p.image] >= 0)
            connect(c, i, p);
    }
    pm_calls_count_lifetimes(c);
}

void pm_drop_moments(struct pm_calls *c)
{
    for (int i = 0; i < c->call_count; i++) {
        const struct places p = places_of(&c->calls[i]);
        struct pm_value *v;

        if (p.access != 'w' || c->calls[i].buf[p.moments] < 0)
            continue;
        v = &c->values[c->calls[i].buf[p.moments]];
        if (v->last > i)
            continue;
        v->first = v->last = -1;
        c->calls[i].buf[p.moments] = -1;
        set_flag(c, &c->calls[i], 0);
    }
}
