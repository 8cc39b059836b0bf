/* import_ops: the table of operators. */
#include "onnx/import_ops.h"

#include <string.h>

static const struct operator operators[] = {
#define PM_ONNX_OP(op, builder, backward, exported, note)                                          \
    { { op, backward, exported, note }, import_op_##builder },
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

char *pm_import_markdown(void)
{
    struct pm_str s = { 0 };

    pm_str_add(
        &s,
        "\n## Operators\n\n"
        "`model.onnx` takes these operators, from opset 6 on. \"export\" marks those that `pumice "
        "export` writes.\n\"constants\": the operator is computed while the model is read, and all "
        "of its inputs must be constants.\n\n"
        "| operator | forward | backward | export | notes |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < PM_COUNT(operators); i++) {
        const struct pm_import_operator *o = &operators[i].about;

        pm_str_add(&s, "| `%s` | %s | %s | %s | %s |\n", o->name,
                   o->backward[0] ? "yes" : "constants", o->backward[0] ? o->backward : "",
                   o->exported, o->note);
    }
    return s.text;
}

int import_op_constant_only(struct import *m)
{
    return import_refuse(m, "computed inputs (constants only)");
}
