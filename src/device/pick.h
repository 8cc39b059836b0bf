/* pick: pick functions that several kernel rows share. Most element-wise and per-channel rows
 * choose between a shader's four-wide variant (NAME4, built with -DVEC=4) and its plain
 * variant. */
#ifndef PUMICE_PICK_H
#define PUMICE_PICK_H

#include <pumice/kernel.h>

/* Picks NAME4 or NAME. items: invocations of the plain variant; the four-wide one needs a quarter.
 * four: whether the four-wide variant applies. constant: value of specialization constant 3. */
static inline bool pick_four(const char *name4, const char *name, bool four, size_t items,
                             uint32_t constant, int level, struct pm_picks *out)
{
    if (level > (four ? 1 : 0))
        return false;
    if (four && level == 0)
        pm_pick_elements(name4, 64, items / 4, out);
    else
        pm_pick_elements(name, 64, items, out);
    out->d[0].spec[3] = constant; /* cppcheck-suppress nullPointerRedundantCheck; an array */
    out->d[0].specs = 4;
    return true;
}

/* Picks a workgroup of 64 lanes for every 64 columns of 4 rows. */
static inline bool pick_tiles(const char *name, int rows, int columns, int level,
                              struct pm_picks *out)
{
    const size_t groups = ((size_t)columns + 63) / 64 * (((size_t)rows + 3) / 4);

    return level == 0 && pm_pick_elements(name, 64, 64 * groups, out);
}

/* Picks one lane per row of k values, or, if rows are long, a workgroup of 64 lanes per row
 * (NAME_wide). */
static inline bool pick_wide(const char *wide, const char *name, size_t rows, int k, int level,
                             struct pm_picks *out)
{
    if (k < 32 || level > 0)
        return level == (k < 32 ? 0 : 1) && pm_pick_elements(name, 64, rows, out);
    return pm_pick_elements(wide, 64, rows * 64, out);
}

#endif
