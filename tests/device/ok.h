/* ok(call): fails the test with the error's text unless the call returns PM_OK. */
#ifndef OK_H
#define OK_H

#include "base/unit.h"

#define ok(expr)                                                                                   \
    do {                                                                                           \
        int ok_ = (expr);                                                                          \
        if (ok_ != PM_OK)                                                                          \
            fail_msg("%s: %d: %s", #expr, ok_, pm_error_text());                                   \
    } while (0)

#endif
