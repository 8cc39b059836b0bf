/* patterns: regular expressions that select names of variables, with the meaning of Python's
 * re.match: a pattern must match at the start of the name, and may end anywhere. TensorFlow's
 * scopes, freeze_variables and gradient multipliers are such patterns. The matcher is PCRE2; its
 * syntax has all of Python's, which POSIX expressions lack ("(?:es)?", "\d", "\w", lookahead). */
#ifndef PM_PATTERNS_H
#define PM_PATTERNS_H

#include <pumice/base.h>

/* A list of compiled patterns. Any number of threads may match with it at once. */
struct pm_patterns;

enum { PM_NO_PATTERN = -1 };

/* Compiles `count` patterns. where: their place, for messages: "x.json: optim.freeze". Empty
 * patterns are dropped, as TensorFlow does: they never match. PM_ECONFIG names a pattern that is no
 * regular expression, and the position of the mistake. */
int pm_patterns_compile(const char *const *texts, int count, const char *where,
                        struct pm_patterns **out);
void pm_patterns_destroy(struct pm_patterns **p); /* accepts NULL in *p */
/* Returns the number of patterns that are not empty; 0 if p is NULL. */
int pm_patterns_count(const struct pm_patterns *p);
/* Returns the index in `texts` of the first pattern that matches the name, PM_NO_PATTERN if none
 * does, or PM_ECONFIG if a pattern needs too many steps ("(a*)*b" on a long name). */
int pm_patterns_find(const struct pm_patterns *p, const char *name);
/* Whether texts[i] matches the name. */
bool pm_patterns_one(const struct pm_patterns *p, int i, const char *name);

#endif
