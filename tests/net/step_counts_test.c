/* What a training step does on a GPU with tile kernels: dispatches, barriers and bytes. Each net
 * has limits, so that no change loses what others gained. No driver is needed.
 *
 *     step_counts_test                 compares all nets with their limits
 *     step_counts_test --list          prints the counts of all nets, as CSV
 *     step_counts_test --calls NET     prints each dispatch of one net, as CSV */
#include "net/named_net.h"
#include "net/tile_device.h"
#include "optim/optimizer.h"

#include <pumice/plan.h>

#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *net;
    int batch, size, classes;
    /* Most of each. A change that lowers a count lowers its limit here. */
    size_t dispatches, barriers;
    double gbytes;
} nets[] = {
    { "resnet_v1_50", 32, 224, 1000, 435, 385, 21.33 },
    { "mobilenet_v2", 32, 224, 1001, 440, 407, 12.07 },
    { "inception_v3", 32, 299, 1001, 782, 604, 24.10 },
    { "deeplab_mobilenet_v2", 8, 513, 21, 453, 400, 19.96 },
};

static void ok(int err)
{
    if (err < 0)
        fail_msg("%s", pm_error_text());
}

/* One training step of a net: a plan that is never loaded. */
struct step {
    struct tile_device device;
    struct pm_net *net;
    struct pm_variables *variables;
    struct pm_plan *plan;
};

/* Adds the loss of a segmentation net: a class for each pixel of the pictures. */
static void add_pixel_loss(struct pm_net *net, struct pm_node *logits, int batch, int size)
{
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE3(batch, size, size), PM_I32);

    logits = pm_net_add(net, "loss_logits", logits, "resize size=[%d,%d] method=bilinear", size,
                        size);
    pm_net_add_many(net, "loss", (struct pm_node *[]){ logits, labels }, 2,
                    "softmax_cross_entropy ignore_label=255");
}

static void make_step(struct step *s, size_t n, bool prints)
{
    const struct pm_optimizer *optimizer = pm_optimizer_find("momentum");
    struct pm_update update = { .optimizer = optimizer, .layers = true, .averages = true };
    struct pm_plan_options o = { .train = true, .loss_share = 1, .update = pm_update_append,
                                 .update_ctx = &update, .slots = 2, .name = "train" };
    struct pm_heads heads;
    void *cfg;

    s->device = tile_device(prints);
    s->net = named_net(nets[n].net, nets[n].batch, nets[n].size, nets[n].size, nets[n].classes,
                       NULL, &heads);
    if (strcmp(pm_net_row_find(nets[n].net)->task, "segmentation") == 0)
        add_pixel_loss(s->net, pm_heads_main(&heads), nets[n].batch, nets[n].size);
    else
        add_head_losses(s->net, &heads);
    ok(s->net->error);
    cfg = pm_arena_alloc(s->net->arena, optimizer->cfg_size + 1);
    ok(pm_opts_parse_text(optimizer->opts, "", cfg, s->net->arena, "optim"));
    update.cfg = cfg;
    ok(pm_variables_create(&s->device.base, s->net, true, pm_optimizer_slots(optimizer, cfg),
                           &s->variables));
    pm_variables_keep_averages(s->variables);
    ok(pm_plan_create(s->net, &s->device.base, s->variables, &o, &s->plan));
}

static void drop_step(struct step *s)
{
    pm_plan_destroy(&s->plan);
    pm_variables_destroy(&s->variables);
    pm_net_destroy(&s->net);
}

static struct pm_counts counts_of(size_t n, bool prints)
{
    struct step s = { 0 };
    struct pm_counts c;

    make_step(&s, n, prints);
    ok(pm_plan_counts(s.plan, &c));
    drop_step(&s);
    return c;
}

static void test_limits(void **state)
{
    (void)state;
    for (size_t n = 0; n < PM_COUNT(nets); n++) {
        const struct pm_counts c = counts_of(n, false);
        const double gbytes = (double)c.bytes_moved / 1e9;

        if (c.dispatches > nets[n].dispatches || c.barriers > nets[n].barriers ||
            gbytes > nets[n].gbytes)
            fail_msg("%s: %zu dispatches, %zu barriers, %.2f GB; at most %zu, %zu, %.2f",
                     nets[n].net, c.dispatches, c.barriers, gbytes, nets[n].dispatches,
                     nets[n].barriers, nets[n].gbytes);
    }
}

/* The bytes are those of the buffers that the rows declare. */
static void test_bytes(void **state)
{
    struct step s = { 0 };
    struct pm_counts c;
    uint64_t sum = 0;
    size_t count, value_count;

    (void)state;
    make_step(&s, 0, false);
    const struct pm_planned_call *calls = pm_plan_calls(s.plan, &count);
    const struct pm_value *values = pm_plan_values(s.plan, &value_count);

    for (size_t i = 0; i < count; i++) {
        const struct pm_kernel *k = calls[i].kernel;
        struct pm_buf_spec spec[PM_MAX_BUFS];
        const int bufs = pm_kernel_bufs(k, spec);
        uint64_t bytes = 0;

        for (int b = 0; b < bufs; b++) {
            const bool reads = strchr("rutz", spec[b].access) != NULL;
            const bool writes = strchr("wutz", spec[b].access) != NULL;
            const char *accumulate = (const char *)calls[i].params + k->accumulate - 1;
            const bool sets = spec[b].access == 'u' && k->accumulate &&
                              *(const int *)accumulate == 0;

            if (calls[i].buf[b] >= 0)
                bytes += values[calls[i].buf[b]].bytes * (uint64_t)((reads && !sets) + writes);
        }
        assert_int_equal(pm_plan_call_bytes(s.plan, i), bytes);
        sum += bytes;
    }
    ok(pm_plan_counts(s.plan, &c));
    assert_int_equal(c.bytes_moved, sum);
    assert_true(c.dispatches >= count);
    assert_in_range(c.segments, 2, 50);
    drop_step(&s);
}

static int list(void)
{
    printf("net,batch,size,dispatches,barriers,segments,bytes_moved\n");
    for (size_t n = 0; n < PM_COUNT(nets); n++) {
        const struct pm_counts c = counts_of(n, false);

        printf("%s,%d,%d,%zu,%zu,%zu,%llu\n", nets[n].net, nets[n].batch, nets[n].size,
               c.dispatches, c.barriers, c.segments, (unsigned long long)c.bytes_moved);
    }
    return 0;
}

static int list_calls(const char *net)
{
    for (size_t n = 0; n < PM_COUNT(nets); n++)
        if (strcmp(nets[n].net, net) == 0)
            counts_of(n, true);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_bytes),
    };

    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    if (argc == 3 && strcmp(argv[1], "--calls") == 0)
        return list_calls(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
