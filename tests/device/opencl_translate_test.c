/* Translation of shaders to OpenCL C: all shaders with all constants that calls choose, the text of
 * each kind of control flow and value, and the errors. opencl_flow_test runs flow.comp on a device;
 * check parity and golden_test run the program's shaders. */
#include "device/opencl_sets.h"

#include "device/opencl/translate.h"

#include <spirv/unified1/spirv.h>

#include "axpy.spv.h"
#include "flow.spv.h"
#include "tile.spv.h"
#include "wide.spv.h"

/* ---- helpers ---------------------------------------------------------------------------- */

/* Freezes and translates a module with these constants. The caller frees the text. */
static struct pm_cl_kernel translate(const char *name, const uint32_t *words, size_t bytes,
                                     const struct set *set, bool fma, struct pm_str *text)
{
    const struct pm_cl_dialect dialect = { .fma = fma };
    struct pm_module_info info;
    struct pm_cl_kernel kernel;
    uint32_t *frozen = NULL;
    size_t count = 0;

    ok(pm_spirv_freeze(words, bytes / 4, set ? set->spec : NULL, set ? set->specs : 0,
                       set ? set->present : UINT32_MAX, &frozen, &count, &info));
    ok(pm_cl_translate(name, frozen, count, &dialect, text, &kernel));
    for (int i = 0; i < 3; i++)
        assert_int_equal(kernel.local[i], info.local[i]);
    pm_free(frozen);
    return kernel;
}

static struct pm_str text_of(const char *shader, bool fma)
{
    const struct pm_shader *s = shader_named(shader);
    struct pm_str text = { 0 };

    translate(s->name, s->words, s->bytes, NULL, fma, &text);
    return text;
}

static void check_has(const struct pm_str *text, const char *part)
{
    if (!strstr(text->text, part))
        fail_msg("no \"%s\" in:\n%s", part, text->text);
}

static void check_lacks(const struct pm_str *text, const char *part)
{
    if (strstr(text->text, part))
        fail_msg("\"%s\" in:\n%s", part, text->text);
}

/* ---- the program's shaders -------------------------------------------------------------- */

/* PoCL 3.1 compiles a kernel with barriers wrongly if it returns before its end, even if all
 * invocations do: values of the first one are lost when several threads run. So no kernel that
 * OpenCL devices are offered does that. The _last forms are not offered. */
static void check_returns(const struct set *x, const struct pm_str *text)
{
    const char *kernel = strstr(text->text, "void pm_kernel("), *first = strstr(kernel, "return;");
    const bool last = strncmp(x->shader->name, "batch_norm_sums_last", 20) == 0 ||
                      (strcmp(x->shader->name, "conv2d_filter_s") == 0 &&
                       strstr(text->text, "atomic_") != NULL);

    assert_non_null(first);
    if (last || !strstr(text->text, "barrier("))
        return;
    if (strstr(first + 1, "return;"))
        fail_msg("%s has barriers and returns before its end", x->shader->name);
}

/* Every shader with every set of constants. The same module gives the same text twice. */
static void test_all(void **state)
{
    struct sets s;

    (void)state;
    sets_make(&s);
    for (size_t i = 0; i < s.count; i++) {
        const struct set *x = &s.list[i];
        struct pm_str text = { 0 }, again = { 0 };

        translate(x->shader->name, x->shader->words, x->shader->bytes, x, true, &text);
        check_has(&text, "void pm_kernel(__global uchar *a0, ulong o0");
        check_returns(x, &text);
        if (i % 16 == 0) {
            translate(x->shader->name, x->shader->words, x->shader->bytes, x, true, &again);
            assert_string_equal(text.text, again.text);
        }
        pm_str_free(&text);
        pm_str_free(&again);
    }
    print_message("%zu shaders with their constants\n", s.count);
    sets_free(&s);
}

/* Barriers order buffers where the shader has a barrier for them; coherent buffers are volatile. */
static void test_barriers(void **state)
{
    struct pm_str text = text_of("batch_norm_sums_last", true);

    (void)state;
    check_has(&text, "    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n");
    check_has(&text, "    mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);\n");
    check_has(&text, "volatile __global float *");
    check_has(&text, "atomic_add((&");
    check_has(&text, "as_ulong(");
    check_has(&text, "= as_uint2((ulong)(a");
    pm_str_free(&text);
    translate("tile", spv_tile, sizeof spv_tile, NULL, true, &text);
    check_has(&text, "    barrier(CLK_LOCAL_MEM_FENCE);\n");
    check_lacks(&text, "GLOBAL_MEM_FENCE");
    check_lacks(&text, "volatile");
    check_has(&text, "__local struct shared group;");
    pm_str_free(&text);
}

/* A product and a sum are fused only if the device is good at it, and never in a precise shader. */
static void test_fused(void **state)
{
    struct pm_str text = text_of("fma_peak_4", true);

    (void)state;
    check_has(&text, "= fma(");
    check_has(&text, "FP_CONTRACT ON\n");
    pm_str_free(&text);
    text = text_of("fma_peak_4", false);
    check_lacks(&text, "fma(");
    pm_str_free(&text);
    text = text_of("hard_scores", true);
    check_has(&text, "FP_CONTRACT OFF\n");
    pm_str_free(&text);
}

/* The arguments of kernels with params by value and by address. */
static void test_arguments(void **state)
{
    struct pm_str text = { 0 };
    struct pm_cl_kernel k = translate("axpy", spv_axpy, sizeof spv_axpy, NULL, true, &text);

    (void)state;
    assert_int_equal(k.addresses, 2);
    assert_int_equal(k.params_bytes, 8);
    check_has(&text, "(__global uchar *a0, ulong o0, __global uchar *a1, ulong o1, struct t");
    check_has(&text, " p, uint3 base)\n");
    check_has(&text, " = (__global float *)(a1 + o1);\n");
    check_has(&text, "get_global_id(2)) + base * (uint3)(1, 1, 1);\n");
    pm_str_free(&text);
    k = translate("wide", spv_wide, sizeof spv_wide, NULL, true, &text);
    assert_int_equal(k.addresses, 3);
    assert_int_equal(k.params_bytes, 0);
    check_has(&text, "__global uchar *a2, ulong o2, uint3 base)\n");
    pm_str_free(&text);
    k = translate("tile", spv_tile, sizeof spv_tile,
                  &(struct set){ .spec = { 4, 2, 3 }, .specs = 3 }, true, &text);
    check_has(&text, "reqd_work_group_size(4, 2, 3)");
    check_has(&text, "get_group_id(2)) + base;\n");
    pm_str_free(&text);
}

/* The shader flow.comp. */
static void test_flow(void **state)
{
    struct pm_str text = { 0 };

    (void)state;
    translate("flow", spv_flow, sizeof spv_flow, NULL, true, &text);
    check_has(&text, "switch (");
    check_has(&text, "case -1:");
    check_has(&text, "default:");
    check_has(&text, "goto L");            /* a continue inside a switch leaves two levels */
    check_has(&text, ":;\n");
    check_has(&text, "break;");
    check_has(&text, "(0x0.022d84p-126f)"); /* 1e-40, which is denormal */
    check_has(&text, "(-0.0f)");
    check_has(&text, "(INFINITY)");
    check_has(&text, " < 0)) ? ");         /* a remainder with the sign of the divisor */
    check_has(&text, "select(");
    check_has(&text, "rint(");
    check_has(&text, "g->v");
    assert_int_equal(count_text(text.text, "{"), count_text(text.text, "}"));
    pm_str_free(&text);
}

/* ---- small modules ---------------------------------------------------------------------- */

/* A module that grows by instructions. */
struct module {
    uint32_t words[1024];
    size_t count;
};

static void put_words(struct module *m, uint32_t op, const uint32_t *words, size_t count)
{
    assert_true(m->count + count < PM_COUNT(m->words));
    m->words[m->count++] = (uint32_t)(count + 1) << 16 | op;
    if (count)
        memcpy(m->words + m->count, words, count * sizeof *words);
    m->count += count;
}

#define PUT(m, op, ...)                                                                            \
    put_words(m, op, (const uint32_t[]){ __VA_ARGS__ },                                            \
              sizeof (const uint32_t[]){ __VA_ARGS__ } / sizeof(uint32_t))

/* Ids of every small module. */
enum { MAIN = 1, VOID, FUNCTION, INT, UINT, FLOAT, BOOL, BOOL2, INT2, ZERO, ONE, YES, BEGIN,
       FREE = 20, BOUND = 60 };

/* A module up to its types and constants, ready for more of them. */
static struct module start(void)
{
    struct module m = { .words = { SpvMagicNumber, 0x10500, 0, BOUND, 0 }, .count = 5 };

    PUT(&m, SpvOpCapability, SpvCapabilityShader);
    PUT(&m, SpvOpMemoryModel, 0, 1);
    PUT(&m, SpvOpEntryPoint, SpvExecutionModelGLCompute, MAIN, 0x6e69616d, 0);
    PUT(&m, SpvOpExecutionMode, MAIN, SpvExecutionModeLocalSize, 32, 1, 1);
    PUT(&m, SpvOpTypeVoid, VOID);
    PUT(&m, SpvOpTypeFunction, FUNCTION, VOID);
    PUT(&m, SpvOpTypeInt, INT, 32, 1);
    PUT(&m, SpvOpTypeInt, UINT, 32, 0);
    PUT(&m, SpvOpTypeFloat, FLOAT, 32);
    PUT(&m, SpvOpTypeBool, BOOL);
    PUT(&m, SpvOpTypeVector, BOOL2, BOOL, 2);
    PUT(&m, SpvOpTypeVector, INT2, INT, 2);
    PUT(&m, SpvOpConstant, INT, ZERO, 0);
    PUT(&m, SpvOpConstant, INT, ONE, 1);
    PUT(&m, SpvOpConstantTrue, BOOL, YES);
    return m;
}

static void begin_main(struct module *m)
{
    PUT(m, SpvOpFunction, VOID, MAIN, 0, FUNCTION);
    PUT(m, SpvOpLabel, BEGIN);
}

static void end_main(struct module *m)
{
    put_words(m, SpvOpReturn, NULL, 0);
    put_words(m, SpvOpFunctionEnd, NULL, 0);
}

static int translate_module(const struct module *m, struct pm_str *text)
{
    const struct pm_cl_dialect dialect = { .fma = true };
    struct pm_cl_kernel kernel;

    return pm_cl_translate("small", m->words, m->count, &dialect, text, &kernel);
}

/* Constants with exactly their bits. */
static void test_constants(void **state)
{
    static const struct {
        uint32_t bits;
        const char *text;
    } floats[] = {
        { 0x7f800000, "-(INFINITY);" }, { 0xff800000, "-(-INFINITY);" },
        { 0x7fc00001, "-as_float(0x7fc00001u);" }, { 0x80000000, "-(-0.0f);" },
        { 0x3eaaaaab, "-(0x1.555556p-2f);" }, { 0xc0400000, "-(-3.0f);" },
        { 0x00000001, "-(0x0.000002p-126f);" }, { 0x7f7fffff, "-(0x1.fffffep127f);" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(floats); i++) {
        struct module m = start();
        struct pm_str text = { 0 };

        PUT(&m, SpvOpConstant, FLOAT, FREE, floats[i].bits);
        begin_main(&m);
        PUT(&m, SpvOpFNegate, FLOAT, FREE + 1, FREE);
        end_main(&m);
        ok(translate_module(&m, &text));
        check_has(&text, floats[i].text);
        pm_str_free(&text);
    }
}

/* A constant array is assigned element by element. */
static void test_constant_array(void **state)
{
    struct pm_str text = text_of("matmul", true);

    (void)state;
    check_has(&text, ".v[3] = ((float4)(0.0f, 0.0f, 0.0f, 0.0f));\n");
    check_lacks(&text, "){ { ");
    pm_str_free(&text);
}

/* Integers wrap around; bools are 0 and 1, in vectors 0 and -1. */
static void test_values(void **state)
{
    struct module m = start();
    struct pm_str text = { 0 };

    (void)state;
    PUT(&m, SpvOpConstant, INT, FREE, 0x80000000u);
    PUT(&m, SpvOpConstantComposite, BOOL2, FREE + 1, YES, YES);
    begin_main(&m);
    PUT(&m, SpvOpSNegate, INT, FREE + 2, FREE);
    PUT(&m, SpvOpIAdd, INT, FREE + 3, FREE + 2, FREE);
    PUT(&m, SpvOpSDiv, INT, FREE + 4, FREE, FREE + 3);
    PUT(&m, SpvOpSMod, INT, FREE + 5, FREE + 3, FREE + 4);
    PUT(&m, SpvOpSGreaterThan, BOOL, FREE + 6, FREE + 3, ZERO);
    PUT(&m, SpvOpCompositeConstruct, BOOL2, FREE + 7, FREE + 6, YES);
    PUT(&m, SpvOpLogicalAnd, BOOL2, FREE + 8, FREE + 7, FREE + 1);
    PUT(&m, SpvOpCompositeExtract, BOOL, FREE + 9, FREE + 8, 1);
    PUT(&m, SpvOpUDiv, INT, FREE + 10, FREE + 3, ONE);
    PUT(&m, SpvOpCompositeConstruct, INT2, FREE + 11, FREE + 3, ONE);
    PUT(&m, SpvOpSelect, INT2, FREE + 12, FREE + 8, FREE + 11, FREE + 11);
    PUT(&m, SpvOpSelect, INT2, FREE + 13, FREE + 6, FREE + 11, FREE + 12);
    end_main(&m);
    ok(translate_module(&m, &text));
    check_has(&text, "v22 = as_int(0 - 2147483648u);\n");
    check_has(&text, "v23 = as_int(as_uint(v22) + 2147483648u);\n");
    check_has(&text, "v24 = (-2147483647 - 1) / v23;\n");
    check_has(&text, "v25 = v23 % v24;\n"
                     "    v25 += ((v25 != 0) & ((v25 ^ v24) < 0)) ? v24 : (int)(0);\n");
    check_has(&text, "v26 = v23 > 0;\n");
    check_has(&text, "v27 = (int2)(-v26, -1);\n");
    check_has(&text, "v28 = v27 & ((int2)(-1, -1));\n");
    check_has(&text, "v29 = v28.s1 != 0;\n");
    check_has(&text, "v30 = as_int(as_uint(v23) / 1u);\n");
    check_has(&text, "v32 = select(v31, v31, v28);\n");
    check_has(&text, "    if (v26)\n        v33 = v31;\n    else\n        v33 = v32;\n");
    pm_str_free(&text);
}

/* Two values that change places in each turn of a loop, which continues in its header. */
static struct module swapping(void)
{
    enum { HEAD = FREE, NEXT, A, B, COUNT, SUM, LESS, END };
    struct module m = start();

    begin_main(&m);
    PUT(&m, SpvOpBranch, HEAD);
    PUT(&m, SpvOpLabel, HEAD);
    PUT(&m, SpvOpPhi, INT, A, ZERO, BEGIN, B, NEXT);
    PUT(&m, SpvOpPhi, INT, B, ONE, BEGIN, A, NEXT);
    PUT(&m, SpvOpPhi, INT, COUNT, ZERO, BEGIN, SUM, NEXT);
    PUT(&m, SpvOpLoopMerge, END, NEXT, 1);
    PUT(&m, SpvOpBranch, NEXT);
    PUT(&m, SpvOpLabel, NEXT);
    PUT(&m, SpvOpIAdd, INT, SUM, COUNT, ONE);
    PUT(&m, SpvOpSLessThan, BOOL, LESS, SUM, A);
    PUT(&m, SpvOpBranchConditional, LESS, HEAD, END);
    PUT(&m, SpvOpLabel, END);
    end_main(&m);
    return m;
}

static void test_phis(void **state)
{
    const struct module m = swapping();
    struct pm_str text = { 0 };

    (void)state;
    ok(translate_module(&m, &text));
    check_has(&text, "    v22 = 0;\n    v23 = 1;\n    v24 = 0;\n"
                     "    #pragma unroll\n    for (;;) {\n");
    check_has(&text, "\n    int v26;\n"); /* at the top, not in the loop */
    check_has(&text, "        v26 = v25 < v22;\n"
                     "        if (!v26) {\n"
                     "            break;\n"
                     "        }\n"
                     "        {\n"
                     "        int n22 = v23;\n"
                     "        int n23 = v22;\n"
                     "        int n24 = v25;\n"
                     "        v22 = n22;\n"
                     "        v23 = n23;\n"
                     "        v24 = n24;\n"
                     "        }\n"
                     "    }\n");
    pm_str_free(&text);
}

/* A switch sets the phis of the blocks that it leads to. */
static void test_switch_phis(void **state)
{
    enum { CASE = FREE, END, SUM };
    struct module m = start();
    struct pm_str text = { 0 };

    (void)state;
    begin_main(&m);
    PUT(&m, SpvOpSelectionMerge, END, 0);
    PUT(&m, SpvOpSwitch, ONE, END, 1, CASE);
    PUT(&m, SpvOpLabel, CASE);
    PUT(&m, SpvOpBranch, END);
    PUT(&m, SpvOpLabel, END);
    PUT(&m, SpvOpPhi, INT, SUM, ZERO, BEGIN, ONE, CASE);
    end_main(&m);
    ok(translate_module(&m, &text));
    check_has(&text, "    v22 = 0;\n    switch (1) {\n");
    check_has(&text, "v22 = 1;\n");
    pm_str_free(&text);
}

/* ---- errors ----------------------------------------------------------------------------- */

/* The translation of the module fails with a line that contains `part`. */
static void check_fails(const struct module *m, const char *part)
{
    struct pm_str text = { 0 };

    assert_int_equal(translate_module(m, &text), PM_EDEVICE);
    if (!strstr(pm_error_text(), "shader small cannot be translated to OpenCL C: ") ||
        !strstr(pm_error_text(), part) || !pm_is_line(pm_error_text()))
        fail_msg("no \"%s\" in: %s", part, pm_error_text());
    pm_str_free(&text);
}

/* A module whose only instruction, besides the usual ones, is this one. */
#define WITH(op, ...)                                                                              \
    struct module m = start();                                                                     \
    begin_main(&m);                                                                                \
    PUT(&m, op, __VA_ARGS__);                                                                      \
    end_main(&m)

static void test_unknown(void **state)
{
    (void)state;
    {
        WITH(SpvOpFRem, FLOAT, FREE, ONE, ONE);
        check_fails(&m, "operation 140 has no translation");
    }
    {
        WITH(SpvOpExtInst, FLOAT, FREE, FREE + 1, 55, ONE);
        check_fails(&m, "extended instruction 55");
    }
    {
        WITH(SpvOpControlBarrier, ONE, ONE, ZERO);
        check_fails(&m, "a barrier of another scope than the workgroup");
    }
    {
        WITH(SpvOpKill, ZERO);
        check_fails(&m, "damaged"); /* OpReturn follows the block's end */
    }
    {
        struct module m = start();
        PUT(&m, SpvOpSpecConstant, INT, FREE, 3);
        check_fails(&m, "operation 50: its specialization constants are not frozen");
    }
    {
        struct module m = start();
        PUT(&m, SpvOpTypeFloat, FREE, 16);
        check_fails(&m, "numbers of 16 bits");
    }
}

static void test_damaged(void **state)
{
    (void)state;
    {
        WITH(SpvOpIAdd, INT, FREE, ONE, BOUND + 5);
        check_fails(&m, "id 65 is not defined");
    }
    {
        WITH(SpvOpIAdd, INT, BOUND, ONE, ONE);
        check_fails(&m, "defines id 60, which is out of bounds");
    }
    {
        WITH(SpvOpIAdd, INT, ONE, ONE, ONE);
        check_fails(&m, "defines id 11, which is already defined");
    }
    {
        WITH(SpvOpIAdd, ONE, FREE, ONE, ONE);
        check_fails(&m, "has no type");
    }
    {
        WITH(SpvOpIAdd, INT, FREE); /* its operands are missing */
        check_fails(&m, "id 0 is not defined");
    }
    {
        struct module m = swapping();
        m.count--;
        check_fails(&m, "ends inside a function");
        m.words[m.count - 1] = 99u << 16 | SpvOpBranch;
        check_fails(&m, "exceeds the module");
        m.words[3] = UINT32_MAX;
        check_fails(&m, "ids in");
        m.words[0] = 0;
        check_fails(&m, "not a SPIR-V module");
    }
}

/* A vector of 3 in a buffer has 12 bytes in GLSL's scalar layout and 16 in OpenCL C. */
static void test_vectors_of_3(void **state)
{
    enum { VECTOR = FREE, ARRAY, BLOCK, POINTER };
    struct module m = start();

    (void)state;
    PUT(&m, SpvOpTypeVector, VECTOR, FLOAT, 3);
    PUT(&m, SpvOpTypePointer, POINTER, SpvStorageClassWorkgroup, VECTOR);
    check_fails(&m, "vector of 3");
    m = start();
    PUT(&m, SpvOpDecorate, ARRAY, SpvDecorationArrayStride, 12);
    PUT(&m, SpvOpTypeVector, VECTOR, FLOAT, 3);
    PUT(&m, SpvOpTypeRuntimeArray, ARRAY, VECTOR);
    check_fails(&m, "a step of 12 bytes, OpenCL C has 16; use no vectors of 3");
}

/* A module that ends too early is never a program. */
static void test_truncated(void **state)
{
    const struct pm_shader *s = shader_named("suppress");
    const struct pm_cl_dialect dialect = { 0 };
    struct pm_module_info info;
    uint32_t *words = NULL;
    size_t count = 0;

    (void)state;
    ok(pm_spirv_freeze(s->words, s->bytes / 4, NULL, 0, UINT32_MAX, &words, &count, &info));
    for (size_t n = 0; n < count; n += n < 40 ? 1 : 17) {
        uint32_t *part = pm_malloc(n * 4 + (n == 0)); /* the sanitizer finds reads beyond it */
        struct pm_str text = { 0 };
        struct pm_cl_kernel kernel;

        memcpy(part, words, n * 4);
        assert_int_equal(pm_cl_translate(s->name, part, n, &dialect, &text, &kernel), PM_EDEVICE);
        assert_true(pm_is_line(pm_error_text()));
        pm_str_free(&text);
        pm_free(part);
    }
    pm_free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_fused),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_flow),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_constant_array),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_phis), cmocka_unit_test(test_switch_phis),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_vectors_of_3),
        cmocka_unit_test(test_truncated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
