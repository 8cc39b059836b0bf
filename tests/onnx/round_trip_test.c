/* Exports a net, imports the file, and compares the gradients of the first step with those of
 * the net itself. Batch norm is exported as such and trains again. Nets are built without
 * dropout, which an export drops. */
#include "../net/named_net.h"

#include <pumice/export.h>
#include <pumice/import.h>
#include <pumice/plan.h>
#include <pumice/rng.h>

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 4, CLASSES = 10 };

static struct pm_device *device;

/* The gradients of one training step without an update. */
struct step {
    struct pm_net *net;
    struct pm_variables *v;
    struct pm_plan *plan;
    char *grads;
    double loss;
};

/* Made by a case; tear_down frees them after a failure. */
static struct step own, back;
static struct pm_import *import;
static float *images;

static void run_step(struct step *s, struct pm_heads heads, size_t count)
{
    const struct pm_heads only = { &(struct pm_head){ .name = "logits",
                                                      .node = pm_heads_main(&heads) }, 1 };

    add_head_losses(s->net, &only);
    assert_int_equal(s->net->error, PM_OK);
    assert_int_equal(pm_variables_create(device, s->net, true, NULL, &s->v), PM_OK);
    assert_int_equal(pm_variables_allocate(s->v), PM_OK);
    assert_int_equal(pm_variables_init(s->v, 3, NULL), PM_OK);
    if (pm_plan_create(s->net, device, s->v, &(struct pm_plan_options){
            .name = "train", .train = true, .slots = 1, .loss_share = 1, .micro_batches = 1 },
            &s->plan) || pm_plan_load(s->plan))
        fail_msg("%s", pm_error_text());
    memcpy(pm_plan_input(s->plan, 0, "images", 0), images, count * sizeof *images);
    for (int i = 0; i < BATCH; i++)
        ((int32_t *)pm_plan_input(s->plan, 0, "labels", 0))[i] = i * 3 % CLASSES;
    if (pm_plan_step(s->plan, 0))
        *pm_plan_step(s->plan, 0) = (struct pm_step){ .step = 1, .seed_low = 1,
                                                        .loss_scale = 1 };
    assert_int_equal(pm_plan_submit(s->plan, 0), PM_OK);
    assert_int_equal(pm_plan_wait(s->plan, 0), PM_OK);
    s->loss = pm_plan_loss(s->plan, 0);
    s->grads = malloc(s->v->gradient_bytes);
    assert_int_equal(pm_buffer_read(device, s->v->grads, 0, s->grads, s->v->gradient_bytes), PM_OK);
    pm_plan_destroy(&s->plan);
}

static void end_step(struct step *s)
{
    free(s->grads);
    pm_plan_destroy(&s->plan);
    pm_variables_destroy(&s->v);
    pm_net_destroy(&s->net);
    *s = (struct step){ 0 };
}

static int tear_down(void **state)
{
    (void)state;
    end_step(&own);
    end_step(&back);
    pm_import_close(&import);
    free(images);
    images = NULL;
    return 0;
}

static int read_variable(void *ctx, const struct pm_variable *v, float *data)
{
    return pm_variables_read(ctx, v->index, -1, data);
}

/* Exports a net to a file and imports it as another net. */
static void through_file(const char *name, int size, const char *options, struct pm_variables *v)
{
    char path[] = "/tmp/round_trip_XXXXXX";
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net(name, 1, size, size, CLASSES, options, &heads);
    struct pm_export *g = NULL;
    const int fd = mkstemp(path);

    close(fd);
    if (pm_export_create(net, pm_heads_main(&heads), &(struct pm_export_options){
            .any_batch = true, .read = read_variable, .ctx = v }, &g) ||
        pm_onnx_write(pm_export_model(g), path, false, NULL) || pm_import_open(path, &import))
        fail_msg("%s", pm_error_text());
    unlink(path); /* the open file stays readable */
    pm_export_destroy(&g);
    pm_net_destroy(&net);
}

/* Every trainable variable on the way to the logits must exist with the same gradient. There
 * must be no other variable, except gammas: ONNX's batch norm always has one, Inception's has
 * none. */
static void compare(const char *name, const struct step *a, const struct step *b, double bound)
{
    int compared = 0;
    double most = 0;

    if (!(fabs(a->loss - b->loss) <= 1e-5 * fabs(a->loss)))
        fail_msg("%s: the loss is %.9g, after import %.9g", name, a->loss, b->loss);
    for (int i = 0; i < a->v->count; i++) {
        const struct pm_variable *x = &a->v->list[i];
        const int k = pm_variables_find(b->v, x->name);
        double off = 0, norm = 0;

        if (strstr(x->name, "Aux") || !x->trainable)
            continue;
        if (k < 0)
            fail_msg("%s: %s is lost", name, x->name);
        assert_true(b->v->list[k].trainable);
        assert_int_equal(pm_shape_count(b->v->list[k].shape), pm_shape_count(x->shape));
        const float *da = (const float *)(const void *)(a->grads + a->v->offset[i]);
        const float *db = (const float *)(const void *)(b->grads + b->v->offset[k]);
        for (size_t e = 0; e < pm_shape_count(x->shape); e++) {
            off += ((double)da[e] - db[e]) * ((double)da[e] - db[e]);
            norm += (double)da[e] * da[e];
        }
        most = fmax(most, norm);
        if (!(sqrt(off) <= bound * sqrt(norm)))
            fail_msg("%s: the gradient of %s differs by %.2e of its norm %.2e", name, x->name,
                     sqrt(off / norm), sqrt(norm));
        compared++;
    }
    assert_true(compared > 3 && most > 0);
    for (int k = 0; k < b->v->count; k++)
        if (pm_variables_find(a->v, b->v->list[k].name) < 0)
            fail_msg("%s: %s is there after import only", name, b->v->list[k].name);
}

static void round_trip(const char *name, int size, const char *options)
{
    struct pm_heads heads = { 0 };
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    struct pm_node *in;

    own.net = named_net(name, BATCH, size, size, CLASSES, options, &heads);
    assert_int_equal(own.net->error, PM_OK);
    const int channels = pm_net_find(own.net, "images")->out_shape.dim[3];
    const size_t count = (size_t)BATCH * size * size * channels;
    images = malloc(count * sizeof *images);
    for (size_t i = 0; i < count; i++)
        images[i] = (float)(2 * pm_rng_uniform(&r) - 1);
    run_step(&own, heads, count);
    through_file(name, size, options, own.v);
    back.net = pm_net_create();
    in = pm_net_input(back.net, "images", PM_SHAPE4(BATCH, size, size, channels), PM_F32);
    heads = (struct pm_heads){ 0 };
    if (pm_import_net(import, back.net, in, &(struct pm_import_options){ 0 }, &heads) != PM_OK)
        fail_msg("%s: %s", name, pm_error_text());
    run_step(&back, heads, count);
    compare(name, &own, &back, 1e-5);
}

static void test_lenet(void **state)
{
    (void)state;
    round_trip("lenet", 28, "{\"keep_prob\": 1}");
}

/* Parts of a split: one read twice, one without a reader, one that passes through another split. */
static void test_parts(void **state)
{
    (void)state;
    round_trip("[{\"name\": \"a\", \"layer\": \"conv2d\", \"filters\": 14, \"kernel\": 3},"
               " {\"name\": \"s\", \"layer\": \"split\", \"sizes\": [5, 3, 6]},"
               " {\"name\": \"b\", \"layer\": \"conv2d\", \"filters\": 5, \"kernel\": 3},"
               " {\"name\": \"c\", \"layer\": \"add\", \"inputs\": [\"b\", \"s\"]},"
               " {\"name\": \"t\", \"layer\": \"split\", \"inputs\": \"s:2\"},"
               " {\"name\": \"j\", \"layer\": \"concat\", \"inputs\": [\"t:1\", \"c\", \"t\"]},"
               " {\"name\": \"f\", \"layer\": \"flatten\"},"
               " {\"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 10}]",
               6, NULL);
    /* A Split is imported as one layer, not as a slice for each part. */
    int splits = 0;
    for (int i = 0; i < back.net->count; i++) {
        splits += strcmp(back.net->nodes[i]->layer->name, "split") == 0;
        assert_string_not_equal(back.net->nodes[i]->layer->name, "slice");
    }
    assert_int_equal(splits, 2);
}

static void test_resnet(void **state)
{
    (void)state;
    round_trip("resnet_v1_50", 64, NULL);
}

static void test_mobilenet(void **state)
{
    (void)state;
    round_trip("mobilenet_v2", 64, "{\"keep_prob\": 1}");
}

static void test_inception(void **state)
{
    (void)state;
    round_trip("inception_v1", 96, "{\"keep_prob\": 1, \"global_pool\": true}");
}

int main(void)
{
    struct pm_device_info *list = NULL;
    size_t count, index;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_lenet, tear_down),
        cmocka_unit_test_teardown(test_parts, tear_down),
        cmocka_unit_test_teardown(test_resnet, tear_down),
        cmocka_unit_test_teardown(test_mobilenet, tear_down),
        cmocka_unit_test_teardown(test_inception, tear_down),
    };
    int failed;

    if (pm_device_list(&list, &count) || pm_device_find(list, count, "cpu", "test", &index) ||
        pm_device_open(&list[index], &(struct pm_device_options){ .hang_seconds = 1e9 }, &device)) {
        fprintf(stderr, "%s\n", pm_error_text());
        return 1;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_device_close(&device);
    pm_free(list);
    return failed;
}
