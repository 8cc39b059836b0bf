/* view: axes, their atoms, and the memory order of the atoms. */
#include "onnx/view.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

int64_t view_count(const struct view *v)
{
    int64_t n = 1;

    for (int i = 0; i < v->rank; i++)
        n *= v->dim[i];
    return n;
}

struct view view_plain(int rank, const int64_t *dim)
{
    struct view v = { .rank = rank };

    for (int i = 0; i < rank; i++) {
        v.dim[i] = dim[i];
        if (dim[i] == 1)
            continue;
        v.size[v.atoms] = dim[i];
        v.axis[v.atoms] = i;
        v.at[v.atoms] = v.atoms;
        v.atoms++;
    }
    return v;
}

int view_gathered(const struct view *v, int axis, const struct view *index, int64_t *dim)
{
    int rank = 0;

    for (int i = 0; i < v->rank; i++)
        if (i != axis)
            dim[rank++] = v->dim[i];
        else
            for (int k = 0; k < index->rank; k++)
                dim[rank++] = index->dim[k];
    return rank;
}

int view_atoms(const struct view *v, const char *order, int out[VIEW_ATOMS])
{
    int n = 0;

    for (; *order; order++)
        for (int i = 0; isdigit((unsigned char)*order) && i < v->atoms; i++)
            if (v->axis[i] == *order - '0' && n < VIEW_ATOMS)
                out[n++] = i;
    return n;
}

struct view view_ordered(int rank, const int64_t *dim, const char *order)
{
    struct view v = view_plain(rank, dim);
    const int n = view_atoms(&v, order, v.at);

    assert(n == v.atoms);
    (void)n;
    return v;
}

bool view_lies(const struct view *v, const char *order)
{
    int to[VIEW_ATOMS];
    const int n = view_atoms(v, order, to);

    return n == v->atoms && memcmp(to, v->at, sizeof *to * (size_t)n) == 0;
}

void view_transpose(struct view *v, const int *perm)
{
    const struct view old = *v;
    int renamed[VIEW_ATOMS] = { 0 }, n = 0;

    for (int i = 0; i < v->rank; i++) {
        v->dim[i] = old.dim[perm[i]];
        for (int k = 0; k < old.atoms; k++)
            if (old.axis[k] == perm[i]) {
                renamed[k] = n;
                v->size[n] = old.size[k];
                v->axis[n++] = i;
            }
    }
    for (int k = 0; k < n; k++)
        v->at[k] = renamed[old.at[k]];
}

/* Splits atom i into two, of sizes first and size / first. */
static void split(struct view *v, int i, int64_t first)
{
    int place = 0;

    for (int k = 0; k < v->atoms; k++) {
        if (v->at[k] == i)
            place = k;
        if (v->at[k] > i)
            v->at[k]++;
    }
    memmove(&v->at[place + 2], &v->at[place + 1],
            sizeof *v->at * (size_t)(v->atoms - place - 1));
    v->at[place + 1] = i + 1;
    memmove(&v->size[i + 1], &v->size[i], sizeof *v->size * (size_t)(v->atoms - i));
    memmove(&v->axis[i + 1], &v->axis[i], sizeof *v->axis * (size_t)(v->atoms - i));
    v->size[i + 1] = v->size[i] / first;
    v->size[i] = first;
    v->atoms++;
}

bool view_reshape(struct view *v, int rank, const int64_t *dim)
{
    struct view w = *v;
    int next = 0;

    w.rank = rank;
    for (int i = 0; i < rank; i++) {
        int64_t want = dim[i];

        w.dim[i] = want;
        while (want > 1) {
            if (next >= w.atoms || w.size[next] == 0)
                return false;
            if (want % w.size[next] != 0) {
                if (w.size[next] % want != 0 || w.atoms >= VIEW_ATOMS)
                    return false;
                split(&w, next, want);
            }
            want /= w.size[next];
            w.axis[next++] = i;
        }
    }
    if (next != w.atoms)
        return false;
    *v = w;
    return true;
}

void view_order(const struct view *v, char order[PM_FILE_MAX_RANK + 1])
{
    bool seen[PM_FILE_MAX_RANK] = { false };
    int n = 0;

    /* Order: leading axes of size 1, then each axis at its first atom, followed by the axes of size
     * 1 after it. */
    for (int k = -1; k < v->atoms; k++) {
        int a = k < 0 ? -1 : v->axis[v->at[k]];

        if (a >= 0 && !seen[a])
            seen[a] = true, order[n++] = (char)('0' + a);
        for (a++; a < v->rank && v->dim[a] == 1 && !seen[a]; a++)
            seen[a] = true, order[n++] = (char)('0' + a);
    }
    order[n] = 0;
}

int view_moves(const struct view *v, const int to[VIEW_ATOMS], int64_t size[VIEW_ATOMS],
               int perm[VIEW_ATOMS])
{
    int place[VIEW_ATOMS], first[VIEW_ATOMS] = { 0 }, n = 0, blocks = 0;
    bool moved = false;

    for (int k = 0; k < v->atoms; k++)
        place[v->at[k]] = k;
    /* Joins atoms that are adjacent in the old and in the new order into blocks, in the new
     * order. */
    for (int k = 0; k < v->atoms; k++) {
        const int from = place[to[k]];

        if (k == 0 || from != place[to[k - 1]] + 1) {
            first[blocks] = from;
            size[blocks++] = 1;
        }
        size[blocks - 1] *= v->size[to[k]];
    }
    for (int k = 0; k < blocks; k++) { /* rank of each block's old place */
        perm[k] = 0;
        for (int j = 0; j < blocks; j++)
            perm[k] += first[j] < first[k];
        moved |= perm[k] != k;
    }
    n = blocks;
    if (!moved)
        return 0;
    int64_t sorted[VIEW_ATOMS] = { 0 };
    for (int k = 0; k < n; k++)
        sorted[perm[k]] = size[k];
    memcpy(size, sorted, sizeof *size * (size_t)n);
    return n;
}

char *view_text(const struct view *v, char buf[96])
{
    int n = 0;

    if (v->rank == 0)
        snprintf(buf, 96, "scalar");
    for (int i = 0; i < v->rank && n < 80; i++)
        n += snprintf(buf + n, 96 - (size_t)n, "%s%lld", i ? "x" : "", (long long)v->dim[i]);
    return buf;
}
