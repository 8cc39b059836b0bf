/* translate_flow: rebuilds for (;;), if and switch from a function's basic blocks.
 *
 * A merge instruction names the block that follows a construct. While the construct is written,
 * this block is `pending`: whoever wrote the merge instruction writes it afterwards. An edge to a
 * pending block is nothing if the text goes on there anyway, a break if it leaves the innermost
 * construct that C can leave, and otherwise a goto. The target of a `continue` in a loop is such a
 * block too; it stands at the end of the loop's body. An edge to any other block writes the block
 * in place. So every block is written once.
 *
 * A phi is a variable that every edge to its block sets. */
#include "device/opencl/translate_private.h"

/* Where the text is. All are labels; 0: none. */
struct flow {
    uint32_t next;  /* the block that is reached by doing nothing */
    uint32_t leave; /* the block that `break` reaches */
    uint32_t loop;  /* the innermost loop's header, reached by `continue` */
};

static void put_blocks(struct translator *t, uint32_t label, struct flow f, int nesting);

PM_PRINTF(2, 3) static void put_line(struct translator *t, const char *format, ...)
{
    va_list args;

    pm_cl_line(t);
    va_start(args, format);
    pm_str_add_args(t->out, format, args);
    va_end(args);
    pm_str_add(t->out, "\n");
}

/* The block of a label in the function that is being written. */
static struct cl_block *block_of(struct translator *t, uint32_t label, uint32_t function)
{
    const uint32_t b = label < t->bound ? t->ids[label].block : 0;

    if (b && t->blocks[b].function == function)
        return &t->blocks[b];
    pm_cl_fail(t, "damaged: a branch to id %u, which is no label of the function", label);
    return NULL;
}

/* ---- phis ------------------------------------------------------------------------------- */

/* The value that a phi takes when control comes from block `from`. */
static uint32_t incoming(struct translator *t, const uint32_t *w, uint32_t from)
{
    for (uint32_t i = 3; i + 1 < cl_length(w); i += 2)
        if (w[i + 1] == from)
            return w[i];
    pm_cl_fail(t, "damaged: a phi has no value for block %u", from);
    return 0;
}

static bool is_phi(const uint32_t *w)
{
    return cl_op(w) == SpvOpPhi;
}

/* Whether a phi's value reads an earlier phi of the same block, which its edge has set already. An
 * access chain may read one by its indices. */
static bool must_be_parallel(struct translator *t, const struct cl_block *to, uint32_t from)
{
    for (const uint32_t *w = to->begin; is_phi(w) && !t->err; w += cl_length(w)) {
        const uint32_t *d = pm_cl_def(t, incoming(t, w, from));

        if (cl_is_chain(cl_op(d)) || (is_phi(d) && d >= to->begin && d < w))
            return true;
    }
    return false;
}

/* Sets the phis of `to`. If they read each other, all values are copied first. */
static void put_phis(struct translator *t, const struct cl_block *from, const struct cl_block *to)
{
    const bool parallel = must_be_parallel(t, to, from->label);

    if (parallel)
        put_line(t, "{");
    for (const uint32_t *w = to->begin; is_phi(w) && !t->err; w += cl_length(w)) {
        const uint32_t value = incoming(t, w, from->label);

        if (t->err || (!parallel && value == w[2]))
            continue;
        pm_cl_line(t);
        if (parallel)
            pm_cl_put_type(t, w[1]);
        pm_str_add(t->out, parallel ? " n%u = " : "v%u = ", w[2]);
        pm_cl_put_value(t, value);
        pm_str_add(t->out, ";\n");
    }
    for (const uint32_t *w = to->begin; parallel && is_phi(w) && !t->err; w += cl_length(w))
        put_line(t, "v%u = n%u;", w[2], w[2]);
    if (parallel)
        put_line(t, "}");
}

/* ---- edges ------------------------------------------------------------------------------ */

enum jump { NOTHING, BREAK, CONTINUE, GOTO, INLINE };

static enum jump jump_to(const struct cl_block *to, struct flow f)
{
    if (to->label == f.next)
        return NOTHING;
    if (to->pending)
        return to->label == f.leave ? BREAK : GOTO;
    if (to->is_case)
        return GOTO;
    return to->label == f.loop && to->done ? CONTINUE : INLINE;
}

/* Writes an edge. Returns the label of the block to write next in the same place; 0: none. */
static uint32_t put_edge(struct translator *t, const struct cl_block *from, uint32_t label,
                         struct flow f)
{
    struct cl_block *to = block_of(t, label, from->function);

    if (!to)
        return 0;
    put_phis(t, from, to);
    switch (jump_to(to, f)) {
    case NOTHING: return 0;
    case BREAK: put_line(t, "break;"); return 0;
    case CONTINUE: put_line(t, "continue;"); return 0;
    case GOTO:
        to->jumped = true;
        put_line(t, "goto L%u;", label);
        return 0;
    default:
        return label;
    }
}

/* Writes an edge and all blocks that follow it inside the same braces. */
static void put_branch(struct translator *t, const struct cl_block *from, uint32_t label,
                       struct flow f, int nesting)
{
    uint32_t next;

    t->indent++;
    next = put_edge(t, from, label, f);
    if (next)
        put_blocks(t, next, f, nesting + 1);
    t->indent--;
}

/* Ends a pending block's state, with its label if a goto leads there. */
static void put_label(struct translator *t, struct cl_block *b)
{
    b->pending = false;
    if (b->jumped)
        put_line(t, "L%u:;", b->label);
}

static void set_pending(struct translator *t, struct cl_block *b)
{
    if (b->pending || b->done)
        pm_cl_fail(t, "damaged: block %u belongs to two constructs", b->label);
    b->pending = true;
}

/* ---- if and switch ---------------------------------------------------------------------- */

/* Whether an edge needs no text. */
static bool is_nothing(struct translator *t, const struct cl_block *from, uint32_t label,
                       struct flow f)
{
    const struct cl_block *to = block_of(t, label, from->function);

    return to && jump_to(to, f) == NOTHING && !is_phi(to->begin);
}

static bool is_jump(struct translator *t, const struct cl_block *from, uint32_t label,
                    struct flow f)
{
    const struct cl_block *to = block_of(t, label, from->function);

    return to && jump_to(to, f) != NOTHING && jump_to(to, f) != INLINE;
}

static void put_if(struct translator *t, uint32_t condition, bool negated)
{
    pm_cl_line(t);
    pm_str_add(t->out, negated ? "if (!" : "if (");
    pm_cl_put_value(t, condition);
    pm_str_add(t->out, ") {\n");
}

/* Returns the label of the block to write next in the same place; 0: none. */
static uint32_t put_conditional(struct translator *t, const struct cl_block *b, struct flow f,
                                int nesting)
{
    const uint32_t condition = cl_word(b->end, 1), yes = cl_word(b->end, 2),
                   no = cl_word(b->end, 3);

    if (is_nothing(t, b, yes, f) || is_jump(t, b, no, f)) {
        put_if(t, condition, true);
        put_branch(t, b, no, f, nesting);
        put_line(t, "}");
        return is_nothing(t, b, yes, f) ? 0 : put_edge(t, b, yes, f);
    }
    put_if(t, condition, false);
    put_branch(t, b, yes, f, nesting);
    put_line(t, "}");
    if (is_jump(t, b, yes, f))
        return put_edge(t, b, no, f);
    if (!is_nothing(t, b, no, f)) {
        put_line(t, "else {");
        put_branch(t, b, no, f, nesting);
        put_line(t, "}");
    }
    return 0;
}

/* "case 3:" for every value that leads to a label. */
static void put_cases(struct translator *t, const uint32_t *w, uint32_t label, bool is_signed)
{
    for (uint32_t i = 3; i + 1 < cl_length(w); i += 2)
        if (w[i + 1] == label && is_signed)
            put_line(t, "case %lld:", (long long)(int32_t)w[i]);
        else if (w[i + 1] == label)
            put_line(t, "case %uu:", w[i]);
    if (w[2] == label)
        put_line(t, "default:");
}

/* The label among a switch's targets whose block comes first after block number `after`; 0:
 * none. */
static uint32_t next_case(const struct translator *t, const uint32_t *w, uint32_t merge,
                          uint32_t after)
{
    uint32_t best = 0;

    for (uint32_t i = 2; i < cl_length(w); i += 2) {
        const uint32_t label = w[i], number = label < t->bound ? t->ids[label].block : 0;

        if (label != merge && number > after && (!best || number < t->ids[best].block))
            best = label;
    }
    return best;
}

static bool leads_to(const uint32_t *w, uint32_t label)
{
    for (uint32_t i = 2; i < cl_length(w); i += 2)
        if (w[i] == label)
            return true;
    return false;
}

/* Makes the targets of a switch its cases, or ends that. Nothing else uses their phis yet, so they
 * are set before the switch. */
static void set_cases(struct translator *t, const struct cl_block *b, uint32_t merge, bool begin)
{
    for (uint32_t i = 2; begin && i < cl_length(b->end) && !t->err; i += 2)
        block_of(t, b->end[i], b->function);
    for (uint32_t label = next_case(t, b->end, merge, 0); label && !t->err;
         label = next_case(t, b->end, merge, t->ids[label].block)) {
        struct cl_block *to = block_of(t, label, b->function);

        if (!to)
            return;
        if (begin) {
            put_phis(t, b, to);
            set_pending(t, to);
            to->jumped = to->is_branched_to;
        }
        to->is_case = begin;
    }
}

/* Cases are written in the order of their blocks. A case that falls through usually stands directly
 * before the case that it enters. Otherwise it enters it by a goto: glslang puts the default's
 * block first. */
static void put_switch(struct translator *t, const struct cl_block *b, struct flow f, int nesting)
{
    const uint32_t *w = b->end, merge = f.next;
    const struct cl_type *k = pm_cl_type(t, pm_cl_type_of(t, cl_word(w, 1)));
    uint32_t label;

    if (cl_length(w) < 3 || cl_length(w) % 2 == 0) {
        pm_cl_fail(t, "damaged: a switch of %u words", cl_length(w));
        return;
    }
    if (k->kind != CL_INT || k->bits != 32 || cl_length(w) > 2 * CL_MOST_CASES) {
        pm_cl_fail(t, "a switch on 64 bits, or with more than %d cases", CL_MOST_CASES);
        return;
    }
    f.leave = merge;
    set_cases(t, b, merge, true);
    if (!t->err && leads_to(w, merge))
        put_phis(t, b, block_of(t, merge, b->function));
    pm_cl_line(t);
    pm_str_add(t->out, "switch (");
    pm_cl_put_value(t, w[1]);
    pm_str_add(t->out, ") {\n");
    for (label = next_case(t, w, merge, 0); label && !t->err;) {
        const uint32_t after = next_case(t, w, merge, t->ids[label].block);
        struct flow inside = f;

        inside.next = after ? after : merge;
        put_cases(t, w, label, k->is_signed);
        put_line(t, "{");
        t->indent++;
        put_label(t, block_of(t, label, b->function));
        put_blocks(t, label, inside, nesting + 1);
        t->indent--;
        put_line(t, "}");
        label = after;
    }
    set_cases(t, b, merge, false);
    if (leads_to(w, merge)) {
        put_cases(t, w, merge, k->is_signed);
        put_line(t, "break;");
    }
    put_line(t, "}");
}

/* ---- blocks ----------------------------------------------------------------------------- */

static void put_instructions(struct translator *t, const struct cl_block *b)
{
    const uint32_t *w = b->begin;

    while (is_phi(w))
        w += cl_length(w); /* written by the edges to the block */
    for (; w < b->end && !t->err; w += cl_length(w))
        pm_cl_put_instruction(t, w);
}

/* Writes the end of a block. Returns the label of the block to write next in the same place; 0:
 * none. */
static uint32_t put_end(struct translator *t, const struct cl_block *b, struct flow f, int nesting)
{
    switch (cl_op(b->end)) {
    case SpvOpBranch: return put_edge(t, b, cl_word(b->end, 1), f);
    case SpvOpBranchConditional: return put_conditional(t, b, f, nesting);
    case SpvOpSwitch:
        if (!b->merge || cl_op(b->merge) != SpvOpSelectionMerge)
            pm_cl_fail(t, "damaged: a switch without a merge instruction");
        else
            put_switch(t, b, f, nesting);
        return 0;
    case SpvOpReturn: put_line(t, "return;"); return 0;
    case SpvOpReturnValue:
        pm_cl_line(t);
        pm_str_add(t->out, "return ");
        pm_cl_put_value(t, cl_word(b->end, 1));
        pm_str_add(t->out, ";\n");
        return 0;
    case SpvOpUnreachable: return 0;
    default: pm_cl_unknown(t, b->end); return 0;
    }
}

/* `#pragma unroll` keeps the hint of [[unroll]] and [[dont_unroll]]. */
static void put_unroll(struct translator *t, uint32_t control)
{
    if (control & SpvLoopControlUnrollMask)
        put_line(t, "#pragma unroll");
    else if (control & SpvLoopControlDontUnrollMask)
        put_line(t, "#pragma unroll 1");
}

/* A loop: its body from the header on, then the blocks from the continue target to the header. */
static void put_loop(struct translator *t, struct cl_block *b, struct cl_block *merge, int nesting)
{
    struct cl_block *again = block_of(t, cl_word(b->merge, 2), b->function);
    struct flow f = { .leave = merge->label, .loop = b->label };
    uint32_t next;

    if (!again)
        return;
    f.next = again->label;
    if (again != b)
        set_pending(t, again);
    put_unroll(t, cl_word(b->merge, 3));
    put_line(t, "for (;;) {");
    t->indent++;
    put_instructions(t, b);
    next = put_end(t, b, f, nesting);
    if (next)
        put_blocks(t, next, f, nesting + 1);
    if (again != b && !t->err) {
        put_label(t, again);
        f.next = b->label;
        put_blocks(t, again->label, f, nesting + 1);
    }
    t->indent--;
    put_line(t, "}");
}

/* Writes the block of a label and all that follow it, up to the end of the construct. */
static void put_blocks(struct translator *t, uint32_t label, struct flow f, int nesting)
{
    const uint32_t function = t->blocks[t->ids[label].block].function;

    if (nesting > CL_MOST_NESTING)
        pm_cl_fail(t, "control flow is nested deeper than %d levels", CL_MOST_NESTING);
    while (label && !t->err) {
        struct cl_block *b = block_of(t, label, function), *merge = NULL;
        struct flow inside = f;

        if (!b || b->done) {
            pm_cl_fail(t, "damaged: two branches to block %u, which is no merge block", label);
            return;
        }
        b->done = true;
        if (b->merge) {
            merge = block_of(t, cl_word(b->merge, 1), function);
            if (!merge)
                return;
            set_pending(t, merge);
        }
        if (merge && cl_op(b->merge) == SpvOpLoopMerge) {
            put_loop(t, b, merge, nesting);
            label = 0;
        } else {
            inside.next = merge ? merge->label : f.next;
            put_instructions(t, b);
            label = put_end(t, b, inside, nesting);
            if (merge && label) /* an if whose one side is a jump */
                put_blocks(t, label, inside, nesting + 1);
        }
        if (merge) {
            put_label(t, merge);
            label = merge->label;
        }
    }
}

/* ---- functions -------------------------------------------------------------------------- */

/* Declares the variable of an instruction's result. */
static void put_declaration(struct translator *t, const uint32_t *w)
{
    const bool variable = cl_op(w) == SpvOpVariable;
    const uint32_t type = variable ? pm_cl_type(t, w[1])->of : w[1];

    if (pm_cl_type(t, type)->kind == CL_VOID)
        return; /* a call without result */
    pm_cl_line(t);
    pm_cl_put_type(t, type);
    pm_str_add(t->out, " v%u", w[2]);
    if (variable && cl_length(w) > 4) {
        pm_str_add(t->out, " = ");
        pm_cl_put_value(t, w[4]);
    }
    pm_str_add(t->out, ";\n");
}

/* Whether an instruction has a result that needs a variable. */
static bool has_variable(const struct translator *t, const uint32_t *w)
{
    const uint32_t id = cl_word(w, 2);

    return id < t->bound && t->ids[id].def == w && !cl_is_chain(cl_op(w)) &&
           cl_op(w) != SpvOpUndef;
}

/* Declares all values at the function's top. With declarations in a loop's body, PoCL 3.1 does not
 * run the loop's body for several work-items at once, and convolutions take 7 to 10 times as
 * long. */
void pm_cl_put_body(struct translator *t, const struct cl_function *f)
{
    for (uint32_t i = 0; i < f->blocks; i++) {
        const struct cl_block *b = &t->blocks[f->first_block + i];

        for (const uint32_t *w = b->begin; w < b->end && !t->err; w += cl_length(w))
            if (has_variable(t, w))
                put_declaration(t, w);
    }
    if (!t->err)
        put_blocks(t, t->blocks[f->first_block].label, (struct flow){ 0 }, 0);
}
