/* A classifier's checkpoint starts a detector: under the names that init.type "classification"
 * looks up, the detector finds every variable of the classifier but those of its last layers. One
 * classifier starts both stages of Faster R-CNN. */
#include "named_net.h"

#include "checkpoints/init_rules.h"

static int find(const struct pm_net *net, const char *name)
{
    for (int i = 0; i < net->var_count; i++)
        if (strcmp(net->vars[i]->name, name) == 0)
            return i;
    return -1;
}

static struct pm_net *built(const char *name, int size, struct pm_heads *heads)
{
    struct pm_net *net = named_net(name, 1, size, size, 4, NULL, heads);
    struct pm_heads second;

    if (pm_net_row_find(name)->second && !net->error)
        named_second(net, name, 2, 4, NULL, &second);
    if (net->error)
        fail_msg("%s: %s", name, pm_error_text());
    return net;
}

/* Checks that only classifier variables that begin with `last` or `more` are not looked up, and no
 * variable by two of the detector's. */
static void starts(const char *detector, const char *classifier, const char *last,
                   const char *more)
{
    struct pm_heads heads = { 0 }, others = { 0 };
    struct pm_net *net = built(detector, 320, &heads);
    struct pm_net *from = built(classifier, pm_net_row_find(classifier)->default_size, &others);
    struct pm_variable *list = pm_calloc((size_t)net->var_count, sizeof *list);
    bool *found = pm_calloc((size_t)from->var_count, sizeof *found);
    const struct pm_variables v = { .list = list, .count = net->var_count };
    const char *const *names;

    for (int i = 0; i < net->var_count; i++)
        list[i] = *net->vars[i];
    names = pm_init_names(&v, PM_INIT_CLASSIFICATION, false, net->arena);
    if (!names)
        fail_msg("%s: no rules", detector);
    for (int i = 0; i < net->var_count; i++) {
        const int k = names[i] ? find(from, names[i]) : -1;

        if (k < 0)
            continue;
        if (!pm_shape_equal(from->vars[k]->shape, list[i].shape))
            fail_msg("%s: %s has another shape", detector, names[i]);
        if (found[k])
            fail_msg("%s takes %s twice", detector, names[i]);
        found[k] = true;
    }
    for (int k = 0; k < from->var_count; k++)
        if (!found[k] && strncmp(from->vars[k]->name, last, strlen(last)) != 0 &&
            (!more || strncmp(from->vars[k]->name, more, strlen(more)) != 0))
            fail_msg("%s does not take %s", detector, from->vars[k]->name);
    pm_free(list);
    pm_free(found);
    pm_net_destroy(&net);
    pm_net_destroy(&from);
}

static void classifiers(void **state)
{
    (void)state;
    starts("ssd_mobilenet_v1", "mobilenet_v1", "MobilenetV1/Logits", NULL);
    starts("ssd_mobilenet_v1_fpn", "mobilenet_v1", "MobilenetV1/Logits", NULL);
    starts("ssd_mobilenet_v2", "mobilenet_v2", "MobilenetV2/Logits", NULL);
    starts("ssd_mobilenet_v2_fpn", "mobilenet_v2", "MobilenetV2/Logits", NULL);
    starts("ssd_inception_v2", "inception_v2", "InceptionV2/Logits",
           "InceptionV2/Conv2d_1a_7x7/biases"); /* the detector has batch norm there */
    starts("ssd_inception_v3", "inception_v3", "InceptionV3/AuxLogits", "InceptionV3/Logits");
    starts("ssd_resnet_v1_50_fpn", "resnet_v1_50", "resnet_v1_50/logits", NULL);
    starts("retinanet_50", "resnet_v1_50", "resnet_v1_50/logits", NULL);
    starts("faster_rcnn_mobilenet_v1", "mobilenet_v1", "MobilenetV1/Logits", NULL);
    starts("faster_rcnn_resnet50", "resnet_v1_50", "resnet_v1_50/logits", NULL);
    starts("faster_rcnn_inception_v2", "inception_v2", "InceptionV2/Logits",
           "InceptionV2/Conv2d_1a_7x7/biases");
    starts("faster_rcnn_inception_resnet_v2", "inception_resnet_v2", "InceptionResnetV2/AuxLogits",
           "InceptionResnetV2/Logits");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(classifiers) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
