/* pumice verify: compares every kernel of the program, or of a config's plan, on devices with the
 * CPU. */
#include "app/app.h"

#include <cjson/cJSON.h>
#include <string.h>
#include <unistd.h>

#include <pumice/train.h>

static const char *const verdicts[] = {
    [PM_VERDICT_OK] = "ok", [PM_VERDICT_WRONG] = "WRONG", [PM_VERDICT_CANNOT] = "cannot run",
};

struct totals {
    int kernels, wrong; /* numbers of variants */
};
struct options {
    const struct pm_config *config; /* NULL: every kernel of the program */
    double limit;                   /* seconds for each device; 0: none */
};

/* ---- one device --------------------------------------------------------------------------- */

/* What the verification of one device found. */
struct outcome {
    const struct pm_verified *list;
    size_t count;
    double seconds;
    bool cut;    /* --limit ended it */
    double done; /* the finished part, 0..1 */
};

struct progress {
    const char *address;
    double done; /* 0..1 */
    bool shown;
};

static void show_progress(void *ctx, double done)
{
    struct progress *p = ctx;

    p->done = done;
    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r%s  %3.0f %%", p->address, 100 * done);
    p->shown = true;
    fflush(stderr);
}

static void add_text(struct pm_str *s, const struct pm_device_info *d, const struct outcome *o)
{
    const struct pm_verified *list = o->list;
    const size_t count = o->count;
    int width[2] = { 6, 7 }, wrong = 0;

    for (size_t i = 0; i < count; i++) {
        int a = (int)strlen(list[i].kernel), b = (int)strlen(list[i].variant);

        width[0] = a > width[0] ? a : width[0];
        width[1] = b > width[1] ? b : width[1];
        wrong += list[i].verdict == PM_VERDICT_WRONG;
    }
    pm_str_add(s, "%s  %s, %s\n\n", d->address, d->name, d->driver);
    pm_str_add(s, "  %-*s  %-*s  %5s  %10s  %9s  %s\n", width[0], "kernel", width[1], "variant",
               "calls", "values", "of bound", "verdict");
    for (size_t i = 0; i < count; i++) {
        const struct pm_verified *r = &list[i];

        pm_str_add(s, "  %-*s  %-*s  %5d  %10llu  %8.1f%%  %s\n", width[0], r->kernel, width[1],
                   r->variant, r->calls, (unsigned long long)r->values, 100 * r->worst,
                   verdicts[r->verdict]);
        if (r->why[0])
            pm_str_add(s, "      %s\n", r->why);
    }
    pm_str_add(s, "\n%s: %zu variant%s in %.1f s, ", d->address, count, count == 1 ? "" : "s",
               o->seconds);
    pm_str_add(s, wrong ? "%d wrong" : "all right", wrong);
    if (o->cut)
        pm_str_add(s, "; --limit ended the check early");
    if (o->cut && o->done > 0)
        pm_str_add(s, ", after %.0f %% of it", 100 * o->done);
    pm_str_add(s, "\n\n");
}

static cJSON *device_json(const struct pm_device_info *d, const struct outcome *found)
{
    cJSON *o = cJSON_CreateObject(), *kernels;
    const struct pm_verified *list = found->list;
    const size_t count = found->count;

    cJSON_AddStringToObject(o, "address", d->address);
    cJSON_AddStringToObject(o, "name", d->name);
    cJSON_AddStringToObject(o, "driver", d->driver);
    cJSON_AddStringToObject(o, "uuid", d->uuid);
    cJSON_AddNumberToObject(o, "seconds", found->seconds);
    cJSON_AddBoolToObject(o, "complete", !found->cut);
    cJSON_AddNumberToObject(o, "done", found->done);
    kernels = cJSON_AddArrayToObject(o, "kernels");
    for (size_t i = 0; i < count; i++) {
        const struct pm_verified *r = &list[i];
        cJSON *k = cJSON_CreateObject();

        cJSON_AddItemToArray(kernels, k);
        cJSON_AddStringToObject(k, "kernel", r->kernel);
        cJSON_AddStringToObject(k, "variant", r->variant);
        cJSON_AddStringToObject(k, "verdict", r->verdict == PM_VERDICT_WRONG ? "wrong"
                                                                            : verdicts[r->verdict]);
        cJSON_AddNumberToObject(k, "calls", r->calls);
        cJSON_AddNumberToObject(k, "values", (double)r->values);
        cJSON_AddNumberToObject(k, "of_bound", r->worst < 1e30 ? r->worst : 1e30);
        if (r->why[0])
            cJSON_AddStringToObject(k, "why", r->why);
    }
    return o;
}

/* Verifies one device, prints the result or adds it to the list, and stores the verdicts. */
static int verify_device(const struct pm_device_info *info, const struct options *o,
                         struct app_globals *g, cJSON *devices, struct totals *t)
{
    struct pm_device *d = NULL;
    struct pm_verify *v = NULL;
    struct pm_verdicts *known = NULL;
    struct progress p = { .address = info->address };
    struct pm_str s = { 0 };
    double start = pm_seconds();
    struct outcome found = { 0 };
    int err = PM_OK;

    PM_TRY(pm_device_open(info, NULL, &d));
    PM_TRY(pm_verify_open(d, &v));
    if (o->limit > 0)
        pm_verify_limit(v, o->limit);
    err = o->config ? pm_verify_config(v, o->config) : pm_verify_all(v, show_progress, &p);
    if (p.shown)
        fprintf(stderr, "\r%*s\r", 60, "");
    PM_TRY(err);
    known = pm_verdicts_load(d);
    pm_verdicts_save(known, v);
    found.list = pm_verify_results(v, &found.count);
    found.seconds = pm_seconds() - start;
    found.cut = pm_verify_is_cut(v);
    found.done = found.cut ? p.done : 1;
    t->kernels += (int)found.count;
    for (size_t i = 0; i < found.count; i++)
        t->wrong += found.list[i].verdict == PM_VERDICT_WRONG;
    if (g->json) {
        cJSON_AddItemToArray(devices, device_json(info, &found));
    } else {
        add_text(&s, info, &found);
        PM_TRY(app_print(s.text));
    }
out:
    pm_str_free(&s);
    pm_verdicts_free(&known);
    pm_verify_close(&v);
    pm_device_close(&d);
    return err;
}

/* ---- the command -------------------------------------------------------------------------- */

/* Lists every usable GPU. */
static size_t all_gpus(const struct pm_device_info *list, size_t count, size_t *out)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        if (list[i].usable && !list[i].caps.on_host_cores)
            out[n++] = i;
    return n;
}

static bool is_config(const char *word)
{
    size_t n = strlen(word);

    return n > 5 && strcmp(word + n - 5, ".json") == 0;
}

/* Loads the config among the words and removes it from them. */
static int split_words(struct app_args *args, struct pm_arena *a, struct pm_config **c)
{
    struct app_args config = *args;
    int left = 0, err = PM_OK;

    for (int i = 0; i < args->words_count; i++) {
        if (!is_config(args->words[i])) {
            args->words[left++] = args->words[i];
            continue;
        }
        if (*c)
            PM_TRY(pm_fail(PM_ECONFIG, "command line: verify takes one config at most"));
        config.words = &args->words[i];
        config.words_count = 1;
        PM_TRY(app_load_training(&config, "verify", a, c));
    }
    args->words_count = left;
    if (!*c && args->overrides_count > 0)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "command line: %s needs a config that it changes, but none is named",
                       args->overrides[0]));
out:
    return err;
}

static int find_devices(const struct app_args *args, const struct pm_device_info *list,
                        size_t known, size_t *out, size_t *count)
{
    int err = PM_OK;

    *count = args->words_count ? 0 : all_gpus(list, known, out);
    if (!args->words_count && *count == 0)
        PM_TRY(pm_fail(PM_EDEVICE, "there is no GPU to verify; software drivers are verified when "
                       "they are named (pumice devices lists all)"));
    for (int i = 0; i < args->words_count; i++) {
        PM_TRY(pm_device_find(list, known, args->words[i], "command line", &out[*count]));
        if (!list[out[*count]].caps.needs_verification)
            PM_TRY(pm_fail(PM_ECONFIG,
                           "command line: \"%s\" is the CPU, with which other devices are "
                           "compared; name a GPU",
                           args->words[i]));
        ++*count;
    }
out:
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_device_info *list = NULL;
    struct pm_config *c = NULL;
    struct app_args args;
    struct options options = { 0 };
    struct totals t = { 0 };
    cJSON *o = cJSON_CreateObject(), *devices = cJSON_AddArrayToObject(o, "devices");
    size_t known, count, *chosen;
    int err = PM_OK;

    PM_TRY(app_take_number(&argc, argv, "--limit", 0, 1e6, &options.limit));
    PM_TRY(app_args(argc, argv, "verify", a, &args));
    PM_TRY(split_words(&args, a, &c));
    options.config = c;
    PM_TRY(pm_device_list(&list, &known));
    chosen = pm_arena_alloc(a, (known + (size_t)args.words_count + 1) * sizeof *chosen);
    PM_TRY(find_devices(&args, list, known, chosen, &count));
    for (size_t i = 0; i < count; i++)
        PM_TRY(verify_device(&list[chosen[i]], &options, g, devices, &t));
    cJSON_AddNumberToObject(o, "wrong", t.wrong);
    if (g->json)
        PM_TRY(app_print_json(g, o));
    if (t.wrong > 0)
        PM_TRY(pm_fail(PM_EDEVICE,
                       "%d of %d variants give wrong results; training avoids them; please report "
                       "them with this output",
                       t.wrong, t.kernels));
out:
    cJSON_Delete(o);
    pm_free(list);
    pm_config_destroy(&c);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_command pm_command_verify = {
    .name = "verify", .help = "compares a GPU's kernels, forward and backward, with the CPU",
    .usage = "[DEVICE ...] [CONFIG.json] [--limit S] [key=value ...]",
    .details =
        "Runs every kernel of the program (layers, optimizers, norms) on small inputs, in every\n"
        "variant that a device supports, and compares it with the CPU. With a config it runs the\n"
        "kernels of the config's training step at their real sizes. DEVICE is vulkan:0,\n"
        "opencl:0, a UUID or a part of a name; the default is every GPU. Software drivers are\n"
        "verified only if they are named.\n"
        "\n"
        "  --limit S     ends the check of each device after S seconds and reports the kernels\n"
        "                that were checked until then; 0, the default, sets no limit\n"
        "\n"
        "\"of bound\" is the largest error as a share of the error that rounding can cause for\n"
        "these inputs. The exit code is 4 if a result is wrong. Before its first step on a new\n"
        "device, driver or build of pumice, training verifies the kernels that it needs\n"
        "(run.verify).\n"
        "\n"
        "  pumice verify\n"
        "  pumice verify vulkan:0 configs/lenet_mnist.json --json\n",
    .run = run,
};
