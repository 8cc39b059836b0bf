/* The table of published checkpoints: rows are complete and consistent, init.checkpoint "imagenet"
 * finds the right row, and a net that starts from another net's row finds its backbone in it. */
#include "../base/unit.h"

#include <ctype.h>

#include "checkpoints/init_rules.h"
#include "checkpoints/published.h"
#include "net/named_net.h"

static void rows_are_complete(void **state)
{
    size_t count;
    const struct pm_published *rows = pm_published_rows(&count);
    (void)state;

    assert_true(count > 40);
    for (size_t i = 0; i < count; i++) {
        const struct pm_published *p = &rows[i];
        const char *file = pm_published_file_name(p);
        const size_t digits = strlen(p->sha256);

        if (!pm_net_row_find(p->net))
            fail_msg("%s: no net %s", p->name, p->net);
        if (strncmp(p->address, "https://", 8) != 0 || !file[0])
            fail_msg("%s: %s", p->name, p->address);
        if (digits != 0 && digits != 8 && digits != 64)
            fail_msg("%s: %zu digits", p->name, digits);
        for (size_t k = 0; k < digits; k++)
            assert_true(isdigit(p->sha256[k]) || (p->sha256[k] >= 'a' && p->sha256[k] <= 'f'));
        /* torchvision's names contain the digits; the others are archives, which have checksums. */
        if (strcmp(p->conventions, "torch") == 0)
            assert_true(digits == 8 && strstr(file, p->sha256) && !pm_published_is_packed(p));
        else
            assert_true(pm_published_is_packed(p));
        assert_true(p->licence[0] && p->data[0] && p->preprocessing[0]);
        for (size_t k = 0; k < i; k++)
            if (strcmp(rows[k].name, p->name) == 0 ||
                strcmp(pm_published_file_name(&rows[k]), file) == 0)
                fail_msg("%s and %s have the same name or file", rows[k].name, p->name);
    }
}

static void expect(const char *net, const char *conventions, const char *row)
{
    const struct pm_published *p = NULL;

    if (pm_published_for(net, conventions, "x.json: init.checkpoint", &p) < 0)
        fail_msg("%s: %s", net, pm_error_text());
    assert_string_equal(p->name, row);
}

static void imagenet_finds_the_row(void **state)
{
    const struct pm_published *p;
    (void)state;

    expect("resnet_v1_50", "torch", "torchvision_resnet50");
    expect("resnet_v1_50", "tensorflow", "slim_resnet_v1_50");
    expect("mobilenet_v2", "torch", "torchvision_mobilenet_v2");
    expect("mobilenet_v2", "tensorflow", "slim_mobilenet_v2");
    expect("vgg_a", NULL, "torchvision_vgg11");
    expect("deeplab_xception_65", "tensorflow", "deeplab_xception_65_imagenet");
    expect("deeplab_mobilenet_v2", "tensorflow", "slim_mobilenet_v2");
    expect("ssd_inception_v2", "tensorflow", "slim_inception_v2");

    assert_int_equal(pm_published_for("vgg_a", "tensorflow", "x.json: init.checkpoint", &p),
                     PM_ECONFIG);
    assert_contains(pm_error_text(), "x.json: init.checkpoint: ");
    assert_contains(pm_error_text(), "set model.conventions=torch");
    assert_int_equal(pm_published_for("lenet", NULL, "x.json: init.checkpoint", &p), PM_ECONFIG);
    assert_contains(pm_error_text(), "model.name lenet has no published ImageNet checkpoint; nets "
                                     "that have one: resnet_v1_18, resnet_v1_34, resnet_v1_50, ");
    assert_contains(pm_error_text(), ", ssd_mobilenet_v2, ");
    assert_int_equal(pm_published_for(NULL, NULL, "x.json: init.checkpoint", &p), PM_ECONFIG);
    assert_contains(pm_error_text(), "a net without model.name has no");
    assert_int_equal(pm_published_find("torchvision_resnet52", &p), PM_ECONFIG);
    assert_contains(pm_error_text(), "did you mean 'torchvision_resnet50'?");
}

/* ---- backbones --------------------------------------------------------------------------- */

static struct pm_variables *variables(const char *name, int classes)
{
    const struct pm_net_row *row = pm_net_row_find(name);
    struct pm_heads heads = { 0 };
    struct pm_variables *v = NULL;
    struct pm_net *net;

    assert_non_null(row);
    net = named_net(name, 1, row->default_size, row->default_size, classes, NULL, &heads);
    if (net->error)
        fail_msg("%s: %s", name, pm_error_text());
    assert_int_equal(pm_variables_create(NULL, net, false, NULL, &v), PM_OK);
    pm_net_destroy(&net);
    return v;
}

static const struct pm_variable *find(const struct pm_variables *v, const char *name)
{
    for (int i = 0; i < v->count; i++)
        if (strcmp(v->list[i].name, name) == 0)
            return &v->list[i];
    return NULL;
}

/* Number of the net's variables that the other net has, under the name that is looked up and in the
 * same shape. A variable of another shape fails the test unless the net is a detector, whose rules
 * leave it out. */
static int found(const struct pm_variables *v, const struct pm_variables *from, const char *net)
{
    struct pm_arena *a = pm_arena_create();
    const char *const *names = pm_init_names(v, PM_INIT_CLASSIFICATION, false, a);
    int count = 0;

    for (int i = 0; i < v->count; i++) {
        const char *name = names ? names[i] : v->list[i].name;
        const struct pm_variable *x = name ? find(from, name) : NULL;

        const bool fits = x && pm_shape_equal(x->shape, v->list[i].shape);

        if (x && !fits && !names)
            fail_msg("%s: %s has another shape", net, name);
        count += fits;
    }
    pm_arena_destroy(&a);
    return count;
}

/* At least two thirds of the backbone's net, whose last layers the other net lacks, are found. */
static void backbones_are_found(void **state)
{
    (void)state;
    for (const struct pm_published_backbone *b = pm_published_backbones(); b->net; b++) {
        const struct pm_published *p = NULL;
        assert_int_equal(pm_published_find(b->row, &p), PM_OK);
        assert_string_equal(p->conventions, "tensorflow");
        struct pm_variables *v = variables(b->net, 5), *from = variables(p->net, p->classes);
        const int count = found(v, from, b->net);
        if (3 * count < 2 * from->count)
            fail_msg("%s: only %d of the %d variables of %s are found", b->net, count,
                          from->count, p->net);
        pm_variables_destroy(&v);
        pm_variables_destroy(&from);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(imagenet_finds_the_row),
        cmocka_unit_test(backbones_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
