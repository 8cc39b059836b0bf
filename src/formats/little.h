/* little: reads little-endian numbers. */
#ifndef PUMICE_FORMATS_LITTLE_H
#define PUMICE_FORMATS_LITTLE_H

#include <stddef.h>
#include <stdint.h>

/* Returns the unsigned number in these bytes (0..8 of them). */
static inline uint64_t pm_little(const uint8_t *p, size_t bytes)
{
    uint64_t v = 0;

    for (size_t i = bytes; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

#endif
