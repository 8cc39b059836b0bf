/* The pickle machine interprets the opcodes that torch.save writes, protocols 2 to 5. It builds
 * values and runs no code: a global is only a name, and rebuild.c knows the results of a few calls.
 *
 * Bounds: one opcode makes few values, and all opcodes together make at most MAX_VALUES. A length
 * is checked against the remaining bytes before it is used. Memo numbers are at most the number of
 * bytes read, because each takes two bytes. Long texts are skipped. No function is recursive. */
#include "formats/torch/torch.h"

#include <string.h>

enum {
    WINDOW = 64 << 10, MAX_TEXT = 4096, MAX_GLOBAL = 512, MAX_VALUES = 1 << 22, MAX_MARKS = 4096,
};

/* ---- bytes ----------------------------------------------------------------------------- */

static int need(struct pm_torch_pickle *p, uint64_t size)
{
    if (size > p->end - p->at)
        return pm_torch_pickle_bad(p, "%llu bytes are needed and %llu are left (cut short?)",
                                   (unsigned long long)size, (unsigned long long)(p->end - p->at));
    return PM_OK;
}

/* Returns the next size bytes (at most WINDOW), valid until the next call. */
static int take(struct pm_torch_pickle *p, size_t size, const uint8_t **out)
{
    int err = PM_OK;

    PM_TRY(need(p, size));
    if (p->at < p->window_at || p->at + size > p->window_at + p->window_size) {
        if (!p->window)
            p->window = pm_malloc(WINDOW);
        p->window_size = 0;
        size_t room = p->end - p->at < WINDOW ? (size_t)(p->end - p->at) : WINDOW;
        PM_TRY(pm_tensor_file_read(p->f, 0, p->at, room, p->window));
        p->window_at = p->at;
        p->window_size = room;
    }
    *out = p->window + (p->at - p->window_at);
    p->at += size;
out:
    return err;
}

/* An unsigned number of size bytes, little-endian. */
static int take_number(struct pm_torch_pickle *p, size_t size, uint64_t *out)
{
    int err = PM_OK;
    const uint8_t *b;

    PM_TRY(take(p, size, &b));
    *out = pm_little(b, size);
out:
    return err;
}

/* ---- stack and memo -------------------------------------------------------------------- */

static int push(struct pm_torch_pickle *p, struct pm_torch_value *v)
{
    if (p->depth == MAX_VALUES)
        return pm_torch_pickle_bad(p, "more than %d values on its stack", MAX_VALUES);
    PM_GROW(p->stack, p->depth, p->stack_capacity);
    p->stack[p->depth++] = v;
    return PM_OK;
}

static size_t base(const struct pm_torch_pickle *p)
{
    return p->mark_count ? p->marks[p->mark_count - 1] : 0;
}

/* Returns the top of the stack without removing it. */
static int top(struct pm_torch_pickle *p, struct pm_torch_value **out)
{
    if (p->depth == base(p))
        return pm_torch_pickle_bad(p, "an opcode needs a value, but the stack is empty");
    *out = p->stack[p->depth - 1];
    return PM_OK;
}

static int pop(struct pm_torch_pickle *p, struct pm_torch_value **out)
{
    int err = top(p, out);

    if (err == PM_OK)
        p->depth--;
    return err;
}

/* Removes the last mark and returns the *count values above it in *items. */
static int pop_mark(struct pm_torch_pickle *p, struct pm_torch_value ***items, size_t *count)
{
    if (p->mark_count == 0)
        return pm_torch_pickle_bad(p, "an opcode needs a mark, but the stack has none");
    size_t from = p->marks[--p->mark_count];
    *items = p->stack ? p->stack + from : NULL;
    *count = p->depth - from;
    p->depth = from;
    return PM_OK;
}

static int push_mark(struct pm_torch_pickle *p)
{
    if (p->mark_count == MAX_MARKS)
        return pm_torch_pickle_bad(p, "more than %d marks within each other", MAX_MARKS);
    PM_GROW(p->marks, p->mark_count, p->mark_capacity);
    p->marks[p->mark_count++] = (uint32_t)p->depth;
    return PM_OK;
}

static int put(struct pm_torch_pickle *p, uint64_t number)
{
    int err = PM_OK;
    struct pm_torch_value *v = NULL;

    PM_TRY(top(p, &v));
    if (number > p->at - p->begin)
        PM_TRY(pm_torch_pickle_bad(p, "memo number %llu exceeds the largest possible so far, %llu",
                                   (unsigned long long)number,
                                   (unsigned long long)(p->at - p->begin)));
    if (number >= p->memo_capacity) {
        size_t capacity = 2 * ((size_t)number + 8);
        p->memo = pm_realloc(p->memo, capacity * sizeof *p->memo);
        p->memo_capacity = capacity;
    }
    for (; p->memo_size <= number; p->memo_size++)
        p->memo[p->memo_size] = NULL;
    p->memo[number] = v;
out:
    return err;
}

static int get(struct pm_torch_pickle *p, uint64_t number)
{
    if (number >= p->memo_size || !p->memo[number])
        return pm_torch_pickle_bad(p, "memo number %llu was never stored",
                                   (unsigned long long)number);
    return push(p, p->memo[number]);
}

/* ---- opcodes --------------------------------------------------------------------------- */

static int push_integer(struct pm_torch_pickle *p, int64_t i)
{
    struct pm_torch_value *v = pm_torch_value(p, PM_TORCH_INT);

    v->integer = i;
    return push(p, v);
}

static int push_bool(struct pm_torch_pickle *p, bool yes)
{
    struct pm_torch_value *v = pm_torch_value(p, PM_TORCH_BOOL);

    v->yes = yes;
    return push(p, v);
}

static int push_double(struct pm_torch_pickle *p)
{
    int err = PM_OK;
    const uint8_t *b;
    union { uint64_t u; double d; } bits = { 0 };
    struct pm_torch_value *v = pm_torch_value(p, PM_TORCH_FLOAT);

    PM_TRY(take(p, 8, &b));
    for (int i = 0; i < 8; i++)
        bits.u = bits.u << 8 | b[i];
    v->number = bits.d;
    PM_TRY(push(p, v));
out:
    return err;
}

/* A text or bytes, preceded by its length in length_size bytes. */
static int push_text(struct pm_torch_pickle *p, enum pm_torch_kind kind, size_t length_size)
{
    int err = PM_OK;
    uint64_t length;
    const uint8_t *b;
    struct pm_torch_value *v = pm_torch_value(p, kind);

    PM_TRY(take_number(p, length_size, &length));
    PM_TRY(need(p, length));
    if (length > MAX_TEXT) {
        p->at += length;
    } else {
        PM_TRY(take(p, (size_t)length, &b));
        char *text = pm_arena_alloc(p->arena, (size_t)length + 1);
        memcpy(text, b, (size_t)length);
        v->text = text;
        v->length = (uint32_t)length;
    }
    PM_TRY(push(p, v));
out:
    return err;
}

/* An integer of `size` bytes. More than eight bytes give a value of kind BYTES. */
static int push_long(struct pm_torch_pickle *p, size_t length_size)
{
    int err = PM_OK;
    struct pm_torch_value *v = NULL;

    PM_TRY(push_text(p, PM_TORCH_BYTES, length_size));
    PM_TRY(top(p, &v));
    if (v->text && v->length <= 8) {
        const uint8_t *b = (const uint8_t *)v->text;
        uint64_t u = v->length && b[v->length - 1] & 128 ? UINT64_MAX : 0;
        for (size_t i = v->length; i-- > 0;)
            u = u << 8 | b[i];
        v->kind = PM_TORCH_INT;
        v->length = 0;
        v->integer = (int64_t)u;
    }
out:
    return err;
}

/* A line's text, without its end. */
static int take_line(struct pm_torch_pickle *p, char line[MAX_GLOBAL])
{
    int err = PM_OK;
    const uint8_t *b;

    for (size_t i = 0; i < MAX_GLOBAL; i++) {
        PM_TRY(take(p, 1, &b));
        line[i] = *b == '\n' ? 0 : (char)*b;
        if (*b == '\n')
            return PM_OK;
        if (*b == 0)
            break;
    }
    PM_TRY(pm_torch_pickle_bad(p, "a name is longer than %d bytes", MAX_GLOBAL - 1));
out:
    return err;
}

static int push_global(struct pm_torch_pickle *p, const char *module, const char *name)
{
    int err = PM_OK;
    struct pm_torch_value *v = pm_torch_value(p, PM_TORCH_GLOBAL);

    v->text = pm_arena_printf(p->arena, "%s.%s", module, name);
    v->length = (uint32_t)strlen(v->text);
    PM_TRY(pm_torch_global(p, v));
    PM_TRY(push(p, v));
out:
    return err;
}

static int global_lines(struct pm_torch_pickle *p)
{
    int err = PM_OK;
    char module[MAX_GLOBAL], name[MAX_GLOBAL];

    PM_TRY(take_line(p, module));
    PM_TRY(take_line(p, name));
    PM_TRY(push_global(p, module, name));
out:
    return err;
}

static int global_stack(struct pm_torch_pickle *p)
{
    int err = PM_OK;
    struct pm_torch_value *module = NULL, *name = NULL;

    PM_TRY(pop(p, &name));
    PM_TRY(pop(p, &module));
    if (module->kind != PM_TORCH_STRING || name->kind != PM_TORCH_STRING || !module->text ||
        !name->text || module->length >= MAX_GLOBAL || name->length >= MAX_GLOBAL)
        PM_TRY(pm_torch_pickle_bad(p, "a global is not named by two texts"));
    PM_TRY(push_global(p, module->text, name->text));
out:
    return err;
}

/* Makes a tuple of the last n values, or of all above the mark if n is -1. */
static int push_tuple(struct pm_torch_pickle *p, enum pm_torch_kind kind, int n)
{
    int err = PM_OK;
    struct pm_torch_value **items = NULL, *v = pm_torch_value(p, kind);
    size_t count = (size_t)n;

    if (n < 0)
        PM_TRY(pop_mark(p, &items, &count));
    else if (p->depth - base(p) < count)
        PM_TRY(pm_torch_pickle_bad(p, "an opcode needs %d values, but the stack has fewer", n));
    else
        items = p->stack + (p->depth -= count);
    for (size_t i = 0; i < count; i++)
        pm_torch_append(p, v, NULL, items[i]);
    PM_TRY(push(p, v));
out:
    return err;
}

static bool is_list(const struct pm_torch_value *v)
{
    return v->kind == PM_TORCH_LIST || v->kind == PM_TORCH_SET || v->kind == PM_TORCH_OBJECT;
}

static bool is_dict(const struct pm_torch_value *v)
{
    return v->kind == PM_TORCH_DICT || v->kind == PM_TORCH_OBJECT;
}

/* Appends one value, or a key and a value, to the container below on the stack. */
static int add_one(struct pm_torch_pickle *p, bool pair)
{
    int err = PM_OK;
    struct pm_torch_value *key = NULL, *value = NULL, *to = NULL;

    PM_TRY(pop(p, &value));
    if (pair)
        PM_TRY(pop(p, &key));
    PM_TRY(top(p, &to));
    if (pair ? !is_dict(to) : !is_list(to))
        PM_TRY(pm_torch_pickle_bad(p, "a value is appended to something that is not a %s",
                                   pair ? "dict" : "list"));
    pm_torch_append(p, to, key, value);
out:
    return err;
}

/* The same for all values above the mark. */
static int add_marked(struct pm_torch_pickle *p, bool pairs)
{
    int err = PM_OK;
    struct pm_torch_value **items = NULL, *to = NULL;
    size_t count = 0;

    PM_TRY(pop_mark(p, &items, &count));
    PM_TRY(top(p, &to));
    if (pairs ? !is_dict(to) || count % 2 : !is_list(to))
        PM_TRY(pm_torch_pickle_bad(p, "values are appended to something that is not a %s",
                                   pairs ? "dict" : "list"));
    for (size_t i = 0; i < count; i += pairs ? 2 : 1)
        pm_torch_append(p, to, pairs ? items[i] : NULL, items[pairs ? i + 1 : i]);
out:
    return err;
}

/* f(args), or an object of a class; with_names: keyword arguments are on top. */
static int call(struct pm_torch_pickle *p, bool with_names)
{
    int err = PM_OK;
    struct pm_torch_value *f = NULL, *args = NULL, *names = NULL, *made = NULL;

    if (with_names)
        PM_TRY(pop(p, &names));
    PM_TRY(pop(p, &args));
    PM_TRY(pop(p, &f));
    if (args->kind != PM_TORCH_TUPLE) { /* TorchScript's enumerations give the value alone */
        struct pm_torch_value *one = pm_torch_value(p, PM_TORCH_TUPLE);
        pm_torch_append(p, one, NULL, args);
        args = one;
    }
    PM_TRY(pm_torch_call(p, f, args, &made));
    PM_TRY(push(p, made));
out:
    return err;
}

/* The argument of __setstate__. It is used only for objects of unknown classes. */
static int build(struct pm_torch_pickle *p)
{
    int err = PM_OK;
    struct pm_torch_value *state = NULL, *to = NULL;

    PM_TRY(pop(p, &state));
    PM_TRY(top(p, &to));
    if (to->kind == PM_TORCH_OBJECT)
        to->state = state;
out:
    return err;
}

static int persistent(struct pm_torch_pickle *p)
{
    int err = PM_OK;
    struct pm_torch_value *id = NULL, *made = NULL;

    PM_TRY(pop(p, &id));
    PM_TRY(pm_torch_persistent(p, id, &made));
    PM_TRY(push(p, made));
out:
    return err;
}

/* Opcodes that a number follows. */
static int numbered(struct pm_torch_pickle *p, uint8_t op)
{
    int err = PM_OK;
    bool four = op == 'J' || op == 'r' || op == 'j';
    uint64_t n;

    PM_TRY(take_number(p, op == 0x95 ? 8 : four ? 4 : op == 'M' ? 2 : 1, &n));
    switch (op) {
    case 0x80:
        return n >= 2 && n <= 5 ? PM_OK
                                : pm_torch_pickle_bad(p, "protocol %d, allowed 2 to 5", (int)n);
    case 0x95: return need(p, n); /* a frame's length */
    case 'J': return push_integer(p, (int32_t)(uint32_t)n);
    case 'K': case 'M': return push_integer(p, (int64_t)n);
    case 'q': case 'r': return put(p, n);
    default: return get(p, n);
    }
out:
    return err;
}

/* One opcode but STOP. */
static int step(struct pm_torch_pickle *p, uint8_t op)
{
    struct pm_torch_value *v = NULL;
    struct pm_torch_value **items = NULL;
    size_t count;
    int err;

    switch (op) {
    case 0x80: case 0x95: case 'J': case 'K': case 'M': case 'q': case 'r': case 'h': case 'j':
        return numbered(p, op);
    case 0x94: return put(p, p->memo_size);                         /* MEMOIZE */
    case 'N': return push(p, pm_torch_value(p, PM_TORCH_NONE));
    case 0x88: case 0x89: return push_bool(p, op == 0x88);
    case 'G': return push_double(p);
    case 0x8a: return push_long(p, 1);
    case 0x8b: return push_long(p, 4);
    case 'U': case 0x8c: return push_text(p, PM_TORCH_STRING, 1);
    case 'T': case 'X': return push_text(p, PM_TORCH_STRING, 4);
    case 0x8d: return push_text(p, PM_TORCH_STRING, 8);
    case 'C': return push_text(p, PM_TORCH_BYTES, 1);
    case 'B': return push_text(p, PM_TORCH_BYTES, 4);
    case 0x8e: case 0x96: return push_text(p, PM_TORCH_BYTES, 8);
    case ')': return push(p, pm_torch_value(p, PM_TORCH_TUPLE));
    case ']': return push(p, pm_torch_value(p, PM_TORCH_LIST));
    case '}': return push(p, pm_torch_value(p, PM_TORCH_DICT));
    case 0x8f: return push(p, pm_torch_value(p, PM_TORCH_SET));
    case '(': return push_mark(p);
    case 't': return push_tuple(p, PM_TORCH_TUPLE, -1);
    case 0x85: case 0x86: case 0x87: return push_tuple(p, PM_TORCH_TUPLE, op - 0x84);
    case 0x91: return push_tuple(p, PM_TORCH_SET, -1);              /* FROZENSET */
    case 'a': case 's': return add_one(p, op == 's');
    case 'e': case 'u': case 0x90: return add_marked(p, op == 'u');
    case 'c': return global_lines(p);
    case 0x93: return global_stack(p);
    case 'R': case 0x81: case 0x92: return call(p, op == 0x92);     /* REDUCE, NEWOBJ, NEWOBJ_EX */
    case 'b': return build(p);
    case 'Q': return persistent(p);
    case '0': return pop(p, &v);
    case '1': return pop_mark(p, &items, &count);
    case '2': return (err = top(p, &v)) < 0 ? err : push(p, v);     /* DUP */
    default: return pm_torch_pickle_bad(p, "torch.save does not write opcode 0x%02x", op);
    }
}

int pm_torch_pickle_run(struct pm_torch_pickle *p, struct pm_torch_value **out)
{
    int err = PM_OK;
    const uint8_t *op;

    p->depth = p->mark_count = p->memo_size = 0;
    for (;;) {
        p->opcode = p->at;
        PM_TRY(take(p, 1, &op));
        if (*op == '.')
            break;
        PM_TRY(step(p, *op));
        if (p->value_count > MAX_VALUES || p->cell_count > MAX_VALUES)
            PM_TRY(pm_torch_pickle_bad(p, "more than %d values", MAX_VALUES));
    }
    if (p->mark_count)
        PM_TRY(pm_torch_pickle_bad(p, "it stops within a mark"));
    PM_TRY(pop(p, out));
out:
    return err;
}

void pm_torch_pickle_end(struct pm_torch_pickle *p)
{
    pm_free(p->window);
    pm_free(p->stack);
    pm_free(p->memo);
    pm_free(p->marks);
}
