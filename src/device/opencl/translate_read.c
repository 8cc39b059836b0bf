/* translate_read: reads a module into tables.
 *
 * One pass records each id's definition. It checks that no instruction exceeds the module, and that
 * every defined id is below the bound and is defined once. A second pass over the blocks' ends
 * marks the blocks that a branch leads to. */
#define SPV_ENABLE_UTILITY_CODE
#include "device/opencl/translate_private.h"

#include <string.h>

/* The header defines it inline; this is its definition for the linker. */
extern void SpvHasResultAndType(SpvOp opcode, bool *has_result, bool *has_type);

enum { HEADER = 5 };

/* What the first pass is inside of. */
struct place {
    struct cl_function *function;
    struct cl_block *block;
};

/* ---- look-ups --------------------------------------------------------------------------- */

const uint32_t *pm_cl_def(struct translator *t, uint32_t id)
{
    static const uint32_t nothing[1] = { 1u << 16 | SpvOpNop };

    if (id < t->bound && t->ids[id].def)
        return t->ids[id].def;
    pm_cl_fail(t, "damaged: id %u is not defined", id);
    return nothing;
}

bool pm_cl_is_constant(const struct translator *t, uint32_t id)
{
    const uint32_t *w = id < t->bound ? t->ids[id].def : NULL;

    return w && cl_op(w) == SpvOpConstant && cl_length(w) == 4 &&
           t->types[w[1]].kind == CL_INT;
}

uint32_t pm_cl_constant(struct translator *t, uint32_t id)
{
    if (pm_cl_is_constant(t, id))
        return t->ids[id].def[3];
    pm_cl_fail(t, "damaged: id %u is not a constant integer", id);
    return 0;
}

uint32_t pm_cl_type_of(struct translator *t, uint32_t id)
{
    const uint32_t *w = pm_cl_def(t, id);
    bool has_result, has_type;

    SpvHasResultAndType((SpvOp)cl_op(w), &has_result, &has_type);
    if (has_result && has_type)
        return w[1];
    pm_cl_fail(t, "damaged: id %u is not a value", id);
    return 0;
}

uint32_t pm_cl_member_offset(const struct translator *t, uint32_t type, uint32_t member)
{
    uint32_t i = t->ids[type].decorations;

    for (; i; i = t->decorations[i - 1].next) {
        const struct cl_decoration *d = &t->decorations[i - 1];

        if (d->member == member && d->what == SpvDecorationOffset)
            return d->value;
    }
    return UINT32_MAX;
}

/* ---- decorations and modes -------------------------------------------------------------- */

static void read_decoration(struct translator *t, const uint32_t *w)
{
    const uint32_t id = cl_word(w, 1), what = cl_word(w, 2), value = cl_word(w, 3);

    if (id >= t->bound) {
        pm_cl_fail(t, "damaged: a decoration of id %u", id);
        return;
    }
    if (what == SpvDecorationBuiltIn)
        t->ids[id].built_in = value == UINT32_MAX ? 0 : value + 1;
    else if (what == SpvDecorationArrayStride)
        t->ids[id].stride = value;
    else if (what == SpvDecorationNoContraction)
        t->strict = true;
}

static void read_member_decoration(struct translator *t, const uint32_t *w)
{
    const uint32_t id = cl_word(w, 1);

    if (id >= t->bound) {
        pm_cl_fail(t, "damaged: a decoration of id %u", id);
        return;
    }
    PM_GROW(t->decorations, t->decoration_count, t->decoration_capacity);
    t->decorations[t->decoration_count] = (struct cl_decoration){
        .member = cl_word(w, 2), .what = cl_word(w, 3), .value = cl_word(w, 4),
        .next = t->ids[id].decorations,
    };
    t->ids[id].decorations = (uint32_t)++t->decoration_count;
}

static void read_import(struct translator *t, const uint32_t *w)
{
    static const char name[16] = "GLSL.std.450";

    if (cl_length(w) == 6 && memcmp(w + 2, name, sizeof name) == 0)
        t->glsl = w[1];
    else
        pm_cl_fail(t, "its set of extended instructions is not GLSL.std.450");
}

static void read_entry(struct translator *t, const uint32_t *w)
{
    if (cl_word(w, 1) != SpvExecutionModelGLCompute || t->entry)
        pm_cl_fail(t, "not a module with one compute shader");
    t->entry = cl_word(w, 2);
}

static void read_variable(struct translator *t, const uint32_t *w)
{
    const uint32_t storage = cl_word(w, 3);

    PM_GROW(t->globals, t->global_count, t->global_capacity);
    t->globals[t->global_count++] = w[2];
    if (storage == SpvStorageClassPushConstant) {
        if (t->push)
            pm_cl_fail(t, "more than one push block");
        t->push = w[2];
    }
    if (storage == SpvStorageClassWorkgroup)
        t->has_shared = true;
    else if (storage == SpvStorageClassPrivate || storage == SpvStorageClassInput ||
             storage == SpvStorageClassPushConstant)
        t->has_private = true;
    else
        pm_cl_fail(t, "a variable in storage class %u", storage);
}

/* The size of a workgroup, as a decorated constant; it overrides the execution mode. */
static void read_local_size(struct translator *t, const uint32_t *w)
{
    if (t->ids[w[2]].built_in == SpvBuiltInWorkgroupSize + 1)
        for (uint32_t i = 0; i < 3; i++)
            t->local[i] = pm_cl_constant(t, cl_word(w, 3 + i));
}

/* An instruction outside of functions. */
static void read_global(struct translator *t, const uint32_t *w)
{
    switch (cl_op(w)) {
    case SpvOpCapability: case SpvOpExtension: case SpvOpMemoryModel: case SpvOpSource:
    case SpvOpSourceContinued: case SpvOpSourceExtension: case SpvOpString: case SpvOpName:
    case SpvOpMemberName: case SpvOpModuleProcessed: case SpvOpLine: case SpvOpNoLine:
    case SpvOpNop: case SpvOpConstant: case SpvOpConstantTrue: case SpvOpConstantFalse:
    case SpvOpConstantNull: case SpvOpUndef:
        break;
    case SpvOpExtInstImport: read_import(t, w); break;
    case SpvOpEntryPoint: read_entry(t, w); break;
    case SpvOpExecutionMode:
        if (cl_word(w, 2) == SpvExecutionModeLocalSize && !t->local[0])
            for (uint32_t i = 0; i < 3; i++)
                t->local[i] = cl_word(w, 3 + i);
        break;
    case SpvOpDecorate: read_decoration(t, w); break;
    case SpvOpMemberDecorate: read_member_decoration(t, w); break;
    case SpvOpTypeForwardPointer: pm_cl_read_forward(t, w); break;
    case SpvOpTypeVoid: case SpvOpTypeBool: case SpvOpTypeInt: case SpvOpTypeFloat:
    case SpvOpTypeVector: case SpvOpTypeArray: case SpvOpTypeRuntimeArray: case SpvOpTypeStruct:
    case SpvOpTypePointer: case SpvOpTypeFunction:
        pm_cl_read_type(t, w);
        break;
    case SpvOpConstantComposite: read_local_size(t, w); break;
    case SpvOpVariable: read_variable(t, w); break;
    default: pm_cl_unknown(t, w);
    }
}

/* ---- functions -------------------------------------------------------------------------- */

static void read_function(struct translator *t, const uint32_t *w, struct place *at)
{
    if (at->function)
        pm_cl_fail(t, "damaged: a function inside a function");
    PM_GROW(t->functions, t->function_count, t->function_capacity);
    at->function = &t->functions[t->function_count++];
    *at->function = (struct cl_function){ .def = w, .first_block = (uint32_t)t->block_count };
}

static void read_label(struct translator *t, const uint32_t *w, struct place *at)
{
    if (!at->function || at->block) {
        pm_cl_fail(t, "damaged: label %u inside a block or outside of functions", w[1]);
        return;
    }
    PM_GROW(t->blocks, t->block_count, t->block_capacity);
    t->ids[w[1]].block = (uint32_t)t->block_count;
    at->block = &t->blocks[t->block_count++];
    *at->block = (struct cl_block){ .begin = w + cl_length(w), .label = w[1],
                                    .function = (uint32_t)t->function_count - 1 };
    at->function->blocks++;
}

static bool ends_block(uint32_t op)
{
    return op == SpvOpBranch || op == SpvOpBranchConditional || op == SpvOpSwitch ||
           op == SpvOpReturn || op == SpvOpReturnValue || op == SpvOpUnreachable ||
           op == SpvOpKill;
}

static void read_barrier(struct translator *t, const uint32_t *w)
{
    const bool control = cl_op(w) == SpvOpControlBarrier;
    const uint32_t word = control ? 3 : 2;
    const uint32_t semantics = pm_cl_constant(t, cl_word(w, word));

    if (control && pm_cl_constant(t, cl_word(w, 1)) != SpvScopeWorkgroup)
        pm_cl_fail(t, "a barrier of another scope than the workgroup");
    t->global_fences |= (semantics & (SpvMemorySemanticsUniformMemoryMask |
                                      SpvMemorySemanticsCrossWorkgroupMemoryMask)) != 0;
}

/* An instruction inside a function. */
static void read_local(struct translator *t, const uint32_t *w, struct place *at)
{
    const uint32_t op = cl_op(w);

    if (op == SpvOpFunctionEnd) {
        if (at->block || at->function->blocks == 0)
            pm_cl_fail(t, "damaged: a function ends inside a block, or has none");
        at->function = NULL;
    } else if (op == SpvOpFunctionParameter) {
        if (at->function->blocks || w != at->function->def + 5 + 3 * at->function->params)
            pm_cl_fail(t, "damaged: a parameter inside a function");
        at->function->params++;
    } else if (!at->block) {
        if (op != SpvOpLine && op != SpvOpNoLine)
            pm_cl_fail(t, "damaged: operation %u outside of a block", op);
    } else if (op == SpvOpLoopMerge || op == SpvOpSelectionMerge) {
        at->block->merge = w;
    } else if (op == SpvOpControlBarrier || op == SpvOpMemoryBarrier) {
        read_barrier(t, w);
    } else if (ends_block(op)) {
        at->block->end = w;
        at->block = NULL;
    }
}

/* Records the id that an instruction defines. */
static void define(struct translator *t, const uint32_t *w)
{
    bool has_result, has_type;
    uint32_t id;

    SpvHasResultAndType((SpvOp)cl_op(w), &has_result, &has_type);
    if (has_type && (cl_word(w, 1) == 0 || cl_word(w, 1) >= t->bound ||
                     t->types[w[1]].kind == CL_NO_TYPE)) {
        pm_cl_fail(t, "damaged: operation %u has no type", cl_op(w));
        return;
    }
    if (!has_result)
        return;
    id = cl_word(w, has_type ? 2 : 1);
    if (id == 0 || id >= t->bound || t->ids[id].def) {
        pm_cl_fail(t, "damaged: operation %u defines id %u, which is %s", cl_op(w), id,
                   id && id < t->bound ? "already defined" : "out of bounds");
        return;
    }
    t->ids[id].def = w;
}

static void read_instructions(struct translator *t)
{
    struct place at = { 0 };
    const uint32_t *w = t->words + HEADER;

    t->block_count = 1; /* PM_GROW allocates more than one */
    t->blocks = pm_calloc(t->block_capacity = 16, sizeof *t->blocks);
    for (; w < t->end && !t->err; w += cl_length(w)) {
        if (cl_length(w) == 0 || cl_length(w) > (size_t)(t->end - w)) {
            pm_cl_fail(t, "damaged: the instruction at word %zu exceeds the module",
                       (size_t)(w - t->words));
            return;
        }
        define(t, w);
        if (t->err)
            return;
        if (cl_op(w) == SpvOpFunction)
            read_function(t, w, &at);
        else if (cl_op(w) == SpvOpLabel)
            read_label(t, w, &at);
        else if (at.function)
            read_local(t, w, &at);
        else
            read_global(t, w);
    }
    if (!t->err && at.function)
        pm_cl_fail(t, "damaged: it ends inside a function");
}

static void mark_branch(struct translator *t, uint32_t label)
{
    if (label < t->bound && t->ids[label].block)
        t->blocks[t->ids[label].block].is_branched_to = true;
}

static void mark_branches(struct translator *t)
{
    for (uint32_t b = 1; b < t->block_count; b++) {
        const uint32_t *w = t->blocks[b].end;

        if (cl_op(w) == SpvOpBranch)
            mark_branch(t, cl_word(w, 1));
        if (cl_op(w) == SpvOpBranchConditional) {
            mark_branch(t, cl_word(w, 2));
            mark_branch(t, cl_word(w, 3));
        }
    }
}

void pm_cl_read(struct translator *t)
{
    const size_t count = (size_t)(t->end - t->words);

    if (count <= HEADER || t->words[0] != SpvMagicNumber) {
        pm_cl_fail(t, "not a SPIR-V module");
        return;
    }
    t->bound = t->words[3];
    if (t->bound == 0 || t->bound > count) { /* every id needs a word or more */
        pm_cl_fail(t, "damaged: %u ids in %zu words", t->bound, count);
        t->bound = 0;
        return;
    }
    t->ids = pm_calloc(t->bound, sizeof *t->ids);
    t->types = pm_calloc(t->bound, sizeof *t->types);
    read_instructions(t);
    if (!t->err)
        mark_branches(t);
    if (!t->err && (!t->entry || !t->local[0] || !t->local[1] || !t->local[2]))
        pm_cl_fail(t, "damaged: no entry point or no workgroup size");
}
