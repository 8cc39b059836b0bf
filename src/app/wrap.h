/* wrap: fits help texts to the width of the terminal. */
#ifndef WRAP_H
#define WRAP_H

#include <pumice/base.h>

/* Returns the width of standard output in columns: the environment variable COLUMNS, else the
 * terminal's, else 0: unknown, so lines are neither wrapped nor shortened. */
int app_columns(void);
/* Appends text to out. A paragraph with a line longer than columns is filled anew. Its further
 * lines begin where its second line does, or below the explanation of a flag ("--out FOLDER   also
 * ..."). Lines that begin with "pumice " are commands and are never joined. columns 0: unchanged.
 * Words are not broken. */
void app_wrap(struct pm_str *out, const char *text, int columns);

#endif
