/* translate_types: types, their layout, and their names in OpenCL C.
 *
 * An array becomes a struct of one array, so that arrays are assigned, passed and returned like
 * other values. Structs with the same contents become one struct, because SPIR-V has a type for
 * each layout of the same GLSL type. The layout that the module demands must be that of OpenCL C;
 * it differs for vectors of 3, which no buffer may have. */
#include "device/opencl/translate_private.h"

/* ---- look-ups --------------------------------------------------------------------------- */

const struct cl_type *pm_cl_type(struct translator *t, uint32_t id)
{
    static const struct cl_type none = { .kind = CL_VOID };

    if (id && id < t->bound && t->types[id].kind != CL_NO_TYPE)
        return &t->types[id];
    pm_cl_fail(t, "damaged: id %u is not a type", id);
    return &none;
}

const struct cl_type *pm_cl_scalar(struct translator *t, uint32_t id)
{
    const struct cl_type *k = pm_cl_type(t, id);

    return k->kind == CL_VECTOR ? pm_cl_type(t, k->of) : k;
}

/* ---- reading ---------------------------------------------------------------------------- */

static void set_size(struct cl_type *k, uint64_t bytes, uint32_t align)
{
    k->bytes = bytes;
    k->align = align;
}

static void read_number(struct translator *t, const uint32_t *w, struct cl_type *k)
{
    k->bits = cl_word(w, 2);
    k->is_signed = k->kind == CL_INT && cl_word(w, 3) == 1;
    if (k->bits != 32 && !(k->bits == 64 && k->kind == CL_INT))
        pm_cl_fail(t, "%s of %u bits", k->kind == CL_INT ? "integers" : "numbers", k->bits);
    set_size(k, k->bits / 8, k->bits / 8);
}

static void read_vector(struct translator *t, const uint32_t *w, struct cl_type *k)
{
    const struct cl_type *of = pm_cl_type(t, k->of = cl_word(w, 2));
    uint32_t room;

    k->count = cl_word(w, 3);
    if (k->count < 2 || k->count > 4 ||
        (of->kind != CL_BOOL && of->kind != CL_INT && of->kind != CL_FLOAT)) {
        pm_cl_fail(t, "damaged: a vector of %u", k->count);
        k->count = 2;
    }
    k->has_3 = k->count == 3;
    room = (k->count == 3 ? 4 : k->count) * (uint32_t)of->bytes;
    set_size(k, room, room);
}

static bool is_stored(const struct cl_type *k)
{
    return k->kind >= CL_BOOL && k->kind != CL_FUNCTION;
}

static void check_stride(struct translator *t, uint32_t id, const struct cl_type *of)
{
    const uint32_t stride = t->ids[id].stride;

    if (stride && stride != of->bytes)
        pm_cl_fail(t, "an array has a step of %u bytes, OpenCL C has %u%s", stride,
                   (uint32_t)of->bytes, of->has_3 ? "; use no vectors of 3 in buffers" : "");
}

static void read_array(struct translator *t, const uint32_t *w, uint32_t id, struct cl_type *k)
{
    const struct cl_type *of = pm_cl_type(t, k->of = cl_word(w, 2));

    k->count = k->kind == CL_ARRAY ? pm_cl_constant(t, cl_word(w, 3)) : 0;
    k->nesting = of->nesting + 1;
    k->has_3 = of->has_3;
    if (!is_stored(of) || of->kind == CL_RUNTIME_ARRAY || of->flat)
        pm_cl_fail(t, "an array of a type without size");
    if ((k->kind == CL_ARRAY && k->count == 0) || k->nesting > CL_MOST_TYPE_NESTING ||
        of->bytes * k->count > UINT32_MAX)
        pm_cl_fail(t, "damaged: an array of %u", k->count);
    check_stride(t, id, of);
    set_size(k, of->bytes * k->count, of->align);
}

/* Adds a member and compares its offset with the module's. */
static void add_member(struct translator *t, uint32_t id, uint32_t member, struct cl_type *k)
{
    const struct cl_type *m = pm_cl_type(t, k->members[member]);
    const uint32_t wanted = pm_cl_member_offset(t, id, member), align = m->align ? m->align : 1;
    const uint64_t at = (k->bytes + align - 1) / align * align;

    if (!is_stored(m) || m->flat || (m->kind == CL_RUNTIME_ARRAY && k->count > 1))
        pm_cl_fail(t, "a struct with a member without size");
    if (wanted != UINT32_MAX && wanted != at)
        pm_cl_fail(t, "a member is at byte %u, in OpenCL C at %u", wanted, (uint32_t)at);
    k->nesting = m->nesting >= k->nesting ? m->nesting + 1 : k->nesting;
    k->has_3 |= m->has_3;
    k->align = align > k->align ? align : k->align;
    k->bytes = at + m->bytes;
}

static void read_struct(struct translator *t, const uint32_t *w, uint32_t id, struct cl_type *k)
{
    k->members = w + 2;
    k->count = cl_length(w) - 2;
    k->align = 1;
    if (k->count == 0)
        pm_cl_fail(t, "a struct without members");
    for (uint32_t i = 0; i < k->count && !t->err; i++)
        add_member(t, id, i, k);
    k->bytes = (k->bytes + k->align - 1) / k->align * k->align;
    if (k->nesting > CL_MOST_TYPE_NESTING || k->bytes > UINT32_MAX)
        pm_cl_fail(t, "damaged: a struct of %u levels", k->nesting);
    if (!t->err && t->types[k->members[0]].kind == CL_RUNTIME_ARRAY)
        k->flat = t->types[k->members[0]].of;
    for (uint32_t i = t->ids[id].decorations; i; i = t->decorations[i - 1].next)
        k->is_volatile |= t->decorations[i - 1].what == SpvDecorationCoherent ||
                          t->decorations[i - 1].what == SpvDecorationVolatile;
}

static void read_pointer(struct translator *t, const uint32_t *w, struct cl_type *k)
{
    const struct cl_type *of = pm_cl_type(t, cl_word(w, 3));

    k->storage = cl_word(w, 2);
    k->of = cl_word(w, 3);
    set_size(k, 8, 8);
    if (of->has_3 && (k->storage == SpvStorageClassPhysicalStorageBuffer ||
                      k->storage == SpvStorageClassPushConstant ||
                      k->storage == SpvStorageClassWorkgroup))
        pm_cl_fail(t, "a vector of 3 in a buffer, in the params or in shared memory takes 16 "
                   "bytes in OpenCL C; use 3 scalars");
}

void pm_cl_read_forward(struct translator *t, const uint32_t *w)
{
    const uint32_t id = cl_word(w, 1);

    if (id == 0 || id >= t->bound || t->types[id].kind != CL_NO_TYPE) {
        pm_cl_fail(t, "damaged: a forward pointer to id %u", id);
        return;
    }
    t->types[id] = (struct cl_type){ .kind = CL_POINTER, .storage = cl_word(w, 2), .bytes = 8,
                                     .align = 8 };
}

/* ---- types with the same contents ------------------------------------------------------- */

static bool is_same(const struct translator *t, uint32_t a, uint32_t b)
{
    const struct cl_type *x = &t->types[a], *y = &t->types[b];

    return a == b || (x->same && x->same == y->same);
}

static bool has_same_contents(const struct translator *t, const struct cl_type *x,
                              const struct cl_type *y)
{
    if (x->kind != y->kind || x->count != y->count || x->flat || y->flat)
        return false;
    if (x->kind == CL_ARRAY)
        return is_same(t, x->of, y->of);
    for (uint32_t i = 0; i < x->count; i++)
        if (!is_same(t, x->members[i], y->members[i]))
            return false;
    return true;
}

static void add_composite(struct translator *t, uint32_t id)
{
    t->types[id].same = id;
    for (size_t i = 0; i < t->composite_count && t->types[id].same == id; i++)
        if (has_same_contents(t, &t->types[t->composites[i]], &t->types[id]))
            t->types[id].same = t->composites[i];
    if (t->types[id].same != id || t->types[id].flat)
        return;
    PM_GROW(t->composites, t->composite_count, t->composite_capacity);
    t->composites[t->composite_count++] = id;
}

void pm_cl_read_type(struct translator *t, const uint32_t *w)
{
    const uint32_t id = w[1];
    struct cl_type k = { 0 };

    switch (cl_op(w)) {
    case SpvOpTypeVoid: k.kind = CL_VOID; break;
    case SpvOpTypeBool: k.kind = CL_BOOL; k.bits = 32; set_size(&k, 4, 4); break;
    case SpvOpTypeInt: k.kind = CL_INT; read_number(t, w, &k); break;
    case SpvOpTypeFloat: k.kind = CL_FLOAT; read_number(t, w, &k); break;
    case SpvOpTypeVector: k.kind = CL_VECTOR; read_vector(t, w, &k); break;
    case SpvOpTypeArray: k.kind = CL_ARRAY; read_array(t, w, id, &k); break;
    case SpvOpTypeRuntimeArray: k.kind = CL_RUNTIME_ARRAY; read_array(t, w, id, &k); break;
    case SpvOpTypeStruct: k.kind = CL_STRUCT; read_struct(t, w, id, &k); break;
    case SpvOpTypePointer: k.kind = CL_POINTER; read_pointer(t, w, &k); break;
    default: k.kind = CL_FUNCTION; pm_cl_type(t, cl_word(w, 2)); break;
    }
    if (t->types[id].kind != CL_NO_TYPE && k.kind != CL_POINTER)
        pm_cl_fail(t, "damaged: forward pointer %u is another type", id);
    if (t->err)
        return;
    t->types[id] = k;
    if (k.kind == CL_ARRAY || k.kind == CL_STRUCT)
        add_composite(t, id);
}

/* ---- names ------------------------------------------------------------------------------ */

const char *pm_cl_space(struct translator *t, uint32_t storage)
{
    switch (storage) {
    case SpvStorageClassFunction:
    case SpvStorageClassPrivate:
    case SpvStorageClassInput:
    case SpvStorageClassPushConstant: return "__private";
    case SpvStorageClassWorkgroup: return "__local";
    case SpvStorageClassPhysicalStorageBuffer: return "__global";
    default: pm_cl_fail(t, "a pointer to storage class %u", storage); return "";
    }
}

static void put_scalar(struct translator *t, const struct cl_type *k, bool is_signed)
{
    if (k->kind == CL_INT)
        pm_str_add(t->out, "%s%s", is_signed ? "" : "u", k->bits == 64 ? "long" : "int");
    else
        pm_str_add(t->out, "%s", k->kind == CL_FLOAT ? "float" : "int");
}

/* A pointer to a block that is one array without size points to its elements. */
static void put_pointer(struct translator *t, const struct cl_type *k)
{
    const struct cl_type *of = pm_cl_type(t, k->of);
    const uint32_t to = of->flat ? of->flat : k->of;

    pm_str_add(t->out, "%s%s ", of->is_volatile ? "volatile " : "", pm_cl_space(t, k->storage));
    if (pm_cl_type(t, to)->kind == CL_POINTER)
        pm_cl_fail(t, "a pointer to a pointer");
    else
        pm_cl_put_type(t, to);
    pm_str_add(t->out, " *");
}

void pm_cl_put_type(struct translator *t, uint32_t id)
{
    const struct cl_type *k = pm_cl_type(t, id);

    switch (k->kind) {
    case CL_VOID: pm_str_add(t->out, "void"); break;
    case CL_BOOL: case CL_INT: case CL_FLOAT: put_scalar(t, k, k->is_signed); break;
    case CL_VECTOR:
        put_scalar(t, pm_cl_scalar(t, id), pm_cl_scalar(t, id)->is_signed);
        pm_str_add(t->out, "%u", k->count);
        break;
    case CL_ARRAY: case CL_STRUCT:
        if (k->flat)
            pm_cl_fail(t, "a value without size");
        pm_str_add(t->out, "struct t%u", k->same);
        break;
    case CL_POINTER: put_pointer(t, k); break;
    default: pm_cl_fail(t, "damaged: a value of type %u", id);
    }
}

void pm_cl_put_integer(struct translator *t, uint32_t id, bool is_signed)
{
    const struct cl_type *k = pm_cl_type(t, id);

    pm_str_add(t->out, "%s%s", is_signed ? "" : "u",
               pm_cl_scalar(t, id)->bits == 64 ? "long" : "int");
    if (k->kind == CL_VECTOR)
        pm_str_add(t->out, "%u", k->count);
}

void pm_cl_put_composites(struct translator *t)
{
    for (size_t i = 0; i < t->composite_count && !t->err; i++) {
        const struct cl_type *k = &t->types[t->composites[i]];

        pm_str_add(t->out, "struct t%u {", t->composites[i]);
        for (uint32_t m = 0; m < k->count && k->kind == CL_STRUCT; m++) {
            pm_str_add(t->out, " ");
            pm_cl_put_type(t, k->members[m]);
            pm_str_add(t->out, " m%u;", m);
        }
        if (k->kind == CL_ARRAY) {
            pm_str_add(t->out, " ");
            pm_cl_put_type(t, k->of);
            pm_str_add(t->out, " v[%u];", k->count);
        }
        pm_str_add(t->out, " };\n");
    }
}
