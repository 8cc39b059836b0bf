/* checkpoint download and init.checkpoint "imagenet", with a local server. Its files have the
 * published forms and drawn numbers: an archive with a checkpoint of TensorFlow's V2 format, as
 * TF-Slim's, and a file of torch.save, as torchvision's. */
#include "e2e/program.h"

#include <pumice/checkpoint.h>

#include "data/archives.h"
#include "data/http_server.h"
#include "e2e/torch_resnet.h"

#define SLIM_FILE "mobilenet_v1_0.25_224.tgz"
#define TORCH_FILE "resnet18-f37072fd.pth"
#define CACHE "cache/pumice/checkpoints"
#define OFFLINE "no_proxy= https_proxy=http://no.such.name.invalid:1"

enum { SLIM, TORCH, WENT, PAGES };
static struct page pages[PAGES + 1] = {
    [SLIM] = { "/m/" SLIM_FILE },
    [TORCH] = { "/m/" TORCH_FILE },
    [WENT] = { "/went/" SLIM_FILE, NULL, 0, MOVED, 0, "/m/" SLIM_FILE },
};
static struct pm_str contents[TORCH + 1];
static struct server server;

static bool is_there(const char *path)
{
    return pm_file_exists(in("%s", path)) || pm_is_folder(in("%s", path));
}

static void forget(void)
{
    assert_int_equal(pm_remove_tree(in("cache")), 0);
}

static void digest_of(const struct pm_str *bytes, char hex[65])
{
    struct pm_sha256 s;

    pm_sha256_start(&s);
    pm_sha256_add(&s, bytes->text, bytes->length);
    pm_sha256_end(&s, hex);
}

static struct result download(const struct how *how, const char *name, const char *more)
{
    server_turn(&server);
    struct result r = run(how, "checkpoint download %s --from http://127.0.0.1:%d/m %s", name,
                          server.port, more);
    server_turn(&server);
    return r;
}

/* Serves other bytes under the archive's name. Frees them. */
static struct result download_other(struct pm_str *bytes)
{
    forget();
    pages[SLIM].data = bytes->text, pages[SLIM].size = bytes->length;
    struct result r = download(NULL, "slim_mobilenet_v1_025", "");
    pages[SLIM].data = contents[SLIM].text, pages[SLIM].size = contents[SLIM].length;
    pm_str_free(bytes);
    return r;
}

static struct result train(const struct how *how, const char *name, const char *more)
{
    return run(how, "train %s init.checkpoint=imagenet run.folder=%s %s", in("mobile.json"),
               in("%s", name), more);
}

/* ---- the command ------------------------------------------------------------------------- */

static void an_archive(void **state)
{
    char hex[65], want[600];
    const int before = pages[SLIM].requests;
    (void)state;

    digest_of(&contents[SLIM], hex);
    struct result r = download(NULL, "slim_mobilenet_v1_025", "");
    snprintf(want, sizeof want, "%s/slim_mobilenet_v1_025/mobilenet_v1_0.25_224.ckpt\n",
             in(CACHE));
    assert_string_equal(r.out, want);
    assert_contains(r.err, "the publisher states none");
    assert_contains(r.err, "for model.name=mobilenet_v1_025 model.conventions=tensorflow, trained "
                           "on imagenet with input.preprocessing=inception");
    check(r, 0, hex);
    assert_false(is_there(CACHE "/" SLIM_FILE));
    assert_int_equal(temporaries(in("cache")), 0);
    char *source = get_text(in(CACHE "/slim_mobilenet_v1_025/source.json"));
    assert_contains(source, hex);
    assert_contains(source, "\"mobilenet_v1_0.25_224.ckpt\"");
    pm_free(source);
    /* The second command finds it. */
    check(download(NULL, "slim_mobilenet_v1_025", "--json"), 0);
    assert_int_equal(pages[SLIM].requests, before + 1);
    check(run(NULL, "checkpoint inspect %s",
              in(CACHE "/slim_mobilenet_v1_025/mobilenet_v1_0.25_224.ckpt")), 0);
}

static void a_file_with_published_digits(void **state)
{
    char hex[65];
    (void)state;

    digest_of(&contents[TORCH], hex);
    struct result r = download(NULL, "torchvision_resnet18", "");
    assert_contains(r.err, hex);
    check(r, 3, "resnet18-f37072fd.pth cannot be downloaded: ",
          ", which does not begin with f37072fd. Try again later, give another server with --from, "
          "or put the file there yourself: ",
          in(CACHE "/" TORCH_FILE));
    assert_false(is_there(CACHE "/torchvision_resnet18"));
    assert_false(is_there(CACHE "/" TORCH_FILE));
    assert_false(is_there(CACHE "/" TORCH_FILE ".part"));
    /* A file that was copied there by hand is checked, too. */
    assert_int_equal(pm_file_write(in(CACHE "/" TORCH_FILE), "other", 5), 0);
    check(run(NULL, "checkpoint download torchvision_resnet18"), 3, in(CACHE "/" TORCH_FILE),
          "which does not begin with f37072fd: remove it");
    assert_int_equal(unlink(in(CACHE "/" TORCH_FILE)), 0);
    /* The other server's own list replaces the published digits. */
    struct pm_str sums = { 0 };
    pm_str_add(&sums, "%s  %s\n", hex, TORCH_FILE);
    put_text(in("sums"), sums.text);
    pm_str_free(&sums);
    char more[600];
    snprintf(more, sizeof more, "--sums %s", in("sums"));
    check(download(NULL, "torchvision_resnet18", more), 0, "as in the list");
    assert_false(is_there(CACHE "/" TORCH_FILE));
    /* The file may be a symbolic link; a relative one is found from the new folder, too. */
    forget();
    assert_int_equal(pm_make_folders(in(CACHE)), 0);
    assert_int_equal(pm_file_write(in(TORCH_FILE), contents[TORCH].text, contents[TORCH].length),
                     0);
    assert_int_equal(symlink("../../../" TORCH_FILE, in(CACHE "/" TORCH_FILE)), 0);
    check(download(NULL, "torchvision_resnet18", more), 0, "already downloaded", "as in the list");
    check(run(NULL, "checkpoint inspect %s", in(CACHE "/torchvision_resnet18/" TORCH_FILE)), 0);
    check(run(NULL, "checkpoint download torchvision_resnet18"), 0);
}

static void resumed_and_redirected(void **state)
{
    char name[512], command[600];
    struct stat st = { 0 };
    (void)state;

    forget();
    pages[SLIM].amount = contents[SLIM].length / 3;
    pages[SLIM].manner = CUT;
    check(download(NULL, "slim_mobilenet_v1_025", ""), 0);
    forget();
    pages[SLIM].manner = SLOW; /* sends 1,000 bytes */
    snprintf(name, sizeof name, "%s", in("interrupted"));
    snprintf(command, sizeof command, "checkpoint download slim_mobilenet_v1_025 --from "
             "http://127.0.0.1:%d/m", server.port);
    const pid_t pid = start(NULL, name, command);
    while (stat(in(CACHE "/" SLIM_FILE ".part"), &st) != 0 || st.st_size < 1000)
        usleep(10000);
    kill(pid, SIGINT);
    struct result r = finish(pid, name);
    assert_int_equal(r.code, 130);
    assert_contains(r.err, SLIM_FILE ": stopped; 1000 bytes are in ");
    drop(&r);
    pages[SLIM].manner = GOOD;
    check(download(NULL, "slim_mobilenet_v1_025", ""), 0, "resuming after 1000 bytes");
    assert_string_equal(pages[SLIM].range, "1000-");
    forget();
    check(run(NULL, "checkpoint download slim_mobilenet_v1_025 --from http://127.0.0.1:%d/went/",
              server.port), 0);
}

/* A server without the file, a server that truncates it, and archives with other contents. */
static void wrong_archives(void **state)
{
    struct pm_str tar = { 0 };
    (void)state;

    forget();
    check(run(NULL, "checkpoint download slim_mobilenet_v1_025 --from http://127.0.0.1:%d/none",
              server.port), 1, "the server answers 404");
    pages[SLIM].amount = contents[SLIM].length - 100;
    pages[SLIM].manner = SAYS_SHORTER;
    check(download(NULL, "slim_mobilenet_v1_025", ""), 3, SLIM_FILE,
          "The file was removed; repeat the command to download it again");
    pages[SLIM].manner = GOOD;
    assert_false(is_there(CACHE "/" SLIM_FILE));
    assert_false(is_there(CACHE "/slim_mobilenet_v1_025"));
    assert_int_equal(temporaries(in("cache")), 0);

    tar_file(&tar, "../../evil", "x", 1);
    tar_end(&tar);
    struct pm_str packed = gzipped(&tar);
    check(download_other(&packed), 3, "entry '../../evil' would be outside");
    assert_false(is_there("evil"));
    tar_add(&tar, "a.ckpt", '2', "/etc/passwd", NULL, 0, NULL);
    tar_end(&tar);
    packed = gzipped(&tar);
    check(download_other(&packed), 3, "entry 'a.ckpt' is a link or a device");
    tar_file(&tar, "readme", "x", 1);
    tar_end(&tar);
    packed = gzipped(&tar);
    check(download_other(&packed), 3, "no checkpoint in the archive");
    tar_file(&tar, "a/x.ckpt.index", "x", 1);
    tar_file(&tar, "b/y.ckpt", "y", 1);
    tar_end(&tar);
    packed = gzipped(&tar);
    check(download_other(&packed), 3, "more than one checkpoint in the archive", "a/x.ckpt, ./b/y");
    /* macOS adds a file ._NAME for each file. */
    tar_file(&tar, "./a/._x.ckpt.index", "x", 1);
    tar_file(&tar, "./a/x.ckpt.index", "x", 1);
    tar_end(&tar);
    packed = gzipped(&tar);
    check(download_other(&packed), 0);
    assert_int_equal(temporaries(in("cache")), 0);
}

/* A write that fails as on a full disk, while downloading and while unpacking. The next command
 * succeeds. */
static void no_space(void **state)
{
    (void)state;
    forget();
    check(download(&(struct how){ .largest_file = 100000 }, "slim_mobilenet_v1_025", ""), 1,
          SLIM_FILE ".part: cannot be written: ");
    check(download(NULL, "slim_mobilenet_v1_025", ""), 0, "resuming after ");
    forget();
    check(download(&(struct how){ .largest_file = contents[SLIM].length + 1000 },
                   "slim_mobilenet_v1_025", ""), 1, "writing failed: ");
    assert_false(is_there(CACHE "/slim_mobilenet_v1_025"));
    assert_int_equal(temporaries(in("cache")), 0);
    check(run(NULL, "checkpoint download slim_mobilenet_v1_025"), 0, "already downloaded");
}

static void words(void **state)
{
    (void)state;
    struct result r = run(NULL, "checkpoint download list");
    assert_int_equal(r.code, 0);
    assert_contains(r.out, "torchvision_resnet50 ");
    assert_contains(r.out, "https://download.pytorch.org/models/resnet50-0676ba61.pth\n");
    assert_contains(r.out, "needs input.mean=0.5 input.std=0.5\n");
    drop(&r);
    r = run(NULL, "checkpoint download list --json");
    cJSON *o = cJSON_Parse(r.out);
    assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(o, "checkpoints")) > 40);
    cJSON_Delete(o);
    drop(&r);
    check(run(NULL, "checkpoint download"), 2, "checkpoint download needs one NAME",
          "download list' prints all names");
    check(run(NULL, "checkpoint download resnet50"), 2, "no published checkpoint 'resnet50'",
          "download list' prints all");
    check(run(NULL, "checkpoint download list --to x"), 2, "--to");
    check(run(&(struct how){ .environment = "XDG_CACHE_HOME=here HOME=" },
              "checkpoint download torchvision_resnet18"), 1, "set XDG_CACHE_HOME or HOME");
    check(run(&(struct how){ .environment = OFFLINE }, "checkpoint download slim_vgg_16"), 1,
          "vgg_16_2016_08_28.tar.gz cannot be downloaded: ",
          in(CACHE "/vgg_16_2016_08_28.tar.gz"));
}

/* ---- init.checkpoint ---------------------------------------------------------------------- */

/* Reads a variable of a run's newest checkpoint, or of the file that was served. */
static void read_values(const char *run_folder, const char *file, const char *name,
                        struct pm_shape shape, float *out)
{
    struct pm_checkpoint *c = NULL;

    if ((run_folder ? pm_checkpoint_open_newest(in("%s", run_folder), &c)
                    : pm_checkpoint_open(NULL, file, "test", &c)) < 0 ||
        pm_checkpoint_read(c, name, shape, out) < 0)
        fail_msg("%s", pm_error_text());
    pm_checkpoint_close(&c);
}

/* Without a network, the message says what to do. The file that is put there is used. */
static void offline(void **state)
{
    static const struct pm_shape conv = PM_SHAPE4(3, 3, 3, 8);
    const struct how how = { .environment = OFFLINE };
    float source[216], loaded[216];
    char hex[65];
    (void)state;

    forget();
    check(train(&how, "first", "run.steps=1"), 1, SLIM_FILE " cannot be downloaded: ",
          "run 'pumice checkpoint download slim_mobilenet_v1_025 --from ADDRESS' with another "
          "server, or put the file there yourself: ", in(CACHE "/" SLIM_FILE));
    assert_int_equal(pm_file_write(in(CACHE "/" SLIM_FILE), contents[SLIM].text,
                                   contents[SLIM].length), 0);
    struct result r = train(&how, "first", "run.steps=1 schedule.base_lr=0");
    assert_contains(r.err, "the last layer keeps its initial values: it has 1001 classes in "
                           "slim_mobilenet_v1_025 and 4 in the net");
    assert_contains(r.err, "MobilenetV1/Logits/Conv2d_1c_1x1/biases: excluded");
    check(r, 0, "135 of 137 variables from ", "2 excluded, 0 missing");
    read_values(NULL, in("tf/mobilenet_v1_0.25_224.ckpt"), "MobilenetV1/Conv2d_0/weights", conv,
                source);
    read_values("first", NULL, "MobilenetV1/Conv2d_0/weights", conv, loaded);
    assert_memory_equal(source, loaded, sizeof source);
    digest_of(&contents[SLIM], hex);
    char *text = get_text(in("first/init.json"));
    assert_contains(text, hex);
    assert_contains(text, "\"slim_mobilenet_v1_025\"");
    pm_free(text);
    /* A run that resumes needs neither the cache nor a network. */
    forget();
    check(train(&how, "first", "run.steps=2 schedule.base_lr=0"), 0, "init.checkpoint is ignored");
}

/* Commands that only try a training start from the weights, too, but do not write to its folder. A
 * dry run downloads nothing. */
static void tried(void **state)
{
    const struct how how = { .environment = OFFLINE };
    (void)state;

    forget();
    check(train(&how, "tried", "run.steps=1 --dry-run"), 0,
          "slim_mobilenet_v1_025 is not downloaded yet, so it was not tried");
    check(download(NULL, "slim_mobilenet_v1_025", ""), 0);
    check(train(&how, "tried", "run.steps=1 --dry-run"), 0, "135 of 137 variables from ");
    check(run(&how, "lr-find %s --steps 10 init.checkpoint=imagenet run.folder=%s",
              in("mobile.json"), in("tried")), 0, "135 of 137 variables from ");
    assert_false(pm_file_exists(in("tried")));
}

/* The last layer is taken when the classes are equal. */
static void same_classes(void **state)
{
    (void)state;
    check(download(NULL, "slim_mobilenet_v1_025", ""), 0);
    check(train(NULL, "same", "run.steps=1 model.num_classes=1001"), 0,
          "137 of 137 variables from ", "0 excluded");
    check(train(NULL, "vgg", "run.steps=1 input.preprocessing=vgg"), 0,
          "slim_mobilenet_v1_025 was trained with input.preprocessing \"inception\"; this config "
          "has \"vgg\"");
    /* Another width is another net, not another last layer. */
    check(train(NULL, "wide", "run.steps=1 model.depth_multiplier=0.5"), 3,
          "has no value for this net: of the net's 137 variables, 0 are missing, 136 have other");
}

static void torchvision(void **state)
{
    (void)state;
    if (!is_there(CACHE "/torchvision_resnet18")) {
        char more[600];
        snprintf(more, sizeof more, "--sums %s", in("sums"));
        check(download(NULL, "torchvision_resnet18", more), 0);
    }
    check(train(NULL, "torch", "run.steps=1 model.name=resnet_v1_18 optim.name=sgd"), 0,
          "imagenet is torchvision_resnet18, 1000 classes of imagenet, from http://127.0.0.1:",
          "100 of 102 variables from ", "2 excluded, 0 missing");
    /* A file that changed in the cache is found. */
    assert_int_equal(pm_file_write(in(CACHE "/torchvision_resnet18/" TORCH_FILE), "other", 5), 0);
    check(run(NULL, "checkpoint download torchvision_resnet18"), 3,
          "the SHA-256 of the checkpoint's file has changed; remove the folder");
    assert_int_equal(unlink(in(CACHE "/torchvision_resnet18/source.json")), 0);
    check(run(NULL, "checkpoint download torchvision_resnet18"), 3,
          "torchvision_resnet18: it has no source.json; remove the folder");
}

static void nets_without_a_row(void **state)
{
    (void)state;
    check(train(NULL, "none", "model.name=lenet"), 2,
          "command line: init.checkpoint: model.name "
          "lenet has no published ImageNet checkpoint; nets that have one: resnet_v1_18, ");
    check(train(NULL, "none", "model.name=vgg_a model.conventions=tensorflow"), 2,
          "set model.conventions=torch");
    check(train(NULL, "none", "init.restore=all"), 2, "command line: init.restore: ",
          "leave init.restore out");
    check(run(NULL, "train %s init.checkpoint=imagenet run.folder=%s", in("net.json"), in("none")),
          2, "a net without model.name has no published ImageNet checkpoint");
}

/* config check proposes the weights for few pictures, and finds a net without any. */
static void config_check(void **state)
{
    static const char proposal[] = "40 pictures are few: start from ImageNet's weights with "
                                   "init.checkpoint=imagenet (slim_mobilenet_v1_025, which is "
                                   "downloaded)";
    static const char *const silent[] = { "input.size=32", "model.depth_multiplier=0.5",
                                          "init.checkpoint=imagenet",
                                          "model.name=resnet_v1_200", "data.make=shapes" };
    (void)state;

    struct result r = run(NULL, "config check %s input.size=64", in("mobile.json"));
    assert_int_equal(r.code, 0);
    assert_contains(r.out, proposal);
    assert_contains(r.out, "mobile.json: nothing wrong");
    drop(&r);
    for (size_t i = 0; i < PM_COUNT(silent); i++) {
        r = run(NULL, "config check %s input.size=64 %s", in("mobile.json"), silent[i]);
        assert_int_equal(r.code, 0);
        if (strstr(r.out, "are few"))
            fail_msg("%s: %s", silent[i], r.out);
        drop(&r);
    }
    check(run(NULL, "config check %s model.name=lenet init.checkpoint=imagenet", in("mobile.json")),
          2, "model.name lenet has no published ImageNet checkpoint");
    check(run(NULL, "config check %s model.name=vgg_a init.checkpoint=imagenet input.size=224",
              in("mobile.json")), 2, "set model.conventions=torch");
}

/* ---- the files --------------------------------------------------------------------------- */

static void add_file(struct pm_str *tar, const char *name)
{
    char *data = NULL;
    size_t size;
    char inner[100];

    if (pm_file_read(in("tf/%s", name), &data, &size) < 0)
        fail_msg("%s", pm_error_text());
    snprintf(inner, sizeof inner, "./%.90s", name);
    tar_file(tar, inner, data, size);
    pm_free(data);
}

/* The archive of TF-Slim: the checkpoint, and files that are no checkpoint. */
static struct pm_str slim(void)
{
    struct pm_str tar = { 0 };

    check(run(NULL, "train %s run.folder=%s run.steps=1 model.num_classes=1001 run.seed=7",
              in("mobile.json"), in("source")), 0);
    assert_int_equal(pm_make_folder(in("tf")), 0);
    check(run(NULL, "checkpoint convert %s %s keep=variables", in("source"),
              in("tf/mobilenet_v1_0.25_224.ckpt")), 0);
    tar_add(&tar, "./", '5', NULL, NULL, 0, NULL);
    add_file(&tar, "mobilenet_v1_0.25_224.ckpt.index");
    add_file(&tar, "mobilenet_v1_0.25_224.ckpt.data-00000-of-00001");
    tar_file(&tar, "./mobilenet_v1_0.25_224.ckpt.meta", "graph", 5);
    tar_file(&tar, "./mobilenet_v1_0.25_224.tflite", "TFL3", 4);
    tar_end(&tar);
    return gzipped(&tar);
}

static int set_up(void **state)
{
    struct pm_str text = { 0 };

    (void)state;
    if (make_world(true) < 0)
        return -1;
    pm_str_add(&text, "{ \"model\": { \"name\": \"mobilenet_v1_025\" },\n"
               "  \"data\": { \"folder\": \"%s/data\" }, \"input\": { \"size\": 32 },\n"
               "  \"devices\": [\"cpu\"], \"run\": { \"steps\": 1, \"batch_size\": 4 } }\n",
               folder);
    put_text(in("mobile.json"), text.text);
    pm_str_free(&text);
    contents[SLIM] = slim();
    contents[TORCH] = torch_resnet18(5);
    for (int i = 0; i <= TORCH; i++)
        pages[i].data = contents[i].text, pages[i].size = contents[i].length;
    setenv("no_proxy", "*", 1);
    server_start(&server, pages);
    return 0;
}

static int tear_down(void **state)
{
    server_stop(&server);
    for (int i = 0; i <= TORCH; i++)
        pm_str_free(&contents[i]);
    return drop_world(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_archive),
        cmocka_unit_test(a_file_with_published_digits),
        cmocka_unit_test(torchvision),
        cmocka_unit_test(resumed_and_redirected),
        cmocka_unit_test(wrong_archives),
        cmocka_unit_test(no_space),
        cmocka_unit_test(words),
        cmocka_unit_test(offline), cmocka_unit_test(tried),
        cmocka_unit_test(same_classes),
        cmocka_unit_test(nets_without_a_row),
        cmocka_unit_test(config_check),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
