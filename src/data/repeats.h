/* repeats: how often a record is trained on in an epoch so that rare classes come more often. */
#ifndef PUMICE_DATA_REPEATS_H
#define PUMICE_DATA_REPEATS_H

#include <pumice/data.h>

/* What pm_repeat_factors found, for a log line. */
struct pm_repeat_report {
    size_t classes, rare; /* all; those with a factor above 1 */
    size_t records;       /* with a factor above 1 */
    double most;          /* the largest factor */
};
/* Computes a factor of at least 1 for each of the `count` records of d from `first` on. f is the
 * share of these records that have an object of a class; the factor of the class is max(1,
 * sqrt(threshold / f)), that of a record the largest of its classes: repeat factor sampling of LVIS
 * (Gupta, Dollar, Girshick 2019). The classes are those of the record's objects by the map, which
 * gives a name and its number one class (map NULL: by name, else by number), or without objects
 * image/class/label. Reads every record, in parallel. Damaged records, and those with a class that
 * the map lacks, have no classes. PM_EDATA if no record has a class, or a file cannot be read. */
int pm_repeat_factors(struct pm_dataset *d, uint64_t first, uint64_t count,
                      const struct pm_label_map *map, double threshold, float *factor,
                      struct pm_repeat_report *report);

#endif
