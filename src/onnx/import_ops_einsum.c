/* import_ops_einsum: products of two values given by an equation, "bhid,bhjd->bhij". A letter is an
 * axis. Letters in both inputs and the output count the matrices. Letters in one input and the
 * output are its rows or columns. Letters in both inputs only are summed over. Each kind except the
 * first must occur. The result is one product of matrices. */
#include "onnx/import_ops.h"

#include <string.h>

enum { MOST = PM_FILE_MAX_RANK };
struct equation {
    char term[3][MOST + 1]; /* of the two inputs and the output */
};

/* False for dots, a repeated letter in a term, or another number of inputs. */
static bool parse(const char *text, struct equation *e)
{
    int term = 0, n = 0;

    memset(e, 0, sizeof *e);
    for (const char *p = text; *p; p++) {
        if (*p == ' ')
            continue;
        if (*p == ',' && term == 0) {
            term = 1, n = 0;
        } else if (p[0] == '-' && p[1] == '>' && term == 1) {
            term = 2, n = 0, p++;
        } else {
            const bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');

            if (!letter || n == MOST || strchr(e->term[term], *p))
                return false;
            e->term[term][n++] = *p;
        }
    }
    return term == 2;
}

/* Selects the letters of a term that are (or are not) in each of two other terms. */
static void letters(const char *of, const char *a, bool in_a, const char *b, bool in_b,
                    char out[MOST + 1])
{
    int n = 0;

    for (; *of; of++)
        if ((strchr(a, *of) != NULL) == in_a && (strchr(b, *of) != NULL) == in_b)
            out[n++] = *of;
    out[n] = 0;
}

/* Returns groups of axes for import_lay: the places of each kind's letters in the term. */
static void groups_of(const char *term, const char *const kinds[3], char out[2 * MOST + 1])
{
    int n = 0;

    for (int k = 0; k < 3; k++) {
        if (n > 0 && kinds[k][0])
            out[n++] = ' ';
        for (const char *p = kinds[k]; *p; p++)
            out[n++] = (char)('0' + (strchr(term, *p) - term));
    }
    out[n] = 0;
}

/* Whether each letter has a single size. Writes the output's sizes to dim. */
static bool sizes_fit(const struct equation *e, struct value *const in[2], int64_t dim[MOST])
{
    for (int i = 0; i < 2; i++)
        if ((int)strlen(e->term[i]) != in[i]->view.rank)
            return false;
    for (const char *p = e->term[0]; *p; p++) {
        const char *q = strchr(e->term[1], *p);

        if (q && in[0]->view.dim[p - e->term[0]] != in[1]->view.dim[q - e->term[1]])
            return false;
    }
    for (int k = 0; e->term[2][k]; k++) {
        const char *a = strchr(e->term[0], e->term[2][k]), *b = strchr(e->term[1], e->term[2][k]);

        if (!a && !b)
            return false;
        dim[k] = a ? in[0]->view.dim[a - e->term[0]] : in[1]->view.dim[b - e->term[1]];
    }
    return true;
}

int import_op_einsum(struct import *m)
{
    const char *text = pm_onnx_attr_text(m->n, "equation", "");
    struct value *const in[2] = { import_in(m, 0), import_in(m, 1) };
    char each[MOST + 1], rows[MOST + 1], columns[MOST + 1], sum[MOST + 1];
    char of_a[2 * MOST + 1], of_b[2 * MOST + 1], of_y[2 * MOST + 1];
    int64_t dim[MOST];
    struct equation e;

    if (m->n->in_count != 2 || in[1]->kind == VALUE_ABSENT || !parse(text, &e))
        return import_refuse(m, "the equation \"%s\": only products of two values, each axis once",
                             text);
    letters(e.term[0], e.term[1], true, e.term[2], true, each);
    letters(e.term[0], e.term[1], true, e.term[2], false, sum);
    letters(e.term[0], e.term[1], false, e.term[2], true, rows);
    letters(e.term[1], e.term[0], false, e.term[2], true, columns);
    if (!sum[0] || !rows[0] || !columns[0] || !sizes_fit(&e, in, dim) ||
        strlen(each) + strlen(sum) + strlen(rows) != strlen(e.term[0]) ||
        strlen(each) + strlen(sum) + strlen(columns) != strlen(e.term[1]))
        return import_refuse(
            m, "the equation \"%s\": it is not a product of matrices, or does not fit", text);
    groups_of(e.term[0], (const char *const[]){ each, rows, sum }, of_a);
    groups_of(e.term[1], (const char *const[]){ each, columns, sum }, of_b);
    const bool turned = value_constant(in[1]) || view_lies(&in[1]->view, of_b);
    if (!turned)
        groups_of(e.term[1], (const char *const[]){ each, sum, columns }, of_b);
    groups_of(e.term[2], (const char *const[]){ each, rows, columns }, of_y);
    struct pm_node *x[2] = { import_lay(m, in[0], of_a), import_lay(m, in[1], of_b) };
    const struct view out = view_ordered((int)strlen(e.term[2]), dim, of_y);
    import_out_node(m, 0,
                    pm_net_add_many(m->net, import_name(m, NULL), x, 2, "matmul transpose_b=%s",
                                    turned ? "true" : "false"),
                    &out);
    return PM_OK;
}
