/* translate: the program around the functions.
 *
 * OpenCL C 1.2 has no variables of its own for a work item or a workgroup outside of functions. So
 * GLSL's private variables, the push block and the built-in inputs are members of a struct
 * `globals`, shared variables those of a struct `shared`, and every function gets their
 * addresses. The params are copied there once, because some drivers read arguments badly under a
 * condition. */
#include "device/opencl/translate_private.h"

/* ---- errors and text -------------------------------------------------------------------- */

void pm_cl_fail(struct translator *t, const char *format, ...)
{
    char text[256];
    va_list args;

    if (t->err)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    t->err = pm_fail(PM_EDEVICE, "shader %s cannot be translated to OpenCL C: %s", t->name, text);
}

void pm_cl_unknown(struct translator *t, const uint32_t *w)
{
    const uint32_t op = cl_op(w);

    if (op >= SpvOpSpecConstantTrue && op <= SpvOpSpecConstantOp)
        pm_cl_fail(t, "operation %u: its specialization constants are not frozen", op);
    else
        pm_cl_fail(t, "operation %u has no translation", op);
}

void pm_cl_check_length(struct translator *t)
{
    if (t->out->length > CL_MOST_TEXT)
        pm_cl_fail(t, "its text has more than %d bytes", CL_MOST_TEXT);
}

void pm_cl_line(struct translator *t)
{
    static const char spaces[] = "                                ";
    const size_t most = sizeof spaces - 1, wanted = 4 * (size_t)t->indent;

    pm_str_bytes(t->out, spaces, wanted < most ? wanted : most);
}

/* ---- variables outside of functions ----------------------------------------------------- */

static bool is_shared(const struct translator *t, uint32_t id)
{
    return t->ids[id].def[3] == SpvStorageClassWorkgroup;
}

/* The struct of shared variables, or that of the others. */
static void put_struct(struct translator *t, bool shared)
{
    pm_str_add(t->out, "struct %s {\n", shared ? "shared" : "globals");
    for (size_t i = 0; i < t->global_count && !t->err; i++) {
        const uint32_t id = t->globals[i];

        if (is_shared(t, id) != shared)
            continue;
        pm_str_add(t->out, "    ");
        pm_cl_put_type(t, pm_cl_pointer_type(t, id)->of);
        pm_str_add(t->out, " v%u;\n", id);
    }
    pm_str_add(t->out, "};\n");
}

/* ---- functions -------------------------------------------------------------------------- */

/* All calls are inlined. Otherwise PoCL 3.1 with LLVM 15 crashes while it estimates what inlining
 * the calls of the shader `suppress` would cost. */
static void put_head(struct translator *t, const struct cl_function *f)
{
    const char *comma = "";

    pm_str_add(t->out, "static __attribute__((always_inline)) ");
    pm_cl_put_type(t, f->def[1]);
    pm_str_add(t->out, " f%u(", f->def[2]);
    if (t->has_private)
        pm_str_add(t->out, "__private struct globals *g"), comma = ", ";
    if (t->has_shared)
        pm_str_add(t->out, "%s__local struct shared *s", comma), comma = ", ";
    for (uint32_t i = 0; i < f->params && !t->err; i++, comma = ", ") {
        const uint32_t *w = f->def + 5 + 3 * i;

        pm_str_add(t->out, "%s", comma);
        pm_cl_put_type(t, w[1]);
        pm_str_add(t->out, " v%u", w[2]);
    }
    pm_str_add(t->out, "%s)", *comma ? "" : "void");
}

static void put_functions(struct translator *t)
{
    for (size_t i = 0; i < t->function_count && !t->err; i++)
        if (t->functions[i].def[2] != t->entry) {
            put_head(t, &t->functions[i]);
            pm_str_add(t->out, ";\n");
        }
    for (size_t i = 0; i < t->function_count && !t->err; i++)
        if (t->functions[i].def[2] != t->entry) {
            pm_str_add(t->out, "\n");
            put_head(t, &t->functions[i]);
            pm_str_add(t->out, "\n{\n");
            pm_cl_put_body(t, &t->functions[i]);
            pm_str_add(t->out, "}\n");
        }
}

/* ---- the kernel ------------------------------------------------------------------------- */

/* The push block's type, or NULL. */
static const struct cl_type *push_type(struct translator *t)
{
    const struct cl_type *k;

    if (!t->push)
        return NULL;
    k = pm_cl_type(t, pm_cl_pointer_type(t, t->push)->of);
    if (k->kind != CL_STRUCT)
        pm_cl_fail(t, "damaged: the push block is not a struct");
    return t->err ? NULL : k;
}

static bool is_address(struct translator *t, uint32_t type)
{
    const struct cl_type *k = pm_cl_type(t, type);

    return k->kind == CL_POINTER || (k->kind == CL_VECTOR && k->count == 2 &&
                                     pm_cl_scalar(t, type)->kind == CL_INT &&
                                     pm_cl_scalar(t, type)->bits == 32);
}

/* Splits the push block into addresses and params. */
static void read_push(struct translator *t, struct pm_cl_kernel *kernel)
{
    const struct cl_type *push = push_type(t);
    uint32_t n = 0;

    while (push && n < push->count && is_address(t, push->members[n]))
        n++;
    kernel->addresses = (int)n;
    if (!push || n == push->count)
        return;
    if (n + 1 < push->count || pm_cl_type(t, push->members[n])->kind != CL_STRUCT)
        pm_cl_fail(t, "its push block must have addresses, then one struct of params");
    else
        kernel->params_bytes = (uint32_t)pm_cl_type(t, push->members[n])->bytes;
}

static void put_arguments(struct translator *t, const struct pm_cl_kernel *kernel)
{
    const struct cl_type *push = push_type(t);

    for (int i = 0; i < kernel->addresses; i++)
        pm_str_add(t->out, "__global uchar *a%d, ulong o%d, ", i, i);
    if (kernel->params_bytes && push) {
        pm_cl_put_type(t, push->members[kernel->addresses]);
        pm_str_add(t->out, " p, ");
    }
    pm_str_add(t->out, "uint3 base");
}

/* Copies the arguments to the push block. */
static void put_push(struct translator *t, const struct pm_cl_kernel *kernel)
{
    const struct cl_type *push = push_type(t);

    for (int i = 0; push && i < kernel->addresses && !t->err; i++) {
        const uint32_t type = push->members[i];

        pm_str_add(t->out, "    g->v%u.m%d = ", t->push, i);
        if (pm_cl_type(t, type)->kind == CL_POINTER) {
            pm_str_add(t->out, "(");
            pm_cl_put_type(t, type);
            pm_str_add(t->out, ")(a%d + o%d);\n", i, i);
        } else {
            pm_str_add(t->out, "as_uint2((ulong)(a%d + o%d));\n", i, i);
        }
    }
    if (kernel->params_bytes)
        pm_str_add(t->out, "    g->v%u.m%d = p;\n", t->push, kernel->addresses);
}

/* The value of a built-in input. */
static void put_input(struct translator *t, uint32_t id)
{
    const uint32_t *l = t->local;

    pm_str_add(t->out, "    g->v%u = ", id);
    switch (t->ids[id].built_in - 1) {
    case SpvBuiltInNumWorkgroups:
        pm_str_add(t->out, "(uint3)(get_num_groups(0), get_num_groups(1), get_num_groups(2));\n");
        break;
    case SpvBuiltInWorkgroupId:
        pm_str_add(t->out, "(uint3)(get_group_id(0), get_group_id(1), get_group_id(2)) + base;\n");
        break;
    case SpvBuiltInLocalInvocationId:
        pm_str_add(t->out, "(uint3)(get_local_id(0), get_local_id(1), get_local_id(2));\n");
        break;
    case SpvBuiltInGlobalInvocationId:
        pm_str_add(t->out, "(uint3)(get_global_id(0), get_global_id(1), get_global_id(2)) + "
                   "base * (uint3)(%u, %u, %u);\n", l[0], l[1], l[2]);
        break;
    case SpvBuiltInLocalInvocationIndex:
        pm_str_add(t->out, "(uint)(get_local_id(0) + %u * (get_local_id(1) + %u * "
                   "get_local_id(2)));\n", l[0], l[1]);
        break;
    case 0: pm_cl_fail(t, "input v%u is not built in", id); break;
    default: pm_cl_fail(t, "input %u has no translation", t->ids[id].built_in - 1);
    }
}

static void put_initial_values(struct translator *t)
{
    for (size_t i = 0; i < t->global_count && !t->err; i++) {
        const uint32_t id = t->globals[i], *w = t->ids[id].def;

        if (w[3] == SpvStorageClassInput)
            put_input(t, id);
        if (w[3] == SpvStorageClassPrivate && cl_length(w) > 4) {
            pm_str_add(t->out, "    g->v%u = ", id);
            pm_cl_put_value(t, w[4]);
            pm_str_add(t->out, ";\n");
        }
    }
}

static const struct cl_function *find_entry(struct translator *t)
{
    for (size_t i = 0; i < t->function_count; i++)
        if (t->functions[i].def[2] == t->entry && t->functions[i].params == 0)
            return &t->functions[i];
    pm_cl_fail(t, "damaged: its entry point is not a function");
    return NULL;
}

static void put_kernel(struct translator *t, const struct pm_cl_kernel *kernel)
{
    const struct cl_function *f = find_entry(t);

    if (!f)
        return;
    pm_str_add(t->out, "\n__kernel __attribute__((reqd_work_group_size(%u, %u, %u)))\n",
               t->local[0], t->local[1], t->local[2]);
    pm_str_add(t->out, "void pm_kernel(");
    put_arguments(t, kernel);
    pm_str_add(t->out, ")\n{\n");
    if (t->has_private)
        pm_str_add(t->out, "    struct globals all, *g = &all;\n");
    if (t->has_shared)
        pm_str_add(t->out, "    __local struct shared group;\n"
                   "    __local struct shared *s = &group;\n");
    put_push(t, kernel);
    put_initial_values(t);
    pm_cl_put_body(t, f);
    pm_str_add(t->out, "}\n");
}

/* ---- the whole -------------------------------------------------------------------------- */

static void put_program(struct translator *t, struct pm_cl_kernel *kernel)
{
    pm_str_add(t->out, "#pragma OPENCL FP_CONTRACT %s\n", t->strict ? "OFF" : "ON");
    pm_cl_put_composites(t);
    if (t->has_private)
        put_struct(t, false);
    if (t->has_shared)
        put_struct(t, true);
    t->indent = 1;
    put_functions(t);
    put_kernel(t, kernel);
}

static void free_tables(struct translator *t)
{
    pm_free(t->ids);
    pm_free(t->types);
    pm_free(t->decorations);
    pm_free(t->blocks);
    pm_free(t->functions);
    pm_free(t->globals);
    pm_free(t->composites);
}

int pm_cl_translate(const char *name, const uint32_t *words, size_t count,
                    const struct pm_cl_dialect *dialect, struct pm_str *text,
                    struct pm_cl_kernel *out)
{
    struct translator t = { .name = name, .words = words, .end = words + count,
                            .dialect = dialect, .out = text };

    *out = (struct pm_cl_kernel){ 0 };
    pm_cl_read(&t);
    if (!t.err)
        read_push(&t, out);
    for (int i = 0; i < 3; i++)
        out->local[i] = t.local[i];
    if (!t.err)
        put_program(&t, out);
    free_tables(&t);
    return t.err;
}
