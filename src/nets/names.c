/* names: maps the tensors of a PyTorch file to the variables of a net, and presents the file under
 * the net's names. Tensors are reordered piece by piece while they are read. */
#include "nets/names_private.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "formats/tensor_format.h"

static const struct pm_names_family *const families[] = {
    &pm_names_resnet, &pm_names_vgg, &pm_names_mobilenet_v2, &pm_names_mobilenet_v3,
    &pm_names_inception_v3,
};

enum { NUMBERS = 4 };
/* The parts of a name that matched '#' and '?' of a row. */
struct found {
    int number[NUMBERS], numbers;
    char letter;
};

/* ---- queries of maps ----------------------------------------------------------------------- */

const struct pm_file_tensor *pm_names_tensor(const struct pm_names_file *f, const char *format, ...)
{
    char name[256];
    va_list args;
    int used = snprintf(name, sizeof name, "%s", f->prefix);

    va_start(args, format);
    if (used < (int)sizeof name)
        vsnprintf(name + used, sizeof name - (size_t)used, format, args);
    va_end(args);
    return pm_tensor_file_find(f->from, name);
}

const struct pm_variable *pm_names_variable(const struct pm_names_file *f, const char *name)
{
    for (int i = 0; i < f->net->count; i++)
        if (strcmp(f->net->list[i].name, name) == 0)
            return &f->net->list[i];
    return NULL;
}

int pm_names_refuse(const struct pm_names_file *f, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return pm_fail(PM_EDATA, "%s: %s", pm_tensor_file_path(f->from), text);
}

/* ---- families ---------------------------------------------------------------------------- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static const struct pm_names_family *family_of(const struct pm_variables *net)
{
    for (size_t k = 0; k < PM_COUNT(families); k++)
        for (int i = 0; i < net->count; i++)
            if (begins(net->list[i].name, families[k]->scope))
                return families[k];
    return NULL;
}

/* Returns the net's scope, such as "resnet_v1_50", from its first variable of the family. */
static const char *scope_of(const struct pm_names_file *f)
{
    for (int i = 0; i < f->net->count; i++) {
        const char *name = f->net->list[i].name;
        if (begins(name, f->family->scope))
            return pm_arena_printf(f->arena, "%.*s", (int)strcspn(name, "/"), name);
    }
    return f->family->scope;
}

/* Whether a prefix marks averages of the weights: "ema.", "model_ema.module.". */
static bool says_average(const char *prefix)
{
    static const char *const words[] = { "ema", "average", "shadow", "swa" };

    for (size_t k = 0; k < PM_COUNT(words); k++)
        for (const char *at = strstr(prefix, words[k]); at; at = strstr(at + 1, words[k]))
            if (at == prefix || at[-1] == '.' || at[-1] == '_')
                return true;
    return false;
}

/* Whether weights with this prefix are preferred to those with prefix best. */
static bool is_better(const char *prefix, const char *best)
{
    if (!best || says_average(prefix) != says_average(best))
        return !best || says_average(best);
    return strlen(prefix) < strlen(best);
}

/* Returns the prefix of the family's anchors in the file, or NULL if there is none. If there are
 * several, it chooses the shortest one that does not mark averages. *other receives another of the
 * prefixes, or NULL. */
static const char *prefix_of(const struct pm_names_family *family, const struct pm_tensor_file *f,
                             struct pm_arena *a, const char **other)
{
    const char *best = NULL;

    *other = NULL;
    for (size_t i = 0; i < pm_tensor_file_count(f); i++) {
        const char *name = pm_tensor_file_get(f, i)->name;
        for (int k = 0; k < (int)PM_COUNT(family->anchors) && family->anchors[k]; k++) {
            const char *anchor = family->anchors[k], *prefix;
            const size_t n = strlen(name), m = strlen(anchor);
            if (!pm_ends_with(name, anchor) || (n > m && name[n - m - 1] != '.'))
                continue;
            prefix = pm_arena_printf(a, "%.*s", (int)(n - m), name);
            if (!is_better(prefix, best)) {
                *other = prefix;
            } else {
                *other = best;
                best = prefix;
            }
        }
    }
    return best;
}

bool pm_names_are_torch(const struct pm_tensor_file *f)
{
    static const char *const ends[] = { ".weight", ".bias", ".running_mean", ".running_var" };
    bool any = false;

    for (size_t i = 0; i < pm_tensor_file_count(f); i++) {
        const char *name = pm_tensor_file_get(f, i)->name;
        if (strchr(name, '/'))
            return false;
        for (size_t k = 0; k < PM_COUNT(ends); k++)
            any |= pm_ends_with(name, ends[k]);
    }
    return any;
}

/* ---- rows -------------------------------------------------------------------------------- */

static bool match(const char *row, const char *text, struct found *out)
{
    *out = (struct found){ .numbers = 0 };
    for (; *row && *row != '*'; row++) {
        if (*row == '#') {
            const size_t digits = strspn(text, "0123456789");
            if (digits == 0 || digits > 4 || out->numbers == NUMBERS)
                return false;
            out->number[out->numbers++] = atoi(text);
            text += digits;
        } else if (*row == '?') {
            if (!isalpha((unsigned char)*text))
                return false;
            out->letter = *text++;
        } else if (*text++ != *row) {
            return false;
        }
    }
    return *row == '*' || !*text;
}

/* Returns the net's module name from a row that matches, or NULL. */
static const char *rendered(const struct pm_names_file *f, const struct pm_names_row *row,
                            const struct found *found)
{
    struct pm_str s = { 0 };
    const char *name;

    for (const char *p = row->ours; *p; p++) {
        if (*p == '?') {
            pm_str_add(&s, "%c", found->letter);
        } else if (*p != '$') {
            pm_str_add(&s, "%c", *p);
        } else if (p[1] == '@') {
            const char *own = f->family->own(f, row, found->number);
            if (!own) {
                pm_str_free(&s);
                return NULL;
            }
            pm_str_add(&s, "%s", own);
            p++;
        } else {
            int value = found->number[*++p - '1'];
            if (p[1] == '+' || p[1] == '-') {
                value += p[1] == '+' ? p[2] - '0' : '0' - p[2];
                p += 2;
            }
            pm_str_add(&s, "%d", value);
        }
    }
    name = pm_arena_strdup(f->arena, s.text);
    pm_str_free(&s);
    return name;
}

/* Returns the parameter's name in TensorFlow, or NULL if it has none. */
static const char *parameter(const char *module, const char *theirs)
{
    static const struct { const char *theirs, *normal, *other; } rows[] = {
        { "weight", "gamma", "weights" },
        { "bias", "beta", "biases" },
        { "running_mean", "moving_mean", NULL },
        { "running_var", "moving_variance", NULL },
    };

    for (size_t i = 0; i < PM_COUNT(rows); i++)
        if (strcmp(rows[i].theirs, theirs) == 0) {
            if (pm_ends_with(module, "BatchNorm"))
                return rows[i].normal;
            return i == 0 && pm_ends_with(module, "/depthwise") ? "depthwise_weights"
                                                                : rows[i].other;
        }
    return NULL;
}

/* Finds the row of a tensor by its name without the prefix. *ours receives the net's name. Returns
 * NULL if there is no row. */
static const struct pm_names_row *row_of(const struct pm_names_file *f, const char *theirs,
                                         const char **ours)
{
    const char *dot = strrchr(theirs, '.'), *module, *end;
    struct found found;

    *ours = NULL;
    if (!dot)
        return NULL;
    module = pm_arena_printf(f->arena, "%.*s", (int)(dot - theirs), theirs);
    for (const struct pm_names_row *r = f->family->rows; r->theirs; r++) {
        if (!match(r->theirs, module, &found))
            continue;
        if (r->refusal)
            return r;
        const char *name = rendered(f, r, &found);
        if (!name)
            continue;
        end = parameter(name, dot + 1);
        *ours = end ? pm_arena_printf(f->arena, "%s/%s/%s", scope_of(f), name, end) : NULL;
        return r;
    }
    return NULL;
}

/* ---- the file under our names ------------------------------------------------------------ */

/* Destination of a tensor's elements [o][i][h][w]: strides in the net's order. */
struct order {
    const struct pm_file_tensor *from;
    uint64_t count[4], step[4];
};
struct mapped {
    struct pm_tensor_file *from; /* owned */
    struct order *orders;        /* by pm_file_tensor.source */
    /* The last tensor that was read in part, in the net's order. */
    const struct pm_file_tensor *whole;
    uint8_t *bytes;
};

static void scatter_words(uint64_t step, uint64_t slice, uint64_t outs, const uint8_t *src,
                          uint8_t *dst)
{
    for (uint64_t o = 0; o < outs; o++)
        memcpy(dst + o * step * 4, src + o * slice * 4, 4);
}

/* Copies `outs` slices along o, starting at slice `first`, to their places in the net's order. The
 * innermost loop is along o, because elements along o are neighbours in the net's order. */
static void scatter(const struct order *r, uint64_t first, uint64_t outs, size_t size,
                    const uint8_t *src, uint8_t *dst)
{
    const uint64_t slice = r->count[1] * r->count[2] * r->count[3];
    uint64_t k = 0;

    for (uint64_t i = 0; i < r->count[1]; i++)
        for (uint64_t h = 0; h < r->count[2]; h++)
            for (uint64_t w = 0; w < r->count[3]; w++, k++) {
                const uint64_t to = i * r->step[1] + h * r->step[2] + w * r->step[3] +
                                    first * r->step[0];
                if (size == 4)
                    scatter_words(r->step[0], slice, outs, src + k * 4, dst + to * 4);
                else
                    for (uint64_t o = 0; o < outs; o++)
                        memcpy(dst + (to + o * r->step[0]) * size, src + (o * slice + k) * size,
                               size);
            }
}

static int read_whole(const struct mapped *m, const struct pm_file_tensor *t, uint8_t *dst)
{
    const struct order *r = &m->orders[t->source];
    const uint64_t size = t->bytes / t->count, slice = t->bytes / r->count[0];
    const uint64_t most = 16 + (1 << 16) / slice;
    uint8_t *piece = pm_malloc(most * slice);
    int err = PM_OK;

    for (uint64_t o = 0; o < r->count[0]; o += most) {
        const uint64_t outs = r->count[0] - o < most ? r->count[0] - o : most;
        PM_TRY(pm_tensor_file_bytes(m->from, r->from, o * slice, outs * slice, piece));
        scatter(r, o, outs, size, piece, dst);
    }
out:
    pm_free(piece);
    return err;
}

static int read_mapped(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                       uint64_t begin, size_t size, void *dst)
{
    struct mapped *m = f->own;
    int err = PM_OK;

    if (size == 0)
        return PM_OK;
    if (m->orders[t->source].count[0] == 0) /* unchanged */
        return pm_tensor_file_bytes(m->from, m->orders[t->source].from, begin, size, dst);
    if (begin == 0 && size == t->bytes)
        return read_whole(m, t, dst);
    if (m->whole != t) {
        m->whole = NULL;
        m->bytes = pm_realloc(m->bytes, t->bytes);
        PM_TRY(read_whole(m, t, m->bytes));
        m->whole = t;
    }
    memcpy(dst, m->bytes + begin, size);
out:
    return err;
}

static void close_mapped(struct pm_tensor_file *f)
{
    struct mapped *m = f->own;

    pm_tensor_file_close(&m->from);
    pm_free(m->orders);
    pm_free(m->bytes);
    pm_free(m);
}

/* Sets the shape and order of one tensor. The file's tensor has rank 1 (unchanged), 2 or 4. */
static int arrange(const struct pm_tensor_file *f, const struct pm_names_row *row,
                   const struct pm_variable *v, struct pm_file_tensor *t, struct order *r)
{
    const struct pm_file_tensor *from = r->from;
    const int64_t area = row->height ? (int64_t)row->height * row->width : 1;
    int64_t o, i, h, w;

    t->type = from->type;
    if (from->rank == 1) {
        t->rank = 1;
        t->dim[0] = from->dim[0];
        return pm_tensor_file_measure(f, t);
    }
    if ((from->rank != 2 && from->rank != 4) || from->type == PM_DTYPE_OTHER || from->count == 0)
        return pm_tensor_file_bad(f, from->name,
                                  "it is neither a vector nor the weights of a layer");
    o = from->dim[0];
    i = from->dim[1];
    h = from->rank == 4 ? from->dim[2] : row->height ? row->height : 1;
    w = from->rank == 4 ? from->dim[3] : row->height ? row->width : 1;
    if (from->rank == 2) {
        if (i % area)
            return pm_tensor_file_bad(f, from->name,
                                      "its inputs do not fit the size of the net's last map");
        i /= area;
    }
    if (pm_ends_with(v->name, "/depthwise_weights")) { /* i is 1; o is channel by multiplier */
        const int64_t multiplier = i == 1 && v->shape.rank == 4 ? v->shape.dim[3] : 1;
        const int64_t dim[4] = { h, w, o % multiplier ? o : o / multiplier,
                                 o % multiplier ? i : i * multiplier };
        const uint64_t step[4] = { (uint64_t)i, 1, (uint64_t)(w * o * i), (uint64_t)(o * i) };
        t->rank = 4;
        memcpy(t->dim, dim, sizeof dim);
        memcpy(r->step, step, sizeof step);
    } else {
        const int64_t dim[4] = { h, w, i, o }, flat[2] = { h * w * i, o };
        const uint64_t step[4] = { 1, (uint64_t)o, (uint64_t)(w * i * o), (uint64_t)(i * o) };
        t->rank = v->shape.rank == 2 ? 2 : 4;
        memcpy(t->dim, t->rank == 2 ? flat : dim, t->rank == 2 ? sizeof flat : sizeof dim);
        memcpy(r->step, step, sizeof step);
    }
    const uint64_t count[4] = { (uint64_t)o, (uint64_t)i, (uint64_t)h, (uint64_t)w };
    memcpy(r->count, count, sizeof count);
    return pm_tensor_file_measure(f, t);
}

/* Adds one tensor of the file. It gets its place in the net, is skipped, or is refused. */
static int add(const struct pm_names_file *f, const struct pm_file_tensor *from,
               struct pm_tensor_file *to, struct mapped *m)
{
    const char *theirs = from->name + strlen(f->prefix), *ours;
    const struct pm_names_row *row;
    const struct pm_variable *v;

    if (pm_ends_with(theirs, ".num_batches_tracked"))
        return PM_OK;
    row = row_of(f, theirs, &ours);
    v = ours ? pm_names_variable(f, ours) : NULL;
    if (!v && row && strstr(row->ours, "AuxLogits"))
        return PM_OK;
    if (!v)
        return pm_names_refuse(f,
                               "%s has no variable for the tensor '%s': the file has the names of "
                               "%s of torchvision or timm; name a file of the same net",
                               scope_of(f), from->name, f->family->nets);
    struct order *r = &m->orders[to->count];
    struct pm_file_tensor *t = pm_tensor_file_add(to, ours);
    t->source = (int)(to->count - 1);
    r->from = from;
    return arrange(to, row, v, t, r);
}

static int check_rows(const struct pm_names_file *f)
{
    for (size_t i = 0; i < pm_tensor_file_count(f->from); i++) {
        const char *name = pm_tensor_file_get(f->from, i)->name, *ours;
        const struct pm_names_row *row =
            begins(name, f->prefix) ? row_of(f, name + strlen(f->prefix), &ours) : NULL;
        if (row && row->refusal)
            return pm_names_refuse(f, "tensor '%s': %s, which %s does not have", name, row->refusal,
                                   scope_of(f));
    }
    return f->family->check ? f->family->check(f) : PM_OK;
}

static int fill(const struct pm_names_file *f, struct pm_tensor_file *to, struct mapped *m)
{
    const char *key, *value;
    int err = PM_OK;

    for (size_t i = 0; pm_tensor_file_meta_at(f->from, i, &key, &value); i++)
        pm_tensor_file_add_meta(to, key, value);
    PM_TRY(pm_tensor_file_memory(to, to->path, NULL, pm_tensor_file_size(f->from), NULL));
    for (size_t i = 0; i < pm_tensor_file_count(f->from); i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(f->from, i);
        if (begins(t->name, f->prefix))
            PM_TRY(add(f, t, to, m));
    }
    PM_TRY(pm_tensor_file_finish(to));
out:
    return err;
}

/* Finds another family that these names belong to, for the error message. */
static const char *others(const struct pm_tensor_file *from, struct pm_arena *a)
{
    const char *second;

    for (size_t i = 0; i < PM_COUNT(families); i++)
        if (prefix_of(families[i], from, a, &second))
            return families[i]->nets;
    return NULL;
}

static int find_map(struct pm_names_file *f)
{
    const char *path = pm_tensor_file_path(f->from), *other = others(f->from, f->arena);
    const char *second;

    f->family = family_of(f->net);
    if (!f->family)
        return pm_fail(
            PM_EDATA,
            "%s: the file has PyTorch's names%s%s, which Pumice cannot translate for this net; it "
            "can for resnet_v1_*, vgg_*, mobilenet_v2, mobilenet_v3_* and inception_v3",
            path, other ? ", as in " : "", other ? other : "");
    f->prefix = prefix_of(f->family, f->from, f->arena, &second);
    if (!f->prefix)
        return pm_fail(
            PM_EDATA, "%s: there is no tensor '%s', which PyTorch's %s have%s%s: name a file of %s",
            path, f->family->anchors[0], f->family->nets, other ? "; the names are those of " : "",
            other ? other : "", scope_of(f));
    if (f->net->conventions == PM_CONVENTIONS_TENSORFLOW)
        return pm_fail(PM_EDATA,
                       "%s: the file has PyTorch's names, but %s pads, strides and normalises like "
                       "TensorFlow: set model.conventions=torch",
                       path, scope_of(f));
    if (second)
        PM_INFO("checkpoint",
                "%s holds the net more than once: names that begin with '%s' are used, names that "
                "begin with '%s' are ignored (pumice checkpoint convert %s FILE only=%s makes a "
                "file of them)",
                path, f->prefix, second, path, second);
    return PM_OK;
}

/* Makes a file over `from`. It has no tensors yet. */
static struct pm_tensor_file *make_mapped(struct pm_tensor_file *from, struct mapped **own)
{
    struct pm_tensor_file *to = pm_tensor_file_make(from->path, from->format);
    struct mapped *m = pm_calloc(1, sizeof *m);

    m->orders = pm_calloc(pm_tensor_file_count(from) + 1, sizeof *m->orders);
    to->own = m;
    to->read = read_mapped;
    to->close = close_mapped;
    *own = m;
    return to;
}

int pm_names_torch(const struct pm_variables *v, struct pm_tensor_file *from,
                   struct pm_tensor_file **out)
{
    int err = PM_OK;
    struct pm_arena *arena = pm_arena_create();
    struct pm_names_file f = { .net = v, .from = from, .arena = arena };
    struct mapped *m;
    struct pm_tensor_file *to = make_mapped(from, &m);

    PM_TRY(find_map(&f));
    PM_TRY(check_rows(&f));
    PM_TRY(fill(&f, to, m));
    m->from = from;
    *out = to, to = NULL;
out:
    pm_tensor_file_close(&to);
    pm_arena_destroy(&arena);
    return err;
}

int pm_names_onnx(const struct pm_variables *v, struct pm_tensor_file *from,
                  struct pm_tensor_file **out)
{
    static const struct pm_names_row whole = { 0 };
    int err = PM_OK;
    const struct pm_names_file f = { .net = v, .from = from };
    const char *key, *value;
    struct mapped *m;
    struct pm_tensor_file *to = make_mapped(from, &m);

    for (size_t i = 0; pm_tensor_file_meta_at(from, i, &key, &value); i++)
        pm_tensor_file_add_meta(to, key, value);
    PM_TRY(pm_tensor_file_memory(to, to->path, NULL, pm_tensor_file_size(from), NULL));
    for (size_t i = 0; i < pm_tensor_file_count(from); i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(from, i);
        const struct pm_variable *x = pm_names_variable(&f, t->name);
        struct order *r = &m->orders[i];

        if (!x && strchr(t->name, ':')) /* an operator's constant, as exporters name it */
            continue;
        struct pm_file_tensor *ours = pm_tensor_file_add(to, t->name);
        *ours = (struct pm_file_tensor){ .name = ours->name, .type = t->type, .other = t->other,
                                         .rank = t->rank, .count = t->count, .bytes = t->bytes,
                                         .source = (int)i };
        memcpy(ours->dim, t->dim, sizeof ours->dim);
        r->from = t;
        if (x && x->shape.rank == 4 && t->rank == 4 && t->count > 0 && t->type != PM_DTYPE_OTHER)
            PM_TRY(arrange(to, &whole, x, ours, r));
    }
    PM_TRY(pm_tensor_file_finish(to));
    m->from = from;
    *out = to, to = NULL;
out:
    pm_tensor_file_close(&to);
    return err;
}

const char *pm_names_origin(const struct pm_tensor_file *f, const struct pm_file_tensor *t)
{
    const struct mapped *m = f->own;

    return m->orders[t->source].from->name;
}
