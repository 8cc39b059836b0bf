/* init: the values that a run loads from another run's checkpoint, the names that it lists, and
 * errors. The source is FOLDER/source, three steps of the small net with seed 1; the other runs
 * have seed 2. */
#include "e2e/program.h"

#include <pumice/checkpoint.h>

static struct result train(const char *name, const char *more)
{
    return run(NULL, "train %s run.folder=%s init.checkpoint=%s run.seed=2 %s", in("net.json"),
               in("%s", name), in("source"), more);
}

/* True when the newest checkpoints of two runs hold the same values of a variable. */
static bool same(const char *a, const char *b, const char *name, struct pm_shape shape)
{
    struct pm_checkpoint *x = NULL, *y = NULL;
    float v[2][512];
    bool equal;

    assert_true(pm_shape_count(shape) <= 512);
    if (pm_checkpoint_open_newest(in("%s", a), &x) < 0 ||
        pm_checkpoint_open_newest(in("%s", b), &y) < 0 ||
        pm_checkpoint_read(x, name, shape, v[0]) < 0 ||
        pm_checkpoint_read(y, name, shape, v[1]) < 0)
        fail_msg("%s", pm_error_text());
    equal = memcmp(v[0], v[1], pm_shape_count(shape) * sizeof(float)) == 0;
    pm_checkpoint_close(&x);
    pm_checkpoint_close(&y);
    return equal;
}

static const struct pm_shape conv = PM_SHAPE4(3, 3, 3, 4), logits = PM_SHAPE2(64, 4);

static void values_are_taken(void **state)
{
    (void)state;
    check(train("all", "schedule.base_lr=0"), 0, "8 of 8 variables", "0 excluded, 0 missing");
    assert_true(same("source", "all", "conv1/weights", conv));
    assert_true(same("source", "all", "logits/weights", logits));
    check(train("but_logits", "schedule.base_lr=0 init.exclude_scopes='[\"logits\"]'"), 0,
          "logits/weights: excluded", "logits/biases: excluded", "6 of 8 variables",
          "2 excluded, 0 missing");
    assert_true(same("source", "but_logits", "conv1/weights", conv));
    assert_false(same("source", "but_logits", "logits/weights", logits));
    check(train("all", "run.steps=4"), 0, "resuming", "init.checkpoint is ignored");
}

/* All mismatches are listed; then the run ends before it changed anything. */
static void shapes_and_names_must_fit(void **state)
{
    struct result r;

    (void)state;
    r = train("shapes", "model.layers.0.filters=6");
    assert_contains(r.err, "conv1/weights: shape 3x3x3x4 in ");
    assert_contains(r.err, "but 3x3x3x6 in the net");
    assert_contains(r.err, "norm1/moving_variance: shape 4 in ");
    check(r, 3, "command line: init.checkpoint", "7 of 8 variables", "'conv1/weights'",
          "init.exclude_scopes");
    check(train("shapes", "model.layers.0.filters=6 init.ignore_missing=true"), 3, "7 of 8");
    check(train("shapes", "model.layers.0.filters=6 "
                          "init.exclude_scopes='[\"conv1\", \"norm1\", \"logits/weights\"]'"),
          0, "1 of 8 variables", "7 excluded");

    r = train("names", "model.layers.0.name=stem");
    assert_contains(r.err, "stem/weights: not in ");
    assert_contains(r.err, "stem/biases: not in ");
    check(r, 3, "command line: init.checkpoint", "2 of 8 variables", "'stem/weights'",
          "init.exclude_scopes", "init.ignore_missing");
    check(train("names", "model.layers.0.name=stem init.ignore_missing=true"), 0,
          "stem/weights: not in ", "keeps its initial value", "6 of 8 variables", "2 missing");
}

static void nothing_in_common(void **state)
{
    (void)state;
    check(train("none", "model.layers.0.name=a model.layers.1.name=b model.layers.4.name=c "
                        "init.ignore_missing=true"),
          3, "no value for this net", "8 are missing");
    check(train("none", "init.exclude_scopes='[\"\"]'"), 3, "no value for this net",
          "8 are excluded");
    check(run(NULL, "train %s run.folder=%s init.checkpoint=%s", in("net.json"), in("none"),
              in("nowhere")), 3, "init.checkpoint", in("nowhere"));
}

/* Scopes that match nothing are reported. When nothing is left to train, that is an error. */
static void idle_scopes(void **state)
{
    (void)state;
    check(train("idle", "init.exclude_scopes='[\"logit/\", \"conv1\"]'"), 0,
          "init.exclude_scopes: no variable's name begins with \"logit/\"", "6 of 8");
    check(train("scopes", "init.trainable_scopes='[\"logits\", \"head\"]' schedule.base_lr=0.1"), 0,
          "init.trainable_scopes: no variable's name begins with \"head\"");
    assert_true(same("source", "scopes", "conv1/weights", conv));
    assert_true(same("source", "scopes", "norm1/gamma", PM_SHAPE1(4)));
    assert_false(same("source", "scopes", "logits/weights", logits));
    check(train("nothing", "init.trainable_scopes='[\"head\"]'"), 2,
          "exclude all 6 variables of the net", "init.trainable_scopes", "conv1/weights");
    check(train("nothing", "optim.freeze='[\".*\"]'"), 2, "exclude all 6 variables of the net",
          "optim.freeze");
    check(train("nothing", "optim.multipliers='{\".*/gamma\": 2, \"head\": 3}'"), 2,
          "net.json: optim.multipliers: no variable's name begins with \"head\"");
    check(train("nothing", "optim.freeze='[\"conv(\"]'"), 2,
          "command line: optim.freeze: \"conv(\" is not a regular expression", "at character 6");
    assert_false(pm_is_folder(in("nothing")));
}

/* The list that allows comes first, then the one that freezes. Empty expressions are dropped, and
 * the expressions are Python's. */
static void trainable(void **state)
{
    const char *options = "optim.trainable='[\"\", \"conv\\\\d/\", \"logits\"]' "
                          "optim.freeze='[\"\", \"logits/bias(?:es)?$\"]' schedule.base_lr=0.1";

    (void)state;
    check(train("allowed", options), 0);
    assert_false(same("source", "allowed", "conv1/weights", conv));
    assert_true(same("source", "allowed", "norm1/gamma", PM_SHAPE1(4)));
    assert_false(same("source", "allowed", "logits/weights", logits));
    assert_true(same("source", "allowed", "logits/biases", PM_SHAPE1(4)));
}

/* loss.regularization=false is weight decay 0, whatever optim.weight_decay is. */
static void without_decay(void **state)
{
    (void)state;
    check(train("none_set", "optim.weight_decay=0"), 0);
    check(train("left_out", "optim.weight_decay=0.1 loss.regularization=false"), 0);
    check(train("decayed", "optim.weight_decay=0.1"), 0);
    assert_true(same("none_set", "left_out", "conv1/weights", conv));
    assert_false(same("none_set", "decayed", "conv1/weights", conv));
}

/* ---- detectors --------------------------------------------------------------------------- */

/* True when a variable of run a has the values of another variable of run b. */
static bool equal(const char *a, const char *name, const char *b, const char *other,
                  struct pm_shape shape)
{
    struct pm_checkpoint *x = NULL, *y = NULL;
    float v[2][512];

    if (pm_checkpoint_open_newest(in("%s", a), &x) < 0 ||
        pm_checkpoint_open_newest(in("%s", b), &y) < 0 ||
        pm_checkpoint_read(x, name, shape, v[0]) < 0 ||
        pm_checkpoint_read(y, other, shape, v[1]) < 0)
        fail_msg("%s", pm_error_text());
    pm_checkpoint_close(&x);
    pm_checkpoint_close(&y);
    return memcmp(v[0], v[1], pm_shape_count(shape) * sizeof(float)) == 0;
}

/* The scope FeatureExtractor makes a net a detector: init.type chooses its variables and their
 * names in the file, and what does not fit keeps its initial value. */
static void detectors(void **state)
{
    const char *as = "schedule.base_lr=0 model.layers.0.name=FeatureExtractor/conv1 "
                     "model.layers.1.name=FeatureExtractor/norm1";
    const char *averaged = "optim.moving_average_decay=0.5";
    const char *average = "FeatureExtractor/conv1/weights/ExponentialMovingAverage";
    char text[512];

    (void)state;
    snprintf(text, sizeof text, "%s %s init.type=classification", as, averaged);
    check(train("extractor", text), 0,
          "6 of 8 variables", "2 variables keep their initial values, the first is logits/weights",
          "init.type \"classification\" restores the feature extractor only");
    assert_true(equal("extractor", "FeatureExtractor/conv1/weights", "source", "conv1/weights",
                      conv));
    assert_false(same("source", "extractor", "logits/weights", logits));
    /* the averages begin at the restored values */
    assert_true(equal("extractor", average, "source", "conv1/weights", conv));

    check(train("wrong", as), 3, "has no value for this net", "2 are excluded",
          "init.type to \"classification\" if it is a classifier's");
    check(run(NULL, "train %s run.folder=%s init.checkpoint=%s run.seed=2 %s", in("net.json"),
              in("again"), in("extractor"), as), 0, "6 of 8 variables",
          "init.load_all restores all");
    assert_true(same("extractor", "again", "FeatureExtractor/conv1/weights", conv));
    check(run(NULL, "train %s run.folder=%s init.checkpoint=%s run.seed=2 init.load_all=true %s",
              in("net.json"), in("every"), in("extractor"), as), 0, "8 of 8 variables");
    assert_true(same("extractor", "every", "logits/weights", logits));
    check(run(NULL, "train %s run.folder=%s init.checkpoint=%s init.load_all=true %s "
                    "model.layers.0.filters=6", in("net.json"), in("other"), in("extractor"), as),
          0, "but 3x3x3x6 in the net", "7 variables of another shape keep their initial values");
    check(train("plain", "init.type=classification"), 0, "8 of 8 variables",
          "init.type has no effect");
}

/* ---- files of other programs -------------------------------------------------------------- */

struct file {
    struct pm_checkpoint *of; /* the source, which has the elements */
    struct pm_file_tensor list[64];
    size_t count;
};

static int elements(const struct pm_file_tensor *t, void *dst)
{
    const struct pm_tensor_file *f = ((const struct file *)t->from)->of->tensors;

    return pm_tensor_file_bytes(f, t, 0, (size_t)t->bytes, dst);
}

/* Reads the source, to be changed before it is written. Its offsets stay valid when names and
 * shapes change, as long as the elements stay. */
static void begin(struct file *f)
{
    *f = (struct file){ 0 };
    if (pm_checkpoint_open_newest(in("source"), &f->of) < 0)
        fail_msg("%s", pm_error_text());
    for (size_t i = 0; i < pm_tensor_file_count(f->of->tensors); i++) {
        f->list[f->count] = *pm_tensor_file_get(f->of->tensors, i);
        f->list[f->count].fill = elements;
        f->list[f->count++].from = f;
    }
}

static struct pm_file_tensor *tensor(struct file *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->list[i].name, name) == 0)
            return &f->list[i];
    fail_msg("no %s", name);
    return NULL;
}

static void add_tensor(struct file *f, const char *name, enum pm_dtype type, struct pm_shape shape,
                       const void *data)
{
    struct pm_file_tensor *t = &f->list[f->count++];

    *t = (struct pm_file_tensor){ .name = name, .type = type, .rank = shape.rank, .data = data };
    for (int i = 0; i < shape.rank; i++)
        t->dim[i] = shape.dim[i];
}

static void finish_file(struct file *f, const char *path)
{
    if (pm_safetensors_write(path, f->list, f->count, NULL, NULL) < 0)
        fail_msg("%s", pm_error_text());
    pm_checkpoint_close(&f->of);
}

static struct result start_from(const char *name, const char *file, const char *more)
{
    return run(NULL, "train %s run.folder=%s init.checkpoint=%s run.seed=2 schedule.base_lr=0 %s",
               in("net.json"), in("%s", name), in("%s", file), more);
}

/* Equivalent shapes, and tensors that the net does not use. */
static void beside_the_variables(void **state)
{
    static const float other[5] = { 1 };
    static float average[108];
    static const int64_t step = 4711;
    struct file f;
    struct pm_file_tensor *t;
    struct result r;

    (void)state;
    for (int i = 0; i < 108; i++)
        average[i] = (float)i;
    begin(&f);
    t = tensor(&f, "logits/weights");
    t->rank = 4;
    t->dim[0] = t->dim[1] = 1, t->dim[2] = 64, t->dim[3] = 4;
    add_tensor(&f, "global_step", PM_DTYPE_I64, (struct pm_shape){ 0 }, &step);
    add_tensor(&f, "conv1/weights/" "ExponentialMovingAverage", PM_DTYPE_F32, conv, average);
    add_tensor(&f, "conv1/weights/Adam_1", PM_DTYPE_F32, conv, average);
    add_tensor(&f, "aux/weights", PM_DTYPE_F32, PM_SHAPE1(5), other);
    add_tensor(&f, "aux/weights/Momentum", PM_DTYPE_F32, PM_SHAPE1(5), other);
    finish_file(&f, in("beside.safetensors"));

    r = start_from("beside", "beside.safetensors", "");
    assert_contains(r.err, "logits/weights: the checkpoint's shape 1x1x64x4 is read as 64x4");
    assert_contains(r.err, "1 moving average, 8 optimizer slots, 1 counter or text");
    assert_contains(r.err, "1 tensor in ");
    assert_contains(r.err, "matches no variable of this net: aux/weights\n");
    check(r, 0, "8 of 8 variables from ",
          "beside.safetensors (safetensors), 0 excluded, 0 missing");
    assert_true(same("source", "beside", "conv1/weights", conv));
    assert_true(same("source", "beside", "logits/weights", logits));

    r = start_from("average", "beside.safetensors", "init.averages=on");
    check(r, 0, "1 of the values are its moving averages (init.averages)");
    assert_false(same("source", "average", "conv1/weights", conv));
    assert_true(same("source", "average", "conv1/biases", PM_SHAPE1(4)));
    check(start_from("average_auto", "beside.safetensors", "init.averages=auto"), 0,
          "1 of the values");
    assert_true(same("average", "average_auto", "conv1/weights", conv));
    check(start_from("none", "source", "init.averages=on"), 3,
          "command line: init.averages is on, but ", "has no moving averages");
}

/* For another number of classes the message contains the scopes to exclude; pasted into the
 * config they work. */
static void scopes_to_paste(void **state)
{
    static const float weights[64 * 7] = { 1 }, biases[7];
    struct file f;

    (void)state;
    begin(&f);
    *tensor(&f, "logits/weights") = (struct pm_file_tensor){
        .name = "logits/weights", .type = PM_DTYPE_F32, .rank = 2, .dim = { 64, 7 }, .data = weights
    };
    *tensor(&f, "logits/biases") = (struct pm_file_tensor){
        .name = "logits/biases", .type = PM_DTYPE_F32, .rank = 1, .dim = { 7 }, .data = biases };
    finish_file(&f, in("classes.safetensors"));
    check(start_from("classes", "classes.safetensors", ""), 3, "2 of 8 variables have other shapes",
          "(7 classes there, 4 in the net?)", "set init.exclude_scopes='[\"logits\"]'");
    check(start_from("classes", "classes.safetensors", "init.exclude_scopes=norm1/gamma"), 3,
          "set init.exclude_scopes='[\"norm1/gamma\", \"logits\"]'");
    check(start_from("classes", "classes.safetensors", "init.exclude_scopes='[\"logits\"]'"), 0,
          "6 of 8 variables");

    begin(&f);
    for (size_t i = 0; i < f.count; i++)
        if (strncmp(f.list[i].name, "norm1/", 6) == 0) {
            static char names[16][64];
            snprintf(names[i % 16], 64, "conv1b/%s", f.list[i].name + 6);
            f.list[i].name = names[i % 16];
        }
    *tensor(&f, "conv1/weights") = (struct pm_file_tensor){
        .name = "conv1/weights", .type = PM_DTYPE_F32, .rank = 2, .dim = { 64, 7 }, .data = weights
    };
    finish_file(&f, in("alike.safetensors"));
    check(start_from("alike", "alike.safetensors", "model.layers.1.name=conv1b"), 3,
          "set init.exclude_scopes='[\"conv1/weights\"]'");
    check(start_from("alike", "alike.safetensors", "model.layers.1.name=conv1b "
                     "init.exclude_scopes=conv1/biases"), 3,
          "set init.exclude_scopes='[\"conv1/biases\", \"conv1/\"]'");
}

/* Files that cannot be read or belong to other programs: one line each. */
static void files_that_are_refused(void **state)
{
    static const float w[8 * 9] = { 1 };
    struct file f = { .count = 0 };

    (void)state;
    put_text(in("text.txt"), "no tensors here\n");
    put_text(in("empty.ckpt"), "");
    check(start_from("refused", "text.txt", ""), 3, "text.txt", "not a tensor file");
    check(start_from("refused", "empty.ckpt", ""), 3, "empty.ckpt");
    check(start_from("refused", "no/such/model.ckpt-7", ""), 3, "command line: init.checkpoint",
          "model.ckpt-7");
    check(start_from("refused", "data", ""), 3, "command line: init.checkpoint: the folder ",
          "has no checkpoint");
    add_tensor(&f, "conv1.weight", PM_DTYPE_F32, PM_SHAPE4(8, 1, 3, 3), w);
    finish_file(&f, in("torch.safetensors"));
    check(start_from("refused", "torch.safetensors", ""), 3, "torch.safetensors",
          "the file has PyTorch's names", "cannot translate for this net");
    assert_int_equal(temporaries(in("refused")), 0);
}

/* An exported model has Pumice's names in ONNX's layouts. */
static void an_exported_model(void **state)
{
    (void)state;
    check(run(NULL, "export %s %s", in("source"), in("source.onnx")), 0);
    check(start_from("onnx", "source.onnx", ""), 0, "8 of 8 variables from ", "source.onnx (ONNX)");
    assert_true(same("source", "onnx", "conv1/weights", conv));
    assert_true(same("source", "onnx", "logits/weights", logits));
    check(run(NULL, "export %s %s export.fold_batch_norm=true", in("source"), in("folded.onnx")),
          0);
    check(start_from("folded", "folded.onnx", ""), 3, "folded.onnx", "conv1/weights");
}

static struct result eval(const char *checkpoint, const char *more)
{
    return run(NULL, "eval %s run.folder=%s eval.checkpoint=%s --json %s", in("net.json"),
               in("elsewhere"), in("%s", checkpoint), more);
}

/* Evaluation reads the same files; they must be complete. */
static void evaluation_of_foreign_files(void **state)
{
    struct file f;
    struct result own, other;
    cJSON *a, *b;

    (void)state;
    own = eval("source", "");
    other = eval("beside.safetensors", "eval.averages=off");
    assert_int_equal(own.code, 0);
    assert_int_equal(other.code, 0);
    a = json_of(&own), b = json_of(&other);
    assert_true(cJSON_Compare(cJSON_GetObjectItem(a, "metrics"), cJSON_GetObjectItem(b, "metrics"),
                              true));
    assert_true(number_of(b, "step") == 4711);
    cJSON_Delete(a);
    cJSON_Delete(b);
    drop(&own);
    drop(&other);
    assert_false(pm_file_exists(in("elsewhere/config.json"))); /* only its events */
    check(eval("classes.safetensors", ""), 3,
          "command line: eval.checkpoint: 2 of the net's 8 variables",
          "(7 classes there, 4 in the net?)", "model.num_classes");
    begin(&f);
    tensor(&f, "norm1/gamma")->name = "norm1/gamme";
    finish_file(&f, in("lacking.safetensors"));
    check(eval("lacking.safetensors", ""), 3, "1 of the net's 8 variables are not in ",
          "'norm1/gamma' (the nearest there is 'norm1/gamme')", "model.name");
}

/* From a net of floats to a quantised one: the ranges may be missing in the checkpoint. A run
 * resumed from its own checkpoint has the bits of an uninterrupted run. */
static void quantised_from_floats(void **state)
{
    static const char ranges[] = "ranges of the quantised net are not in it";
    const struct pm_shape scalar = { 0 };

    (void)state;
    check(train("whole", "model.quantize_delay=2 run.steps=4"), 0, "8 of ", ranges, "0 missing");
    check(train("halves", "model.quantize_delay=2 run.steps=2"), 0, "8 of ", ranges);
    check(train("halves", "model.quantize_delay=2 run.steps=4"), 0, "resuming");
    assert_true(same("whole", "halves", "conv1/weights", conv));
    assert_true(same("whole", "halves", "logits/weights", logits));
    assert_true(same("whole", "halves", "conv1/weights_quant/min", scalar));
    assert_true(same("whole", "halves", "logits/act_quant/max", scalar));
    assert_false(same("source", "whole", "conv1/weights", conv));
    check(run(NULL, "eval %s run.folder=%s model.quantize_delay=0", in("net.json"), in("whole")),
          0);
    check(run(NULL, "eval %s run.folder=%s model.quantize_delay=0", in("net.json"), in("source")),
          3, "ranges of the quantised net are not in ", "trained without quantisation");
    /* For another net the missing variables are reported, not its ranges. */
    check(eval("lacking.safetensors", "model.quantize_delay=0"), 3, "1 of the net's ",
          "are not in ", "'norm1/gamma' (the nearest there is 'norm1/gamme')");
    check(train("two", "model.quantize_delay=0 'devices=[\"cpu\", \"cpu\"]'"), 2,
          "devices: 2 are given");
}

static int setup(void **state)
{
    (void)state;
    if (make_world(true) < 0)
        return -1;
    check(run(NULL, "train %s run.folder=%s", in("net.json"), in("source")), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_taken),
        cmocka_unit_test(shapes_and_names_must_fit),
        cmocka_unit_test(nothing_in_common),
        cmocka_unit_test(idle_scopes),
        cmocka_unit_test(trainable),
        cmocka_unit_test(without_decay),
        cmocka_unit_test(detectors),
        cmocka_unit_test(beside_the_variables),
        cmocka_unit_test(scopes_to_paste),
        cmocka_unit_test(files_that_are_refused),
        cmocka_unit_test(an_exported_model),
        cmocka_unit_test(evaluation_of_foreign_files),
        cmocka_unit_test(quantised_from_floats),
    };
    return cmocka_run_group_tests(tests, setup, drop_world);
}
