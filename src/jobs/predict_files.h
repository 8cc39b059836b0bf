/* predict_files: the picture files of the paths that `pumice predict` is given. */
#ifndef PM_PREDICT_FILES_H
#define PM_PREDICT_FILES_H

#include <pumice/base.h>

struct cJSON;

struct pm_predict_files {
    struct pm_arena *arena;
    const char *out; /* the folder that is written to, whose pictures are not read; NULL: none */
    struct pm_predict_file {
        const char *path, *below; /* below: without the folder that was named; in the arena */
    } *list;                      /* owned */
    size_t count, capacity;
    const char **other; /* what the folders hold beside pictures; owned, texts in the arena */
    size_t other_count, other_capacity;
};
/* Lists the files, and those of the folders with all folders below. PM_EDATA if a path does not
 * exist. The caller closes f, also after an error. */
int pm_predict_files_open(const char *const *paths, size_t count, const char *out,
                          struct pm_predict_files *f);
void pm_predict_files_close(struct pm_predict_files *f); /* accepts zeros */
/* Names the files in the folders that are not read: adds the member not_read, and logs the first
 * ones. */
void pm_predict_files_report(const struct pm_predict_files *f, struct cJSON *report);
/* PM_ECONFIG if a drawing could replace a picture: a picture of the list is in a folder that
 * drawings are written to. */
int pm_predict_files_check_out(const struct pm_predict_files *f);

#endif
