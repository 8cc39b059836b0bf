/* Metrics of training batches: every part of the batch, on clones and in micro-batches, is
 * counted with its own labels. Running metrics accumulate from batch to batch. Ignored pixels do
 * not count. */
#include "clones/clones_setup.h"
#include "observers/train_metrics.h"

#include <math.h>
#include <string.h>

enum { BATCH = 6, SIDE = 5, K = 3, IGNORE = 255, STEPS = 3, PIXELS = SIDE * SIDE };

/* The predicted class is the picture's largest channel. The loss is computed from other values. */
static int build(void *ctx, int batch, int height, int width, struct pm_net **out)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *images =
        pm_net_input(net, "images", PM_SHAPE4(batch, height, width, K), PM_F32);
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE3(batch, height, width), PM_I32);
    struct pm_node *x = pm_net_add(net, "conv", images, "conv2d filters=3 kernel=1");

    (void)ctx;
    pm_net_add_many(net, "loss", (struct pm_node *[]){ x, labels }, 2,
                    "softmax_cross_entropy ignore_label=%d", IGNORE);
    pm_net_add(net, "said", images, "argmax");
    *out = net;
    return net->error;
}

static const struct pm_frame frame = { SIDE, SIDE };
static const struct pm_field fields[] = {
    { "images", PM_F32, { 3, { SIDE, SIDE, K } }, 0 },
    { "labels", PM_I32, { 2, { SIDE, SIDE } }, IGNORE },
};

struct data {
    float images[BATCH * PIXELS * K];
    int32_t labels[BATCH * PIXELS];
};

/* Three of four pixels are predicted correctly. */
static void make_data(int step, struct data *d)
{
    struct pm_rng r = pm_rng_make(1, 2, (uint32_t)step, 0);

    for (int i = 0; i < BATCH * PIXELS; i++) {
        const int label = (int)pm_rng_int(&r, 0, K - 1);
        const int said = pm_rng_int(&r, 0, 3) ? label : (int)pm_rng_int(&r, 0, K - 1);

        d->labels[i] = pm_rng_int(&r, 0, 4) ? label : IGNORE;
        for (int c = 0; c < K; c++)
            d->images[i * K + c] = (float)pm_rng_uniform(&r) + (c == said ? 1 : 0);
    }
}

static int said_of(const float *pixel)
{
    int best = 0;

    for (int c = 1; c < K; c++)
        best = pixel[c] > pixel[best] ? c : best;
    return best;
}

/* The metrics of the steps from..to, computed directly. */
static void expected(int from, int to, double *miou, double *accuracy)
{
    double both[K] = { 0 }, either[K] = { 0 }, right = 0, count = 0, sum = 0;
    struct data d;

    for (int s = from; s <= to; s++) {
        make_data(s, &d);
        for (int i = 0; i < BATCH * PIXELS; i++) {
            const int is = d.labels[i], said = said_of(d.images + i * K);

            if (is == IGNORE)
                continue;
            both[is] += is == said;
            either[is]++;
            either[said] += is != said;
            right += is == said;
            count++;
        }
    }
    for (int c = 0; c < K; c++)
        sum += both[c] / either[c];
    *miou = sum / K;
    *accuracy = right / count;
}

static const struct pm_train_metric metrics[] = {
    { PM_TRAIN_MIOU, false, "miou", "miou" }, { PM_TRAIN_ACCURACY, false, "right", "right" },
    { PM_TRAIN_MIOU, true, "last_miou", "last_miou" },
    { PM_TRAIN_ACCURACY, true, "last_right", "last_right" },
};

static void run(int clones, int micro_batches)
{
    const struct pm_train_output said = { .node = "said", .field = 1, .count = PIXELS, .classes = K,
                                          .ignore = IGNORE, .metrics = metrics,
                                          .metric_count = PM_COUNT(metrics) };
    const struct pm_optimizer *row = pm_optimizer_find("sgd");
    struct pm_train_metrics *m = pm_train_metrics_create(said, BATCH, 2);
    struct pm_clone_spec specs[2];
    struct pm_clones *c = NULL;
    char cfg[64];
    struct data d;

    assert_non_null(m);
    pm_opts_defaults(row->opts, cfg, NULL);
    for (int i = 0; i < clones; i++)
        specs[i] = (struct pm_clone_spec){ .info = cpu(), .share = 2 - i, .threads = 1 };
    check(pm_clones_create(&(struct pm_clones_options){
        .specs = specs, .count = clones, .batch = BATCH, .micro_batches = micro_batches, .slots = 2,
        .frames = &frame, .frames_count = 1, .build = build, .fields = fields, .fields_count = 2,
        .outputs = (const char *const[]){ "said", NULL },
        .update = { .optimizer = row, .cfg = cfg } }, &c));
    check(pm_optimizer_init(row, cfg, pm_clones_master(c), 3));
    check(pm_clones_scatter(c));
    for (int s = 0; s < STEPS; s++) {
        const struct pm_batch batch = { .field = (void *[]){ d.images, d.labels }, .valid = BATCH,
                                        .examples = BATCH, .fields = fields, .frame = frame };
        struct pm_train_values v;
        struct pm_step_result r;
        double miou, accuracy;

        make_data(s, &d);
        pm_train_metrics_batch(m, s % 2, &batch);
        check(pm_clones_step(c, s % 2, &batch, &(struct pm_step){ .lr = 0.1f, .loss_scale = 1 }));
        memset(&d, 0, sizeof d); /* the loader reuses the batch */
        check(pm_clones_collect(c, s % 2, &r));
        pm_train_metrics_count(m, s % 2, c);
        pm_train_metrics_finish(m, &v);
        expected(0, s, &miou, &accuracy);
        assert_float_equal(v.v[0], miou, 1e-12);
        assert_float_equal(v.v[1], accuracy, 1e-12);
        expected(s, s, &miou, &accuracy);
        assert_float_equal(v.v[2], miou, 1e-12);
        assert_float_equal(v.v[3], accuracy, 1e-12);
        assert_true(miou > 0.5 && miou < 0.9);
    }
    pm_clones_destroy(&c);
    pm_train_metrics_destroy(&m);
}

static void parts(void **state)
{
    (void)state;
    run(1, 1);
    run(1, 3);
    run(2, 1);
    run(2, 2);
}

static void none(void **state)
{
    (void)state;
    const struct pm_train_output nothing = { .classes = K };
    struct pm_train_metrics *m = pm_train_metrics_create(nothing, BATCH, 2);

    assert_null(m);
    pm_train_metrics_destroy(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(parts), cmocka_unit_test(none) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
