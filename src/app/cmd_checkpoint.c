/* pumice checkpoint: what is in a checkpoint, and how two differ. */
#include "app/app.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include <pumice/checkpoint.h>

enum { PIECE = 4096 }; /* elements read at a time */

/* ---- inspect --------------------------------------------------------------------------- */

struct numbers {
    double norm, mean, min, max; /* of the finite ones */
    uint64_t not_finite;
};

static int measure(const struct pm_tensor_file *s, const struct pm_file_tensor *t,
                   struct numbers *out)
{
    int err = PM_OK;
    double v[PIECE], squares = 0, sum = 0;
    uint64_t finite = 0;

    *out = (struct numbers){ .min = INFINITY, .max = -INFINITY };
    for (uint64_t at = 0; t->type != PM_DTYPE_OTHER && at < t->count;) {
        size_t n = t->count - at < PIECE ? (size_t)(t->count - at) : PIECE;
        PM_TRY(pm_tensor_file_doubles(s, t, at, n, v));
        for (size_t i = 0; i < n; i++) {
            if (!isfinite(v[i])) {
                out->not_finite++;
                continue;
            }
            finite++;
            squares += v[i] * v[i];
            sum += v[i];
            out->min = fmin(out->min, v[i]);
            out->max = fmax(out->max, v[i]);
        }
        at += n;
    }
    out->norm = sqrt(squares);
    out->mean = finite ? sum / (double)finite : 0;
    if (!finite)
        out->min = out->max = 0;
out:
    return err;
}

static cJSON *shape_json(const struct pm_file_tensor *t)
{
    cJSON *list = cJSON_CreateArray();

    for (int i = 0; i < t->rank; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)t->dim[i]));
    return list;
}

static cJSON *tensor_json(const struct pm_file_tensor *t, const struct numbers *n)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", t->name);
    cJSON_AddStringToObject(o, "dtype", pm_dtype_name(t->type));
    cJSON_AddItemToObject(o, "shape", shape_json(t));
    cJSON_AddNumberToObject(o, "count", (double)t->count);
    cJSON_AddNumberToObject(o, "norm", n->norm);
    cJSON_AddNumberToObject(o, "mean", n->mean);
    cJSON_AddNumberToObject(o, "min", n->min);
    cJSON_AddNumberToObject(o, "max", n->max);
    cJSON_AddNumberToObject(o, "not_finite", (double)n->not_finite);
    return o;
}

static void add_tensor_line(struct pm_str *text, int width, const struct pm_file_tensor *t,
                            const struct numbers *n)
{
    char shape[96];

    pm_str_add(text, "%-*s  %-5s %-16s %10llu  %12.6g %12.6g %12.6g %12.6g", width, t->name,
               pm_dtype_name(t->type), pm_file_tensor_shape(t, shape),
               (unsigned long long)t->count, n->norm, n->mean, n->min, n->max);
    if (n->not_finite)
        pm_str_add(text, "  %llu NOT FINITE", (unsigned long long)n->not_finite);
    pm_str_add(text, "\n");
}

static int longest_name(const struct pm_tensor_file *s)
{
    size_t longest = 4;

    for (size_t i = 0; i < pm_tensor_file_count(s); i++) {
        size_t n = strlen(pm_tensor_file_get(s, i)->name);
        longest = n > longest ? n : longest;
    }
    return longest < 200 ? (int)longest : 200;
}

static int print_inspection(const struct pm_checkpoint *c, struct app_globals *g, cJSON *list,
                            const char *lines, uint64_t values)
{
    int err;
    char bytes[24];
    struct pm_str text = { 0 };
    cJSON *o = cJSON_CreateObject(), *state = c->state ? cJSON_Parse(c->state) : NULL;
    size_t count = pm_tensor_file_count(c->tensors), averages = pm_checkpoint_averages(c);
    char of_them[64] = "";

    if (averages)
        snprintf(of_them, sizeof of_them, " (%zu of them moving averages)", averages);
    cJSON_AddStringToObject(o, "file", c->path);
    cJSON_AddNumberToObject(o, "step", (double)c->step);
    cJSON_AddNumberToObject(o, "bytes", (double)pm_tensor_file_size(c->tensors));
    cJSON_AddNumberToObject(o, "count", (double)count);
    cJSON_AddNumberToObject(o, "averages", (double)averages);
    cJSON_AddNumberToObject(o, "values", (double)values);
    cJSON_AddBoolToObject(o, "sha256_checked", c->state != NULL);
    cJSON_AddItemReferenceToObject(o, "tensors", list);
    cJSON_AddItemToObject(o, "state", state ? state : cJSON_CreateNull());
    if (g->json) {
        err = app_print_json(g, o);
    } else {
        pm_str_add(&text, "%s\nstep %llu, %zu tensors%s, %llu values, %s, %s\n\n", c->path,
                   (unsigned long long)c->step, count, of_them, (unsigned long long)values,
                   pm_bytes_text(pm_tensor_file_size(c->tensors), bytes),
                   c->state ? "sha256 fits" : "no .json beside it, sha256 not checked");
        pm_str_add(&text, "%-*s  %-5s %-16s %10s  %12s %12s %12s %12s\n",
                   longest_name(c->tensors), "name", "dtype", "shape", "count", "norm", "mean",
                   "min", "max");
        pm_str_add(&text, "%s", lines ? lines : "");
        err = app_print(text.text);
    }
    pm_str_free(&text);
    cJSON_Delete(o);
    return err;
}

static int inspect(const struct app_args *args, struct app_globals *g)
{
    int err = PM_OK;
    struct pm_checkpoint *c = NULL;
    struct pm_str lines = { 0 };
    cJSON *list = cJSON_CreateArray();
    uint64_t values = 0;

    if (args->words_count < 1 || args->words_count > 2)
        PM_TRY(pm_fail(PM_ECONFIG, "checkpoint inspect: takes a file or a run's folder, and for a "
                                   "folder also a step, latest or best"));
    if (args->words_count == 2)
        PM_TRY(pm_checkpoint_open(args->words[0], args->words[1], "checkpoint inspect", &c));
    else
        PM_TRY(pm_checkpoint_open(NULL, args->words[0], "checkpoint inspect", &c));
    int width = longest_name(c->tensors);
    for (size_t i = 0; i < pm_tensor_file_count(c->tensors); i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(c->tensors, i);
        struct numbers n;
        PM_TRY(measure(c->tensors, t, &n));
        cJSON_AddItemToArray(list, tensor_json(t, &n));
        add_tensor_line(&lines, width, t, &n);
        values += t->count;
    }
    PM_TRY(print_inspection(c, g, list, lines.text, values));
out:
    cJSON_Delete(list);
    pm_str_free(&lines);
    pm_checkpoint_close(&c);
    return err;
}

/* ---- diff ------------------------------------------------------------------------------ */

struct difference {
    const char *name, *what;  /* "same", "values", "dtype", "shape", "only in A", "only in B" */
    double most, relative;    /* largest |a - b|; |a - b| / |a| in the 2-norm */
};

static bool same_shape(const struct pm_file_tensor *a, const struct pm_file_tensor *b)
{
    return a->rank == b->rank && a->count == b->count &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

/* Bytes of tensors whose type is not known. */
static int compare_bytes(const struct pm_tensor_file *a, const struct pm_file_tensor *ta,
                         const struct pm_tensor_file *b, const struct pm_file_tensor *tb, bool *same)
{
    int err = PM_OK;
    char x[PIECE], y[PIECE];

    *same = ta->bytes == tb->bytes;
    for (uint64_t at = 0; *same && at < ta->bytes;) {
        size_t n = ta->bytes - at < PIECE ? (size_t)(ta->bytes - at) : PIECE;
        PM_TRY(pm_tensor_file_bytes(a, ta, at, n, x));
        PM_TRY(pm_tensor_file_bytes(b, tb, at, n, y));
        *same = memcmp(x, y, n) == 0;
        at += n;
    }
out:
    return err;
}

/* Two NaNs at one place count as equal; one alone makes the difference NaN. */
static int compare_numbers(const struct pm_tensor_file *a, const struct pm_file_tensor *ta,
                           const struct pm_tensor_file *b, const struct pm_file_tensor *tb,
                           struct difference *d)
{
    int err = PM_OK;
    double x[PIECE], y[PIECE], squares = 0, base = 0;
    bool same = true;

    for (uint64_t at = 0; at < ta->count;) {
        size_t n = ta->count - at < PIECE ? (size_t)(ta->count - at) : PIECE;
        PM_TRY(pm_tensor_file_doubles(a, ta, at, n, x));
        PM_TRY(pm_tensor_file_doubles(b, tb, at, n, y));
        for (size_t i = 0; i < n; i++) {
            double gap = x[i] == y[i] || (isnan(x[i]) && isnan(y[i])) ? 0 : fabs(x[i] - y[i]);
            same = same && gap == 0;
            d->most = gap > d->most || isnan(gap) ? gap : d->most;
            squares += gap * gap;
            base += isfinite(x[i]) ? x[i] * x[i] : 0;
        }
        at += n;
    }
    d->relative = squares == 0 ? 0 : sqrt(squares) / sqrt(base);
    if (!same)
        d->what = "values";
out:
    return err;
}

static int compare(const struct pm_tensor_file *a, const struct pm_file_tensor *ta,
                   const struct pm_tensor_file *b, const struct pm_file_tensor *tb,
                   struct difference *d)
{
    int err = PM_OK;
    bool same;

    *d = (struct difference){ .what = "same" };
    if (ta)
        d->name = ta->name;
    else if (tb)
        d->name = tb->name;
    if (!tb)
        d->what = "only in A";
    else if (!ta)
        d->what = "only in B";
    else if (!same_shape(ta, tb))
        d->what = "shape";
    else if (ta->type == PM_DTYPE_OTHER || tb->type == PM_DTYPE_OTHER) {
        PM_TRY(compare_bytes(a, ta, b, tb, &same));
        d->what = ta->type != tb->type ? "dtype" : same ? "same" : "values";
    } else {
        PM_TRY(compare_numbers(a, ta, b, tb, d));
        if (ta->type != tb->type)
            d->what = "dtype";
    }
out:
    return err;
}

/* JSON has no infinities: null stands for them and for NaN. */
static void add_number(cJSON *o, const char *name, double v)
{
    cJSON_AddItemToObject(o, name, isfinite(v) ? cJSON_CreateNumber(v) : cJSON_CreateNull());
}

struct report {
    cJSON *list;         /* of those that differ */
    struct pm_str lines; /* the same as text */
    size_t same, different;
    double most;
};

static void report_one(struct report *r, const struct difference *d, int width)
{
    bool numbers = strcmp(d->what, "values") == 0 || strcmp(d->what, "dtype") == 0;

    if (strcmp(d->what, "same") == 0) {
        r->same++;
        return;
    }
    r->different++;
    r->most = d->most > r->most || isnan(d->most) ? d->most : r->most;
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", d->name);
    cJSON_AddStringToObject(o, "difference", d->what);
    if (numbers) {
        add_number(o, "max_abs_diff", d->most);
        add_number(o, "relative_norm", d->relative);
    }
    cJSON_AddItemToArray(r->list, o);
    pm_str_add(&r->lines, "%-*s  %-10s", width, d->name, d->what);
    if (numbers)
        pm_str_add(&r->lines, "  max |a-b| %-12.6g  |a-b|/|a| %.6g", d->most, d->relative);
    pm_str_add(&r->lines, "\n");
}

/* Both lists are sorted by name: one walk over the two. */
static int compare_all(const struct pm_tensor_file *a, const struct pm_tensor_file *b,
                       struct report *r)
{
    int err = PM_OK;
    int width = longest_name(a) > longest_name(b) ? longest_name(a) : longest_name(b);

    for (size_t i = 0, k = 0; i < pm_tensor_file_count(a) || k < pm_tensor_file_count(b);) {
        const struct pm_file_tensor *ta =
            i < pm_tensor_file_count(a) ? pm_tensor_file_get(a, i) : NULL;
        const struct pm_file_tensor *tb =
            k < pm_tensor_file_count(b) ? pm_tensor_file_get(b, k) : NULL;
        int order = !ta ? 1 : !tb ? -1 : strcmp(ta->name, tb->name);
        struct difference d;
        PM_TRY(compare(a, order <= 0 ? ta : NULL, b, order >= 0 ? tb : NULL, &d));
        report_one(r, &d, width);
        i += order <= 0;
        k += order >= 0;
    }
out:
    return err;
}

static int print_report(const struct pm_checkpoint *a, const struct pm_checkpoint *b,
                        struct report *r, struct app_globals *g)
{
    int err;
    cJSON *o = cJSON_CreateObject();
    struct pm_str text = { 0 };

    cJSON_AddStringToObject(o, "a", a->path);
    cJSON_AddStringToObject(o, "b", b->path);
    cJSON_AddBoolToObject(o, "equal", r->different == 0);
    cJSON_AddNumberToObject(o, "same", (double)r->same);
    cJSON_AddNumberToObject(o, "different", (double)r->different);
    add_number(o, "max_abs_diff", r->most);
    cJSON_AddItemReferenceToObject(o, "tensors", r->list);
    if (g->json) {
        err = app_print_json(g, o);
    } else {
        pm_str_add(&text, "A %s, step %llu\nB %s, step %llu\n%s%zu tensors are the same, %zu differ\n",
                   a->path, (unsigned long long)a->step, b->path, (unsigned long long)b->step,
                   r->lines.text ? r->lines.text : "", r->same, r->different);
        err = app_print(text.text);
    }
    pm_str_free(&text);
    cJSON_Delete(o);
    return err;
}

static int diff(const struct app_args *args, struct app_globals *g)
{
    int err = PM_OK;
    struct pm_checkpoint *a = NULL, *b = NULL;
    struct report r = { .list = cJSON_CreateArray() };

    if (args->words_count != 2)
        PM_TRY(pm_fail(PM_ECONFIG, "checkpoint diff: takes two files or runs' folders, %d given",
                       args->words_count));
    PM_TRY(pm_checkpoint_open(NULL, args->words[0], "checkpoint diff", &a));
    PM_TRY(pm_checkpoint_open(NULL, args->words[1], "checkpoint diff", &b));
    PM_TRY(compare_all(a->tensors, b->tensors, &r));
    PM_TRY(print_report(a, b, &r, g));
    err = r.different > 0;
out:
    cJSON_Delete(r.list);
    pm_str_free(&r.lines);
    pm_checkpoint_close(&a);
    pm_checkpoint_close(&b);
    return err;
}

/* ---- the command ----------------------------------------------------------------------- */

static int run(int argc, char **argv, struct app_globals *g)
{
    int err = PM_OK;
    struct pm_arena *arena = pm_arena_create();
    struct app_args args = { 0 };
    const char *what = argc > 0 ? argv[0] : "";
    bool is_diff = strcmp(what, "diff") == 0;

    if (!is_diff && strcmp(what, "inspect") != 0)
        PM_TRY(pm_fail(PM_ECONFIG, "checkpoint: '%s' is not inspect or diff", what));
    PM_TRY(app_args(argc - 1, argv + 1, is_diff ? "checkpoint diff" : "checkpoint inspect", arena,
                    &args));
    PM_TRY(is_diff ? diff(&args, g) : inspect(&args, g));
out:
    pm_arena_destroy(&arena);
    return err;
}

const struct pm_command pm_command_checkpoint = {
    .name = "checkpoint",
    .help = "what a checkpoint holds, and how two differ",
    .usage = "inspect FILE\ninspect RUN [STEP | latest | best]\ndiff A B",
    .details =
        "inspect lists every tensor: type, shape, count, norm, mean, least and greatest value.\n"
        "diff compares two files or the newest checkpoints of two runs' folders, tensor by\n"
        "tensor, and exits with 1 when anything differs.\n"
        "\n"
        "    pumice checkpoint inspect runs/lenet_mnist best\n"
        "    pumice checkpoint diff runs/a/checkpoints/step-000500.safetensors runs/b\n",
    .run = run,
};
