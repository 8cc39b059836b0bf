/* import_ops: the table of operators. */
#include "onnx/import_ops.h"

#include <string.h>

static const struct operator operators[] = {
#define PM_ONNX_OP(op, builder, backward, note)                                                    \
    { { op, "yes", backward[0] ? backward : "no", note }, import_op_##builder },
#include "onnx/ops.def"
#undef PM_ONNX_OP
};

const struct operator *import_operator(const struct pm_onnx_node *n)
{
    for (size_t i = 0; i < PM_COUNT(operators) && n->domain[0] == 0; i++)
        if (strcmp(operators[i].about.name, n->op) == 0)
            return &operators[i];
    return NULL;
}

size_t pm_import_operator_count(void)
{
    return PM_COUNT(operators);
}

const struct pm_import_operator *pm_import_operator_at(size_t i)
{
    return &operators[i].about;
}

int import_op_constant_only(struct import *m)
{
    return import_refuse(m, "of computed values: it is there for constants only");
}
