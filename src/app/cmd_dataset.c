/* pumice dataset: converts raw folders, makes the built-in data, inspects TFRecord files. */
#include "app/app.h"

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <pumice/data.h>

/* ---- convert and make ----------------------------------------------------------------------- */

/* A first signal ends the conversion and removes its output. */
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    stopped = number;
    pm_making_interrupt();
}

/* Prints the new folder's own dataset.json, with its path. */
static int print_made(const char *dst, struct pm_arena *a, struct app_globals *g)
{
    int err = PM_OK;
    cJSON *o = NULL;
    char *text = NULL;
    const char *path = pm_arena_printf(a, "%s/dataset.json", dst);

    if (!g->json)
        return PM_OK; /* the log has already reported it */
    PM_TRY(pm_text_read(path, PM_MOST_TEXT, &text));
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
    app_catch_signals(on_signal);
    PM_TRY(pm_dataset_convert(args->words[0], args->words[1], args->words[2], options));
    PM_TRY(print_made(args->words[2], a, g));
out:
    return err;
}

static int make(const struct app_args *args, struct pm_arena *a, struct app_globals *g)
{
    int err = PM_OK;
    const char *options = NULL;

    if (args->words_count < 2)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: dataset make needs KIND DST, as in pumice "
                                   "dataset make shapes data/shapes"));
    PM_TRY(app_options(args, "dataset", 2, a, &options));
    app_catch_signals(on_signal);
    PM_TRY(pm_dataset_make(args->words[0], args->words[1], options));
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
    app_catch_signals(on_signal);
    PM_TRY(pm_dataset_download(args->words[0], args->words[1], o));
    PM_TRY(print_made(args->words[1], a, g));
out:
    return err;
}

/* Reads a limit in megabytes and stores bytes; 0 (the default limit) if text is NULL. */
static int take_most(const char *text, uint64_t *most)
{
    char *end = NULL;
    const long long megabytes = text ? strtoll(text, &end, 10) : 0;

    if (text && (end == text || *end || megabytes < 1 || megabytes > 1000000000))
        return pm_fail(
            PM_ECONFIG,
            "command line: --max-megabytes %s: a whole number from 1 to 1000000000 is needed",
            text);
    *most = (uint64_t)megabytes * 1000000;
    return PM_OK;
}

/* ---- the command ------------------------------------------------------------------------------
 */

static int run(int argc, char **argv, struct app_globals *g)
{
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    struct app_args args;
    const char *records = NULL, *most = NULL;
    struct app_inspect flags = { .records = 1 };
    struct pm_download_options from = { 0 };

    const char *what = argc > 0 ? argv[0] : "";
    const bool inspecting = !strcmp(what, "inspect"), downloading = !strcmp(what, "download");
    if (downloading) {
        from.keep_archives = app_take_flag(&argc, argv, "--keep-archives");
        PM_TRY(app_take_value(&argc, argv, "--from", &from.from));
        PM_TRY(app_take_value(&argc, argv, "--sums", &from.sums));
        PM_TRY(app_take_value(&argc, argv, "--raw", &from.raw));
        PM_TRY(app_take_value(&argc, argv, "--max-megabytes", &most));
        PM_TRY(take_most(most, &from.most));
    }
    if (inspecting) {
        flags.check = app_take_flag(&argc, argv, "--check");
        PM_TRY(app_take_value(&argc, argv, "--records", &records));
        PM_TRY(app_take_value(&argc, argv, "--pictures", &flags.pictures));
        PM_TRY(app_take_value(&argc, argv, "--maps", &flags.maps));
        PM_TRY(app_take_value(&argc, argv, "--boxes", &flags.boxes));
        if (records && sscanf(records, "%d", &flags.records) != 1)
            PM_TRY(pm_fail(PM_ECONFIG, "command line: --records %s is not a number", records));
    }
    if (downloading || !strcmp(what, "convert"))
        app_flags_to_options(&argc, argv, a);
    PM_TRY(app_args(argc, argv, "dataset", a, &args));
    args.words++, args.words_count--;
    if (inspecting)
        PM_TRY(app_dataset_inspect(&args, &flags, a, g));
    else if (!strcmp(what, "convert"))
        PM_TRY(convert(&args, a, g));
    else if (downloading)
        PM_TRY(download(&args, &from, a, g));
    else if (!strcmp(what, "make"))
        PM_TRY(make(&args, a, g));
    else
        PM_TRY(pm_fail(
            PM_ECONFIG,
            "command line: dataset %s: the subcommands are convert, download, make and inspect",
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
    .help = "converts, downloads, draws and inspects data",
    .usage = "convert FORMAT SRC DST [option=value ...]\n"
             "download NAME DST [--from ADDRESS] [--sums FILE] [--raw FOLDER] [--keep-archives]\n"
             "                        [--max-megabytes N] [option=value ...]\n"
             "make KIND DST [option=value ...]\n"
             "inspect FILE|FOLDER [--records N] [--pictures FOLDER] [--maps FOLDER]\n"
             "                        [--boxes FOLDER] [--check]",
    .details =
        "convert writes TFRecord files with labels.txt and dataset.json from a folder of\n"
        "pictures. The files are named as TF-Slim and the Inception trainer name them. A\n"
        "finished data folder at DST is replaced only with --force. Write options as key=value\n"
        "or --key=value. 'pumice dataset convert --help' explains all formats, 'convert FORMAT\n"
        "--help' one.\n"
        "download fetches the archives of a data set, checks their SHA-256 and converts them:\n"
        "mnist (12 MB), cifar10 (170 MB), flowers (229 MB), visualwakewords (20 GB). Repeat an\n"
        "interrupted download to continue it. Options are those of the converter.\n"
        "  --from ADDRESS    folder of another server that has the archives under the same names\n"
        "  --sums FILE       lines \"SHA-256  NAME\", if the other server's archives differ\n"
        "  --raw FOLDER      folder for the archives (DST.download)\n"
        "  --keep-archives   keeps the archives after the conversion\n"
        "  --max-megabytes N limit for an archive whose size is not known, with --sums (40000)\n"
        "make draws data: shapes, bars with rotated boxes, and words. 'pumice dataset\n"
        "make --help' explains the options.\n"
        "inspect prints the splits, their sizes and the keys of the first records.\n"
        "  --records N       number of records to print per split\n"
        "  --pictures FOLDER writes the pictures of these records as files\n"
        "  --maps FOLDER     writes their label maps and other maps under the same names\n"
        "  --boxes FOLDER    writes the pictures with boxes, class names, masks and keypoints\n"
        "                    drawn in, or the key points of words\n"
        "  --check           reads every record and counts the labels, in maps the pixels, and\n"
        "                    the records of words with wrong key points (exit code 3). For\n"
        "                    detection it decodes every picture, prints statistics of the boxes,\n"
        "                    and reports what would make training wrong (exit code 3) or poorer\n",
    .more = app_dataset_help,
    .run = run,
};
