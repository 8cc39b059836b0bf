/* translate_private: shared by the files of the translator.
 *
 * translate.c writes the program, translate_read.c reads the module, translate_types.c its types,
 * translate_flow.c the functions' control flow, translate_values.c values and pointers, and
 * translate_code.c the instructions.
 *
 * Errors: the first one is recorded with pm_fail and kept in `err`. After it, the functions go on
 * with harmless values, and loops stop at their next test of `err`. */
#ifndef PM_TRANSLATE_PRIVATE_H
#define PM_TRANSLATE_PRIVATE_H

#include <spirv/unified1/spirv.h>

#include "device/opencl/translate.h"

enum {
    CL_MOST_NESTING = 200,    /* of control flow: each level is a recursion */
    CL_MOST_CASES = 1000,     /* of a switch */
    CL_MOST_TYPE_NESTING = 8, /* of structs and arrays */
    CL_MOST_CHAINS = 8,       /* access chains on access chains */
    CL_MOST_TEXT = 4 << 20,   /* bytes; the longest of our shaders has 150 KiB */
};
enum cl_kind {
    CL_NO_TYPE, CL_VOID, CL_BOOL, CL_INT, CL_FLOAT, CL_VECTOR, CL_ARRAY, CL_RUNTIME_ARRAY,
    CL_STRUCT, CL_POINTER, CL_FUNCTION,
};
/* A type. Sizes are those of OpenCL C. */
struct cl_type {
    enum cl_kind kind;
    uint32_t bits;        /* of an int or float */
    bool is_signed;
    uint32_t count;       /* components, elements or members */
    uint32_t of;          /* type of an element, pointee or result; 0: pointer not yet complete */
    const uint32_t *members; /* of a struct: their types; points into the module */
    uint32_t storage;     /* of a pointer */
    uint32_t same;        /* arrays and structs: the first type with the same contents */
    uint32_t flat;        /* a struct of one array without size: type of the element; else 0 */
    uint32_t nesting;     /* structs and arrays around the innermost scalar */
    uint64_t bytes;
    uint32_t align;
    bool has_3;           /* has a vector of 3, which in OpenCL takes the room of 4 */
    bool is_volatile;     /* a block that is Coherent or Volatile */
};
struct cl_id {
    const uint32_t *def;  /* the instruction that defines it; NULL: none */
    uint32_t built_in;    /* SpvBuiltIn + 1; 0: none */
    uint32_t stride;      /* ArrayStride; 0: none */
    uint32_t decorations; /* members' decorations: index + 1 of the newest; 0: none */
    uint32_t block;       /* of a label: number of its block, from 1 */
};
struct cl_decoration {
    uint32_t member, what, value;
    uint32_t next; /* index + 1; 0: end */
};
/* A basic block and its state while the text is written. */
struct cl_block {
    const uint32_t *begin, *end;  /* instructions: after the label, and the last one */
    const uint32_t *merge;        /* OpLoopMerge or OpSelectionMerge, or NULL */
    uint32_t label;
    uint32_t function;            /* index */
    bool done;                    /* its text is written */
    bool pending;                 /* an enclosing construct writes it later */
    bool jumped;                  /* a goto needs its label */
    bool is_case;                 /* of a switch that is being written */
    bool is_branched_to;          /* by a branch; a switch does not count */
};
struct cl_function {
    const uint32_t *def;
    uint32_t first_block, blocks; /* number of the first block, from 1, and their count */
    uint32_t params;              /* OpFunctionParameter follow def */
};
struct translator {
    const char *name;
    const uint32_t *words, *end;
    const struct pm_cl_dialect *dialect;
    struct pm_str *out;
    int err;

    uint32_t bound;
    struct cl_id *ids;            /* [bound] */
    struct cl_type *types;        /* [bound] */
    struct cl_decoration *decorations;
    struct cl_block *blocks;      /* the first is unused */
    struct cl_function *functions;
    uint32_t *globals;            /* variables outside of functions */
    uint32_t *composites;         /* arrays and structs, in their order */
    size_t decoration_count, decoration_capacity, block_count, block_capacity, function_count,
        function_capacity, global_count, global_capacity, composite_count, composite_capacity;
    uint32_t entry, glsl, push;   /* ids: main, the instruction set, the push block's variable */
    uint32_t local[3];
    bool strict;                  /* some result must not be contracted */
    bool global_fences;           /* some memory barrier orders accesses to buffers */
    bool has_private, has_shared; /* the structs `globals` and `shared` exist */
    int indent;
};

static inline uint32_t cl_op(const uint32_t *w) { return w[0] & 0xffff; }
static inline uint32_t cl_length(const uint32_t *w) { return w[0] >> 16; }
/* Word i of an instruction; 0, which is no id, beyond its end. */
static inline uint32_t cl_word(const uint32_t *w, uint32_t i)
{
    return i < cl_length(w) ? w[i] : 0;
}

/* ---- translate.c: errors and text ------------------------------------------------------- */

/* Records a damaged or unsupported module: "shader NAME: ...". */
void pm_cl_fail(struct translator *t, const char *format, ...) PM_PRINTF(2, 3);
void pm_cl_unknown(struct translator *t, const uint32_t *w); /* an unsupported instruction */
/* Fails if the text is too long: a damaged module may repeat a long constant many times. */
void pm_cl_check_length(struct translator *t);
/* Starts a line of the text with its indentation. */
void pm_cl_line(struct translator *t);

/* ---- translate_read.c ------------------------------------------------------------------- */

/* Reads the whole module: ids, types, functions and blocks. */
void pm_cl_read(struct translator *t);
/* The instruction that defines an id, or a harmless one (OpNop) after an error. */
const uint32_t *pm_cl_def(struct translator *t, uint32_t id);
/* Value of a 32-bit integer constant. */
bool pm_cl_is_constant(const struct translator *t, uint32_t id);
uint32_t pm_cl_constant(struct translator *t, uint32_t id);
uint32_t pm_cl_type_of(struct translator *t, uint32_t id); /* of a value */
uint32_t pm_cl_member_offset(const struct translator *t, uint32_t type, uint32_t member);

/* ---- translate_types.c ------------------------------------------------------------------ */

void pm_cl_read_type(struct translator *t, const uint32_t *w);
void pm_cl_read_forward(struct translator *t, const uint32_t *w);
/* A type by its id, or void after an error. */
const struct cl_type *pm_cl_type(struct translator *t, uint32_t id);
/* The type of a vector's components, or the type itself. */
const struct cl_type *pm_cl_scalar(struct translator *t, uint32_t id);
const char *pm_cl_space(struct translator *t, uint32_t storage); /* "__global" */
/* The type's name in OpenCL C. */
void pm_cl_put_type(struct translator *t, uint32_t id);
/* The same for an integer type of this signedness with the type's bits and components. */
void pm_cl_put_integer(struct translator *t, uint32_t id, bool is_signed);
void pm_cl_put_composites(struct translator *t); /* definitions of all structs */

static inline bool cl_is_chain(uint32_t op)
{
    return op == SpvOpAccessChain || op == SpvOpInBoundsAccessChain;
}

/* ---- translate_values.c ----------------------------------------------------------------- */

void pm_cl_put_value(struct translator *t, uint32_t id);
/* The value as an integer of this signedness. */
void pm_cl_put_as(struct translator *t, uint32_t id, bool is_signed);
/* The type of a pointer; its `of` is the target's type. Fails if the id is no pointer. */
const struct cl_type *pm_cl_pointer_type(struct translator *t, uint32_t pointer);
/* What a pointer points to, and the pointer itself. */
void pm_cl_put_target(struct translator *t, uint32_t id);
void pm_cl_put_pointer(struct translator *t, uint32_t id);
/* Whether a pointer points to a component of a vector of bool. */
bool pm_cl_is_bool_component(struct translator *t, uint32_t id);

/* ---- translate_code.c ------------------------------------------------------------------- */

/* Writes one instruction that is not part of the control flow. */
void pm_cl_put_instruction(struct translator *t, const uint32_t *w);

/* ---- translate_flow.c ------------------------------------------------------------------- */

/* Writes the statements of a function, with its variables. */
void pm_cl_put_body(struct translator *t, const struct cl_function *f);

#endif
