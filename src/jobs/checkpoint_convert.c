/* checkpoint_convert: writes a checkpoint's tensors to a file of another program's format. It first
 * lists the tensors to write. Their elements are read when the writer requests them. */
#include "checkpoints/warm_start.h"
#include "optim/averages.h"
#include "experiment/experiment.h"

#include <pumice/names.h>
#include <pumice/train.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

const struct pm_opt pm_checkpoint_conversion_opts[] = {
    PM_ENUM(pm_checkpoint_conversion, to, PM_CONVERT_BY_NAME, "auto|safetensors|tensorflow",
            "format; auto = by DST's ending: .safetensors, or .ckpt, .ckpt-NUMBER, .index of a "
            "TensorFlow V2 checkpoint, whose prefix DST is"),
    PM_STRING(pm_checkpoint_conversion, net, NULL,
              "a config: first changes PyTorch's names and layouts to those of the config's net"),
    PM_ENUM(pm_checkpoint_conversion, names, PM_CONVERT_NAMES_SAME, "same|slim|inception_trainer",
            "names of inception_v3's variables: slim = from those of the Inception trainer to "
            "TF-Slim's, which Pumice uses; inception_trainer = the other way"),
    PM_STRINGS(pm_checkpoint_conversion, only, NULL,
               "prefixes of the names that are written; none = all"),
    PM_STRINGS(pm_checkpoint_conversion, exclude, NULL,
               "prefixes of the names that are left out"),
    PM_STRING(pm_checkpoint_conversion, strip, NULL,
              "prefix that is removed from names"),
    PM_STRING(pm_checkpoint_conversion, prefix, NULL,
              "prefix that is added to every name, after strip"),
    PM_ENUM(pm_checkpoint_conversion, averages, PM_AVERAGES_OFF, "auto|on|off",
            "moving averages become the variables' values, and no averages are written"),
    PM_ENUM(pm_checkpoint_conversion, keep, PM_CONVERT_ALL, "all|variables",
            "variables = without optimizer slots, moving averages and counters"),
    PM_ENUM(pm_checkpoint_conversion, dtype, PM_CONVERT_SAME, "same|f32",
            "f32 = 16-bit and 64-bit floating point becomes 32-bit"),
    PM_BOOL(pm_checkpoint_conversion, force, false, "replace an existing DST"),
    { 0 },
};

struct source { /* of a tensor to write */
    const struct pm_tensor_file *f;
    const struct pm_file_tensor *t;
};

struct conversion {
    struct pm_arena *arena; /* owned */
    const struct pm_checkpoint *from;
    const struct pm_checkpoint_conversion *o;
    bool averages;
    struct pm_file_tensor *list; /* owned */
    struct pm_converted *out;
};

/* ---- tensors to write ------------------------------------------------------------------- */

static int fill(const struct pm_file_tensor *t, void *dst)
{
    const struct source *s = t->from;

    if (t->type == s->t->type)
        return pm_tensor_file_bytes(s->f, s->t, 0, (size_t)s->t->bytes, dst);
    return pm_tensor_file_floats(s->f, s->t, 0, (size_t)s->t->count, dst);
}

static bool begins(const char *name, const struct pm_strings *scopes)
{
    for (int i = 0; i < scopes->count; i++)
        if (strncmp(name, scopes->v[i], strlen(scopes->v[i])) == 0)
            return true;
    return false;
}

/* Returns a variable's average if averages are wanted and the variable has one, else the
 * variable. */
static const struct pm_file_tensor *value_of(const struct conversion *c,
                                             const struct pm_file_tensor *t)
{
    const char *name = pm_arena_printf(c->arena, "%s/" PM_AVERAGE_SUFFIX, t->name);
    const struct pm_file_tensor *average = c->averages ? pm_tensor_file_find(c->from->tensors, name)
                                                       : NULL;

    return average ? average : t;
}

static const char *name_of(const struct conversion *c, const char *name)
{
    const char *strip = c->o->strip;
    const size_t n = strip ? strlen(strip) : 0;

    if (n && strncmp(name, strip, n) == 0)
        name += n;
    return c->o->prefix ? pm_arena_printf(c->arena, "%s%s", c->o->prefix, name) : name;
}

static bool is_wanted(const struct conversion *c, const struct pm_file_tensor *t)
{
    const enum pm_role role = pm_checkpoint_role(c->from, t);

    if (c->o->only.count && !begins(t->name, &c->o->only))
        return false;
    if (begins(t->name, &c->o->exclude) || t->type == PM_DTYPE_OTHER)
        return false;
    if (role == PM_ROLE_AVERAGE && c->averages)
        return false;
    return c->o->keep == PM_CONVERT_ALL || role == PM_ROLE_VARIABLE;
}

static bool is_step(const struct pm_file_tensor *t)
{
    return t->rank == 0 && strcmp(t->name, "global_step") == 0;
}

static enum pm_dtype type_of(const struct conversion *c, enum pm_dtype t)
{
    const bool floating = t == PM_DTYPE_F64 || t == PM_DTYPE_F16 || t == PM_DTYPE_BF16;

    return c->o->dtype == PM_CONVERT_F32 && floating ? PM_DTYPE_F32 : t;
}

static void add(struct conversion *c, const struct pm_file_tensor *t)
{
    struct source *s = pm_arena_alloc(c->arena, sizeof *s);
    struct pm_file_tensor *to = &c->list[c->out->tensors++];

    *s = (struct source){ c->from->tensors, value_of(c, t) };
    *to = *s->t;
    to->name = name_of(c, t->name);
    to->type = type_of(c, s->t->type);
    to->data = NULL;
    to->fill = fill;
    to->from = s;
}

static int by_name(const void *a, const void *b)
{
    const struct pm_file_tensor *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static int list_tensors(struct conversion *c)
{
    const size_t all = pm_tensor_file_count(c->from->tensors);
    const char *path = c->from->path;

    c->list = pm_calloc(all + 4, sizeof *c->list); /* and the step and Adam's powers */
    for (size_t i = 0; i < all; i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(c->from->tensors, i);

        c->out->texts += t->type == PM_DTYPE_OTHER;
        if (is_step(t))
            continue;
        if (is_wanted(c, t))
            add(c, t);
        else
            c->out->left_out++;
    }
    /* A checkpoint that holds only the step is written, because every format has the step. */
    if (c->out->tensors == 0 && (c->out->left_out > 0 || !c->from->has_step))
        return pm_fail(PM_EDATA, "%s: only, exclude and keep select none of its %zu tensors", path,
                       all);
    qsort(c->list, c->out->tensors, sizeof *c->list, by_name);
    for (size_t i = 0; i < c->out->tensors; i++) {
        if (!c->list[i].name[0])
            return pm_fail(PM_ECONFIG,
                           "checkpoint convert: strip=%s removes the whole name of a tensor",
                           c->o->strip);
        if (i > 0 && by_name(&c->list[i - 1], &c->list[i]) == 0)
            return pm_fail(PM_ECONFIG,
                           "checkpoint convert: two tensors would be named '%s' (strip, "
                           "prefix)",
                           c->list[i].name);
    }
    return PM_OK;
}

/* ---- PyTorch's names -------------------------------------------------------------------- */

/* Translates the names by the net that is trained, with its auxiliary heads. */
static int translate(struct pm_checkpoint *from, const char *file, struct pm_arena *a)
{
    const struct pm_open_sections open = pm_train_choices(a);
    struct pm_config *config = NULL;
    struct pm_experiment *e = NULL;
    struct pm_net *net = NULL;
    struct pm_variables *v = NULL;
    int err = PM_OK;

    PM_TRY(pm_config_load(file, NULL, 0, &open, &config));
    if (!pm_names_are_torch(from->tensors))
        PM_TRY(pm_fail(PM_ECONFIG,
                       "checkpoint convert: net=%s: the names in %s are not PyTorch's; remove net",
                       file, from->path));
    PM_TRY(pm_experiment_open(config, pm_experiment_if_there(config, PM_OPEN_TRAIN), &e));
    PM_TRY(pm_experiment_net(e, (struct pm_net_want){ PM_USE_TRAIN, 1, 0, 0 }, &net, NULL));
    PM_TRY(pm_variables_create(NULL, net, false, NULL, &v)); /* only its list is used */
    PM_TRY(pm_names_torch(v, from->tensors, &from->tensors));
out:
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    pm_experiment_close(&e);
    pm_config_destroy(&config);
    return err;
}

/* Changes names between TF-Slim's and the Inception trainer's. */
static int rename_tensors(struct pm_checkpoint *from, int names)
{
    if (names == PM_CONVERT_NAMES_SAME)
        return PM_OK;
    if (names == PM_CONVERT_NAMES_TRAINER)
        return pm_names_to_inception_trainer(from->tensors, &from->tensors);
    if (!pm_names_are_inception_trainer(from->tensors))
        return pm_fail(PM_EDATA,
                       "checkpoint convert: names=slim: the names in %s are not the Inception "
                       "trainer's (there is no tensor 'conv0/weights'); remove names",
                       from->path);
    return pm_names_from_inception_trainer(from->tensors, &from->tensors);
}

/* ---- formats ---------------------------------------------------------------------------- */

#define STEP_TYPE "step_dtype" /* name of the note in safetensors */

/* Returns the type of the step. TensorFlow's own programs make global_step an int64. If it was an
 * int32, it stays an int32, because a program whose variable is an int32 cannot read an int64. In
 * safetensors a note keeps this type. */
static enum pm_dtype step_type(const struct pm_checkpoint *from)
{
    const struct pm_file_tensor *t = pm_tensor_file_find(from->tensors, "global_step");
    const char *note = pm_tensor_file_meta(from->tensors, STEP_TYPE);
    const bool was_short = t ? t->type == PM_DTYPE_I32 : note && strcmp(note, "int32") == 0;

    return was_short && from->step <= INT32_MAX ? PM_DTYPE_I32 : PM_DTYPE_I64;
}

/* Notes of a file of the same format are kept; other formats get only the step. */
static int write_safetensors(const struct conversion *c, const char *dst)
{
    const struct pm_tensor_file *f = c->from->tensors;
    const bool same = strcmp(pm_tensor_file_format(f), "safetensors") == 0;
    const char *key, *value, **meta;
    size_t count = 0, n = 0;
    int err;

    while (pm_tensor_file_meta_at(f, count, &key, &value))
        count++;
    meta = pm_calloc(2 * count + 7, sizeof *meta);
    for (size_t i = 0; same && pm_tensor_file_meta_at(f, i, &key, &value); i++)
        meta[n++] = key, meta[n++] = value;
    if (!same)
        meta[n++] = "format", meta[n++] = "pumice";
    if (c->from->has_step && (!same || !pm_tensor_file_meta(f, "step"))) {
        meta[n++] = "step";
        meta[n++] = pm_arena_printf(c->arena, "%llu", (unsigned long long)c->from->step);
    }
    if (c->from->has_step && step_type(c->from) == PM_DTYPE_I32 &&
        (!same || !pm_tensor_file_meta(f, STEP_TYPE)))
        meta[n++] = STEP_TYPE, meta[n++] = "int32";
    err = pm_safetensors_write(dst, c->list, c->out->tensors, n ? meta : NULL, NULL);
    pm_free(meta);
    return err;
}

/* Adds the powers of Adam's decays, as TensorFlow computes them: a float that starts at beta and is
 * multiplied by it after each update. Numbers too small for a normal float become 0 there. */
static void add_powers(const struct conversion *c, float power[2], size_t *count)
{
    static const struct { const char *note, *name; } rows[2] = {
        { PM_BETA1_NOTE, "beta1_power" }, { PM_BETA2_NOTE, "beta2_power" },
    };

    for (int k = 0; k < 2; k++) {
        const char *note = pm_tensor_file_meta(c->from->tensors, rows[k].note);
        const float beta = note ? strtof(note, NULL) : 0;

        if (!note || c->o->keep != PM_CONVERT_ALL || !c->from->has_step ||
            pm_tensor_file_find(c->from->tensors, rows[k].name) ||
            (c->o->only.count && !begins(rows[k].name, &c->o->only)) ||
            begins(rows[k].name, &c->o->exclude))
            continue;
        power[k] = beta;
        for (uint64_t i = 0; i < c->from->step && power[k] > 0; i++) {
            power[k] *= beta;
            power[k] = power[k] < FLT_MIN ? 0 : power[k];
        }
        c->list[(*count)++] = (struct pm_file_tensor){ .name = rows[k].name, .type = PM_DTYPE_F32,
                                                      .data = &power[k] };
    }
}

/* Writes global_step anew, because TensorFlow's programs require it. A file `checkpoint` that names
 * other checkpoints is kept. */
static int write_tensorflow(const struct conversion *c, const char *dst)
{
    float power[2];
    const int64_t step = (int64_t)c->from->step;
    const int32_t short_step = (int32_t)c->from->step;
    const bool is_short = step_type(c->from) == PM_DTYPE_I32;
    const char *slash = strrchr(dst, '/');
    const char *state =
        pm_arena_printf(c->arena, "%.*scheckpoint", slash ? (int)(slash + 1 - dst) : 0, dst);
    const bool alone = !pm_file_exists(state);
    size_t count = c->out->tensors;

    if (c->from->has_step)
        c->list[count++] = (struct pm_file_tensor){
            .name = "global_step", .type = is_short ? PM_DTYPE_I32 : PM_DTYPE_I64,
            .data = is_short ? (const void *)&short_step : &step };
    add_powers(c, power, &count);
    c->out->tensors = count - c->from->has_step;
    if (!alone)
        PM_INFO("checkpoint", "%s exists and is not changed", state);
    return pm_tf_bundle_write(dst, c->list, count, alone);
}

struct writer {
    int to; /* enum pm_convert_to */
    const char *format;
    bool (*is)(const char *dst); /* whether DST's ending selects this format */
    const char *const *files;    /* endings of DST's files; the first file makes DST complete */
    int (*write)(const struct conversion *c, const char *dst);
};

static bool ends_safetensors(const char *dst)
{
    return pm_ends_with(dst, ".safetensors");
}

/* "model.ckpt", "model.ckpt-123", "model.ckpt-123.index", "a.ckpt.ckpt" */
static bool ends_tensorflow(const char *dst)
{
    const char *slash = strrchr(dst, '/'), *ending = strrchr(slash ? slash : dst, '.');

    return ending && (strcmp(ending, ".index") == 0 || strncmp(ending, ".ckpt", 5) == 0);
}

static const char *const one_file[] = { "", NULL };
static const char *const bundle_files[] = { ".index", ".data-00000-of-00001", NULL };

static const struct writer writers[] = {
    { PM_CONVERT_SAFETENSORS, "safetensors", ends_safetensors, one_file, write_safetensors },
    { PM_CONVERT_TENSORFLOW, "TensorFlow V2 checkpoint", ends_tensorflow, bundle_files,
      write_tensorflow },
};

static int choose(const struct pm_checkpoint_conversion *o, const char *dst,
                  const struct writer **out)
{
    for (size_t i = 0; i < PM_COUNT(writers); i++)
        if (o->to ? o->to == writers[i].to : writers[i].is(dst))
            return *out = &writers[i], PM_OK;
    return pm_fail(PM_ECONFIG,
                   "checkpoint convert: the ending of %s does not select a format: end the name "
                   "with .safetensors or .ckpt, or set to=safetensors or to=tensorflow",
                   dst);
}

static int check_free(const struct conversion *c, const struct writer *w, const char *dst)
{
    if (pm_is_folder(dst))
        return pm_fail(PM_ECONFIG, "checkpoint convert: %s is a folder; name a file in it", dst);
    for (const char *const *end = w->files; *end; end++) {
        const char *path = pm_arena_printf(c->arena, "%s%s", dst, *end);

        if (pm_tensor_file_reads(c->from->tensors, path))
            return pm_fail(PM_ECONFIG, "checkpoint convert: %s is SRC itself; name another DST",
                           path);
        if (!c->o->force && (pm_file_exists(path) || pm_is_folder(path)))
            return pm_fail(PM_ECONFIG,
                           "checkpoint convert: %s exists already; force=true replaces it", path);
    }
    return PM_OK;
}

int pm_checkpoint_convert(struct pm_checkpoint *from, const char *dst,
                          const struct pm_checkpoint_conversion *o, struct pm_converted *out)
{
    int err = PM_OK;
    struct conversion c = { .arena = pm_arena_create(), .from = from, .o = o, .out = out };
    const struct writer *w = NULL;

    *out = (struct pm_converted){ 0 };
    PM_TRY(choose(o, dst, &w));
    out->format = w->format;
    if (w->to == PM_CONVERT_TENSORFLOW && pm_ends_with(dst, ".index"))
        dst = pm_arena_printf(c.arena, "%.*s", (int)(strlen(dst) - strlen(".index")), dst);
    PM_TRY(check_free(&c, w, dst));
    if (o->net)
        PM_TRY(translate(from, o->net, c.arena));
    PM_TRY(rename_tensors(from, o->names));
    PM_TRY(pm_checkpoint_choose_averages(from, o->averages, "checkpoint convert", "averages",
                                         &c.averages));
    PM_TRY(list_tensors(&c));
    PM_TRY(w->write(&c, dst));
out:
    pm_free(c.list);
    pm_arena_destroy(&c.arena);
    return err;
}
