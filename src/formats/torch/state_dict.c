/* Names the tensors in the value of a PyTorch file as a state dict does: keys joined by '.', list
 * items by number. For a pickled nn.Module these are its parameters, buffers and modules, as in its
 * state_dict().
 *
 * A checkpoint is often {"state_dict": weights, "epoch": 3}. If only one member holds tensors, the
 * names do not include its key. If several do (optimizer state, other weights), all names include
 * their key. */
#include "formats/torch/torch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LEVELS = 256 };

struct walk {
    struct pm_tensor_file *f;
    struct pm_arena *arena;
    struct pm_torch_names *out;
    struct pm_str path;
    int level;
    uint64_t budget; /* remaining values to visit and bytes of names to make */
};

static int walk_value(struct walk *w, struct pm_torch_value *v);

static int spend(struct walk *w, uint64_t what)
{
    if (what > w->budget)
        return pm_fail(PM_EDATA,
                       "%s: its values refer to each other so often that they would give endless "
                       "names ('%.100s...')",
                       w->f->path, w->path.text ? w->path.text : "");
    w->budget -= what;
    return PM_OK;
}

static int add_tensor(struct walk *w, const struct pm_torch_view *view)
{
    int err = PM_OK;
    const char *name = w->path.length ? w->path.text : "tensor";

    PM_TRY(spend(w, w->path.length + sizeof *view / 4));
    if (w->path.length && strlen(name) != w->path.length)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: a tensor's name is not a text of at most 4096 bytes: '%.200s...'",
                       w->f->path, name));
    PM_GROW(w->out->list, w->out->count, w->out->capacity);
    w->out->list[w->out->count++] = (struct pm_torch_named){
        .name = pm_arena_strdup(w->arena, name), .view = view,
    };
out:
    return err;
}

/* Visits v under a name below the current one. */
static int walk_named(struct walk *w, const void *name, size_t length, struct pm_torch_value *v)
{
    int err = PM_OK;
    size_t before = w->path.length;

    PM_TRY(spend(w, length + 1));
    if (before)
        pm_str_bytes(&w->path, ".", 1);
    pm_str_bytes(&w->path, name, length);
    PM_TRY(walk_value(w, v));
out:
    w->path.length = before;
    if (w->path.text)
        w->path.text[before] = 0;
    return err;
}

/* A key that is neither a text nor a number is named by its position. */
static int walk_cell(struct walk *w, const struct pm_torch_cell *c, int64_t place)
{
    const struct pm_torch_value *key = c->key;
    char text[24];

    if (key && key->kind == PM_TORCH_STRING) /* a NUL, which add_tensor refuses, for a long one */
        return walk_named(w, key->text ? key->text : "", key->text ? key->length : 1, c->value);
    if (key && key->kind == PM_TORCH_INT)
        place = key->integer;
    return walk_named(w, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)place),
                      c->value);
}

static int walk_cells(struct walk *w, const struct pm_torch_cell *cells)
{
    int err = PM_OK;
    int64_t place = 0;

    for (const struct pm_torch_cell *c = cells; c; c = c->next)
        PM_TRY(walk_cell(w, c, place++));
out:
    return err;
}

/* ---- objects --------------------------------------------------------------------------- */

static bool is_member(const struct pm_torch_value *set, const struct pm_torch_value *name)
{
    if (set && set->kind == PM_TORCH_SET)
        for (const struct pm_torch_cell *c = set->cells; c; c = c->next)
            if (c->value->kind == PM_TORCH_STRING && name->kind == PM_TORCH_STRING &&
                c->value->text && name->text && strcmp(c->value->text, name->text) == 0)
                return true;
    return false;
}

/* The state of an nn.Module. Buffers that state_dict() leaves out are left out. */
static int walk_module(struct walk *w, const struct pm_torch_value *state)
{
    int err = PM_OK;
    const struct pm_torch_value *passing = pm_torch_get(state, "_non_persistent_buffers_set");
    const struct pm_torch_value *buffers = pm_torch_get(state, "_buffers");

    PM_TRY(walk_cells(w, pm_torch_get(state, "_parameters")->cells));
    for (const struct pm_torch_cell *c = buffers && buffers->kind == PM_TORCH_DICT ? buffers->cells
                                                                                   : NULL;
         c; c = c->next)
        if (c->key->kind == PM_TORCH_STRING && c->key->text && !is_member(passing, c->key))
            PM_TRY(walk_named(w, c->key->text, c->key->length, c->value));
    PM_TRY(walk_cells(w, pm_torch_get(state, "_modules")->cells));
out:
    return err;
}

static bool is_module(const struct pm_torch_value *state)
{
    const struct pm_torch_value *parameters = pm_torch_get(state, "_parameters");
    const struct pm_torch_value *modules = pm_torch_get(state, "_modules");

    return parameters && parameters->kind == PM_TORCH_DICT && modules &&
           modules->kind == PM_TORCH_DICT;
}

/* An object of any class: its list or dict items, and its state: a dict of attributes, or a pair of
 * such dicts. */
static int walk_object(struct walk *w, struct pm_torch_value *v)
{
    int err = PM_OK;
    struct pm_torch_value *state = v->state;

    if (is_module(state))
        return walk_module(w, state);
    PM_TRY(walk_cells(w, v->cells));
    if (state && state->kind == PM_TORCH_TUPLE && state->length == 2 &&
        pm_torch_item(state, 1)->kind == PM_TORCH_DICT) {
        PM_TRY(walk_value(w, pm_torch_item(state, 0)));
        PM_TRY(walk_value(w, pm_torch_item(state, 1)));
    } else if (state) {
        PM_TRY(walk_value(w, state));
    }
out:
    return err;
}

static int walk_value(struct walk *w, struct pm_torch_value *v)
{
    int err = PM_OK;

    if (v->kind == PM_TORCH_TENSOR)
        return add_tensor(w, v->view);
    if (v->kind != PM_TORCH_TUPLE && v->kind != PM_TORCH_LIST && v->kind != PM_TORCH_DICT &&
        v->kind != PM_TORCH_OBJECT)
        return PM_OK;
    if (v->walked) /* it holds itself: nothing new */
        return PM_OK;
    v->walked = true;
    if (++w->level > MAX_LEVELS)
        PM_TRY(pm_fail(PM_EDATA, "%s: its values are nested more than %d levels deep",
                       w->f->path, MAX_LEVELS));
    PM_TRY(spend(w, 1));
    PM_TRY(v->kind == PM_TORCH_OBJECT ? walk_object(w, v) : walk_cells(w, v->cells));
out:
    w->level--;
    v->walked = false;
    return err;
}

/* ---- the file's own value -------------------------------------------------------------- */

/* Adds a text, boolean or number member as a note. Ignores others. */
static void add_note(struct pm_tensor_file *f, const char *key, const struct pm_torch_value *v)
{
    char text[40];

    if (v->kind == PM_TORCH_STRING && v->text && strlen(v->text) == v->length) {
        pm_tensor_file_add_meta(f, key, v->text);
        return;
    }
    if (v->kind == PM_TORCH_BOOL) {
        snprintf(text, sizeof text, "%s", v->yes ? "true" : "false");
    } else if (v->kind == PM_TORCH_INT) {
        snprintf(text, sizeof text, "%lld", (long long)v->integer);
    } else if (v->kind == PM_TORCH_FLOAT) {
        for (int digits = 6; digits <= 17; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, v->number);
            if (strtod(text, NULL) == v->number)
                break;
        }
    } else {
        return;
    }
    pm_tensor_file_add_meta(f, key, text);
}

static const char *key_of(const struct pm_torch_cell *c)
{
    const struct pm_torch_value *key = c->key;

    return key && key->kind == PM_TORCH_STRING && key->text && strlen(key->text) == key->length
               ? key->text : NULL;
}

static bool is_wrapper(const char *key)
{
    static const char *const keys[] = {
        "state_dict", "model",   "model_state_dict", "model_state",
        "net",        "network", "weights",          "params",
    };

    for (size_t i = 0; i < PM_COUNT(keys); i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

static int walk_root(struct walk *w, struct pm_torch_value *root)
{
    int err = PM_OK;
    const char *only = NULL; /* key of the only member with tensors */
    int64_t place = 0, holders = 0;

    root->walked = true;
    for (const struct pm_torch_cell *c = root->cells; c; c = c->next) {
        const char *key = key_of(c);
        size_t first = w->out->count;
        if (key)
            add_note(w->f, key, c->value);
        PM_TRY(walk_cell(w, c, place++));
        if (w->out->count > first) {
            only = c->value->kind == PM_TORCH_TENSOR ? NULL : key;
            holders++;
        }
    }
    if (holders == 1 && only && is_wrapper(only))
        for (size_t i = 0; i < w->out->count; i++)
            w->out->list[i].name += strlen(only) + 1;
out:
    return err;
}

int pm_torch_name(struct pm_tensor_file *f, struct pm_arena *a, struct pm_torch_value *root,
                  uint64_t pickle_bytes, struct pm_torch_names *out)
{
    struct walk w = { .f = f, .arena = a, .out = out, .budget = (64 << 10) + 16 * pickle_bytes };
    int err = root->kind == PM_TORCH_DICT ? walk_root(&w, root) : walk_value(&w, root);

    pm_str_free(&w.path);
    return err;
}
