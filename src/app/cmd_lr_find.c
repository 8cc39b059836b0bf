/* pumice lr-find: a learning rate range test, with a proposal and a picture. */
#include "app/app.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* Checks the name before minutes of training. */
static int check_picture(const char *path, struct pm_arena *a)
{
    const char *end = path ? strrchr(path, '.') : NULL, *slash = path ? strrchr(path, '/') : NULL;

    if (!path)
        return PM_OK;
    if (!end || strcmp(end, ".html") != 0)
        return pm_fail(PM_ECONFIG, "command line: --picture: '%s' does not end in .html: the "
                       "picture is a page for a browser", path);
    if (slash && slash > path &&
        !pm_is_folder(pm_arena_printf(a, "%.*s", (int)(slash - path), path)))
        return pm_fail(PM_ECONFIG, "command line: --picture: the folder of '%s' does not exist",
                       path);
    return PM_OK;
}

static double number(const cJSON *o, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(o, key));
}

static int print(const cJSON *report, const char *picture)
{
    enum { LINES = 20 };
    const cJSON *points = cJSON_GetObjectItem(report, "points"), *p;
    const int count = cJSON_GetArraySize(points), every = (count + LINES - 1) / LINES;
    struct pm_str s = { 0 };
    int i = 0, err;

    pm_str_add(&s, "%s: %s, batch %.0f, %d steps\n%12s%12s%12s\n",
               cJSON_GetStringValue(cJSON_GetObjectItem(report, "config")),
               cJSON_GetStringValue(cJSON_GetObjectItem(report, "model")),
               number(report, "batch"), count, "rate", "loss", "smoothed");
    cJSON_ArrayForEach(p, points)
        if (i++ % every == 0 || i == count)
            pm_str_add(&s, "%12.3g%12.4f%12.4f\n", number(p, "rate"), number(p, "loss"),
                       number(p, "smooth"));
    pm_str_add(&s, "%s\n", cJSON_GetStringValue(cJSON_GetObjectItem(report, "text")));
    if (cJSON_IsNumber(cJSON_GetObjectItem(report, "proposal")))
        pm_str_add(&s, "proposal: schedule.base_lr=%g (the config has %g)\n",
                   number(report, "proposal"), number(report, "base_lr"));
    if (picture)
        pm_str_add(&s, "picture: %s\n", picture);
    err = app_print(s.text);
    pm_str_free(&s);
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    cJSON *report = cJSON_CreateObject();
    double steps = 100, from = 1e-7, to = 10;
    const char *picture = NULL;
    struct pm_config *c = NULL;
    struct app_args args;
    int err = PM_OK;

    PM_TRY(app_take_number(&argc, argv, "--steps", 10, 1e6, &steps));
    PM_TRY(app_take_number(&argc, argv, "--from", 1e-12, 1e3, &from));
    PM_TRY(app_take_number(&argc, argv, "--to", 1e-12, 1e3, &to));
    if (to <= from)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: --to: %g is not above --from, %g", to, from));
    PM_TRY(app_take_value(&argc, argv, "--picture", &picture));
    PM_TRY(check_picture(picture, a));
    PM_TRY(app_args(argc, argv, "lr-find", a, &args));
    PM_TRY(app_load_training(&args, "lr-find", a, &c));
    PM_TRY(pm_rate_test(c, &(struct pm_rate_options){ .steps = (int)steps, .from = from, .to = to,
                                                      .picture = picture }, report));
    PM_TRY(g->json ? app_print_json(g, report) : print(report, picture));
out:
    pm_config_destroy(&c);
    cJSON_Delete(report);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_lr_find = {
    .name = "lr-find",
    .help = "tries learning rates and proposes one",
    .usage = "CONFIG.json [--steps N] [--from R] [--to R] [--picture FILE.html] [key=value ...]",
    .details =
        "Takes training steps while the learning rate grows from very small to very large: the\n"
        "learning rate range test. It prints the loss by rate, and proposes a tenth of the rate\n"
        "at which the loss is lowest. It ends early when the loss diverges. Training starts from\n"
        "initial values, or from init.checkpoint. Nothing is written to the run folder. The same\n"
        "config and seed give the same result.\n"
        "\n"
        "  --steps N       number of steps (100)\n"
        "  --from R        first rate (1e-7)\n"
        "  --to R          last rate (10)\n"
        "  --picture FILE  writes the curve as a page for a browser, FILE.html\n"
        "\n"
        "  pumice lr-find configs/shapes_classification.json --picture rates.html\n",
    .run = run,
};
