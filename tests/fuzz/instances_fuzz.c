/* Instance maps. The first byte chooses how they are stored and what their numbers mean, the
 * second the width. Each pixel follows as a class and a number of 16 bits. Both maps are
 * converted as PNGs, and the record is read as in training and evaluation. Every instance in the
 * record must have the class of its pixels and must be readable. */
#include "fuzz.h"

#include "tasks/segmentation/segmentation.h"

#include <math.h>

enum { MOST = 8, SIZE = 9, CLASSES = 5, PIXELS = SIZE * SIZE };

static const struct {
    const char *format, *src, *split, *options;
    bool deep; /* the numbers hold the classes, too */
} kinds[] = {
    { "pairs", "p", "train", "num_shards=1 things=[1,3] instances=masks", false },
    { "pairs", "p", "train", "num_shards=1 things=[0,4] instances=masks instance_first=0", false },
    { "pairs", "p", "train", "num_shards=1 things=[0,3] instances=masks instance_divide=1000",
      false },
    { "pairs", "p", "train",
      "num_shards=1 things=[1] instances=masks instance_divide=7 instance_first=0", false },
    { "pairs", "p", "train", "num_shards=1 things=[0,2] divide=256 labels=deep", true },
    { "cityscapes_segmentation", "c", "train_fine", "num_shards=1 instances=true", false },
};
enum { CITYSCAPES = 5 };

static void put_map(const char *name, const uint16_t *values, int height, int width, bool deep)
{
    const struct pm_label map = { height, width, (uint16_t *)values };
    uint8_t *png = NULL;
    size_t size = 0;

    if ((deep ? pm_label_encode_deep : pm_label_encode)(&map, name, &png, &size) < 0)
        abort();
    fuzz_write(fuzz_path(name), png, size);
    pm_free(png);
}

static void put_picture(const char *name, int height, int width)
{
    uint8_t pixels[3 * MOST * MOST] = { 0 }, *png = NULL;
    const struct pm_image8 im = { height, width, 3, pixels };
    size_t size = 0;

    if (pm_image_encode_png(&im, &png, &size) < 0)
        abort();
    fuzz_write(fuzz_path(name), png, size);
    pm_free(png);
}

static void make_folders(void)
{
    static const char *const folders[] = { "p/images/train",        "p/labels/train",
                                           "p/masks/train",         "p/deep/train",
                                           "c/leftImg8bit/train/a", "c/gtFine/train/a" };

    for (size_t i = 0; i < PM_COUNT(folders); i++)
        if (pm_make_folders(fuzz_path(folders[i])) < 0)
            abort();
}

/* Makes the task with the things that the reader of the records needs. */
static struct pm_task setup_of(const struct pm_dataset_info *info, struct pm_arena *a)
{
    const struct pm_preprocessing *p = pm_preprocessing_find("deeplab");
    void *cfg = pm_arena_alloc(a, p->cfg_size + 1);

    pm_opts_defaults(p->opts, cfg, a);
    return (struct pm_task){
        .facts = { .height = SIZE,
                   .width = SIZE,
                   .eval_height = SIZE,
                   .eval_width = SIZE,
                   .channels = 3,
                   .num_classes = info->map_classes,
                   .preprocessing = p,
                   .preprocessing_cfg = cfg },
        .pixels = { .ignore_label = info->ignore_label,
                    .label_height = SIZE,
                    .label_width = SIZE,
                    .upsample_logits = true,
                    .predict_upsampled = true,
                    .instance = { .on = true,
                                  .things = info->thing_classes,
                                  .label_divisor = 1000,
                                  .small_area = 4,
                                  .small_weight = 3 } },
    };
}

/* Every thing's number must have the class of its pixel, and padding has no number. */
static void check(const struct pm_dataset_info *info, int height, int width, const int32_t *labels,
                  const int32_t *instances)
{
    for (int i = 0; i < PIXELS; i++) {
        const bool inside = i / SIZE < height && i % SIZE < width;
        bool thing = false;

        for (int k = 0; k < info->thing_classes.count; k++)
            thing |= info->thing_classes.v[k] == labels[i];
        if (!inside ? instances[i] != -1
            : thing ? instances[i] / 1000 != labels[i]
                    : instances[i] != 0)
            __builtin_trap();
    }
}

static void read_back(const char *split, int height, int width)
{
    struct pm_dataset *d = NULL;
    struct pm_arena *a = pm_arena_create();
    static float image[3 * PIXELS], center[PIXELS], weight[PIXELS], offset[2 * PIXELS],
        pull[2 * PIXELS], semantic[PIXELS];
    static int32_t labels[PIXELS], instances[PIXELS];
    void *const of_training[] = { image, labels, center, weight, offset, pull, semantic };
    void *const of_eval[] = { image, labels, instances };
    uint8_t *record = NULL;
    size_t capacity = 0, size = 0;

    if (pm_dataset_open(fuzz_path("made"), split, &d) < 0 ||
        pm_dataset_read(d, 0, &record, &capacity, &size) < 0)
        abort();
    const struct pm_dataset_info *info = pm_dataset_get_info(d);
    const struct pm_task s = setup_of(info, a);
    struct pm_sampler training = { .task = &s, .train = true }, evaluation = { .task = &s };
    const struct pm_loader_record r = { .bytes = record, .size = size, .seed = 1, .step = 2,
                                        .example = 3, .where = "record", .frame = { SIZE, SIZE } };
    const struct pm_task_row *task = pm_task_find("segmentation");

    if (task->make(&training, &r, of_training) < 0 || task->make(&evaluation, &r, of_eval) < 0)
        __builtin_trap();
    check(info, height, width, labels, instances);
    pm_free(record);
    pm_dataset_close(&d);
    pm_arena_destroy(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint16_t classes[MOST * MOST] = { 0 }, numbers[MOST * MOST] = { 0 };

    if (fuzz_begin())
        make_folders();
    if (size < 5)
        return 0;
    const size_t kind = data[0] % PM_COUNT(kinds), pixels = (size - 2) / 3;
    const int width = data[1] % MOST + 1,
              rows = (int)(pixels < MOST * MOST ? pixels : MOST * MOST) / width;
    const int height = rows < 1 ? 1 : rows > MOST ? MOST : rows;
    for (size_t i = 0; i < pixels && i < (size_t)height * (size_t)width; i++) {
        const uint8_t *p = data + 2 + 3 * i;

        classes[i] = kind == CITYSCAPES || p[0] == 255 ? p[0] : p[0] % CLASSES;
        numbers[i] = (uint16_t)(p[1] << 8 | p[2]);
    }
    if (kind == CITYSCAPES) {
        put_picture("c/leftImg8bit/train/a/a_leftImg8bit.png", height, width);
        put_map("c/gtFine/train/a/a_gtFine_labelIds.png", classes, height, width, false);
        put_map("c/gtFine/train/a/a_gtFine_instanceIds.png", numbers, height, width, true);
    } else {
        put_picture("p/images/train/a.png", height, width);
        put_map("p/labels/train/a.png", classes, height, width, false);
        put_map(kinds[kind].deep ? "p/deep/train/a.png" : "p/masks/train/a.png", numbers, height,
                width, true);
    }
    if (pm_dataset_convert(kinds[kind].format, fuzz_path(kinds[kind].src), fuzz_path("made"),
                           kinds[kind].options) == PM_OK)
        read_back(kinds[kind].split, height, width);
    pm_remove_tree(fuzz_path("made"));
    return 0;
}
