/* input.augment with the program: training with a list of augmentations, for pictures and for
 * label maps; the same bits after a stop and a resume; the output of config show; one line for
 * each mistake. */
#include "e2e/program.h"

#define LIST                                                                \
    "[{\"name\":\"random_crop\",\"padding\":2},{\"name\":\"random_flip\"}," \
    "{\"name\":\"random_colors\",\"hue\":0.05}]"
#define SCALED                                                                   \
    "[{\"name\":\"random_scale\",\"min_scale\":0.7},{\"name\":\"random_crop\"}," \
    "{\"name\":\"random_flip\"}]"

static const char maps[] =
    "{ \"base\": [\"net.json\"], \"task\": \"segmentation\", \"model\": { \"layers\": [\n"
    "  { \"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": 5, \"stride\": 2 } ] },\n"
    "  \"input\": { \"preprocessing\": \"deeplab\", \"size\": 17, \"augment\": " SCALED " } }\n";

static int make(void **state)
{
    (void)state;
    if (make_world(true) < 0)
        return -1;
    put_text(in("maps.json"), maps);
    put_text(in("net_list.json"),
             "{ \"base\": [\"net.json\"], \"input\": { \"augment\": " LIST " } }\n");
    return 0;
}

static void train(const char *config, const char *folder_, int steps)
{
    check(run(NULL, "train %s run.folder=%s run.steps=%d", in(config), in(folder_), steps), 0);
}

static void resumes(void **state)
{
    static const char *const configs[] = { "net_list.json", "maps.json" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(configs); i++) {
        char whole[32], parts[32], a[96], b[96];

        snprintf(whole, sizeof whole, "whole%zu", i);
        snprintf(parts, sizeof parts, "parts%zu", i);
        snprintf(a, sizeof a, "%s/checkpoints/step-000007.safetensors", whole);
        snprintf(b, sizeof b, "%s/checkpoints/step-000007.safetensors", parts);
        train(configs[i], whole, 7);
        train(configs[i], parts, 3);
        train(configs[i], parts, 7);
        same_bytes(in(a), in(b));
    }
}

/* Training uses the list: without it the results differ. */
static void matters(void **state)
{
    char *x = NULL, *y = NULL;
    size_t n = 0, m = 0;

    (void)state;
    train("net.json", "plain", 7);
    assert_int_equal(pm_file_read(in("plain/checkpoints/step-000007.safetensors"), &x, &n), PM_OK);
    assert_int_equal(pm_file_read(in("whole0/checkpoints/step-000007.safetensors"), &y, &m), PM_OK);
    assert_true(n == m && memcmp(x, y, n) != 0);
    pm_free(x);
    pm_free(y);
}

static void shown(void **state)
{
    (void)state;
    struct result r = run(NULL, "config show %s", in("net_list.json"));
    assert_non_null(strstr(r.out, "\"random_crop\""));
    assert_non_null(strstr(r.out, "\"probability\": 0.5"));
    assert_non_null(strstr(r.out, "\"hue\": 0.05"));
    put_text(in("shown.json"), r.out);
    drop(&r);
    r = run(NULL, "config show %s", in("shown.json"));
    char *first = get_text(in("shown.json"));
    assert_string_equal(first, r.out);
    pm_free(first);
    drop(&r);
}

static void mistakes(void **state)
{
    static const char *const cases[][3] = {
        { "net.json", "[{\"name\":\"random_flop\"}]",
          "input.augment.0.name: 'random_flop' is no augmentation of this version, did you "
          "mean "
          "'random_flip'?" },
        { "net.json", "[{\"name\":\"random_flip\",\"probability\":2}]",
          "input.augment.0.probability: 2 is outside 0..1" },
        { "net.json", "[{\"name\":\"random_flip\",\"probabilty\":1}]",
          "did you mean 'probability'?" },
        { "net.json", "[{\"name\":\"random_flip\"},{\"name\":\"random_scale\"}]",
          "input.augment.1: after random_scale the picture does not have the input's size" },
        { "maps.json", "[{\"name\":\"random_contrast\",\"min\":2,\"max\":1}]",
          "input.augment.0.min: 2 is above" },
        { "maps.json", "{\"name\":\"random_flip\"}", "input.augment: a list" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++)
        check(run(NULL, "train %s run.folder=%s 'input.augment=%s'", in(cases[i][0]), in("no"),
                  cases[i][1]),
              2, cases[i][2]);
    /* Pictures of 16 x 16 for an input of 17 x 17. The mistake shows only when the data is read. */
    check(run(NULL, "train %s run.folder=%s 'input.augment=[{\"name\":\"random_flip\"}]'",
              in("maps.json"), in("no")),
          3, "becomes 16 x 16 by input.augment, but the input is 17 x 17");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumes),
        cmocka_unit_test(matters),
        cmocka_unit_test(shown),
        cmocka_unit_test(mistakes),
    };
    return cmocka_run_group_tests(tests, make, drop_world);
}
