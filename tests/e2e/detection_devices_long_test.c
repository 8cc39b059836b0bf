/* ssd_mobilenet_v2 with frozen batch norms on several devices: clones of unequal shares and
 * micro-batches learn what one CPU does, and two drivers follow two CPUs. The learning rate is
 * small, because a rounding turns a unit of relu6 on or off now and then, and training enlarges
 * that. Without any training the last losses would differ by 1e-2. */
#include "e2e/software_drivers.h"
#include "e2e/interrupted.h"

static const char net[] =
    "{ \"task\": \"detection\",\n"
    "  \"model\": { \"name\": \"ssd_mobilenet_v2\", \"depth_multiplier\": 0.25,\n"
    "             \"batch_norm_decay\": 0.9 },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"threads\": 2 },\n"
    "  \"input\": { \"preprocessing\": \"ssd\", \"size\": 96,\n"
    "             \"augment\": [{ \"name\": \"random_flip\" }, { \"name\": \"resize\" }] },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },\n"
    "  \"run\": { \"steps\": 20, \"batch_size\": 12, \"log_every_steps\": 1 },\n"
    "  \"eval\": { \"every_steps\": 0 } }\n";

enum { STEPS = 20 };

static void train_frozen(const char *name, const char *more)
{
    char text[1024];

    snprintf(text, sizeof text, "init.checkpoint=%s/source init.load_all=true "
             "model.batch_norm_train=false schedule.base_lr=0.00003 %s", folder, more);
    train(name, text);
}

/* The source has batch norms near the data's statistics, and trained heads. */
static int begin(void **state)
{
    (void)state;
    if (make_shapes(net, 96, 40, 4) < 0)
        return -1;
    train("source", "run.steps=150");
    return 0;
}

static void unequal_clones(void **state)
{
    (void)state;
    train_frozen("one", "");
    train_frozen("two", "'devices=[{\"name\":\"cpu\",\"share\":2},"
                 "{\"name\":\"cpu\",\"share\":1}]'");
    train_frozen("three", "'devices=[{\"name\":\"cpu\",\"share\":3},"
                 "{\"name\":\"cpu\",\"share\":2},{\"name\":\"cpu\",\"share\":1}]'");
    train_frozen("micro", "run.micro_batches=4");
    same_losses("one", "two", 1, STEPS, 1e-5);
    same_losses("one", "three", 1, STEPS, 1e-5);
    same_losses("one", "micro", 1, STEPS, 1e-5);
}

static void drivers(void **state)
{
    (void)state;
    need_both_drivers();
    train_frozen("cpus", "'devices=[\"cpu\",\"cpu\"]'");
    train_frozen("drivers", "'devices=[\"llvmpipe\",\"SwiftShader\"]'");
    same_losses("cpus", "drivers", 1, 1, 1e-3);
    same_losses("cpus", "drivers", 2, STEPS, 2e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unequal_clones),
        cmocka_unit_test(drivers),
    };

    return cmocka_run_group_tests(tests, begin, drop_world);
}
