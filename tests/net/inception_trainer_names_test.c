/* The Inception trainer's names for inception_v3: a file with them has every variable of the net,
 * and renaming it again gives the same names. golden/inception_trainer_variables.json lists the
 * layers in the order in which the original creates them, which is the order of the net's layers,
 * too. So the layers are paired without the table of names_inception_trainer.c. */
#include "base/golden_file.h"

#include <pumice/names.h>

#include "formats/tensor_format.h"
#include "named_net.h"

enum { LAYERS = 98 };

/* The value of an element is its index. */
static int read_made(const struct pm_tensor_file *f, const struct pm_file_tensor *t, uint64_t begin,
                     size_t size, void *dst)
{
    (void)f, (void)t;
    for (size_t i = 0; i < size / 4; i++)
        ((float *)dst)[i] = (float)(begin / 4 + i);
    return PM_OK;
}

static void put(struct pm_tensor_file *f, const char *scope, const char *end, const cJSON *shape)
{
    char name[200];
    struct pm_file_tensor *t;

    snprintf(name, sizeof name, "%s%s", scope, end);
    t = pm_tensor_file_add(f, name);
    t->type = PM_DTYPE_F32;
    t->rank = cJSON_GetArraySize(shape);
    for (int i = 0; i < t->rank; i++)
        t->dim[i] = cJSON_GetArrayItem(shape, i)->valueint;
    assert_int_equal(pm_tensor_file_measure(f, t), PM_OK);
}

/* A file of the original: every variable with an average, a slot, and the step. */
static struct pm_tensor_file *original(const cJSON *layers)
{
    static const struct pm_tensor_format format = { .name = "made" };
    static const char *const conv[] = { "/weights", "/BatchNorm/beta", "/BatchNorm/moving_mean",
                                        "/BatchNorm/moving_variance", NULL };
    static const char *const fc[] = { "/weights", "/biases", NULL };
    struct pm_tensor_file *f = pm_tensor_file_make("model.ckpt-157585", &format);
    const cJSON *layer, *none = NULL;

    f->read = read_made;
    cJSON_ArrayForEach(layer, layers)
    {
        const char *scope = cJSON_GetArrayItem(layer, 0)->valuestring;
        const char *kind = cJSON_GetArrayItem(layer, 1)->valuestring;
        const cJSON *shape = cJSON_GetArrayItem(layer, 2);
        cJSON *width = cJSON_CreateArray();

        cJSON_AddItemToArray(width, cJSON_Duplicate(cJSON_GetArrayItem(
                                        shape, cJSON_GetArraySize(shape) - 1), true));
        for (const char *const *end = strcmp(kind, "fc") == 0 ? fc : conv; *end; end++) {
            const cJSON *s = strcmp(*end, "/weights") == 0 ? shape : width;
            char more[64];

            put(f, scope, *end, s);
            snprintf(more, sizeof more, "%s/ExponentialMovingAverage", *end);
            put(f, scope, more, s);
        }
        put(f, scope, "/weights/RMSProp_1", shape);
        cJSON_Delete(width);
    }
    put(f, "global_step", "", none);
    assert_int_equal(pm_tensor_file_finish(f), PM_OK);
    return f;
}

static bool is_layer(const struct pm_node *n)
{
    return strcmp(n->layer->name, "conv2d") == 0;
}

static const struct pm_file_tensor *found(const struct pm_tensor_file *f, const char *format, ...)
    PM_PRINTF(2, 3);
static const struct pm_file_tensor *found(const struct pm_tensor_file *f, const char *format, ...)
{
    char name[300];
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    if (!pm_tensor_file_find(f, name))
        fail_msg("no %s", name);
    return pm_tensor_file_find(f, name);
}

static void every_variable(void **state)
{
    cJSON *layers = read_golden("inception_trainer_variables.json");
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net("inception_v3", 1, 299, 299, 1001, NULL, &heads);
    struct pm_variables *v = NULL;
    struct pm_tensor_file *theirs = original(layers), *f = NULL, *again = NULL;
    const size_t count = pm_tensor_file_count(theirs);
    struct pm_arena *a = pm_arena_create();
    const char **names = pm_arena_alloc(a, count * sizeof *names);
    int64_t (*shapes)[8] = pm_arena_alloc(a, count * sizeof *shapes);
    int k = 0;

    (void)state;
    assert_int_equal(cJSON_GetArraySize(layers), LAYERS);
    assert_int_equal(pm_variables_create(NULL, net, false, NULL, &v), PM_OK);
    assert_int_equal(v->count, 388);
    for (size_t i = 0; i < count; i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(theirs, i);

        names[i] = pm_arena_strdup(a, t->name);
        memcpy(shapes[i], t->dim, sizeof shapes[i]);
    }
    assert_true(pm_names_are_inception_trainer(theirs));
    assert_int_equal(pm_names_from_inception_trainer(theirs, &f), PM_OK);
    assert_false(pm_names_are_inception_trainer(f));

    /* All 388 variables are there with equal shapes, each with its average. */
    for (int i = 0; i < v->count; i++) {
        const struct pm_file_tensor *t = found(f, "%s", v->list[i].name);

        found(f, "%s/ExponentialMovingAverage", v->list[i].name);
        assert_int_equal(t->rank, v->list[i].shape.rank);
        for (int d = 0; d < t->rank; d++)
            assert_int_equal(t->dim[d], v->list[i].shape.dim[d]);
    }
    assert_int_equal(pm_tensor_file_count(f), 2 * 388 + LAYERS + 1);
    found(f, "global_step");
    found(f, "InceptionV3/Mixed_7c/Branch_2/Conv2d_0d_3x1/weights/RMSProp_1");

    assert_int_equal(pm_names_to_inception_trainer(f, &again), PM_OK);
    assert_int_equal(pm_tensor_file_count(again), count);
    for (size_t i = 0; i < count; i++) {
        const struct pm_file_tensor *t = found(again, "%s", names[i]);

        assert_memory_equal(t->dim, shapes[i], (size_t)t->rank * sizeof t->dim[0]);
    }

    /* Layer by layer in the order of creation. */
    for (int i = 0; i < net->count; i++) {
        const struct pm_node *n = net->nodes[i];
        const cJSON *layer = cJSON_GetArrayItem(layers, k);
        const struct pm_file_tensor *t;

        if (!is_layer(n))
            continue;
        k++;
        /* The renamed file reads the tensor that the original has at this place. */
        const char *scope = cJSON_GetArrayItem(layer, 0)->valuestring;
        struct pm_tensor_file *one = NULL, *mine = NULL;
        static const struct pm_tensor_format format = { .name = "made" };

        one = pm_tensor_file_make("one", &format);
        put(one, scope, "/weights", cJSON_GetArrayItem(layer, 2));
        assert_int_equal(pm_tensor_file_finish(one), PM_OK);
        assert_int_equal(pm_names_from_inception_trainer(one, &mine), PM_OK);
        t = pm_tensor_file_get(mine, 0);
        assert_string_equal(t->name, pm_arena_printf(a, "%s/weights", n->name));
        pm_tensor_file_close(&mine);
    }
    assert_int_equal(k, LAYERS);
    pm_tensor_file_close(&again);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    pm_arena_destroy(&a);
    cJSON_Delete(layers);
}

/* Elements are read through both renamings. The two classifiers change their rank only. */
static void values(void **state)
{
    cJSON *layers = read_golden("inception_trainer_variables.json");
    struct pm_tensor_file *f = NULL;
    const struct pm_file_tensor *t;
    float x[3];

    (void)state;
    assert_int_equal(pm_names_from_inception_trainer(original(layers), &f), PM_OK);
    t = found(f, "InceptionV3/Logits/Conv2d_1c_1x1/weights");
    assert_int_equal(t->rank, 4);
    assert_int_equal(t->dim[2], 2048);
    assert_int_equal(pm_tensor_file_floats(f, t, 1002, 3, x), PM_OK);
    assert_true(x[0] == 1002 && x[2] == 1004);
    assert_int_equal(found(f, "InceptionV3/AuxLogits/Conv2d_2b_1x1/weights/RMSProp_1")->rank, 4);
    assert_int_equal(pm_names_to_inception_trainer(f, &f), PM_OK);
    t = found(f, "logits/logits/weights");
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->dim[0], 2048);
    assert_int_equal(pm_tensor_file_floats(f, t, 1002, 3, x), PM_OK);
    assert_true(x[0] == 1002 && x[2] == 1004);
    pm_tensor_file_close(&f);
    cJSON_Delete(layers);
}

/* A smaller picture leaves a smaller map for the auxiliary head's last convolution. */
static void smaller_auxiliary_map(void **state)
{
    cJSON *layers = read_golden("inception_trainer_variables.json"), *layer, *shape;
    struct pm_tensor_file *f = NULL;

    (void)state;
    cJSON_ArrayForEach(layer, layers)
        if (strcmp(cJSON_GetArrayItem(layer, 0)->valuestring, "aux_logits/Conv") == 0)
            break;
    assert_non_null(layer);
    shape = cJSON_GetArrayItem(layer, 2);
    cJSON_SetNumberValue(cJSON_GetArrayItem(shape, 0), 2);
    cJSON_SetNumberValue(cJSON_GetArrayItem(shape, 1), 3);
    assert_int_equal(pm_names_from_inception_trainer(original(layers), &f), PM_OK);
    found(f, "InceptionV3/AuxLogits/Conv2d_2a_2x3/weights");
    found(f, "InceptionV3/AuxLogits/Conv2d_2a_2x3/BatchNorm/beta");
    assert_int_equal(pm_names_to_inception_trainer(f, &f), PM_OK);
    found(f, "aux_logits/Conv/BatchNorm/beta");
    pm_tensor_file_close(&f);
    cJSON_Delete(layers);
}

static void other_nets_are_refused(void **state)
{
    static const struct pm_tensor_format format = { .name = "made" };
    struct pm_tensor_file *f = pm_tensor_file_make("lenet.ckpt", &format), *out = NULL;
    cJSON *one = cJSON_Parse("[3]");

    (void)state;
    put(f, "LeNet/conv1/biases", "", one);
    assert_int_equal(pm_tensor_file_finish(f), PM_OK);
    assert_false(pm_names_are_inception_trainer(f));
    assert_int_equal(pm_names_to_inception_trainer(f, &out), PM_EDATA);
    assert_contains(pm_error_text(), "lenet.ckpt");
    assert_contains(pm_error_text(), "only the variables of inception_v3");
    pm_tensor_file_close(&f);
    cJSON_Delete(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variable),
        cmocka_unit_test(values),
        cmocka_unit_test(smaller_auxiliary_map),
        cmocka_unit_test(other_nets_are_refused),
    };

    return cmocka_run_group_tests_name("inception_trainer_names", tests, NULL, NULL);
}
