/* Arrays for the fields of a task's batches. */
#ifndef PUMICE_TESTS_TASK_FIELDS_H
#define PUMICE_TESTS_TASK_FIELDS_H

#include <pumice/task.h>

#include <assert.h>
#include <string.h>

/* The size of pictures for training or evaluation. */
static inline struct pm_frame frame_of(const struct pm_task_facts *f, bool train)
{
    return train ? (struct pm_frame){ f->height, f->width }
                 : (struct pm_frame){ f->eval_height, f->eval_width };
}

/* Stores the fields. Returns their number, at most 8. No field may have an empty range. */
static inline int fields_of(const struct pm_task_row *row, const struct pm_task *t, bool train,
                            struct pm_frame frame, struct pm_field out[8])
{
    struct pm_field_list list = { 0 };

    row->fields(t, train, frame, &list);
    assert(list.count <= 8);
    memcpy(out, list.list, (size_t)list.count * sizeof *out);
    for (int i = 0; i < list.count; i++)
        assert(out[i].values.low < out[i].values.high);
    pm_free(list.list);
    return list.count;
}

#endif
