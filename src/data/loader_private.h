/* loader_private: what the loader's files share. loader.c has the threads, the ring and the
 * caller's side, loader_record.c reads a record, loader_example.c makes one example,
 * loader_frame.c chooses the frame of a batch.
 * `example` is an index in the loader's slice of the batch. */
#ifndef PM_LOADER_PRIVATE_H
#define PM_LOADER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/frames.h"
#include "data/loader_slot.h"

struct pm_loader {
    struct pm_dataset *dataset; /* borrowed */
    struct pm_loader_options o;
    uint64_t count;          /* records of the dataset */
    uint64_t first, batches; /* of evaluation: its first batch, and the one after its last */
    struct pm_field *field;      /* owned; o.fields */
    struct pm_group_batches grouped; /* owned; zeros without o.groups */
    struct pm_slot *slot;           /* [ring], owned */
    int grain;                   /* number of tickets that a worker takes at once */

    pthread_mutex_t lock;
    pthread_cond_t freed, ready;
    atomic_bool stop;     /* set under the lock, also read between examples */
    atomic_uint_least64_t skipped; /* corrupt records skipped so far */
    uint64_t ticket_step; /* turn of the next ticket: its step, without draws */
    bool drawn_out;       /* no batch is left; ticket_step is then the number of turns */
    int ticket_example;
    uint64_t next_step; /* turn of the next batch for the caller */
    double waited;
    uint64_t ready_slots, takes; /* since pm_loader_fill: sum of ready slots, number of calls */
    double fill;                 /* last result of pm_loader_fill */

    pthread_t *thread; /* owned */
    int threads;
    int started;       /* threads numbered so far */
};

struct pm_loader_worker {
    uint8_t *buf; /* grows to the largest record */
    size_t capacity;
    void **out;   /* one example's place in each field */
    char where[PM_SLOT_TEXT]; /* the record's name */
};

/* ---- loader_record.c ------------------------------------------------------------------------- */

/* Returns how many examples of the slice exist in this step: all, except in the last batch of a
 * pass or of a group. */
int pm_loader_examples_of(const struct pm_loader *l, uint64_t step);
/* Returns the record of an example. passed: number of corrupt records of the epoch skipped for
 * it. */
uint64_t pm_loader_record_of(const struct pm_loader *l, uint64_t step, int example,
                             uint64_t passed);
/* Reads a record for an example of the slice, or of the whole batch if example is outside of the
 * slice. out->where points to w->where. */
int pm_loader_read(struct pm_loader *l, struct pm_loader_worker *w, uint64_t step, int example,
                   uint64_t record, struct pm_loader_record *out);

/* ---- loader_example.c ------------------------------------------------------------------------ */

/* Makes an example of the slot's batch. If corrupt records are skipped, training takes the next one
 * of the epoch, and evaluation marks the place as empty. PM_EDATA if too many follow each other,
 * and the errors of options.make. */
int pm_loader_make(struct pm_loader *l, struct pm_slot *s, struct pm_loader_worker *w, int example);

/* ---- loader_frame.c -------------------------------------------------------------------------- */

/* Sets the slot's frame and the places in its batch. */
void pm_loader_set_frame(const struct pm_loader *l, struct pm_slot *s, struct pm_frame frame,
                         int examples);
/* Returns the number of places that a batch of this group needs. */
int pm_loader_places_of(const struct pm_loader *l, const struct pm_frame_group *g);
/* Chooses the frame of a training batch: reads the headers of all its pictures. PM_EDATA with
 * options.hold if no frame holds them. */
int pm_loader_choose_frame(struct pm_loader *l, struct pm_loader_worker *w, uint64_t step,
                           struct pm_frame *out);
/* Whether an example may take this record in place of a corrupt one: false if the batch's frame
 * must hold it and does not. */
bool pm_loader_accepts(struct pm_loader *l, struct pm_loader_worker *w, const struct pm_slot *s,
                       int example, uint64_t record);
/* Returns the bytes of each field's array: as many as the frame that needs most has. Free with
 * pm_free. */
size_t *pm_loader_array_bytes(const struct pm_loader *l, struct pm_slot *s);

#endif
