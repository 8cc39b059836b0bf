/* The nets that pm_net_quantize makes, and the values that their nodes compute: a training step
 * and an evaluation compared with TensorFlow's rounding (tests/golden/quantized_step.py, and for
 * heads with shared weights quantized_heads.py), on the CPU and every Vulkan device. Before the
 * delay is over, a step equals that of the original net. */
#include "base/golden_file.h"
#include "base/unit.h"

#include <pumice/plan.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

/* ---- places of quantised nodes --------------------------------------------------------------- */

static cJSON *parse(const char *text)
{
    char *copy = pm_strdup(text);
    cJSON *list;

    for (char *s = copy; *s; s++)
        *s = *s == '\'' ? '"' : *s;
    list = cJSON_Parse(copy);
    pm_free(copy);
    assert_non_null(list);
    return list;
}

static struct pm_net *build(const cJSON *list, struct pm_shape images, struct pm_heads *heads)
{
    struct pm_net *net = pm_net_create();

    if (pm_net_from_json(net, pm_net_input(net, "images", images, PM_F32), list, "layers", heads) <
        0)
        fail_msg("%s", pm_error_text());
    return net;
}

/* "NAME LAYER(INPUT,INPUT) ..." of every node. */
static void describe(const struct pm_net *net, struct pm_str *out)
{
    for (int i = 1; i < net->count; i++) {
        const struct pm_node *n = net->nodes[i];

        assert_int_equal(n->index, i);
        pm_str_add(out, "%s%s %s(", i > 1 ? "; " : "", n->name, n->layer->name);
        for (int k = 0; k < n->inputs; k++) {
            assert_true(n->in[k]->index < i && net->nodes[n->in[k]->index] == n->in[k]);
            pm_str_add(out, "%s%s", k ? "," : "", n->in[k]->name);
        }
        pm_str_add(out, ")");
    }
}

static void check_places(const char *layers, const char *want, const char *logits)
{
    struct pm_heads heads = { 0 };
    struct pm_str got = { 0 };
    cJSON *list = parse(layers);
    struct pm_net *net = build(list, PM_SHAPE4(2, 8, 8, 3), &heads);

    if (pm_net_quantize(net, 1, &(struct pm_quantization){ 0 }, &heads) < 0)
        fail_msg("%s", pm_error_text());
    describe(net, &got);
    assert_string_equal(got.text, want);
    assert_string_equal(pm_heads_main(&heads)->name, logits);
    pm_str_free(&got);
    pm_net_destroy(&net);
    cJSON_Delete(list);
}

static void places(void **state)
{
    (void)state;
    check_places(
        "[{'name':'a','layer':'conv2d','bias':false},{'name':'a/BatchNorm','layer':'batch_norm',"
        "'activation':'relu6'},{'name':'p','layer':'max_pool'},"
        "{'name':'b','layer':'depthwise_conv2d','activation':'relu'},"
        "{'name':'c','layer':'fully_connected','units':4}]",
        "a quantized_conv2d(images); a/act_quant fake_quant(a); p max_pool(a/act_quant); "
        "b quantized_conv2d(p); b/act_quant fake_quant(b); c quantized_conv2d(b/act_quant); "
        "c/act_quant fake_quant(c)",
        "c/act_quant");
    /* A separate activation; a sum of rounded values, followed by its own activation. */
    check_places("[{'name':'a','layer':'conv2d','filters':3},{'name':'r','layer':'relu'},"
                 "{'name':'b','layer':'conv2d','filters':3},"
                 "{'name':'s','layer':'add','inputs':['b','r']},{'name':'t','layer':'relu6'},"
                 "{'name':'u','layer':'multiply','inputs':['t','r']}]",
                 "a quantized_conv2d(images); r relu(a); a/act_quant fake_quant(r); "
                 "b quantized_conv2d(a/act_quant); b/conv_quant fake_quant(b); "
                 "s add(b/conv_quant,a/act_quant); t relu6(s); s/act_quant fake_quant(t); "
                 "u multiply(s/act_quant,a/act_quant); u/mul_quant fake_quant(u)",
                 "u/mul_quant");
    /* A residual is separated from its batch norm; a value with several readers is rounded
     * before them. */
    check_places(
        "[{'name':'a','layer':'conv2d','filters':3},"
        "{'name':'b','layer':'conv2d','filters':3,'bias':false},"
        "{'name':'n','layer':'batch_norm','activation':'relu','inputs':['b','a']},"
        "{'name':'r','layer':'relu','inputs':['a']},"
        "{'name':'s','layer':'add','inputs':['n','r']}]",
        "a quantized_conv2d(images); a/conv_quant fake_quant(a); "
        "b quantized_conv2d(a/conv_quant); b/conv_quant fake_quant(b); "
        "n add(b/conv_quant,a/conv_quant); n/act_quant fake_quant(n); r relu(a/conv_quant); "
        "s add(n/act_quant,r); s/add_quant fake_quant(s)",
        "s/add_quant");
    /* An activation that sums do not have themselves. */
    check_places(
        "[{'name':'a','layer':'conv2d','filters':3},"
        "{'name':'b','layer':'conv2d','filters':3,'bias':false},"
        "{'name':'n','layer':'batch_norm','activation':'hard_swish','inputs':['b','a']}]",
        "a quantized_conv2d(images); a/conv_quant fake_quant(a); "
        "b quantized_conv2d(a/conv_quant); b/conv_quant fake_quant(b); "
        "n/sum add(b/conv_quant,a/conv_quant); n hard_swish(n/sum); n/act_quant fake_quant(n)",
        "n/act_quant");
    /* A bias, a second reader or a layer in between prevents folding. These layers stay in
     * floats. */
    check_places(
        "[{'name':'a','layer':'conv2d','filters':3},{'name':'n','layer':'batch_norm'},"
        "{'name':'b','layer':'conv2d_transpose','filters':3,'stride':1},{'name':'r','layer':'relu'}"
        ","
        "{'name':'s','layer':'add','inputs':['r','n']}]",
        "a quantized_conv2d(images); a/act_quant fake_quant(a); n batch_norm(a/act_quant); "
        "b conv2d_transpose(n); r relu(b); s add(r,n)",
        "s");
}

/* Layers that only pass values on keep them on their grid, and so do all views. */
static void passed_on(void **state)
{
    static const char *const middle[] = { "'max_pool'",
                                          "'dropout'",
                                          "'flip'",
                                          "'transpose','perm':[0,2,1,3]",
                                          "'slice','begin':[0,1,0,0],'size':[2,6,8,3]",
                                          "'reshape','shape':[2,8,8,3]",
                                          "'flatten'",
                                          "'split','axis':1" };
    const struct pm_layer *const *layers;
    size_t count, passing = 0;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(middle); i++) {
        struct pm_str list = { 0 };
        struct pm_heads heads = { 0 };
        struct pm_net *net;
        cJSON *parsed;

        pm_str_add(&list, "[{'name':'a','layer':'conv2d','filters':3},{'name':'p','layer':%s},"
                   "{'name':'s','layer':'add','inputs':['p','p']}]", middle[i]);
        parsed = parse(list.text);
        net = build(parsed, PM_SHAPE4(2, 8, 8, 3), &heads);
        assert_true(pm_net_find(net, "p")->layer->copies_values);
        assert_int_equal(pm_net_quantize(net, 1, &(struct pm_quantization){ 0 }, &heads), PM_OK);
        assert_string_equal(pm_heads_main(&heads)->name, "s/add_quant");
        pm_net_destroy(&net);
        cJSON_Delete(parsed);
        pm_str_free(&list);
    }
    layers = pm_layers(&count);
    for (size_t i = 0; i < count; i++) {
        passing += layers[i]->copies_values;
        assert_true(layers[i]->copies_values || !layers[i]->view);
    }
    assert_int_equal(passing, PM_COUNT(middle));
}

/* Heads that share weights: a batch norm of each level is folded into weights of its own, which
 * have their own range. All other variables are those of the original net. */
static void shared_weights(void **state)
{
    static const char layers[] =
        "[{'name':'a','layer':'conv2d','filters':4,'stride':2},"
        "{'name':'b','layer':'conv2d','filters':4,'stride':2},"
        "{'name':'c','layer':'conv2d','filters':4,'kernel':1,'inputs':['a']},"
        "{'name':'up','layer':'resize','size':4,'method':'nearest','inputs':['b']},"
        "{'name':'p','layer':'add','inputs':['up','c']},"
        "{'name':'t1','layer':'conv2d','filters':4,'bias':false,'inputs':['p']},"
        "{'name':'n1','layer':'batch_norm','activation':'relu6'},"
        "{'name':'boxes_1','layer':'conv2d','filters':8},"
        "{'name':'t2','layer':'conv2d','filters':4,'bias':false,'inputs':['b'],'share':'t1'},"
        "{'name':'n2','layer':'batch_norm','activation':'relu6'},"
        "{'name':'boxes_2','layer':'conv2d','filters':8,'share':'boxes_1'}]";
    struct pm_heads heads = { 0 };
    cJSON *list = parse(layers);
    struct pm_net *net = build(list, PM_SHAPE4(2, 8, 8, 3), &heads);
    const int before = net->var_count;
    const struct pm_node *one, *two;

    (void)state;
    check_places(layers,
                 "a quantized_conv2d(images); a/act_quant fake_quant(a); "
                 "b quantized_conv2d(a/act_quant); b/act_quant fake_quant(b); "
                 "c quantized_conv2d(a/act_quant); c/conv_quant fake_quant(c); "
                 "up resize(b/act_quant); p add(up,c/conv_quant); p/add_quant fake_quant(p); "
                 "t1 quantized_conv2d(p/add_quant); t1/act_quant fake_quant(t1); "
                 "boxes_1 quantized_conv2d(t1/act_quant); boxes_1/act_quant fake_quant(boxes_1); "
                 "t2 quantized_conv2d(b/act_quant); t2/act_quant fake_quant(t2); "
                 "boxes_2 quantized_conv2d(t2/act_quant); boxes_2/act_quant fake_quant(boxes_2)",
                 "boxes_2/act_quant");
    assert_int_equal(pm_net_quantize(net, 1, &(struct pm_quantization){ 0 }, &heads), PM_OK);
    one = pm_net_find(net, "t1"), two = pm_net_find(net, "t2");
    assert_int_equal(one->vars[0], two->vars[0]);
    for (int k = 1; k < one->var_count; k++)
        assert_int_not_equal(one->vars[k], two->vars[k]);
    assert_string_equal(net->vars[one->vars[3]]->name, "n1/moving_mean");
    assert_string_equal(net->vars[two->vars[3]]->name, "n2/moving_mean");
    assert_string_equal(net->vars[two->vars[5]]->name, "t2/weights_quant/min");
    one = pm_net_find(net, "boxes_1"), two = pm_net_find(net, "boxes_2");
    for (int k = 0; k < 2; k++)
        assert_int_equal(one->vars[k], two->vars[k]);
    /* Seven ranges of weights with two variables, eight of values with six. */
    assert_int_equal(net->var_count, before + 7 * 2 + 8 * 6);
    pm_net_destroy(&net);
    cJSON_Delete(list);
}

/* Options of the whole net reach its layers. */
static void options_reach_layers(void **state)
{
    const struct pm_quantization how = { .delay = 7, .freeze_steps = 9, .symmetric = true };
    struct pm_heads heads = { 0 };
    cJSON *list = parse("[{'name':'a','layer':'conv2d','bias':false},"
                        "{'name':'n','layer':'batch_norm'}]"), *o = cJSON_CreateObject();
    struct pm_net *net = build(list, PM_SHAPE4(2, 8, 8, 3), &heads);
    const struct pm_node *a, *q;

    (void)state;
    assert_int_equal(pm_net_quantize(net, 1, &how, &heads), PM_OK);
    a = pm_net_find(net, "a"), q = pm_net_find(net, "a/act_quant");
    pm_opts_dump(a->layer->opts, a->cfg, o, false);
    assert_true(cJSON_GetObjectItem(o, "freeze")->valuedouble == 9);
    for (int k = 0; k < 2; k++) {
        assert_true(cJSON_GetObjectItem(o, "delay")->valuedouble == 7);
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(o, "symmetric")));
        cJSON_Delete(o);
        o = cJSON_CreateObject();
        pm_opts_dump(q->layer->opts, q->cfg, o, false);
    }
    cJSON_Delete(o);
    pm_net_destroy(&net);
    cJSON_Delete(list);
}

/* The slope of leaky_relu moves to the sum, too. */
static void slope_of_a_residual(void **state)
{
    static const char layers[] = "[{'name':'a','layer':'conv2d','filters':3},"
        "{'name':'b','layer':'conv2d','filters':3,'bias':false},{'name':'n','layer':'batch_norm',"
        "'activation':'leaky_relu','slope':0.25,'inputs':['b','a']}]";
    struct pm_heads heads = { 0 };
    cJSON *list = parse(layers), *o = cJSON_CreateObject();
    struct pm_net *net = build(list, PM_SHAPE4(2, 8, 8, 3), &heads);
    const struct pm_node *n;

    (void)state;
    assert_int_equal(pm_net_quantize(net, 1, &(struct pm_quantization){ 0 }, &heads), PM_OK);
    n = pm_net_find(net, "n");
    pm_opts_dump(n->layer->opts, n->cfg, o, false);
    assert_string_equal(n->layer->name, "add");
    assert_true(cJSON_GetObjectItem(o, "slope")->valuedouble == 0.25);
    cJSON_Delete(o);
    pm_net_destroy(&net);
    cJSON_Delete(list);
}

static void refusals(void **state)
{
    struct pm_heads heads = { 0 };
    cJSON *list = parse("[{'name':'a','layer':'relu'}]");
    struct pm_net *net = build(list, PM_SHAPE4(1, 4, 4, 3), &heads);

    (void)state;
    assert_int_equal(pm_net_quantize(net, 1, &(struct pm_quantization){ 0 }, &heads), PM_ECONFIG);
    assert_contains(pm_error_text(), "no convolution or product whose weights could be quantised");
    for (int i = 0; i < 2; i++)
        pm_heads_add_loss_only(net, &heads, "scale_logits", pm_heads_main(&heads), PM_HEAD_SCALE,
                               1);
    assert_int_equal(pm_net_quantize(net, 1, &(struct pm_quantization){ 0 }, &heads), PM_ECONFIG);
    assert_contains(pm_error_text(), "2 scales");
    pm_net_destroy(&net);
    cJSON_Delete(list);
}

/* In every named net all convolutions and products are quantised, and nodes come after their
 * inputs. */
static void named_nets(void **state)
{
    size_t count;
    const struct pm_net_row *const *rows = pm_net_rows(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        const struct pm_net_row *row = rows[i];
        const int size = strcmp(row->task, "segmentation") == 0 ? 97 : row->default_size;
        struct pm_net *net = pm_net_create();
        void *cfg = pm_arena_alloc(net->arena, row->cfg_size + 1);
        struct pm_heads heads = { 0 };
        struct pm_str text = { 0 };
        int before = 0, after = 0;
        struct pm_node *images =
            pm_net_input(net, "images", PM_SHAPE4(1, size, size, row->default_channels), PM_F32);

        if (row->opts)
            pm_opts_defaults(row->opts, cfg, net->arena);
        row->build(net, images, 7, cfg, &heads);
        for (int k = 0; k < net->count; k++)
            before += strstr("conv2d depthwise_conv2d fully_connected",
                             net->nodes[k]->layer->name) != NULL;
        const struct pm_shape logits = pm_heads_main(&heads)->out_shape;
        const int variables = net->var_count;
        if (pm_net_quantize(net, 1, &(struct pm_quantization){ .delay = 100 }, &heads) < 0)
            fail_msg("%s: %s", row->name, pm_error_text());
        for (int k = 0; k < net->count; k++) {
            assert_string_not_equal(net->nodes[k]->layer->name, "conv2d");
            after += strcmp(net->nodes[k]->layer->name, "quantized_conv2d") == 0;
        }
        assert_int_equal(after, before);
        assert_true(pm_shape_equal(pm_heads_main(&heads)->out_shape, logits));
        assert_true(net->var_count >= variables + 2 * after);
        describe(net, &text);
        pm_str_free(&text);
        pm_net_destroy(&net);
    }
}

/* ---- steps --------------------------------------------------------------------------------- */

struct step {
    struct pm_net *net;
    struct pm_variables *variables;
    struct pm_plan *plan;
    const char *logits;
};

static void update(struct pm_calls *c, void *ctx)
{
    static const uint32_t finite = 1;

    (void)ctx;
    pm_calls_layer_updates(c, pm_calls_constant(c, "finite", &finite, PM_SHAPE1(1), PM_U32));
}

static float *numbers(const cJSON *o, const char *key, size_t count)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, key);
    float *v = pm_malloc((count + 1) * sizeof *v);
    size_t i = 0;

    if (!list || (size_t)cJSON_GetArraySize(list) != count)
        fail_msg("the golden has not %zu numbers of %s", count, key);
    for (const cJSON *n = list->child; n; n = n->next)
        v[i++] = (float)n->valuedouble;
    return v;
}

static void fill_variables(const cJSON *g, struct pm_variables *v)
{
    for (int i = 0; i < v->count; i++) {
        float *values = numbers(cJSON_GetObjectItem(g, "variables"), v->list[i].name,
                                pm_shape_count(v->list[i].shape));

        assert_int_equal(pm_variables_write(v, i, -1, values), PM_OK);
        pm_free(values);
    }
}

/* The golden's pictures: three with three channels. */
static struct pm_shape shape_of(const cJSON *g)
{
    const int count = cJSON_GetArraySize(cJSON_GetObjectItem(g, "images"));
    const int side = (int)sqrt(count / 9.0);

    assert_int_equal(9 * side * side, count);
    return PM_SHAPE4(3, side, side, 3);
}

static size_t logits_of(const cJSON *g)
{
    return (size_t)cJSON_GetArraySize(cJSON_GetObjectItem(g, "logits"));
}

/* Runs an evaluation or step number `step` of training, from 0. delay < 0: of the original net. */
static void run(struct pm_device *d, const cJSON *g, bool train, int delay, uint32_t step,
                struct step *s)
{
    const struct pm_shape shape = shape_of(g);
    const size_t count = pm_shape_count(shape);
    struct pm_heads heads = { 0 };
    const char *outputs[2] = { 0 };

    *s = (struct step){ .net = build(cJSON_GetObjectItem(g, "layers"), shape, &heads) };
    if (delay >= 0)
        assert_int_equal(pm_net_quantize(s->net, 1, &(struct pm_quantization){ .delay = delay },
                                         &heads),
                         PM_OK);
    outputs[0] = s->logits = pm_heads_main(&heads)->name;
    if (train)
        pm_net_add_many(s->net, "loss",
                        (struct pm_node *[]){
                            pm_heads_main(&heads),
                            pm_net_input(s->net, "labels", PM_SHAPE1(3), PM_I32) },
                        2, "softmax_cross_entropy");
    const struct pm_plan_options o = {
        .train = train,
        .loss_share = 1,
        .micro_batches = 1,
        .outputs = outputs,
        .slots = 1,
        .update = train ? update : NULL,
        .name = "quantize",
    };
    if (s->net->error || pm_variables_create(d, s->net, train, NULL, &s->variables) ||
        pm_variables_allocate(s->variables))
        fail_msg("%s", pm_error_text());
    fill_variables(g, s->variables);
    if (pm_plan_create(s->net, d, s->variables, &o, &s->plan) || pm_plan_load(s->plan))
        fail_msg("%s", pm_error_text());
    float *images = numbers(g, "images", count), *labels = numbers(g, "labels", 3);
    memcpy(pm_plan_input(s->plan, 0, "images", 0), images, count * sizeof *images);
    for (int i = 0; train && i < 3; i++)
        ((int32_t *)pm_plan_input(s->plan, 0, "labels", 0))[i] = (int32_t)labels[i];
    *pm_plan_step(s->plan, 0) = (struct pm_step){ .step = step, .loss_scale = 1 };
    assert_int_equal(pm_plan_submit(s->plan, 0), PM_OK);
    assert_int_equal(pm_plan_wait(s->plan, 0), PM_OK);
    pm_free(images);
    pm_free(labels);
}

static void end(struct step *s)
{
    pm_plan_destroy(&s->plan);
    pm_variables_destroy(&s->variables);
    pm_net_destroy(&s->net);
}

static void compare(const char *name, const float *got, const float *want, size_t count)
{
    double off = 0, size = 0;

    for (size_t i = 0; i < count; i++) {
        off += pow((double)got[i] - (double)want[i], 2);
        size += pow((double)want[i], 2);
    }
    if (!(sqrt(off) <= 2e-5 * sqrt(size) + 1e-6))
        fail_msg("%s is off by %.2g of its norm", name, sqrt(off / size));
}

static void compare_to(const cJSON *o, const char *name, const float *got, size_t count)
{
    float *want = numbers(o, name, count);

    compare(name, got, want, count);
    pm_free(want);
}

static void value_of(const struct step *s, int i, bool gradient, float *out)
{
    const struct pm_variables *v = s->variables;
    const size_t bytes = pm_shape_count(v->list[i].shape) * sizeof *out;

    assert_int_equal(gradient ? pm_buffer_read(v->device, v->grads, v->offset[i], out, bytes)
                              : pm_variables_read(s->variables, i, -1, out),
                     PM_OK);
}

/* Compares a step that rounds with the golden. */
static void check_step(struct pm_device *d, const cJSON *g, int delay, uint32_t step)
{
    struct step s;
    int compared = 0;

    run(d, g, true, delay, step, &s);
    const float loss = (float)pm_plan_loss(s.plan, 0);
    compare_to(g, "logits", pm_plan_output(s.plan, 0, s.logits, 0), logits_of(g));
    compare_to(g, "loss", &loss, 1);
    for (int i = 0; i < s.variables->count; i++) {
        const struct pm_variable *v = &s.variables->list[i];
        float *got = pm_malloc((pm_shape_count(v->shape) + 1) * sizeof *got);

        value_of(&s, i, v->trainable, got);
        compare_to(cJSON_GetObjectItem(g, v->trainable ? "gradients" : "after"), v->name, got,
                   pm_shape_count(v->shape));
        pm_free(got);
        compared++;
    }
    assert_int_equal(compared, cJSON_GetArraySize(cJSON_GetObjectItem(g, "variables")));
    end(&s);
}

static void check_evaluation(struct pm_device *d, const cJSON *g)
{
    struct step s;

    run(d, g, false, 0, 0, &s);
    compare_to(g, "evaluated", pm_plan_output(s.plan, 0, s.logits, 0), logits_of(g));
    end(&s);
}

/* Before rounding begins, a step equals that of the original net, except for rounding in another
 * order of operations. The ranges are already updated. */
static void check_before_delay(struct pm_device *d, const cJSON *g, int delay, uint32_t step)
{
    struct step plain, before;
    int same = 0, range;
    float moved, start;

    run(d, g, true, -1, step, &plain);
    run(d, g, true, delay, step, &before);
    compare("logits", pm_plan_output(before.plan, 0, before.logits, 0),
            pm_plan_output(plain.plan, 0, plain.logits, 0), logits_of(g));
    for (int i = 0; i < plain.variables->count; i++) {
        const struct pm_variable *v = &plain.variables->list[i];
        const size_t count = pm_shape_count(v->shape);
        float *a = pm_malloc(2 * count * sizeof *a);
        const int k = pm_variables_find(before.variables, v->name);

        value_of(&plain, i, v->trainable, a);
        value_of(&before, k, v->trainable, a + count);
        compare(v->name, a + count, a, count);
        pm_free(a);
        same++;
    }
    assert_true(same > 15);
    range = pm_variables_find(before.variables, "a/act_quant/max");
    value_of(&before, range, false, &moved);
    start = (float)cJSON_GetObjectItem(cJSON_GetObjectItem(g, "variables"), "a/act_quant/max")
                ->child->valuedouble;
    assert_true(moved != start);
    end(&plain);
    end(&before);
}

/* Rounding begins with step number `delay`, counted from 1, on all devices. */
static void check_golden(const char *file)
{
    struct pm_device_info *list = NULL;
    cJSON *g = read_golden(file);
    size_t count;

    assert_int_equal(pm_device_list(&list, &count), PM_OK);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        struct pm_device *d = NULL;

        if (pm_device_open(&list[i], &(struct pm_device_options){ 0 }, &d) < 0)
            fail_msg("%s", pm_error_text());
        print_message("on %s\n", list[i].name);
        check_step(d, g, 0, 0);
        check_step(d, g, 5, 4);
        check_before_delay(d, g, 5, 3);
        check_before_delay(d, g, 1000, 0);
        check_evaluation(d, g);
        pm_device_close(&d);
    }
    pm_free(list);
    cJSON_Delete(g);
}

static void steps(void **state)
{
    (void)state;
    check_golden("quantized_step.json");
}

/* A tower and a box head read two maps of a feature pyramid with the same weights. */
static void shared_heads(void **state)
{
    (void)state;
    check_golden("quantized_heads.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places),
        cmocka_unit_test(passed_on),
        cmocka_unit_test(shared_weights),
        cmocka_unit_test(options_reach_layers),
        cmocka_unit_test(slope_of_a_residual),
        cmocka_unit_test(refusals),
        cmocka_unit_test(named_nets),
        cmocka_unit_test(steps),
        cmocka_unit_test(shared_heads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
