/* translate_values: constants, values, and what pointers point to.
 *
 * A constant is written where it is used. Every other value is a variable v<id>. An access chain is
 * not a value of its own: it is written again as `v12.m0.v[v7]` wherever it is used. Its indices do
 * not change between the chain and its uses; only put_phis takes care, if a phi takes a chain. */
#include "device/opencl/translate_private.h"

#include <string.h>

/* ---- constants -------------------------------------------------------------------------- */

/* A float with exactly these bits. Hexadecimal digits are written here because those of printf
 * depend on the locale. */
static void put_float(struct translator *t, uint32_t bits)
{
    const uint32_t exponent = bits >> 23 & 255, mantissa = bits & 0x7fffff;
    const char *sign = bits >> 31 ? "-" : "";
    float value;

    memcpy(&value, &bits, sizeof value);
    if (exponent == 255 && mantissa)
        pm_str_add(t->out, "as_float(0x%08xu)", bits);
    else if (exponent == 255)
        pm_str_add(t->out, "(%sINFINITY)", sign);
    else if (exponent >= 127 && exponent < 147 && value == (float)(int)value)
        pm_str_add(t->out, value < 0 ? "(%d.0f)" : "%d.0f", (int)value);
    else if (bits << 1 == 0)
        pm_str_add(t->out, bits ? "(-0.0f)" : "0.0f");
    else if (exponent == 0)
        pm_str_add(t->out, "(%s0x0.%06xp-126f)", sign, mantissa << 1);
    else
        pm_str_add(t->out, "(%s0x1.%06xp%df)", sign, mantissa << 1, (int)exponent - 127);
}

static void put_int(struct translator *t, uint32_t value, bool is_signed)
{
    if (!is_signed)
        pm_str_add(t->out, "%uu", value);
    else if (value == 0x80000000u)
        pm_str_add(t->out, "(-2147483647 - 1)"); /* 2147483648 is no int */
    else
        pm_str_add(t->out, (int32_t)value < 0 ? "(%d)" : "%d", (int)value);
}

static void put_number(struct translator *t, const uint32_t *w)
{
    const struct cl_type *k = pm_cl_type(t, w[1]);
    const uint32_t low = cl_word(w, 3);

    if (cl_length(w) != 3 + k->bits / 32 || (k->kind != CL_INT && k->kind != CL_FLOAT))
        pm_cl_fail(t, "damaged: constant %u", w[2]);
    else if (k->bits == 64)
        pm_str_add(t->out, "((%slong)0x%08x%08xul)", k->is_signed ? "" : "u", w[4], low);
    else if (k->kind == CL_FLOAT)
        put_float(t, low);
    else
        put_int(t, low, k->is_signed);
}

static void put_constant(struct translator *t, uint32_t id, uint32_t nesting);

/* Components of a vector, or braces for a struct and for an array, which is a struct. */
static void put_composite(struct translator *t, const uint32_t *w, uint32_t nesting)
{
    const struct cl_type *k = pm_cl_type(t, w[1]);
    const bool vector = k->kind == CL_VECTOR,
               bools = vector && pm_cl_scalar(t, w[1])->kind == CL_BOOL;

    if (cl_length(w) != 3 + k->count || nesting > CL_MOST_TYPE_NESTING) {
        pm_cl_fail(t, "damaged: constant %u", w[2]);
        return;
    }
    if (vector || nesting == 0) {
        pm_str_add(t->out, "(");
        pm_cl_put_type(t, w[1]);
        pm_str_add(t->out, ")");
    }
    pm_str_add(t->out, vector ? "(" : k->kind == CL_ARRAY ? "{ { " : "{ ");
    for (uint32_t i = 3; i < cl_length(w) && !t->err; i++) {
        pm_cl_check_length(t);
        pm_str_add(t->out, "%s%s", i > 3 ? ", " : "", bools ? "-" : "");
        put_constant(t, w[i], nesting + 1);
    }
    pm_str_add(t->out, vector ? ")" : k->kind == CL_ARRAY ? " } }" : " }");
}

static bool is_composite(const struct cl_type *k)
{
    return k->kind == CL_ARRAY || k->kind == CL_STRUCT;
}

static void put_zero(struct translator *t, uint32_t type, uint32_t nesting)
{
    if (nesting == 0 || !is_composite(pm_cl_type(t, type))) {
        pm_str_add(t->out, "(");
        pm_cl_put_type(t, type);
        pm_str_add(t->out, ")");
    }
    pm_str_add(t->out, is_composite(pm_cl_type(t, type)) ? "{ 0 }" : "0");
}

static bool is_constant(uint32_t op)
{
    return op == SpvOpConstant || op == SpvOpConstantTrue || op == SpvOpConstantFalse ||
           op == SpvOpConstantComposite || op == SpvOpConstantNull || op == SpvOpUndef;
}

/* nesting: levels of composites around the constant. */
static void put_constant(struct translator *t, uint32_t id, uint32_t nesting)
{
    const uint32_t *w = pm_cl_def(t, id);

    switch (cl_op(w)) {
    case SpvOpConstant: put_number(t, w); break;
    case SpvOpConstantTrue: pm_str_add(t->out, "1"); break;
    case SpvOpConstantFalse: pm_str_add(t->out, "0"); break;
    case SpvOpConstantComposite:
        pm_str_add(t->out, nesting ? "" : "(");
        put_composite(t, w, nesting);
        pm_str_add(t->out, nesting ? "" : ")");
        break;
    case SpvOpConstantNull: case SpvOpUndef:
        pm_str_add(t->out, nesting ? "" : "(");
        put_zero(t, w[1], nesting);
        pm_str_add(t->out, nesting ? "" : ")");
        break;
    default: pm_cl_fail(t, "damaged: id %u is not a constant", id);
    }
}

/* ---- values ----------------------------------------------------------------------------- */

/* Whether a pointer is written as the address of something. */
static bool is_address(struct translator *t, uint32_t id)
{
    const uint32_t op = cl_op(pm_cl_def(t, id));

    return op == SpvOpVariable || cl_is_chain(op);
}

void pm_cl_put_value(struct translator *t, uint32_t id)
{
    const uint32_t op = cl_op(pm_cl_def(t, id));

    if (is_constant(op))
        put_constant(t, id, 0);
    else if (is_address(t, id))
        pm_cl_put_pointer(t, id);
    else
        pm_str_add(t->out, "v%u", id);
}

void pm_cl_put_as(struct translator *t, uint32_t id, bool is_signed)
{
    const uint32_t type = pm_cl_type_of(t, id);
    const struct cl_type *k = pm_cl_scalar(t, type);

    if (k->kind == CL_INT && k->is_signed == is_signed) {
        pm_cl_put_value(t, id);
        return;
    }
    if (pm_cl_is_constant(t, id)) {
        put_int(t, pm_cl_constant(t, id), is_signed);
        return;
    }
    pm_str_add(t->out, "as_");
    pm_cl_put_integer(t, type, is_signed);
    pm_str_add(t->out, "(");
    pm_cl_put_value(t, id);
    pm_str_add(t->out, ")");
}

/* ---- access chains ---------------------------------------------------------------------- */

/* One step of a chain: from a type to a part of it. */
struct step {
    uint32_t type;  /* before the step, then after it */
    bool component; /* of a vector */
    bool constant;  /* the index is a constant */
};

static void take_step(struct translator *t, uint32_t index, struct step *s)
{
    const struct cl_type *k = pm_cl_type(t, s->type);

    if (pm_cl_type(t, pm_cl_type_of(t, index))->kind != CL_INT) {
        pm_cl_fail(t, "damaged: id %u is not an index", index);
        return;
    }
    s->constant = pm_cl_is_constant(t, index);
    s->component = k->kind == CL_VECTOR;
    if (k->kind == CL_STRUCT) {
        const uint32_t member = pm_cl_constant(t, index);

        if (member < k->count)
            s->type = k->members[member];
        else
            pm_cl_fail(t, "damaged: member %u of %u", member, k->count);
    } else if (k->kind == CL_ARRAY || k->kind == CL_VECTOR) {
        if (s->component && s->constant && pm_cl_constant(t, index) >= k->count)
            pm_cl_fail(t, "damaged: component %u of %u", pm_cl_constant(t, index), k->count);
        s->type = k->of;
    } else {
        pm_cl_fail(t, "damaged: an index into a value without parts");
    }
}

static void put_step(struct translator *t, uint32_t index, const struct step *s)
{
    const struct cl_type *k = pm_cl_type(t, s->type);

    if (k->kind == CL_STRUCT) {
        pm_str_add(t->out, ".m%u", pm_cl_constant(t, index));
    } else if (k->kind == CL_VECTOR && s->constant) {
        pm_str_add(t->out, ".s%u", pm_cl_constant(t, index));
    } else {
        pm_str_add(t->out, k->kind == CL_VECTOR ? "[" : ".v[");
        pm_cl_put_value(t, index);
        pm_str_add(t->out, "]");
    }
}

const struct cl_type *pm_cl_pointer_type(struct translator *t, uint32_t pointer)
{
    const struct cl_type *k = pm_cl_type(t, pm_cl_type_of(t, pointer));

    if (k->kind != CL_POINTER)
        pm_cl_fail(t, "damaged: id %u is not a pointer", pointer);
    return k;
}

/* A chain as its base, and the first index after that. */
struct chain {
    uint32_t first; /* word of the first index that put_chain has to write */
    uint32_t type;  /* of what stands before that */
    bool is_flat;   /* the base is a block that is one array: base[index] */
    bool last_is_component, last_is_constant, last_is_bool;
};

static struct chain read_chain(struct translator *t, const uint32_t *w)
{
    const struct cl_type *base = pm_cl_pointer_type(t, cl_word(w, 3));
    struct chain c = { .first = 4, .type = base->of };
    const uint32_t flat = base->kind == CL_POINTER ? pm_cl_type(t, base->of)->flat : 0;
    struct step s;

    if (flat) {
        c.is_flat = true;
        c.first = 6;
        c.type = flat;
        if (cl_length(w) < 6 || pm_cl_constant(t, w[4]) != 0 || is_address(t, w[3]) ||
            pm_cl_type(t, pm_cl_type_of(t, w[5]))->kind != CL_INT)
            pm_cl_fail(t, "damaged: a chain into a block without an index");
    }
    s = (struct step){ .type = c.type };
    for (uint32_t i = c.first; i < cl_length(w) && !t->err; i++)
        take_step(t, w[i], &s);
    c.last_is_component = s.component;
    c.last_is_constant = s.constant;
    c.last_is_bool = s.component && !t->err && pm_cl_type(t, s.type)->kind == CL_BOOL;
    return c;
}

static void put_target(struct translator *t, uint32_t id, uint32_t chains, bool address);

/* address: the text is for an address, which components of a vector do not have. */
static void put_chain(struct translator *t, const uint32_t *w, uint32_t chains, bool address)
{
    const struct chain c = read_chain(t, w);
    const bool cast = c.last_is_component && (address || !c.last_is_constant);
    struct step s = { .type = c.type };

    if (t->err)
        return;
    if (cast) {
        pm_str_add(t->out, "((");
        pm_cl_put_type(t, w[1]);
        pm_str_add(t->out, ")&");
    }
    if (c.is_flat) {
        pm_cl_put_value(t, w[3]);
        pm_str_add(t->out, "[");
        pm_cl_put_value(t, w[5]);
        pm_str_add(t->out, "]");
    } else {
        put_target(t, w[3], chains + 1, false);
    }
    for (uint32_t i = c.first; i < cl_length(w) && !t->err; i++) {
        const struct step before = { .type = s.type,
                                     .constant = !cast && pm_cl_is_constant(t, w[i]) };

        take_step(t, w[i], &s);
        if (cast && s.component)
            pm_str_add(t->out, ")");
        put_step(t, w[i], &before);
    }
}

static void put_target(struct translator *t, uint32_t id, uint32_t chains, bool address)
{
    const uint32_t *w = pm_cl_def(t, id);
    const struct cl_type *k = pm_cl_pointer_type(t, id);
    const char *from = "";

    if (t->err)
        return;
    if (chains > CL_MOST_CHAINS) {
        pm_cl_fail(t, "more than %d nested access chains", CL_MOST_CHAINS);
    } else if (cl_is_chain(cl_op(w))) {
        put_chain(t, w, chains, address);
    } else if (cl_op(w) == SpvOpVariable) {
        if (k->storage != SpvStorageClassFunction)
            from = k->storage == SpvStorageClassWorkgroup ? "s->" : "g->";
        pm_str_add(t->out, "%sv%u", from, id);
    } else if (pm_cl_type(t, k->of)->flat) {
        pm_cl_fail(t, "a whole buffer as a value");
    } else {
        pm_str_add(t->out, "(*v%u)", id);
    }
}

void pm_cl_put_target(struct translator *t, uint32_t id)
{
    put_target(t, id, 0, false);
}

void pm_cl_put_pointer(struct translator *t, uint32_t id)
{
    if (is_address(t, id)) {
        pm_str_add(t->out, "(&");
        put_target(t, id, 0, true);
        pm_str_add(t->out, ")");
    } else {
        pm_cl_put_value(t, id);
    }
}

bool pm_cl_is_bool_component(struct translator *t, uint32_t id)
{
    const uint32_t *w = pm_cl_def(t, id);

    return cl_is_chain(cl_op(w)) && read_chain(t, w).last_is_bool;
}
