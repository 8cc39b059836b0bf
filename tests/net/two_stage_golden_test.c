/* One training step and one evaluation of detectors with two stages compared with those of
 * TensorFlow's Object Detection API in float64; tests/golden/two_stage.py describes the goldens.
 *
 *     two_stage_golden_test [DEVICE [CASE ...]]
 *
 * The default device is "cpu"; without cases all run. The task builds the graphs. Both programs
 * draw anchors and proposals at random, so the step gets the golden's: drawn anchors are a field of
 * the batch, and inputs take the place of the layer that draws proposals. golden_values.h says how
 * tensors are compared. The targets of masks are inside mask_loss and are not compared; the loss
 * and all gradients depend on them. */
#include "two_stage_case.h"

#include "data/mask_bits.h"
#include "layers/anchors.h"

/* ---- the batch ----------------------------------------------------------------------------- */

static void *input(const char *name)
{
    return pm_plan_input(c.plan, 0, name, 0);
}

static const cJSON *picture(int i)
{
    return cJSON_GetArrayItem(member(c.g.root, "pictures"), i);
}

/* The list of picture i. */
static const cJSON *of_picture(const char *section, const char *key, int i)
{
    return cJSON_GetArrayItem(member(member(c.g.root, section), key), i);
}

static double at(const cJSON *list, int i)
{
    const cJSON *v = cJSON_GetArrayItem(list, i);

    assert_true(cJSON_IsNumber(v));
    return v->valuedouble;
}

/* A box in pixels becomes one in 0..1. */
static void put_box(const cJSON *pixels, float *out)
{
    for (int k = 0; k < 4; k++)
        out[k] = (float)(at(pixels, k) / (k % 2 ? c.g.width : c.g.height));
}

static void fill_images(void)
{
    const size_t count = (size_t)BATCH * c.g.height * c.g.width * c.g.channels;
    struct pm_rng r = stream(&c.g, "images");
    float *images = input("images"), *windows = input("windows");

    for (size_t i = 0; i < count; i++)
        images[i] = (float)(2 * pm_rng_uniform(&r) - 1);
    for (int i = 0; i < BATCH; i++) {
        const cJSON *size = member(picture(i), "size");
        const float h = (float)(at(size, 0) / c.g.height), w = (float)(at(size, 1) / c.g.width);

        memcpy(windows + 4 * i, (float[]){ 0, 0, h, w }, 4 * sizeof *windows);
    }
}

/* Matches all anchors as the loader does, and compares them with the golden's. */
static void match_anchors(int i, int anchors, int32_t *out)
{
    const struct pm_task *t = c.s.e->task;
    const cJSON *kept = member(member(c.g.root, "train"), "kept_anchors");
    const cJSON *want = of_picture("train", "anchor_matches", i);
    const struct pm_truths truths = {
        .count = BOXES, .boxes = (const float *)input("truth_boxes") + 4 * BOXES * i,
        .weights = (const float *)input("truth_weights") + BOXES * i,
    };
    int k = 0;

    pm_match(&t->matcher,
             pm_detection_anchors_of(t, (struct pm_frame){ c.g.height, c.g.width })->index, &truths,
             out, NULL);
    for (int j = 0; j < anchors; j++) {
        const bool inside = k < cJSON_GetArraySize(kept) && (int)at(kept, k) == j;

        assert_int_equal(out[j], inside ? (int)at(want, k) : PM_IGNORED);
        k += inside;
    }
    assert_int_equal(k, cJSON_GetArraySize(kept));
}

/* The drawn anchors keep their matches; all others do not count. */
static void fill_matches(int i, int anchors)
{
    const cJSON *sampled = of_picture("train", "sampled_anchors", i), *a;
    int32_t *matches = (int32_t *)input("matches") + i * anchors;
    int32_t *all = pm_malloc((size_t)anchors * sizeof *all);

    match_anchors(i, anchors, all);
    for (int j = 0; j < anchors; j++)
        matches[j] = PM_IGNORED;
    cJSON_ArrayForEach(a, sampled) {
        assert_true(all[a->valueint] != PM_IGNORED);
        matches[a->valueint] = all[a->valueint];
    }
    ((float *)input("normalizer"))[i] = (float)cJSON_GetArraySize(sampled);
    pm_free(all);
}

/* As truth_mask() of two_stage.py. */
static void fill_mask(const cJSON *box, uint32_t *out)
{
    uint8_t *mask = pm_malloc((size_t)c.g.height * (size_t)c.g.width);

    for (int y = 0; y < c.g.height; y++)
        for (int x = 0; x < c.g.width; x++)
            mask[y * c.g.width + x] = y + 0.5 > at(box, 0) && x + 0.5 > at(box, 1) &&
                                      y + 0.5 < at(box, 2) && x + 0.5 < at(box, 3) &&
                                      (x + y) % 5 != 0;
    pm_mask_pack(mask, c.g.height, c.g.width, out);
    pm_free(mask);
}

static void fill_truth(int i)
{
    const cJSON *p = picture(i);
    const size_t words = (size_t)c.g.height * (size_t)pm_mask_words(c.g.width);

    assert_int_equal(cJSON_GetArraySize(member(p, "boxes")), BOXES);
    for (int k = i * BOXES; k < (i + 1) * BOXES; k++) {
        const cJSON *box = cJSON_GetArrayItem(member(p, "boxes"), k % BOXES);
        const float weight = (float)at(member(p, "weights"), k % BOXES);

        put_box(box, (float *)input("truth_boxes") + 4 * k);
        ((int32_t *)input("truth_classes"))[k] = (int32_t)at(member(p, "classes"), k % BOXES);
        ((float *)input("truth_weights"))[k] = weight;
        if (has_masks()) {
            fill_mask(box, (uint32_t *)input("truth_masks") + words * (size_t)k);
            ((float *)input("truth_mask_weights"))[k] = weight;
        }
    }
}

/* The drawn proposals, then padding. */
static void fill_rows(int i)
{
    const cJSON *boxes = of_picture("train", "row_boxes", i);
    const cJSON *matches = of_picture("train", "row_matches", i);

    c.count[i] = cJSON_GetArraySize(boxes);
    ((int32_t *)input("drawn_count"))[i] = c.count[i];
    for (int k = 0; k < c.rows; k++) {
        float *box = (float *)input("drawn_boxes") + 4 * (i * c.rows + k);
        const bool padding = k >= c.count[i];

        memset(box, 0, 4 * sizeof *box);
        if (!padding)
            put_box(cJSON_GetArrayItem(boxes, k), box);
        ((int32_t *)input("drawn_matches"))[i * c.rows + k] =
            padding ? PM_IGNORED : (int32_t)at(matches, k);
    }
}

/* ---- the graph of a step ------------------------------------------------------------------- */

/* Makes the readers of all outputs of `from` read these nodes. */
static void redirect(const struct pm_node *from, struct pm_node *const *to)
{
    int redirected = 0;

    for (int i = 0; i < c.net->count; i++)
        for (int k = 0; k < c.net->nodes[i]->inputs; k++)
            for (int j = 0; j < from->outputs; j++)
                if (c.net->nodes[i]->in[k] == from->out[j] && c.net->nodes[i]->output == 0) {
                    c.net->nodes[i]->in[k] = to[j];
                    redirected++;
                }
    assert_true(redirected >= 5); /* the crops and the loss at least */
}

/* As in the original, no gradient passes through proposals: their layers have no backward pass. */
static void assert_no_gradient_through_proposals(void)
{
    static const char *const layers[] = { "sample_proposals", "suppress", "decode_boxes" };
    int found[PM_COUNT(layers)] = { 0 };

    for (int i = 0; i < c.net->count; i++)
        for (size_t k = 0; k < PM_COUNT(layers); k++)
            if (strcmp(c.net->nodes[i]->layer->name, layers[k]) == 0) {
                assert_null(c.net->nodes[i]->layer->backward);
                found[k]++;
            }
    for (size_t k = 0; k < PM_COUNT(layers); k++)
        assert_true(found[k] > 0);
}

static void build_step(void)
{
    const struct pm_frame frame = { c.g.height, c.g.width };
    const int rows = (int)option("rows");
    const struct pm_net_maker m = maker();
    struct pm_field_list fields = { 0 };
    struct pm_heads heads = { 0 };
    struct pm_node *drawn[3];

    c.net = pm_net_create();
    check(build_first(c.s.e, c.net, pm_net_input(c.net, "images",
                      PM_SHAPE4(BATCH, c.g.height, c.g.width, c.g.channels), PM_F32), &heads));
    pm_detection_fields(c.s.e->task, true, frame, &fields);
    for (int i = 1; i < fields.count; i++) {
        struct pm_shape s = { .rank = fields.list[i].shape.rank + 1, .dim = { BATCH } };

        for (int k = 1; k < s.rank; k++)
            s.dim[k] = fields.list[i].shape.dim[k - 1];
        pm_net_input(c.net, fields.list[i].name, s, fields.list[i].type);
    }
    pm_free(fields.list);
    drawn[0] = pm_net_input(c.net, "drawn_boxes", PM_SHAPE3(BATCH, rows, 4), PM_F32);
    drawn[1] = pm_net_input(c.net, "drawn_matches", PM_SHAPE2(BATCH, rows), PM_I32);
    drawn[2] = pm_net_input(c.net, "drawn_count", PM_SHAPE1(BATCH), PM_I32);
    pm_detection_add_loss(c.net, &heads, &m, c.s.e->task);
    check(c.net->error);
    assert_no_gradient_through_proposals();
    redirect(pm_net_find(c.net, "proposals/sampled"), drawn);
}

/* ---- plans --------------------------------------------------------------------------------- */

static struct pm_node *head(const struct pm_heads *heads, const char *name)
{
    struct pm_node *n = pm_heads_find(heads, name);

    if (!n)
        fail_msg("no head %s", name);
    return n;
}

static const struct pm_node *node(const char *name)
{
    const struct pm_node *n = pm_net_find(c.net, name);

    if (!n)
        fail_msg("no node %s", name);
    return n;
}

static const struct pm_node *features(void)
{
    return node(is_rfcn() ? "SecondStageBoxPredictor/reduce_depth"
                          : "SecondStageBoxPredictor/AvgPool")->in[0];
}

static const struct pm_node *crops(void)
{
    return node(option("pool") > 1 ? "SecondStageCrops/MaxPool2D" : "SecondStageCrops");
}

static void update(struct pm_calls *calls, void *ctx)
{
    static const uint32_t finite = 1;

    (void)ctx;
    pm_calls_layer_updates(calls, pm_calls_constant(calls, "finite", &finite, PM_SHAPE1(1),
                                                    PM_U32));
}

/* outputs: room for MOST_OUTPUTS names, `n` of them given. Adds those of a step and of an
 * evaluation. */
static void make_plan(bool train, const char **outputs, int n)
{
    struct pm_plan_options o = { .train = train, .loss_share = 1, .micro_batches = 1,
                                 .outputs = outputs, .slots = 1, .name = c.g.case_name };

    if (train)
        o.update = update;
    outputs[n++] = "proposal_boxes";
    outputs[n++] = "proposal_boxes:1";
    outputs[n++] = "proposal_boxes:3";
    outputs[n++] = head(&c.second, "box_codes")->name;
    outputs[n++] = head(&c.second, "box_classes")->name;
    outputs[n++] = features()->name;
    if (!is_rfcn())
        outputs[n++] = crops()->name;
    outputs[n] = NULL;
    check(pm_plan_create(c.net, device, c.variables, &o, &c.plan));
    check(pm_plan_load(c.plan));
}

static void run(void)
{
    struct pm_step *settings = pm_plan_step(c.plan, 0); /* NULL: the plan reads none */

    if (settings)
        *settings = (struct pm_step){ .seed_low = (uint32_t)c.g.seed, .loss_scale = 1 };
    check(pm_plan_submit(c.plan, 0));
    check(pm_plan_wait(c.plan, 0));
}

static const void *output(const char *name)
{
    const void *p = pm_plan_output(c.plan, 0, name, 0);

    if (!p)
        fail_msg("no output %s", name);
    return p;
}

/* ---- comparing tensors --------------------------------------------------------------------- */

static void compare_whole(const char *name, const struct pm_node *n)
{
    compare(&c.g, name, output(n->name), pm_shape_count(n->out_shape));
}

/* Compares the rows that are not padding: those of the first picture, then those of the second. */
static void compare_rows(const char *name, const struct pm_node *n)
{
    const size_t row = pm_shape_count(n->out_shape) / (size_t)(BATCH * c.rows);
    const float *all = output(n->name);
    float *valid = pm_malloc((size_t)(c.count[0] + c.count[1]) * row * sizeof *valid);

    memcpy(valid, all, (size_t)c.count[0] * row * sizeof *valid);
    memcpy(valid + (size_t)c.count[0] * row, all + (size_t)c.rows * row,
           (size_t)c.count[1] * row * sizeof *valid);
    compare(&c.g, name, valid, (size_t)(c.count[0] + c.count[1]) * row);
    pm_free(valid);
}

static void compare_second(void)
{
    if (is_rfcn()) {
        compare_whole("features", features());
    } else {
        compare_rows("crops", crops());
        compare_rows("features", features());
    }
    compare_rows("codes", head(&c.second, "box_codes"));
    compare_rows("logits", head(&c.second, "box_classes"));
}

static void compare_anchors(void)
{
    const struct pm_node *anchors = head(&c.first, "anchors");
    const size_t count = pm_shape_count(anchors->out_shape);
    float *values = pm_malloc(count * sizeof *values);

    pm_anchors_write(anchors, values);
    for (size_t i = 0; i < count; i++)
        values[i] *= (float)(i % 2 ? c.g.width : c.g.height);
    compare(&c.g, "anchors", values, count);
    pm_free(values);
}

static void compare_losses(void)
{
    static const char *const names[][2] = {
        { "RPNLoss/localization_loss", "loss/localization_loss" },
        { "RPNLoss/objectness_loss", "loss/classification_loss" },
        { "BoxClassifierLoss/localization_loss", "second_stage_loss/localization_loss" },
        { "BoxClassifierLoss/classification_loss", "second_stage_loss/classification_loss" },
        { "BoxClassifierLoss/mask_loss", "mask_loss" },
    };
    const float loss = (float)pm_plan_loss(c.plan, 0);

    for (size_t i = 0; i < PM_COUNT(names) - !has_masks(); i++)
        compare(&c.g, names[i][0], output(names[i][1]), 1);
    compare(&c.g, "loss", &loss, 1);
}

static void finish(const char *what)
{
    print_message("%s, %s on %s: %d tensors, %d wrong, worst %.2g of its bound (%s)\n",
                  c.g.case_name, what, device_name, c.g.compared, c.g.wrong, c.g.worst,
                  c.g.worst_name);
    assert_int_equal(c.g.wrong, 0);
}

/* ---- comparing lists ----------------------------------------------------------------------- */

/* The largest difference that an element of a tensor may have: the tensor's own. */
static double largest_error(const char *section, const char *name)
{
    const cJSON *row = member(member(c.g.root, section), name);

    return allowed(at(row, 2)) * at(row, 1);
}

/* Corners are centre +- side / 2, with centre = code / 10 * side of the anchor + its centre and
 * side = exp(code / 5) * side of the anchor. With sides up to that of the input, an error e of the
 * codes moves a corner by at most (1/10 + 1/2 * 1/5) e sides, in pixels. */
static double pixels_of_codes(double e)
{
    return 0.2 * e * c.g.width;
}

/* Compares boxes and scores of picture i; values [most][4] in 0..1 of the input. The golden's boxes
 * are in pixels, times `scale`. */
static void compare_boxes(const char *section, const char *const keys[2], int i, int count,
                          const float *boxes, const float *scores, const double scale[2],
                          double pixels, double error)
{
    const cJSON *want = of_picture(section, keys[0], i), *score = of_picture(section, keys[1], i);

    assert_int_equal(count, cJSON_GetArraySize(want));
    for (int k = 0; k < count; k++) {
        for (int j = 0; j < 4; j++) {
            const double have = (double)boxes[4 * k + j] * (j % 2 ? c.g.width : c.g.height);
            const double right = at(cJSON_GetArrayItem(want, k), j) * scale[j % 2];

            if (!(fabs(have - right) <= pixels))
                fail_msg("%s of %s: picture %d, box %d, corner %d is %.7g, not %.7g; %.2g is "
                         "allowed", keys[0], section, i, k, j, have, right, pixels);
        }
        if (!(fabs((double)scores[k] - at(score, k)) <= error))
            fail_msg("%s of %s: picture %d, box %d has %.7g, not %.7g; %.2g is allowed", keys[1],
                     section, i, k, (double)scores[k], at(score, k), error);
    }
}

/* A softmax changes by at most half of the largest change of a logit. */
static void compare_proposals(const char *section)
{
    static const char *const keys[] = { "proposals", "scores" };
    const double pixels = pixels_of_codes(largest_error("tensors", "boxes_1"));
    const double error = largest_error("tensors", "classes_1") / 2;
    const int most = (int)option("proposals");

    for (int i = 0; i < BATCH; i++)
        compare_boxes(section, keys, i, ((const int32_t *)output("proposal_boxes:3"))[i],
                      (const float *)output("proposal_boxes") + 4 * most * i,
                      (const float *)output("proposal_boxes:1") + most * i,
                      (double[]){ 1, 1 }, pixels, error);
}

/* Where fewer proposals can be drawn than there are rows, the layer has no choice: it draws the
 * golden's. In the case without a pool this holds for all pictures. */
static void compare_drawn(void)
{
    int compared = 0;

    for (int i = 0; i < BATCH; i++) {
        const cJSON *want = of_picture("train", "row_matches", i);
        const int32_t *matches = (const int32_t *)output("proposals/sampled:1") + i * c.rows;

        if (c.count[i] == c.rows)
            continue;
        assert_int_equal(((const int32_t *)output("proposals/sampled:2"))[i], c.count[i]);
        for (int k = 0; k < c.rows; k++)
            assert_int_equal(matches[k], k < c.count[i] ? (int)at(want, k) : PM_IGNORED);
        compared++;
    }
    if (strstr(c.g.case_name, "no_pool"))
        assert_int_equal(compared, BATCH);
}

/* ---- a step -------------------------------------------------------------------------------- */

static void step(void **state)
{
    const char *outputs[MOST_OUTPUTS];
    int n = 0;

    load(*state);
    build_step();
    make_variables(true);
    outputs[n++] = head(&c.first, "boxes_1")->name;
    outputs[n++] = head(&c.first, "classes_1")->name;
    outputs[n++] = "proposals/sampled:1";
    outputs[n++] = "proposals/sampled:2";
    if (has_masks())
        outputs[n++] = head(&c.second, "box_masks")->name;
    make_plan(true, outputs, n);
    fill_images();
    for (int i = 0; i < BATCH; i++) {
        fill_truth(i);
        fill_matches(i, head(&c.first, "anchors")->out_shape.dim[0]);
        fill_rows(i);
    }
    run();
    compare_anchors();
    compare_whole("boxes_1", head(&c.first, "boxes_1"));
    compare_whole("classes_1", head(&c.first, "classes_1"));
    compare_second();
    if (has_masks())
        compare_rows("mask_logits", head(&c.second, "box_masks"));
    compare_losses();
    compare_variables();
    finish("step");
    assert_int_equal(c.g.compared + has_masks(), cJSON_GetArraySize(c.g.tensors));
    compare_proposals("train");
    compare_drawn();
}

/* ---- an evaluation ------------------------------------------------------------------------- */

/* A region's corners are off by at most r. With corrections of at most half a side and sides at
 * most twice those of the region, a detection's centre and half of its side are off by 2 r each,
 * and by what the codes add. */
static void compare_detections(const struct pm_outputs *out)
{
    static const char *const keys[] = { "boxes", "detection_scores" };
    const double r = pixels_of_codes(largest_error("tensors", "boxes_1"));
    const double pixels =
        4 * r + pixels_of_codes(largest_error("evaluation_tensors", "codes"));
    const double error = largest_error("evaluation_tensors", "logits") / 2;
    const int32_t *classes = output(out->node[PM_OUT_CLASSES]);
    const int most = (int)option("detections");

    for (int i = 0; i < BATCH; i++) {
        const cJSON *size = member(picture(i), "size"), *want = of_picture("evaluation",
                                                                           "classes", i);
        c.count[i] = ((const int32_t *)output(out->node[PM_OUT_COUNT]))[i];
        compare_boxes("evaluation", keys, i, c.count[i],
                      (const float *)output(out->node[PM_OUT_BOXES]) + 4 * most * i,
                      (const float *)output(out->node[PM_OUT_SCORES]) + most * i,
                      (double[]){ at(size, 0), at(size, 1) }, pixels, error);
        for (int k = 0; k < c.count[i]; k++)
            assert_int_equal(classes[most * i + k], at(want, k));
    }
}

/* Pumice's masks are [n, h, w, detections], the golden's [detections, h, w]. */
static void compare_masks(const struct pm_node *masks)
{
    const int *dim = masks->out_shape.dim, pixels = dim[1] * dim[2];
    const float *all = output(masks->name);
    float *valid = pm_malloc(pm_shape_count(masks->out_shape) * sizeof *valid), *to = valid;

    for (int i = 0; i < BATCH; i++)
        for (int d = 0; d < c.count[i]; d++)
            for (int k = 0; k < pixels; k++)
                *to++ = all[(i * pixels + k) * dim[3] + d];
    compare(&c.g, "masks", valid, (size_t)(to - valid));
    pm_free(valid);
}

static void evaluation(void **state)
{
    const char *outputs[MOST_OUTPUTS];
    struct pm_outputs out = { 0 };
    struct pm_net_maker m;
    int n = 0;

    load(*state);
    c.g.tensors = cJSON_GetObjectItem(c.g.root, "evaluation_tensors");
    m = maker();
    c.net = pm_net_create();
    check(pm_detection_outputs(c.net, pm_net_input(c.net, "images", PM_SHAPE4(BATCH, c.g.height,
                               c.g.width, c.g.channels), PM_F32), &m, c.s.e->task,
                               PM_USE_PREDICT, &out));
    make_variables(false);
    for (; n < out.count; n++)
        outputs[n] = out.node[n];
    make_plan(false, outputs, n);
    fill_images();
    run();
    compare_proposals("evaluation");
    for (int i = 0; i < BATCH; i++)
        c.count[i] = ((const int32_t *)output("proposal_boxes:3"))[i];
    compare_second();
    compare_detections(&out);
    if (has_masks())
        compare_masks(node(out.node[PM_OUT_COUNT + 1]));
    finish("evaluation");
    assert_int_equal(c.g.compared, cJSON_GetArraySize(c.g.tensors));
}

static int end(void **state)
{
    (void)state;
    pm_plan_destroy(&c.plan);
    pm_variables_destroy(&c.variables);
    pm_net_destroy(&c.net);
    if (c.open)
        tear_down(&c.s);
    cJSON_Delete(c.g.root);
    cJSON_Delete(c.statistics);
    pm_free(c.g.case_name);
    memset(&c, 0, sizeof c);
    return 0;
}

int main(int argc, char **argv)
{
    static char *all[] = { "faster_rcnn_resnet50_no_pool", "mask_rcnn_resnet50", "rfcn_resnet50",
                           "faster_rcnn_resnet50_batch_norm", "faster_rcnn_resnet50" };
    char **names = argc > 2 ? argv + 2 : all;
    const size_t count = argc > 2 ? (size_t)argc - 2 : PM_COUNT(all);
    struct CMUnitTest *tests = pm_malloc(2 * count * sizeof *tests);
    int code;

    device_name = argc > 1 ? argv[1] : "cpu";
    code = open_golden_device(device_name, &device);
    for (size_t i = 0; i < count; i++) {
        tests[2 * i] = (struct CMUnitTest){ names[i], step, NULL, end, names[i] };
        tests[2 * i + 1] = (struct CMUnitTest){ names[i], evaluation, NULL, end, names[i] };
    }
    if (code == 0)
        code = _cmocka_run_group_tests("two_stage_golden", tests, 2 * count, NULL, NULL);
    pm_device_close(&device);
    pm_free(tests);
    return code;
}
