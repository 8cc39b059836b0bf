/* new_config: looks at a folder and writes a config with comments. The numbers come from
 * new_choices.def. */
#include "jobs/new_config.h"

#include "checkpoints/published.h"
#include "data/folder_chain.h"
#include "data/layouts.h"
#include "data/photo_survey.h"
#include "data/photos.h"

#include <pumice/objects.h>
#include <pumice/task.h>

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* Headers that are read to find huge pictures: some seconds at most. */
enum { MOST_MEASURED = 5000 };

struct look {
    enum pm_folder_kind kind;
    const struct pm_layout *layout; /* NULL: nothing to convert by hand */
    const char *task;
    struct pm_photo_survey photos;  /* of PM_FOLDER_PHOTOS without a layout */
    const char *name;               /* for files and folders: the folder's last part */
    const char *data;               /* data.folder */
    const char *eval_split;         /* NULL: there is none, or the default finds it */
    bool evaluates;
    size_t pictures;                /* that are trained on */
    int classes;
    double validation;              /* data.convert's, or 0 */
};

/* ---- looking -------------------------------------------------------------------------------- */

static const char *last_part(struct pm_arena *a, const char *folder)
{
    char *real = realpath(folder, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;
    const char *name = slash && slash[1] ? pm_arena_strdup(a, slash + 1) : "photos";

    free(real);
    return name;
}

/* The share of the pictures that is kept apart: enough for a figure that means something. */
static double share_of(size_t pictures)
{
    return pictures < 200 ? 0.3 : pictures < 1000 ? 0.2 : 0.1;
}

static void add_classes(struct pm_str *s, const struct pm_photo_survey *p)
{
    for (int k = 0; k < p->class_count && k < 8; k++) {
        pm_str_add(s, "%s", k ? ", " : " (");
        pm_str_name(s, p->classes[k], 0);
        pm_str_add(s, " %zu", p->counts[k]);
    }
    pm_str_add(s, p->class_count > 8 ? ", ...)" : ")");
}

/* Counts the pictures that lie in the folder itself, so that they belong to no class. */
static int count_beside(struct pm_arena *a, const char *folder, size_t *count)
{
    char **names = NULL;
    size_t n = 0;
    const int err = pm_list_folder(a, folder, &names, &n);

    *count = 0;
    for (size_t i = 0; i < n; i++)
        *count += names[i][0] != '.' && pm_image_named(names[i]);
    return err;
}

static int look_at_photos(struct pm_arena *a, const char *folder, struct look *l,
                          struct pm_str *found)
{
    const struct pm_photo_survey *p = &l->photos;
    size_t pairs = 0, beside = 0;
    int err = PM_OK;

    PM_TRY(pm_photos_survey(a, folder, MOST_MEASURED, &l->photos));
    for (int k = 0; k < p->class_count; k++) {
        if (!p->counts[k])
            PM_TRY(pm_fail(PM_EDATA, "%s: class %s has no pictures: add some, or remove the folder",
                           folder, p->classes[k]));
        pairs += p->counts[k] > 1;
    }
    if (p->class_count < 2)
        PM_TRY(pm_fail(PM_EDATA, "%s: there is one class, %s: a classifier needs at least two "
                       "subfolders with pictures, one for each class", folder, p->classes[0]));
    l->classes = p->class_count;
    l->pictures = p->pictures;
    l->evaluates = pairs > 0;
    if (p->own_splits) {
        l->evaluates = p->split != NULL;
        l->eval_split = p->split;
    } else if (pairs > 0) {
        l->eval_split = "validation";
        l->validation = share_of(p->pictures);
        l->pictures -= (size_t)((double)p->pictures * l->validation);
    }
    pm_str_add(found, "%zu pictures of %d classes", p->pictures, p->class_count);
    add_classes(found, p);
    if (p->longest)
        pm_str_add(found, ", usually %d pixels, at most %d%s", p->usual, p->longest,
                   p->measured < p->pictures ? " of those that were measured" : "");
    PM_TRY(count_beside(a, folder, &beside));
    if (beside)
        pm_str_add(found, "; %zu %s beside the class folders and left out", beside,
                   pm_plural((double)beside, "picture is", "pictures are"));
out:
    return err;
}

/* Finds the split of training: a stem that ends in it. */
static int count_training(struct pm_arena *a, const char *folder, size_t *count)
{
    struct pm_dataset *d = NULL;
    int err = PM_OK;

    (void)a;
    PM_TRY(pm_dataset_open(folder, "train", &d));
    *count = pm_dataset_get_info(d)->count;
out:
    pm_dataset_close(&d);
    return err;
}

static int look_at_records(struct pm_arena *a, const char *folder, const char *task,
                           struct look *l, struct pm_str *found)
{
    struct pm_dataset_info info;
    struct pm_label_map map = { 0 };
    int err = PM_OK;

    PM_TRY(pm_dataset_describe(a, folder, &info));
    PM_TRY(pm_label_map_of_folder(a, folder, &map));
    PM_TRY(count_training(a, folder, &l->pictures));
    l->task = task                                          ? task
              : info.ignore_label >= 0                      ? "segmentation"
              : map.count > 0 && info.num_classes == 0      ? "detection"
                                                            : "classification";
    l->classes = !strcmp(l->task, "detection") ? map.count : info.num_classes;
    l->evaluates = true;
    pm_str_add(found, "a data folder, %zu training %s of %d %s", l->pictures,
               pm_plural((double)l->pictures, "picture", "pictures"), l->classes,
               pm_plural(l->classes, "class", "classes"));
out:
    return err;
}

/* Counts files that are named like pictures, also in subfolders. */
static size_t count_pictures(const char *folder, int level, const struct pm_folder_chain *above)
{
    struct pm_folder_chain own;
    struct pm_arena *a = pm_arena_create();
    char **names = NULL;
    size_t n = 0, count = 0;

    if (level > 16 || !pm_folder_enter(folder, above, &own) ||
        pm_list_folder(a, folder, &names, &n) < 0)
        n = 0;
    for (size_t i = 0; i < n; i++) {
        const char *path = pm_arena_printf(a, "%s/%s", folder, names[i]);

        if (names[i][0] != '.')
            count += pm_is_folder(path) ? count_pictures(path, level + 1, &own)
                                        : (size_t)pm_image_named(names[i]);
    }
    pm_arena_destroy(&a);
    return count;
}

static void look_at_layout(struct pm_arena *a, const char *folder, struct look *l,
                           struct pm_str *found)
{
    l->task = l->layout->task;
    l->pictures = count_pictures(folder, 0, NULL);
    if (!strcmp(l->task, "segmentation"))
        l->pictures /= 2; /* the others are their label maps */
    l->data = pm_arena_printf(a, "data/%s", l->name);
    l->evaluates = true;
    pm_str_add(found, "about %zu pictures in the layout of dataset convert %s", l->pictures,
               l->layout->converter);
}

/* The folder has nothing that the task can use. */
static int refuse(const char *folder, const char *task, enum pm_folder_kind kind)
{
    const struct pm_task_row *row = pm_task_find(task ? task : "classification");

    if (kind == PM_FOLDER_PICTURES && !row->converters)
        return pm_fail(PM_EDATA, "%s: its pictures are not in subfolders: put the pictures of each "
                       "class into a subfolder with the name of the class", folder);
    if (row->converters)
        return pm_fail(PM_EDATA, "%s: no annotations for task %s are found in it. The formats %s "
                       "are for this task: pumice dataset convert FORMAT --help shows the files of "
                       "each", folder, row->config.name, row->converters);
    return pm_fail(PM_EDATA, "%s: no pictures are found in it: put the pictures of each class into "
                   "a subfolder with the name of the class. pumice dataset convert --help lists "
                   "other layouts", folder);
}

static int look(struct pm_arena *a, const struct pm_new_want *want, struct look *l,
                struct pm_str *found)
{
    const char *folder = want->folder, *task = want->task;
    int err = PM_OK;

    *l = (struct look){ .kind = pm_folder_kind(folder), .data = folder, .task = task };
    if (task && !pm_task_find(task))
        PM_TRY(pm_fail(PM_ECONFIG, "command line: --task %s: the tasks are classification, "
                       "segmentation and detection", task));
    if (task && !pm_new_choose(task, 0, 1))
        PM_TRY(pm_fail(PM_ECONFIG, "command line: --task %s: new writes configs of the tasks "
                       "classification, segmentation and detection; for %s copy a file of configs/",
                       task, task));
    if (l->kind == PM_FOLDER_MISSING)
        PM_TRY(pm_fail(PM_EDATA,
                       pm_file_exists(folder)
                           ? "%s: this is a file; name the folder of the pictures"
                           : "%s: no such folder",
                       folder));
    l->name = last_part(a, folder);
    if (l->kind == PM_FOLDER_RECORDS) {
        PM_TRY(look_at_records(a, folder, task, l, found));
        goto out;
    }
    l->layout = pm_layout_find(folder, task);
    if (l->layout && !l->layout->sure && l->kind == PM_FOLDER_PHOTOS && !task)
        l->layout = NULL;
    if (l->layout) {
        look_at_layout(a, folder, l, found);
    } else if (l->kind == PM_FOLDER_PHOTOS && (!task || !pm_task_find(task)->converters)) {
        l->task = "classification";
        PM_TRY(look_at_photos(a, folder, l, found));
    } else {
        PM_TRY(refuse(folder, task, l->kind));
    }
out:
    return err;
}

/* ---- numbers -------------------------------------------------------------------------------- */

struct numbers {
    const struct pm_new_choice *row;
    int batch, passes, max_side; /* max_side 0: the pictures are small enough */
    int64_t steps, every;
    double rate;
    const struct pm_published *weights; /* published for the net; NULL: none */
    bool here;                          /* they are in the cache, so training starts from them */
};

/* Pretrained weights need fewer steps, and a rate that does not destroy them. */
static void decide_start(struct numbers *n)
{
    n->weights = pm_published_first(n->row->net, "tensorflow");
    n->here = n->weights && pm_published_is_here(n->weights);
    n->rate = n->here ? n->row->rate / 2 : n->row->rate;
}

/* Rounds down to 1, 2 or 5 times a power of ten. */
static int64_t round_number(int64_t n)
{
    int64_t unit = 1;

    while (unit * 10 <= n)
        unit *= 10;
    return n >= 5 * unit ? 5 * unit : n >= 2 * unit ? 2 * unit : unit;
}

static struct numbers decide(const struct look *l)
{
    const struct pm_new_choice *row = pm_new_choose(l->task, l->pictures, l->classes);
    struct numbers n = { .row = row, .batch = row->batch, .passes = row->passes };
    const size_t pictures = l->pictures ? l->pictures : 1;

    while (n.batch > 1 && (size_t)n.batch > pictures)
        n.batch /= 2;
    decide_start(&n);
    const size_t least = n.here ? PM_NEW_LEAST_TUNING : PM_NEW_LEAST_STEPS;
    n.steps = (int64_t)(pictures * (size_t)n.passes) / n.batch;
    if (n.steps < (int64_t)least) {
        n.passes = (int)((least * (size_t)n.batch + pictures - 1) / pictures);
        n.steps = (int64_t)(pictures * (size_t)n.passes) / n.batch;
    }
    n.every = round_number(n.steps / 10 > 0 ? n.steps / 10 : 1);
    /* The smallest crop of training, 5 % of the area, then still has the input's size. */
    const int side = (row->size * 9 / 2 + 63) / 64 * 64;
    if (l->photos.longest > side + side / 4)
        n.max_side = side;
    return n;
}

/* ---- the text ------------------------------------------------------------------------------- */

/* Adds a JSON string. */
static void add_string(struct pm_str *s, const char *text)
{
    cJSON *v = cJSON_CreateString(text);
    char *json = cJSON_PrintUnformatted(v);

    pm_str_add(s, "%s", json);
    cJSON_free(json);
    cJSON_Delete(v);
}

static void add_data(struct pm_str *s, const struct look *l, const struct numbers *n)
{
    if (n->max_side)
        pm_str_add(s, "  // max_side: larger pictures are shrunk once, because training reads them "
                      "in every pass.\n");
    if (l->validation > 0)
        pm_str_add(s, "  // validation: the share of each class that only evaluation sees.\n");
    pm_str_add(s, "  \"data\": {\n    \"folder\": ");
    add_string(s, l->data);
    if (l->eval_split)
        pm_str_add(s, ",\n    \"eval_split\": \"%s\"", l->eval_split);
    if (l->validation > 0 && n->max_side)
        pm_str_add(s, ",\n    \"convert\": { \"validation\": %g, \"max_side\": %d }",
                   l->validation, n->max_side);
    else if (l->validation > 0 || n->max_side)
        pm_str_add(s, ",\n    \"convert\": { \"%s\": %g }", n->max_side ? "max_side" : "validation",
                   n->max_side ? n->max_side : l->validation);
    pm_str_add(s, "\n  },\n");
}

static void add_classification(struct pm_str *s, const struct numbers *n)
{
    /* Batch norm's averages must follow within a run of few steps. */
    const double decay = n->steps < 2000 ? 0.95 : n->steps < 20000 ? 0.99 : 0.997;

    pm_str_add(s, "  // %s.\n  \"model\": { \"name\": \"%s\", \"batch_norm_decay\": %g },\n",
               n->row->why, n->row->net, decay);
}

static void add_classification_rest(struct pm_str *s, const struct numbers *n)
{
    pm_str_add(s, "  // size: the side of the net's input in pixels. More shows more detail, and "
                  "takes longer.\n"
                  "  \"input\": { \"size\": %d, \"preprocessing\": \"%s\" },\n"
                  "  \"optim\": { \"name\": \"momentum\", \"momentum\": 0.9 },\n"
                  "  // base_lr: the learning rate. Halve it if the loss jumps.\n"
                  "  \"schedule\": { \"policy\": \"cosine\", \"base_lr\": %g },\n",
               n->row->size, n->here ? n->weights->preprocessing : "inception", n->rate);
}

static void add_detection(struct pm_str *s, const struct numbers *n)
{
    pm_str_add(s, "  // %s.\n  \"model\": { \"name\": \"%s\", \"batch_norm_decay\": 0.97 },\n",
               n->row->why, n->row->net);
}

static void add_detection_rest(struct pm_str *s, const struct numbers *n)
{
    pm_str_add(s, "  // Pictures are mirrored and cropped at random, then brought to size x size "
                  "pixels.\n"
                  "  \"input\": {\n    \"size\": %d,\n    \"augment\": [ { \"name\": "
                  "\"random_flip\" }, { \"name\": \"ssd_random_crop\" }, { \"name\": \"resize\" } "
                  "]\n"
                  "  },\n"
                  "  // Of the boxes without an object, only the hardest ones count.\n"
                  "  \"loss\": {\n    \"classification\": { \"type\": \"weighted_sigmoid\" },\n"
                  "    \"hard_example_miner\": {\n"
                  "      \"num_hard_examples\": 3000, \"iou_threshold\": 0.99, \"loss_type\": "
                  "\"classification\",\n"
                  "      \"max_negatives_per_positive\": 3, \"min_negatives_per_image\": 3\n    }\n"
                  "  },\n"
                  "  \"optim\": { \"name\": \"adam\", \"epsilon\": 1e-8 },\n"
                  "  // base_lr: the learning rate. Halve it if the loss jumps.\n"
                  "  \"schedule\": { \"policy\": \"cosine\", \"base_lr\": %g, \"end_lr\": 0, "
                  "\"warmup_steps\": 100, \"warmup_lr\": 1e-4 },\n", n->row->size, n->rate);
}

static void add_segmentation(struct pm_str *s, const struct numbers *n)
{
    pm_str_add(s, "  // %s.\n  \"model\": {\n    \"name\": \"%s\", \"output_stride\": 16, "
                  "\"aspp_rates\": [6, 12, 18], \"decoder_strides\": [4],\n"
                  "    \"aspp_filters\": 128, \"decoder_filters\": 128, \"batch_norm_decay\": "
                  "0.99, "
                  "\"head_batch_norm_decay\": 0.99\n  },\n", n->row->why, n->row->net);
}

static void add_segmentation_rest(struct pm_str *s, const struct numbers *n)
{
    pm_str_add(s, "  // size: the side of training's crops in pixels, 16 n + 1. eval.resize false: "
                  "evaluation takes each\n  // picture at its own size.\n"
                  "  \"input\": { \"size\": %d, \"min_scale\": 0.5, \"max_scale\": 2, "
                  "\"scale_step\": 0.25 },\n"
                  "  \"optim\": { \"name\": \"momentum\", \"momentum\": 0.9 },\n"
                  "  // base_lr: the learning rate. Halve it if the loss jumps.\n"
                  "  \"schedule\": {\n    \"policy\": \"polynomial\", \"base_lr\": %g, \"end_lr\": "
                  "0, \"power\": 0.9,\n    \"warmup_steps\": 100, \"warmup_lr\": 0.001\n  },\n",
               n->row->size, n->rate);
}

enum { FEW = 20000 }; /* pictures that do better with published weights */

/* Adds the start from published weights: as a proposal unless they are at hand. */
static void add_start(struct pm_str *s, const struct look *l, const struct numbers *n)
{
    if (n->here)
        pm_str_add(s, "  // Starts from published weights that were trained on ImageNet. Layers "
                      "that depend on the\n  // classes are new.\n"
                      "  \"init\": { \"checkpoint\": \"imagenet\" },\n");
    else if (n->weights && l->pictures <= FEW)
        pm_str_add(s, "  // Few pictures do better with published weights that were trained on "
                      "ImageNet. To start from\n  // them, remove the slashes of the next line: "
                      "training downloads them once.\n"
                      "  // \"init\": { \"checkpoint\": \"imagenet\" },\n");
}

static const struct {
    const char *task, *metric;
    void (*model)(struct pm_str *s, const struct numbers *n);
    void (*rest)(struct pm_str *s, const struct numbers *n);
} parts[] = {
    { "classification", "accuracy", add_classification, add_classification_rest },
    { "detection", "map_50", add_detection, add_detection_rest },
    { "segmentation", "miou", add_segmentation, add_segmentation_rest },
};

static void write_text(struct pm_arena *a, const struct look *l, const struct numbers *n,
                       const char *found, struct pm_str *s)
{
    const char *run = pm_arena_printf(a, "runs/%s", l->name);
    size_t k = 0;

    while (strcmp(parts[k].task, l->task))
        k++;
    pm_str_add(s, "// ");
    pm_str_name(s, found, 0);
    pm_str_add(s, ".\n// docs/keys.md explains every key.\n{\n  \"task\": \"%s\",\n", l->task);
    parts[k].model(s, n);
    add_start(s, l, n);
    add_data(s, l, n);
    parts[k].rest(s, n);
    pm_str_add(s, "  // epochs: passes over the training pictures, here about %lld steps of "
                  "batch_size pictures.\n"
                  "  // More passes help if the accuracy still rises at the end.\n"
                  "  \"run\": {\n    \"folder\": ", (long long)n->steps);
    add_string(s, run);
    pm_str_add(s, ",\n    \"epochs\": %d,\n    \"batch_size\": %d", n->passes, n->batch);
    if (l->evaluates)
        pm_str_add(s, ",\n    \"keep_best\": \"%s\"", parts[k].metric);
    pm_str_add(s, "\n  }");
    if (l->evaluates && !strcmp(l->task, "segmentation"))
        pm_str_add(s, ",\n  \"eval\": { \"every_steps\": %lld, \"batch_size\": 1, \"resize\": "
                      "false }", (long long)n->every);
    else if (l->evaluates)
        pm_str_add(s, ",\n  \"eval\": { \"every_steps\": %lld }", (long long)n->every);
    pm_str_add(s, "\n}\n");
}

/* ---- the commands --------------------------------------------------------------------------- */

static const char *word(struct pm_arena *a, const char *text)
{
    struct pm_str s = { 0 };
    const char *out;

    pm_shell_word(&s, text);
    out = pm_arena_strdup(a, s.text);
    pm_str_free(&s);
    return out;
}

static void add_command(struct pm_new_config *c, const char *command, const char *purpose)
{
    c->command[c->commands] = command;
    c->purpose[c->commands++] = purpose;
}

static void add_commands(struct pm_arena *a, const struct pm_new_want *want, const struct look *l,
                         struct pm_new_config *c)
{
    const char *config = word(a, c->out), *best = l->evaluates ? " eval.checkpoint=best" : "";

    if (l->layout)
        add_command(c, pm_arena_printf(a, "pumice dataset convert %s %s %s", l->layout->converter,
                                       word(a, want->folder), word(a, l->data)),
                    "converts the pictures, once");
    add_command(c, pm_arena_printf(a, "pumice train %s", config),
                l->kind == PM_FOLDER_PHOTOS && !l->layout
                    ? "converts the pictures once, and trains" : "trains");
    if (l->evaluates)
        add_command(c, pm_arena_printf(a, "pumice eval %s%s", config, best),
                    "evaluates the best checkpoint");
    if (l->kind != PM_FOLDER_RECORDS)
        add_command(c, pm_arena_printf(a, "pumice predict %s %s --out labelled%s", config,
                                       word(a, want->folder), best),
                    "recognises pictures, these or others");
    add_command(c, pm_arena_printf(a, "pumice export %s %s%s",
                                   word(a, pm_arena_printf(a, "runs/%s", l->name)),
                                   word(a, pm_arena_printf(a, "%s.onnx", l->name)), best),
                "writes the net for other programs");
}

int pm_new_config(struct pm_arena *a, const struct pm_new_want *want, struct pm_new_config *out)
{
    struct pm_str found = { 0 }, text = { 0 };
    struct look l;
    int err = PM_OK;

    *out = (struct pm_new_config){ 0 };
    pm_str_name(&found, want->folder, 0);
    pm_str_add(&found, ": ");
    PM_TRY(look(a, want, &l, &found));
    const struct numbers n = decide(&l);
    out->out = want->out ? want->out : pm_arena_printf(a, "%s.json", l.name);
    out->found = pm_arena_strdup(a, found.text);
    out->task = l.task;
    out->net = n.row->net;
    out->pictures = l.pictures;
    out->classes = l.classes;
    out->proposes_weights = !n.here && n.weights && l.pictures <= FEW;
    write_text(a, &l, &n, out->found, &text);
    out->text = pm_arena_strdup(a, text.text);
    add_commands(a, want, &l, out);
out:
    pm_str_free(&found);
    pm_str_free(&text);
    return err;
}
