/* match: looks up a net's variables in a checkpoint before the first value is read, so one run
 * reports every mismatch. Also reports the checkpoint's other tensors.
 *
 * A variable is found by its name. Its tensor fits if the shapes are equal, or would be equal
 * without leading dimensions of 1. Example: a fully connected layer's [c, k] and the [1, 1, c, k]
 * of the same layer written as a convolution. Such tensors have the same elements in the same
 * order. */
#ifndef PM_MATCH_H
#define PM_MATCH_H

#include <pumice/checkpoint.h>
#include <pumice/options.h>
#include <pumice/plan.h>

enum pm_fate {
    PM_FATE_TAKEN,
    PM_FATE_EXCLUDED, /* its name begins with one of the scopes */
    PM_FATE_OUTSIDE,  /* the rules of init.type do not restore it */
    PM_FATE_MISSING,
    PM_FATE_LATE,     /* missing, but a late variable (layer.h) */
    PM_FATE_MISSHAPEN,
    PM_FATES
};
struct pm_found {
    const struct pm_file_tensor *tensor; /* the file's tensor; NULL if excluded or missing */
    enum pm_fate fate;
    bool average; /* the tensor is the variable's moving average */
    bool padded;  /* shapes differ by leading dimensions of 1 */
};
struct pm_match {
    const struct pm_checkpoint *from; /* borrowed, as is v */
    const struct pm_variables *v;
    struct pm_strings exclude;        /* borrowed */
    const char *const *names;         /* under which variables are looked up (init_rules.h);
                                       * borrowed; NULL: their own */
    struct pm_found *of;              /* of each variable; owned */
    int count[PM_FATES];
    int first[PM_FATES];              /* the first variable of that fate; valid if count > 0 */
    int averages;                     /* number of values that are moving averages */
};
/* Looks up every variable. averages: use a variable's moving average instead of its value if the
 * file has it, as TensorFlow restores averages. exclude and names may be NULL. */
void pm_match_make(const struct pm_checkpoint *from, const struct pm_variables *v, bool averages,
                   const struct pm_strings *exclude, const char *const *names,
                   struct pm_match *out);
void pm_match_free(struct pm_match *m);
/* Whether a name begins with one of the scopes. */
bool pm_match_begins(const char *name, const struct pm_strings *scopes);
/* Reads the values of variable i, whose fate is TAKEN. */
int pm_match_read(const struct pm_match *m, int i, float *data);
/* Writes the values of all TAKEN variables into the block of v, which belongs to the same net as
 * m->v. Only a few elements at a time are in host memory. */
int pm_match_write(const struct pm_match *m, struct pm_variables *v);
/* Logs every variable that is not TAKEN, and those whose shapes differ by leading ones. keeps: ",
 * keeps its initial value" or "", added for a missing variable. If more than `most` variables are
 * MISSING, or MISSHAPEN, one line names their number and the first of them. */
void pm_match_tell(const struct pm_match *m, const char *keeps, int most);
/* Logs the file's other tensors. Training state (optimizer slots, moving averages, counters) is
 * counted by kind. Tensors without a matching variable are listed by their first names. */
void pm_match_tell_rest(const struct pm_match *m);
/* Returns a value of init.exclude_scopes for the command line. It excludes, besides the current
 * scopes, every variable of another shape and, if missing is true, every missing variable. NULL if
 * these would be too many for a simple mistake. Free with pm_free. */
char *pm_match_scopes(const struct pm_match *m, bool missing);
/* Adds " (the nearest there is 'NAME')" for a name that the file lacks, or nothing. */
void pm_match_nearest(const struct pm_match *m, const char *name, struct pm_str *text);
/* Adds " (1001 classes there, 1000 in the net?)" if all variables of another shape differ in the
 * last dimension, and by the same sizes; else nothing. */
void pm_match_classes(const struct pm_match *m, struct pm_str *text);

#endif
