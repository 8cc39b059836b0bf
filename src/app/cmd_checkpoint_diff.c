/* pumice checkpoint diff: compares two checkpoints tensor by tensor. Their formats may differ. */
#include "app/checkpoint_command.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

struct difference {
    const char *name, *what;  /* "same", "values", "dtype", "shape", "only in A", "only in B" */
    double most, relative;    /* largest |a - b|; |a - b| / |a| in the 2-norm */
};

static bool same_shape(const struct pm_file_tensor *a, const struct pm_file_tensor *b)
{
    return a->rank == b->rank && a->count == b->count &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

/* Compares the bytes of tensors whose type is unknown. */
static int compare_bytes(const struct pm_tensor_file *a, const struct pm_file_tensor *ta,
                         const struct pm_tensor_file *b, const struct pm_file_tensor *tb,
                         bool *same)
{
    int err = PM_OK;
    char x[APP_PIECE], y[APP_PIECE];

    *same = ta->bytes == tb->bytes;
    for (uint64_t at = 0; *same && at < ta->bytes;) {
        size_t n = ta->bytes - at < APP_PIECE ? (size_t)(ta->bytes - at) : APP_PIECE;
        PM_TRY(pm_tensor_file_bytes(a, ta, at, n, x));
        PM_TRY(pm_tensor_file_bytes(b, tb, at, n, y));
        *same = memcmp(x, y, n) == 0;
        at += n;
    }
out:
    return err;
}

/* Compares numbers. NaN in both tensors at one place is equal; NaN in only one makes the difference
 * NaN. */
static int compare_numbers(const struct pm_tensor_file *a, const struct pm_file_tensor *ta,
                           const struct pm_tensor_file *b, const struct pm_file_tensor *tb,
                           struct difference *d)
{
    int err = PM_OK;
    double x[APP_PIECE], y[APP_PIECE], squares = 0, base = 0;
    bool same = true;

    for (uint64_t at = 0; at < ta->count;) {
        size_t n = ta->count - at < APP_PIECE ? (size_t)(ta->count - at) : APP_PIECE;
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

/* Adds a number. JSON has no infinity and no NaN, so both become null. */
static void add_number(cJSON *o, const char *name, double v)
{
    cJSON_AddItemToObject(o, name, isfinite(v) ? cJSON_CreateNumber(v) : cJSON_CreateNull());
}

struct report {
    cJSON *list;         /* the tensors that differ */
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
    pm_str_name(&r->lines, d->name, width);
    pm_str_add(&r->lines, "  %-10s", d->what);
    if (numbers)
        pm_str_add(&r->lines, "  max |a-b| %-12.6g  |a-b|/|a| %.6g", d->most, d->relative);
    pm_str_add(&r->lines, "\n");
}

/* Whether name is TensorFlow's step tensor and both checkpoints have the same step. In our format
 * the step is metadata, so this is no difference. */
static bool is_step(const struct pm_checkpoint *a, const struct pm_checkpoint *b, const char *name)
{
    return strcmp(name, "global_step") == 0 && a->has_step && b->has_step &&
           a->step == b->step;
}

/* Compares all tensors in one pass, because both lists are sorted by name. */
static int compare_all(const struct pm_checkpoint *x, const struct pm_checkpoint *y,
                       struct report *r)
{
    int err = PM_OK;
    const struct pm_tensor_file *a = x->tensors, *b = y->tensors;
    const int of_a = app_checkpoint_width(a), of_b = app_checkpoint_width(b);
    const int width = of_a > of_b ? of_a : of_b;

    for (size_t i = 0, k = 0; i < pm_tensor_file_count(a) || k < pm_tensor_file_count(b);) {
        const struct pm_file_tensor *ta =
            i < pm_tensor_file_count(a) ? pm_tensor_file_get(a, i) : NULL;
        const struct pm_file_tensor *tb =
            k < pm_tensor_file_count(b) ? pm_tensor_file_get(b, k) : NULL;
        int order = !ta ? 1 : !tb ? -1 : strcmp(ta->name, tb->name);
        struct difference d;
        PM_TRY(compare(a, order <= 0 ? ta : NULL, b, order >= 0 ? tb : NULL, &d));
        if (order == 0 || !is_step(x, y, d.name))
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
        pm_str_add(&text, "A ");
        pm_str_name(&text, a->path, 0);
        app_checkpoint_step(&text, a);
        pm_str_add(&text, "\nB ");
        pm_str_name(&text, b->path, 0);
        app_checkpoint_step(&text, b);
        pm_str_add(&text, "\n%s%zu %s the same, %zu %s\n", r->lines.text ? r->lines.text : "",
                   r->same, pm_plural((double)r->same, "tensor is", "tensors are"), r->different,
                   pm_plural((double)r->different, "differs", "differ"));
        err = app_print(text.text);
    }
    pm_str_free(&text);
    cJSON_Delete(o);
    return err;
}

int app_checkpoint_diff(const struct app_args *args, struct pm_arena *a, struct app_globals *g)
{
    int err = PM_OK;
    struct pm_checkpoint *x = NULL, *y = NULL;
    struct report r = { .list = cJSON_CreateArray() };

    (void)a;
    if (args->words_count != 2 || args->overrides_count > 0)
        PM_TRY(pm_fail(PM_ECONFIG, "checkpoint diff: takes two files or folders, %d given",
                       args->words_count));
    PM_TRY(pm_checkpoint_open(NULL, args->words[0], "checkpoint diff", &x));
    PM_TRY(pm_checkpoint_open(NULL, args->words[1], "checkpoint diff", &y));
    PM_TRY(compare_all(x, y, &r));
    PM_TRY(print_report(x, y, &r, g));
    err = r.different > 0;
out:
    cJSON_Delete(r.list);
    pm_str_free(&r.lines);
    pm_checkpoint_close(&x);
    pm_checkpoint_close(&y);
    return err;
}
