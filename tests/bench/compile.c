/* compile: what the compilers of GPU drivers make of every pipeline, without the GPUs.
 *
 *     compile [--csv FOLDER] [--listing SHADER] [--unpacked] [DRIVER ...]
 *     compile --list
 *     compile --run DRIVER COMMAND ...
 *
 * For each driver (all of drivers.def when none is named) it compiles every variant of every kernel
 * call of the layers' test cases, of some nets' training steps and of an evaluation, and prints a
 * line for each pipeline. It is an error (exit code 1) when
 *
 * - a pipeline does not compile;
 * - a pipeline that is a call's first choice spills to memory or needs scratch memory (on AMD: any
 *   pipeline);
 * - a call has no level of at most 16 KiB of shared memory and 256 invocations;
 * - a limit of compile_bars.def is exceeded, without --unpacked.
 *
 * --csv writes the pipelines that the nets use at their first choice to FOLDER/compile-DRIVER.csv.
 * --listing prints the machine code of one shader's pipelines. --unpacked uses the unpacked Mesa
 * also where the machine's Mesa knows the GPU. --list names the drivers that are here. --run runs a
 * program on a driver.
 *
 * The exit code is 77 when the named drivers are not here. When no driver is here, it is 1, unless
 * PUMICE_NO_COMPILERS=1 is set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/compile_calls.h"
#include "bench/compile_drivers.h"
#include "bench/compile_rules.h"

/* The options of the command line. */
struct wish {
    const char *csv, *listing;
    bool unpacked;
};

/* ---- pipelines -------------------------------------------------------------------------- */

/* A pipeline and the first net or case that uses it. */
struct row {
    const struct pm_pipeline *pipeline;
    const struct pm_bound_call *call;
    const char *net, *variant; /* net: NULL when only test cases use it */
    int uses;                  /* calls of the nets that use it as their first choice */
    bool first;                /* some call's first choice */
    struct executable e;
};

/* The pipelines of one driver. */
struct table {
    const struct driver *driver;
    const struct rules *rules;
    struct vk_device *device; /* borrowed */
    struct row *rows;
    size_t count;
    size_t unsound; /* broken rules */
};

static VkPipeline handle_of(const struct pm_pipeline *p)
{
    return ((const struct vk_pipeline *)p)->handle;
}

static struct row *row_of(const struct table *t, const struct pm_pipeline *p)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->rows[i].pipeline == p)
            return &t->rows[i];
    return NULL;
}

/* One row per pipeline, in the order of their first use. */
static void fill_rows(struct table *t, const struct calls *c, const struct pm_picked *picked)
{
    for (size_t i = 0; i < t->count; i++)
        t->rows[i].pipeline = t->device->shared.pipelines.list[i];
    for (size_t i = 0; i < c->count; i++)
        for (int k = 0; k < picked[i].picks.count; k++) {
            struct row *r = row_of(t, picked[i].pipeline[k]);
            const char *net = calls_net(c, i);
            bool first_choice = net && c->levels[i] == 0;

            if (!r->call || (first_choice && r->uses == 0)) {
                r->call = &c->list[i];
                r->variant = picked[i].picks.variant;
                r->net = net;
            }
            r->uses += first_choice;
            r->first = r->first || c->levels[i] == 0;
        }
}

/* The specialization constants from number 3 on, as "128,64,16"; numbers 0 to 2 are the
 * workgroup. */
static const char *constants_of(const struct pm_pipeline *p, char *out, size_t size)
{
    size_t n = 0;

    out[0] = 0;
    for (int k = 0; k < p->specs && n < size; k++)
        n += (size_t)snprintf(out + n, size - n, "%s%u", k == 0 ? "" : k < 3 ? "x" : " ",
                              p->spec[k]);
    return out;
}

/* ---- rules ------------------------------------------------------------------------------ */

PM_PRINTF(2, 3) static void fail(struct table *t, const char *format, ...)
{
    va_list ap;

    printf("FAIL %s: ", t->driver->name);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    printf("\n");
    t->unsound++;
}

/* A number that the driver does not report is -1 and proves nothing. */
static bool leaves_memory_alone(const struct table *t, const struct row *r)
{
    for (int i = 0; t->rules->columns[i].title; i++)
        if (t->rules->columns[i].memory && rules_value(t->rules, &r->e, i) != 0)
            return false;
    return true;
}

static void check_row(struct table *t, struct row *r)
{
    const struct pm_pipeline *p = r->pipeline;
    const struct rules *rules = t->rules;
    char constants[256];

    if (p->failed) {
        fail(t, "%s: %s", p->shader->name, p->why);
        return;
    }
    if (executable_read(t->device, handle_of(p), rules->loop, &r->e) < 0) {
        fail(t, "%s: %s", p->shader->name, pm_error_text());
        return;
    }
    if ((!r->first && !rules->every) || leaves_memory_alone(t, r))
        return;
    struct pm_str numbers = { 0 };
    for (int i = 0; rules->columns[i].title; i++)
        if (rules->columns[i].memory)
            pm_str_add(&numbers, ", %s %g", rules->columns[i].title,
                       rules_value(rules, &r->e, i));
    fail(t, "%s %s of %s, variant %s: uses memory for registers%s; a smaller tile "
         "or fewer values alive at a time would do", p->shader->name,
         constants_of(p, constants, sizeof constants), r->call ? r->call->kernel->name : "?",
         r->variant, numbers.text);
    pm_str_free(&numbers);
}

static bool is_small(const struct pm_picked *picked)
{
    for (int k = 0; k < picked->picks.count; k++) {
        const struct pm_module_info *m = &picked->pipeline[k]->module;

        if ((uint64_t)m->local[0] * m->local[1] * m->local[2] > SMALL_INVOCATIONS ||
            m->shared_bytes > SMALL_SHARED)
            return false;
    }
    return true;
}

static void check_levels(struct table *t, const struct calls *c, const struct pm_picked *picked)
{
    for (size_t i = 0, end; i < c->count; i = end) {
        bool small = false;

        for (end = i; end == i || (end < c->count && c->levels[end] > 0); end++)
            small = small || is_small(&picked[end]);
        if (!small)
            fail(t, "%s of %s: no level has at most %d bytes of shared memory and %d "
                 "invocations", c->list[i].kernel->name, c->list[i].label, SMALL_SHARED,
                 SMALL_INVOCATIONS);
    }
}

/* Checks the driver's rows of compile_bars.def. A row that no pipeline meets is an error too. */
static void check_bars(struct table *t)
{
    const struct bar *b;

    for (int n = 0; (b = rules_bar(n)); n++) {
        bool met = false;
        int column = 0;

        if (strcmp(b->driver, t->driver->name) != 0)
            continue;
        while (t->rules->columns[column].title &&
               strcmp(t->rules->columns[column].title, b->column) != 0)
            column++;
        if (!t->rules->columns[column].title) {
            fail(t, "compile_bars.def: %s has no column %s", t->rules->name,
                 b->column);
            continue;
        }
        for (size_t i = 0; i < t->count; i++) {
            const struct row *r = &t->rows[i];
            const struct pm_pipeline *p = r->pipeline;
            char constants[256];
            double value;

            if (r->uses == 0 || p->failed || strcmp(r->variant, b->variant) != 0 ||
                strcmp(r->call->kernel->name, b->kernel) != 0 ||
                !rules_bar_fits(b, p->spec, p->specs))
                continue;
            met = true;
            value = rules_value(t->rules, &r->e, column);
            if (value < b->least || value > b->most)
                fail(t, "%s %s, %s: %s %g is outside %g..%g", b->kernel, b->variant,
                     constants_of(r->pipeline, constants, sizeof constants), b->column, value,
                     b->least, b->most);
        }
        if (!met)
            fail(t, "compile_bars.def: no net uses %s %s with constants %s first", b->kernel,
                 b->variant, b->constants);
    }
}

/* ---- tables ----------------------------------------------------------------------------- */

static void print_header(const struct table *t)
{
    printf("%-10s", "");
    for (int i = 0; t->rules->columns[i].title; i++)
        printf(" %12s", t->rules->columns[i].title);
    printf("  shader, workgroup and constants\n");
}

static void print_row(const struct table *t, const struct row *r)
{
    char constants[256];

    printf("%-10s", t->driver->name);
    for (int i = 0; t->rules->columns[i].title; i++)
        printf(" %12.6g", rules_value(t->rules, &r->e, i));
    printf("  %s %s\n", r->pipeline->shader->name,
           constants_of(r->pipeline, constants, sizeof constants));
}

static int write_csv(const struct table *t, const char *folder)
{
    int err = PM_OK;
    struct pm_str s = { 0 }, path = { 0 };
    char constants[256];

    pm_str_add(&path, "%s/compile-%s.csv", folder, t->driver->name);
    pm_str_add(&s,
               "# ./dev bench compile %s; %s; %s\n"
               "# Pipelines of nets' training steps and of an evaluation. %s.\n"
               "kernel,variant,first used by,uses,shader,workgroup and constants",
               t->driver->name, t->device->shared.base.info.name,
               t->device->shared.base.info.driver, t->rules->legend);
    for (int i = 0; t->rules->columns[i].title; i++)
        pm_str_add(&s, ",%s", t->rules->columns[i].title);
    for (size_t i = 0; i < t->count; i++) {
        const struct row *r = &t->rows[i];

        if (r->uses == 0)
            continue;
        pm_str_add(&s, "\n%s,%s,%s %s,%d,%s,%s", r->call->kernel->name, r->variant, r->net,
                   r->call->label, r->uses, r->pipeline->shader->name,
                   constants_of(r->pipeline, constants, sizeof constants));
        for (int k = 0; t->rules->columns[k].title; k++)
            pm_str_add(&s, t->rules->columns[k].statistic ? ",%.10g" : ",%.3g",
                       rules_value(t->rules, &r->e, k));
    }
    pm_str_add(&s, "\n");
    PM_TRY(pm_file_write(path.text, s.text, s.length));
    printf("written: %s\n", path.text);
out:
    pm_str_free(&s);
    pm_str_free(&path);
    return err;
}

/* ---- in the driver's process ------------------------------------------------------------ */

/* Finds the one GPU that the environment shows. */
static int find_device(const struct driver *d, struct pm_device_info *out)
{
    struct pm_device_info *list = NULL;
    size_t count = 0;
    int err = pm_device_list(&list, &count);

    if (err == PM_OK && (count == 0 || strncmp(list[0].address, "vulkan:", 7) != 0))
        err = pm_fail(PM_EDEVICE, "%s: the driver shows no GPU", d->name);
    if (err == PM_OK)
        *out = list[0];
    pm_free(list);
    return err;
}

/* Variants are picked by these capabilities. Mesa versions differ in the GPUs for which they offer
 * cooperative matrices. */
static void check_caps(struct table *t, const struct pm_device_info *info)
{
    const struct pm_caps *c = &info->caps;
    uint32_t side = t->rules->matrix;
    bool offers = strstr(info->features, "cooperative_matrix");

    if (c->device_class != t->driver->class)
        fail(t, "is taken for class %d, it is %d", (int)c->device_class,
             (int)t->driver->class);
    if (offers != (c->coopmat.m > 0) ||
        (offers && side > 0 &&
         (c->coopmat.m != side || c->coopmat.n != side || c->coopmat.k != side)))
        fail(t, "has cooperative matrices of %ux%ux%u", c->coopmat.m, c->coopmat.n,
             c->coopmat.k);
}

static int check_pipelines(struct table *t, struct calls *c, const struct wish *wish)
{
    const struct pm_program_desc desc = { .calls = c->list, .calls_count = c->count,
                                          .levels = c->levels };
    struct pm_picked *picked = pm_calloc(c->count, sizeof *picked);
    int err = PM_OK;

    PM_TRY(pm_pick_all(&t->device->shared, &desc, picked));
    t->count = t->device->shared.pipelines.count;
    t->rows = pm_calloc(t->count, sizeof *t->rows);
    fill_rows(t, c, picked);
    for (size_t i = 0; i < t->count; i++)
        check_row(t, &t->rows[i]);
    check_levels(t, c, picked);
    if (!wish->unpacked) /* the limits are those of the machine's Mesa */
        check_bars(t);
    print_header(t);
    for (size_t i = 0; i < t->count; i++)
        if (!wish->listing) {
            print_row(t, &t->rows[i]);
        } else if (strcmp(t->rows[i].pipeline->shader->name, wish->listing) == 0) {
            print_row(t, &t->rows[i]);
            PM_TRY(executable_print(t->device, handle_of(t->rows[i].pipeline), stdout));
        }
    printf("%s: %zu pipelines of %zu calls and variants, %zu errors\n", t->driver->name, t->count,
           c->count, t->unsound);
    if (wish->csv)
        PM_TRY(write_csv(t, wish->csv));
    if (t->unsound > 0)
        PM_TRY(pm_fail(PM_EFAIL, "%s: %zu rules are broken (see above)", t->driver->name,
                       t->unsound));
out:
    pm_free(picked);
    return err;
}

/* Returns the exit code. */
static int compile_inside(const struct driver *d, const struct wish *wish)
{
    const struct pm_device_options options = { 0 };
    struct pm_device *device = NULL;
    struct pm_device_info info;
    struct calls c = { 0 };
    struct table t = { .driver = d, .rules = rules_find(d->rules) };
    int err = PM_OK;

    executable_capture();
    PM_TRY(find_device(d, &info));
    PM_TRY(pm_device_open(&info, &options, &device));
    t.device = (struct vk_device *)device;
    check_caps(&t, pm_device_get_info(device));
    PM_TRY(calls_add(&c, device));
    PM_TRY(check_pipelines(&t, &c, wish));
out:
    if (err < 0)
        printf("FAIL %s\n", pm_error_text());
    pm_free(t.rows);
    calls_free(&c);
    pm_device_close(&device);
    return err < 0;
}

/* Exit code 0: the driver shows a GPU. */
static int probe_inside(const struct driver *d, bool print)
{
    struct pm_device_info info;

    if (find_device(d, &info) < 0)
        return 1;
    if (print)
        printf("%-11s %s, %s\n", d->name, info.name, info.driver);
    return 0;
}

/* ---- drivers ---------------------------------------------------------------------------- */

static char *self;

static bool shows_gpu(const struct driver *d, enum driver_origin from, bool print)
{
    char *argv[] = { self, print ? "--inside-list" : "--inside-probe", (char *)d->name, NULL };

    return drivers_run(d, from, true, argv) == 0;
}

enum { SKIPPED = 77 };

/* Chooses the first origin that shows the GPU. Returns 0, 1 after a failure that it printed, or
 * SKIPPED with the reason printed. */
static int choose(const struct driver *d, bool unpacked, bool print, enum driver_origin *out)
{
    for (int from = unpacked ? DRIVER_UNPACKED : 0; from < DRIVER_ORIGINS; from++)
        if (drivers_have(d, from) && shows_gpu(d, from, print)) {
            *out = from;
            return 0;
        }
    if (drivers_have(d, DRIVER_UNPACKED)) {
        printf("FAIL %s: the unpacked driver shows no GPU\n", d->name);
        return 1;
    }
    printf("skipped %s: this machine's Mesa does not have it, and third_party/drivers.sh has "
           "unpacked no other\n", d->name);
    return SKIPPED;
}

static int run_driver(const struct driver *d, const struct wish *wish)
{
    char *argv[10] = { self, "--inside", (char *)d->name };
    enum driver_origin from = DRIVER_OWN;
    int n = 3, code = choose(d, wish->unpacked, false, &from);

    if (code)
        return code;
    if (wish->csv)
        argv[n++] = "--csv", argv[n++] = (char *)wish->csv;
    if (wish->unpacked)
        argv[n++] = "--unpacked";
    if (wish->listing)
        argv[n++] = "--listing", argv[n++] = (char *)wish->listing;
    return drivers_run(d, from, false, argv);
}

static int run_command(const char *name, char **command)
{
    const struct driver *d = drivers_find(name);
    enum driver_origin from = DRIVER_OWN;
    int code;

    if (!d) {
        fprintf(stderr, "no driver '%s'; compile --list names them\n", name);
        return 2;
    }
    code = choose(d, false, false, &from);
    return code ? code : drivers_run(d, from, false, command);
}

static bool none_is_fine(void)
{
    const char *text = getenv("PUMICE_NO_COMPILERS");

    return text && strcmp(text, "1") == 0;
}

/* Runs the drivers, or lists them when wish is NULL. names: NULL for all. */
static int run_drivers(char **names, int count, const struct wish *wish)
{
    int ran = 0, worst = 0;
    const struct driver *d;

    for (int i = 0; names ? i < count : drivers_at(i) != NULL; i++) {
        enum driver_origin from;
        int code;

        d = names ? drivers_find(names[i]) : drivers_at(i);
        if (!d || (wish && names && !rules_find(d->rules))) {
            fprintf(stderr, "no driver '%s' to compile with; known:", names[i]);
            for (int k = 0; (d = drivers_at(k)); k++)
                if (rules_find(d->rules))
                    fprintf(stderr, " %s", d->name);
            fprintf(stderr, "\n");
            return 2;
        }
        if (wish && !rules_find(d->rules))
            continue;
        code = wish ? run_driver(d, wish) : choose(d, false, true, &from);
        ran += code != SKIPPED;
        worst = worst == 1 || code == 1 ? 1 : code && code != SKIPPED ? code : worst;
    }
    if (ran > 0)
        return worst;
    if (!names && !none_is_fine()) {
        printf("FAIL: no driver is here, so nothing was compiled. ./dev setup installs Mesa; "
               "PUMICE_NO_COMPILERS=1 accepts a machine without drivers\n");
        return 1;
    }
    return SKIPPED;
}

static int usage(void)
{
    fprintf(stderr, "compile [--csv FOLDER] [--listing SHADER] [--unpacked] [DRIVER ...]\n"
                    "compile --list\n"
                    "compile --run DRIVER COMMAND ...\n");
    return 2;
}

/* Reads options from argv[i] on. Returns the index of the first argument that is none. */
static int read_options(int argc, char **argv, int i, struct wish *w)
{
    for (; i < argc; i++)
        if (strcmp(argv[i], "--csv") == 0 && i + 1 < argc)
            w->csv = argv[++i];
        else if (strcmp(argv[i], "--listing") == 0 && i + 1 < argc)
            w->listing = argv[++i];
        else if (strcmp(argv[i], "--unpacked") == 0)
            w->unpacked = true;
        else
            break;
    return i;
}

/* The commands of the processes that drivers_run starts. */
static int inside(int argc, char **argv)
{
    const struct driver *d = argc > 2 ? drivers_find(argv[2]) : NULL;
    struct wish wish = { 0 };

    if (!d)
        return usage();
    if (strcmp(argv[1], "--inside") != 0)
        return probe_inside(d, strcmp(argv[1], "--inside-list") == 0);
    return read_options(argc, argv, 3, &wish) < argc ? usage() : compile_inside(d, &wish);
}

int main(int argc, char **argv)
{
    struct wish wish = { 0 };
    int i;

    if (argc > 1 && strncmp(argv[1], "--inside", 8) == 0)
        return inside(argc, argv);
    self = realpath("/proc/self/exe", NULL);
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return run_drivers(NULL, 0, NULL);
    if (argc > 3 && strcmp(argv[1], "--run") == 0)
        return run_command(argv[2], argv + 3);
    i = read_options(argc, argv, 1, &wish);
    if (i < argc && argv[i][0] == '-')
        return usage();
    return run_drivers(i < argc ? argv + i : NULL, argc - i, &wish);
}
