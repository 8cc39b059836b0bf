/* match: a net's variables looked up in a checkpoint, all before the first value is read, so that one
 * run names everything that does not fit; and what the checkpoint holds beside them.
 *
 * A variable is found by its name. Its tensor fits when the shapes are equal, or would be without
 * leading dimensions of 1 (a fully connected layer's [c, k] and the [1, 1, c, k] of the same layer
 * written as a convolution): the elements are then the same in the same order. */
#ifndef PM_MATCH_H
#define PM_MATCH_H

#include <pumice/checkpoint.h>
#include <pumice/options.h>
#include <pumice/plan.h>

enum pm_fate {
    PM_FATE_TAKEN,
    PM_FATE_EXCLUDED, /* its name begins with one of the scopes */
    PM_FATE_MISSING,
    PM_FATE_LATE,     /* missing, but a late variable */
    PM_FATE_MISSHAPEN,
    PM_FATES
};
struct pm_found {
    const struct pm_file_tensor *tensor; /* the file's; NULL where excluded or missing */
    enum pm_fate fate;
    bool average; /* the tensor is the variable's moving average */
    bool padded;  /* shapes differ by leading ones */
};
struct pm_match {
    const struct pm_checkpoint *from; /* borrowed, as is v */
    const struct pm_variables *v;
    struct pm_strings exclude;        /* borrowed */
    struct pm_found *of;              /* of each variable; owned */
    int count[PM_FATES];
    int first[PM_FATES];              /* the first variable of that fate; good where count > 0 */
    int averages;                     /* how many values are moving averages */
};
/* averages: a variable's moving average in its place where the file has it, as TensorFlow restores
 * them. exclude may be NULL. */
void pm_match_make(const struct pm_checkpoint *from, const struct pm_variables *v, bool averages,
                   const struct pm_strings *exclude, struct pm_match *out);
void pm_match_free(struct pm_match *m);
/* Whether a name begins with one of the scopes. */
bool pm_match_begins(const char *name, const struct pm_strings *scopes);
/* The values of variable i, which is TAKEN. */
int pm_match_read(const struct pm_match *m, int i, float *data);
/* The values of all that are TAKEN into the block of v, which is of the same net as m->v; a
 * few elements are in the host's memory beside it. */
int pm_match_write(const struct pm_match *m, struct pm_variables *v);
/* Into the log: every variable that is not taken, and those that are by another shape.
 * keeps: ", keeps its initial value" or "", behind a missing one. */
void pm_match_tell(const struct pm_match *m, const char *keeps);
/* Into the log: what else the file holds; what training keeps beside variables (optimizer slots,
 * moving averages, counters) as such, tensors that no variable is named for by their first names. */
void pm_match_tell_rest(const struct pm_match *m);
/* A value of init.exclude_scopes for the command line that leaves out, beside what is excluded
 * already, every misshapen variable and, when asked, every missing one; NULL where that would be too
 * many for a slip. Freed with pm_free. */
char *pm_match_scopes(const struct pm_match *m, bool missing);
/* " (the nearest there is 'NAME')" for a name that the file lacks, or "". */
void pm_match_nearest(const struct pm_match *m, const char *name, struct pm_str *text);
/* " (1001 classes there, 1000 in the net)" where the misshapen variables differ by their last
 * dimension, and all by the same; else "". */
void pm_match_classes(const struct pm_match *m, struct pm_str *text);

#endif
