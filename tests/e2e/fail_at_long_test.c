/* Every place that can fail is made to fail once. PM_FAIL_AT=list names the places that a
 * command reaches; each one that no earlier command has tried is made to fail. The command must
 * end with an exit code of 1 to 4 and one line with the reason, or print a warning and continue.
 * It leaves no temporary file. The same command without the fault then succeeds; training gives
 * the same bits as an undisturbed run. Under ./dev sanitize this also finds leaks on every error
 * path. Arguments: names of commands (default all). */
#include "e2e/program.h"

enum { MOST_PLACES = 4096 };

static char *tried[MOST_PLACES]; /* "file.c:line" */
static int tried_count;

struct command {
    const char *what;
    const char *prepare; /* shell command before each run; %s: FOLDER */
    const char *arguments;
    const char *result; /* file that must have the same bytes as without a fault; NULL: none */
};

#define TRAIN "train net.json run.folder=r eval.every_steps=2 run.keep_best=accuracy " \
              "run.save_every_steps=1 run.keep=2 "
#define SEGMENT "train seg.json run.folder=r eval.every_steps=2 run.keep_best=miou " \
                "run.save_every_steps=1 run.keep=2 "
#define ONNX "model.layers=null model.onnx=seg.onnx "
#define LAST "r/checkpoints/step-000003.safetensors"
#define FRESH "rm -rf r out out.html out.json data/.pumice*"
#define UNKNOWN FRESH "; rm -f cache/pumice/verified*"
#define CACHED "; rm -rf cache/pumice/checkpoints"
#define TWO FRESH "; cp -a two r"

static const struct command commands[] = {
    { "train", FRESH, TRAIN, LAST },
    { "resume", TWO, TRAIN, LAST },
    { "warm start", FRESH, TRAIN "init.checkpoint=two init.exclude_scopes='[\"logits\"]'", LAST },
    { "two clones", FRESH, TRAIN "devices='[\"cpu\",\"cpu\"]' run.balance=auto", NULL },
    { "damaged data", FRESH, TRAIN "data.folder=damaged data.on_corrupt=skip", LAST },
    { "eval", FRESH, "eval net.json run.folder=two", NULL },
    { "eval best", FRESH, "eval net.json run.folder=two eval.checkpoint=best --json", NULL },
    { "predict", FRESH, "predict net.json run.folder=two pictures --out out", NULL },
    { "export", FRESH "; mkdir r", "export two r/model.onnx", "r/model.onnx" },
    { "export other", FRESH "; mkdir r",
      "export net.json r/model.onnx run.folder=two "
      "export.fold_batch_norm=true export.weights=beside export.output=probabilities --json",
      "r/model.onnx" },
    { "inspect", FRESH, "checkpoint inspect two", NULL },
    { "diff", FRESH, "checkpoint diff two two/checkpoints/step-000002.safetensors", NULL },
    { "to TensorFlow", FRESH "; mkdir r", "checkpoint convert two r/model.ckpt force=true",
      "r/model.ckpt.index" },
    { "from TensorFlow", FRESH "; rm -f out.safetensors",
      "checkpoint convert tf out.safetensors force=true --json", NULL },
    { "warm start from TensorFlow", FRESH, TRAIN "init.checkpoint=tf", LAST },
    { "warm start from ONNX", FRESH, TRAIN "init.checkpoint=two.onnx", LAST },
    { "from PyTorch", FRESH "; rm -f out.safetensors",
      "checkpoint convert module.pt out.safetensors force=true --json", NULL },
    { "segmentation", FRESH, SEGMENT "run.summary_every_steps=2", LAST },
    { "segmentation from ONNX", FRESH, SEGMENT ONNX, LAST },
    { "segmentation's eval", FRESH,
      "eval seg.json run.folder=seg eval.scales='[0.5,1]' eval.flip=true --json", NULL },
    { "segmentation's predict", FRESH,
      "predict seg.json run.folder=seg pictures --out out eval.save_raw=true", NULL },
    { "segmentation's export", FRESH "; mkdir r",
      "export seg r/model.onnx input.min_resize=9 export.flip=true export.preprocessing=fold",
      "r/model.onnx" },
    { "segmentation's export from ONNX", FRESH "; mkdir r",
      "export seg.json r/model.onnx run.folder=other " ONNX, "r/model.onnx" },
    { "DeepLab", FRESH,
      "config show seg.json --layers model.layers=null "
      "model.name=deeplab_mobilenet_v3_small_seg model.aspp_rates=2 model.decoder_strides=4 "
      "model.image_pyramid='[0.5,1]'",
      NULL },
    { "convert maps", FRESH, "dataset convert pairs scenes out", NULL },
    { "report", TWO, "report r", NULL },
    { "compare", TWO, "report r two --out out.html", NULL },
    { "bench", TWO, "bench net.json run.folder=r --steps 2 --csv out", NULL },
    { "profile", TWO, "profile net.json run.folder=r --steps 2 --csv out --trace out.json", NULL },
    { "trace", FRESH, TRAIN "run.trace_steps='[2,3]'", LAST },
    { "look at data", FRESH, "dataset inspect data --check --pictures out --boxes out", NULL },
    { "look at a shard", FRESH, "dataset inspect data/shapes_test_00000-of-00001.tfrecord", NULL },
    { "convert", FRESH, "dataset convert folder classes out", NULL },
    { "download", FRESH "; rm -rf out.download",
      "dataset download flowers out --from file://$PWD/mirror --sums mirror/sums validation=2",
      NULL },
    { "published archive", FRESH CACHED,
      "checkpoint download slim_mobilenet_v1_025 --from file://$PWD/mirror", NULL },
    { "published file", FRESH CACHED,
      "checkpoint download torchvision_resnet18 --from file://$PWD/mirror --sums mirror/sums",
      NULL },
    { "published again", FRESH,
      "checkpoint download torchvision_resnet18 --from file://$PWD/mirror --sums mirror/sums",
      NULL },
    { "draw", FRESH, "dataset make shapes out size=16 train=6 validation=2 test=2", NULL },
    { "check", FRESH, "config check net.json", NULL },
    { "show", FRESH, "config show net.json --layers", NULL },
    { "plan", FRESH, "config show net.json --plan -v", NULL },
    { "schema", FRESH, "config schema", NULL },
    { "devices", FRESH, "devices --json", NULL },
    { "lavapipe", FRESH, TRAIN "devices='[\"llvmpipe\"]'", LAST },
    { "lavapipe resume", TWO, TRAIN "devices='[\"llvmpipe\"]'", LAST },
    { "lavapipe and the CPU", FRESH, TRAIN "devices='[\"llvmpipe\",\"cpu\"]'", NULL },
    { "lavapipe unknown", UNKNOWN, TRAIN "devices='[\"llvmpipe\"]'", LAST },
    { "verify", UNKNOWN, "verify llvmpipe net.json", NULL },
    { "lavapipe eval", FRESH, "eval net.json run.folder=two devices='[\"llvmpipe\"]'", NULL },
};

static void shell(const char *line)
{
    if (system(line) != 0)
        fail_msg("%s", line);
}

static bool is_new(const char *place)
{
    for (int i = 0; i < tried_count; i++)
        if (strcmp(tried[i], place) == 0)
            return false;
    return true;
}

/* Runs the command with a listing of its places; adds the new ones to `tried`, from *first on. */
static void list_places(const struct command *c, int *first)
{
    struct result r;
    char *save = NULL;

    shell(c->prepare);
    r = run(&(struct how){ .environment = "PM_FAIL_AT=list" }, "%s", c->arguments);
    if (r.code != 0)
        fail_msg("%s: exit code %d: %s", c->what, r.code, r.err);
    *first = tried_count;
    for (char *line = strtok_r(r.err, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *place = line + strlen("PM_FAIL_AT=");
        if (strncmp(line, "PM_FAIL_AT=", strlen("PM_FAIL_AT=")) != 0 || !is_new(place))
            continue;
        assert_true(tried_count < MOST_PLACES);
        tried[tried_count++] = pm_strdup(place);
    }
    drop(&r);
    if (c->result)
        shell("rm -rf whole && cp -a r whole");
}

/* The reason why the end of a run is wrong, or NULL. */
static const char *complaint(const struct result *r, bool json)
{
    const char *last;
    const int errors = error_lines(r, &last);

    if (r->code < 0 || r->code > 4)
        return "its exit code";
    if (r->code > 0 && errors != 1)
        return "not one line that says why";
    if (r->code > 0 && strlen(last) < strlen("error: ") + 8)
        return "an empty line";
    if (r->code == 0 && !strstr(r->err, "injected fault") && !strstr(r->err, "not reached"))
        return "it went on without a word";
    if (json && (r->out[0] != '{' || !strchr(r->out, '}')))
        return "no JSON object";
    return NULL;
}

static int break_place(const struct command *c, const char *place)
{
    char environment[256];
    struct result r;
    int bad = 0;

    shell(c->prepare);
    /* Some failures only cost time, such as an index that is not kept. They are logged at level
     * debug. */
    snprintf(environment, sizeof environment, "PM_LOG=debug PM_FAIL_AT=%s", place);
    r = run(&(struct how){ .environment = environment }, "%s", c->arguments);
    const char *wrong = complaint(&r, strstr(c->arguments, "--json"));
    if (wrong) {
        print_message("%s, %s: %s: code %d: %s\n", c->what, place, wrong, r.code, r.err);
        bad++;
    }
    const bool reached = !strstr(r.err, "not reached");
    drop(&r);
    bad += temporaries(".");
    if (!c->result)
        shell(c->prepare);
    r = run(NULL, "%s", c->arguments);
    if (r.code != 0) {
        print_message("%s after %s: code %d: %s\n", c->what, place, r.code, r.err);
        bad++;
    } else if (c->result && reached) {
        char whole[256];
        snprintf(whole, sizeof whole, "whole%s", c->result + 1);
        same_bytes(whole, c->result);
    }
    drop(&r);
    return bad;
}

static char **chosen; /* names of the commands to test; NULL or empty: all */

static bool is_chosen(const char *what)
{
    for (char **name = chosen; *name; name++)
        if (strcmp(*name, what) == 0)
            return true;
    return !*chosen;
}

static void walk(void **state)
{
    const char *drivers = getenv("VK_DRIVER_FILES");
    const bool lavapipe = drivers && strstr(drivers, "lvp_icd");
    int bad = 0;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(commands); i++) {
        const struct command *c = &commands[i];
        int first;

        if (!is_chosen(c->what))
            continue;
        if (strstr(c->arguments, "llvmpipe") && !lavapipe) {
            print_message("%s: lavapipe is not installed\n", c->what);
            continue;
        }
        list_places(c, &first);
        print_message("%s: %d new places\n", c->what, tried_count - first);
        for (int k = first; k < tried_count; k++)
            bad += break_place(c, tried[k]);
    }
    assert_in_range(tried_count, *chosen ? 0 : 250, MOST_PLACES);
    assert_int_equal(bad, 0);
}

static int set_up(void **state)
{
    (void)state;
    if (make_world(true) < 0 || chdir(folder) != 0)
        return -1;
    /* A run of two steps, pictures by class, and data with a damaged record. */
    check(run(NULL, "train net.json run.folder=two run.steps=2 run.save_every_steps=1 "
                    "eval.every_steps=1 run.keep_best=accuracy"), 0);
    check(run(NULL, "dataset inspect data --records 4 --pictures pictures"), 0);
    shell("mkdir tf");
    check(run(NULL, "checkpoint convert two tf/two.ckpt"), 0);
    shell("mkdir -p classes/a classes/b damaged; cp data/* damaged;"
          "n=0; for f in $(find pictures -name '*.png'); do n=$((n + 1));"
          "  cp $f classes/a/$n.png; cp $f classes/b/$n.png; done;"
          "printf x | dd of=damaged/shapes_train_00000-of-00001.tfrecord bs=1 seek=900 "
          "conv=notrunc 2>/dev/null");
    shell("mkdir mirror && cp -a classes flower_photos && tar czf mirror/flower_photos.tgz "
          "flower_photos && cd mirror && echo x > a.ckpt && echo y > resnet18-f37072fd.pth && "
          "tar czf mobilenet_v1_0.25_224.tgz a.ckpt && sha256sum *.tgz *.pth > sums");
    /* The same for segmentation, also as ONNX files. */
    put_text("seg.json",
             "{ \"base\": [\"net.json\"], \"task\": \"segmentation\", \"model\": { \"layers\": [\n"
             "  { \"name\": \"conv1\", \"layer\": \"conv2d\", \"filters\": 4, \"stride\": 2 },\n"
             "  { \"name\": \"norm1\", \"layer\": \"batch_norm\", \"activation\": \"relu\" },\n"
             "  { \"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": 5, "
             "\"kernel\": 1 } ] },\n"
             "  \"input\": { \"preprocessing\": \"deeplab\", \"size\": 17 } }\n");
    check(run(NULL, "train seg.json run.folder=seg run.steps=2"), 0);
    check(run(NULL, "export two two.onnx"), 0);
    check(run(NULL, "export seg seg.onnx"), 0);
    check(run(NULL, "train seg.json run.folder=other run.steps=2 " ONNX), 0);
    check(run(NULL, "dataset inspect data --records 4 --pictures scenes/images "
                    "--maps scenes/labels"), 0);
    shell("cp \"$PUMICE_SOURCE/tests/golden/pytorch/module.pt\" .");
    return 0;
}

static int tear_down(void **state)
{
    for (int i = 0; i < tried_count; i++)
        pm_free(tried[i]);
    return drop_world(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(walk) };

    (void)argc;
    chosen = argv + 1;
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
