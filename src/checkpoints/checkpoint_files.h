/* checkpoint_files: what saving (checkpoint.c, checkpoint_keep.c) and opening (checkpoint_open.c)
 * share: the files in RUN/checkpoints. */
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
/* Reads folder/name; PM_EDATA when it is not a checkpoint's. Freed also after an error. */
int pm_ckpt_record_read(const char *folder, const char *name, struct record *r);
void pm_ckpt_record_free(struct record *r);
/* Writes folder/name with the file's name replaced. */
int pm_ckpt_record_write_as(const struct record *r, const char *folder, const char *name,
                            const char *file);
/* Writes the pretty text of json to folder/name. */
int pm_ckpt_write_json(const char *folder, const char *name, const cJSON *json);

/* "folder/name" in s, which is emptied first; returns its text. */
const char *pm_ckpt_path(struct pm_str *s, const char *folder, const char *name);
/* RUN/checkpoints in folder, or the folder itself when that is what a user named. */
void pm_ckpt_folder(struct pm_str *folder, const char *run);
/* Steps that have a step-N.json in folder, ascending; freed with pm_free. A folder that is not there
 * has none. */
size_t pm_ckpt_steps(const char *folder, uint64_t **steps);
/* "step-000123.json" */
char *pm_ckpt_step_name(uint64_t step, const char *suffix, char buf[64]);
char *pm_ckpt_best_name(uint64_t step, const char *suffix, char buf[64]); /* "best-000123.json" */
/* best.json; all zero when it is not there or unreadable. */
struct best {
    char *metric; /* owned */
    double value;
    uint64_t step;
};
int pm_ckpt_best_read(const char *folder, struct best *b);
void pm_ckpt_best_free(struct best *b);
/* checkpoint_keep.c: applies keep after step was saved; what cannot be removed is a warning. */
void pm_ckpt_keep_apply(const char *folder, uint64_t step, const struct pm_keep *keep);
/* Removes the best-* files that best.json does not name: left by a process that died between writing
 * the one and removing the other. */
void pm_ckpt_best_clean(const char *folder);

#endif
