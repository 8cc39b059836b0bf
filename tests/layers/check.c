/* check MODE [LAYER] [--device NAME] runs the cases of tests/layers/ against their references.
 *
 *   ref     compares each case's output, and the variables after update(), with the reference;
 *           allowed: ulps x 2^-24 x the sum of the terms' magnitudes
 *   grad    compares gradients with central differences of the reference; also: results do not
 *           change when only dx or only dw is computed, and accumulating calls add
 *   parity  compares the C function of each kernel call with every shader variant of the device
 *   bench   measures the large cases, each call and variant: CSV on standard output
 *   self    plants faults; each mode must find its own
 *
 * ref and grad run on the CPU or on --device. parity, bench and self need a device that runs
 * shaders (default: the first one that VK_DRIVER_FILES lists) and exit with 77 when there is none.
 * In all runs outputs start as NaN, guard words surround every buffer, and read-only buffers must
 * stay unchanged.
 *
 * This file holds ref, self and main; check_grad.c and check_parity.c hold the other modes. */
#include <assert.h>
#include <stdlib.h>

#include "check_modes.h"

#define PM_LAYER(name) extern const struct pm_layer_test pm_test_##name;
#include "layers/layers.def"
#undef PM_LAYER

static const struct entry entries[] = {
#define PM_LAYER(name) { #name, &pm_test_##name },
#include "layers/layers.def"
#undef PM_LAYER
};

static void fail_case(struct check *k, const struct entry *e, const struct check_case *c)
{
    k->failures++;
    printf("FAIL %s: \"%s\" of %s%s: %s\n", e->name, c->options, c->inputs,
           c->train ? " train" : "", pm_error_text());
}

/* ---- ref ------------------------------------------------------------------------------- */

static int compare(struct check *k, const char *what, const float *got,
                   const struct ref_array *want, double scale, double ulps)
{
    for (size_t i = 0; i < want->count; i++) {
        const double allowed = ulps * CHECK_EPSILON * want->mag[i] * scale;
        const double off = fabs(got[i] - want->v[i] * scale);

        k->values++;
        if (!(off <= allowed + 1e-37))
            return pm_fail(PM_EFAIL, "%s[%zu] is %.9g, the reference says %.9g, allowed +-%.3g",
                           what, i, got[i], want->v[i] * scale, allowed);
    }
    return PM_OK;
}

/* Compares output o; part is its index in the reference's y. Integers (argmax) are compared
 * exactly. */
static int compare_output(struct check *k, const struct subject *s, int o,
                          const struct ref_array *part)
{
    const struct pm_layer_test *t = s->entry->test;
    const struct pm_tensor y = s->ys[o];
    char have[64], want[64], name[16];

    if (!pm_shape_equal(y.shape, part->shape))
        return pm_fail(PM_EFAIL, "output %d is %s, the reference's %s", o,
                       pm_shape_text(y.shape, have), pm_shape_text(part->shape, want));
    if (y.type != PM_F32) {
        const char *data = (const char *)floats(s, y);

        for (size_t i = 0; i < part->count; i++) {
            const double got = y.type == PM_U8 ? ((const uint8_t *)data)[i]
                                               : ((const int32_t *)data)[i];
            k->values++;
            if (got != part->v[i])
                return pm_fail(PM_EFAIL, "output %d[%zu] is %.0f, the reference says %.0f", o, i,
                               got, part->v[i]);
        }
        return PM_OK;
    }
    snprintf(name, sizeof name, "output %d: y", o);
    return compare(k, name, floats(s, y), part, t->loss ? CHECK_SHARE : 1, or_default(t->ulps, 16));
}

static int compare_outputs(struct check *k, const struct subject *s, const struct ref *r)
{
    int err = PM_OK;
    size_t at = 0;

    if (s->outputs != r->outputs)
        return pm_fail(PM_EFAIL, "%d outputs, the reference has %d", s->outputs, r->outputs);
    for (int o = 0; o < r->outputs; o++) {
        const struct ref_array part = { r->out[o], pm_shape_count(r->out[o]), r->y.v + at,
                                        r->y.mag + at };

        PM_TRY(compare_output(k, s, o, &part));
        at += part.count;
    }
out:
    return err;
}

/* After update(): variables that the reference changes, and the others, which must be unchanged. */
static int compare_variables(struct check *k, const struct subject *s, const struct ref *r,
                             bool finite)
{
    int err = PM_OK;
    char what[32];

    for (int v = 0; v < r->vars; v++) {
        const float *got = floats(s, s->w[v]);

        snprintf(what, sizeof what, "variable %d", v);
        if (finite && r->after[v].count)
            PM_TRY(compare(k, what, got, &r->after[v], 1, or_default(s->entry->test->ulps, 16)));
        else
            for (size_t i = 0; i < r->var[v].count; i++)
                if (got[i] != (float)r->var[v].v[i])
                    PM_TRY(pm_fail(PM_EFAIL, "%s[%zu] has changed from %g to %g", what, i,
                                   r->var[v].v[i], got[i]));
    }
out:
    return err;
}

static int ref_once(struct check *k, const struct entry *e, const struct check_case *c, bool finite)
{
    int err = PM_OK;
    struct subject *s = NULL;
    struct ref r = { 0 };
    const struct build_options o = { .update = true, .flag = finite, .doctor = k->doctor };
    struct run_options run = { .accumulate = -1 };
    int step;

    PM_TRY(subject_build(e, c, &o, &s));
    ref_make(s, &r);
    e->test->reference(&r);
    /* The CPU runs call by call, which shows which call wrote where. A device runs all calls at
     * once, which tests its barriers. */
    step = k->device == k->cpu ? 1 : s->calls.call_count;
    for (; run.first < s->calls.call_count; run.first = run.last) {
        run.last = run.first + step;
        PM_TRY(subject_run(s, k->device, &run));
    }
    PM_TRY(compare_outputs(k, s, &r));
    PM_TRY(compare_variables(k, s, &r, finite));
out:
    ref_free(&r);
    subject_free(&s);
    return err;
}

int mode_ref(struct check *k, const struct entry *e, const struct check_case *c)
{
    int err = c->large ? PM_OK : ref_once(k, e, c, true);

    if (!err && !c->large && c->train)
        err = ref_once(k, e, c, false);
    return err;
}

/* ---- modes ----------------------------------------------------------------------------- */

static int run_cases(struct check *k, mode_fn mode, const char *layer)
{
    for (size_t i = 0; i < PM_COUNT(entries); i++)
        for (const struct check_case *c = entries[i].test->cases; c->options; c++) {
            if (layer && strcmp(layer, entries[i].name))
                continue;
            k->cases++;
            if (mode(k, &entries[i], c) < 0)
                fail_case(k, &entries[i], c);
        }
    return k->failures ? 1 : 0;
}

/* Faults that `self` plants into conv2d with a bias and relu6. Each mode must find its own. */
static struct pm_planned_call *find_call(struct subject *s, const char *kernel)
{
    for (int i = 0; i < s->calls.call_count; i++)
        if (!strcmp(s->calls.calls[i].kernel->name, kernel))
            return &s->calls.calls[i];
    return NULL;
}

static struct pm_kernel broken; /* copy of a row with another C function */
static void (*sound)(const struct pm_args *a, size_t begin, size_t end);

static void break_row(struct subject *s, const char *name,
                      void (*cpu)(const struct pm_args *a, size_t begin, size_t end))
{
    struct pm_planned_call *c = find_call(s, name);

    if (!c)
        return;
    broken = *c->kernel;
    sound = broken.cpu;
    broken.cpu = cpu;
    c->kernel = &broken;
}

static void little_off(const struct pm_args *a, size_t begin, size_t end)
{
    sound(a, begin, end);
    if (begin == 0)
        ((float *)a->buf[2])[0] += 1e-3f;
}

static void last_left_out(const struct pm_args *a, size_t begin, size_t end)
{
    sound(a, begin, end == a->count ? end - 1 : end);
}

static void one_too_many(const struct pm_args *a, size_t begin, size_t end)
{
    sound(a, begin, end);
    ((float *)a->buf[2])[a->count] = 1;
}

static void input_changed(const struct pm_args *a, size_t begin, size_t end)
{
    sound(a, begin, end);
    ((float *)a->buf[0])[0] += 1;
}

static void plant_little(struct subject *s) { break_row(s, "bias_act_fwd", little_off); }
static void plant_little_bwd(struct subject *s) { break_row(s, "bias_act_bwd", little_off); }
static void plant_last(struct subject *s) { break_row(s, "bias_act_fwd", last_left_out); }
static void plant_beyond(struct subject *s) { break_row(s, "bias_act_fwd", one_too_many); }
static void plant_input(struct subject *s) { break_row(s, "bias_act_fwd", input_changed); }

static int mode_self(struct check *k)
{
    static const struct check_case cases[] = {
        { "conv2d filters=4 activation=relu6", "2x5x5x3", .train = true },
    };
    static const struct {
        const char *name;
        mode_fn mode;
        void (*plant)(struct subject *s);
        bool vulkan;
    } faults[] = {
        { "ref: an output off by 1e-3", mode_ref, plant_little },
        { "ref: an output not written", mode_ref, plant_last },
        { "ref: a write outside", mode_ref, plant_beyond },
        { "ref: a read-only buffer changed", mode_ref, plant_input },
        { "grad: a gradient off by 1e-3", mode_grad, plant_little_bwd },
        { "parity: C and shader differ", mode_parity, plant_little, true },
        { "parity: an output not written", mode_parity, plant_last, true },
    };
    const struct entry *e = NULL;
    int missed = 0;

    for (size_t i = 0; i < PM_COUNT(entries); i++)
        if (!strcmp(entries[i].name, "conv2d"))
            e = &entries[i];
    assert(e);
    for (size_t i = 0; i < PM_COUNT(faults); i++) {
        struct check mine = { .cpu = k->cpu, .device = faults[i].vulkan ? k->device : k->cpu };

        if (faults[i].vulkan && k->device == k->cpu) {
            printf("skipped, no device that runs shaders: %s\n", faults[i].name);
            continue;
        }
        if (faults[i].mode(&mine, e, cases) < 0) {
            printf("MISSED (fails without a fault): %s: %s\n", faults[i].name, pm_error_text());
            missed++;
            continue;
        }
        mine.doctor = faults[i].plant;
        const bool caught = faults[i].mode(&mine, e, cases) < 0;

        printf("%s: %s: %s\n", caught ? "caught" : "MISSED", faults[i].name,
               caught ? pm_error_text() : "");
        missed += !caught;
    }
    return missed ? 1 : 0;
}

/* ---- main ------------------------------------------------------------------------------ */

static int open_device(const struct pm_device_info *list, size_t count, const char *name,
                       struct pm_device **out)
{
    const struct pm_device_options options = { .validate = getenv("PM_VALIDATE") != NULL };

    for (size_t i = 0; i < count; i++)
        if (!strcmp(list[i].address, name) && list[i].usable)
            return pm_device_open(&list[i], &options, out);
    return pm_fail(PM_EDEVICE, "%s: no such device", name);
}

static int usage(void)
{
    fprintf(stderr, "check ref|grad|parity|bench|self [LAYER] [--device cpu|vulkan:N|opencl:N]\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "", *layer = NULL, *name = NULL;
    struct pm_device_info *list = NULL;
    struct check k = { 0 };
    size_t count;
    int status = 1;

    for (int i = 2; i < argc; i++)
        if (!strcmp(argv[i], "--device") && i + 1 < argc)
            name = argv[++i];
        else
            layer = argv[i];
    const mode_fn fn = !strcmp(mode, "ref") ? mode_ref : !strcmp(mode, "grad") ? mode_grad
                     : !strcmp(mode, "parity") ? mode_parity
                     : !strcmp(mode, "bench") ? mode_bench : NULL;
    const bool self = !strcmp(mode, "self");

    if (!fn && !self)
        return usage();
    if (!name)
        name = fn == mode_ref || fn == mode_grad || fn == mode_bench ? "cpu" : "vulkan:0";
    if (pm_device_list(&list, &count) < 0 || open_device(list, count, "cpu", &k.cpu) < 0)
        goto out;
    if (!strcmp(name, "cpu") || (open_device(list, count, name, &k.device) < 0 && self))
        k.device = k.cpu;
    if (!k.device) {
        printf("skipped: %s\n", pm_error_text());
        status = 77;
        goto out;
    }
    if (fn == mode_bench)
        printf("layer,case,kernel,variant,ms,GB/s,GFLOP/s\n");
    status = self ? mode_self(&k) : run_cases(&k, fn, layer);
    if (fn && fn != mode_bench)
        printf("check %s on %s: %d cases, %ld values compared, %d failures%s\n", mode,
               pm_device_get_info(k.device)->name, k.cases, k.values, k.failures,
               fn == mode_grad && k.kinks ? ", some differences crossed kinks" : "");
    if (fn && k.cases == 0)
        status = usage();
    if (pm_device_messages())
        printf("%llu validation messages\n", (unsigned long long)pm_device_messages()), status = 1;
out:
    if (status == 1 && !k.device)
        fprintf(stderr, "check: %s\n", pm_error_text());
    if (k.device != k.cpu)
        pm_device_close(&k.device);
    pm_device_close(&k.cpu);
    pm_free(list);
    return status;
}
