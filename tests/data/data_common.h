/* Shared by the tests of data: a scratch folder, and real data sets where they are installed. */
#ifndef PUMICE_TESTS_DATA_COMMON_H
#define PUMICE_TESTS_DATA_COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <pumice/data.h>
#include <pumice/formats.h>

#include "base/shared_data.h"

/* A fresh folder in static storage of the test; scratch_remove removes it. */
static char scratch[256];

static inline const char *scratch_make(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/pumice-test-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(scratch));
    return scratch;
}

static inline void scratch_remove(void)
{
    pm_remove_tree(scratch);
}

/* The path "SCRATCH/name" in one of eight static buffers. */
static inline const char *in_scratch(const char *name)
{
    static char text[8][1024];
    static int next;
    next = (next + 1) % 8;
    snprintf(text[next], sizeof text[next], "%s/%s", scratch, name);
    return text[next];
}

/* The call must fail with this code, and the message must contain each of the NULL-terminated
 * texts. */
#define assert_fails(call, code, ...)                                           \
    do {                                                                        \
        assert_int_equal(call, code);                                           \
        const char *const wanted_[] = { __VA_ARGS__ };                          \
        for (size_t i_ = 0; i_ < PM_COUNT(wanted_); i_++)                       \
            if (!strstr(pm_error_text(), wanted_[i_]))                          \
                fail_msg("\"%s\" is not in: %s", wanted_[i_], pm_error_text()); \
    } while (0)

#endif
