/* json_reader, inside data/: a JSON file of any size read from front to back, value by value, in a
 * buffer's memory. What is passed over is only counted through, not checked. */
#ifndef PUMICE_DATA_JSON_READER_H
#define PUMICE_DATA_JSON_READER_H

#include <stdio.h>

#include <pumice/base.h>

struct pm_json_reader {
    FILE *f; /* owned */
    const char *path;
    unsigned line;
    char text[4096]; /* of the last string or number; longer ones are refused, or passed over unseen */
};
int pm_json_reader_open(const char *path, struct pm_json_reader *r);
void pm_json_reader_close(struct pm_json_reader *r);
/* PM_EDATA with file, line and this, which is what was wanted. */
int pm_json_reader_fail(const struct pm_json_reader *r, const char *fmt, ...) PM_PRINTF(2, 3);
/* Takes '{' or '['. */
int pm_json_enter(struct pm_json_reader *r, char bracket);
/* The next member's key in r->text, the value being next to read: 1; 0 behind the '}'. *n counts and
 * begins at 0. */
int pm_json_member(struct pm_json_reader *r, size_t *n);
/* 1: an item is next to read; 0 behind the ']'. */
int pm_json_item(struct pm_json_reader *r, size_t *n);
int pm_json_number(struct pm_json_reader *r, double *out);
/* A whole number of 0..most. */
int pm_json_whole(struct pm_json_reader *r, int64_t most, int64_t *out);
/* Its text in r->text. Characters beyond ASCII by \u become UTF-8. */
int pm_json_string(struct pm_json_reader *r);
/* A string or a number, as text in r->text. */
int pm_json_text(struct pm_json_reader *r);
/* Passes over the next value, whatever it is. */
int pm_json_skip(struct pm_json_reader *r);
/* Takes the end of the file. */
int pm_json_end(struct pm_json_reader *r);

#endif
