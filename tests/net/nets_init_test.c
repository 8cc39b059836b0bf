/* Initial weights and preprocessings of named nets: model.init and model.logits_init replace the
 * values that the originals give to whole nets, and only those. inception_v3 as the Inception
 * trainer makes it has the values of its program, and the config of that recipe states them. */
#include "named_net.h"

#include <pumice/layer.h>
#include <pumice/plan.h>

#define TRAINER "configs/imagenet/inception_v3_trainer.json"

static struct pm_variables *variables(const char *name, int size, const char *options)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net(name, 1, size, size, 10, options, &heads);
    struct pm_variables *v = NULL;

    if (net->error)
        fail_msg("%s: %s", name, pm_error_text());
    assert_int_equal(pm_variables_create(NULL, net, false, NULL, &v), PM_OK);
    pm_net_destroy(&net);
    return v;
}

static bool is_weights(const struct pm_variable *x)
{
    return pm_ends_with(x->name, "weights");
}

static bool starts_as(const struct pm_variable *x, const char *text)
{
    struct pm_init want;

    assert_int_equal(pm_init_parse(text, &want, "test"), PM_OK);
    return x->init.kind == want.kind && x->init.a == want.a;
}

/* The "model" of the config, as `config show` resolves it. */
static char *trainer_options(struct pm_arena *a)
{
    const char *program = getenv("PUMICE_PROGRAM"), *source = getenv("PUMICE_SOURCE");
    struct pm_str text = { 0 };
    char piece[4096];
    size_t n;
    FILE *f = popen(pm_arena_printf(a, "'%s' config show '%s/" TRAINER "' --json",
                                    program ? program : "pumice", source ? source : "."), "r");

    assert_non_null(f);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        pm_str_bytes(&text, piece, n);
    assert_int_equal(pclose(f), 0);
    char *copy = pm_arena_strdup(a, text.text);
    pm_str_free(&text);
    return copy;
}

/* Inception trainer: every convolution tn(0.1); 5x5 of the auxiliary head tn(0.01), its classifier
 * tn(0.001); the last classifier tn(0.01). Moving variances are biased. */
static void inception_trainer(void **state)
{
    static const struct { const char *begin, *init; } rows[] = {
        { "InceptionV3/AuxLogits/Conv2d_2a_5x5/weights", "truncated(0.01)" },
        { "InceptionV3/AuxLogits/Conv2d_2b_1x1/weights", "truncated(0.001)" },
        { "InceptionV3/Logits/Conv2d_1c_1x1/weights", "truncated(0.01)" },
        { "InceptionV3/", "truncated(0.1)" },
    };
    struct pm_arena *a = pm_arena_create();
    cJSON *config = cJSON_Parse(trainer_options(a));
    cJSON *model = cJSON_GetObjectItem(config, "model");
    const cJSON *run = cJSON_GetObjectItem(config, "run");
    const cJSON *optim = cJSON_GetObjectItem(config, "optim");
    cJSON *options = cJSON_CreateObject();
    static const char *const keys[] = { "init", "logits_init", "moving_variance",
                                        "batch_norm_decay", "batch_norm_epsilon", "keep_prob" };
    int count[PM_COUNT(rows)] = { 0 };

    (void)state;
    assert_non_null(config);
    for (size_t i = 0; i < PM_COUNT(keys); i++)
        cJSON_AddItemToObject(options, keys[i],
                              cJSON_Duplicate(cJSON_GetObjectItem(model, keys[i]), true));
    char *text = cJSON_PrintUnformatted(options);
    struct pm_variables *v = variables("inception_v3", 299, text);

    cJSON_free(text);
    for (int i = 0; i < v->count; i++) {
        const struct pm_variable *x = &v->list[i];

        for (size_t k = 0; is_weights(x) && k < PM_COUNT(rows); k++)
            if (strncmp(x->name, rows[k].begin, strlen(rows[k].begin)) == 0) {
                if (!starts_as(x, rows[k].init))
                    fail_msg("%s does not start as %s", x->name, rows[k].init);
                count[k]++;
                break;
            }
    }
    assert_int_equal(count[0] + count[1] + count[2], 3);
    assert_int_equal(count[3], 95);
    assert_string_equal(cJSON_GetObjectItem(model, "moving_variance")->valuestring, "biased");
    assert_true((float)cJSON_GetObjectItem(model, "batch_norm_decay")->valuedouble == 0.9997f);
    assert_true((float)cJSON_GetObjectItem(model, "batch_norm_epsilon")->valuedouble == 0.001f);
    assert_true((float)cJSON_GetObjectItem(model, "keep_prob")->valuedouble == 0.8f);
    assert_string_equal(cJSON_GetObjectItem(optim, "name")->valuestring, "rmsprop");
    assert_true((float)cJSON_GetObjectItem(optim, "epsilon")->valuedouble == 1.0f);
    assert_true((float)cJSON_GetObjectItem(optim, "moving_average_decay")->valuedouble == 0.9999f);
    assert_true((float)cJSON_GetObjectItem(optim, "weight_decay")->valuedouble == 4e-5f);
    assert_int_equal(cJSON_GetObjectItem(run, "summary_every_steps")->valueint, 100);
    assert_int_equal(cJSON_GetObjectItem(run, "save_every_steps")->valueint, 5000);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(run, "summary_gradients")));
    assert_int_equal(cJSON_GetObjectItem(run, "summary_activations")->valueint, 32);
    assert_string_equal(cJSON_GetObjectItem(run, "batch_norm_update")->valuestring, "last");
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(run, "save_first_step")));
    pm_variables_destroy(&v);
    cJSON_Delete(options);
    cJSON_Delete(config);
    pm_arena_destroy(&a);
}

/* Every named net for classification takes the two keys. kept: weights that keep their own values,
 * because the original states them for one layer, or because they are fully connected. */
static void every_net(void **state)
{
    static const struct { const char *name; int size; const char *logits, *kept[4]; } nets[] = {
        { "lenet", 28, "LeNet/fc4/", { "LeNet/fc3/" } },
        { "cifarnet", 32, "CifarNet/logits/", { "CifarNet/fc3/", "CifarNet/fc4/" } },
        { "alexnet_v2", 224, "alexnet_v2/fc8/", { "alexnet_v2/fc6/", "alexnet_v2/fc7/" } },
        { "overfeat", 231, "overfeat/fc8/", { "overfeat/fc6/", "overfeat/fc7/" } },
        { "vgg_a", 224, "vgg_a/fc8/", { NULL } },
        { "inception_v1", 224, "InceptionV1/Logits/", { NULL } },
        { "inception_v2", 224, "InceptionV2/Logits/", { "InceptionV2/" } },
        { "inception_v3", 299, "InceptionV3/Logits/",
          { "InceptionV3/AuxLogits/Conv2d_2a", "InceptionV3/AuxLogits/Conv2d_2b" } },
        { "inception_v4", 299, "InceptionV4/Logits/", { "InceptionV4/AuxLogits/Aux_logits" } },
        { "inception_resnet_v2", 299, "InceptionResnetV2/Logits/",
          { "InceptionResnetV2/AuxLogits/Logits" } },
        { "resnet_v1_50", 64, "resnet_v1_50/logits/", { NULL } },
        { "resnet_v1_18", 64, "resnet_v1_18/logits/", { NULL } },
        { "resnet_v2_50", 64, "resnet_v2_50/logits/", { NULL } },
        { "mobilenet_v1", 64, "MobilenetV1/Logits/", { NULL } },
        { "mobilenet_v2", 64, "MobilenetV2/Logits/", { NULL } },
        { "mobilenet_v3_large", 64, "MobilenetV3/Logits/", { NULL } },
        { "mobilenet_edgetpu", 64, "MobilenetEdgeTPU/Logits/", { NULL } },
        { "nasnet_cifar", 32, "final_layer/", { "aux_11/aux_logits/FC" } },
        { "pnasnet_mobile", 96, "final_layer/", { "aux_5/aux_logits/FC" } },
    };
    static const char options[] = "{\"init\": \"normal(0.25)\", "
                                  "\"logits_init\": \"constant(0.5)\"}";

    (void)state;
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        struct pm_variables *v = variables(nets[i].name, nets[i].size, options);
        struct pm_variables *own = variables(nets[i].name, nets[i].size, NULL);
        int changed = 0, last = 0;

        for (int k = 0; k < v->count; k++) {
            const struct pm_variable *x = &v->list[k], *y = &own->list[k];
            bool keeps = !is_weights(x);

            for (int j = 0; j < 4 && nets[i].kept[j]; j++)
                keeps |= strncmp(x->name, nets[i].kept[j], strlen(nets[i].kept[j])) == 0;
            if (is_weights(x) && strncmp(x->name, nets[i].logits, strlen(nets[i].logits)) == 0) {
                last++;
                if (!starts_as(x, "constant(0.5)"))
                    fail_msg("%s does not start as model.logits_init", x->name);
            } else if (is_weights(x) && starts_as(x, "normal(0.25)")) {
                changed++;
            } else if (!keeps) {
                fail_msg("%s does not start as model.init", x->name);
            } else {
                assert_true(x->init.kind == y->init.kind && x->init.a == y->init.a);
            }
        }
        assert_int_equal(last, 1);
        if (changed < 2)
            fail_msg("%s: only %d convolutions start as model.init", nets[i].name, changed);
        pm_variables_destroy(&v);
        pm_variables_destroy(&own);
    }
}

/* Without model.logits_init a last layer that is a convolution starts as model.init. */
static void last_layers(void **state)
{
    struct pm_variables *v = variables("mobilenet_v2", 64, "{\"init\": \"normal(0.25)\"}");
    bool found = false;

    (void)state;
    for (int i = 0; i < v->count; i++)
        if (strcmp(v->list[i].name, "MobilenetV2/Logits/Conv2d_1c_1x1/weights") == 0)
            found = starts_as(&v->list[i], "normal(0.25)");
    assert_true(found);
    pm_variables_destroy(&v);
}

static void mistakes(void **state)
{
    (void)state;
    expect_refusal("lenet", 28, "{\"init\": \"gauss(1)\"}", "model.init: 'gauss(1)' is not an");
    expect_refusal("vgg_a", 224, "{\"init\": \"truncated( 0.1)\"}", "remove the blanks");
    expect_refusal("lenet", 28, "{\"logits_init\": \"truncated\"}", "model.logits_init");
    expect_refusal("inception_v4", 299, "{\"logits_init\": \"constant(x)\"}",
                   "model.logits_init: 'constant(x)'");
}

/* The preprocessing of a net without input.preprocessing: TF-Slim's by the net's name. Nets that
 * TF-Slim does not list have that of their family. */
static void preprocessings(void **state)
{
    static const struct { const char *begin, *preprocessing; } rows[] = {
        { "lenet", "lenet" },        { "cifarnet", "cifarnet" },  { "alexnet", "vgg" },
        { "overfeat", "vgg" },       { "vgg_", "vgg" },           { "inception_", "inception" },
        { "resnet_v1_18", "torch" }, { "resnet_v1_34", "torch" }, { "resnet_v1_", "vgg" },
        { "resnet_v2_", "vgg" },     { "mobilenet_", "inception" }, { "nasnet_cifar", "cifarnet" },
        { "nasnet_", "inception" },  { "pnasnet_", "inception" },
    };
    size_t count;
    const struct pm_net_row *const *all = pm_net_rows(&count);
    int seen = 0;

    (void)state;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i]->task, "classification") != 0)
            continue;
        for (size_t k = 0; k < PM_COUNT(rows); k++)
            if (strncmp(all[i]->name, rows[k].begin, strlen(rows[k].begin)) == 0) {
                if (strcmp(all[i]->preprocessing, rows[k].preprocessing) != 0)
                    fail_msg("%s: %s", all[i]->name, all[i]->preprocessing);
                seen++;
                break;
            }
    }
    assert_true(seen > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inception_trainer), cmocka_unit_test(every_net),
        cmocka_unit_test(last_layers),       cmocka_unit_test(mistakes),
        cmocka_unit_test(preprocessings),
    };

    return cmocka_run_group_tests_name("nets_init", tests, NULL, NULL);
}
