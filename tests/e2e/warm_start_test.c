/* init: what a run takes from another one's checkpoint, what it names, and what it refuses. The
 * source is FOLDER/source, three steps of the small net with seed 1; all others have seed 2. */
#include "e2e/program.h"

#include <pumice/checkpoint.h>

static struct result train(const char *name, const char *more)
{
    return run(NULL, "train %s run.folder=%s init.checkpoint=%s run.seed=2 %s", in("net.json"),
               in("%s", name), in("source"), more);
}

/* Whether two runs' newest checkpoints hold the same values of a variable. */
static bool same(const char *a, const char *b, const char *name, struct pm_shape shape)
{
    struct pm_checkpoint *x = NULL, *y = NULL;
    float v[2][512];
    bool equal;

    assert_true(pm_shape_count(shape) <= 512);
    if (pm_checkpoint_open_newest(in("%s", a), &x) < 0 ||
        pm_checkpoint_open_newest(in("%s", b), &y) < 0 ||
        pm_checkpoint_read(x, name, shape, v[0]) < 0 || pm_checkpoint_read(y, name, shape, v[1]) < 0)
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
    check(train("all", "run.steps=4"), 0, "resuming", "init.checkpoint is not used");
}

/* What does not fit is all named, then the run ends before it changed anything. */
static void shapes_and_names_must_fit(void **state)
{
    struct result r;

    (void)state;
    r = train("shapes", "model.layers.0.filters=6");
    assert_contains(r.err, "conv1/weights: shape 3x3x3x4 in ");
    assert_contains(r.err, "but 3x3x3x6 in the net");
    assert_contains(r.err, "norm1/moving_variance: shape 4 in ");
    check(r, 3, "net.json: init.checkpoint", "7 of 8 variables", "'conv1/weights'",
          "init.exclude_scopes");
    check(train("shapes", "model.layers.0.filters=6 init.ignore_missing=true"), 3, "7 of 8");
    check(train("shapes", "model.layers.0.filters=6 "
                          "init.exclude_scopes='[\"conv1\", \"norm1\", \"logits/weights\"]'"),
          0, "1 of 8 variables", "7 excluded");

    r = train("names", "model.layers.0.name=stem");
    assert_contains(r.err, "stem/weights: not in ");
    assert_contains(r.err, "stem/biases: not in ");
    check(r, 3, "net.json: init.checkpoint", "2 of 8 variables", "'stem/weights'",
          "init.exclude_scopes", "init.ignore_missing");
    check(train("names", "model.layers.0.name=stem init.ignore_missing=true"), 0,
          "stem/weights: not in ", "keeps its initial value", "6 of 8 variables", "2 missing");
}

static void nothing_in_common(void **state)
{
    (void)state;
    check(train("none", "model.layers.0.name=a model.layers.1.name=b model.layers.4.name=c "
                        "init.ignore_missing=true"),
          3, "nothing for this net", "8 are not there");
    check(train("none", "init.exclude_scopes='[\"\"]'"), 3, "nothing for this net", "8 are excluded");
    check(run(NULL, "train %s run.folder=%s init.checkpoint=%s", in("net.json"), in("none"),
              in("nowhere")), 3, "init.checkpoint", in("nowhere"));
}

/* Scopes that match nothing are told; when nothing is left to train, that is an error. */
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
    check(train("nothing", "init.trainable_scopes='[\"head\"]'"), 2, "nothing to train",
          "init.trainable_scopes", "conv1/weights");
    check(train("nothing", "optim.freeze='[\".*\"]'"), 2, "nothing to train", "optim.freeze");
    assert_false(pm_is_folder(in("nothing")));
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
    };
    return cmocka_run_group_tests(tests, setup, drop_world);
}
