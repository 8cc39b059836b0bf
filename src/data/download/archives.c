/* The archives of the data sets that the original programs download: addresses, sizes, checksums.
 * Each data set is a row of the table below; its archives are a table of their own. */
#include "data/download/download.h"

#define AT(...) (const char *const[]) { __VA_ARGS__, NULL }

/* The author's own server rarely answers. These two servers have the same bytes. */
#define MNIST(n) AT("https://storage.googleapis.com/cvdf-datasets/mnist/" n, \
                    "https://ossci-datasets.s3.amazonaws.com/mnist/" n)
static const struct pm_archive mnist[] = {
    { "train-images-idx3-ubyte.gz", 9912422,
      "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
      MNIST("train-images-idx3-ubyte.gz"), false },
    { "train-labels-idx1-ubyte.gz", 28881,
      "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
      MNIST("train-labels-idx1-ubyte.gz"), false },
    { "t10k-images-idx3-ubyte.gz", 1648877,
      "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
      MNIST("t10k-images-idx3-ubyte.gz"), false },
    { "t10k-labels-idx1-ubyte.gz", 4542,
      "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
      MNIST("t10k-labels-idx1-ubyte.gz"), false },
};

/* The binary version; the other version is a Python pickle. */
static const struct pm_archive cifar10[] = {
    { "cifar-10-binary.tar.gz", 170052171,
      "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
      AT("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"), true },
};

static const struct pm_archive flowers[] = {
    { "flower_photos.tgz", 228813984,
      "4c54ace7911aaffe13a365c34f650e71dd5bf1be0a58b464e5a7183e3e595d9c",
      AT("https://storage.googleapis.com/download.tensorflow.org/example_images/flower_photos.tgz",
         "http://download.tensorflow.org/example_images/flower_photos.tgz"),
      true },
};

/* The server has no certificate for its own name, but one for Amazon's name of the same files. */
#define COCO(n) AT("https://s3.amazonaws.com/images.cocodataset.org/" n, \
                   "http://images.cocodataset.org/" n)
static const struct pm_archive coco2014[] = {
    { "annotations_trainval2014.zip", 252872794,
      "031296bbc80c45a1d1f76bf9a90ead27e94e99ec629208449507a4917a3bf009",
      COCO("annotations/annotations_trainval2014.zip"), true },
    { "val2014.zip", 6645013297,
      "fe9be816052049c34717e077d9e34aa60814a55679f804cd043e3cbee3b9fde0", COCO("zips/val2014.zip"),
      true },
    { "train2014.zip", 13510573713,
      "ede4087e640bddba550e090eae701092534b554b42b05ac33f0300b984b31775",
      COCO("zips/train2014.zip"), true },
};

#define ARCHIVES(list) .archives = list, .archive_count = PM_COUNT(list)
static const struct pm_download sources[] = {
    { .name = "mnist", .help = "digits, 28x28, grey", .inside = "", ARCHIVES(mnist) },
    { .name = "cifar10",
      .help = "small photographs, 32x32, 10 classes",
      .inside = "cifar-10-batches-bin",
      ARCHIVES(cifar10) },
    { .name = "flowers",
      .help = "3,670 photographs of 5 kinds of flowers",
      .inside = "flower_photos",
      ARCHIVES(flowers) },
    { .name = "visualwakewords",
      .help = "COCO 2014: is a person in the picture",
      .inside = "",
      ARCHIVES(coco2014) },
    { .name = "imagenet",
      .help = "1,281,167 photographs of 1,000 classes; download by hand",
      .by_hand =
          "only registered users may download it: fetch ILSVRC2012_img_train.tar and "
          "ILSVRC2012_img_val.tar from https://image-net.org/download.php, unpack them (train: a "
          "folder for each synset), then pumice dataset convert imagenet SRC DST" },
};

const struct pm_download *pm_downloads(size_t *count)
{
    *count = PM_COUNT(sources);
    return sources;
}
