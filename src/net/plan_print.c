/* plan_print: prints a plan's memory and work in readable form. */
#include "net/plan_private.h"

#include <cjson/cJSON.h>

static uint64_t workspace_of(const struct pm_plan *p)
{
    const struct pm_calls *c = p->calls;
    uint64_t largest = 0;

    for (int i = 0; i < c->call_count; i++) {
        uint64_t bytes = 0;

        for (int b = 0; b < c->calls[i].bufs; b++)
            if (c->calls[i].buf[b] >= 0 && c->values[c->calls[i].buf[b]].kind == PM_VALUE_SCRATCH)
                bytes += c->values[c->calls[i].buf[b]].bytes;
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

bool pm_plan_keeps_copies(const struct pm_plan *p)
{
    return p->transposes;
}

struct pm_plan_memory pm_plan_memory(const struct pm_plan *p)
{
    struct pm_plan_memory m = { .peak_live = p->peak_live,
                                .constants = p->constant_bytes + p->counter_bytes,
                                .calls = p->calls->call_count, .values = p->calls->value_count,
                                .workspace = workspace_of(p),
                                .live_without_recompute = p->recomputed.live_without,
                                .again = p->options.micro_batches * p->recomputed.again,
                                .again_work = p->recomputed.work };

    for (int i = 0; i < p->blocks; i++)
        m.activations += p->block_bytes[i];
    for (int i = 0; i < p->calls->value_count; i++)
        if (p->calls->values[i].kind == PM_VALUE_INPUT ||
            p->calls->values[i].kind == PM_VALUE_OUTPUT)
            m.staging += (uint64_t)p->options.slots * p->calls->values[i].bytes;
    if (p->variables) {
        m.variables = p->variables->bytes;
        m.gradients = p->variables->gradient_bytes;
        m.slots = (uint64_t)p->variables->slot_count * p->variables->trainable_bytes;
        m.averages = p->variables->average_bytes;
        if (p->options.bucket_bytes)
            m.staging += (uint64_t)p->options.slots * p->variables->trainable_bytes;
    }
    m.total = m.activations + m.constants + m.variables + m.gradients + m.slots + m.averages;
    return m;
}

const char *const pm_plan_phase_names[PM_PHASES] = { "forward", "again", "backward", "update" };
static const char *const kind_names[] = { "activation", "scratch", "variable", "gradient", "slot",
                                          "average", "input", "output", "constant",
                                          "counter" };

static void print_calls(const struct pm_plan *p, FILE *f)
{
    const struct pm_calls *c = p->calls;

    fprintf(f, "%5s %-8s %-24s %-44s %s\n", "call", "phase", "kernel", "layer", "buffers");
    for (int i = 0; i < c->call_count; i++) {
        const struct pm_planned_call *call = &c->calls[i];
        struct pm_buf_spec spec[PM_MAX_BUFS];
        int bufs = pm_kernel_bufs(call->kernel, spec);

        fprintf(f, "%5d %-8s %-24s %-44s", i, pm_plan_phase_names[call->phase], call->kernel->name,
                call->label);
        for (int k = 0; k < bufs; k++)
            if (call->buf[k] >= 0)
                fprintf(f, " %s=%d", spec[k].name, pm_calls_root(c, call->buf[k]));
        fprintf(f, "\n");
    }
    fprintf(f, "%5s %-10s %-16s %10s %12s %s\n", "value", "kind", "shape", "bytes", "calls",
            "place and name");
    for (int i = 0; i < c->value_count; i++) {
        const struct pm_value *v = &c->values[i];
        char shape[64];

        if (v->first < 0 || v->alias >= 0 || v->within >= 0)
            continue;
        fprintf(f, "%5d %-10s %-16s %10zu %5d-%-6d %d:%zu %s\n", i, kind_names[v->kind],
                pm_shape_text(v->shape, shape), v->bytes, v->first, v->last, v->block, v->offset,
                v->name);
    }
}

static double mib(uint64_t bytes)
{
    return (double)bytes / 1048576;
}

static void print_memory(const struct pm_plan_memory *m, int buffers, FILE *f)
{
    fprintf(f, "  activations %9.1f MiB in %d buffer%s (live: %.1f at most; workspace: %.1f)\n",
            mib(m->activations), buffers, buffers == 1 ? "" : "s", mib(m->peak_live),
            mib(m->workspace));
    if (m->again > 0)
        fprintf(f, "    instead of %.1f MiB: %d calls run again, about %.0f %% more work\n",
                mib(m->live_without_recompute), m->again, 100 * m->again_work);
    fprintf(f, "  variables   %9.1f MiB\n", mib(m->variables));
    fprintf(f, "  gradients   %9.1f MiB\n", mib(m->gradients));
    fprintf(f, "  slots       %9.1f MiB\n", mib(m->slots));
    if (m->averages)
        fprintf(f, "  averages    %9.1f MiB\n", mib(m->averages));
    fprintf(f, "  constants   %9.1f MiB\n", mib(m->constants));
    fprintf(f, "  total       %9.1f MiB on the device\n", mib(m->total));
    fprintf(f, "  staging     %9.1f MiB on the host\n", mib(m->staging));
}

int pm_plan_counts_json(const struct pm_plan *p, struct cJSON *o)
{
    struct pm_counts c;
    int err = PM_OK;

    PM_TRY(pm_plan_counts(p, &c));
    if (pm_device_caps(p->device)->runs_shaders) {
        cJSON_AddNumberToObject(o, "dispatches", (double)c.dispatches);
        cJSON_AddNumberToObject(o, "barriers", (double)c.barriers);
        cJSON_AddNumberToObject(o, "segments", (double)c.segments);
    }
    cJSON_AddNumberToObject(o, "bytes_moved", (double)c.bytes_moved);
out:
    return err;
}

static void print_counts(const struct pm_plan *p, FILE *f)
{
    struct pm_counts c;

    if (pm_plan_counts(p, &c) < 0)
        return;
    fprintf(f, "  each run    ");
    if (pm_device_caps(p->device)->runs_shaders)
        fprintf(f, "%zu dispatches, %zu barriers, %zu segments, ", c.dispatches, c.barriers,
                c.segments);
    fprintf(f, "%.3f GB moved\n", (double)c.bytes_moved / 1e9);
}

void pm_plan_print(const struct pm_plan *p, FILE *f, bool verbose)
{
    struct pm_plan_memory m = pm_plan_memory(p);

    fprintf(f, "%s plan on %s: %d calls, batch %d x %d\n", p->options.name,
            pm_device_get_info(p->device)->name, m.calls, p->net->batch,
            p->options.micro_batches);
    print_memory(&m, p->blocks, f);
    print_counts(p, f);
    if (verbose)
        print_calls(p, f);
}
