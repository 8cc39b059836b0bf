/* Shared by the tests of PyTorch files. */
#ifndef TORCH_COMMON_H
#define TORCH_COMMON_H

#include "base/unit.h"
#include "formats/torch/torch.h"

/* The call must fail, and the message must contain each of the texts. */
#define assert_fails(call, ...)                                                                    \
    do {                                                                                           \
        assert_int_equal(call, PM_EDATA);                                                          \
        const char *const wanted_[] = { __VA_ARGS__ };                                             \
        for (size_t i_ = 0; i_ < PM_COUNT(wanted_); i_++)                                          \
            assert_contains(pm_error_text(), wanted_[i_]);                                         \
    } while (0)

#endif
