/* Moving averages of batch norm over several clones: with run.batch_norm_update "first" they
 * follow the first clone's part of the batch, with "all" every part in turn, with "last" the last
 * clone's part. All are compared with the formula in double precision, with unequal parts, several
 * steps, a net that runs twice over its variables, and averages of variables. A step that is not
 * finite leaves them unchanged on every clone. With micro-batches they follow the last one. Ranges
 * of quantised layers are refused when they cannot be combined. */
#include "clones/clones.h"
#include "clones/clones_setup.h"
#include "clones/moving.h"

#include <math.h>
#include <string.h>

enum { BATCH = 5, C = 3, STEPS = 4, CLONES = 2 };

/* Batch norm on the pictures themselves, so that its statistics are those of the inputs. ctx: a
 * second pass, over pictures of twice the values. Trained layers follow. */
static int build(void *ctx, int batch, int height, int width, struct pm_net **out)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *images =
        pm_net_input(net, "images", PM_SHAPE4(batch, height, width, C), PM_F32);
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(batch), PM_I32);
    struct pm_node *x = pm_net_add(net, "norm", images, "batch_norm decay=0.75"), *twice;

    if (ctx) {
        twice = pm_net_add(net, "twice", images, "affine scale=2");
        net->pass = "second";
        twice = pm_net_add(net, "norm", twice, "batch_norm decay=0.75");
        net->pass = NULL;
        x = pm_net_add_many(net, "sum", (struct pm_node *[]){ x, twice }, 2, "add");
    }
    x = pm_net_add(net, "logits", x, "fully_connected units=2");
    pm_net_add_many(net, "loss", (struct pm_node *[]){ x, labels }, 2, "softmax_cross_entropy");
    *out = net;
    return net->error;
}

/* ctx: a layer after the pictures. */
static int build_ranges(void *ctx, int batch, struct pm_net **out)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(batch, 2, 2, C), PM_F32);
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(batch), PM_I32);
    struct pm_node *x = pm_net_add(net, "quant", images, "%s", (const char *)ctx);

    x = pm_net_add(net, "logits", x, "fully_connected units=2");
    pm_net_add_many(net, "loss", (struct pm_node *[]){ x, labels }, 2, "softmax_cross_entropy");
    *out = net;
    return net->error;
}

static const struct pm_frame frame = { 2, 2 };
static const struct pm_field fields[] = {
    { "images", PM_F32, { 3, { 2, 2, C } }, 0 },
    { "labels", PM_I32, { 0 }, 0 },
};

static float pixel(int step, int i)
{
    struct pm_rng r = pm_rng_make(3, 8, (uint32_t)step, (uint32_t)i);

    return (float)(4 * pm_rng_uniform(&r) - 1 + i % C);
}

/* Mean and variance (divided by n - 1) of a channel over some of the pictures. */
static void statistics(int step, int first, int count, int channel, double *mean, double *variance)
{
    const int n = count * 4;
    double sum = 0, square = 0;

    for (int i = 0; i < n; i++)
        sum += pixel(step, first * 4 * C + i * C + channel);
    *mean = sum / n;
    for (int i = 0; i < n; i++)
        square += pow(pixel(step, first * 4 * C + i * C + channel) - *mean, 2);
    *variance = square / (n - 1);
}

/* Updates [C] means, then [C] variances by `count` pictures of the step, from number `first`. */
static void follow_part(int step, int first, int count, bool twice, double *moving)
{
    for (int pass = 0; pass < (twice ? 2 : 1); pass++)
        for (int c = 0; c < C; c++) {
            const double factor = pass ? 2 : 1;
            double mean, variance;

            statistics(step, first, count, c, &mean, &variance);
            moving[c] += 0.25 * (factor * mean - moving[c]);
            moving[C + c] += 0.25 * (factor * factor * variance - moving[C + c]);
        }
}

/* The same by each of these parts in turn. */
static void follow(int step, const int *parts, int count, bool twice, double *moving)
{
    for (int k = 0, first = 0; k < count; first += parts[k++])
        follow_part(step, first, parts[k], twice, moving);
}

static const float *values_of(const struct pm_variables *v, struct pm_buffer *block, float *buf,
                              const char *name)
{
    for (int i = 0; i < v->count; i++)
        if (strcmp(v->list[i].name, name) == 0) {
            check(pm_buffer_read(v->device, block, v->offset[i], buf, C * sizeof *buf));
            return buf;
        }
    fail_msg("no variable is called %s", name);
    return NULL;
}

static void expect(const struct pm_variables *v, struct pm_buffer *block, const double *moving)
{
    float buf[C];

    for (int k = 0; k < 2; k++) {
        const float *is = values_of(v, block, buf, k ? "norm/moving_variance" : "norm/moving_mean");

        for (int c = 0; c < C; c++)
            if (!(fabs(is[c] - moving[k * C + c]) <= 1e-5))
                fail_msg("%s %d is %.9g, not %.9g", k ? "variance" : "mean", c, (double)is[c],
                         moving[k * C + c]);
    }
}

static struct pm_clones *make(int from, bool twice, int clones, int micro_batches)
{
    const struct pm_optimizer *row = pm_optimizer_find("momentum");
    static char cfg[64];
    struct pm_clone_spec specs[CLONES];
    struct pm_clones *c = NULL;

    pm_opts_defaults(row->opts, cfg, NULL);
    for (int i = 0; i < clones; i++)
        specs[i] = (struct pm_clone_spec){ .info = cpu(), .share = i ? 2 : 3, .threads = 1 };
    check(pm_clones_create(
        &(struct pm_clones_options){ .specs = specs,
                                     .count = clones,
                                     .batch = BATCH,
                                     .micro_batches = micro_batches,
                                     .slots = 1,
                                     .frames = &frame,
                                     .frames_count = 1,
                                     .build = build,
                                     .ctx = twice ? &twice : NULL,
                                     .fields = fields,
                                     .fields_count = 2,
                                     .batch_norm_update = from,
                                     .update = { .optimizer = row, .cfg = cfg, .averages = true } },
        &c));
    check(pm_optimizer_init(row, cfg, pm_clones_master(c), 3));
    check(pm_clones_scatter(c));
    return c;
}

/* bad: one input of the last clone's part is not a number. */
static void step(struct pm_clones *c, int number, bool bad)
{
    static float images[BATCH * 4 * C];
    static int32_t labels[BATCH] = { 0, 1, 1, 0, 1 };
    const struct pm_batch batch = { .field = (void *[]){ images, labels }, .valid = BATCH,
                                    .frame = frame };
    const uint64_t allocations = pm_alloc_count();
    struct pm_step_result r;

    for (int i = 0; i < BATCH * 4 * C; i++)
        images[i] = pixel(number, i);
    if (bad)
        images[BATCH * 4 * C - 1] = NAN;
    check(pm_clones_step(c, 0, &batch, &(struct pm_step){
        .step = (uint32_t)number, .lr = 0.1f, .loss_scale = 1, .ema_decay = 0.5f }));
    check(pm_clones_collect(c, 0, &r));
    assert_true(r.finite == !bad);
    assert_true(bad || (isfinite(r.loss) && r.loss > 0));
    assert_int_equal(pm_alloc_count(), allocations);
}

/* from: enum pm_batch_norm_update. */
static void run(int from, bool twice, int clones)
{
    static const int parts[CLONES] = { 3, 2 }, whole[1] = { BATCH };
    struct pm_clones *c = make(from, twice, clones, 1);
    struct pm_variables *master = pm_clones_master(c), *averaged;
    double moving[2 * C] = { 0, 0, 0, 1, 1, 1 }, average[2 * C] = { 0, 0, 0, 1, 1, 1 };

    for (int s = 0; s < STEPS; s++) {
        step(c, s, false);
        if (clones > 1 && from == PM_BATCH_NORM_LAST)
            follow_part(s, 3, 2, twice, moving);
        else
            follow(s, clones > 1 ? parts : whole,
                   clones > 1 && from == PM_BATCH_NORM_ALL ? CLONES : 1, twice, moving);
        for (int i = 0; i < 2 * C; i++)
            average[i] += 0.5 * (moving[i] - average[i]);
    }
    check(pm_clones_averaged(c, &averaged));
    expect(averaged, averaged->values, average);
    check(pm_clones_gather(c));
    expect(master, master->values, moving);
    /* unless they follow the first clone, every clone holds the same */
    for (int i = 0; i < (from == PM_BATCH_NORM_FIRST ? 1 : clones); i++) {
        struct pm_variables *v = pm_clones_variables(c, i);

        expect(v, v->values, moving);
    }
    pm_clones_destroy(&c);
}

static void first(void **state)
{
    (void)state;
    run(PM_BATCH_NORM_FIRST, false, CLONES);
}

static void all(void **state)
{
    (void)state;
    run(PM_BATCH_NORM_ALL, false, CLONES);
}

static void last(void **state)
{
    (void)state;
    run(PM_BATCH_NORM_LAST, false, CLONES);
    run(PM_BATCH_NORM_LAST, true, CLONES);
}

static void all_of_two_passes(void **state)
{
    (void)state;
    run(PM_BATCH_NORM_ALL, true, CLONES);
}

/* A step that is not finite, between two steps that count. */
static void not_finite(void **state)
{
    static const int parts[CLONES] = { 3, 2 };
    struct pm_clones *c = make(PM_BATCH_NORM_ALL, false, CLONES, 1);
    double moving[2 * C] = { 0, 0, 0, 1, 1, 1 }, average[2 * C] = { 0, 0, 0, 1, 1, 1 };
    struct pm_variables *averaged;

    (void)state;
    for (int s = 0; s < 3; s++) {
        step(c, s, s == 1);
        if (s != 1)
            follow(s, parts, CLONES, false, moving);
        for (int i = 0; i < 2 * C && s != 1; i++)
            average[i] += 0.5 * (moving[i] - average[i]);
        expect(pm_clones_master(c), pm_clones_master(c)->values, moving);
    }
    check(pm_clones_averaged(c, &averaged));
    expect(averaged, averaged->values, average);
    for (int i = 0; i < CLONES; i++)
        expect(pm_clones_variables(c, i), pm_clones_variables(c, i)->values, moving);
    pm_clones_destroy(&c);
}

/* With one device all settings are the same. */
static void alone(void **state)
{
    (void)state;
    run(PM_BATCH_NORM_ALL, false, 1);
    run(PM_BATCH_NORM_FIRST, true, 1);
    run(PM_BATCH_NORM_LAST, false, 1);
}

/* With micro-batches of one picture the last one's statistics are followed. */
static void last_part(void **state)
{
    struct pm_clones *c = make(PM_BATCH_NORM_FIRST, false, 1, BATCH);
    double moving[2 * C] = { 0, 0, 0, 1, 1, 1 }, mean, variance;

    (void)state;
    for (int s = 0; s < STEPS; s++) {
        step(c, s, false);
        for (int k = 0; k < C; k++) {
            statistics(s, BATCH - 1, 1, k, &mean, &variance);
            moving[k] += 0.25 * (mean - moving[k]);
            moving[C + k] += 0.25 * (variance - moving[C + k]);
        }
    }
    expect(pm_clones_master(c), pm_clones_master(c)->values, moving);
    pm_clones_destroy(&c);
}

/* The formula does not hold for ranges. They are allowed on one device, with whole batches. */
static void ranges(void **state)
{
    static const char *const layer[] = { "batch_norm", "fake_quant",
                                         "quantized_conv2d filters=2 kernel=1" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(layer); i++) {
        struct pm_net *net;
        const int refused = i > 0 ? PM_ECONFIG : PM_OK;

        check(build_ranges((void *)layer[i], BATCH, &net));
        check(pm_moving_check(net, false, 1));
        assert_int_equal(pm_moving_check(net, true, 1), refused);
        if (refused)
            assert_non_null(strstr(pm_error_text(), "quant: run.batch_norm_update \"all\""));
        assert_int_equal(pm_moving_check(net, false, 2), refused);
        if (refused)
            assert_non_null(strstr(pm_error_text(), "quant: run.micro_batches: 2"));
        pm_net_destroy(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first),
        cmocka_unit_test(all),
        cmocka_unit_test(last),
        cmocka_unit_test(all_of_two_passes),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(alone),
        cmocka_unit_test(last_part),
        cmocka_unit_test(ranges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
