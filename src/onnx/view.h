/* view: the memory layout of an ONNX value's elements. ONNX has axes of row-major tensors, and its
 * images are [n, c, h, w]; ours are [n, h, w, c]. A view stores both. Axes are split into atoms.
 * ONNX's order of the atoms defines the value; their order in memory defines its layout. So
 * Transpose, Unsqueeze, Squeeze, Flatten and most Reshapes only change the view. Data is moved only
 * when a layer requests an order. Axes of size 1 have no atoms. */
#ifndef PM_ONNX_VIEW_H
#define PM_ONNX_VIEW_H

#include <pumice/onnx.h>

enum { VIEW_ATOMS = 24 };
struct view {
    int rank;
    int64_t dim[PM_FILE_MAX_RANK];
    int atoms;
    int64_t size[VIEW_ATOMS]; /* sizes of the atoms, in ONNX's order */
    int axis[VIEW_ATOMS];     /* each atom's axis, ascending */
    int at[VIEW_ATOMS];       /* index of the atom at each place in memory, slowest first */
};

int64_t view_count(const struct view *v);
/* Returns the row-major view. rank 0: a scalar. */
struct view view_plain(int rank, const int64_t *dim);
/* Returns a view with the axes in this memory order: digits, "0231"; spaces are skipped. */
struct view view_ordered(int rank, const int64_t *dim, const char *order);
/* Makes the former axis perm[i] axis i. */
void view_transpose(struct view *v, const int *perm);
/* Changes the axes over the same elements. Returns false if the value must first be transposed to
 * ONNX's own order (view_plain of its shape); then it always succeeds. */
bool view_reshape(struct view *v, int rank, const int64_t *dim);
/* Computes the shape of Gather's result: the axes of index replace the gathered axis of v. Returns
 * the rank; the caller ensures at most PM_FILE_MAX_RANK. */
int view_gathered(const struct view *v, int axis, const struct view *index, int64_t *dim);
/* Writes the atoms of these axes, in this order, to out; returns their number. */
int view_atoms(const struct view *v, const char *order, int out[VIEW_ATOMS]);
/* Whether the axes have this order in memory. */
bool view_lies(const struct view *v, const char *order);
/* Writes the axes, as digits, ordered by the place of their first atom. Axes of size 1 stay after
 * the axis before them. */
void view_order(const struct view *v, char order[PM_FILE_MAX_RANK + 1]);
/* Computes the transpose that brings memory from v to the atoms in to[] (all of them): sizes and a
 * permutation with as few axes as possible. Returns the rank; 0 if nothing moves. */
int view_moves(const struct view *v, const int to[VIEW_ATOMS], int64_t size[VIEW_ATOMS],
               int perm[VIEW_ATOMS]);
/* Formats the shape: "1x3x224x224", "scalar". */
char *view_text(const struct view *v, char buf[96]);

#endif
