/* pumice dataset: convert raw folders, make the built-in data, look into TFRecord files. */
#include "app/app.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <pumice/data.h>

/* ---- convert and make ----------------------------------------------------------------------- */

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    stopped = number;
    pm_making_interrupt();
}

/* A first signal ends what is being made and removes it; a second one ends the process. */
static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

/* The new folder's own dataset.json, with its path. */
static int print_made(const char *dst, struct pm_arena *a, struct app_globals *g)
{
    int err = PM_OK;
    cJSON *o = NULL;
    char *text = NULL;
    const char *path = pm_arena_printf(a, "%s/dataset.json", dst);

    if (!g->json)
        return PM_OK; /* the log has said it */
    PM_TRY(pm_file_read(path, &text, NULL));
    PM_TRY(pm_json_parse(path, text, &o));
    cJSON_AddStringToObject(o, "path", dst);
    PM_TRY(app_print_json(g, o));
out:
    cJSON_Delete(o);
    pm_free(text);
    return err;
}

static int convert(const struct app_args *args, struct pm_arena *a, struct app_globals *g)
{
    int err = PM_OK;
    const char *options = NULL;

    if (args->words_count < 3)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: dataset convert needs FORMAT SRC DST, as in "
                                   "pumice dataset convert mnist raw/mnist data/mnist"));
    PM_TRY(app_options(args, "dataset", 3, a, &options));
    catch_signals();
    PM_TRY(pm_dataset_convert(args->words[0], args->words[1], args->words[2], options));
    PM_TRY(print_made(args->words[2], a, g));
out:
    return err;
}

struct make_cfg {
    int size, train, validation, test;
    int64_t seed;
};

static const struct pm_opt make_opts[] = {
    PM_INT(make_cfg, size, 64, 16, 1024, "height and width in pixels"),
    PM_INT(make_cfg, train, 4000, 1, 100000000, "pictures of the split train"),
    PM_INT(make_cfg, validation, 500, 0, 100000000, "pictures of the split validation"),
    PM_INT(make_cfg, test, 500, 0, 100000000, "pictures of the split test"),
    PM_INT64(make_cfg, seed, 0, 0, 9007199254740992, "of the drawings"),
    { 0 },
};

static int make(const struct app_args *args, struct pm_arena *a, struct app_globals *g)
{
    int err = PM_OK;
    const char *options = NULL;
    struct make_cfg m;

    if (args->words_count < 2 || strcmp(args->words[0], "shapes") != 0)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: dataset make needs shapes DST, as in pumice "
                                   "dataset make shapes data/shapes"));
    PM_TRY(app_options(args, "dataset", 2, a, &options));
    PM_TRY(pm_opts_parse_text(make_opts, options, &m, a, "dataset make shapes"));
    catch_signals();
    PM_TRY(pm_shapes_make(args->words[1], m.size, (size_t)m.train, (size_t)m.validation,
                          (size_t)m.test, (uint64_t)m.seed));
    PM_TRY(print_made(args->words[1], a, g));
out:
    return err;
}

/* ---- download ------------------------------------------------------------------------------- */

static int download(const struct app_args *args, struct pm_download_options *o, struct pm_arena *a,
                    struct app_globals *g)
{
    int err = PM_OK;

    if (args->words_count < 2)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: dataset download needs NAME DST, as in pumice "
                                   "dataset download flowers data/flowers"));
    PM_TRY(app_options(args, "dataset", 2, a, &o->options));
    o->stop = &stopped;
    catch_signals();
    PM_TRY(pm_dataset_download(args->words[0], args->words[1], o));
    PM_TRY(print_made(args->words[1], a, g));
out:
    return err;
}

/* ---- inspect -------------------------------------------------------------------------------- */

struct inspect_flags {
    int records; /* shown of each split */
    const char *pictures; /* folder for their image/encoded, or NULL */
    bool check;  /* read every record */
};

static bool is_text(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!isprint(data[i]) && data[i] < 0x80)
            return false;
    return size > 0 && size <= 60;
}

/* What one value of bytes is: a picture and its size, a short text, or just bytes. */
static void add_bytes_text(struct pm_str *s, const uint8_t *data, size_t size)
{
    struct pm_image8 im;

    if (is_text(data, size))
        pm_str_add(s, "\"%.*s\"", (int)size, (const char *)data);
    else if (size > 8 && pm_image_decode(data, size, 0, 0, "", &im) == PM_OK) {
        pm_str_add(s, "%s %d x %d x %d, %zu bytes",
                   data[0] == 0xff   ? "JPEG"
                   : data[0] == 0x89 ? "PNG"
                   : data[0] == 'G'  ? "GIF"
                                     : "BMP",
                   im.height, im.width, im.channels, size);
        pm_image_free(&im);
    } else {
        pm_str_add(s, "%zu bytes", size);
    }
}

/* The first values of a feature. */
static char *value_text(const struct pm_example *e, const char *key, const char *kind, size_t count)
{
    struct pm_str s = { 0 };
    const size_t most = strcmp(kind, "bytes") ? 8 : 3, shown = count < most ? count : most;
    const int64_t *ints = NULL;
    const float *floats = NULL;
    const uint8_t *data = NULL;
    size_t n = 0;

    pm_str_add(&s, "%s", "");
    for (size_t i = 0; i < shown; i++) {
        pm_str_add(&s, "%s", i ? ", " : "");
        if (!strcmp(kind, "integers") && pm_example_ints(e, key, &ints, &n) == 1 && i < n)
            pm_str_add(&s, "%" PRId64, ints[i]);
        else if (!strcmp(kind, "floats") && pm_example_floats(e, key, &floats, &n) == 1 && i < n)
            pm_str_add(&s, "%g", (double)floats[i]);
        else if (!strcmp(kind, "bytes") && pm_example_bytes_at(e, key, i, &data, &n) == 1)
            add_bytes_text(&s, data, n);
    }
    if (count > shown)
        pm_str_add(&s, ", ...");
    return s.text;
}

static int compare_keys(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Keys in name order: a record's own order differs from record to record. */
static cJSON *features_json(const struct pm_example *e, struct pm_arena *a)
{
    cJSON *list = cJSON_CreateArray();
    const size_t count = pm_example_count(e);
    const char **keys = pm_arena_alloc(a, (count + 1) * sizeof *keys);

    for (size_t i = 0; i < count; i++) {
        const char *kind = NULL;
        size_t values = 0;
        keys[i] = pm_example_key(e, i, &kind, &values);
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < count; i++) {
            const char *kind = NULL;
            size_t values = 0;
            if (pm_example_key(e, i, &kind, &values) != keys[k])
                continue;
            cJSON *f = cJSON_CreateObject();
            char *text = value_text(e, keys[k], kind, values);
            cJSON_AddStringToObject(f, "key", keys[k]);
            cJSON_AddStringToObject(f, "type", kind);
            cJSON_AddNumberToObject(f, "values", (double)values);
            cJSON_AddStringToObject(f, "first", text);
            cJSON_AddItemToArray(list, f);
            pm_free(text);
        }
    return list;
}

static int read_example(struct pm_dataset *d, size_t i, uint8_t **buf, size_t *capacity,
                        struct pm_example **e)
{
    char where[512];
    size_t size = 0;
    const int err = pm_dataset_read(d, i, buf, capacity, &size);

    return err < 0 ? err
                   : pm_example_parse(*buf, size, pm_dataset_where(d, i, where, sizeof where), e);
}

/* Reads every record: checksums, messages, and how often each label stands there. */
static int check_all(struct pm_dataset *d, cJSON *split, uint8_t **buf, size_t *capacity)
{
    int err = PM_OK;
    struct pm_example *e = NULL;
    cJSON *labels = cJSON_AddObjectToObject(split, "labels");
    uint64_t counts[1001] = { 0 }, without = 0;
    const struct pm_dataset_info *info = pm_dataset_get_info(d);

    for (size_t i = 0; i < info->count; i++) {
        int64_t label = -1;
        PM_TRY(read_example(d, i, buf, capacity, &e));
        const int found = pm_example_int(e, "image/class/label", &label);
        PM_TRY(found);
        if (found && label >= 0 && label < (int64_t)PM_COUNT(counts))
            counts[label]++;
        else
            without++;
        pm_example_destroy(&e);
    }
    for (size_t k = 0; k < PM_COUNT(counts); k++) {
        char id[24];
        snprintf(id, sizeof id, "%zu", k);
        if (counts[k])
            cJSON_AddNumberToObject(labels, id, (double)counts[k]);
    }
    if (without)
        cJSON_AddNumberToObject(labels, "none", (double)without);
out:
    pm_example_destroy(&e);
    return err;
}

/* The record's picture as it stands there, as FOLDER/SPLIT_00003.png. */
static int save_picture(const struct pm_example *e, const char *split, size_t i, const char *folder)
{
    int err = PM_OK;
    const uint8_t *data = NULL;
    size_t size = 0;
    struct pm_str path = { 0 };

    PM_TRY(pm_example_bytes(e, "image/encoded", &data, &size));
    if (!data || size == 0)
        goto out;
    PM_TRY(pm_make_folders(folder));
    pm_str_add(&path, "%s/%s_%05zu.%s", folder, split, i, data[0] == 0xff ? "jpg"
               : data[0] == 0x89 ? "png" : data[0] == 'G' ? "gif" : "bmp");
    PM_TRY(pm_file_write(path.text, data, size));
out:
    pm_str_free(&path);
    return err;
}

static int inspect_split(const char *folder, const char *name, const struct inspect_flags *flags,
                         struct pm_arena *a, cJSON *out)
{
    int err = PM_OK;
    struct pm_dataset *d = NULL;
    struct pm_example *e = NULL;
    uint8_t *buf = NULL;
    size_t capacity = 0;
    cJSON *splits = cJSON_GetObjectItem(out, "splits"), *split = NULL, *records;

    PM_TRY(pm_dataset_open(folder, name, &d));
    const struct pm_dataset_info *info = pm_dataset_get_info(d);
    split = cJSON_CreateObject();
    cJSON_AddItemToArray(splits, split);
    cJSON_AddStringToObject(split, "name", name);
    cJSON_AddNumberToObject(split, "records", (double)info->count);
    cJSON_AddNumberToObject(split, "files", (double)info->files);
    cJSON_AddNumberToObject(split, "bytes", (double)info->bytes);
    records = cJSON_AddArrayToObject(split, "first_records");
    for (size_t i = 0; i < info->count && i < (size_t)flags->records; i++) {
        PM_TRY(read_example(d, i, &buf, &capacity, &e));
        cJSON_AddItemToArray(records, features_json(e, a));
        if (flags->pictures)
            PM_TRY(save_picture(e, name, i, flags->pictures));
        pm_example_destroy(&e);
    }
    if (flags->check)
        PM_TRY(check_all(d, split, &buf, &capacity));
    if (cJSON_GetObjectItem(out, "num_classes"))
        goto out;
    cJSON_AddNumberToObject(out, "num_classes", info->num_classes);
    cJSON *labels = cJSON_AddArrayToObject(out, "labels");
    for (int i = 0; i < info->num_classes; i++)
        cJSON_AddItemToArray(labels, info->labels[i] ? cJSON_CreateString(info->labels[i])
                                                     : cJSON_CreateNull());
    cJSON_AddNumberToObject(out, "height", info->height);
    cJSON_AddNumberToObject(out, "width", info->width);
    cJSON_AddNumberToObject(out, "channels", info->channels);
out:
    pm_example_destroy(&e);
    pm_free(buf);
    pm_dataset_close(&d);
    return err;
}

/* ---- inspect's text -------------------------------------------------------------------------- */

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);
    return v ? v->valuedouble : 0;
}

static void split_text(struct pm_str *s, const cJSON *split)
{
    const cJSON *record, *f;
    char bytes[24];
    int n = 0;

    pm_str_add(s, "%s: %.0f records in %.0f %s, %s\n",
               cJSON_GetObjectItem(split, "name")->valuestring, number(split, "records"),
               number(split, "files"), number(split, "files") == 1 ? "file" : "files",
               pm_bytes_text((uint64_t)number(split, "bytes"), bytes));
    cJSON_ArrayForEach(record, cJSON_GetObjectItem(split, "first_records"))
    {
        pm_str_add(s, "  record %d\n", n++);
        cJSON_ArrayForEach(f, record)
            pm_str_add(s, "    %-36s %-8s %4.0f  %s\n", cJSON_GetObjectItem(f, "key")->valuestring,
                       cJSON_GetObjectItem(f, "type")->valuestring, number(f, "values"),
                       cJSON_GetObjectItem(f, "first")->valuestring);
    }
    const cJSON *labels = cJSON_GetObjectItem(split, "labels");
    if (labels)
        pm_str_add(s, "  every record is whole; labels:");
    for (f = labels ? labels->child : NULL; f; f = f->next)
        pm_str_add(s, " %s x %.0f%s", f->string, f->valuedouble, f->next ? "," : "");
    if (labels)
        pm_str_add(s, "\n");
}

static char *inspect_text(const cJSON *o)
{
    struct pm_str s = { 0 };
    const cJSON *split, *labels = cJSON_GetObjectItem(o, "labels");

    pm_str_add(&s, "%s: ", cJSON_GetObjectItem(o, "path")->valuestring);
    if (number(o, "num_classes") > 0)
        pm_str_add(&s, "%.0f classes", number(o, "num_classes"));
    else
        pm_str_add(&s, "classes unknown (no labels.txt or dataset.json)");
    int n = 0;
    for (const cJSON *l = labels ? labels->child : NULL; l && n < 20; l = l->next, n++)
        pm_str_add(&s, "%s%s", n ? ", " : " (", cJSON_IsString(l) ? l->valuestring : "?");
    if (n > 0)
        pm_str_add(&s, "%s", n < cJSON_GetArraySize(labels) ? ", ...)" : ")");
    if (number(o, "height") > 0)
        pm_str_add(&s, ", %.0f x %.0f x %.0f", number(o, "height"), number(o, "width"),
                   number(o, "channels"));
    pm_str_add(&s, "\n");
    cJSON_ArrayForEach(split, cJSON_GetObjectItem(o, "splits")) split_text(&s, split);
    return s.text;
}

static int inspect_path(const char *path, const struct inspect_flags *flags, struct pm_arena *a,
                        cJSON *out)
{
    int err = PM_OK;
    const char **names = NULL;
    size_t count = 0;

    if (!pm_is_folder(path)) {
        if (!pm_file_exists(path))
            PM_TRY(pm_fail(PM_EDATA, "%s: no such file or folder", path));
        const char *slash = strrchr(path, '/');
        const char *folder = !slash ? "." : pm_arena_printf(a, "%.*s", (int)(slash - path), path);
        PM_TRY(inspect_split(folder[0] ? folder : "/", slash ? slash + 1 : path, flags, a, out));
        goto out;
    }
    PM_TRY(pm_dataset_list(a, path, &names, &count));
    if (count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: no TFRecord files in it", path));
    for (size_t i = 0; i < count; i++)
        PM_TRY(inspect_split(path, names[i], flags, a, out));
out:
    return err;
}

static int inspect(const struct app_args *args, const struct inspect_flags *flags,
                   struct pm_arena *a, struct app_globals *g)
{
    int err = PM_OK;
    cJSON *out = cJSON_CreateObject();

    if (args->words_count != 1 || args->overrides_count)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: dataset inspect needs one file or folder"));
    cJSON_AddStringToObject(out, "path", args->words[0]);
    cJSON_AddArrayToObject(out, "splits");
    PM_TRY(inspect_path(args->words[0], flags, a, out));
    if (g->json) {
        PM_TRY(app_print_json(g, out));
        goto out;
    }
    char *text = inspect_text(out);
    err = app_print(text);
    pm_free(text);
out:
    cJSON_Delete(out);
    return err;
}

/* ---- the command ------------------------------------------------------------------------------
 */

static int run(int argc, char **argv, struct app_globals *g)
{
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    struct app_args args;
    const char *records = NULL;
    struct inspect_flags flags = { .records = 1 };
    struct pm_download_options from = { 0 };

    const char *what = argc > 0 ? argv[0] : "";
    const bool inspecting = !strcmp(what, "inspect"), downloading = !strcmp(what, "download");
    if (downloading) {
        from.keep_archives = app_take_flag(&argc, argv, "--keep-archives");
        PM_TRY(app_take_value(&argc, argv, "--from", &from.from));
        PM_TRY(app_take_value(&argc, argv, "--sums", &from.sums));
        PM_TRY(app_take_value(&argc, argv, "--raw", &from.raw));
    }
    if (inspecting) {
        flags.check = app_take_flag(&argc, argv, "--check");
        PM_TRY(app_take_value(&argc, argv, "--records", &records));
        PM_TRY(app_take_value(&argc, argv, "--pictures", &flags.pictures));
        if (records && sscanf(records, "%d", &flags.records) != 1)
            PM_TRY(pm_fail(PM_ECONFIG, "command line: --records %s is no number", records));
    }
    if (downloading || !strcmp(what, "convert"))
        app_flags_to_options(&argc, argv, a);
    PM_TRY(app_args(argc, argv, "dataset", a, &args));
    args.words++, args.words_count--;
    if (inspecting)
        PM_TRY(inspect(&args, &flags, a, g));
    else if (!strcmp(what, "convert"))
        PM_TRY(convert(&args, a, g));
    else if (downloading)
        PM_TRY(download(&args, &from, a, g));
    else if (!strcmp(what, "make"))
        PM_TRY(make(&args, a, g));
    else
        PM_TRY(pm_fail(PM_ECONFIG, "command line: dataset %s: convert, download, make or inspect is wanted",
                       what[0] ? what : "(nothing)"));
out:
    pm_arena_destroy(&a);
    if (err < 0 && stopped) {
        fprintf(stderr, "%s\n", pm_error_text());
        return 128 + (int)stopped;
    }
    return err;
}

const struct pm_command pm_command_dataset = {
    .name = "dataset",
    .help = "make TFRecord data folders, look into them",
    .usage = "convert FORMAT SRC DST [option=value ...]\n"
             "download NAME DST [--from ADDRESS] [--sums FILE] [--raw FOLDER] [--keep-archives]\n"
             "                        [option=value ...]\n"
             "make shapes DST [size=64 train=4000 validation=500 test=500 seed=0]\n"
             "inspect FILE|FOLDER [--records N] [--pictures FOLDER] [--check]",
    .details =
        "convert turns a raw folder into TFRecord files with labels.txt and dataset.json, named as\n"
        "TF-Slim and the Inception trainer name them. A finished data folder at DST is left as it is,\n"
        "unless --force is given. Options stand as key=value or --key=value.\n"
        "'pumice dataset convert --help' explains the formats, 'convert FORMAT --help' one of them.\n"
        "download fetches a data set's archives, checks their SHA-256 and converts them: mnist (12 MB),\n"
        "cifar10 (170 MB), flowers (229 MB), visualwakewords (20 GB). What was interrupted goes on when\n"
        "the command is repeated. Options are the converter's.\n"
        "  --from ADDRESS    a folder of another server that holds the archives by their names\n"
        "  --sums FILE       \"SHA-256  NAME\" lines, where that server's archives are packed otherwise\n"
        "  --raw FOLDER      where the archives lie meanwhile; DST.download\n"
        "  --keep-archives   leaves them there\n"
        "make shapes draws the built-in data: discs, boxes, triangles and rings with class, mask "
        "and\n"
        "box labels.\n"
        "inspect prints the splits, their sizes and the keys of the first records; --pictures also\n"
        "writes those records' pictures as files; --check reads every record and counts the labels.\n",
    .more = app_dataset_help,
    .run = run,
};
