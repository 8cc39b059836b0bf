/* flag_rows: how the tables of flags.c and flags_deeplab.c write a row of struct pm_flag. */
#ifndef PM_FLAG_ROWS_H
#define PM_FLAG_ROWS_H

#include "config/config_private.h"

/* Flag, its default in the original program, our key, note. */
#define FLAG(f, d, k, n)                         \
    {                                            \
        .flag = f, .def = d, .key = k, .note = n \
    }
/* A flag without a key: an argument of a command replaces it, or nothing. */
#define ELSE(f, d, h, n)                             \
    {                                                \
        .flag = f, .def = d, .instead = h, .note = n \
    }
#define NONE(f, d, n) ELSE(f, d, "none", n)

/* Rows and notes of several programs. */
#define TASK "`mpirun` numbers the processes; another number is an error"
#define MASTER NONE("master", "`\"\"`", "`mpirun` connects the processes")
#define NO_MASTER NONE("master", "`\"\"`", "one process; there is no server to name")

#endif
