/* csv_reader, internal to data/convert: reads a CSV file row by row with constant memory. Columns
 * are found by the names in the first row. Rules of RFC 4180: a field in quotes may contain commas,
 * newlines and doubled quotes. */
#ifndef PUMICE_DATA_CONVERT_CSV_READER_H
#define PUMICE_DATA_CONVERT_CSV_READER_H

#include <stdio.h>

#include <pumice/base.h>

enum { PM_CSV_FIELDS = 64, PM_CSV_ROW = 1 << 16 };

struct pm_csv {
    FILE *f; /* owned */
    const char *path;
    unsigned line;  /* of the row's first character */
    unsigned lines; /* read so far */
    char delimiter; /* ',', or ';' or a tab if the first row has these and no comma */
    int count;      /* fields of the row */
    char *field[PM_CSV_FIELDS]; /* in text */
    char text[PM_CSV_ROW];      /* the row */
};
/* Opens the file and leaves its first row in field. PM_EDATA for a missing or an empty file. */
int pm_csv_open(const char *path, struct pm_csv *c);
void pm_csv_close(struct pm_csv *c);
/* Reads the next row that is not empty and returns 1, or 0 at the end. PM_EDATA with the line for:
 * more than PM_CSV_FIELDS fields or PM_CSV_ROW bytes, a zero byte, text behind a closing quote, a
 * quote that is not closed. */
int pm_csv_row(struct pm_csv *c);
/* Place of the first of these names (a NULL-terminated list) in the row, or -1. Upper and lower
 * case, spaces and underscores make no difference. */
int pm_csv_find(const struct pm_csv *c, const char *const *names);
/* The field of a row, or NULL if the row has no such column. */
const char *pm_csv_at(const struct pm_csv *c, int column);
/* Its finite number. PM_EDATA; name: the column's, for the message. */
int pm_csv_number(const struct pm_csv *c, int column, const char *name, double *out);

#endif
