/* compile_rules: what compile.c requires of each pipeline, and which statistics it reports. */
#ifndef PM_COMPILE_RULES_H
#define PM_COMPILE_RULES_H

#include "bench/executable.h"

enum { RULE_COLUMNS = 16 };

/* The rules of one of Mesa's drivers. */
struct rules {
    const char *name;
    /* Columns of the table, by the driver's names of its statistics. Without one: "lanes" is the
     * SIMD width, "fma" the share of fused multiply-adds in the loop (`loop`). */
    struct {
        const char *title, *statistic;
        bool memory; /* a spill to memory or scratch memory: must be reported and 0 */
    } columns[RULE_COLUMNS];
    bool every;       /* memory: of every pipeline, not only of first choices */
    bool loop;        /* reads AMD's listing */
    uint32_t matrix;  /* side of cooperative matrices where the driver offers them; 0: any */
    const char *legend;
};

const struct rules *rules_find(const char *name);
/* The value of column i. -1: not reported. */
double rules_value(const struct rules *r, const struct executable *e, int i);

/* Every call must have a level that a GPU with little memory can run. */
enum { SMALL_SHARED = 16 * 1024, SMALL_INVOCATIONS = 256 };

/* A limit on the first choices of nets. */
struct bar {
    const char *driver, *kernel, *variant, *column;
    const char *constants; /* values of specialization constants, such as "8=1 19=0" */
    double least, most;
};
/* Row i of the table; NULL after the last one. */
const struct bar *rules_bar(int i);
/* Whether the limit holds for a pipeline with these constants. */
bool rules_bar_fits(const struct bar *b, const uint32_t *constants, int count);

#endif
