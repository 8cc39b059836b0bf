/* A net built again over other images. The nodes of such a pass have their own names and share
 * the variables of the first build. A layer that the first build lacks has its own variables,
 * named after it. */
#include <pumice/net.h>

#include <cjson/cJSON.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

static struct pm_node *build(struct pm_net *net, struct pm_node *images)
{
    struct pm_node *x = pm_net_add(net, "net/conv", images, "conv2d filters=4 kernel=3");

    pm_net_add(net, "net/conv/BatchNorm", x, "batch_norm");
    return pm_net_add(net, "net/last", pm_net_find(net, "net/conv/BatchNorm"),
                      "conv2d filters=2 kernel=1");
}

static struct pm_net *twice(struct pm_node **first, struct pm_node **second)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(2, 8, 8, 3), PM_F32);

    *first = build(net, images);
    net->pass = "half";
    *second = build(net, pm_net_add(net, "resize", images, "resize size=4"));
    pm_net_add(net, "net/extra", *second, "conv2d filters=2 kernel=1");
    net->pass = NULL;
    if (net->error)
        fail_msg("%s", pm_error_text());
    return net;
}

static void variables_are_shared(void **state)
{
    (void)state;
    struct pm_node *first, *second;
    struct pm_net *net = twice(&first, &second);

    assert_string_equal(first->name, "net/last");
    assert_string_equal(second->name, "half/net/last");
    assert_int_equal(net->var_count, 2 + 4 + 2 + 2);
    for (int k = 0; k < first->var_count; k++)
        assert_int_equal(first->vars[k], second->vars[k]);
    assert_ptr_equal(second->in[0], pm_net_find(net, "half/net/conv/BatchNorm"));
    assert_int_equal(second->out_shape.dim[1], 4);
    assert_string_equal(net->vars[net->var_count - 1]->name, "half/net/extra/biases");
    pm_net_destroy(&net);
}

static void names_are_found_in_the_pass_first(void **state)
{
    (void)state;
    struct pm_node *first, *second;
    struct pm_net *net = twice(&first, &second);

    net->pass = "half";
    assert_ptr_equal(pm_net_find(net, "net/last"), second);
    assert_string_equal(pm_net_find(net, "images")->name, "images");
    net->pass = "other";
    assert_ptr_equal(pm_net_find(net, "net/last"), first);
    net->pass = NULL;
    assert_ptr_equal(pm_net_find(net, "net/last"), first);
    pm_net_destroy(&net);
}

/* A pass written as a layer list and read back has the same variables. */
static void a_list_says_what_is_shared(void **state)
{
    (void)state;
    struct pm_node *first, *second;
    struct pm_net *net = twice(&first, &second), *again = pm_net_create();
    struct pm_heads heads = { 0 };
    cJSON *list = pm_net_to_json(net);
    struct pm_node *images = pm_net_input(again, "images", PM_SHAPE4(2, 8, 8, 3), PM_F32);

    if (pm_net_from_json(again, images, list, "list", &heads) < 0)
        fail_msg("%s", pm_error_text());
    assert_int_equal(again->var_count, net->var_count);
    for (int k = 0; k < net->var_count; k++)
        assert_string_equal(again->vars[k]->name, net->vars[k]->name);
    cJSON_Delete(list);
    pm_net_destroy(&again);
    pm_net_destroy(&net);
}

/* Ranges of quantised layers are shared; their variables' names have further parts after the
 * scope. */
static void ranges_are_shared(void **state)
{
    (void)state;
    cJSON *list = cJSON_Parse("[{\"name\":\"a\",\"layer\":\"quantized_conv2d\",\"filters\":3,"
                              "\"batch_norm\":true,\"bias\":false},"
                              "{\"name\":\"b\",\"layer\":\"fake_quant\"},"
                              "{\"name\":\"c\",\"layer\":\"fake_quant\",\"share\":\"b\"}]");
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(2, 8, 8, 3), PM_F32);
    struct pm_heads first = { 0 }, second = { 0 };

    if (pm_net_from_json(net, images, list, "list", &first) < 0)
        fail_msg("%s", pm_error_text());
    assert_int_equal(net->var_count, 7 + 6);
    net->pass = "half";
    if (pm_net_from_json(net, images, list, "list", &second) < 0)
        fail_msg("%s", pm_error_text());
    assert_int_equal(net->var_count, 7 + 6);
    for (const char *const *name = (const char *const[]){ "a", "b", "c", NULL }; *name; name++) {
        net->pass = NULL;
        const struct pm_node *x = pm_net_find(net, *name);
        net->pass = "half";
        const struct pm_node *y = pm_net_find(net, *name);

        assert_ptr_not_equal(x, y);
        assert_int_equal(x->var_count, y->var_count);
        for (int k = 0; k < x->var_count; k++)
            assert_int_equal(x->vars[k], y->vars[k]);
    }
    cJSON_Delete(list);
    pm_net_destroy(&net);
}

/* A list with layers without names, and with shares and inputs given by name. */
static void a_list_is_read_again_in_a_pass(void **state)
{
    (void)state;
    cJSON *list =
        cJSON_Parse("[{\"layer\":\"conv2d\",\"filters\":3,\"kernel\":3},"
                    "{\"name\":\"second\",\"layer\":\"conv2d\",\"filters\":3,\"kernel\":3},"
                    "{\"layer\":\"conv2d\",\"filters\":3,\"kernel\":3,\"inputs\":\"images\","
                    "\"share\":\"second\"}]");
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(2, 8, 8, 3), PM_F32), *x;
    struct pm_heads first = { 0 }, second = { 0 };

    assert_int_equal(pm_net_from_json(net, images, list, "list", &first), PM_OK);
    net->pass = "half";
    x = pm_net_add(net, "resize", images, "resize size=4");
    if (pm_net_from_json(net, x, list, "list", &second) < 0)
        fail_msg("%s", pm_error_text());
    assert_string_equal(pm_heads_main(&second)->name, "half/conv2d_3");
    assert_ptr_equal(pm_heads_main(&second)->in[0], x);
    assert_int_equal(net->var_count, 4);
    for (int k = 0; k < pm_heads_main(&first)->var_count; k++)
        assert_int_equal(pm_heads_main(&first)->vars[k], pm_heads_main(&second)->vars[k]);
    cJSON_Delete(list);
    pm_net_destroy(&net);
}

static void another_layer_of_that_name_is_refused(void **state)
{
    (void)state;
    struct pm_node *first, *second;
    struct pm_net *net = twice(&first, &second);

    net->pass = "third";
    pm_net_add(net, "net/conv", pm_net_find(net, "images"), "conv2d filters=5 kernel=3");
    assert_int_equal(net->error, PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "third/net/conv: it shares the variables of net/conv"));
    pm_net_destroy(&net);
}

/* Layers of a classifier inside a detector: names begin with the prefix, also in a pass. */
static void prefixes(void **state)
{
    (void)state;
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(2, 8, 8, 3), PM_F32), *x;

    net->prefix = "FeatureExtractor";
    x = build(net, images);
    assert_string_equal(x->name, "FeatureExtractor/net/last");
    assert_ptr_equal(pm_net_find(net, "net/last"), x);
    assert_string_equal(pm_net_scope(net, "net/last"), x->name);
    net->pass = "half";
    x = build(net, images);
    assert_string_equal(x->name, "half/FeatureExtractor/net/last");
    assert_ptr_equal(pm_net_find(net, "net/last"), x);
    net->pass = net->prefix = NULL;
    assert_null(pm_net_find(net, "net/last"));
    assert_string_equal(pm_net_scope(net, "net/last"), "net/last");
    assert_int_equal(net->error, PM_OK);
    assert_int_equal(net->var_count, 2 + 4 + 2);
    assert_string_equal(net->vars[0]->name, "FeatureExtractor/net/conv/weights");
    pm_net_destroy(&net);
}

/* One convolution on two maps, with a batch norm for each. */
static void heads_share_weights(void **state)
{
    (void)state;
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(2, 8, 8, 3), PM_F32);
    struct pm_node *half = pm_net_add(net, "pool", images, "max_pool kernel=2 stride=2"), *x, *y;

    x = pm_net_add_shared(net, "conv", images, NULL, "conv2d filters=4 bias=false");
    y = pm_net_add_shared(net, "conv/1", half, x, "conv2d filters=4 bias=false");
    pm_net_add(net, "conv/BatchNorm/feature_0", x, "batch_norm");
    pm_net_add(net, "conv/BatchNorm/feature_1", y, "batch_norm");
    assert_int_equal(net->error, PM_OK);
    assert_int_equal(net->var_count, 1 + 4 + 4);
    assert_int_equal(y->vars[0], x->vars[0]);
    assert_string_equal(net->vars[8]->name, "conv/BatchNorm/feature_1/moving_variance");
    pm_net_add_shared(net, "wrong", half, x, "conv2d filters=5 bias=false");
    assert_int_equal(net->error, PM_ECONFIG);
    pm_net_destroy(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_are_shared),
        cmocka_unit_test(names_are_found_in_the_pass_first),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(heads_share_weights),
        cmocka_unit_test(a_list_says_what_is_shared),
        cmocka_unit_test(a_list_is_read_again_in_a_pass),
        cmocka_unit_test(ranges_are_shared),
        cmocka_unit_test(another_layer_of_that_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
