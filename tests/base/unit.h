/* Included by every unit test: cmocka with its prerequisites, and base. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pumice/base.h>

/* Makes a fresh folder under the system's temporary folder. Remove it with pm_remove_tree and
 * free the path with pm_free. */
static inline char *make_folder(void)
{
    const char *top = getenv("TMPDIR");
    struct pm_str s = { 0 };

    pm_str_add(&s, "%s/pumice-test-XXXXXX", top ? top : "/tmp");
    if (!mkdtemp(s.text))
        abort();
    return s.text;
}

static inline void drop_folder(char *folder)
{
    pm_remove_tree(folder);
    pm_free(folder);
}

/* Number of occurrences of the part in the text. */
static inline int count_text(const char *text, const char *part)
{
    int n = 0;

    for (; (text = strstr(text, part)); text++)
        n++;
    return n;
}

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        const char *whole_ = (text), *part_ = (part);                                              \
        if (!whole_ || !strstr(whole_, part_))                                                     \
            fail_msg("'%s' does not contain '%s'", whole_ ? whole_ : "(null)", part_);             \
    } while (0)

#endif
