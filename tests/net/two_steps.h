/* Shared by the tests of whole plans: runs two training steps of a net without an optimizer and
 * records all results. */
#ifndef TWO_STEPS_H
#define TWO_STEPS_H

#include "named_net.h"

#include <pumice/plan.h>

#include <math.h>

static inline void check(int err)
{
    if (err < 0)
        fail_msg("%s", pm_error_text());
}

/* The named net, or the layer list in JSON, for 10 classes, with a loss on each head. */
static inline struct pm_net *net_with_losses(const char *name, int batch, int size)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net(name, batch, size, size, 10, NULL, &heads);

    check(net->error);
    add_head_losses(net, &heads);
    check(net->error);
    return net;
}

struct two_steps {
    double loss[2];
    char *bits;     /* gradients, then all variables; freed with pm_free */
    size_t bytes;
    int again;      /* calls that recompute values */
};

static inline void update_averages(struct pm_calls *c, void *ctx)
{
    static const uint32_t finite = 1;

    (void)ctx;
    pm_calls_layer_updates(c, pm_calls_constant(c, "finite", &finite, PM_SHAPE1(1), PM_U32));
}

/* Examples are numbered across the micro-batches. */
static inline void fill_micro_batch(struct pm_plan *p, const struct pm_net *net, int m)
{
    size_t count = pm_shape_count(pm_net_find(net, "images")->out_shape);
    float *images = pm_plan_input(p, 0, "images", m);
    int32_t *labels = pm_plan_input(p, 0, "labels", m);

    for (size_t i = 0; i < count; i++)
        images[i] = (float)(((i + (size_t)m * count) * 2654435761u) % 1000) / 500 - 1;
    for (int i = 0; i < net->batch; i++)
        labels[i] = (i + m * net->batch) % 10;
}

static inline struct two_steps two_steps(struct pm_device *device, struct pm_net *net,
                                         int micro_batches, enum pm_recompute recompute)
{
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;
    struct two_steps r = { 0 };

    check(pm_variables_create(device, net, true, NULL, &v));
    check(pm_variables_allocate(v));
    check(pm_variables_init(v, 5, NULL));
    check(pm_plan_create(net, device, v, &(struct pm_plan_options){
        .train = true, .loss_share = 1, .micro_batches = micro_batches, .recompute = recompute,
        .update = update_averages, .slots = 1 }, &plan));
    check(pm_plan_load(plan));
    for (uint32_t i = 0; i < 2; i++) {
        for (int m = 0; m < micro_batches; m++)
            fill_micro_batch(plan, net, m);
        struct pm_step *step = pm_plan_step(plan, 0);
        if (step)
            *step = (struct pm_step){ .step = i, .seed_low = 3, .loss_scale = 1 };
        check(pm_plan_submit(plan, 0));
        check(pm_plan_wait(plan, 0));
        r.loss[i] = pm_plan_loss(plan, 0);
    }
    r.again = pm_plan_memory(plan).again;
    r.bytes = v->gradient_bytes + v->bytes;
    r.bits = pm_malloc(r.bytes);
    check(pm_buffer_read(device, v->grads, 0, r.bits, v->gradient_bytes));
    check(pm_buffer_read(device, v->values, 0, r.bits + v->gradient_bytes, v->bytes));
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    return r;
}

/* Asserts that the values of `got` differ from those of `want` by at most `allowed` times the
 * largest value, and that `again`, which recomputes values, has the bits of `got`. Frees all
 * three. */
static inline void same_results(struct two_steps want, struct two_steps got,
                                struct two_steps again, double allowed)
{
    const float *a = (const float *)want.bits, *b = (const float *)got.bits;
    double largest = 0, difference = 0;

    assert_int_equal(got.bytes, want.bytes);
    for (size_t i = 0; i < want.bytes / sizeof *a; i++) {
        largest = fmax(largest, fabs((double)a[i]));
        difference = fmax(difference, fabs((double)a[i] - b[i]));
    }
    print_message("largest value %.3g, largest difference %.2g\n", largest, difference);
    assert_true(difference <= allowed * largest);
    assert_true(again.again > 0);
    assert_memory_equal(again.bits, got.bits, got.bytes);
    pm_free(want.bits);
    pm_free(got.bits);
    pm_free(again.bits);
}

/* Opens the device with this name, with the validation layer if asked. NULL when this machine
 * lacks it. */
static inline struct pm_device *device_called(const char *name, bool validate)
{
    struct pm_device_info *list;
    struct pm_device *d = NULL;
    size_t count, index;
    const struct pm_device_options options = { .threads = 2, .validate = validate };

    check(pm_device_list(&list, &count));
    if (pm_device_find(list, count, name, "test", &index) == PM_OK)
        check(pm_device_open(&list[index], &options, &d));
    else
        print_message("%s\n", pm_error_text());
    pm_free(list);
    return d;
}

#endif
