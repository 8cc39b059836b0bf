/* loader_slot, internal to the loader: one place of its ring, with the arrays of a batch. */
#ifndef PUMICE_DATA_LOADER_SLOT_H
#define PUMICE_DATA_LOADER_SLOT_H

#include <pumice/data.h>

#include <stdatomic.h>

enum { PM_SLOT_TEXT = 1024 };

enum pm_slot_state {
    SLOT_FREE, SLOT_FRAMING, SLOT_FRAMED, SLOT_FILLING, SLOT_READY, SLOT_OUT,
};

struct pm_slot {
    struct pm_batch batch; /* first member, so that a batch pointer is its slot pointer */
    enum pm_slot_state state;
    uint64_t turn;    /* of its batch among those of the loader; batch.step without draws */
    int left;         /* number of unfinished examples */
    int slice;        /* number of examples of the loader's slice */
    uint64_t *record; /* [slice], owned; batch.record */
    struct pm_field_list fields; /* owned; batch.fields */
    size_t *bytes;    /* [fields], owned; bytes per example of each field */
    bool *empty;      /* [slice], owned: true if the record was skipped (evaluation only) */
    atomic_int skipped;
    int err;          /* error of the failing example with the lowest index */
    int err_example;
    char text[PM_SLOT_TEXT];
};

/* Allocates the slot's lists, except the arrays of the fields. index: its place in the ring; count:
 * examples of the loader's slice. */
void pm_slot_create(struct pm_slot *s, int index, int count, int fields);
/* Frees the lists, the arrays of the fields and the host data. */
void pm_slot_free(struct pm_slot *s, int fields, void (*free_host)(void *host));
/* Frees the batch's host data. free_host NULL: there is none. */
void pm_slot_free_host(struct pm_slot *s, void (*free_host)(void *host));
/* Fills places begin..end-1 of each field with the value for missing examples. */
void pm_slot_blank(struct pm_slot *s, int begin, int end);
/* Moves good examples into the places of corrupt ones, and blanks the remaining places. */
void pm_slot_close_up(struct pm_slot *s);

#endif
