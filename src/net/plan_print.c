/* plan_print: what a plan takes and does, for people. */
#include "net/plan_private.h"

struct pm_plan_memory pm_plan_memory(const struct pm_plan *p)
{
    struct pm_plan_memory m = { .peak_live = p->peak_live, .constants = p->constant_bytes,
                                .calls = p->calls->call_count, .values = p->calls->value_count };

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
    return m;
}

static const char *const phase_names[] = { "forward", "backward", "update" };
static const char *const kind_names[] = { "activation", "scratch", "variable", "gradient", "slot",
                                          "average", "input", "output", "constant" };

static void print_calls(const struct pm_plan *p, FILE *f)
{
    const struct pm_calls *c = p->calls;

    fprintf(f, "%5s %-8s %-24s %-44s %s\n", "call", "phase", "kernel", "layer", "buffers");
    for (int i = 0; i < c->call_count; i++) {
        const struct pm_planned_call *call = &c->calls[i];
        struct pm_buf_spec spec[PM_MAX_BUFS];
        int bufs = pm_kernel_bufs(call->kernel, spec);

        fprintf(f, "%5d %-8s %-24s %-44s", i, phase_names[call->phase], call->kernel->name,
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

        if (v->first < 0 || v->alias >= 0)
            continue;
        fprintf(f, "%5d %-10s %-16s %10zu %5d-%-6d %d:%zu %s\n", i, kind_names[v->kind],
                pm_shape_text(v->shape, shape), v->bytes, v->first, v->last, v->block, v->offset,
                v->name);
    }
}

void pm_plan_print(const struct pm_plan *p, FILE *f, bool verbose)
{
    struct pm_plan_memory m = pm_plan_memory(p);
    char a[24], b[24];

    fprintf(f, "%s plan on %s: %d calls, batch %d x %d\n", p->options.name,
            pm_device_get_info(p->device)->name, m.calls, p->net->batch,
            p->options.micro_batches);
    fprintf(f, "  activations %10s in %d buffer%s (largest sum of live values %s)\n",
            pm_bytes_text(m.activations, a), p->blocks, p->blocks == 1 ? "" : "s",
            pm_bytes_text(m.peak_live, b));
    fprintf(f, "  variables   %10s\n", pm_bytes_text(m.variables, a));
    fprintf(f, "  gradients   %10s\n", pm_bytes_text(m.gradients, a));
    fprintf(f, "  slots       %10s\n", pm_bytes_text(m.slots, a));
    if (m.averages)
        fprintf(f, "  averages    %10s\n", pm_bytes_text(m.averages, a));
    fprintf(f, "  constants   %10s\n", pm_bytes_text(m.constants, a));
    fprintf(f, "  staging     %10s on the host\n", pm_bytes_text(m.staging, a));
    if (verbose)
        print_calls(p, f);
}
