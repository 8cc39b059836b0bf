/* Batch norm that counts only the valid rows of each example, in whole plans on the CPU and every
 * device: against the same rows without padding, with padding that is not finite, without any valid
 * row, and in parts of a batch. check has the values of single layers. */
#include "device/every_device.h"
#include "two_steps.h"

#include <pumice/rng.h>

#include "nets/nets.h"

/* Examples, crops of each, and the crops' sizes; channels of the images and of the batch norm. */
enum { EXAMPLES = 4, CROPS = 3, HIGH = 3, WIDE = 2, COLORS = 3, MOST = 8 };
enum { PIXELS = HIGH * WIDE, IMAGES = EXAMPLES * CROPS, VALUES = IMAGES * PIXELS };

struct batch {
    int32_t count[EXAMPLES];
    float images[IMAGES][PIXELS][COLORS], target[IMAGES][PIXELS][MOST], weights[IMAGES][PIXELS];
};
struct form {
    int images, examples; /* examples 0: every row counts */
    int channels, micro_batches;
    const char *options;
    bool direct; /* batch norm reads the images; no layer with variables is before it */
};
struct result {
    float y[VALUES * MOST];
    float *gradients, *values; /* the blocks of the variables; freed with drop() */
    size_t gradient_count, value_count;
    double loss;
};

/* ---- running --------------------------------------------------------------------------------- */

/* images -> conv, side; norm(conv, side, count); the squared error. */
static struct pm_net *net_of(const struct form *f)
{
    struct pm_net *net = pm_net_create();
    const struct pm_shape y = PM_SHAPE4(f->images, HIGH, WIDE, f->channels);
    struct pm_node *in[3], *count = NULL, *x;
    int inputs = 0;

    if (f->examples > 0)
        count = pm_net_input(net, "count", PM_SHAPE1(f->examples), PM_I32);
    x = pm_net_input(net, "images", PM_SHAPE4(f->images, HIGH, WIDE, COLORS), PM_F32);
    if (f->direct) {
        in[inputs++] = x;
    } else {
        in[inputs++] = pm_net_add(net, "conv", x, "conv2d filters=%d kernel=1 bias=false",
                                  f->channels);
        in[inputs++] = pm_net_add(net, "side", x, "conv2d filters=%d kernel=1", f->channels);
    }
    if (count)
        in[inputs++] = count;
    x = pm_net_add_many(net, "norm", in, inputs, "batch_norm decay=0.75 %s", f->options);
    pm_net_add_many(net, "loss", (struct pm_node *[]){
        x, pm_net_input(net, "target", y, PM_F32),
        pm_net_input(net, "weights", PM_SHAPE4(f->images, HIGH, WIDE, 1), PM_F32) }, 3,
        "squared_error");
    ok(net->error);
    return net;
}

/* Gives beta, gamma and the moving averages values unlike their first ones. */
static void set_norm(struct pm_variables *v, int channels)
{
    static const char *const names[] = { "norm/beta", "norm/gamma", "norm/moving_mean",
                                         "norm/moving_variance" };
    float values[MOST];

    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < channels; k++)
            values[k] = 0.25f * (float)(i + 1) + 0.125f * (float)(k % 3);
        ok(pm_variables_write(v, pm_variables_find(v, names[i]), -1, values));
    }
}

static void give(struct pm_plan *plan, const struct form *f, const struct batch *b, int m)
{
    const int images = f->images * m;
    float *target = pm_plan_input(plan, 0, "target", m);

    memcpy(pm_plan_input(plan, 0, "images", m), b->images[images],
           (size_t)f->images * sizeof *b->images);
    memcpy(pm_plan_input(plan, 0, "weights", m), b->weights[images],
           (size_t)f->images * sizeof *b->weights);
    for (int i = 0; i < f->images * PIXELS; i++)
        memcpy(target + i * f->channels, b->target[images] + i,
               (size_t)f->channels * sizeof(float));
    if (f->examples > 0)
        memcpy(pm_plan_input(plan, 0, "count", m), b->count + f->examples * m,
               (size_t)f->examples * sizeof *b->count);
}

static float *block(struct pm_device *d, struct pm_buffer *from, size_t bytes)
{
    float *to = pm_malloc(bytes + 1);

    ok(pm_buffer_read(d, from, 0, to, bytes));
    return to;
}

/* One training step of a plan for f->images in each micro-batch. */
static struct result run(struct pm_device *d, const struct form *f, const struct batch *b)
{
    static const char *const outputs[] = { "norm", NULL };
    const size_t size = (size_t)(f->images * PIXELS * f->channels);
    struct pm_net *net = net_of(f);
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;
    struct result r = { 0 };

    ok(pm_variables_create(d, net, true, NULL, &v));
    ok(pm_variables_allocate(v));
    ok(pm_variables_init(v, 5, NULL));
    set_norm(v, f->channels);
    ok(pm_plan_create(net, d, v, &(struct pm_plan_options){
        .train = true, .outputs = outputs, .update = update_averages, .slots = 1, .loss_share = 1,
        .micro_batches = f->micro_batches }, &plan));
    ok(pm_plan_load(plan));
    for (int m = 0; m < f->micro_batches; m++)
        give(plan, f, b, m);
    *pm_plan_step(plan, 0) = (struct pm_step){ .loss_scale = 1 };
    ok(pm_plan_submit(plan, 0));
    ok(pm_plan_wait(plan, 0));
    for (int m = 0; m < f->micro_batches; m++)
        memcpy(r.y + (size_t)m * size, pm_plan_output(plan, 0, "norm", m), size * sizeof *r.y);
    r.loss = pm_plan_loss(plan, 0);
    r.gradient_count = v->gradient_bytes / sizeof(float);
    r.value_count = v->bytes / sizeof(float);
    r.gradients = block(d, v->grads, v->gradient_bytes);
    r.values = block(d, v->values, v->bytes);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    return r;
}

static void drop(struct result *r)
{
    pm_free(r->gradients);
    pm_free(r->values);
}

/* ---- batches --------------------------------------------------------------------------------- */

static bool is_valid(const struct batch *b, int image)
{
    return image % CROPS < b->count[image / CROPS];
}

/* Padded rows are 0 and have no weight in the loss. */
static struct batch batch_of(const int32_t count[EXAMPLES])
{
    struct pm_rng rng = pm_rng_make(1, 2, 3, 4);
    struct batch b = { 0 };

    memcpy(b.count, count, sizeof b.count);
    for (int i = 0; i < IMAGES; i++)
        for (int k = 0; k < PIXELS && is_valid(&b, i); k++) {
            b.weights[i][k] = 1;
            for (int c = 0; c < COLORS; c++)
                b.images[i][k][c] = (float)(2 * pm_rng_uniform(&rng) - 1);
            for (int c = 0; c < MOST; c++)
                b.target[i][k][c] = (float)(2 * pm_rng_uniform(&rng) - 1);
        }
    return b;
}

/* The valid rows alone. Returns their number. */
static int packed(const struct batch *b, struct batch *to)
{
    int images = 0;

    *to = (struct batch){ 0 };
    for (int i = 0; i < IMAGES; i++)
        if (is_valid(b, i)) {
            memcpy(to->images[images], b->images[i], sizeof *b->images);
            memcpy(to->target[images], b->target[i], sizeof *b->target);
            memcpy(to->weights[images++], b->weights[i], sizeof *b->weights);
        }
    return images;
}

/* ---- without padding ------------------------------------------------------------------------- */

/* Both ways add at most VALUES numbers in float32, in another order, so a sum differs by at most
 * VALUES / 2^24 of the largest partial sum. A value depends on at most four such sums (those of the
 * mean, of rstd, and both of the gradient), hence 4. A partial sum is at most four times as large
 * as the largest value here, hence 4 again. */
static void near(const char *what, const float *a, const float *b, size_t count)
{
    double largest = 0, difference = 0;

    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)b[i]));
        difference = fmax(difference, fabs((double)a[i] - b[i]));
    }
    if (!(difference <= 4 * 4 * VALUES * 0x1p-24 * largest))
        fail_msg("%s: the largest value is %g, the largest difference %g", what, largest,
                 difference);
}

static void same_as_packed(struct pm_device *d, const int32_t *count, int channels,
                           const char *options)
{
    const struct batch b = batch_of(count);
    const size_t size = (size_t)(PIXELS * channels);
    struct batch dense;
    const int images = packed(&b, &dense);
    struct result x = run(d, &(struct form){ IMAGES, EXAMPLES, channels, 1, options, false }, &b);
    struct result y = run(d, &(struct form){ images, 0, channels, 1, options, false }, &dense);

    assert_true(images > 0);
    for (int i = 0, k = 0; i < IMAGES; i++) {
        if (is_valid(&b, i))
            near("y", x.y + (size_t)i * size, y.y + (size_t)k++ * size, size);
        for (size_t j = 0; j < size && !is_valid(&b, i); j++)
            assert_true(x.y[(size_t)i * size + j] == 0);
    }
    near("gradients", x.gradients, y.gradients, y.gradient_count);
    near("variables", x.values, y.values, y.value_count);
    assert_float_equal(x.loss, y.loss, 4 * 4 * VALUES * 0x1p-24 * y.loss);
    assert_true(y.loss > 0.01);
    drop(&x);
    drop(&y);
}

static void packs(struct pm_device *d)
{
    static const int32_t counts[][EXAMPLES] = {
        { 3, 3, 3, 3 }, { 1, 1, 1, 1 }, { 2, 0, 3, 1 }, { 0, 0, 0, 1 }, { 0, 9, -1, 2 },
    };

    for (size_t i = 0; i < PM_COUNT(counts); i++) {
        same_as_packed(d, counts[i], 8, "");
        same_as_packed(d, counts[i], 5, "activation=relu");
        same_as_packed(d, counts[i], 8, "activation=hard_swish moving_variance=biased");
    }
}

/* ---- padding --------------------------------------------------------------------------------- */

static void same_bits(const struct result *a, const struct result *b)
{
    assert_memory_equal(a->y, b->y, sizeof a->y);
    assert_memory_equal(a->gradients, b->gradients, a->gradient_count * sizeof(float));
    assert_memory_equal(a->values, b->values, a->value_count * sizeof(float));
}

static void fill_padding(struct batch *b, float image, float target, float weight)
{
    for (int i = 0; i < IMAGES; i++)
        for (int k = 0; k < PIXELS && !is_valid(b, i); k++) {
            b->weights[i][k] = weight;
            for (int c = 0; c < COLORS; c++)
                b->images[i][k][c] = image;
            for (int c = 0; c < MOST; c++)
                b->target[i][k][c] = target;
        }
}

/* A convolution's gradient multiplies padded images of 1e30 by dx, so any dx but 0 would show. */
static void large_padding(struct pm_device *d, const char *options)
{
    struct batch b = batch_of((int32_t[]){ 2, 0, 3, 1 });
    const struct form f = { IMAGES, EXAMPLES, 8, 1, options, false };
    struct result zero = run(d, &f, &b), large;

    fill_padding(&b, 1e30f, 0, 0);
    large = run(d, &f, &b);
    same_bits(&large, &zero);
    assert_true(isfinite(large.loss));
    drop(&zero);
    drop(&large);
}

/* Padded inputs that are not numbers, and large gradients of padded outputs. */
static void no_numbers(struct pm_device *d, float image)
{
    struct batch b = batch_of((int32_t[]){ 2, 0, 3, 1 });
    const struct form f = { IMAGES, EXAMPLES, COLORS, 1, "activation=relu6", true };
    struct result zero, large;

    for (int i = 0; i < IMAGES; i++)
        for (int k = 0; k < PIXELS; k++)
            b.weights[i][k] = 1; /* the same divisor in both runs */
    zero = run(d, &f, &b);
    fill_padding(&b, image, 1e10f, 1);
    large = run(d, &f, &b);
    same_bits(&large, &zero);
    assert_true(large.loss > 1e10);
    drop(&zero);
    drop(&large);
}

static void padding(struct pm_device *d)
{
    large_padding(d, "");
    large_padding(d, "activation=relu");
    large_padding(d, "activation=sigmoid");
    no_numbers(d, NAN);
    no_numbers(d, INFINITY);
}

/* ---- no valid row ---------------------------------------------------------------------------- */

static void all_zero(const float *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_true(v[i] == 0);
}

static void nothing(struct pm_device *d)
{
    const struct form f = { IMAGES, EXAMPLES, 8, 1, "activation=relu", false };
    const struct form frozen = { IMAGES, 0, 8, 1, "frozen=true", false };
    struct batch b = batch_of((int32_t[]){ 0, -5, 0, 0 });
    struct result r, before;

    fill_padding(&b, 7, 3, 1);
    r = run(d, &f, &b);
    before = run(d, &frozen, &b); /* leaves all variables */
    all_zero(r.y, PM_COUNT(r.y));
    all_zero(r.gradients, r.gradient_count);
    assert_int_equal(r.value_count, before.value_count);
    assert_memory_equal(r.values, before.values, r.value_count * sizeof(float));
    assert_float_equal(r.loss, 9, 1e-6); /* the squared distance of 0 from 3 */
    drop(&r);
    drop(&before);
}

/* ---- other plans ----------------------------------------------------------------------------- */

/* With moving averages, count has no effect. */
static void frozen(struct pm_device *d)
{
    struct batch b = batch_of((int32_t[]){ 2, 0, 3, 1 });
    const char *options = "frozen=true activation=relu";
    struct result with, without;

    fill_padding(&b, 0.5f, 0.25f, 1);
    with = run(d, &(struct form){ IMAGES, EXAMPLES, 8, 1, options, false }, &b);
    without = run(d, &(struct form){ IMAGES, 0, 8, 1, options, false }, &b);
    same_bits(&with, &without);
    drop(&with);
    drop(&without);
}

/* A micro-batch has the statistics of its own valid rows, like a batch of its own. The moving
 * averages follow the last one. */
static void micro_batches(struct pm_device *d)
{
    const struct batch b = batch_of((int32_t[]){ 2, 0, 3, 1 });
    const struct form two = { IMAGES / 2, EXAMPLES / 2, 8, 2, "", false };
    const struct form one = { IMAGES / 2, EXAMPLES / 2, 8, 1, "", false };
    const size_t half = VALUES * 8 / 2;
    struct result both = run(d, &two, &b), part[2];
    struct batch last = batch_of(b.count);

    part[0] = run(d, &one, &b);
    memcpy(last.count, b.count + EXAMPLES / 2, sizeof b.count / 2);
    memcpy(last.images, b.images[IMAGES / 2], sizeof b.images / 2);
    memcpy(last.target, b.target[IMAGES / 2], sizeof b.target / 2);
    memcpy(last.weights, b.weights[IMAGES / 2], sizeof b.weights / 2);
    part[1] = run(d, &one, &last);
    for (size_t i = 0; i < 2; i++)
        assert_memory_equal(both.y + i * half, part[i].y, half * sizeof(float));
    for (size_t i = 0; i < both.gradient_count; i++) /* each half has half of the loss */
        part[0].gradients[i] = (part[0].gradients[i] + part[1].gradients[i]) / 2;
    near("gradients", both.gradients, part[0].gradients, both.gradient_count);
    assert_memory_equal(both.values, part[1].values, both.value_count * sizeof(float));
    assert_memory_not_equal(both.values, part[0].values, both.value_count * sizeof(float));
    for (int i = 0; i < 2; i++)
        drop(&part[i]);
    drop(&both);
}

/* ---- building nets --------------------------------------------------------------------------- */

static void helper(void **state)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *count = pm_net_input(net, "count", PM_SHAPE1(2), PM_I32);
    struct pm_node *x = pm_net_input(net, "x", PM_SHAPE4(6, 3, 3, 4), PM_F32), *n;
    struct pm_nets_options o = { .batch_norm_decay = 0.9, .batch_norm_train = true };

    (void)state;
    n = pm_nets_batch_norm(net, &o, "before", x, x, "");
    assert_int_equal(n->inputs, 2);
    net->valid_rows = count;
    n = pm_nets_batch_norm(net, &o, "plain", x, NULL, "");
    assert_int_equal(n->inputs, 2);
    assert_ptr_equal(n->in[1], count);
    n = pm_nets_batch_norm(net, &o, "added", x, x, "activation=relu");
    assert_int_equal(n->inputs, 3);
    assert_ptr_equal(n->in[2], count);
    n = pm_nets_conv_bn(net, &o, "conv", x, "activation=relu", "conv2d filters=4");
    assert_ptr_equal(n->in[1], count);
    o.batch_norm_train = false;
    n = pm_nets_batch_norm(net, &o, "frozen", x, NULL, "");
    assert_int_equal(n->inputs, 1);
    ok(net->error);
    pm_net_destroy(&net);
}

static struct pm_net *inputs(struct pm_node **images)
{
    struct pm_net *net = pm_net_create();

    pm_net_input(net, "count", PM_SHAPE1(2), PM_I32);
    *images = pm_net_input(net, "images", PM_SHAPE4(6, 3, 3, 4), PM_F32);
    return net;
}

/* The list that a net writes builds the same inputs again. */
static void layer_list(void **state)
{
    cJSON *list = cJSON_Parse("[{\"name\": \"a\", \"layer\": \"batch_norm\", \"inputs\": "
                              "[\"images\", \"count\"]}, {\"name\": \"b\", \"layer\": "
                              "\"batch_norm\", \"inputs\": [\"a\", \"images\", \"count\"]}]");
    struct pm_heads heads;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pm_node *images, *a, *b;
        struct pm_net *net = inputs(&images);

        ok(pm_net_from_json(net, images, list, "list", &heads));
        a = pm_net_find(net, "a"), b = pm_net_find(net, "b");
        assert_int_equal(a->inputs, 2);
        assert_ptr_equal(a->in[1], pm_net_find(net, "count"));
        assert_int_equal(b->inputs, 3);
        assert_ptr_equal(b->in[2], pm_net_find(net, "count"));
        cJSON_Delete(list);
        list = pm_net_to_json(net);
        pm_net_destroy(&net);
    }
    cJSON_Delete(list);
}

static void refusals(void **state)
{
    static const struct { int shape, integers; const char *layer, *text; } rows[] = {
        { 4, 1, "batch_norm", "count has shape 4, but must have one number for each example, and "
                              "the 6 rows of the input" },
        { 6, 0, "batch_norm", "the residual has shape 6, but the input 6x3x3x4" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(rows); i++) {
        struct pm_node *images;
        struct pm_net *net = inputs(&images);
        struct pm_node *other = pm_net_input(net, "other", PM_SHAPE1(rows[i].shape),
                                             rows[i].integers ? PM_I32 : PM_F32);

        pm_net_add_many(net, "y", (struct pm_node *[]){ images, other }, 2, "%s", rows[i].layer);
        assert_int_equal(net->error, PM_ECONFIG);
        assert_contains(pm_error_text(), rows[i].text);
        pm_net_destroy(&net);
    }
    for (int i = 0; i < 2; i++) { /* two counts; count before the residual */
        struct pm_node *images;
        struct pm_net *net = inputs(&images);
        struct pm_node *count = pm_net_find(net, "count");

        pm_net_add_many(net, "y", (struct pm_node *[]){ images, count, i ? images : count }, 3,
                        "batch_norm");
        assert_int_equal(net->error, PM_ECONFIG);
        assert_contains(pm_error_text(), "each at most once, in this order");
        pm_net_destroy(&net);
    }
}

static void quantised(void **state)
{
    struct pm_node *images, *x;
    struct pm_net *net = inputs(&images);
    struct pm_heads heads = { 0 };

    (void)state;
    x = pm_net_add(net, "conv", images, "conv2d filters=4 bias=false");
    x = pm_net_add_many(net, "norm", (struct pm_node *[]){ x, pm_net_find(net, "count") }, 2,
                        "batch_norm");
    pm_heads_add(net, &heads, "logits", x);
    ok(net->error);
    assert_int_equal(pm_net_quantize(net, 2, &(struct pm_quantization){ 0 }, &heads), PM_ECONFIG);
    assert_contains(pm_error_text(), "norm counts only valid rows");
    pm_net_destroy(&net);
}

ON_EVERY_DEVICE(packs)
ON_EVERY_DEVICE(padding)
ON_EVERY_DEVICE(nothing)
ON_EVERY_DEVICE(frozen)
ON_EVERY_DEVICE(micro_batches)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packs),         cmocka_unit_test(test_padding),
        cmocka_unit_test(test_nothing),       cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_micro_batches), cmocka_unit_test(helper),
        cmocka_unit_test(layer_list),         cmocka_unit_test(refusals),
        cmocka_unit_test(quantised),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
