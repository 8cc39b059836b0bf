/* loader_other, internal to the loader: what an example that is being made needs to read others. */
#ifndef PUMICE_DATA_LOADER_OTHER_H
#define PUMICE_DATA_LOADER_OTHER_H

#include "data/loader_slot.h"

/* All pointers are borrowed. */
struct pm_loader_source {
    struct pm_dataset *dataset;
    uint64_t first, count; /* records of the example's part */
    bool skip_corrupt;
    const atomic_bool *stop; /* the loader is being destroyed */
    /* Counts and logs a corrupt record, whose error is pm_error_text. */
    void (*tell)(struct pm_loader *l, struct pm_slot *s);
    struct pm_loader *loader;
    struct pm_slot *slot;
};

/* Most corrupt records in sequence, and most that the frame of a batch does not hold. */
enum { PM_MOST_DAMAGED = 256 };

#endif
