/* recording: what the backends that run shaders do alike when they make a program from calls. */
#include "device/pipelines.h"

enum { SMALL_OUT = 64 << 10 };

/* ---- arranging ---------------------------------------------------------------------- */

static struct pm_arrange_input arrange_input(const struct pm_shader_device *d,
                                             const struct pm_program_desc *desc,
                                             const struct pm_picks *const *picks,
                                             const bool (*whole)[PM_MAX_DISPATCHES])
{
    return (struct pm_arrange_input){ .desc = desc, .picks = picks, .whole = whole,
                                      .flops = d->flops, .bytes = d->bytes,
                                      .segment_seconds = d->segment_seconds };
}

void pm_arrange_picked(const struct pm_shader_device *d, const struct pm_program_desc *desc,
                       const struct pm_picked *picked, struct pm_arrangement *out,
                       struct pm_counts *counts)
{
    const size_t n = desc->calls_count;
    const struct pm_picks **picks = pm_calloc(n + 1, sizeof *picks);
    bool (*whole)[PM_MAX_DISPATCHES] = pm_calloc(n + 1, sizeof *whole);
    struct pm_arrange_input in = arrange_input(d, desc, picks, whole);

    for (size_t i = 0; i < n; i++) {
        picks[i] = &picked[i].picks;
        for (int k = 0; k < picks[i]->count; k++)
            whole[i][k] = picked[i].pipeline[k]->module.uses_group_count;
    }
    pm_arrange(&in, out);
    *counts = out->counts;
    if (desc->timed) {
        pm_arrangement_free(out);
        in.timed = true;
        pm_arrange(&in, out);
    }
    pm_free(picks);
    pm_free(whole);
}

int pm_shader_program_count(struct pm_device *base, const struct pm_program_desc *desc,
                            struct pm_counts *out)
{
    int err = PM_OK;
    struct pm_shader_device *d = (struct pm_shader_device *)base;
    const size_t n = desc->calls_count;
    struct pm_picks *picked = pm_calloc(n + 1, sizeof *picked);
    const struct pm_picks **picks = pm_calloc(n + 1, sizeof *picks);
    bool (*whole)[PM_MAX_DISPATCHES] = pm_calloc(n + 1, sizeof *whole);
    const struct pm_arrange_input in = arrange_input(d, desc, picks, whole);
    struct pm_arrangement arrangement;

    for (size_t i = 0; i < n; i++) {
        picks[i] = &picked[i];
        PM_TRY(pm_pick_only(d, &desc->calls[i], &picked[i], whole[i]));
    }
    pm_arrange(&in, &arrangement);
    *out = arrangement.counts;
    pm_arrangement_free(&arrangement);
out:
    pm_free(picked);
    pm_free(picks);
    pm_free(whole);
    return err;
}

/* ---- names -------------------------------------------------------------------------- */

void pm_name_calls(struct pm_arena *arena, const struct pm_program_desc *desc,
                   const struct pm_picked *picked, struct pm_call_names *out)
{
    const size_t n = desc->calls_count;

    out->calls_count = n;
    out->program = pm_arena_strdup(arena, desc->name ? desc->name : "program");
    out->variants = pm_arena_alloc(arena, (n + 1) * sizeof *out->variants);
    out->labels = pm_arena_alloc(arena, (n + 1) * sizeof *out->labels);
    for (size_t i = 0; i < n; i++) {
        const struct pm_bound_call *c = &desc->calls[i];

        out->variants[i] = picked[i].picks.variant;
        out->labels[i] = pm_arena_printf(arena, "%s (%s)", c->label ? c->label : "",
                                         c->kernel->name);
    }
}

int pm_blame(int err, const struct pm_call_names *names, const struct pm_submission *submissions,
             size_t count, const uint64_t *value, uint64_t reached)
{
    char text[512];

    if (err != PM_ELOST)
        return err;
    snprintf(text, sizeof text, "%s", pm_error_text());
    for (size_t i = 0; i < count && names->calls_count > 0; i++)
        if (value[i] == 0 || value[i] > reached)
            return pm_fail(PM_ELOST, "%s; in %s, submission %zu of %zu, calls %s to %s", text,
                           names->program, i + 1, count, names->labels[submissions[i].first],
                           names->labels[submissions[i].last]);
    return pm_fail(PM_ELOST, "%s; in %s", text, names->program);
}

/* ---- outputs ------------------------------------------------------------------------ */

static bool overlap(const struct pm_place *p, const struct pm_place *q)
{
    return q->buffer && q->buffer == p->buffer && q->offset < p->offset + p->size &&
           p->offset < q->offset + q->size;
}

bool pm_copied_beside(const struct pm_program_desc *desc, size_t out)
{
    const struct pm_place *p = &desc->out[out];

    if (p->size < SMALL_OUT || desc->timed)
        return false;
    for (size_t i = desc->out_after[out]; i < desc->calls_count; i++) {
        const struct pm_bound_call *c = &desc->calls[i];
        struct pm_buf_spec spec[PM_MAX_BUFS];
        int bufs = pm_kernel_bufs(c->kernel, spec);

        for (int k = 0; k < bufs; k++)
            if (pm_access_writes(spec[k].access) && overlap(p, &c->buf[k]))
                return false;
    }
    return true;
}
