/* checkpoint_open: finds a run's newest complete checkpoint, or the one that a user names. */
#include "optim/averages.h"
#include "checkpoints/checkpoint_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int check_sha(const char *path, const struct record *r)
{
    int err = PM_OK, fd = -1;
    size_t size = 1 << 18;
    char *piece = pm_malloc(size), hex[65];
    struct pm_sha256 sha;
    ssize_t n;

    PM_TRY(pm_file_open(path, &fd, NULL));
    pm_sha256_start(&sha);
    while ((n = read(fd, piece, size)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            PM_TRY(pm_fail(PM_EDATA, "%s: cannot read: %s", path, strerror(errno)));
        pm_sha256_add(&sha, piece, (size_t)n);
    }
    pm_sha256_end(&sha, hex);
    if (strcmp(hex, r->sha256) != 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: damaged: its sha256 is %.12s..., its .json says %.12s...",
                       path, hex, r->sha256));
out:
    if (fd >= 0)
        close(fd);
    pm_free(piece);
    return err;
}

/* Opens a checkpoint by its .json. */
static int open_record(const char *folder, const char *json_name, struct pm_checkpoint **out)
{
    int err = PM_OK;
    struct record r = { 0 };
    struct pm_str path = { 0 };
    struct pm_checkpoint *c = pm_calloc(1, sizeof *c);

    PM_TRY(pm_ckpt_record_read(folder, json_name, &r));
    pm_ckpt_path(&path, folder, r.file);
    PM_TRY(pm_safetensors_open(path.text, &c->tensors));
    PM_TRY(check_sha(path.text, &r));
    c->path = pm_strdup(path.text);
    c->step = r.step;
    c->has_step = true;
    c->state = r.text, r.text = NULL;
    *out = c, c = NULL;
out:
    pm_ckpt_record_free(&r);
    pm_str_free(&path);
    pm_checkpoint_close(&c);
    return err;
}

/* Reads the number of updates done from a foreign file: TensorFlow's global_step, or a metadata
 * entry. */
static int step_of(struct pm_checkpoint *c)
{
    int err = PM_OK;
    const struct pm_tensor_file *f = c->tensors;
    const struct pm_file_tensor *t = pm_tensor_file_find(f, "global_step");
    const char *step = pm_tensor_file_meta(f, "step");
    double v = -1;

    if (t && t->rank == 0 && t->type != PM_DTYPE_OTHER)
        PM_TRY(pm_tensor_file_doubles(f, t, 0, 1, &v));
    c->step = v >= 0 && v < 0x1p53 ? (uint64_t)v : step ? strtoull(step, NULL, 10) : 0;
    c->has_step = (v >= 0 && v < 0x1p53) || step;
out:
    return err;
}

/* Opens tensors of any format by path. For a run's own file, also opens the record (.json) beside
 * it. Another .json of that name, such as a config, is not read. */
static int open_file(const char *path, struct pm_checkpoint **out)
{
    int err = PM_OK;
    struct pm_checkpoint *c = pm_calloc(1, sizeof *c);
    struct pm_str json = { 0 };
    const char *slash = strrchr(path, '/');
    char *folder = slash ? pm_strdup(path) : pm_strdup(".");

    if (slash)
        folder[slash == path ? 1 : slash - path] = 0;
    if (pm_ends_with(path, ".safetensors")) {
        pm_str_add(&json, "%.*s.json", (int)(strlen(path) - strlen(".safetensors")), path);
        const char *name = slash ? strrchr(json.text, '/') + 1 : json.text;

        if (pm_file_exists(json.text) && pm_ckpt_is_record(folder, name)) {
            err = open_record(folder, name, out);
            goto out;
        }
    }
    PM_TRY(pm_tensor_file_open(path, &c->tensors));
    c->path = pm_strdup(path);
    PM_TRY(step_of(c));
    *out = c, c = NULL;
out:
    pm_free(folder);
    pm_str_free(&json);
    pm_checkpoint_close(&c);
    return err;
}

static bool has_json(const char *folder, const char *name)
{
    struct pm_str path = { 0 };
    bool has = pm_file_exists(pm_ckpt_path(&path, folder, name));

    pm_str_free(&path);
    return has;
}

/* Tries the folder's checkpoints, newest first. *moved: the training process removed one
 * meanwhile. */
static int open_newest_once(const char *folder, struct pm_checkpoint **out, bool *moved)
{
    int err = PM_OK;
    uint64_t *steps = NULL;
    size_t count = pm_ckpt_steps(folder, &steps);
    char name[64];

    *moved = false;
    for (size_t i = count; i-- > 0;) {
        if ((err = open_record(folder, pm_ckpt_step_name(steps[i], ".json", name), out)) == PM_OK)
            break;
        if (!has_json(folder, name))
            *moved = true;
        else
            PM_WARN("checkpoint", "skipped: %s", pm_error_text());
    }
    pm_free(steps);
    return err;
}

int pm_checkpoint_open_newest(const char *run, struct pm_checkpoint **out)
{
    int err = PM_OK;
    struct pm_str folder = { 0 };
    bool moved = true;

    *out = NULL;
    pm_ckpt_folder(&folder, run);
    for (int tries = 0; tries < 5 && moved && !*out; tries++)
        err = open_newest_once(folder.text, out, &moved);
    if (err < 0)
        pm_fail(err, "%s: all its checkpoints are damaged; the warnings above state how",
                folder.text);
    pm_str_free(&folder);
    return err;
}

/* ---- what a user names ----------------------------------------------------------------- */

static int open_best(const char *folder, const char *where, struct pm_checkpoint **out)
{
    int err = PM_OK;
    uint64_t step;
    struct best b = { 0 };
    char name[64];

    PM_TRY(pm_ckpt_best_read(folder, &b));
    if (!b.metric)
        PM_TRY(pm_fail(
            PM_EDATA,
            "%s: %s has no best checkpoint: evaluations during training choose it; set "
            "eval.every_steps, and run.keep_best to a metric or auto",
            where, folder));
    step = b.step;
    PM_TRY(open_record(folder, pm_ckpt_best_name(step, ".json", name), out));
out:
    pm_ckpt_best_free(&b);
    return err;
}

static int open_newest_of(const char *run, const char *where, struct pm_checkpoint **out)
{
    int err = pm_checkpoint_open_newest(run, out);

    if (err == PM_OK && !*out)
        err = pm_fail(PM_EDATA, "%s: %s has no checkpoint yet; train first, or name another folder",
                      where, run);
    return err;
}

static int not_found(const char *folder, const char *value, const char *where)
{
    struct pm_str list = { 0 };
    uint64_t *steps = NULL;
    size_t count = folder ? pm_ckpt_steps(folder, &steps) : 0;
    int err;

    for (size_t i = count > 10 ? count - 10 : 0; i < count; i++)
        pm_str_add(&list, "%s%llu", list.length ? ", " : "", (unsigned long long)steps[i]);
    if (!folder)
        err = pm_fail(PM_EDATA, "%s: no file or folder '%s'", where, value);
    else
        err = pm_fail(PM_EDATA,
                      "%s: no checkpoint '%s': it is not a file, a folder, latest, best, or one of "
                      "the steps in %s: %s",
                      where, value, folder, count ? list.text : "none");
    pm_str_free(&list);
    pm_free(steps);
    return err;
}

/* Whether value is a run's folder, or the folder of its checkpoints. */
static bool is_run(const char *value)
{
    struct pm_str folder = { 0 };
    uint64_t *steps = NULL;
    size_t count;

    pm_ckpt_folder(&folder, value);
    count = pm_ckpt_steps(folder.text, &steps);
    pm_str_free(&folder);
    pm_free(steps);
    return count > 0;
}

static int no_checkpoint_in(const char *value, const char *where)
{
    return pm_fail(
        PM_EDATA,
        "%s: the folder %s has no checkpoint: neither that of a run (checkpoints/step-*.json) nor "
        "one of TensorFlow ('checkpoint' or variables/variables.index)",
        where, value);
}

static bool is_number(const char *s)
{
    size_t n = strspn(s, "0123456789");

    return n > 0 && n < 16 && s[n] == 0;
}

int pm_checkpoint_open(const char *run, const char *value, const char *where,
                       struct pm_checkpoint **out)
{
    int err = PM_OK;
    struct pm_str folder = { 0 };
    char name[64];

    *out = NULL;
    if (run)
        pm_ckpt_folder(&folder, run);
    if (run && (!value || !value[0] || strcmp(value, "latest") == 0))
        PM_TRY(open_newest_of(run, where, out));
    else if (run && strcmp(value, "best") == 0)
        PM_TRY(open_best(folder.text, where, out));
    else if (run && is_number(value) &&
             has_json(folder.text, pm_ckpt_step_name(strtoull(value, NULL, 10), ".json", name)))
        PM_TRY(open_record(folder.text, name, out));
    else if (value && is_run(value))
        PM_TRY(open_newest_of(value, where, out));
    else if (value && (pm_file_exists(value) || pm_tensor_file_is(value)))
        PM_TRY(open_file(value, out));
    else if (value && pm_is_folder(value))
        PM_TRY(no_checkpoint_in(value, where));
    else
        PM_TRY(not_found(folder.text, value ? value : "", where));
out:
    pm_str_free(&folder);
    return err;
}

void pm_checkpoint_close(struct pm_checkpoint **c)
{
    if (!*c)
        return;
    pm_tensor_file_close(&(*c)->tensors);
    pm_free((*c)->path);
    pm_free((*c)->state);
    pm_free(*c);
    *c = NULL;
}

/* ---- tensors --------------------------------------------------------------------------- */

/* Whether a tensor is a slot, like "VARIABLE/Momentum": its name extends the name of another tensor
 * in the file. */
static bool is_slot(const struct pm_tensor_file *f, const char *name)
{
    const char *slash = strrchr(name, '/');
    struct pm_str owner = { 0 };
    bool is;

    if (!slash || slash == name)
        return false;
    pm_str_bytes(&owner, name, (size_t)(slash - name));
    is = pm_tensor_file_find(f, owner.text) != NULL;
    pm_str_free(&owner);
    return is;
}

enum pm_role pm_checkpoint_role(const struct pm_checkpoint *c, const struct pm_file_tensor *t)
{
    static const char *const counters[] = { "global_step", "beta1_power", "beta2_power",
                                            "num_batches_tracked" };

    if (pm_ends_with(t->name, "/" PM_AVERAGE_SUFFIX))
        return PM_ROLE_AVERAGE;
    for (size_t i = 0; i < PM_COUNT(counters); i++)
        if (pm_ends_with(t->name, counters[i]))
            return PM_ROLE_COUNTER;
    if (t->type == PM_DTYPE_OTHER)
        return PM_ROLE_COUNTER;
    return is_slot(c->tensors, t->name) ? PM_ROLE_SLOT : PM_ROLE_VARIABLE;
}

size_t pm_checkpoint_averages(const struct pm_checkpoint *c)
{
    size_t count = 0;

    for (size_t i = 0; i < pm_tensor_file_count(c->tensors); i++)
        count += pm_checkpoint_role(c, pm_tensor_file_get(c->tensors, i)) == PM_ROLE_AVERAGE;
    return count;
}

static struct pm_shape shape_of(const struct pm_file_tensor *t)
{
    struct pm_shape s = { .rank = t->rank };

    for (int i = 0; i < t->rank; i++) {
        if (i == PM_MAX_RANK || t->dim[i] > INT32_MAX)
            return (struct pm_shape){ .rank = -1 };
        s.dim[i] = (int)t->dim[i];
    }
    return s;
}

bool pm_checkpoint_has(const struct pm_checkpoint *c, const char *name, struct pm_shape *shape)
{
    const struct pm_file_tensor *t = pm_tensor_file_find(c->tensors, name);

    if (t && shape)
        *shape = shape_of(t);
    return t != NULL;
}

bool pm_checkpoint_fits(const struct pm_file_tensor *t, struct pm_shape shape)
{
    const int more = t->rank - shape.rank;

    for (int i = 0; i < more; i++)
        if (t->dim[i] != 1)
            return false;
    for (int i = 0; i < -more; i++)
        if (shape.dim[i] != 1)
            return false;
    for (int i = more > 0 ? more : 0; i < t->rank; i++)
        if (t->dim[i] != shape.dim[i - more])
            return false;
    return true;
}

static int absent(const struct pm_checkpoint *c, const char *name)
{
    size_t count = pm_tensor_file_count(c->tensors);
    const char **names = pm_malloc((count + 1) * sizeof *names), *near;

    for (size_t i = 0; i < count; i++)
        names[i] = pm_tensor_file_get(c->tensors, i)->name;
    near = pm_nearest(name, names, count);
    pm_fail(PM_EDATA, "%s: no tensor '%s'%s%s%s", c->path, name, near ? "; the nearest is '" : "",
            near ? near : "", near ? "'" : "");
    pm_free(names);
    return PM_EDATA;
}

int pm_checkpoint_read(const struct pm_checkpoint *c, const char *name, struct pm_shape shape,
                       float *data)
{
    const struct pm_file_tensor *t = pm_tensor_file_find(c->tensors, name);
    char is[96], wanted[64];

    if (!t)
        return absent(c, name);
    if (!pm_checkpoint_fits(t, shape))
        return pm_fail(PM_EDATA, "%s: tensor '%s' has shape %s, but the model needs %s", c->path,
                       name, pm_file_tensor_shape(t, is), pm_shape_text(shape, wanted));
    return pm_tensor_file_floats(c->tensors, t, 0, (size_t)t->count, data);
}
