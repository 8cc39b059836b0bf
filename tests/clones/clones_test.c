/* Several clones, unequal shares and micro-batches take the same steps as one clone, with
 * dropout. Every loss is reported separately and smoothed. The loss decreases, a frozen variable
 * keeps its bits, and steps allocate nothing.
 *
 * Sums in another order have other roundings. A rounding can select another maximum of a pooling
 * window, or switch a ReLU on or off. The gradient then differs by far more than a rounding. With
 * LeNet, this happens in about 1 of 20 pairs of runs (70 dropout seeds, 12 steps, rate 0.05), and
 * half of these pairs separate. So the tests compare runs that have no such choice:
 *   a net without corners (tanh, average pooling) trains;
 *   LeNet (ReLU, maximum pooling) stays at coarse values, since the rate is 0. Its forward pass is
 *   exact, so all choices are equal. The momentum collects the gradients of all batches. */
#include "clones/clones_setup.h"
#include "observers/loss_averages.h"

#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { BATCH = 12, SIDE = 12, CLASSES = 4, STEPS = 12 };

static struct pm_node *add_lenet(struct pm_net *net, struct pm_node *images)
{
    const struct pm_net_row *row = pm_net_row_find("lenet");
    char *cfg = pm_arena_alloc(net->arena, row->cfg_size);
    struct pm_heads heads = { 0 };

    pm_opts_defaults(row->opts, cfg, net->arena);
    row->build(net, images, CLASSES, cfg, &heads);
    return pm_heads_main(&heads);
}

/* LeNet with tanh in place of ReLU, and with means in place of maxima. */
static struct pm_node *add_smooth(struct pm_net *net, struct pm_node *x)
{
    x = pm_net_add(net, "conv1", x, "conv2d filters=32 kernel=5 activation=tanh "
                                    "weights_init=truncated(0.1)");
    x = pm_net_add(net, "pool1", x, "avg_pool");
    x = pm_net_add(net, "conv2", x, "conv2d filters=64 kernel=5 activation=tanh "
                                    "weights_init=truncated(0.1)");
    x = pm_net_add(net, "pool2", x, "avg_pool");
    x = pm_net_add(net, "flatten", x, "flatten");
    x = pm_net_add(net, "fc3", x, "fully_connected units=1024 activation=tanh "
                                  "weights_init=truncated(0.1)");
    x = pm_net_add(net, "dropout3", x, "dropout");
    return pm_net_add(net, "fc4", x, "fully_connected units=%d weights_init=truncated(0.1)",
                      CLASSES);
}

/* ctx: adds the layers up to the logits. */
struct layers {
    struct pm_node *(*add)(struct pm_net *net, struct pm_node *images);
};
static struct layers lenet = { add_lenet }, smooth = { add_smooth };

static int build(void *ctx, int batch, int height, int width, struct pm_net **out)
{
    const struct layers *layers = ctx;
    struct pm_net *net = pm_net_create();
    struct pm_node *images =
        pm_net_input(net, "images", PM_SHAPE4(batch, height, width, 1), PM_F32);
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(batch), PM_I32);
    struct pm_node *logits = layers->add(net, images), *part, *rejoined;

    /* Has no reader: its gradient is only weight decay, in every step. */
    pm_net_add(net, "dead", logits, "fully_connected units=3");
    pm_net_add_many(net, "loss", (struct pm_node *[]){ logits, labels }, 2,
                    "softmax_cross_entropy");
    part = pm_net_add(net, "parts", logits, "split sizes=[1,3]");
    rejoined = pm_net_add_many(net, "rejoined", (struct pm_node *[]){ part, part->out[1] }, 2,
                               "concat");
    pm_net_add_many(net, "aux_loss", (struct pm_node *[]){ rejoined, labels }, 2,
                    "softmax_cross_entropy weight=0.25");
    *out = net;
    return net->error;
}

static const struct pm_frame frame = { SIDE, SIDE };
static const struct pm_field fields[] = {
    { "images", PM_F32, { 3, { SIDE, SIDE, 1 } } },
    { "labels", PM_I32, { 0 } },
};

struct data {
    float images[BATCH * SIDE * SIDE];
    int32_t labels[BATCH];
};

/* The position of the bright quarter is the class. Pixels are multiples of 1/4. */
static void make_data(struct data *d, uint32_t step)
{
    struct pm_rng r = pm_rng_make(7, 99, step, 0);

    for (int n = 0; n < BATCH; n++) {
        d->labels[n] = (int32_t)pm_rng_int(&r, 0, CLASSES - 1);
        for (int i = 0; i < SIDE * SIDE; i++) {
            int quarter = (i / SIDE >= SIDE / 2) * 2 + (i % SIDE >= SIDE / 2);

            d->images[n * SIDE * SIDE + i] =
                (float)pm_rng_int(&r, 0, 3) / 4 + (quarter == d->labels[n] ? 1 : 0);
        }
    }
}

static float freeze_conv1(const char *variable, void *ctx)
{
    (void)ctx;
    return strstr(variable, "conv1") ? 0 : 1;
}

struct training {
    struct layers *layers;
    double shares[4];
    int count, micro_batches;
    const char *optimizer;
    bool freeze;
    bool coarse;   /* initial values are multiples of 1/8, and the rate is 0 */
    bool moved;    /* by roundings: see change_values */
};

struct outcome {
    double loss[STEPS];
    float norm[STEPS];
    float logits[STEPS][BATCH][CLASSES];
    struct pm_loss_averages averages;
    float *values; /* the master's block of trainable variables */
    float *slot;   /* the optimizer's first slot */
    size_t count;  /* of each */
};

/* Losses of the whole batch, in the net's order; the second is a quarter of the first. */
static void check_parts(const struct pm_step_result *r)
{
    assert_int_equal(r->part_count, 2);
    assert_string_equal(r->parts[0].name, "loss");
    assert_string_equal(r->parts[1].name, "aux_loss");
    assert_float_equal(r->parts[0].value, 0.8 * r->loss, 1e-6 * r->loss);
    assert_float_equal(r->parts[1].value, 0.2 * r->loss, 1e-6 * r->loss);
}

/* A rounding changes a float by at most 2^-24 of its size. A step rounds each value once. It also
 * has the roundings of the gradient. The longest sum of a gradient, over the pixels of a batch, has
 * 12 * 144 terms. n roundings add up to about sqrt(n): 42 here. So a moved run begins with values
 * that are STEPS roundings larger, and its rate is larger by GRADIENT_ROUNDINGS. All have the same
 * sign, so they do not cancel in sums. */
enum { GRADIENT_ROUNDINGS = 42 };
static const double rounding = 0x1p-24;

static void change_values(struct pm_variables *v, const struct training *t)
{
    const size_t count = v->trainable_bytes / sizeof(float);
    float *values = pm_malloc(v->trainable_bytes);

    check(pm_buffer_read(v->device, v->values, 0, values, v->trainable_bytes));
    for (size_t i = 0; i < count; i++) {
        if (t->coarse)
            values[i] = rintf(values[i] * 8) / 8;
        if (t->moved)
            values[i] *= (float)(1 + STEPS * rounding);
    }
    check(pm_buffer_write(v->device, v->values, 0, values, v->trainable_bytes));
    pm_free(values);
}

static void copy_logits(const struct pm_clones *c, int slot, float (*to)[CLASSES])
{
    for (int i = 0, n; (n = pm_clones_part(c, i)) > 0; to += n, i++)
        memcpy(to, pm_clones_output(c, i, slot, "rejoined"), (size_t)n * sizeof *to);
}

static struct outcome train(struct training t)
{
    struct pm_clone_spec specs[4];
    struct pm_clones *c = NULL;
    struct outcome r = { 0 };
    const struct pm_optimizer *row = pm_optimizer_find(t.optimizer);
    char cfg[64];
    struct pm_variables *v;
    double lr = t.coarse ? 0 : row->decoupled ? 0.01 : 0.05; /* lamb's rate is a share of each
                                                              * variable's length */

    if (t.moved)
        lr *= 1 + GRADIENT_ROUNDINGS * rounding;
    pm_opts_defaults(row->opts, cfg, NULL);
    for (int i = 0; i < t.count; i++)
        specs[i] = (struct pm_clone_spec){ .info = cpu(), .share = t.shares[i], .threads = 1 };
    check(pm_clones_create(&(struct pm_clones_options){
        .specs = specs, .count = t.count, .batch = BATCH, .micro_batches = t.micro_batches,
        .slots = 2, .frames = &frame, .frames_count = 1, .build = build, .ctx = t.layers,
        .fields = fields, .fields_count = 2, .outputs = (const char *[]){ "rejoined", NULL },
        .update = { .optimizer = row, .cfg = cfg, .weight_decay = 1e-3f, .clip_norm = 5,
                    .multiplier = t.freeze ? freeze_conv1 : NULL } }, &c));
    v = pm_clones_master(c);
    check(pm_optimizer_init(row, cfg, v, 3));
    change_values(v, &t);
    check(pm_clones_scatter(c));
    for (int s = 0; s < STEPS; s++) {
        uint64_t allocations = pm_alloc_count();
        struct data d;
        struct pm_batch batch = { .field = (void *[]){ d.images, d.labels }, .valid = BATCH,
                                  .frame = frame };
        struct pm_step_result result;

        make_data(&d, (uint32_t)s);
        check(pm_clones_step(c, s % 2, &batch, &(struct pm_step){
            .step = (uint32_t)s, .seed_low = 5, .lr = (float)lr, .loss_scale = 1,
            .beta1_power = powf(0.9f, (float)s + 1),
            .beta2_power = powf(0.999f, (float)s + 1) }));
        check(pm_clones_collect(c, s % 2, &result));
        assert_true(result.finite);
        assert_int_equal(pm_alloc_count(), allocations); /* a step makes no allocation of
                                                          * Pumice's */
        check_parts(&result);
        copy_logits(c, s % 2, r.logits[s]);
        pm_loss_averages_add(&r.averages, &result);
        r.loss[s] = result.loss;
        r.norm[s] = result.norm;
    }
    r.count = v->trainable_bytes / sizeof(float);
    r.values = pm_malloc(v->trainable_bytes);
    r.slot = pm_malloc(v->trainable_bytes);
    check(pm_buffer_read(v->device, v->values, 0, r.values, v->trainable_bytes));
    check(pm_buffer_read(v->device, v->slots[0], 0, r.slot, v->trainable_bytes));
    pm_clones_destroy(&c);
    return r;
}

/* Returns the norm of a - b as a share of the norm of a. */
static double apart(const float *a, const float *b, size_t count)
{
    double difference = 0, norm = 0;

    for (size_t i = 0; i < count; i++) {
        difference += pow((double)a[i] - b[i], 2);
        norm += pow(a[i], 2);
    }
    return sqrt(difference / norm);
}

static double logits_apart(const struct outcome *a, const struct outcome *b)
{
    return apart(a->logits[0][0], b->logits[0][0], STEPS * BATCH * CLASSES);
}

/* A small loss is a difference of large logits. Its roundings are small compared with the first
 * loss, but not with itself. */
static void same_losses(const struct outcome *a, const struct outcome *b)
{
    for (int s = 0; s < STEPS; s++)
        assert_true(fabs(a->loss[s] - b->loss[s]) <= 1e-4 * fabs(a->loss[0]));
}

/* Each of a and b differs from a run without roundings by at most as much as a moved run. With 200
 * dropout seeds, no pair reached half of these bounds. */
static void same(const struct outcome *a, const struct outcome *b, const struct outcome *moved)
{
    same_losses(a, b);
    assert_true(apart(a->values, b->values, a->count) <=
                2 * apart(a->values, moved->values, a->count));
    assert_true(logits_apart(a, b) <= 2 * logits_apart(a, moved));
}

/* Checks that a run learns, and that it amplifies roundings so little that they hide no fault. */
static void check_moved(const struct outcome *one, const struct outcome *moved)
{
    assert_true(one->loss[STEPS - 1] < 0.8 * one->loss[0]);
    assert_true(apart(one->values, moved->values, one->count) <= 1e-4);
    assert_true(logits_apart(one, moved) <= 1e-4);
}

static void drop(struct outcome *r)
{
    pm_loss_averages_free(&r->averages);
    pm_free(r->values);
    pm_free(r->slot);
}

static void test_clones_equal_one(void **state)
{
    struct training t = { &smooth, { 1 }, 1, 1, .optimizer = "momentum" };
    struct outcome one = train(t), moved, other;
    const struct training others[] = {
        { &smooth, { 1, 1 }, 2, 1, .optimizer = "momentum" },
        { &smooth, { 3, 2, 1 }, 3, 1, .optimizer = "momentum" },
        { &smooth, { 1 }, 1, 3, .optimizer = "momentum" },
        { &smooth, { 2, 1 }, 2, 2, .optimizer = "momentum" },
    };

    (void)state;
    t.moved = true;
    moved = train(t);
    check_moved(&one, &moved);
    for (size_t i = 0; i < PM_COUNT(others); i++) {
        other = train(others[i]);
        same(&one, &other, &moved);
        drop(&other);
    }
    drop(&one), drop(&moved);
}

/* Norms over whole variables are computed where the master copy is. */
static void test_clones_of_lamb(void **state)
{
    struct training t = { &smooth, { 1 }, 1, 1, .optimizer = "lamb" };
    struct outcome one = train(t), moved, two;

    (void)state;
    t.moved = true;
    moved = train(t);
    check_moved(&one, &moved);
    two = train((struct training){ &smooth, { 2, 1 }, 2, 1, .optimizer = "lamb" });
    same(&one, &two, &moved);
    drop(&one), drop(&moved), drop(&two);
}

/* Logits and their terms are multiples of 2^-13, and their partial sums are below 2^11. Floats hold
 * such numbers exactly. A gradient passes four layers, and each adds its roundings. */
static void test_clones_with_corners(void **state)
{
    struct outcome one = train((struct training){ &lenet, { 1 }, 1, 1, .optimizer = "momentum",
                                                  .coarse = true });
    const struct training others[] = {
        { &lenet, { 1, 1 }, 2, 1, .optimizer = "momentum", .coarse = true },
        { &lenet, { 3, 2, 1 }, 3, 1, .optimizer = "momentum", .coarse = true },
        { &lenet, { 1 }, 1, 3, .optimizer = "momentum", .coarse = true },
        { &lenet, { 2, 1 }, 2, 2, .optimizer = "momentum", .coarse = true },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(others); i++) {
        struct outcome other = train(others[i]);

        assert_memory_equal(one.logits, other.logits, sizeof one.logits);
        assert_true(apart(one.values, other.values, one.count) == 0); /* 0 may become -0 */
        assert_true(apart(one.slot, other.slot, one.count) <= 4 * GRADIENT_ROUNDINGS * rounding);
        same_losses(&one, &other);
        drop(&other);
    }
    drop(&one);
}

static void test_same_bits_again(void **state)
{
    const struct training t = { &lenet, { 1 }, 1, 1, .optimizer = "adam" };
    struct outcome a = train(t), b = train(t);

    (void)state;
    assert_memory_equal(a.values, b.values, a.count * sizeof(float));
    drop(&a), drop(&b);
}

static void test_frozen_variable_stays(void **state)
{
    struct outcome r = train((struct training){ &lenet, { 1 }, 1, 1, .optimizer = "momentum",
                                                .freeze = true });
    struct pm_net *net = NULL;
    float initial[25 * 32];

    (void)state;
    check(build(&lenet, 1, SIDE, SIDE, &net));
    assert_string_equal(net->vars[0]->name, "LeNet/conv1/weights");
    pm_variable_initial(net->vars[0], 3, initial);
    assert_memory_equal(r.values, initial, sizeof initial);
    pm_net_destroy(&net);
    drop(&r);
}

static void test_refuses_a_batch_too_small(void **state)
{
    struct pm_clone_spec specs[4] = { { .share = 1 }, { .share = 1 }, { .share = 1 },
                                      { .share = 1 } };
    struct pm_clones *c = NULL;

    (void)state;
    assert_int_equal(pm_clones_create(&(struct pm_clones_options){
        .specs = specs, .count = 4, .batch = 6, .micro_batches = 2,
        .slots = 1, .frames = &frame, .frames_count = 1, .build = build, .ctx = &lenet,
        .fields = fields, .fields_count = 2 }, &c), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "run.batch_size: 6"));
}

static void test_loss_averages(void **state)
{
    struct pm_step_result r = { .loss = 3, .l2 = 0.5f, .part_count = 2,
                                .parts = (struct pm_loss_part[]){ { "loss", 2 },
                                                                  { "aux_loss", 1 } } };
    struct pm_loss_averages a = { 0 }, b = { 0 };
    struct pm_str json = { 0 };
    cJSON *object;

    (void)state;
    pm_loss_averages_add(&a, &r);
    assert_int_equal(a.count, 3);
    assert_string_equal(a.list[0].name, "total_loss");
    assert_float_equal(a.list[0].value, 0.35, 1e-15); /* starts at zero, without correction */
    r.loss = 4, r.l2 = 0, r.parts[1].value = 2;
    pm_loss_averages_add(&a, &r);
    assert_float_equal(a.list[0].value, 0.9 * 0.35 + 0.1 * 4, 1e-15);
    assert_float_equal(a.list[1].value, 0.9 * 0.2 + 0.1 * 2, 1e-15);
    assert_float_equal(a.list[2].value, 0.9 * 0.1 + 0.1 * 2, 1e-15);
    pm_loss_averages_print(&a, &json);
    object = cJSON_Parse(json.text);
    cJSON_AddStringToObject(object, "other", "no number");
    pm_loss_averages_read(&b, object);
    assert_int_equal(b.count, 3);
    for (int i = 0; i < 3; i++) { /* bit for bit */
        assert_string_equal(a.list[i].name, b.list[i].name);
        assert_true(a.list[i].value == b.list[i].value);
    }
    pm_loss_averages_read(&b, NULL);
    assert_int_equal(b.count, 0);
    pm_loss_averages_free(&a);
    pm_loss_averages_free(&b);
    cJSON_Delete(object);
    pm_str_free(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clones_equal_one),
        cmocka_unit_test(test_loss_averages),
        cmocka_unit_test(test_clones_of_lamb),
        cmocka_unit_test(test_clones_with_corners),
        cmocka_unit_test(test_same_bits_again),
        cmocka_unit_test(test_frozen_variable_stays),
        cmocka_unit_test(test_refuses_a_batch_too_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
