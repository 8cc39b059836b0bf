/* lr-find: the rates, the smoothed loss and the proposal. The same seed gives the same result, and
 * nothing is written except the picture. */
#include "e2e/program.h"

#include <math.h>

static int make(void **state)
{
    (void)state;
    return make_world(true);
}

static cJSON *found(const char *more)
{
    struct result r = run(NULL, "lr-find %s run.folder=%s %s --json", in("net.json"), in("none"),
                          more);
    cJSON *json = json_of(&r);

    check(r, 0);
    assert_false(pm_file_exists(in("none")));
    return json;
}

static void rates_and_means(void **state)
{
    cJSON *json = found("--steps 60 --from 1e-6 --to 1000 run.batch_size=40");
    const cJSON *points = cJSON_GetObjectItem(json, "points"), *p;
    const int count = cJSON_GetArraySize(points);
    double loss[60], least = INFINITY, at = 0;
    int i = 0;

    (void)state;
    assert_true(count > 10 && count < 60); /* a rate of 1000 diverges */
    cJSON_ArrayForEach(p, points)
        loss[i++] = number_of(p, "loss");
    for (i = 0; i < count; i++) {
        const int first = i > 3 ? i - 3 : 0, last = i + 3 < count ? i + 3 : count - 1;
        double sum = 0;

        p = cJSON_GetArrayItem(points, i);
        for (int k = first; k <= last; k++)
            sum += loss[k];
        assert_true(fabs(number_of(p, "rate") / (1e-6 * pow(1e9, i / 59.0)) - 1) < 1e-9);
        assert_true(fabs(number_of(p, "smooth") - sum / (last - first + 1)) < 1e-9 * sum);
        if (number_of(p, "smooth") < least)
            least = number_of(p, "smooth"), at = number_of(p, "rate");
    }
    assert_true(number_of(json, "lowest_at") == at);
    assert_true(fabs(number_of(json, "proposal") / (at / 10) - 1) < 0.5);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(json, "diverged")));
    cJSON_Delete(json);
}

static void repeats(void **state)
{
    cJSON *a = found("--steps 12 run.seed=5"), *b = found("--steps 12 run.seed=5"),
          *c = found("--steps 12 run.seed=6");

    (void)state;
    assert_true(cJSON_Compare(a, b, true));
    assert_false(cJSON_Compare(a, c, true));
    cJSON_Delete(a);
    cJSON_Delete(b);
    cJSON_Delete(c);
}

/* Rates that are too small to learn: no proposal. */
static void no_proposal(void **state)
{
    cJSON *json = found("--steps 30 --from 1e-12 --to 1e-11 run.batch_size=40 data.shuffle=false "
                        "model.layers.3.keep=1");

    (void)state;
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(json, "proposal")));
    assert_contains(cJSON_GetStringValue(cJSON_GetObjectItem(json, "text")), "no proposal");
    cJSON_Delete(json);
}

/* Starts from init.checkpoint: the first loss is that of the trained net. */
static void pretrained(void **state)
{
    static const char same[] = "run.batch_size=40 data.shuffle=false model.layers.3.keep=1";
    char text[1024];
    cJSON *a, *b;

    (void)state;
    snprintf(text, sizeof text, "run.steps=60 schedule.base_lr=0.05 %s", same);
    check(train_net(NULL, "run", text), 0);
    snprintf(text, sizeof text, "--steps 10 %s", same);
    a = found(text);
    snprintf(text, sizeof text, "--steps 10 %s init.checkpoint=%s", same, in("run"));
    b = found(text);
    assert_true(number_of(cJSON_GetObjectItem(b, "points")->child, "loss") <
                0.9 * number_of(cJSON_GetObjectItem(a, "points")->child, "loss"));
    cJSON_Delete(a);
    cJSON_Delete(b);
}

static void picture(void **state)
{
    struct result r = run(NULL, "lr-find %s --steps 60 --to 100 run.batch_size=40 --picture %s",
                          in("net.json"),
                          in("r\xc3\xa4tes.html"));
    char *page;

    (void)state;
    assert_contains(r.out, "proposal: schedule.base_lr=");
    assert_contains(r.out, "(the config has 0.01)\n");
    assert_contains(r.out, "r\xc3\xa4tes.html\n");
    check(r, 0);
    page = get_text(in("r\xc3\xa4tes.html"));
    assert_contains(page, "Learning rate range test");
    assert_contains(page, "Loss by learning rate");
    assert_contains(page, "proposal: ");
    assert_contains(page, "<path class=\"line c0 d0\" d=\"M");
    assert_contains(page, ">1e-5</span>");
    pm_free(page);
    check(run(NULL, "lr-find %s --picture %s", in("net.json"), in("a.png")), 2, "end in .html");
    check(run(NULL, "lr-find %s --picture %s", in("net.json"), in("no/a.html")), 2,
          "does not exist");
}

static void refused(void **state)
{
    (void)state;
    check(run(NULL, "lr-find %s --from 1 --to 0.1", in("net.json")), 2, "is not above --from");
    check(run(NULL, "lr-find %s --steps 3", in("net.json")), 2, "--steps: '3' is not a number of");
    check(run(NULL, "lr-find %s --lr 3", in("net.json")), 2, "has no flag '--lr'");
    check(run(NULL, "lr-find"), 2, "lr-find needs a config file");
    check(run(NULL, "lr-find %s data.folder=/nowhere", in("net.json")), 3, "/nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_and_means), cmocka_unit_test(repeats),
        cmocka_unit_test(no_proposal), cmocka_unit_test(pretrained), cmocka_unit_test(picture),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, make, drop_world);
}
