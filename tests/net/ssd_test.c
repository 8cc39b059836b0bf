/* One-stage detectors: numbers of trained variables, parameters and anchors of the original
 * definitions, the names and shapes of heads and variables, and options. */
#include "named_net.h"

#include "layers/anchors.h"

struct numbers { int variables, parameters, anchors; };

static struct numbers numbers_of(const struct pm_net *net, const struct pm_heads *heads)
{
    struct numbers n = { .anchors = pm_heads_find(heads, "anchors")->out_shape.dim[0] };

    for (int k = 0; k < net->var_count; k++)
        if (net->vars[k]->trainable) {
            n.variables++;
            n.parameters += (int)pm_shape_count(net->vars[k]->shape);
        }
    return n;
}

static struct pm_net *built(const char *name, int size, int classes, const char *options,
                            struct pm_heads *heads)
{
    struct pm_net *net = named_net(name, 2, size, size, classes, options, heads);

    if (net->error)
        fail_msg("%s at %d: %s", name, size, pm_error_text());
    return net;
}

/* The original definition, built by tf-object-detection 0.0.3 on TensorFlow 2.12, has these
 * numbers. */
static void counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int size, classes;
        const char *options;
        struct numbers want;
    } nets[] = {
        { "ssd_mobilenet_v1", 300, 90, NULL, { 129, 6819839, 1917 } },
        { "ssd_mobilenet_v2", 300, 90, NULL, { 204, 6066431, 1917 } },
        { "ssd_mobilenet_v2", 300, 3, NULL, { 204, 4643720, 1917 } },
        { "ssd_mobilenet_v2", 300, 90, "{\"use_depthwise\": true, \"box_predictor\": "
          "{\"use_depthwise\": true, \"kernel_size\": 3}}", { 252, 4500543, 1917 } },
        { "ssd_inception_v2", 300, 90, NULL, { 256, 25030231, 1917 } },
        { "ssd_mobilenet_v1_fpn", 640, 90, NULL, { 191, 12080762, 51150 } },
        { "ssd_resnet_v1_50_fpn", 640, 90, NULL, { 269, 32840570, 51150 } },
        { "ssd_mobilenet_v2_fpn", 320, 90, "{\"use_depthwise\": true, "
          "\"additional_layer_depth\": 128, \"box_predictor\": {\"use_depthwise\": true, "
          "\"depth\": 128, \"share_prediction_tower\": true}}", { 232, 2165946, 12804 } },
    };

    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_heads heads = { 0 };
        struct pm_net *net = built(nets[i].name, nets[i].size, nets[i].classes, nets[i].options,
                                   &heads);
        const struct numbers have = numbers_of(net, &heads), *want = &nets[i].want;

        if (memcmp(&have, want, sizeof have) != 0)
            fail_msg("%s at %d: %d variables, %d parameters, %d anchors", nets[i].name,
                     nets[i].size, have.variables, have.parameters, have.anchors);
        pm_net_destroy(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
