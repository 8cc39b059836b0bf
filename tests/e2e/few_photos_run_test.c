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
#define RUN "\"run\": {\"batch_size\": 8, \"steps\": 100}"
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
    assert_contains(r.out, "\n- until_steps of mosaic: the last tenth of the 100 steps");
    assert_contains(r.out, "Numbers of steps are multiplied by 2. Rates are divided by 2.\n");
    assert_non_null(begin);
    cJSON *json = cJSON_Parse(strchr(begin, '{'));
    cJSON *wanted = cJSON_Parse("{" INIT ", " OPTIM ", " RUN ", " SCHEDULE ", " INPUT("90") "}");
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
           "{" OPTIM ", " RUN ", " SCHEDULE ", " INPUT("90") "}");
    snprintf(more, sizeof more, "%s optim.freeze='[\"First\"]'", other);
    expect("net", more, "run.batch_size", "{" RUN ", " SCHEDULE ", " INPUT("90") "}");
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
    expect("net", more, "run.batch_size", "{\"run\": {\"batch_size\": 8, \"steps\": 75}, "
           "\"schedule\": {\"base_lr\": 0.0133}}");
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

/* ---- what depends on the config -------------------------------------------------------------- */

#define FROZEN "\"optim\": {\"name\": \"momentum\", \"freeze\": [\"First\"]}, "
#define NO_AUGMENT "\"input\": {\"augment\": [{\"name\": \"resize\"}]}, "
#define BATCH "{\"run\": {\"batch_size\": 8, \"steps\": 4}, \"schedule\": {"
#define COSINE "\"policy\": \"cosine\", \"end_lr\": 0"
#define NO_PIECES ", \"boundaries\": null, \"rates\": null"

/* Writes FOLDER/NAME.json: FOLDER/BASE.json with these members. */
static void put_config(const char *name, const char *base, const char *members)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "{ \"base\": [\"%s.json\"], %s }", base, members);
    put_text(in("%s.json", name), s.text);
    pm_str_free(&s);
}

/* FOLDER/NAME.json, of two steps of 16 pictures from a detector's checkpoint, with these members,
 * has this proposal. With it, nothing more is proposed, and the run ends. */
static void expect_adapted(const char *name, const char *members, const char *proposal)
{
    char rest[1024], followed[64], *end;

    snprintf(rest, sizeof rest, "%s%s", "\"init\": {\"checkpoint\": \"model.safetensors\", "
             "\"type\": \"detection\"}, ", members);
    put_config(name, "two_steps", rest);
    expect(name, "", strstr(proposal, "\"run\"") ? "run.batch_size" : "schedule.policy", proposal);
    snprintf(followed, sizeof followed, "%s_followed", name);
    snprintf(rest, sizeof rest, "%s", proposal + 1);
    end = strrchr(rest, '}');
    *end = '\0';
    put_config(followed, name, rest);
    expect(followed, "", NULL, NULL);
    check(run(NULL, "train %s run.folder=%s init=null eval.every_steps=0", in("%s.json", followed),
              in("%s", followed)), 0);
}

/* Rates change only with plain gradient steps. Keys of another policy are taken back. */
static void adapted(void **state)
{
    static const struct { const char *members, *proposal; } rows[] = {
        { NO_AUGMENT "\"optim\": {\"name\": \"adam\", \"freeze\": [\"First\"]}",
          BATCH COSINE NO_PIECES "}}" },
        { NO_AUGMENT "\"optim\": {\"name\": \"rmsprop\", \"epsilon\": 1, \"freeze\": [\"First\"]}",
          BATCH COSINE NO_PIECES ", \"base_lr\": 0.01}}" },
        { FROZEN NO_AUGMENT "\"schedule\": {\"policy\": \"exponential\", \"decay_steps\": 20, "
          "\"min_lr\": 0.01" NO_PIECES "}",
          BATCH COSINE ", \"base_lr\": 0.01, \"min_lr\": 0, \"decay_steps\": 0}}" },
        { FROZEN NO_AUGMENT "\"schedule\": {\"policy\": \"polynomial\", \"end_lr\": 0, "
          "\"num_epochs_per_decay\": 0" NO_PIECES "}", BATCH "\"base_lr\": 0.01}}" },
        { FROZEN NO_AUGMENT "\"schedule\": {\"policy\": \"cosine\", \"end_lr\": 0.01" NO_PIECES "}",
          BATCH COSINE ", \"base_lr\": 0.01}}" },
        { FROZEN NO_AUGMENT "\"schedule\": {\"boundaries\": [1], \"rates\": [0.0002], "
          "\"warmup_steps\": 1, \"warmup_lr\": 0.002}",
          BATCH "\"boundaries\": [2], \"rates\": [0.0001], \"base_lr\": 0.01, "
          "\"warmup_steps\": 2, \"warmup_lr\": 0.001}}" },
        { FROZEN "\"input\": {\"augment\": [{\"name\": \"mosaic\", \"until_steps\": 1}, "
          "{\"name\": \"resize\"}]}",
          BATCH COSINE NO_PIECES ", \"base_lr\": 0.01}, \"input\": {\"augment\": "
          "[{\"name\": \"mosaic\", \"until_steps\": 2}, {\"name\": \"resize\"}]}}" },
    };

    (void)state;
    put_config("two_steps", "net", "\"run\": { \"steps\": 2 }");
    for (size_t i = 0; i < PM_COUNT(rows); i++) {
        char name[16];

        snprintf(name, sizeof name, "row%zu", i);
        expect_adapted(name, rows[i].members, rows[i].proposal);
    }
}

/* Keys of the command line that leave only a batch and a schedule to propose. */
#define ONLY                                                                                       \
    "init.checkpoint=model.safetensors init.type=detection optim.freeze='[\"First\"]' "            \
    "input.augment='[{\"name\":\"resize\"}]' "

/* A run without an end has no cosine. A warm-up of all steps leaves none for it. */
static void without_cosine(void **state)
{
    static const char proposal[] = "{\"run\": {\"batch_size\": 8%s}, \"schedule\": {\"base_lr\": "
                                   "0.01, \"boundaries\": [20], \"rates\": [0.0005]%s}}";
    char json[256];

    (void)state;
    snprintf(json, sizeof json, proposal, "", "");
    expect("net", ONLY "run.steps=0", "run.batch_size", json);
    snprintf(json, sizeof json, proposal, ", \"steps\": 100", ", \"warmup_steps\": 100");
    expect("net", ONLY "schedule.warmup_shift=true schedule.warmup_steps=50", "run.batch_size",
           json);
    expect("net", ONLY "run.steps=0 run.batch_size=8", NULL, NULL);
}

/* The batch of the entries of data.folders is their sum, so it stays. */
static void batches_of_folders(void **state)
{
    char more[1024];

    (void)state;
    snprintf(more, sizeof more, ONLY "data.folder=null data.folders='[{\"folder\":\"%s\","
             "\"batch\":16}]'", in("data"));
    expect("net", more, "schedule.policy", "{\"schedule\": {" COSINE NO_PIECES "}}");
}

/* Steps and rates were not chosen for the batch that "auto" finds. */
static void automatic(void **state)
{
    struct result r = run(NULL, "config check %s " ONLY "run.batch_size=auto", in("net.json"));

    (void)state;
    expect("net", ONLY "run.batch_size=auto", "run.batch_size",
           "{\"run\": {\"batch_size\": 8}, \"schedule\": {" COSINE NO_PIECES "}}");
    assert_contains(r.out, "\n- run.batch_size: ");
    assert_null(strstr(r.out, "multiplied"));
    assert_null(strstr(r.out, "divided"));
    check(r, 0);
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
        expect("net", more[i], "run.batch_size", "{" RUN ", " SCHEDULE ", " INPUT("90") "}");
}

/* A detector without a named net. */
static const char layers[] =
    "{ \"task\": \"detection\", \"model\": { \"layers\": [\n"
    "    { \"name\": \"map\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 16 },\n"
    "    { \"name\": \"boxes_1\", \"layer\": \"conv2d\", \"filters\": 4 },\n"
    "    { \"name\": \"classes_1\", \"layer\": \"conv2d\", \"filters\": 5, \"inputs\": \"map\" },\n"
    "    { \"name\": \"anchors\", \"layer\": \"grid_anchors\", \"scales\": [0.2],\n"
    "      \"aspect_ratios\": [1], \"inputs\": [\"images\", \"map\"] } ] },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\" },\n"
    "  \"input\": { \"size\": 96, \"preprocessing\": \"inception\" },\n"
    "  \"run\": { \"steps\": 5, \"batch_size\": 32 } }\n";

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
                              : "{" INIT ", " OPTIM ", " RUN ", " SCHEDULE ", " INPUT("90") "}");
    }
    put_folder_text("class.json", "{ \"model\": { \"name\": \"mobilenet_v1\" },\n"
                                  "  \"data\": { \"folder\": \"%s/data\" },\n"
                                  "  \"input\": { \"size\": 96 },\n"
                                  "  \"run\": { \"steps\": 5, \"batch_size\": 32 } }\n");
    expect("class", "", NULL, NULL);
    put_folder_text("layers.json", layers);
    expect("layers", "", NULL, NULL);
    snprintf(more, sizeof more, "run.folder=%s", in("begun"));
    check(run(NULL, "train %s %s run.steps=1 eval.every_steps=1", in("net.json"), more), 0);
    expect("net", more, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(followed),  cmocka_unit_test(lacking),
        cmocka_unit_test(continued), cmocka_unit_test(adapted),
        cmocka_unit_test(without_cosine), cmocka_unit_test(batches_of_folders),
        cmocka_unit_test(automatic), cmocka_unit_test(without_weights),
        cmocka_unit_test(not_proposed),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
