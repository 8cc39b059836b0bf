/* verified_plan: on a device whose driver computes a kernel wrongly, training uses the next simpler
 * variant and gives the same bits as if that variant had been chosen. It does so at the first start
 * and, from the stored verdicts, at the next. Without another variant, creating the plan fails;
 * run.verify=off verifies nothing. */
#include "clones/clones.h"

#include "device/drivers.h"

enum { BATCH = 8, WIDE = 6, CLASSES = 4, STEPS = 4 };

static const struct pm_shader *planted;
static const struct pm_device_info *current;

/* Makes every device that is opened use the planted shaders. */
static void plant(struct vk *table)
{
    if (table->CreateComputePipelines) /* the table of the device, not of the instance */
        ((struct vk_device *)((char *)table - offsetof(struct vk_device, vk)))
            ->shared.pipelines.extra = planted;
}

/* Turns additions into subtractions and products into sums. */
static uint32_t *change(const struct pm_shader *s)
{
    uint32_t *words = pm_malloc(s->bytes);

    memcpy(words, s->words, s->bytes);
    for (size_t i = 5; i < s->bytes / 4; i += words[i] >> 16) {
        uint32_t op = words[i] & 0xffff;

        words[i] = (words[i] & 0xffff0000) | (op == 129 ? 131 : op == 133 ? 129 : op);
    }
    return words;
}

static int build(void *ctx, int batch, int height, int width, struct pm_net **out)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "images", PM_SHAPE2(batch, WIDE), PM_F32);
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(batch), PM_I32);

    (void)ctx, (void)height, (void)width;
    pm_net_set_values(labels, (struct pm_values){ .high = CLASSES - 1 });
    x = pm_net_add(net, "a", x, "fully_connected units=8 bias=false");
    x = pm_net_add(net, "b", x, "batch_norm activation=relu");
    x = pm_net_add(net, "c", x, "fully_connected units=%d", CLASSES);
    pm_net_add_many(net, "loss", (struct pm_node *[]){ x, labels }, 2, "softmax_cross_entropy");
    *out = net;
    return net->error;
}

static int make(bool verify, struct pm_clones **c)
{
    static const struct pm_field fields[] = {
        { "images", PM_F32, { 1, { WIDE } } }, { "labels", PM_I32, { 0 } },
    };
    static char cfg[64];
    const struct pm_clone_spec spec = { .info = *current, .share = 1 };

    return pm_clones_create(&(struct pm_clones_options){
        .specs = &spec, .count = 1, .batch = BATCH, .micro_batches = 1, .slots = 2,
        .device.validate = true, .verify = verify,
        .frames = &(struct pm_frame){ 0 }, .frames_count = 1, .build = build,
        .fields = fields, .fields_count = 2,
        .update = { .optimizer = pm_optimizer_find("sgd"), .cfg = cfg } }, c);
}

/* The losses of some steps. */
static void train(bool verify, double loss[STEPS])
{
    static float images[BATCH * WIDE];
    static int32_t labels[BATCH];
    struct pm_clones *c = NULL;

    for (int i = 0; i < BATCH * WIDE; i++)
        images[i] = (float)(i * 37 % 23) / 11 - 1;
    for (int i = 0; i < BATCH; i++)
        labels[i] = i % CLASSES;
    ok(make(verify, &c));
    ok(pm_variables_init(pm_clones_master(c), 3, NULL));
    for (int s = 0; s < STEPS; s++) {
        struct pm_batch batch = { .field = (void *[]){ images, labels }, .valid = BATCH };
        struct pm_step_result r;

        ok(pm_clones_step(c, s % 2, &batch, &(struct pm_step){ .step = (uint32_t)s, .lr = 0.1f,
                                                              .loss_scale = 1 }));
        ok(pm_clones_collect(c, s % 2, &r));
        loss[s] = r.loss;
    }
    pm_clones_destroy(&c);
}

static void test_next_variant(void **state)
{
    const struct pm_shader *real = shader_named("batch_norm_apply4");
    uint32_t *words = change(real);
    const struct pm_shader table[] = { { real->name, words, real->bytes }, { 0 } };
    double want[STEPS], first[STEPS], again[STEPS], blind[STEPS];

    (void)state;
    setenv("PM_VARIANT", "batch_norm_apply:batch_norm_apply", 1);
    train(false, want);
    unsetenv("PM_VARIANT");
    planted = table;
    train(false, blind);
    train(true, first);
    train(true, again);
    planted = NULL;
    assert_memory_not_equal(blind, want, sizeof want); /* the planted fault does change the
                                                        * losses */
    assert_memory_equal(first, want, sizeof want);
    assert_memory_equal(again, want, sizeof want);
    pm_free(words);
}

static void test_none_left(void **state)
{
    const struct pm_shader *real = shader_named("bias_act_fwd");
    uint32_t *words = change(real);
    const struct pm_shader table[] = { { real->name, words, real->bytes }, { 0 } };
    struct pm_clones *c = NULL;

    (void)state;
    planted = table;
    for (int i = 0; i < 2; i++) { /* first found, then read from the stored verdicts */
        assert_int_equal(make(true, &c), PM_EDEVICE);
        assert_contains(pm_error_text(), "bias_act_fwd cannot run: no variant is left");
    }
    planted = NULL;
    pm_free(words);
}

static void test_no_messages(void **state)
{
    (void)state;
    assert_int_equal(pm_device_messages(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next_variant), cmocka_unit_test(test_none_left),
        cmocka_unit_test(test_no_messages),
    };
    struct pm_device_info *list = NULL;
    size_t count = 0;
    int failed = 0, ran = 0;
    char *cache = make_folder();

    setenv("XDG_CACHE_HOME", cache, 1);
    use_software_drivers();
    pm_vk_loaded = plant;
    ok(pm_device_list(&list, &count));
    for (size_t i = 0; i < count; i++) {
        current = &list[i];
        if (!current->caps.runs_shaders || !current->usable)
            continue;
        print_message("%s: %s\n", current->address, current->name);
        failed += cmocka_run_group_tests_name(current->name, tests, NULL, NULL);
        ran++;
    }
    pm_free(list);
    drop_folder(cache);
    return failed ? 1 : ran ? 0 : 77;
}
