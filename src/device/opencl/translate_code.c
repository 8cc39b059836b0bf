/* translate_code: the statement of each instruction.
 *
 * Most instructions are rows of a table. A row's text has, after a $, a letter and the number of a
 * word of the instruction (0 is its operation code): v the value, u and s the value as unsigned and
 * signed integer, r the value as the result's type of integer, p the pointer. $T is the result's
 * type. Integers are added, subtracted and multiplied without sign, because OpenCL C does not
 * define a signed sum that exceeds its range; GLSL does.
 *
 * A bool is an int, 0 or 1. A vector of bool is a vector of int, 0 or -1, as OpenCL's comparisons
 * return it. */
#include <spirv/unified1/GLSL.std.450.h>

#include "device/opencl/translate_private.h"

enum made { AS_IS, UNSIGNED, SIGNED }; /* what a row's text yields, if the type is an integer */
struct row {
    uint32_t op;
    enum made made;
    const char *text;
};

static const struct row rows[] = {
    { SpvOpIAdd, UNSIGNED, "$u3 + $u4" },
    { SpvOpISub, UNSIGNED, "$u3 - $u4" },
    { SpvOpIMul, UNSIGNED, "$u3 * $u4" },
    { SpvOpUDiv, UNSIGNED, "$u3 / $u4" },
    { SpvOpUMod, UNSIGNED, "$u3 % $u4" },
    { SpvOpSDiv, SIGNED, "$s3 / $s4" },
    { SpvOpSRem, SIGNED, "$s3 % $s4" },
    { SpvOpSNegate, UNSIGNED, "0 - $u3" },
    { SpvOpNot, UNSIGNED, "~$u3" },
    { SpvOpBitwiseAnd, UNSIGNED, "$u3 & $u4" },
    { SpvOpBitwiseOr, UNSIGNED, "$u3 | $u4" },
    { SpvOpBitwiseXor, UNSIGNED, "$u3 ^ $u4" },
    { SpvOpShiftLeftLogical, UNSIGNED, "$u3 << $u4" },
    { SpvOpShiftRightLogical, UNSIGNED, "$u3 >> $u4" },
    { SpvOpShiftRightArithmetic, SIGNED, "$s3 >> $s4" },
    { SpvOpFAdd, AS_IS, "$v3 + $v4" },
    { SpvOpFSub, AS_IS, "$v3 - $v4" },
    { SpvOpFMul, AS_IS, "$v3 * $v4" },
    { SpvOpFDiv, AS_IS, "$v3 / $v4" },
    { SpvOpFNegate, AS_IS, "-$v3" },
    { SpvOpVectorTimesScalar, AS_IS, "$v3 * $v4" },
    { SpvOpDot, AS_IS, "dot($v3, $v4)" },
    { SpvOpIEqual, AS_IS, "$u3 == $u4" },
    { SpvOpINotEqual, AS_IS, "$u3 != $u4" },
    { SpvOpULessThan, AS_IS, "$u3 < $u4" },
    { SpvOpULessThanEqual, AS_IS, "$u3 <= $u4" },
    { SpvOpUGreaterThan, AS_IS, "$u3 > $u4" },
    { SpvOpUGreaterThanEqual, AS_IS, "$u3 >= $u4" },
    { SpvOpSLessThan, AS_IS, "$s3 < $s4" },
    { SpvOpSLessThanEqual, AS_IS, "$s3 <= $s4" },
    { SpvOpSGreaterThan, AS_IS, "$s3 > $s4" },
    { SpvOpSGreaterThanEqual, AS_IS, "$s3 >= $s4" },
    { SpvOpFOrdEqual, AS_IS, "$v3 == $v4" },
    { SpvOpFUnordNotEqual, AS_IS, "$v3 != $v4" },
    { SpvOpFOrdLessThan, AS_IS, "$v3 < $v4" },
    { SpvOpFOrdLessThanEqual, AS_IS, "$v3 <= $v4" },
    { SpvOpFOrdGreaterThan, AS_IS, "$v3 > $v4" },
    { SpvOpFOrdGreaterThanEqual, AS_IS, "$v3 >= $v4" },
    { SpvOpIsNan, AS_IS, "isnan($v3)" },
    { SpvOpIsInf, AS_IS, "isinf($v3)" },
    { SpvOpAny, AS_IS, "any($v3)" },
    { SpvOpAll, AS_IS, "all($v3)" },
    { SpvOpLogicalAnd, AS_IS, "$v3 & $v4" },
    { SpvOpLogicalOr, AS_IS, "$v3 | $v4" },
    { SpvOpLogicalEqual, AS_IS, "$v3 == $v4" },
    { SpvOpLogicalNotEqual, AS_IS, "$v3 != $v4" },
    { SpvOpLogicalNot, AS_IS, "!$v3" }, /* of a vector: 0 or -1 */
    { SpvOpConvertSToF, AS_IS, "convert_$T($s3)" },
    { SpvOpConvertUToF, AS_IS, "convert_$T($u3)" },
    { SpvOpConvertFToS, SIGNED, "convert_$T($v3)" },
    { SpvOpConvertFToU, UNSIGNED, "convert_$T($v3)" },
    { SpvOpUConvert, AS_IS, "convert_$T($u3)" },
    { SpvOpSConvert, AS_IS, "convert_$T($s3)" },
    { SpvOpCopyObject, AS_IS, "$v3" },
    { SpvOpAtomicIAdd, AS_IS, "atomic_add($p3, $r6)" },
    { SpvOpAtomicISub, AS_IS, "atomic_sub($p3, $r6)" },
    { SpvOpAtomicAnd, AS_IS, "atomic_and($p3, $r6)" },
    { SpvOpAtomicOr, AS_IS, "atomic_or($p3, $r6)" },
    { SpvOpAtomicXor, AS_IS, "atomic_xor($p3, $r6)" },
    { SpvOpAtomicExchange, AS_IS, "atomic_xchg($p3, $r6)" },
    { 0 },
};
/* Extended instructions; their operands start at word 5. fmin and fmax equal GLSL's min and max,
 * except for NaN, where GLSL leaves the result open. */
static const struct row extended[] = {
    { GLSLstd450Round, AS_IS, "round($v5)" },
    { GLSLstd450RoundEven, AS_IS, "rint($v5)" },
    { GLSLstd450Trunc, AS_IS, "trunc($v5)" },
    { GLSLstd450FAbs, AS_IS, "fabs($v5)" },
    { GLSLstd450SAbs, UNSIGNED, "abs($s5)" },
    { GLSLstd450FSign, AS_IS, "sign($v5)" },
    { GLSLstd450Floor, AS_IS, "floor($v5)" },
    { GLSLstd450Ceil, AS_IS, "ceil($v5)" },
    { GLSLstd450Sin, AS_IS, "sin($v5)" },
    { GLSLstd450Cos, AS_IS, "cos($v5)" },
    { GLSLstd450Tanh, AS_IS, "tanh($v5)" },
    { GLSLstd450Pow, AS_IS, "pow($v5, $v6)" },
    { GLSLstd450Exp, AS_IS, "exp($v5)" },
    { GLSLstd450Log, AS_IS, "log($v5)" },
    { GLSLstd450Exp2, AS_IS, "exp2($v5)" },
    { GLSLstd450Log2, AS_IS, "log2($v5)" },
    { GLSLstd450Sqrt, AS_IS, "sqrt($v5)" },
    { GLSLstd450InverseSqrt, AS_IS, "rsqrt($v5)" },
    { GLSLstd450FMin, AS_IS, "fmin($v5, $v6)" },
    { GLSLstd450UMin, UNSIGNED, "min($u5, $u6)" },
    { GLSLstd450SMin, SIGNED, "min($s5, $s6)" },
    { GLSLstd450FMax, AS_IS, "fmax($v5, $v6)" },
    { GLSLstd450UMax, UNSIGNED, "max($u5, $u6)" },
    { GLSLstd450SMax, SIGNED, "max($s5, $s6)" },
    { GLSLstd450FClamp, AS_IS, "fmin(fmax($v5, $v6), $v7)" },
    { GLSLstd450UClamp, UNSIGNED, "min(max($u5, $u6), $u7)" },
    { GLSLstd450SClamp, SIGNED, "min(max($s5, $s6), $s7)" },
    { GLSLstd450FMix, AS_IS, "mix($v5, $v6, $v7)" },
    { GLSLstd450Step, AS_IS, "step($v5, $v6)" },
    { GLSLstd450SmoothStep, AS_IS, "smoothstep($v5, $v6, $v7)" },
    { GLSLstd450NMin, AS_IS, "fmin($v5, $v6)" },
    { GLSLstd450NMax, AS_IS, "fmax($v5, $v6)" },
    { 0 },
};
static const struct row fused = { GLSLstd450Fma, AS_IS, "fma($v5, $v6, $v7)" };
static const struct row unfused = { GLSLstd450Fma, AS_IS, "$v5 * $v6 + $v7" };

static const struct row *find_row(const struct row *list, uint32_t op)
{
    for (; list->text; list++)
        if (list->op == op)
            return list;
    return NULL;
}

/* ---- rows ------------------------------------------------------------------------------- */

static void begin_result(struct translator *t, const uint32_t *w)
{
    pm_cl_line(t);
    pm_str_add(t->out, "v%u = ", w[2]);
}

static void put_operand(struct translator *t, const uint32_t *w, char kind, uint32_t id)
{
    switch (kind) {
    case 'u': pm_cl_put_as(t, id, false); break;
    case 's': pm_cl_put_as(t, id, true); break;
    case 'r': pm_cl_put_as(t, id, pm_cl_scalar(t, w[1])->is_signed); break;
    case 'p': pm_cl_put_pointer(t, id); break;
    default: pm_cl_put_value(t, id);
    }
}

static void put_text(struct translator *t, const uint32_t *w, const char *text)
{
    for (const char *s = text; *s; s++) {
        if (*s != '$') {
            pm_str_bytes(t->out, s, 1);
        } else if (s[1] == 'T') {
            pm_cl_put_type(t, w[1]);
            s++;
        } else {
            put_operand(t, w, s[1], cl_word(w, (uint32_t)(s[2] - '0')));
            s += 2;
        }
    }
}

static void put_row(struct translator *t, const uint32_t *w, const struct row *r)
{
    const struct cl_type *k = pm_cl_scalar(t, w[1]);
    const bool convert = r->made != AS_IS && k->kind == CL_INT &&
                         k->is_signed != (r->made == SIGNED);

    if (convert && pm_cl_scalar(t, pm_cl_type_of(t, cl_word(w, 3)))->kind == CL_FLOAT) {
        pm_cl_fail(t, "a conversion to integers of the other sign");
        return;
    }
    begin_result(t, w);
    if (convert) {
        pm_str_add(t->out, "as_");
        pm_cl_put_type(t, w[1]);
        pm_str_add(t->out, "(");
    }
    put_text(t, w, r->text);
    pm_str_add(t->out, convert ? ");\n" : ";\n");
}

static void put_extended(struct translator *t, const uint32_t *w)
{
    const uint32_t op = cl_word(w, 4);
    const struct row *r = op == GLSLstd450Fma ? t->dialect->fma ? &fused : &unfused
                                              : find_row(extended, op);

    if (r && cl_word(w, 3) == t->glsl)
        put_row(t, w, r);
    else
        pm_cl_fail(t, "extended instruction %u of GLSL.std.450 has no translation", op);
}

/* OpenCL C 1.2 has relaxed atomic functions on 32-bit integers only. */
static void check_atomic(struct translator *t, const uint32_t *w)
{
    const struct cl_type *k = pm_cl_type(t, w[1]);

    if (k->kind != CL_INT || k->bits != 32 || pm_cl_constant(t, cl_word(w, 5)) != 0)
        pm_cl_fail(t, "an atomic operation that orders memory, or not on 32 bits");
}

/* ---- memory ----------------------------------------------------------------------------- */

/* Reads the alignment among the memory operands from word i on; 0: none. */
static uint32_t alignment_of(struct translator *t, const uint32_t *w, uint32_t i)
{
    if (cl_length(w) <= i || w[i] == SpvMemoryAccessMaskNone)
        return 0;
    if (w[i] != SpvMemoryAccessAlignedMask)
        pm_cl_fail(t, "memory operands %u of a load or store", w[i]);
    return cl_word(w, i + 1);
}

/* The components of a vector that is not aligned to its size. OpenCL C has functions for that. */
static const struct cl_type *unaligned_vector(struct translator *t, const uint32_t *w,
                                              uint32_t type, uint32_t operands)
{
    const struct cl_type *k = pm_cl_type(t, type);
    const uint32_t align = alignment_of(t, w, operands);

    if (!align || align >= k->align)
        return NULL;
    if (k->kind != CL_VECTOR)
        pm_cl_fail(t, "a load or store aligned to %u bytes instead of %u", align, k->align);
    return k->kind == CL_VECTOR ? k : NULL;
}

/* "(__global uint *)&target" for the components of a vector. */
static void put_components(struct translator *t, uint32_t pointer, uint32_t type)
{
    const struct cl_type *p = pm_cl_pointer_type(t, pointer);

    pm_str_add(t->out, "(%s ", pm_cl_space(t, p->storage));
    pm_cl_put_type(t, pm_cl_type(t, type)->of);
    pm_str_add(t->out, " *)");
    pm_cl_put_pointer(t, pointer);
}

static void put_load(struct translator *t, const uint32_t *w)
{
    const struct cl_type *vector = unaligned_vector(t, w, w[1], 4);
    const uint32_t pointer = cl_word(w, 3);

    begin_result(t, w);
    if (vector) {
        pm_str_add(t->out, "vload%u(0, ", vector->count);
        put_components(t, pointer, w[1]);
        pm_str_add(t->out, ");\n");
        return;
    }
    pm_cl_put_target(t, pointer);
    pm_str_add(t->out, !t->err && pm_cl_is_bool_component(t, pointer) ? " != 0;\n" : ";\n");
}

/* Assigns a constant to the part at `path` of what a pointer points to; arrays and structs part by
 * part. From a whole array clang makes a variable outside of the kernel, in its private memory, and
 * Mesa 22.3 crashes at that. */
static void put_constant_store(struct translator *t, uint32_t pointer, uint32_t value,
                               struct pm_str *path, int nesting)
{
    const uint32_t *w = pm_cl_def(t, value);
    const struct cl_type *k = pm_cl_type(t, pm_cl_type_of(t, value));
    const size_t length = path->length;

    if (cl_op(w) != SpvOpConstantComposite || (k->kind != CL_ARRAY && k->kind != CL_STRUCT) ||
        cl_length(w) != 3 + k->count || nesting == CL_MOST_TYPE_NESTING) {
        pm_cl_line(t);
        pm_cl_put_target(t, pointer);
        pm_str_add(t->out, "%s = ", path->text);
        pm_cl_put_value(t, value);
        pm_str_add(t->out, ";\n");
        pm_cl_check_length(t);
        return;
    }
    for (uint32_t i = 0; i < k->count && !t->err; i++) {
        pm_str_add(path, k->kind == CL_ARRAY ? ".v[%u]" : ".m%u", i);
        put_constant_store(t, pointer, w[3 + i], path, nesting + 1);
        path->length = length;
    }
}

static void put_store(struct translator *t, const uint32_t *w)
{
    const uint32_t pointer = cl_word(w, 1), value = cl_word(w, 2);
    const struct cl_type *vector = unaligned_vector(t, w, pm_cl_type_of(t, value), 3);

    if (cl_op(pm_cl_def(t, value)) == SpvOpConstantComposite &&
        pm_cl_type(t, pm_cl_type_of(t, value))->kind != CL_VECTOR) {
        struct pm_str path = { 0 };

        pm_str_add(&path, "%s", "");
        put_constant_store(t, pointer, value, &path, 0);
        pm_str_free(&path);
        return;
    }
    pm_cl_line(t);
    if (vector) {
        pm_str_add(t->out, "vstore%u(", vector->count);
        pm_cl_put_value(t, value);
        pm_str_add(t->out, ", 0, ");
        put_components(t, pointer, pm_cl_type_of(t, value));
        pm_str_add(t->out, ");\n");
        return;
    }
    pm_cl_put_target(t, pointer);
    pm_str_add(t->out, !t->err && pm_cl_is_bool_component(t, pointer) ? " = -" : " = ");
    pm_cl_put_value(t, value);
    pm_str_add(t->out, ";\n");
}

/* If any barrier of the module orders buffers, all its barriers do. glslang writes
 * memoryBarrierBuffer() as an instruction of its own before the barrier, so the barrier's own
 * semantics do not show it. */
static void put_barrier(struct translator *t, const char *function)
{
    pm_cl_line(t);
    pm_str_add(t->out, "%s(CLK_LOCAL_MEM_FENCE%s);\n", function,
               t->global_fences ? " | CLK_GLOBAL_MEM_FENCE" : "");
}

/* ---- composites ------------------------------------------------------------------------- */

static void put_construct(struct translator *t, const uint32_t *w)
{
    const struct cl_type *k = pm_cl_type(t, w[1]);
    const bool vector = k->kind == CL_VECTOR;

    if (!vector && (k->kind != CL_ARRAY && (k->kind != CL_STRUCT || k->flat))) {
        pm_cl_fail(t, "damaged: id %u is not a composite", w[2]);
        return;
    }
    begin_result(t, w);
    pm_str_add(t->out, "(");
    pm_cl_put_type(t, w[1]);
    pm_str_add(t->out, vector ? ")(" : k->kind == CL_ARRAY ? "){ { " : "){ ");
    for (uint32_t i = 3; i < cl_length(w) && !t->err; i++) {
        const bool bit = vector && pm_cl_type(t, pm_cl_type_of(t, w[i]))->kind == CL_BOOL;

        pm_str_add(t->out, "%s%s", i > 3 ? ", " : "", bit ? "-" : "");
        pm_cl_put_value(t, w[i]);
    }
    pm_str_add(t->out, vector ? ");\n" : k->kind == CL_ARRAY ? " } };\n" : " };\n");
}

static void put_extract(struct translator *t, const uint32_t *w)
{
    uint32_t type = pm_cl_type_of(t, cl_word(w, 3));
    bool bit = false;

    begin_result(t, w);
    pm_cl_put_value(t, cl_word(w, 3));
    for (uint32_t i = 4; i < cl_length(w) && !t->err; i++) {
        const struct cl_type *k = pm_cl_type(t, type);

        if (k->kind != CL_VECTOR && k->kind != CL_ARRAY && k->kind != CL_STRUCT)
            pm_cl_fail(t, "damaged: a part of a value without parts");
        else if (w[i] >= k->count)
            pm_cl_fail(t, "damaged: part %u of %u", w[i], k->count);
        else
            pm_str_add(t->out, k->kind == CL_VECTOR ? ".s%u" : k->kind == CL_ARRAY ? ".v[%u]"
                                                                                   : ".m%u", w[i]);
        if (t->err)
            return;
        type = k->kind == CL_STRUCT ? k->members[w[i]] : k->of;
        bit = k->kind == CL_VECTOR && pm_cl_type(t, type)->kind == CL_BOOL;
    }
    pm_str_add(t->out, bit ? " != 0;\n" : ";\n");
}

static void put_shuffle(struct translator *t, const uint32_t *w)
{
    const struct cl_type *a = pm_cl_type(t, pm_cl_type_of(t, cl_word(w, 3)));
    const struct cl_type *b = pm_cl_type(t, pm_cl_type_of(t, cl_word(w, 4)));

    begin_result(t, w);
    pm_str_add(t->out, "(");
    pm_cl_put_type(t, w[1]);
    pm_str_add(t->out, ")(");
    for (uint32_t i = 5; i < cl_length(w) && !t->err; i++) {
        const bool first = w[i] < a->count;

        if (w[i] == UINT32_MAX) { /* any value will do */
            pm_str_add(t->out, "%s0", i > 5 ? ", " : "");
            continue;
        }
        if (w[i] >= (uint64_t)a->count + b->count) {
            pm_cl_fail(t, "damaged: component %u of a shuffle", w[i]);
            return;
        }
        pm_str_add(t->out, i > 5 ? ", " : "");
        pm_cl_put_value(t, first ? w[3] : w[4]);
        pm_str_add(t->out, ".s%u", first ? w[i] : w[i] - a->count);
    }
    pm_str_add(t->out, ");\n");
}

/* ---- the rest --------------------------------------------------------------------------- */

static void put_call(struct translator *t, const uint32_t *w)
{
    const uint32_t function = cl_word(w, 3);
    const char *comma = "";

    if (cl_op(pm_cl_def(t, function)) != SpvOpFunction)
        pm_cl_fail(t, "damaged: a call of id %u, which is no function", function);
    if (pm_cl_type(t, w[1])->kind == CL_VOID)
        pm_cl_line(t);
    else
        begin_result(t, w);
    pm_str_add(t->out, "f%u(", function);
    if (t->has_private)
        pm_str_add(t->out, "g"), comma = ", ";
    if (t->has_shared)
        pm_str_add(t->out, "%ss", comma), comma = ", ";
    for (uint32_t i = 4; i < cl_length(w) && !t->err; i++, comma = ", ") {
        pm_str_add(t->out, "%s", comma);
        pm_cl_put_value(t, w[i]);
    }
    pm_str_add(t->out, ");\n");
}

/* Addresses travel as uint2 in the push block, else as ulong. */
static void put_bitcast(struct translator *t, const uint32_t *w)
{
    const struct cl_type *to = pm_cl_type(t, w[1]);
    const struct cl_type *from = pm_cl_type(t, pm_cl_type_of(t, cl_word(w, 3)));

    begin_result(t, w);
    if (to->kind == CL_POINTER)
        put_text(t, w, from->kind == CL_VECTOR ? "($T)as_ulong($v3);\n" : "($T)$v3;\n");
    else
        put_text(t, w, from->kind == CL_POINTER ? "as_$T((ulong)$v3);\n" : "as_$T($v3);\n");
}

/* Vectors that one condition selects. OpenCL C's ?: of vectors looks at the sign of the condition,
 * and true is 1. */
static void put_selected_vector(struct translator *t, const uint32_t *w)
{
    pm_cl_line(t);
    put_text(t, w, "if ($v3)\n");
    t->indent++;
    begin_result(t, w);
    put_text(t, w, "$v4;\n");
    t->indent--;
    pm_cl_line(t);
    pm_str_add(t->out, "else\n");
    t->indent++;
    begin_result(t, w);
    put_text(t, w, "$v5;\n");
    t->indent--;
}

static void put_select(struct translator *t, const uint32_t *w)
{
    const bool vector = pm_cl_type(t, pm_cl_type_of(t, cl_word(w, 3)))->kind == CL_VECTOR;

    if (vector && pm_cl_scalar(t, w[1])->bits != 32)
        pm_cl_fail(t, "a selection among vectors of 64-bit components");
    if (!vector && pm_cl_type(t, w[1])->kind == CL_VECTOR) {
        put_selected_vector(t, w);
        return;
    }
    begin_result(t, w);
    put_text(t, w, vector ? "select($v5, $v4, $v3);\n" : "$v3 ? $v4 : $v5;\n");
}

/* The remainder has the sign of the divisor; OpenCL's % has that of the dividend. The condition
 * works for scalars and for vectors. */
static void put_modulo(struct translator *t, const uint32_t *w)
{
    if (!pm_cl_scalar(t, w[1])->is_signed)
        pm_cl_fail(t, "a signed remainder of unsigned type");
    begin_result(t, w);
    put_text(t, w, "$s3 % $s4;\n");
    pm_cl_line(t);
    pm_str_add(t->out, "v%u += ((v%u != 0) & ((v%u ^ ", w[2], w[2], w[2]);
    put_text(t, w, "$s4) < 0)) ? $s4 : ($T)(0);\n");
}

/* The low and the high half of a product. */
static void put_wide_product(struct translator *t, const uint32_t *w)
{
    const struct cl_type *k = pm_cl_type(t, w[1]);

    if (k->kind != CL_STRUCT || k->count != 2 || pm_cl_scalar(t, k->members[0])->is_signed) {
        pm_cl_fail(t, "damaged: a product of type %u", w[1]);
        return;
    }
    begin_result(t, w);
    put_text(t, w, "($T){ $u3 * $u4, mul_hi($u3, $u4) };\n");
}

static void put_copy(struct translator *t, const uint32_t *w)
{
    const uint32_t from = pm_cl_type_of(t, cl_word(w, 3));

    if (pm_cl_type(t, w[1])->same != pm_cl_type(t, from)->same)
        pm_cl_fail(t, "a copy between types of other contents");
    begin_result(t, w);
    put_text(t, w, "$v3;\n");
}

void pm_cl_put_instruction(struct translator *t, const uint32_t *w)
{
    const uint32_t op = cl_op(w);
    const struct row *r = find_row(rows, op);

    pm_cl_check_length(t);
    if (op >= SpvOpAtomicLoad && op <= SpvOpAtomicXor && r)
        check_atomic(t, w);
    if (r) {
        put_row(t, w, r);
        return;
    }
    switch (op) {
    case SpvOpNop: case SpvOpLine: case SpvOpNoLine: case SpvOpUndef: case SpvOpVariable:
    case SpvOpAccessChain: case SpvOpInBoundsAccessChain: case SpvOpLoopMerge:
    case SpvOpSelectionMerge:
        break; /* no statement of their own */
    case SpvOpExtInst: put_extended(t, w); break;
    case SpvOpLoad: put_load(t, w); break;
    case SpvOpStore: put_store(t, w); break;
    case SpvOpControlBarrier: put_barrier(t, "barrier"); break;
    case SpvOpMemoryBarrier: put_barrier(t, "mem_fence"); break;
    case SpvOpCompositeConstruct: put_construct(t, w); break;
    case SpvOpCompositeExtract: put_extract(t, w); break;
    case SpvOpVectorShuffle: put_shuffle(t, w); break;
    case SpvOpFunctionCall: put_call(t, w); break;
    case SpvOpBitcast: put_bitcast(t, w); break;
    case SpvOpSelect: put_select(t, w); break;
    case SpvOpSMod: put_modulo(t, w); break;
    case SpvOpUMulExtended: put_wide_product(t, w); break;
    case SpvOpCopyLogical: put_copy(t, w); break;
    default: pm_cl_unknown(t, w);
    }
}
