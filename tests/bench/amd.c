/* amd: what AMD's compiler makes of every pipeline, measured without the card. Mesa's RADV has a
 * null device that compiles for a family of GPUs and runs nothing.
 *
 *     amd [--csv FOLDER] [--listing SHADER] [FAMILY ...]
 *
 * For each family (all five when none is named) it compiles every variant of every kernel call
 * of the layers' test cases and of the named nets' training steps. A pipeline that does not
 * compile, has spilled vector registers or needs scratch memory is an error (exit code 1). It
 * prints a line for each pipeline. --csv writes those that the nets use at their first choice to
 * FOLDER/amd-FAMILY.csv. --listing prints the machine code of one shader's pipelines. The exit
 * code is 77 when there is no null device. */
#include <pumice/plan.h>

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/executable.h"
#include "layers/check_run.h"
#include "optim/optimizer.h"

#define PM_LAYER(name) extern const struct pm_layer_test pm_test_##name;
#include "layers/layers.def"
#undef PM_LAYER

static const struct entry entries[] = {
#define PM_LAYER(name) { #name, &pm_test_##name },
#include "layers/layers.def"
#undef PM_LAYER
};

static const struct {
    const char *net;
    int batch, size, channels, classes;
    const char *optimizer, *options;
} nets[] = {
    { "resnet_v1_50", 32, 224, 3, 1000, "momentum", "" },
    { "resnet_v1_50", 8, 224, 3, 1000, "momentum", "" },
    { "mobilenet_v1", 32, 224, 3, 1000, "rmsprop", "" },
    { "cifarnet", 128, 32, 3, 10, "adam", "" },
    { "lenet", 128, 28, 1, 10, "sgd", "" },
    { "lenet", 128, 28, 1, 10, "adadelta", "" },
    { "lenet", 128, 28, 1, 10, "adagrad", "" },
    { "lenet", 128, 28, 1, 10, "adamw", "" },
    { "lenet", 128, 28, 1, 10, "ftrl", "" },
    { "lenet", 128, 28, 1, 10, "lamb", "" },
    { "lenet", 128, 28, 1, 10, "rmsprop", "centered=true" },
};

/* The calls and pipelines of a family, kept until its table is printed. */
struct bench {
    struct pm_device *device;
    struct subject **subjects;
    size_t subject_count, subject_capacity;
    struct pm_net *net[PM_COUNT(nets)];
    struct pm_variables *variables[PM_COUNT(nets)];
    struct pm_plan *plan[PM_COUNT(nets)];
    struct pm_bound_call *calls;
    size_t count, capacity;
    int *levels; /* has the same length */
    size_t level_capacity;
    size_t net_end[PM_COUNT(nets)]; /* calls of the nets come first: the index after each net's
                                     * last one */
};

/* ---- calls ------------------------------------------------------------------------------ */

/* Adds every variant level that the row offers for the call. */
static void add_call(struct bench *b, const struct pm_planned_call *c)
{
    static struct pm_picks picks;
    struct pm_bound_call call = { .kernel = c->kernel, .label = c->label, .count = c->count,
                                  .params = c->params };

    for (int i = 0; i < PM_MAX_BUFS; i++)
        call.buf[i].size = SIZE_MAX; /* accepts any size of scratch */
    for (int level = 0; level == 0 || (c->kernel->pick &&
         c->kernel->pick(pm_device_caps(b->device), c->params, c->count, level, &picks)); level++) {
        size_t count = b->count;

        PM_GROW(b->calls, b->count, b->capacity);
        PM_GROW(b->levels, count, b->level_capacity);
        b->levels[b->count] = level;
        b->calls[b->count++] = call;
    }
}

static int add_cases(struct bench *b)
{
    int err = PM_OK;
    const struct build_options o = { .backward = true, .update = true, .flag = 1,
                                     .calls_only = true };

    for (size_t e = 0; e < PM_COUNT(entries); e++)
        for (const struct check_case *c = entries[e].test->cases; c->options; c++) {
            struct subject *s;

            PM_GROW(b->subjects, b->subject_count, b->subject_capacity);
            err = subject_build(&entries[e], c, &o, &s);
            b->subjects[b->subject_count++] = s;
            PM_TRY(err);
            for (int i = 0; i < s->calls.call_count; i++)
                add_call(b, &s->calls.calls[i]);
        }
out:
    return err;
}

static int build_net(size_t n, struct pm_net **out)
{
    int err = PM_OK;
    const struct pm_net_row *row = pm_net_row_find(nets[n].net);
    struct pm_net *net = *out = pm_net_create();
    void *cfg = pm_arena_alloc(net->arena, row->cfg_size + 1);
    struct pm_heads heads = { 0 };
    struct pm_node *images, *labels;

    images = pm_net_input(net, "images", PM_SHAPE4(nets[n].batch, nets[n].size, nets[n].size,
                                                   nets[n].channels), PM_F32);
    labels = pm_net_input(net, "labels", PM_SHAPE1(nets[n].batch), PM_I32);
    if (row->opts)
        PM_TRY(pm_opts_parse(row->opts, NULL, NULL, cfg, net->arena, "model"));
    row->build(net, images, nets[n].classes, cfg, &heads);
    pm_net_add_many(net, "loss", (struct pm_node *[]){ pm_heads_main(&heads), labels }, 2,
                    "softmax_cross_entropy");
    err = net->error;
out:
    return err;
}

static int add_net(struct bench *b, size_t n)
{
    int err = PM_OK;
    const struct pm_optimizer *optimizer = pm_optimizer_find(nets[n].optimizer);
    const struct pm_planned_call *calls;
    struct pm_update update = { .optimizer = optimizer, .layers = true, .averages = true };
    struct pm_plan_options o = { .train = true, .loss_share = 1, .update = pm_update_append,
                                 .update_ctx = &update };
    void *cfg;
    size_t count;

    PM_TRY(build_net(n, &b->net[n]));
    cfg = pm_arena_alloc(b->net[n]->arena, optimizer->cfg_size + 1);
    PM_TRY(pm_opts_parse_text(optimizer->opts, nets[n].options, cfg, b->net[n]->arena, "optim"));
    update.cfg = cfg;
    PM_TRY(pm_variables_create(b->device, b->net[n], true,
                               pm_optimizer_slots(optimizer, cfg), &b->variables[n]));
    pm_variables_keep_averages(b->variables[n]);
    PM_TRY(pm_plan_create(b->net[n], b->device, b->variables[n], &o, &b->plan[n]));
    calls = pm_plan_calls(b->plan[n], &count);
    for (size_t i = 0; i < count; i++)
        add_call(b, &calls[i]);
out:
    return err;
}


/* ---- pipelines -------------------------------------------------------------------------- */

/* A pipeline and the first net or case that uses it. */
struct row {
    const struct vk_pipeline *pipeline;
    const struct pm_bound_call *call;
    const char *net, *variant; /* net: NULL when only test cases use it */
    int uses;                  /* calls of the nets that use it as their first choice */
    struct executable e;
};

static struct row *row_of(struct row *rows, const struct vk_device *d,
                          const struct vk_pipeline *p)
{
    for (size_t i = 0; i < d->pipelines.count; i++)
        if (d->pipelines.list[i] == p)
            return &rows[i];
    return NULL;
}

static const char *net_of(const struct bench *b, size_t call)
{
    size_t n = 0;

    while (n < PM_COUNT(nets) && call >= b->net_end[n])
        n++;
    return n < PM_COUNT(nets) ? nets[n].net : NULL;
}

/* One row per pipeline, in the order of their first use. */
static void fill_rows(const struct bench *b, const struct vk_picked *picked, struct row *rows)
{
    const struct vk_device *d = (const struct vk_device *)b->device;

    for (size_t i = 0; i < d->pipelines.count; i++)
        rows[i].pipeline = d->pipelines.list[i];
    for (size_t i = 0; i < b->count; i++)
        for (int k = 0; k < picked[i].picks.count; k++) {
            struct row *r = row_of(rows, d, picked[i].pipeline[k]);
            const char *net = net_of(b, i);
            bool first_choice = net && b->levels[i] == 0;

            if (!r->call || (first_choice && r->uses == 0)) {
                r->call = &b->calls[i];
                r->variant = picked[i].picks.variant;
                r->net = net;
            }
            r->uses += first_choice;
        }
}

/* Prints what is wrong with a row's pipeline; returns true when nothing is. */
static bool is_sound(struct vk_device *d, const char *family, struct row *r)
{
    const struct vk_pipeline *p = r->pipeline;
    const char *kernel = r->call ? r->call->kernel->name : "?";

    if (p->failed) {
        printf("FAIL %s: %s: %s\n", family, p->shader->name, p->why);
        return false;
    }
    if (executable_read(d, p->handle, &r->e) < 0) {
        printf("FAIL %s: %s: %s\n", family, p->shader->name, pm_error_text());
        return false;
    }
    /* A number that the driver does not report is -1 and proves nothing. */
    if (r->e.vgprs > 0 && r->e.spilled_vgprs == 0 && r->e.scratch == 0)
        return true;
    printf("FAIL %s: %s of %s, variant %s: %g vector registers, %g spilled, %g bytes of scratch "
           "memory; a smaller tile or fewer values alive at a time would do\n", family,
           p->shader->name, kernel, r->variant, r->e.vgprs, r->e.spilled_vgprs, r->e.scratch);
    return false;
}

/* ---- tables ----------------------------------------------------------------------------- */

static double share_of(const struct executable *e)
{
    return e->loop_vector > 0 ? (double)e->loop_fma / e->loop_vector : 0;
}

/* The specialization constants from number 3 on, as "128,64,16"; numbers 0 to 2 are the
 * workgroup. */
static const char *constants_of(const struct vk_pipeline *p, char *out, size_t size)
{
    size_t n = 0;

    out[0] = 0;
    for (int k = 0; k < p->specs && n < size; k++)
        n += (size_t)snprintf(out + n, size - n, "%s%u", k == 0 ? "" : k < 3 ? "x" : " ",
                              p->spec[k]);
    return out;
}

static void print_rows(const char *family, const struct row *rows, size_t count)
{
    char constants[256];

    printf("%-10s%6s%6s%6s%7s%6s%8s%8s%6s%10s  %s\n", "", "vgprs", "sgprs", "lds", "spilled",
           "waves", "instr.", "vector", "fma", "cycles", "shader, workgroup and constants");
    for (size_t i = 0; i < count; i++) {
        const struct executable *e = &rows[i].e;

        printf("%-10s%6g%6g%6g%7g%6g%8g%8g%6.2f%10g  %s %s\n", family, e->vgprs, e->sgprs, e->lds,
               e->spilled_sgprs, e->waves, e->instructions, e->vector, share_of(e), e->throughput,
               rows[i].pipeline->shader->name,
               constants_of(rows[i].pipeline, constants, sizeof constants));
    }
}

static int write_csv(const char *folder, const char *family, const char *driver,
                     const struct row *rows, size_t count)
{
    int err = PM_OK;
    struct pm_str s = { 0 }, path = { 0 };
    char constants[256];

    pm_str_add(&path, "%s/amd-%s.csv", folder, family);
    pm_str_add(&s, "# ./dev bench amd %s; %s\n"
               "# Pipelines of the nets' training steps. vgprs, sgprs, lds (bytes): registers and "
               "memory; waves: per SIMD; fma: share of the loop's vector instructions; cycles: the "
               "compiler's inverse throughput.\n"
               "kernel,variant,first used by,uses,shader,workgroup and constants,vgprs,sgprs,"
               "spilled sgprs,lds,waves,instructions,vector,fma,cycles\n", family, driver);
    for (size_t i = 0; i < count; i++) {
        const struct row *r = &rows[i];

        if (r->uses > 0)
            pm_str_add(&s, "%s,%s,%s %s,%d,%s,%s,%g,%g,%g,%g,%g,%g,%g,%.2f,%g\n",
                       r->call->kernel->name, r->variant, r->net, r->call->label, r->uses,
                       r->pipeline->shader->name,
                       constants_of(r->pipeline, constants, sizeof constants), r->e.vgprs,
                       r->e.sgprs, r->e.spilled_sgprs, r->e.lds, r->e.waves, r->e.instructions,
                       r->e.vector, share_of(&r->e), r->e.throughput);
    }
    PM_TRY(pm_file_write(path.text, s.text, s.length));
    printf("written: %s\n", path.text);
out:
    pm_str_free(&s);
    pm_str_free(&path);
    return err;
}

/* ---- families --------------------------------------------------------------------------- */

/* Makes the Vulkan loader use RADV only. */
static bool use_radv(void)
{
    static const char *const patterns[] = { "/usr/share/vulkan/icd.d/radeon_icd*.json",
                                            "/usr/local/share/vulkan/icd.d/radeon_icd*.json",
                                            "/etc/vulkan/icd.d/radeon_icd*.json" };
    bool found = false;

    for (size_t i = 0; i < PM_COUNT(patterns) && !found; i++) {
        glob_t g = { 0 };

        found = glob(patterns[i], 0, NULL, &g) == 0 && g.gl_pathc > 0;
        if (found) {
            setenv("VK_DRIVER_FILES", g.gl_pathv[0], 1);
            setenv("VK_ICD_FILENAMES", g.gl_pathv[0], 1); /* loaders older than 1.3.207 */
        }
        globfree(&g);
    }
    return found;
}

static int find_null_device(struct pm_device_info *out)
{
    struct pm_device_info *list = NULL;
    size_t count = 0;
    bool found = false;
    int err = pm_device_list(&list, &count);

    for (size_t i = 0; err == PM_OK && i < count && !found; i++)
        if (strstr(list[i].name, "Null hardware"))
            found = true, *out = list[i];
    pm_free(list);
    return err == PM_OK && found ? PM_OK : PM_EDEVICE;
}

/* True when this RADV supports the family. RADV ends the process for an unknown family, so a
 * child process asks. */
static bool knows(const char *family)
{
    struct pm_device_info info;
    int status = 0;
    pid_t child;

    setenv("RADV_FORCE_FAMILY", family, 1);
    fflush(stdout);
    if ((child = fork()) == 0)
        _exit(find_null_device(&info) == PM_OK ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* The families that are compiled when none is named, with their class. */
static const struct {
    const char *name;
    enum pm_class class;
} known[] = {
    { "polaris10", PM_CLASS_AMD_GCN }, { "vega20", PM_CLASS_AMD_GCN },
    { "navi21", PM_CLASS_AMD_RDNA },   { "navi31", PM_CLASS_AMD_RDNA },
    { "gfx1201", PM_CLASS_AMD_RDNA },
};

/* Variants are picked by these capabilities. Mesa versions differ in the families for which they
 * offer cooperative matrices; where they do, a tile is 16x16x16. */
static int check_caps(const char *family, const struct pm_device_info *info)
{
    const struct pm_caps *c = &info->caps;
    uint32_t side = strstr(info->features, "cooperative_matrix") ? 16 : 0;

    for (size_t i = 0; i < PM_COUNT(known); i++)
        if (strcmp(known[i].name, family) == 0 && c->device_class != known[i].class)
            return pm_fail(PM_EFAIL, "%s is taken for class %d, it is %d", family,
                           (int)c->device_class, (int)known[i].class);
    if (c->coopmat.m != side || c->coopmat.n != side || c->coopmat.k != side)
        return pm_fail(PM_EFAIL, "%s has cooperative matrices of %ux%ux%u, not %u", family,
                       c->coopmat.m, c->coopmat.n, c->coopmat.k, side);
    return PM_OK;
}

/* Opens the null device of a family. Returns 77 when this RADV has none. */
static int open_family(const char *family, struct pm_device **out)
{
    const struct pm_device_options options = { 0 };
    struct pm_device_info info;
    int err = PM_OK;

    if (!knows(family)) {
        printf("skipped: this machine's RADV has no null device for %s\n", family);
        return 77;
    }
    PM_TRY(find_null_device(&info));
    PM_TRY(pm_device_open(&info, &options, out));
    PM_TRY(check_caps(family, pm_device_get_info(*out)));
out:
    if (err < 0)
        printf("FAIL %s: %s\n", family, pm_error_text());
    return err < 0;
}

static void release(struct bench *b)
{
    for (size_t i = 0; i < b->subject_count; i++)
        subject_free(&b->subjects[i]);
    for (size_t n = 0; n < PM_COUNT(nets); n++) {
        pm_plan_destroy(&b->plan[n]);
        pm_variables_destroy(&b->variables[n]);
        pm_net_destroy(&b->net[n]);
    }
    pm_free(b->subjects);
    pm_free(b->calls);
    pm_free(b->levels);
    pm_device_close(&b->device);
}

/* The options of the command line. */
struct wish {
    const char *csv, *listing;
};

static int run_pipelines(struct bench *b, const char *family, const struct wish *wish)
{
    struct vk_device *d = (struct vk_device *)b->device;
    const struct pm_program_desc desc = { .calls = b->calls, .calls_count = b->count,
                                          .levels = b->levels };
    struct vk_picked *picked = pm_calloc(b->count, sizeof *picked);
    struct row *rows = NULL;
    size_t unsound = 0;
    int err = PM_OK;

    PM_TRY(pm_vk_pick_all(d, &desc, picked));
    rows = pm_calloc(d->pipelines.count, sizeof *rows);
    fill_rows(b, picked, rows);
    for (size_t i = 0; i < d->pipelines.count; i++)
        unsound += !is_sound(d, family, &rows[i]);
    for (size_t i = 0; wish->listing && i < d->pipelines.count; i++)
        if (strcmp(rows[i].pipeline->shader->name, wish->listing) == 0) {
            print_rows(family, &rows[i], 1);
            PM_TRY(executable_print(d, rows[i].pipeline->handle, stdout));
        }
    if (!wish->listing)
        print_rows(family, rows, d->pipelines.count);
    printf("%s: %zu pipelines of %zu calls and variants, %zu unsound\n", family,
           d->pipelines.count, b->count, unsound);
    if (unsound > 0)
        PM_TRY(pm_fail(PM_EFAIL, "%s: %zu pipelines do not compile, spill vector registers or want "
                       "scratch memory", family, unsound));
    if (wish->csv)
        PM_TRY(write_csv(wish->csv, family, b->device->info.driver, rows, d->pipelines.count));
out:
    pm_free(rows);
    pm_free(picked);
    return err;
}

static int run_family(const char *family, const struct wish *wish)
{
    struct bench b = { 0 };
    int err = PM_OK, code = open_family(family, &b.device);

    if (code) {
        release(&b);
        return code;
    }
    for (size_t n = 0; n < PM_COUNT(nets); n++) {
        PM_TRY(add_net(&b, n));
        b.net_end[n] = b.count;
    }
    PM_TRY(add_cases(&b));
    PM_TRY(run_pipelines(&b, family, wish));
out:
    if (err < 0)
        printf("FAIL %s\n", pm_error_text());
    release(&b);
    return err < 0;
}

int main(int argc, char **argv)
{
    struct wish wish = { 0 };
    int first = 1, count, worst = 0;

    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2)
        if (strcmp(argv[first], "--csv") == 0)
            wish.csv = argv[first + 1];
        else if (strcmp(argv[first], "--listing") == 0)
            wish.listing = argv[first + 1];
        else
            break;
    if (first < argc && argv[first][0] == '-') {
        fprintf(stderr, "amd [--csv FOLDER] [--listing SHADER] [FAMILY ...]\n");
        return 2;
    }
    if (!use_radv()) {
        printf("skipped: RADV is not installed (package mesa-vulkan-drivers)\n");
        return 77;
    }
    unsetenv("PM_VARIANT"); /* all variants are compiled in turn */
    executable_capture();
    count = first < argc ? argc - first : (int)PM_COUNT(known);
    for (int i = 0; i < count; i++) {
        int code = run_family(first < argc ? argv[first + i] : known[i].name, &wish);

        worst = worst == 1 || code == 1 ? 1 : code ? code : worst;
    }
    return worst;
}
