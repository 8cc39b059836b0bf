/* drawn: data folders of drawn square pictures: their options, and the making of their splits. */
#ifndef PM_DRAWN_H
#define PM_DRAWN_H

#include <pumice/data.h>

/* Options of dataset make. */
struct pm_drawn_cfg {
    int size, train, validation, test;
    int64_t seed;
};
#define PM_DRAWN_OPTS(usual, least, most)                                                          \
    {                                                                                              \
        PM_INT(pm_drawn_cfg, size, usual, least, most, "height and width in pixels"),              \
        PM_INT(pm_drawn_cfg, train, 4000, 1, 100000000, "pictures of the split train"),            \
        PM_INT(pm_drawn_cfg, validation, 500, 0, 100000000, "pictures of the split validation"),   \
        PM_INT(pm_drawn_cfg, test, 500, 0, 100000000, "pictures of the split test"),               \
        PM_INT64(pm_drawn_cfg, seed, 0, 0, 9007199254740992, "of the drawings"),                   \
        { 0 },                                                                                     \
    }
/* Context of fill. */
struct pm_drawn_split {
    const char *name;
    uint64_t seed;
    int size; /* of a side, in pixels */
};
/* One kind of drawn data. */
struct pm_drawn {
    const char *name; /* "shapes" */
    int least, most;  /* sizes */
    int (*describe)(struct pm_making *m); /* sets the classes */
    int (*fill)(void *split, size_t i, struct pm_example_builder *b); /* pm_making_split */
};
/* Makes the data folder. PM_ECONFIG if the size is out of range; else as pm_making_create. */
int pm_drawn_make(const struct pm_drawn *d, const char *dst, const struct pm_drawn_cfg *o);

#endif
