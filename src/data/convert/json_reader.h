/* json_reader, internal to data/: reads a JSON file of any size from front to back, value by value,
 * with constant memory. Skipped values are not validated. */
#ifndef PUMICE_DATA_JSON_READER_H
#define PUMICE_DATA_JSON_READER_H

#include <stdio.h>

#include <pumice/base.h>

struct pm_json_reader {
    FILE *f; /* owned */
    const char *path;
    unsigned line;
    char text[4096]; /* the last string or number; longer ones are an error, unless they are
                      * skipped */
};
int pm_json_reader_open(const char *path, struct pm_json_reader *r);
void pm_json_reader_close(struct pm_json_reader *r);
/* Fails with PM_EDATA; the message has file, line and the expected value (this format). */
int pm_json_reader_fail(const struct pm_json_reader *r, const char *fmt, ...) PM_PRINTF(2, 3);
/* Consumes '{' or '['. */
int pm_json_enter(struct pm_json_reader *r, char bracket);
/* Reads the next member's key into r->text and returns 1; the value is the next to read. Returns 0
 * after the '}'. *n counts the members and must be 0 at first. */
int pm_json_member(struct pm_json_reader *r, size_t *n);
/* Returns 1 if an item is the next to read, 0 after the ']'. */
int pm_json_item(struct pm_json_reader *r, size_t *n);
int pm_json_number(struct pm_json_reader *r, double *out);
/* A whole number of 0..most. */
int pm_json_whole(struct pm_json_reader *r, int64_t most, int64_t *out);
/* Its text in r->text. Characters beyond ASCII by \u become UTF-8. */
int pm_json_string(struct pm_json_reader *r);
/* A string of at most `most` bytes, appended to out. */
int pm_json_long_string(struct pm_json_reader *r, size_t most, struct pm_str *out);
/* Returns the first character of the next value without consuming it, or EOF. */
int pm_json_next(struct pm_json_reader *r);
/* A string or a number, as text in r->text. */
int pm_json_text(struct pm_json_reader *r);
/* Skips the next value of any type. */
int pm_json_skip(struct pm_json_reader *r);
/* Checks that the file ends here. */
int pm_json_end(struct pm_json_reader *r);

#endif
