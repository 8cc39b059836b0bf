/* dataset download from a local server, with small archives of the right structure. */
#include "e2e/program.h"

#include <pumice/data.h>

#include "data/archives.h"
#include "data/http_server.h"

enum { TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS, CIFAR, FLOWERS, PAGES };

static struct page pages[PAGES + 1] = {
    [TRAIN_IMAGES] = { "/m/train-images-idx3-ubyte.gz" },
    [TRAIN_LABELS] = { "/m/train-labels-idx1-ubyte.gz" },
    [TEST_IMAGES] = { "/m/t10k-images-idx3-ubyte.gz" },
    [TEST_LABELS] = { "/m/t10k-labels-idx1-ubyte.gz" },
    [CIFAR] = { "/m/cifar-10-binary.tar.gz" },
    [FLOWERS] = { "/m/flower_photos.tgz" },
};
static struct pm_str contents[PAGES];
static struct server server;

/* ---- the archives ------------------------------------------------------------------------ */

static void put_be(struct pm_str *s, uint32_t v)
{
    const char bytes[4] = { (char)(v >> 24), (char)(v >> 16), (char)(v >> 8), (char)v };
    pm_str_bytes(s, bytes, 4);
}

static struct pm_str idx(bool images, uint32_t count)
{
    struct pm_str s = { 0 };

    put_be(&s, images ? 2051 : 2049);
    put_be(&s, count);
    if (images)
        put_be(&s, 28), put_be(&s, 28);
    for (uint32_t i = 0; i < count * (images ? 28 * 28 : 1); i++) {
        const char byte = (char)(images ? i * 2654435761u >> 24 : i % 10);
        pm_str_bytes(&s, &byte, 1);
    }
    return gzipped(&s);
}

static struct pm_str cifar(void)
{
    static const char *const names[] = { "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                         "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin" };
    struct pm_str tar = { 0 };
    static char records[4 * 3073];

    tar_add(&tar, "cifar-10-batches-bin/", '5', NULL, NULL, 0, NULL);
    for (size_t i = 0; i < PM_COUNT(names); i++) {
        char path[64];
        for (size_t k = 0; k < sizeof records; k++)
            records[k] = (char)(k % 3073 ? k * i : k / 3073 + i);
        snprintf(path, sizeof path, "cifar-10-batches-bin/%s", names[i]);
        tar_file(&tar, path, records, sizeof records);
    }
    tar_end(&tar);
    return gzipped(&tar);
}

static struct pm_str flowers(void)
{
    static const char *const kinds[] = { "daisy", "dandelion", "roses", "sunflowers", "tulips" };
    struct pm_str tar = { 0 };

    tar_file(&tar, "flower_photos/LICENSE.txt", "free", 4);
    for (size_t i = 0; i < 5 * PM_COUNT(kinds); i++) {
        uint8_t pixels[8 * 8 * 3], *jpeg = NULL;
        size_t size = 0;
        char path[64];
        memset(pixels, (int)(10 * i), sizeof pixels);
        const struct pm_image8 im = { 8, 8, 3, pixels };
        assert_int_equal(pm_image_encode_jpeg(&im, 90, &jpeg, &size), 0);
        snprintf(path, sizeof path, "flower_photos/%s/%zu.jpg", kinds[i % 5], i);
        tar_file(&tar, path, jpeg, size);
        pm_free(jpeg);
    }
    tar_end(&tar);
    return gzipped(&tar);
}

/* Writes FOLDER/sums with the output of sha256sum for the archives. */
static void write_sums(void)
{
    struct pm_str text = { 0 };

    for (int i = 0; i < PAGES; i++) {
        struct pm_sha256 s;
        char hex[65];
        pm_sha256_start(&s);
        pm_sha256_add(&s, contents[i].text, contents[i].length);
        pm_sha256_end(&s, hex);
        pm_str_add(&text, "%s  %s\n", hex, strrchr(pages[i].path, '/') + 1);
    }
    put_text(in("sums"), text.text);
    pm_str_free(&text);
}

static struct result download(const char *name, const char *more)
{
    server_turn(&server);
    struct result r = run(NULL, "dataset download %s %s --from http://127.0.0.1:%d/m --sums %s %s",
                          name, in("%s", name), server.port, in("sums"), more);
    server_turn(&server);
    return r;
}

static bool is_there(const char *path)
{
    return pm_file_exists(in("%s", path)) || pm_is_folder(in("%s", path));
}

/* ---- tests ------------------------------------------------------------------------------- */

static void ready_to_train(void **state)
{
    (void)state;

    check(download("mnist", "validation=5"), 0, "train 55 (", "validation 5 (", "test 20 (",
          "10 classes");
    check(download("cifar10", "--keep-archives"), 0, "train 20 (", "test 4 (",
          "10 classes");
    check(download("flowers", "--validation=5 shards=2"), 0, "train 20 (", "validation 5 (",
          "5 classes");
    assert_false(is_there("mnist.download"));
    assert_true(is_there("cifar10.download/cifar-10-binary.tar.gz"));
    assert_false(is_there("cifar10.download/unpacked"));
    assert_false(is_there("flowers.download"));
    check(run(NULL, "dataset inspect %s --check", in("flowers")), 0);
    check(run(NULL, "train %s data.folder=%s run.folder=%s", in("net.json"), in("flowers"),
              in("run")),
          2, "gives 4 values per picture, but there are 5 classes");
    check(run(NULL, "train %s data.folder=%s run.folder=%s model.layers.4.units=10", in("net.json"),
              in("cifar10"), in("run")), 0, "step 3/3");
}

/* A complete data set is kept, and nothing is downloaded. */
static void once(void **state)
{
    const int before = pages[TRAIN_IMAGES].requests;
    (void)state;

    check(download("mnist", ""), 0, "exists already; nothing to do");
    assert_int_equal(pages[TRAIN_IMAGES].requests, before);
    check(download("mnist", "--force"), 0, "train 60 (", "test 20 (");
    assert_false(is_there("mnist/mnist_validation.tfrecord"));
    assert_int_equal(pages[TRAIN_IMAGES].requests, before + 1);
}

static void refused(void **state)
{
    (void)state;

    check(run(NULL, "dataset download"), 2, "needs NAME DST");
    check(run(NULL, "dataset download flower %s", in("x")), 2,
          "unknown data set flower; known: mnist (");
    check(run(NULL, "dataset download imagenet %s", in("x")), 2,
          "fetch ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar from ",
          "pumice dataset convert imagenet SRC DST");
    check(run(NULL, "dataset download mnist %s validatoin=3", in("x")), 2,
          "validatoin: unknown key, did you mean 'validation'?");
    check(run(NULL, "dataset download mnist %s more", in("x")), 2, "'more'");
    assert_false(is_there("x.download"));
    /* Without the sums, the archives differ from the known ones. */
    check(run(NULL, "dataset download mnist %s --from http://127.0.0.1:%d/m", in("x"), server.port),
          3, "train-images-idx3-ubyte.gz cannot be downloaded: ",
          "instead of 9912422. Try again later");
    check(run(NULL, "dataset download mnist %s --from http://127.0.0.1:%d/none --sums %s", in("x"),
              server.port, in("sums")), 1, "the server answers 404");
    check(run(NULL, "dataset download mnist %s --sums %s", in("x"), in("net.json")), 3,
          "no line \"SHA-256  train-images-idx3-ubyte.gz\" in it");
    assert_false(is_there("x"));
}

/* A damaged archive ends the command. The archives are kept, and the next call does not download
 * them. */
static void bad_archive(void **state)
{
    struct pm_str tar = { 0 }, good = contents[CIFAR];
    int before;
    (void)state;

    tar_file(&tar, "../evil", "x", 1);
    tar_end(&tar);
    contents[CIFAR] = gzipped(&tar);
    pages[CIFAR].data = contents[CIFAR].text, pages[CIFAR].size = contents[CIFAR].length;
    write_sums();
    assert_int_equal(pm_remove_tree(in("cifar10")), 0);
    assert_int_equal(pm_remove_tree(in("cifar10.download")), 0);
    check(download("cifar10", ""), 3, "entry '../evil' would be outside");
    assert_false(is_there("cifar10"));
    before = pages[CIFAR].requests;
    check(download("cifar10", ""), 3, "entry '../evil' would be outside");
    assert_int_equal(pages[CIFAR].requests, before);
    pm_str_free(&contents[CIFAR]);
    contents[CIFAR] = good;
    pages[CIFAR].data = good.text, pages[CIFAR].size = good.length;
    write_sums();
    check(download("cifar10", ""), 3, "remove it, and it will be downloaded");
}

/* Ctrl-C keeps the partial file; the next call continues from its end. */
static void interrupted(void **state)
{
    char command[1024], name[512];
    struct stat st = { 0 };
    (void)state;

    pages[FLOWERS].manner = SLOW;
    assert_int_equal(pm_remove_tree(in("flowers")), 0);
    snprintf(name, sizeof name, "%s", in("interrupted"));
    snprintf(command, sizeof command, "dataset download flowers %s --from http://127.0.0.1:%d/m "
             "--sums %s validation=5", in("flowers"), server.port, in("sums"));
    const pid_t pid = start(NULL, name, command);
    while (stat(in("flowers.download/flower_photos.tgz.part"), &st) != 0 || st.st_size < 1000)
        usleep(10000);
    kill(pid, SIGINT);
    struct result r = finish(pid, name);
    assert_int_equal(r.code, 130);
    assert_contains(r.err, "flower_photos.tgz: stopped; 1000 bytes are in ");
    assert_contains(r.err, "and the same command resumes from there");
    drop(&r);
    pages[FLOWERS].manner = GOOD;
    check(download("flowers", "validation=5"), 0, "resuming after 1000 bytes");
    assert_string_equal(pages[FLOWERS].range, "1000-");
    assert_false(is_there("flowers.download"));
}

static int set_up(void **state)
{
    (void)state;
    if (make_world(false) < 0)
        return -1;
    contents[TRAIN_IMAGES] = idx(true, 60);
    contents[TRAIN_LABELS] = idx(false, 60);
    contents[TEST_IMAGES] = idx(true, 20);
    contents[TEST_LABELS] = idx(false, 20);
    contents[CIFAR] = cifar();
    contents[FLOWERS] = flowers();
    for (int i = 0; i < PAGES; i++) {
        pages[i].data = contents[i].text;
        pages[i].size = contents[i].length;
    }
    write_sums();
    setenv("no_proxy", "*", 1);
    server_start(&server, pages);
    return 0;
}

static int tear_down(void **state)
{
    server_stop(&server);
    for (int i = 0; i < PAGES; i++)
        pm_str_free(&contents[i]);
    return drop_world(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ready_to_train), cmocka_unit_test(once),        cmocka_unit_test(refused),
        cmocka_unit_test(bad_archive),    cmocka_unit_test(interrupted),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
