/* view: how the elements of an ONNX value lie in memory. ONNX thinks in axes of row-major tensors,
 * images being [n, c, h, w]; ours are [n, h, w, c]. A view keeps both: axes are cut into atoms, ONNX's
 * order of the atoms says what the value is, their order in memory where it is. So Transpose,
 * Unsqueeze, Squeeze, Flatten and most Reshapes change the view alone, and what must be moved is known
 * only where a layer asks for an order. Axes of size 1 have no atoms. */
#ifndef PM_ONNX_VIEW_H
#define PM_ONNX_VIEW_H

#include <pumice/onnx.h>

enum { VIEW_ATOMS = 24 };
struct view {
    int rank;
    int64_t dim[PM_FILE_MAX_RANK];
    int atoms;
    int64_t size[VIEW_ATOMS]; /* of atoms, in ONNX's order */
    int axis[VIEW_ATOMS];     /* the axis each belongs to; never falls */
    int at[VIEW_ATOMS];       /* atom at each place in memory, slowest first */
};

int64_t view_count(const struct view *v);
/* Row-major. rank 0: a scalar. */
struct view view_plain(int rank, const int64_t *dim);
/* Axes in memory in this order, "0231": digits, spaces are passed over. */
struct view view_ordered(int rank, const int64_t *dim, const char *order);
/* Axis i is the former axis perm[i]. */
void view_transpose(struct view *v, const int *perm);
/* Other axes over the same elements; false where the value must be brought into ONNX's own order
 * first (view_plain of its shape, after which it always succeeds). */
bool view_reshape(struct view *v, int rank, const int64_t *dim);
/* The shape of what Gather takes of v: index's axes in the place of that one. Their number, at most
 * PM_FILE_MAX_RANK, as the caller sees to. */
int view_gathered(const struct view *v, int axis, const struct view *index, int64_t *dim);
/* The atoms of these axes, in this order, into out; their number. */
int view_atoms(const struct view *v, const char *order, int out[VIEW_ATOMS]);
/* Whether memory has the axes in this order. */
bool view_lies(const struct view *v, const char *order);
/* Axes by where their first atom lies, as digits; axes of size 1 keep their place after the one
 * before them. */
void view_order(const struct view *v, char order[PM_FILE_MAX_RANK + 1]);
/* What moves memory from v to the atoms in to[] (all of them): sizes and a permutation of as few axes
 * as will do; 0 when nothing moves. */
int view_moves(const struct view *v, const int to[VIEW_ATOMS], int64_t size[VIEW_ATOMS],
               int perm[VIEW_ATOMS]);
/* "1x3x224x224", "scalar". */
char *view_text(const struct view *v, char buf[96]);

#endif
