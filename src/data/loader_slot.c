/* loader_slot: loader_slot.h has the contract. */
#include "data/loader_slot.h"

#include <string.h>

void pm_slot_create(struct pm_slot *s, int index, int count, int fields)
{
    s->slice = count;
    s->record = pm_calloc((size_t)count, sizeof *s->record);
    s->empty = pm_calloc((size_t)count, sizeof *s->empty);
    s->batch.record = s->record;
    s->batch.host = pm_calloc((size_t)count, sizeof *s->batch.host);
    s->batch.slot = index;
    s->batch.field = pm_calloc((size_t)fields + 1, sizeof *s->batch.field);
    s->bytes = pm_calloc((size_t)fields + 1, sizeof *s->bytes);
}

void pm_slot_free_host(struct pm_slot *s, void (*free_host)(void *host))
{
    for (int i = 0; free_host && i < s->slice; i++) {
        if (s->batch.host[i])
            free_host(s->batch.host[i]);
        s->batch.host[i] = NULL;
    }
}

void pm_slot_free(struct pm_slot *s, int fields, void (*free_host)(void *host))
{
    pm_slot_free_host(s, free_host);
    pm_free(s->batch.host);
    for (int k = 0; k < fields; k++)
        pm_free(s->batch.field[k]);
    pm_free(s->batch.field);
    pm_free(s->fields.list);
    pm_free(s->bytes);
    pm_free(s->record);
    pm_free(s->empty);
}

void pm_slot_blank(struct pm_slot *s, int begin, int end)
{
    for (int k = 0; k < s->fields.count && begin < end; k++) {
        char *field = (char *)s->batch.field[k] + s->bytes[k] * (size_t)begin;
        const size_t bytes = s->bytes[k] * (size_t)(end - begin);
        const int32_t absent = s->fields.list[k].absent;

        memset(field, 0, bytes);
        for (size_t i = 0; absent && i < bytes; i += sizeof absent)
            memcpy(field + i, &absent, sizeof absent);
    }
}

static void move_example(struct pm_slot *s, int from, int to)
{
    for (int k = 0; k < s->fields.count; k++) {
        char *field = s->batch.field[k];
        memcpy(field + s->bytes[k] * (size_t)to, field + s->bytes[k] * (size_t)from, s->bytes[k]);
    }
    s->record[to] = s->record[from];
    s->batch.host[to] = s->batch.host[from];
    s->batch.host[from] = NULL;
}

void pm_slot_close_up(struct pm_slot *s)
{
    const int had = s->batch.valid;
    int n = 0;

    for (int i = 0; i < had; i++) {
        if (s->empty[i])
            continue;
        if (n < i)
            move_example(s, i, n);
        n++;
    }
    pm_slot_blank(s, n, had);
    s->batch.valid = n;
}
