/* checkpoint_files: the files in RUN/checkpoints. Shared by saving (checkpoint.c,
 * checkpoint_keep.c) and opening (checkpoint_open.c). */
#ifndef PUMICE_CHECKPOINT_FILES_H
#define PUMICE_CHECKPOINT_FILES_H

#include <cjson/cJSON.h>
#include <pumice/checkpoint.h>

/* A checkpoint's .json. */
struct record {
    uint64_t step;
    const char *file;   /* name of the tensors' file in the same folder; borrowed from json */
    const char *sha256; /* 64 hex digits; borrowed from json */
    cJSON *json;        /* owned */
    char *text;         /* owned */
};
/* Reads folder/name. PM_EDATA if it is not a checkpoint's .json. Free r also after an error. */
int pm_ckpt_record_read(const char *folder, const char *name, struct record *r);
void pm_ckpt_record_free(struct record *r);
/* Whether the file is a record, perhaps a damaged one: its name is that of a step's or of the best
 * checkpoint's record, or it is a JSON object with a member "sha256". */
bool pm_ckpt_is_record(const char *folder, const char *name);
/* Writes folder/name with the name of the tensors' file replaced. */
int pm_ckpt_record_write_as(const struct record *r, const char *folder, const char *name,
                            const char *file);
/* Writes the pretty text of json to folder/name. */
int pm_ckpt_write_json(const char *folder, const char *name, const cJSON *json);

/* Sets s to "folder/name" and returns its text. */
const char *pm_ckpt_path(struct pm_str *s, const char *folder, const char *name);
/* Sets folder to RUN/checkpoints, or to run itself if the user named that folder. */
void pm_ckpt_folder(struct pm_str *folder, const char *run);
/* Returns the number of steps with a step-N.json in folder, and lists them in ascending order; free
 * with pm_free. A missing folder has none. */
size_t pm_ckpt_steps(const char *folder, uint64_t **steps);
/* "step-000123.json" */
char *pm_ckpt_step_name(uint64_t step, const char *suffix, char buf[64]);
char *pm_ckpt_best_name(uint64_t step, const char *suffix, char buf[64]); /* "best-000123.json" */
/* Contents of best.json; all zero if it is missing or unreadable. */
struct best {
    char *metric; /* owned */
    double value;
    uint64_t step;
};
int pm_ckpt_best_read(const char *folder, struct best *b);
void pm_ckpt_best_free(struct best *b);
/* Applies keep after step was saved (checkpoint_keep.c). A file that cannot be removed causes a
 * warning. */
void pm_ckpt_keep_apply(const char *folder, uint64_t step, const struct pm_keep *keep);
/* Removes the best-* files that best.json does not name. They remain if a process ends between
 * writing the new file and removing the old one. */
void pm_ckpt_best_clean(const char *folder);

#endif
