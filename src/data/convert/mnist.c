/* mnist: IDX files, plain or gzipped, as PNG records. An IDX file is a big-endian magic (2051
 * images, 2049 labels), the counts, then bytes. test comes from the t10k files. Without them, or on
 * request, the last images of the training set become validation; the others are train. */
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <pumice/data.h>

struct mnist_cfg {
    int validation;
};

static const struct pm_opt opts[] = {
    PM_INT(mnist_cfg, validation, -1, -1, 1 << 30,
           "training images that become validation, the last ones; -1 = none if SRC has test "
           "images, as TF-Slim, else a twelfth"),
    { 0 },
};

static const char *const digits[] = { "zero", "one", "two",   "three", "four",
                                      "five", "six", "seven", "eight", "nine" };

struct idx {
    char *path;    /* in the arena */
    uint8_t *data; /* values, owned */
    size_t count, each;
    int height, width;
};

/* File names: the authors' ("train-images-idx3-ubyte.gz"), the same without .gz, or with a dot as
 * on some mirrors ("train-images.idx3-ubyte"). */
static bool find_file(struct pm_arena *a, const char *folder, const char *set, const char *kind,
                      char **path)
{
    const char *idx = strcmp(kind, "images") ? "idx1" : "idx3";
    for (int k = 0; k < 4; k++) {
        *path = pm_arena_printf(a, "%s/%s-%s%c%s-ubyte%s", folder, set, kind, k & 1 ? '.' : '-',
                                idx, k & 2 ? "" : ".gz");
        if (pm_file_exists(*path))
            return true;
    }
    return false;
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int take(gzFile f, const char *path, void *buf, size_t size)
{
    for (size_t done = 0; done < size;) {
        const unsigned most = size - done < 1u << 20 ? (unsigned)(size - done) : 1u << 20;
        const int n = gzread(f, (char *)buf + done, most);
        int code = 0;
        if (n < 0)
            return pm_fail(PM_EDATA, "%s: damaged at byte %zu of its contents: %s", path, done,
                           gzerror(f, &code));
        if (n == 0)
            return pm_fail(PM_EDATA,
                           "%s: the file ends after %zu bytes of contents; %zu more are needed",
                           path, done, size - done);
        done += (size_t)n;
    }
    return PM_OK;
}

/* Reads in pieces, so that a wrong count in the header cannot allocate more memory than the file
 * has bytes. */
static int take_growing(gzFile f, const char *path, size_t size, uint8_t **out)
{
    size_t have = 0;
    while (have < size) {
        const size_t piece = size - have < 1u << 24 ? size - have : 1u << 24;
        *out = pm_realloc(*out, have + piece);
        const int err = take(f, path, *out + have, piece);
        if (err < 0)
            return err;
        have += piece;
    }
    return PM_OK;
}

static int idx_read(char *path, bool images, struct idx *out)
{
    int err = PM_OK;
    uint8_t head[16];
    const uint32_t magic = images ? 2051 : 2049;
    gzFile f = NULL;
    int fd;

    out->path = path;
    PM_TRY(pm_file_open(path, &fd, NULL));
    f = gzdopen(fd, "rb");
    if (!f) {
        close(fd);
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be opened: zlib is out of memory", path));
    }
    PM_TRY(take(f, path, head, images ? 16 : 8));
    if (be32(head) != magic)
        PM_TRY(pm_fail(PM_EDATA, "%s: its magic number is %u; MNIST files of %s have %u", path,
                       be32(head), images ? "images" : "labels", magic));
    out->count = be32(head + 4);
    out->height = images ? (int)(be32(head + 8) & 0xffff) : 1;
    out->width = images ? (int)(be32(head + 12) & 0xffff) : 1;
    out->each = (size_t)out->height * (size_t)out->width;
    if (out->count == 0 || out->each == 0 ||
        (images && (be32(head + 8) > 4096 || be32(head + 12) > 4096)))
        PM_TRY(pm_fail(PM_EDATA, "%s: %zu images of %u x %u; sides of 1..4096 are allowed", path,
                       out->count, images ? be32(head + 8) : 1, images ? be32(head + 12) : 1));
    PM_TRY(take_growing(f, path, out->count * out->each, &out->data));
out:
    if (f)
        gzclose(f);
    return err;
}

struct mnist {
    struct idx images, labels;
    size_t first; /* of the split */
};

static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    const struct mnist *s = ctx;
    const size_t k = s->first + i;
    const struct pm_image8 im = { s->images.height, s->images.width, 1,
                                  s->images.data + k * s->images.each };
    const int64_t label = s->labels.data[k];

    if (label > 9)
        return pm_fail(PM_EDATA, "%s: label %zu is %d; digits are 0..9", s->labels.path, k,
                       (int)label);
    return pm_making_picture(b, &im, label);
}

static int read_set(struct pm_arena *a, const char *src, const char *set, struct mnist *s)
{
    int err = PM_OK;
    char *images = NULL, *labels = NULL;

    if (!find_file(a, src, set, "images", &images))
        PM_TRY(pm_fail(PM_EDATA, "%s: it has no %s-images-idx3-ubyte.gz", src, set));
    if (!find_file(a, src, set, "labels", &labels))
        PM_TRY(pm_fail(PM_EDATA, "%s: it has no %s-labels-idx1-ubyte.gz", src, set));
    PM_TRY(idx_read(images, true, &s->images));
    PM_TRY(idx_read(labels, false, &s->labels));
    if (s->images.count != s->labels.count)
        PM_TRY(pm_fail(
            PM_EDATA, "%s has %zu images, but %s has %zu labels: there must be one label per image",
            images, s->images.count, labels, s->labels.count));
out:
    return err;
}

static void free_set(struct mnist *s)
{
    pm_free(s->images.data);
    pm_free(s->labels.data);
    *s = (struct mnist){ .first = 0 };
}

static int convert(const void *cfg, const char *src, struct pm_making *m)
{
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    struct mnist s = { .first = 0 };
    char *path = NULL;
    const int wanted = ((const struct mnist_cfg *)cfg)->validation;
    const bool tests = find_file(a, src, "t10k", "images", &path);

    PM_TRY(read_set(a, src, "train", &s));
    const size_t all = s.images.count;
    const size_t held_out = wanted >= 0 ? (size_t)wanted : tests ? 0 : all / 12;
    if (held_out >= all)
        PM_TRY(pm_fail(
            PM_ECONFIG,
            "validation=%d leaves none of the %zu pictures for training: set a smaller validation",
            wanted, all));
    PM_TRY(pm_making_labels(m, digits, 10));
    pm_making_size(m, s.images.height, s.images.width, 1);
    PM_TRY(pm_making_split(m, "train", all - held_out, NULL, fill, &s));
    s.first = all - held_out;
    if (held_out)
        PM_TRY(pm_making_split(m, "validation", held_out, NULL, fill, &s));
    free_set(&s);
    if (tests) {
        PM_TRY(read_set(a, src, "t10k", &s));
        PM_TRY(pm_making_split(m, "test", s.images.count, NULL, fill, &s));
    }
out:
    free_set(&s);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_converter pm_converter_mnist = {
    .name = "mnist",
    .help = "MNIST's IDX files, plain or .gz",
    .layout = "SRC/train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-... "
              "the same, each picture\n"
              "stored as PNG. mnist_train.tfrecord, mnist_test.tfrecord: 60,000 and 10,000, as "
              "TF-Slim's;\n"
              "mnist_validation.tfrecord with validation=N, or without t10k files",
    .opts = opts,
    .cfg_size = sizeof(struct mnist_cfg),
    .convert = convert,
};
