/* config check of a detector with input.buckets and input.min_dimensions: every entry of the list
 * is checked for every picture, not the ones that single draws would give. The pictures are squares
 * of 40 pixels. */
#include "e2e/program.h"

static const char net[] =
    "{ \"task\": \"detection\", \"model\": { \"name\": \"faster_rcnn_mobilenet_v1\",\n"
    "    \"number_of_stages\": 1, \"depth_multiplier\": 0.25,\n"
    "    \"first_stage_box_predictor_depth\": 32,\n"
    "    \"anchors\": { \"scales\": [0.1] } },\n"
    "  \"data\": { \"folder\": \"%s/squares\", \"eval_split\": \"test\",\n"
    "            \"class_agnostic\": true },\n"
    "  \"input\": { \"resizer\": \"keep_aspect_ratio\", \"min_dimensions\": [64, 48, 96] },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },\n"
    "  \"run\": { \"folder\": \"%s/run\", \"steps\": 4, \"batch_size\": 1 } }\n";

static int make(void **state)
{
    (void)state;
    if (make_world(false) < 0)
        return -1;
    check(run(NULL, "dataset make shapes %s size=40 train=2 validation=1 test=2", in("squares")),
          0);
    put_net(net);
    return 0;
}

/* The check of these sizes succeeds, with exactly one warning that contains `finding`, or none. */
static void expect(const char *sizes, const char *finding)
{
    struct result r = run(NULL, "config check %s %s", in("net.json"), sizes);

    if (finding)
        assert_contains(r.out, finding);
    assert_contains(r.out, finding ? "net.json: 1 warning" : "net.json: nothing wrong");
    check(r, 0);
}

/* Two pictures cannot draw three entries. */
static void all_entries(void **state)
{
    (void)state;
    expect("'input.buckets=[48,64,96]' run.batch_size=1", NULL);
    expect("'input.buckets=[48,64,96]' run.batch_size=2", NULL);
    expect("'input.buckets=[48,64,96,128]'", "input.buckets: no batch has the size 128 x 128");
    expect("'input.buckets=[40,64,96]'", "input.buckets: 40 x 40 holds no picture of");
    expect("'input.buckets=[[48,60],64,96]'", NULL);
}

static void largest_entry(void **state)
{
    (void)state;
    check(run(NULL, "config check %s 'input.buckets=[48,64]'", in("net.json")), 2,
          "command line: input.buckets: ", "squares/shapes_train", ": the picture is "
          "96 x 96 when resized, which no size of input.buckets holds; the largest is 64 x 64: "
          "add [96, 96] to input.buckets");
    check(run(NULL, "config check %s 'input.buckets=[48,64]' 'input.min_dimensions=[96,48,64]'",
              in("net.json")), 2, ": the picture is 96 x 96 when resized");
    check(run(NULL, "config check %s 'input.buckets=[48,64]' 'input.min_dimensions=[48,64,96]'",
              in("net.json")), 2, ": the picture is 96 x 96 when resized");
    expect("'input.buckets=[48,64]' 'input.min_dimensions=[48,64]'", NULL);
    expect("'input.buckets=[48,64,96]' input.eval_size=80",
           "input.eval_size: evaluation pads pictures to 80 x 80 and fails at larger ones");
    expect("'input.buckets=[48,64,96]' input.eval_size=80 eval.resize=false", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_entries),
        cmocka_unit_test(largest_entry),
    };

    return cmocka_run_group_tests(tests, make, drop_world);
}
