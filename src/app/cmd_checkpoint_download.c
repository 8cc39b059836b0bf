/* pumice checkpoint download: puts a published checkpoint into the cache and prints its path, or
 * lists all of them. */
#include "app/checkpoint_command.h"

#include <cjson/cJSON.h>
#include <signal.h>
#include <string.h>

#include "checkpoints/published.h"

/* A first signal ends the download and keeps what has arrived. */
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    stopped = number;
}

static cJSON *row_json(const struct pm_published *p)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", p->name);
    cJSON_AddStringToObject(o, "net", p->net);
    cJSON_AddStringToObject(o, "conventions", p->conventions);
    cJSON_AddStringToObject(o, "preprocessing", p->preprocessing);
    cJSON_AddStringToObject(o, "settings", p->settings);
    if (p->classes)
        cJSON_AddNumberToObject(o, "classes", p->classes);
    else
        cJSON_AddNullToObject(o, "classes");
    cJSON_AddStringToObject(o, "data", p->data);
    cJSON_AddStringToObject(o, "address", p->address);
    cJSON_AddStringToObject(o, "sha256", p->sha256);
    cJSON_AddStringToObject(o, "licence", p->licence);
    return o;
}

static int widest(const char *(*text)(const struct pm_published *p))
{
    size_t count, most = 0;
    const struct pm_published *rows = pm_published_rows(&count);

    for (size_t i = 0; i < count; i++)
        most = strlen(text(&rows[i])) > most ? strlen(text(&rows[i])) : most;
    return (int)most;
}

static const char *name_of(const struct pm_published *p)
{
    return p->name;
}

static const char *net_of(const struct pm_published *p)
{
    return p->net;
}

static void add_row(struct pm_str *text, const struct pm_published *p, int name, int net)
{
    char classes[16] = "-";

    if (p->classes)
        snprintf(classes, sizeof classes, "%d", p->classes);
    pm_str_add(text, "%-*s  %-*s  %-11s  %-13s  %7s  %-9s  %-12s  %s\n    %s\n", name, p->name,
               net, p->net, p->conventions, p->preprocessing, classes,
               p->sha256[0] ? p->sha256 : "-", p->licence, p->data, p->address);
    if (p->settings[0])
        pm_str_add(text, "    needs %s\n", p->settings);
}

static int list(struct app_globals *g)
{
    size_t count;
    const struct pm_published *rows = pm_published_rows(&count);
    const int name = widest(name_of), net = widest(net_of);
    struct pm_str text = { 0 };
    cJSON *o = cJSON_CreateObject(), *all = cJSON_AddArrayToObject(o, "checkpoints");
    int err;

    pm_str_add(&text, "%-*s  %-*s  %-11s  %-13s  %7s  %-9s  %-12s  %s\n", name, "name", net, "net",
               "conventions", "preprocessing", "classes", "sha256", "licence", "trained on");
    for (size_t i = 0; i < count; i++) {
        cJSON_AddItemToArray(all, row_json(&rows[i]));
        add_row(&text, &rows[i], name, net);
    }
    err = g->json ? app_print_json(g, o) : app_print(text.text);
    pm_str_free(&text);
    cJSON_Delete(o);
    return err;
}

static int download(const char *name, const struct pm_published_want *want, struct pm_arena *a,
                    struct app_globals *g)
{
    int err = PM_OK;
    const struct pm_published *p;
    struct pm_published_copy copy;
    cJSON *o = NULL;

    PM_TRY(pm_published_find(name, &p));
    app_catch_signals(on_signal);
    PM_TRY(pm_published_get(p, want, a, &copy));
    PM_INFO("checkpoint", "%s: for model.name=%s model.conventions=%s, trained on %s with "
            "input.preprocessing=%s%s%s", p->name, p->net, p->conventions, p->data,
            p->preprocessing, p->settings[0] ? " " : "", p->settings);
    if (!g->json) {
        PM_TRY(app_print_raw(pm_arena_printf(a, "%s\n", copy.path)));
        return PM_OK;
    }
    o = row_json(p);
    cJSON_AddStringToObject(o, "path", copy.path);
    cJSON_AddStringToObject(o, "from", copy.address);
    cJSON_AddStringToObject(o, "file_sha256", copy.sha256);
    PM_TRY(app_print_json(g, o));
out:
    cJSON_Delete(o);
    return err;
}

int app_checkpoint_download(int argc, char **argv, struct pm_arena *a, struct app_globals *g)
{
    int err = PM_OK;
    struct app_args args;
    struct pm_published_want want = { .advice = "give another server with --from",
                                      .stop = &stopped };

    PM_TRY(app_take_value(&argc, argv, "--from", &want.from));
    PM_TRY(app_take_value(&argc, argv, "--sums", &want.sums));
    PM_TRY(app_args(argc, argv, "checkpoint download", a, &args));
    if (args.words_count != 1 || args.overrides_count > 0)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: checkpoint download needs one NAME, as in pumice "
                                   "checkpoint download torchvision_resnet50; 'pumice checkpoint "
                                   "download list' prints all names"));
    if (strcmp(args.words[0], "list") == 0)
        PM_TRY(list(g));
    else
        PM_TRY(download(args.words[0], &want, a, g));
out:
    if (err < 0 && stopped) {
        fprintf(stderr, "%s\n", pm_error_text());
        return 128 + (int)stopped;
    }
    return err;
}
