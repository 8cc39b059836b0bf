/* opencl_sets: every shader with every set of constants that calls choose: the calls of the
 * verification, of some nets' training steps and of the layers' test cases, each on every class of
 * device, at every level that its row offers. */
#ifndef OPENCL_SETS_H
#define OPENCL_SETS_H

#include "bench/compile_calls.h"
#include "device/class_caps.h"
#include "device/drivers.h"
#include "net/tile_device.h"

#include <pumice/verify.h>

/* A shader with its constants: a kernel to translate. */
struct set {
    const struct pm_shader *shader;
    uint32_t spec[PM_MAX_SPEC];
    int specs;
    uint32_t present; /* bit i: the row's buffer i is present */
};
struct sets {
    struct set *list;
    size_t count, capacity;
    size_t *slots; /* hash table: index + 1 of a set */
};
enum { SET_SLOTS = 1 << 14 };

static void add_set(struct sets *s, const struct pm_dispatch *d, uint32_t present)
{
    struct set one;
    uint64_t at;

    memset(&one, 0, sizeof one);
    one.shader = shader_named(d->shader);
    memcpy(one.spec, d->spec, (size_t)d->specs * sizeof *d->spec);
    one.specs = d->specs;
    one.present = UINT32_MAX;
    if (pm_spirv_reads_presence(one.shader->words, one.shader->bytes / 4))
        one.present = present;
    at = pm_hash_bytes(&one, sizeof one, 1) % SET_SLOTS;
    for (; s->slots[at]; at = (at + 1) % SET_SLOTS)
        if (memcmp(&s->list[s->slots[at] - 1], &one, sizeof one) == 0)
            return;
    PM_GROW(s->list, s->count, s->capacity);
    s->list[s->count++] = one;
    s->slots[at] = s->count;
    assert_true(s->count < SET_SLOTS / 2);
}

/* Adds the dispatches of a call on all classes of device, as Vulkan's and as OpenCL's drivers run
 * them. */
static void add_call(struct sets *s, const struct pm_kernel *k, const void *params, size_t count,
                     uint32_t present)
{
    static struct pm_picks picks;

    for (int form = 0; form < 2 * (PM_CLASS_INTEL + 1); form++) {
        struct pm_caps caps = class_caps((enum pm_class)(form / 2));

        caps.last_group = form % 2;

        for (int level = 0; level < 32; level++) {
            memset(&picks, 0, sizeof picks);
            if (k->pick ? !k->pick(&caps, params, count, level, &picks)
                        : level > 0 || !pm_pick_elements(k->shader ? k->shader : k->name, 64,
                                                         count, &picks))
                break;
            for (int i = 0; i < picks.count; i++)
                add_set(s, &picks.d[i], present);
        }
    }
}

/* Adds the calls of a source of the verification, as the device plans them. */
static void add_source(struct sets *s, const struct pm_verify_source *from, struct pm_device *d)
{
    struct pm_net *net = NULL;
    struct pm_variables *vars = NULL;
    struct pm_plan *plan = NULL;
    const struct pm_planned_call *calls;
    size_t count;

    ok(from->build(from->ctx, from->batch, from->height, from->width, &net));
    ok(pm_variables_create(d, net, true, from->slots, &vars));
    pm_variables_keep_averages(vars);
    ok(pm_plan_create(net, d, vars, &from->options, &plan));
    calls = pm_plan_calls(plan, &count);
    for (size_t i = 0; i < count; i++) {
        uint32_t present = UINT32_MAX;

        for (int b = 0; b < calls[i].bufs; b++)
            if (calls[i].buf[b] < 0)
                present &= ~(1u << b);
        add_call(s, calls[i].kernel, calls[i].params, calls[i].count, present);
    }
    pm_plan_destroy(&plan);
    pm_variables_destroy(&vars);
    pm_net_destroy(&net);
}

/* Adds the calls of nets and test cases. */
static void add_calls(struct sets *s, struct pm_device *d)
{
    struct calls c = { 0 };

    ok(calls_add(&c, d));
    for (size_t i = 0; i < c.count; i++) {
        const struct pm_bound_call *call = &c.list[i];
        struct pm_buf_spec spec[PM_MAX_BUFS];
        const int bufs = pm_kernel_bufs(call->kernel, spec);
        uint32_t present = UINT32_MAX;

        for (int b = 0; b < bufs; b++)
            if (spec[b].optional && call->buf[b].size == 0)
                present &= ~(1u << b);
        if (c.levels[i] == 0)
            add_call(s, call->kernel, call->params, call->count, present);
    }
    calls_free(&c);
}

/* Every shader of the table is in the sets at least once: those that no call reaches, which measure
 * a device's peak, with their own constants. Free with sets_free. */
static void sets_make(struct sets *s)
{
    struct tile_device tiles = tile_device(false);
    struct pm_verify_source from;

    *s = (struct sets){ .slots = pm_calloc(SET_SLOTS, sizeof *s->slots) };
    for (size_t i = 0; pm_verify_case(i, &from); i++)
        add_source(s, &from, &tiles.base);
    add_calls(s, &tiles.base);
    for (const struct pm_shader *p = pm_shader_table; p->name; p++) {
        bool found = false;

        for (size_t i = 0; i < s->count && !found; i++)
            found = s->list[i].shader == p;
        if (!found)
            add_set(s, &(struct pm_dispatch){ .shader = p->name }, UINT32_MAX);
    }
}

static void sets_free(struct sets *s)
{
    pm_free(s->list);
    pm_free(s->slots);
}

#endif
