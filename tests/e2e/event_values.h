/* event_values: the values in the event files of a run. */
#ifndef EVENT_VALUES_H
#define EVENT_VALUES_H

#include "e2e/program.h"

#include "event.pb-c.h"
#include "formats/tfrecord.h"

#include <fcntl.h>
#include <pumice/data.h>
#include <sys/stat.h>

/* Calls `see` for each value in the event files of a run. */
static inline void each_value(const char *name,
                              void (*see)(int64_t step, const Pm__SummaryValue *v))
{
    struct pm_arena *a = pm_arena_create();
    char **names = NULL;
    size_t n = 0;

    if (pm_list_folder(a, in(name), &names, &n) < 0)
        fail_msg("%s", pm_error_text());
    for (size_t i = 0; i < n; i++) {
        struct pm_record_place at = { .path = pm_arena_printf(a, "%s/%s", in(name), names[i]) };
        struct stat st;
        uint64_t length;
        int fd;

        if (strncmp(names[i], "events.", 7) != 0)
            continue;
        fd = open(at.path, O_RDONLY);
        assert_true(fd >= 0 && fstat(fd, &st) == 0);
        for (; at.offset < (uint64_t)st.st_size; at.number++) {
            assert_int_equal(pm_tfrecord_length(fd, (uint64_t)st.st_size, at, &length), PM_OK);
            uint8_t *buf = pm_malloc(length + PM_TFRECORD_TAIL);
            assert_int_equal(pm_tfrecord_data(fd, at, buf, length), PM_OK);
            Pm__Event *e = pm__event__unpack(NULL, length, buf);
            assert_non_null(e);
            for (size_t k = 0; e->what_case == PM__EVENT__WHAT_SUMMARY && k < e->summary->n_value;
                 k++)
                see(e->step, e->summary->value[k]);
            pm__event__free_unpacked(e, NULL);
            pm_free(buf);
            at.offset += PM_TFRECORD_HEAD + length + PM_TFRECORD_TAIL;
        }
        close(fd);
    }
    pm_arena_destroy(&a);
}

#endif
