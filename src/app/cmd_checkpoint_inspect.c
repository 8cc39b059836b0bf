/* pumice checkpoint inspect: lists every tensor of a checkpoint, of any format. */
#include "app/checkpoint_command.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

struct numbers {
    double norm, mean, min, max; /* of the finite ones */
    uint64_t not_finite;
};

static int measure(const struct pm_tensor_file *s, const struct pm_file_tensor *t,
                   struct numbers *out)
{
    int err = PM_OK;
    double v[APP_PIECE], squares = 0, sum = 0;
    uint64_t finite = 0;

    *out = (struct numbers){ .min = INFINITY, .max = -INFINITY };
    for (uint64_t at = 0; t->type != PM_DTYPE_OTHER && at < t->count;) {
        size_t n = t->count - at < APP_PIECE ? (size_t)(t->count - at) : APP_PIECE;
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
    cJSON_AddStringToObject(o, "dtype", pm_file_tensor_type(t));
    cJSON_AddItemToObject(o, "shape", shape_json(t));
    cJSON_AddNumberToObject(o, "count", (double)t->count);
    if (t->type == PM_DTYPE_OTHER)
        return o;
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

    pm_str_name(text, t->name, width);
    pm_str_add(text, "  %-6s %-16s %10llu", pm_file_tensor_type(t),
               pm_file_tensor_shape(t, shape), (unsigned long long)t->count);
    if (t->type != PM_DTYPE_OTHER)
        pm_str_add(text, "  %12.6g %12.6g %12.6g %12.6g", n->norm, n->mean, n->min, n->max);
    if (n->not_finite)
        pm_str_add(text, "  %llu NOT FINITE", (unsigned long long)n->not_finite);
    pm_str_add(text, "\n");
}

int app_checkpoint_width(const struct pm_tensor_file *f)
{
    size_t longest = 4;

    for (size_t i = 0; i < pm_tensor_file_count(f); i++) {
        size_t n = strlen(pm_tensor_file_get(f, i)->name);
        longest = n > longest ? n : longest;
    }
    return longest < 200 ? (int)longest : 200;
}

void app_checkpoint_step(struct pm_str *text, const struct pm_checkpoint *c)
{
    if (c->has_step)
        pm_str_add(text, ", step %llu", (unsigned long long)c->step);
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
    cJSON_AddStringToObject(o, "format", pm_tensor_file_format(c->tensors));
    cJSON_AddItemToObject(o, "step", c->has_step ? cJSON_CreateNumber((double)c->step)
                                                 : cJSON_CreateNull());
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
        pm_str_name(&text, c->path, 0);
        pm_str_add(&text, "\n%s", pm_tensor_file_format(c->tensors));
        app_checkpoint_step(&text, c);
        pm_str_add(&text, ", %zu %s%s, %llu %s, %s%s\n\n", count,
                   pm_plural((double)count, "tensor", "tensors"), of_them,
                   (unsigned long long)values, pm_plural((double)values, "value", "values"),
                   pm_bytes_text(pm_tensor_file_size(c->tensors), bytes),
                   c->state ? ", sha256 fits" : "");
        pm_str_add(&text, "%-*s  %-6s %-16s %10s  %12s %12s %12s %12s\n",
                   app_checkpoint_width(c->tensors), "name", "dtype", "shape", "count", "norm",
                   "mean", "min", "max");
        pm_str_add(&text, "%s", lines ? lines : "");
        err = app_print(text.text);
    }
    pm_str_free(&text);
    cJSON_Delete(o);
    return err;
}

int app_checkpoint_inspect(const struct app_args *args, struct pm_arena *a, struct app_globals *g)
{
    int err = PM_OK;
    struct pm_checkpoint *c = NULL;
    struct pm_str lines = { 0 };
    cJSON *list = cJSON_CreateArray();
    uint64_t values = 0;

    (void)a;
    if (args->words_count < 1 || args->words_count > 2 || args->overrides_count > 0)
        PM_TRY(pm_fail(PM_ECONFIG, "checkpoint inspect: takes a file or folder, and for a run's "
                                   "folder also a step, latest or best"));
    if (args->words_count == 2)
        PM_TRY(pm_checkpoint_open(args->words[0], args->words[1], "checkpoint inspect", &c));
    else
        PM_TRY(pm_checkpoint_open(NULL, args->words[0], "checkpoint inspect", &c));
    int width = app_checkpoint_width(c->tensors);
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
