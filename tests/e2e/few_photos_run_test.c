/* config check proposes a recipe for detectors that are trained on few photos: what the config
 * lacks, as JSON that can be copied. FOLDER/data has 60 pictures, which count as photos because the
 * config does not let the program draw them. */
#include "e2e/small_rcnn.h"

/* Lacks every part: there is a checkpoint only in FOLDER/net.json. */
static const char net[] =
    "{ \"base\": [\"rcnn.json\"], \"model\": { \"depth_multiplier\": 1 },\n"
    "  \"input\": { \"augment\": [{ \"name\": \"mosaic\", \"probability\": 0.5 },\n"
    "                           { \"name\": \"random_flip\" }, { \"name\": \"resize\" }] },\n"
    "  \"schedule\": { \"policy\": \"piecewise\", \"base_lr\": 0.02, \"boundaries\": [10],\n"
    "                \"rates\": [0.001] },\n"
    "  \"run\": { \"steps\": 50, \"batch_size\": 16 } }\n";
#define FREEZE "FirstStageFeatureExtractor/MobilenetV1/Conv2d_[01](_|/)"

static int make_data(void **state)
{
    (void)state;
    return make_rcnn(net, 96, 60, 10);
}

/* The findings of a check of FOLDER/NAME.json, which must succeed. The caller frees them. */
static cJSON *findings(const char *name, const char *more)
{
    struct result r = run(NULL, "config check %s %s --json", in("%s.json", name), more);
    cJSON *json = json_of(&r), *list = cJSON_DetachItemFromObject(json, "findings");

    assert_true(cJSON_IsArray(list));
    cJSON_Delete(json);
    check(r, 0);
    return list;
}

/* Returns the finding with a proposed config, or NULL. */
static const cJSON *proposal(const cJSON *list)
{
    const cJSON *v, *found = NULL;

    cJSON_ArrayForEach(v, list)
        if (cJSON_HasObjectItem(v, "config")) {
            assert_null(found);
            found = v;
        }
    return found;
}

/* The proposal of a check begins with this key and has this config, as JSON; NULL: there is
 * none. */
static void expect(const char *name, const char *more, const char *key, const char *config)
{
    cJSON *list = findings(name, more), *wanted = config ? cJSON_Parse(config) : NULL;
    const cJSON *found = proposal(list);

    assert_true(!config || wanted);
    if (!found != !config)
        fail_msg("%s: %s", more, found ? "a proposal" : "no proposal");
    if (found) {
        char *have = cJSON_PrintUnformatted(cJSON_GetObjectItem(found, "config"));

        if (!cJSON_Compare(cJSON_GetObjectItem(found, "config"), wanted, true))
            fail_msg("%s: %s", more, have);
        assert_string_equal(cJSON_GetObjectItem(found, "key")->valuestring, key);
        assert_string_equal(cJSON_GetObjectItem(found, "level")->valuestring, "note");
        cJSON_free(have);
    }
    cJSON_Delete(wanted);
    cJSON_Delete(list);
}

#define INIT "\"init\": {\"checkpoint\": \"imagenet\"}"
#define OPTIM "\"optim\": {\"freeze\": [\"" FREEZE "\"]}"
#define RUN "\"run\": {\"batch_size\": 8}"
#define SCHEDULE                                                                                   \
    "\"schedule\": {\"policy\": \"cosine\", \"base_lr\": 0.01, \"end_lr\": 0, "                    \
    "\"boundaries\": null, \"rates\": null}"
#define INPUT(until)                                                                               \
    "\"input\": {\"augment\": [{\"name\": \"mosaic\", \"probability\": 0.5, \"until_steps\": "     \
    until "}, {\"name\": \"random_flip\"}, {\"name\": \"resize\"}]}"

/* The text has the reasons and the same JSON. A config with this part needs nothing more. */
static void followed(void **state)
{
    struct result r = run(NULL, "config check %s", in("net.json"));
    const char *begin = strstr(r.out, "copy into the config:\n");
    char more[512], name[] = "followed";

    (void)state;
    assert_contains(r.out, "net.json: nothing wrong\n");
    assert_contains(r.out, "note: 60 training pictures are few for a detector");
    assert_contains(r.out, "\n- init.checkpoint: weights that were learnt from ImageNet's");
    assert_contains(r.out, "\n- optim.freeze: ");
    assert_contains(r.out, "\n- run.batch_size: ");
    assert_contains(r.out, "\n- schedule.policy: ");
    assert_contains(r.out, "\n- until_steps of mosaic: the last tenth of the 50 steps");
    assert_non_null(begin);
    cJSON *json = cJSON_Parse(strchr(begin, '{'));
    cJSON *wanted = cJSON_Parse("{" INIT ", " OPTIM ", " RUN ", " SCHEDULE ", " INPUT("45") "}");
    assert_true(cJSON_Compare(json, wanted, true));
    cJSON_AddItemToObject(json, "base", cJSON_Parse("[\"net.json\"]"));
    char *text = cJSON_Print(json);
    put_text(in("followed.json"), text);
    expect(name, "", NULL, NULL);
    /* ImageNet's weights would have to be downloaded: it begins without. */
    snprintf(more, sizeof more, "init.checkpoint=null run.steps=2 eval.every_steps=2");
    check(run(NULL, "train %s run.folder=%s %s", in("followed.json"), in("followed"), more), 0);
    cJSON_free(text);
    cJSON_Delete(json);
    cJSON_Delete(wanted);
    check(r, 0);
}

/* What the config has is not proposed. */
static void lacking(void **state)
{
    static const char other[] = "init.checkpoint=model.safetensors init.type=detection";
    char more[512];

    (void)state;
    expect("net", other, "optim.freeze",
           "{" OPTIM ", " RUN ", " SCHEDULE ", " INPUT("45") "}");
    snprintf(more, sizeof more, "%s optim.freeze='[\"First\"]'", other);
    expect("net", more, "run.batch_size", "{" RUN ", " SCHEDULE ", " INPUT("45") "}");
    snprintf(more, sizeof more, "%s optim.trainable='[\"SecondStage\"]' run.batch_size=8 "
             "schedule.base_lr=0.01", other);
    expect("net", more, "schedule.policy", "{\"schedule\": {\"policy\": \"cosine\", \"end_lr\": 0, "
           "\"boundaries\": null, \"rates\": null}, " INPUT("45") "}");
    snprintf(more, sizeof more, "%s optim.freeze='[\"First\"]' run.batch_size=4 "
             "schedule.policy=cosine schedule.boundaries=null schedule.rates=null", other);
    expect("net", more, "input.augment", "{" INPUT("45") "}");
    strcat(more, " input.augment.0.until_steps=49");
    expect("net", more, NULL, NULL);
    strcat(more, " input.augment.0.until_steps=50");
    expect("net", more, "input.augment", "{" INPUT("45") "}");
    strcat(more, " input.augment=[]");
    expect("net", more, NULL, NULL);
    strcat(more, " run.batch_size=12");
    expect("net", more, "run.batch_size", "{" RUN ", \"schedule\": {\"base_lr\": "
           "0.013333333333333334}}");
}

/* Values that the proposal continues: own expressions, micro-batches, passes instead of steps. The
 * new batch makes 60 * 3 / 8 = 22 steps. */
static void continued(void **state)
{
    (void)state;
    expect("net", "optim.freeze='[\"Conv/biases\"]' run.micro_batches=4 run.steps=null "
           "run.epochs=3", "init.checkpoint",
           "{" INIT ", \"optim\": {\"freeze\": [\"Conv/biases\", \"" FREEZE "\"]}, "
           "\"run\": {\"batch_size\": 8, \"micro_batches\": 1}, " SCHEDULE ", " INPUT("20") "}");
}

/* Without weights that fit the net, nothing is frozen. */
static void without_weights(void **state)
{
    static const char *const more[] = {
        "model.depth_multiplier=0.5", "input.channels=1", "input.size=60",
        "model.second_stage_layers='[]'",
        "model.first_stage_layers='[{\"layer\":\"conv2d\",\"filters\":4,\"stride\":16}]'",
    };
    struct result r = run(NULL, "config check %s %s", in("net.json"), more[0]);

    (void)state;
    assert_contains(r.out, "\nNo published weights fit this net and these pictures. ");
    check(r, 0);
    for (size_t i = 0; i < PM_COUNT(more); i++)
        expect("net", more[i], "run.batch_size", "{" RUN ", " SCHEDULE ", " INPUT("45") "}");
}

/* Nothing is proposed for other tasks, many pictures, drawn ones, lists of layers, and a run that
 * has begun. */
static void not_proposed(void **state)
{
    char more[1024];

    (void)state;
    expect("net", "data.make=shapes", NULL, NULL);
    for (int pictures = 500; pictures <= 501; pictures++) {
        check(run(NULL, "dataset make shapes %s%d size=32 train=%d validation=2 test=2", in("data"),
                  pictures, pictures), 0);
        snprintf(more, sizeof more, "data.folder=%s%d", in("data"), pictures);
        expect("net", more, "init.checkpoint",
               pictures > 500 ? NULL
                              : "{" INIT ", " OPTIM ", " RUN ", " SCHEDULE ", " INPUT("45") "}");
    }
    put_folder_text("class.json", "{ \"model\": { \"name\": \"mobilenet_v1\" },\n"
                                  "  \"data\": { \"folder\": \"%s/data\" },\n"
                                  "  \"input\": { \"size\": 96 },\n"
                                  "  \"run\": { \"steps\": 5, \"batch_size\": 32 } }\n");
    expect("class", "", NULL, NULL);
    snprintf(more, sizeof more, "run.folder=%s", in("begun"));
    check(run(NULL, "train %s %s run.steps=1 eval.every_steps=1", in("net.json"), more), 0);
    expect("net", more, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(followed),  cmocka_unit_test(lacking),
        cmocka_unit_test(continued), cmocka_unit_test(without_weights),
        cmocka_unit_test(not_proposed),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
