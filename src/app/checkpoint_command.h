/* checkpoint_command: the parts of pumice checkpoint, each in its own cmd_checkpoint_NAME.c. */
#ifndef APP_CHECKPOINT_COMMAND_H
#define APP_CHECKPOINT_COMMAND_H

#include "app/app.h"

#include <pumice/checkpoint.h>

enum { APP_PIECE = 4096 }; /* elements read at a time */

/* Runs a part. args: the words and key=value after the part's name. */
int app_checkpoint_inspect(const struct app_args *args, struct pm_arena *a, struct app_globals *g);
int app_checkpoint_diff(const struct app_args *args, struct pm_arena *a, struct app_globals *g);
int app_checkpoint_convert(const struct app_args *args, struct pm_arena *a, struct app_globals *g);
/* Parses its own flags. argv holds the words after "download". */
int app_checkpoint_download(int argc, char **argv, struct pm_arena *a, struct app_globals *g);
/* Adds the options of checkpoint convert to its --help. */
int app_checkpoint_help(int argc, char **argv, struct pm_str *text);
/* Returns the width of a column of names. */
int app_checkpoint_width(const struct pm_tensor_file *f);
/* Adds ", step 7"; nothing if the file has no step. */
void app_checkpoint_step(struct pm_str *text, const struct pm_checkpoint *c);

#endif
