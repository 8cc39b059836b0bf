/* spirv: reads and rewrites modules.
 *
 * Specialization constants become plain constants, and operations on them are folded. SwiftShader
 * neither unrolls a loop nor folds an address around a specialization constant (8 times slower).
 * All drivers get the same rewritten modules, so tests on one driver are meaningful for the others.
 * The module's workgroup size, push block and features are checked against the device and the
 * kernel's row, because a driver would only misbehave. */
#include "device/spirv.h"

#include <pumice/base.h>

#include <string.h>

/* From the SPIR-V specification; only the values used here. */
enum {
    OP_EXECUTION_MODE = 16, OP_CAPABILITY = 17,
    OP_TYPE_BOOL = 20, OP_TYPE_INT = 21, OP_TYPE_FLOAT = 22, OP_TYPE_VECTOR = 23,
    OP_TYPE_MATRIX = 24, OP_TYPE_ARRAY = 28, OP_TYPE_RUNTIME_ARRAY = 29, OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_CONSTANT_TRUE = 41, OP_CONSTANT_FALSE = 42, OP_CONSTANT = 43, OP_CONSTANT_COMPOSITE = 44,
    OP_SPEC_TRUE = 48, OP_SPEC_FALSE = 49, OP_SPEC_CONSTANT = 50, OP_SPEC_COMPOSITE = 51,
    OP_SPEC_OP = 52, OP_VARIABLE = 59, OP_DECORATE = 71, OP_MEMBER_DECORATE = 72,
    OP_COMPOSITE_EXTRACT = 81,

    MODE_LOCAL_SIZE = 17, DECORATION_SPEC_ID = 1, DECORATION_BUILTIN = 11, DECORATION_OFFSET = 35,
    BUILTIN_GROUP_COUNT = 24, BUILTIN_GROUP_SIZE = 25, CLASS_WORKGROUP = 4, CLASS_PUSH = 9,
};
enum { CAP_FLOAT16 = 9, CAP_FLOAT64 = 10, CAP_INT64 = 11, CAP_INT16 = 22, CAP_ARITHMETIC = 63,
       CAP_STORAGE16 = 4433, CAP_COOPMAT = 6022 };
enum { MAGIC = 0x07230203, HEADER = 5 };

struct id {
    const uint32_t *def;  /* the instruction that defines the id */
    uint32_t value;       /* of a known 32-bit or bool constant */
    uint32_t spec;        /* specialization id + 1 */
    bool known;
};
struct reader {
    struct id *ids;
    uint32_t bound;
    const uint32_t *words;
    size_t count;
    struct pm_module_info *info;
    const uint32_t *spec; /* values of constants 0..specs-1 */
    int specs;
    uint32_t present;     /* value of constant PM_PRESENCE */
};

static uint32_t op_of(const uint32_t *w)
{
    return w[0] & 0xffff;
}

static size_t length_of(const uint32_t *w)
{
    return w[0] >> 16;
}

/* ---- types -------------------------------------------------------------------------- */

static uint32_t member_offset(const struct reader *r, uint32_t type, uint32_t member)
{
    for (size_t i = HEADER; i < r->count; i += length_of(r->words + i)) {
        const uint32_t *w = r->words + i;

        if (op_of(w) == OP_MEMBER_DECORATE && w[1] == type && w[2] == member &&
            w[3] == DECORATION_OFFSET)
            return w[4];
    }
    return 0;
}

/* Returns the bytes of a type: by offsets if a struct has them, else packed. */
static uint32_t type_bytes(const struct reader *r, uint32_t type)
{
    const uint32_t *w = r->ids[type].def;
    uint32_t total = 0, n;

    if (!w)
        return 0;
    switch (op_of(w)) {
    case OP_TYPE_BOOL:
        return 4;
    case OP_TYPE_INT:
    case OP_TYPE_FLOAT:
        return w[2] / 8;
    case OP_TYPE_VECTOR:
    case OP_TYPE_MATRIX:
        return w[3] * type_bytes(r, w[2]);
    case OP_TYPE_ARRAY:
        return r->ids[w[3]].value * type_bytes(r, w[2]);
    case OP_TYPE_POINTER:
        return 8;
    case OP_TYPE_STRUCT:
        for (n = 0; n + 2 < length_of(w); n++) {
            uint32_t at = member_offset(r, type, n);

            total = (at ? at : total) + type_bytes(r, w[2 + n]);
        }
        return total;
    default:
        return 0;
    }
}

/* ---- folding ------------------------------------------------------------------------ */

/* Folds integer and boolean operations of OpSpecConstantOp. False: the driver folds them. */
static bool fold(uint32_t op, const uint32_t *v, int count, uint32_t *out)
{
    uint32_t a = v[0], b = count > 1 ? v[1] : 0;
    int32_t sa = (int32_t)a, sb = (int32_t)b;

    switch (op) {
    case 124: *out = a; return true;                                /* Bitcast */
    case 126: *out = 0u - a; return true;                           /* SNegate */
    case 128: *out = a + b; return true;                            /* IAdd */
    case 130: *out = a - b; return true;                            /* ISub */
    case 132: *out = a * b; return true;                            /* IMul */
    case 134: if (!b) return false; *out = a / b; return true;      /* UDiv */
    case 135: if (!b || (a == 0x80000000u && sb == -1)) return false;
              *out = (uint32_t)(sa / sb); return true;              /* SDiv */
    case 137: if (!b) return false; *out = a % b; return true;      /* UMod */
    case 164: case 170: *out = a == b; return true;                 /* LogicalEqual, IEqual */
    case 165: case 171: *out = a != b; return true;                 /* LogicalNotEqual, INotEqual */
    case 166: *out = a || b; return true;                           /* LogicalOr */
    case 167: *out = a && b; return true;                           /* LogicalAnd */
    case 168: *out = !a; return true;                               /* LogicalNot */
    case 169: *out = a ? b : v[2]; return count == 3;               /* Select */
    case 172: *out = a > b; return true;                            /* UGreaterThan */
    case 173: *out = sa > sb; return true;                          /* SGreaterThan */
    case 174: *out = a >= b; return true;                           /* UGreaterThanEqual */
    case 175: *out = sa >= sb; return true;                         /* SGreaterThanEqual */
    case 176: *out = a < b; return true;                            /* ULessThan */
    case 177: *out = sa < sb; return true;                          /* SLessThan */
    case 178: *out = a <= b; return true;                           /* ULessThanEqual */
    case 179: *out = sa <= sb; return true;                         /* SLessThanEqual */
    case 194: if (b > 31) return false; *out = a >> b; return true; /* ShiftRightLogical */
    case 196: if (b > 31) return false; *out = a << b; return true; /* ShiftLeftLogical */
    case 197: *out = a | b; return true;                            /* BitwiseOr */
    case 198: *out = a ^ b; return true;                            /* BitwiseXor */
    case 199: *out = a & b; return true;                            /* BitwiseAnd */
    case 200: *out = ~a; return true;                               /* Not */
    default: return false;
    }
}

/* Computes the value of an OpSpecConstantOp whose operands are known 32-bit integers or
 * booleans. */
static bool fold_op(const struct reader *r, const uint32_t *w, uint32_t *out)
{
    uint32_t v[3] = { 0 };
    int count = (int)length_of(w) - 4;

    if (w[3] == OP_COMPOSITE_EXTRACT) {
        const uint32_t *from = r->ids[w[4]].def;

        if (count != 2 || !from || w[5] + 3 >= length_of(from))
            return false;
        *out = r->ids[from[3 + w[5]]].value;
        return r->ids[from[3 + w[5]]].known;
    }
    if (count < 1 || count > 3)
        return false;
    for (int i = 0; i < count; i++) {
        if (!r->ids[w[4 + i]].known)
            return false;
        v[i] = r->ids[w[4 + i]].value;
    }
    return fold(w[3], v, count, out);
}

static bool is_word(const struct reader *r, uint32_t type)
{
    const uint32_t *w = r->ids[type].def;

    return w && (op_of(w) == OP_TYPE_BOOL || (op_of(w) == OP_TYPE_INT && w[2] == 32));
}

/* Writes a constant instruction of the same type and id. Returns its length. */
static size_t put_constant(const struct reader *r, const uint32_t *w, uint32_t value, uint32_t *out)
{
    bool boolean = op_of(r->ids[w[1]].def) == OP_TYPE_BOOL;

    out[1] = w[1];
    out[2] = w[2];
    if (boolean) {
        out[0] = 3u << 16 | (value ? OP_CONSTANT_TRUE : OP_CONSTANT_FALSE);
        return 3;
    }
    out[0] = 4u << 16 | OP_CONSTANT;
    out[3] = value;
    return 4;
}

/* Writes one instruction to the output; returns the words written. */
static size_t rewrite(struct reader *r, const uint32_t *w, uint32_t *out)
{
    size_t length = length_of(w);
    struct id *id = NULL;
    bool boolean;
    uint32_t value;

    switch (op_of(w)) {
    case OP_DECORATE:
        if (w[2] == DECORATION_SPEC_ID)
            return 0;
        break;
    case OP_CONSTANT:
    case OP_CONSTANT_TRUE:
    case OP_CONSTANT_FALSE:
        id = &r->ids[w[2]];
        id->known = op_of(w) != OP_CONSTANT || length == 4;
        id->value = op_of(w) == OP_CONSTANT ? w[3] : op_of(w) == OP_CONSTANT_TRUE;
        break;
    case OP_SPEC_TRUE:
    case OP_SPEC_FALSE:
    case OP_SPEC_CONSTANT:
        id = &r->ids[w[2]];
        boolean = op_of(w) != OP_SPEC_CONSTANT;
        if (!boolean && length != 4)
            break; /* 64 bits: keeps its default */
        value = boolean ? op_of(w) == OP_SPEC_TRUE : w[3];
        if (id->spec && (int)id->spec <= r->specs)
            value = r->spec[id->spec - 1];
        else if (id->spec == PM_PRESENCE + 1)
            value = r->present;
        id->known = true;
        id->value = value;
        return put_constant(r, w, value, out);
    case OP_SPEC_COMPOSITE:
        memcpy(out, w, length * sizeof *w);
        for (size_t i = 3; i < length; i++)
            if (!r->ids[w[i]].known)
                return length;
        out[0] = (uint32_t)length << 16 | OP_CONSTANT_COMPOSITE;
        return length;
    case OP_SPEC_OP:
        if (!is_word(r, w[1]) || !fold_op(r, w, &value))
            break;
        r->ids[w[2]].known = true;
        r->ids[w[2]].value = value;
        return put_constant(r, w, value, out);
    default:
        break;
    }
    memcpy(out, w, length * sizeof *w);
    return length;
}

/* ---- properties of a module --------------------------------------------------------- */

static void note_capability(struct pm_module_info *m, uint32_t capability)
{
    m->float16 |= capability == CAP_FLOAT16;
    m->float64 |= capability == CAP_FLOAT64;
    m->int64 |= capability == CAP_INT64;
    m->int16 |= capability == CAP_INT16;
    m->subgroup_arithmetic |= capability == CAP_ARITHMETIC;
    m->storage16 |= capability == CAP_STORAGE16;
    m->coopmat |= capability == CAP_COOPMAT;
}

/* Records where ids are defined, and the decorations and capabilities of the module. False: the
 * module is damaged. */
static bool scan(struct reader *r)
{
    for (size_t i = HEADER; i < r->count;) {
        const uint32_t *w = r->words + i;
        size_t length = length_of(w);
        uint32_t op = op_of(w), made = 0;

        if (length == 0 || length > r->count - i)
            return false;
        if (op >= OP_TYPE_BOOL && op <= OP_TYPE_POINTER)
            made = w[1];
        else if ((op >= OP_CONSTANT_TRUE && op <= OP_SPEC_OP) || op == OP_VARIABLE)
            made = w[2];
        if (made >= r->bound)
            return false;
        if (made)
            r->ids[made].def = w;
        if (op == OP_CAPABILITY)
            note_capability(r->info, w[1]);
        if (op == OP_EXECUTION_MODE && w[2] == MODE_LOCAL_SIZE)
            memcpy(r->info->local, w + 3, sizeof r->info->local);
        if (op == OP_DECORATE && w[2] == DECORATION_SPEC_ID && w[1] < r->bound) {
            r->ids[w[1]].spec = w[3] + 1;
            r->info->reads_presence |= w[3] == PM_PRESENCE;
        }
        if (op == OP_DECORATE && w[2] == DECORATION_BUILTIN && w[3] == BUILTIN_GROUP_COUNT)
            r->info->uses_group_count = true;
        i += length;
    }
    return true;
}

/* Computes what depends on the constants' values: workgroup size, push block, workgroup memory. */
static void measure(struct reader *r)
{
    for (size_t i = HEADER; i < r->count; i += length_of(r->words + i)) {
        const uint32_t *w = r->words + i;

        if (op_of(w) == OP_DECORATE && w[2] == DECORATION_BUILTIN && w[3] == BUILTIN_GROUP_SIZE)
            for (int k = 0; k < 3; k++)
                r->info->local[k] = r->ids[r->ids[w[1]].def[3 + k]].value;
        if (op_of(w) == OP_VARIABLE && w[3] == CLASS_PUSH)
            r->info->push_bytes = type_bytes(r, r->ids[w[1]].def[3]);
        if (op_of(w) == OP_VARIABLE && w[3] == CLASS_WORKGROUP)
            r->info->shared_bytes += type_bytes(r, r->ids[w[1]].def[3]);
    }
}

bool pm_spirv_reads_presence(const uint32_t *in, size_t words)
{
    for (size_t i = HEADER; i < words && length_of(in + i) > 0; i += length_of(in + i)) {
        const uint32_t *w = in + i;

        if (op_of(w) >= OP_TYPE_BOOL && op_of(w) <= OP_TYPE_POINTER)
            return false; /* decorations come before types */
        if (op_of(w) == OP_DECORATE && w[2] == DECORATION_SPEC_ID && w[3] == PM_PRESENCE)
            return true;
    }
    return false;
}

int pm_spirv_freeze(const uint32_t *in, size_t words, const uint32_t *spec, int specs,
                    uint32_t present, uint32_t **out, size_t *out_words,
                    struct pm_module_info *info)
{
    int err = PM_OK;
    struct reader r = { .words = in, .count = words, .info = info, .spec = spec, .specs = specs,
                        .present = present };
    uint32_t *to = NULL;
    size_t n = HEADER;

    memset(info, 0, sizeof *info);
    if (words <= HEADER || in[0] != MAGIC || in[3] == 0 || in[3] > (1u << 22))
        return pm_fail(PM_EFAIL, "not a SPIR-V module");
    r.bound = in[3];
    r.ids = pm_calloc(r.bound, sizeof *r.ids);
    /* A folded boolean operation may shrink; no instruction grows. */
    to = pm_malloc(words * sizeof *to);
    if (!scan(&r))
        PM_TRY(pm_fail(PM_EFAIL, "a SPIR-V module with a broken instruction"));
    memcpy(to, in, HEADER * sizeof *to);
    for (size_t i = HEADER; i < words; i += length_of(in + i))
        n += rewrite(&r, in + i, to + n);
    measure(&r);
    *out = to, to = NULL;
    *out_words = n;
out:
    pm_free(to);
    pm_free(r.ids);
    return err;
}
