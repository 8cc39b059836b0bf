/* A detector on several devices, and on devices that fail. Its batch norms are frozen and its
 * activations are smooth, so the loss of 20 steps differs by rounding only: for clones of unequal
 * shares, micro-batches, other drivers, and shares that move. A slow, hung or lost device, and
 * SIGKILL at random moments, leave the same bits, with mosaics from two data folders. Mining is on,
 * because it chooses by the device's own values. */
#include "e2e/software_drivers.h"
#include "e2e/interrupted.h"

#include <pumice/rng.h>

/* Maps of 6x6 and 3x3 with three anchors in a cell. Layers 1 and 3 are batch norms. */
static const char net[] =
    "{ \"task\": \"detection\", \"model\": { \"layers\": [\n"
    "  { \"name\": \"c1\", \"layer\": \"conv2d\", \"filters\": 12, \"kernel\": 5, \"stride\": 4,\n"
    "    \"bias\": false },\n"
    "  { \"name\": \"n1\", \"layer\": \"batch_norm\", \"decay\": 0.8, \"activation\": \"tanh\" },\n"
    "  { \"name\": \"c2\", \"layer\": \"conv2d\", \"filters\": 16, \"stride\": 2,\n"
    "    \"bias\": false },\n"
    "  { \"name\": \"n2\", \"layer\": \"batch_norm\", \"decay\": 0.8, \"activation\": \"tanh\" },\n"
    "  { \"name\": \"m2\", \"layer\": \"conv2d\", \"filters\": 16, \"stride\": 2,\n"
    "    \"activation\": \"tanh\" },\n"
    "  { \"name\": \"anchors\", \"layer\": \"ssd_anchors\", \"aspect_ratios\": [1, 2],\n"
    "    \"reduce_boxes_in_lowest_layer\": false, \"inputs\": [\"images\", \"n2\", \"m2\"] },\n"
    "  { \"name\": \"boxes_1\", \"layer\": \"conv2d\", \"inputs\": [\"n2\"], \"filters\": 12 },\n"
    "  { \"name\": \"classes_1\", \"layer\": \"conv2d\", \"inputs\": [\"n2\"], \"filters\": 12 },\n"
    "  { \"name\": \"boxes_2\", \"layer\": \"conv2d\", \"inputs\": [\"m2\"], \"filters\": 12 },\n"
    "  { \"name\": \"classes_2\", \"layer\": \"conv2d\", \"inputs\": [\"m2\"],\n"
    "    \"filters\": 12 } ] },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"input\": { \"preprocessing\": \"ssd\", \"size\": 48,\n"
    "             \"augment\": [{ \"name\": \"random_flip\" }, { \"name\": \"resize\" }] },\n"
    "  \"loss\": { \"classification\": { \"type\": \"weighted_sigmoid\" },\n"
    "            \"hard_example_miner\": { \"iou_threshold\": 0.99,\n"
    "              \"loss_type\": \"classification\", \"max_negatives_per_positive\": 3 } },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },\n"
    "  \"run\": { \"steps\": 20, \"batch_size\": 12, \"log_every_steps\": 1,\n"
    "           \"save_every_steps\": 4, \"snapshot_every_steps\": 3 } }\n";

enum { STEPS = 20 };
#define FROZEN "init.checkpoint=%s/source model.layers.1.frozen=true model.layers.3.frozen=true "
#define CPUS(list) "'devices=[" list "]'"
#define SHARE(n) "{\"name\":\"cpu\",\"share\":" #n "}"

static void train_frozen(const char *name, const char *more)
{
    char text[1024];

    snprintf(text, sizeof text, FROZEN "%s", folder, more);
    train(name, text);
}

/* Runs with a fault in the environment. */
static struct result disturbed(const char *environment, const char *name, const char *more)
{
    return run(&(struct how){ .environment = environment }, "train %s run.folder=%s " FROZEN "%s",
               in("net.json"), in("%s", name), folder, more);
}

/* The source's batch norms learn the data's statistics. "one" is what one CPU learns. */
static int begin(void **state)
{
    (void)state;
    if (make_shapes(net, 48, 60, 4) < 0)
        return -1;
    check(run(NULL, "dataset make shapes %s size=48 train=20 validation=2 test=4 seed=1",
              in("other")), 0);
    train("source", "run.steps=30");
    train_frozen("one", "");
    assert_true(logged("one", STEPS, "loss") < 0.9 * logged("source", 1, "loss"));
    return 0;
}

/* ---- rounding ----------------------------------------------------------------------------- */

/* Sums in another order differ by some 1e-7 of the loss, which 20 steps of a smooth net hardly
 * enlarge. */
static void unequal_clones(void **state)
{
    (void)state;
    train_frozen("two", CPUS(SHARE(2) "," SHARE(1)));
    train_frozen("three", CPUS(SHARE(3) "," SHARE(2) "," SHARE(1)));
    train_frozen("micro", "run.micro_batches=4");
    same_losses("one", "two", 1, STEPS, 1e-5);
    same_losses("one", "three", 1, STEPS, 1e-5);
    same_losses("one", "micro", 1, STEPS, 1e-5);
}

/* Two drivers together follow two CPUs. */
static void drivers(void **state)
{
    (void)state;
    need_both_drivers();
    train_frozen("cpus", CPUS("\"cpu\",\"cpu\""));
    train_frozen("drivers", CPUS("\"llvmpipe\",\"SwiftShader\""));
    same_losses("cpus", "drivers", 1, STEPS, 1e-5);
}

/* ---- failing devices ----------------------------------------------------------------------- */

/* A slow device changes nothing; beside a faster one it gets a smaller part of the batch. */
static void slow_device(void **state)
{
    cJSON *shares;
    char *text;

    (void)state;
    check(disturbed("PM_SLOW=0:3", "slow", ""), 0);
    same_run(in("one"), in("slow"));
    check(disturbed("PM_SLOW=1:6", "moved", "run.balance=auto " CPUS("\"cpu\",\"cpu\"")), 0);
    text = get_text(in("moved/shares.json"));
    shares = cJSON_Parse(text);
    assert_true(number_of(cJSON_GetArrayItem(shares, 1), "share") <
                number_of(cJSON_GetArrayItem(shares, 0), "share"));
    cJSON_Delete(shares);
    pm_free(text);
    same_losses("one", "moved", 1, STEPS, 1e-5);
}

/* A single CPU that hangs ends the run; the same command continues it. Of three clones, the one
 * that hangs is left out, and the others take over its part of the batch. */
static void hung_device(void **state)
{
    struct result r;

    (void)state;
    check(disturbed("PM_HANG=0:6", "hung", "run.hang_seconds=2"), 4, "no call ended for");
    train_frozen("hung", "");
    same_run(in("one"), in("hung"));
    r = disturbed("PM_HANG=1:6", "left", "run.hang_seconds=2 " CPUS("\"cpu\",\"cpu\",\"cpu\""));
    assert_contains(r.err, "is left out from now on");
    check(r, 0);
    same_losses("one", "left", 1, STEPS, 1e-5);
}

/* One of two clones is lost and opened again. */
static void lost_device(void **state)
{
    struct result r;

    (void)state;
    train_frozen("pair", CPUS(SHARE(2) "," SHARE(1)));
    r = disturbed("PM_LOSE=1:9", "lost", CPUS(SHARE(2) "," SHARE(1)));
    assert_contains(r.err, "was lost, as PM_LOSE requests");
    check(r, 0);
    same_run(in("pair"), in("lost"));
}

/* ---- SIGKILL ------------------------------------------------------------------------------- */

/* Eight examples of a batch come from one folder, four from another one. Up to step 14 they are
 * mosaics. */
static void killed(void **state)
{
    struct pm_rng random = pm_rng_make(17, pm_hash("killed"), 0, 0);
    char text[1024], arguments[2048];
    double seconds;

    (void)state;
    snprintf(text, sizeof text, "'data.folders=[{\"folder\":\"%s/data\",\"batch\":8},"
             "{\"folder\":\"%s/other\",\"batch\":4}]' 'input.augment=[{\"name\":\"mosaic\","
             "\"until_steps\":14},{\"name\":\"random_flip\"},{\"name\":\"resize\"}]' "
             "run.save_every_steps=2", folder, folder);
    seconds = -pm_seconds();
    train("whole", text);
    seconds += pm_seconds();
    snprintf(arguments, sizeof arguments, "train %s run.folder=%s %s", in("net.json"), in("torn"),
             text);
    for (int i = 0; i < 8; i++) {
        const pid_t pid = start(NULL, in("torn%d", i), arguments);
        struct result r;

        usleep((useconds_t)(1e6 * seconds * 0.6 * pm_rng_uniform(&random)));
        for (int k = 0; i == 7 && k < 600 && !pm_file_exists(in("torn/latest")); k++)
            usleep(50000); /* the last one is killed after a checkpoint, however slow it is */
        kill(pid, SIGKILL);
        r = finish(pid, in("torn%d", i));
        drop(&r);
    }
    check(run(NULL, "%s", arguments), 0, "resuming");
    same_run(in("whole"), in("torn"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unequal_clones), cmocka_unit_test(drivers),
        cmocka_unit_test(slow_device),    cmocka_unit_test(hung_device),
        cmocka_unit_test(lost_device),    cmocka_unit_test(killed),
    };

    return cmocka_run_group_tests(tests, begin, drop_world);
}
