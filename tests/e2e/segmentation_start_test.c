/* Starts of a segmentation: from a classifier with the same backbone, trained here or written in
 * TF-Slim's form, and from a segmentation, with and without its last layers. Loaded values equal
 * the checkpoint's bit for bit, the other variables are listed, and a mismatch ends the run with
 * one line. Learning rates are 0 and batch norm is frozen, so that values do not change. */
#include "e2e/program.h"

#include <pumice/checkpoint.h>

static const char classifier[] =
    "{ \"model\": { \"name\": \"mobilenet_v2\" },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"threads\": 2 },\n"
    "  \"input\": { \"size\": 32 }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },\n"
    "  \"run\": { \"folder\": \"%s/classifier\", \"steps\": 2, \"batch_size\": 4 } }\n";
static const char segmenter[] =
    "{ \"task\": \"segmentation\", \"model\": { \"name\": \"deeplab_mobilenet_v2\",\n"
    "  \"aspp_rates\": 6, \"aspp_filters\": 8, \"decoder_strides\": 4, \"decoder_filters\": 8,\n"
    "  \"batch_norm_train\": false },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"threads\": 2 }, \"input\": { \"size\": 17 },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0 },\n"
    "  \"run\": { \"steps\": 1, \"batch_size\": 4, \"seed\": 2 } }\n";

/* DeepLab's last layers; with last_layers_contain_logits_only only the first. */
static const char last_layers[] = "init.exclude_scopes='[\"logits\", \"image_pooling\", \"aspp\", "
                                  "\"concat_projection\", \"decoder\"]'";

static const struct pm_shape stem = PM_SHAPE4(3, 3, 3, 32), depthwise = PM_SHAPE4(3, 3, 144, 1),
                             moving = PM_SHAPE1(144), aspp = PM_SHAPE4(1, 1, 320, 8),
                             logits = PM_SHAPE4(1, 1, 8, 5);
static const char stem_name[] = "MobilenetV2/Conv/weights",
                  depthwise_name[] = "MobilenetV2/expanded_conv_3/depthwise/depthwise_weights",
                  moving_name[] = "MobilenetV2/expanded_conv_3/depthwise/BatchNorm/moving_mean",
                  aspp_name[] = "aspp0/weights", logits_name[] = "logits/semantic/weights";

/* True when the newest checkpoints of two runs hold the same values of a variable. */
static bool same(const char *a, const char *b, const char *name, struct pm_shape shape)
{
    enum { MOST = 4096 };
    static float v[2][MOST];
    const char *const runs[] = { a, b };

    assert_true(pm_shape_count(shape) <= MOST);
    for (int i = 0; i < 2; i++) {
        struct pm_checkpoint *c = NULL;

        if (pm_checkpoint_open_newest(in("%s", runs[i]), &c) < 0 ||
            pm_checkpoint_read(c, name, shape, v[i]) < 0)
            fail_msg("%s", pm_error_text());
        pm_checkpoint_close(&c);
    }
    return memcmp(v[0], v[1], pm_shape_count(shape) * sizeof(float)) == 0;
}

static struct result train(const char *name, const char *from, const char *more)
{
    return run(NULL, "train %s run.folder=%s init.checkpoint=%s %s", in("segmenter.json"),
               in("%s", name), in("%s", from), more);
}

static int prepare(void **state)
{
    struct pm_str text = { 0 };

    (void)state;
    if (make_world(true) < 0)
        return -1;
    pm_str_add(&text, classifier, folder, folder);
    put_text(in("classifier.json"), text.text);
    text.length = 0;
    pm_str_add(&text, segmenter, folder);
    put_text(in("segmenter.json"), text.text);
    pm_str_free(&text);
    check(run(NULL, "train %s", in("classifier.json")), 0);
    check(run(NULL, "checkpoint convert %s %s", in("classifier"), in("model.ckpt-2")), 0);
    check(run(NULL, "train %s run.folder=%s schedule.base_lr=0.01 model.batch_norm_train=true",
              in("segmenter.json"), in("source")), 0);
    return 0;
}

static void expect_backbone(const char *run, const char *source)
{
    assert_true(same(source, run, stem_name, stem));
    assert_true(same(source, run, depthwise_name, depthwise));
    assert_true(same(source, run, moving_name, moving));
}

/* The 255 variables of the backbone are loaded; the classifier's last layers are listed. */
static void from_a_classifier(void **state)
{
    struct result r;

    (void)state;
    check(train("not", "classifier", "init.ignore_missing=false"), 3,
          "52 of 307 variables are not in ",
          "the first is 'image_pooling/weights'", "set init.ignore_missing");
    for (int slim = 0; slim < 2; slim++) {
        const char *to = slim ? "of_slim" : "of_classifier";

        r = train(to, slim ? "model.ckpt-2" : "classifier",
                  slim ? "" : "init.ignore_missing=true"); /* true is the default */
        assert_contains(r.err, "match no variable of this net: MobilenetV2/Conv_1/BatchNorm/beta");
        assert_contains(r.err, "decoder/decoder_conv0_pointwise/weights: not in ");
        assert_contains(r.err, slim ? "model.ckpt-2 (TensorFlow" : "(safetensors)");
        check(r, 0, "255 of 307 variables from", "0 excluded, 52 missing");
        expect_backbone(to, "classifier");
    }
    assert_true(same("of_slim", "of_classifier", aspp_name, aspp)); /* drawn from the seed */
    check(train("but_last", "classifier", last_layers), 0, "255 of 307 variables from",
          "52 excluded, 0 missing");
    expect_backbone("but_last", "classifier");
}

static void from_a_segmentation(void **state)
{
    (void)state;
    check(train("all", "source", ""), 0, "307 of 307 variables from", "0 excluded, 0 missing");
    expect_backbone("all", "source");
    assert_true(same("source", "all", aspp_name, aspp));
    assert_true(same("source", "all", logits_name, logits));
    check(train("but_all_last", "source", last_layers), 0, "255 of 307 variables from",
          "52 excluded");
    expect_backbone("but_all_last", "source");
    assert_false(same("source", "but_all_last", aspp_name, aspp));
    assert_false(same("source", "but_all_last", logits_name, logits));
    check(train("but_logits", "source", "init.exclude_scopes='[\"logits\"]'"), 0,
          "305 of 307 variables from", "2 excluded");
    assert_true(same("source", "but_logits", aspp_name, aspp));
    assert_false(same("source", "but_logits", logits_name, logits));
}

/* Another shape is always an error; a missing head may be allowed. */
static void other_classes(void **state)
{
    struct pm_checkpoint *c = NULL;

    (void)state;
    for (int ignore = 0; ignore < 2; ignore++)
        check(train("no", "source", ignore ? "model.num_classes=9"
                                           : "model.num_classes=9 init.ignore_missing=false"), 3,
              "init.checkpoint: 2 of 307 variables have other shapes",
              "'logits/semantic/weights', 1x1x8x5 there and 1x1x8x9 in the net "
              "(5 classes there, 9 in the net?)",
              "set init.exclude_scopes='[\"logits/semantic\"]'");
    check(
        train("nine", "source", "model.num_classes=9 init.exclude_scopes='[\"logits/semantic\"]'"),
        0, "305 of 307 variables from", "2 excluded, 0 missing");
    assert_true(same("source", "nine", aspp_name, aspp));
    if (pm_checkpoint_open_newest(in("nine"), &c) < 0)
        fail_msg("%s", pm_error_text());
    assert_int_equal(pm_tensor_file_find(c->tensors, logits_name)->dim[3], 9);
    pm_checkpoint_close(&c);
    check(train("no_edges", "source", "model.edge_classes=2 init.ignore_missing=false"), 3,
          "2 of 309 variables are not in ", "the first is 'logits/edge/weights'");
    check(train("edges", "source", "model.edge_classes=2 init.ignore_missing=true"), 0,
          "307 of 309 variables from", "0 excluded, 2 missing");
    assert_true(same("source", "edges", logits_name, logits));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_a_classifier),
        cmocka_unit_test(from_a_segmentation),
        cmocka_unit_test(other_classes),
    };

    return cmocka_run_group_tests_name("segmentation_start", tests, prepare, drop_world);
}
