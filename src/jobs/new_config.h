/* new_config: a config for a folder of pictures or a data folder, for `pumice new`. */
#ifndef PM_NEW_CONFIG_H
#define PM_NEW_CONFIG_H

#include <pumice/base.h>

/* A folder of few pictures is passed over so often that training has at least so many steps, from
 * initial values or from pretrained weights. */
enum { PM_NEW_LEAST_STEPS = 500, PM_NEW_LEAST_TUNING = 200 };

/* A row of new_choices.def. */
struct pm_new_choice {
    const char *task;
    size_t most_pictures; /* that are trained on */
    int most_classes;
    const char *net;
    int size, batch, passes;
    double rate;
    const char *why;
};
/* Returns the row for a task, or NULL if no row has the task. */
const struct pm_new_choice *pm_new_choose(const char *task, size_t pictures, int classes);

struct pm_new_want {
    const char *folder; /* pictures, a data folder, or the source folder of a converter */
    const char *task;   /* NULL: what the folder has annotations for */
    const char *out;    /* file of the config; NULL: NAME.json in the current folder */
};
/* Texts are in the arena. */
struct pm_new_config {
    const char *out, *text; /* the config's file and contents; it is not written */
    const char *found;      /* what the folder holds, in one line */
    const char *task, *net;
    size_t pictures;        /* that are trained on, about */
    int classes;            /* 0: known after the conversion */
    bool proposes_weights;  /* published weights for the net, which are not in the cache */
    const char *command[6], *purpose[6]; /* to type next, and why */
    int commands;
};
/* Looks at the folder and makes the config. PM_ECONFIG for an unknown task; PM_EDATA if the folder
 * does not have what the task needs: the message states what to do. */
int pm_new_config(struct pm_arena *a, const struct pm_new_want *want, struct pm_new_config *out);

#endif
