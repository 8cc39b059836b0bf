/* changed_shader: a module that computes something else, to test that the verification notices. */
#ifndef CHANGED_SHADER_H
#define CHANGED_SHADER_H

#include "base/unit.h"
#include "device/shader_table.h"

#include <string.h>

/* Returns (pm_free) the shader's words with float additions turned into subtractions, products into
 * sums, and a b + c into c b + c. */
static inline uint32_t *changed_shader(const struct pm_shader *s)
{
    enum { EXTENDED = 12, FMA = 50, FADD = 129, FSUB = 131, FMUL = 133 };
    uint32_t *words = pm_malloc(s->bytes);
    int changed = 0;

    memcpy(words, s->words, s->bytes);
    for (size_t i = 5; i < s->bytes / 4; i += words[i] >> 16) {
        uint32_t op = words[i] & 0xffff, to = op == FADD ? FSUB : op == FMUL ? FADD : op;

        changed += to != op;
        words[i] = (words[i] & 0xffff0000) | to;
        if (op == EXTENDED && words[i + 4] == FMA) {
            words[i + 5] = words[i + 7];
            changed++;
        }
    }
    assert_true(changed > 0);
    return words;
}

#endif
