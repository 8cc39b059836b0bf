/* Shared by the files of src/config/. */
#ifndef PM_CONFIG_PRIVATE_H
#define PM_CONFIG_PRIVATE_H

#include <pumice/config.h>

/* ---- sections.c: the option tables ----------------------------------------------------- */

struct pm_config_section {
    const char *name, *help;
    const struct pm_opt *opts;
    size_t offset;                     /* of the section's struct in pm_config */
    const char *row_kind;              /* open sections: "net", "optimizer", "preprocessing" */
    size_t rows;                       /* offset of its pm_open_rows in pm_open_sections */
    size_t row;                        /* offset of the chosen row in pm_config */
    const char *row_key;               /* the key that chooses the row */
};
extern const struct pm_config_section pm_config_sections[]; /* ends with a NULL name */
extern const struct pm_opt pm_config_device_opts[];         /* of struct pm_config_device */
extern const struct pm_opt pm_config_early_stop_opts[];     /* of struct pm_config_early_stop */
const struct pm_config_section *pm_config_section_find(const char *name, size_t length);
/* Returns the task's own options in a section, or in an object inside it ("eval.NAME"); NULL:
 * none. */
const struct pm_opt *pm_config_task_opts(const struct pm_open_task *t, const char *section);
/* Finds the table of a task other than `not` that has this key of the section, and the task. NULL:
 * none. */
const struct pm_opt *pm_config_other_task(const struct pm_open_sections *open,
                                          const struct pm_open_task *not, const char *section,
                                          const char *key, const struct pm_open_task **task);
const struct pm_open_rows *pm_config_rows(const struct pm_config_section *s,
                                          const struct pm_open_sections *open);

/* ---- origins.c: where values come from -------------------------------------------------- */

struct pm_config_origin {
    char *path;   /* owned; "model.layers.0.filters" */
    char *text;   /* owned; "x.json:12" */
    int rank;     /* higher ranks were merged later and won */
    bool object;  /* the value is an object; its absent members have no origin */
};
struct pm_config_origins {
    struct pm_config_origin *list; /* owned */
    size_t count, capacity;
    int ranks;
};
void pm_config_origins_destroy(struct pm_config_origins **o);
/* Adds the origin of a value with the current rank. Path and text are copied. */
void pm_config_origins_add(struct pm_config_origins *o, const char *path, const char *text,
                           const struct cJSON *v);
/* Removes the origins of a value and of everything inside it. */
void pm_config_origins_forget(struct pm_config_origins *o, const char *top);
/* Returns the origin of a path, or of the nearest enclosing value; NULL if it is a default. */
const struct pm_config_origin *pm_config_origin_find(const struct pm_config_origins *o,
                                                     const char *path);
/* Sets the origin of a value that is a task's default. It has the lowest rank. */
void pm_config_origin_default(struct pm_config_origins *o, const char *path, const char *text);
/* Returns "x.json:12:" or "command line:" for messages, allocated in the config's arena. */
const char *pm_config_place(const struct pm_config *c, const char *path);

/* ---- merge.c: files and overrides to one tree ------------------------------------------ */

/* Merges files and overrides into tree (an empty object) and fills origins. text NULL: reads the
 * file. */
int pm_config_merge(const char *path, const char *text, const char *const *overrides, size_t n,
                    struct cJSON *tree, struct pm_config_origins *origins);

/* ---- config_rows.c: rows of open sections ------------------------------------------------ */

/* Finds a row by name; NULL: unknown. */
const struct pm_open_row *pm_config_row_find(const struct pm_open_rows *rows, const char *name);
/* Fails with PM_ECONFIG because no row has this name; the message suggests the nearest name. kind:
 * "net", "optimizer" ... */
int pm_config_fail_row(const struct pm_config *c, const struct pm_open_rows *rows, const char *path,
                       const char *kind, const char *name);
/* Returns an upper bound of the size in bytes of a struct with these options. */
size_t pm_config_size_of(const struct pm_opt *opts);

/* ---- config_devices.c: devices, replicas --------------------------------------------------- */

extern const struct pm_opt pm_config_replica_opts[]; /* of struct pm_config_replica */
extern const char pm_config_replicas_help[];
/* Reads both lists, and checks each entry. */
int pm_config_read_devices(struct pm_config *c);
/* Return the lists with all options; cJSON_Delete frees them. */
struct cJSON *pm_config_dump_devices(const struct pm_config_device *list, int count);
struct cJSON *pm_config_dump_replicas(const struct pm_config *c);
/* Adds both keys to the JSON Schema. */
void pm_config_schema_devices(struct cJSON *properties);

/* ---- config_buckets.c: input.buckets ------------------------------------------------------- */

/* Checks the list and fills in the config's buckets. */
int pm_config_read_buckets(struct pm_config *c);

/* ---- config_early_stop.c: run.early_stop ------------------------------------------------- */

/* Checks the object's options and fills in c->early_stop. */
int pm_config_read_early_stop(struct pm_config *c);
/* Returns the object with all options. Requires c->early_stop. cJSON_Delete frees it. */
struct cJSON *pm_config_dump_early_stop(const struct pm_config *c);
/* Completes the key's JSON Schema. */
void pm_config_schema_early_stop(struct cJSON *schema);

/* ---- config_augment.c: input.augment ----------------------------------------------------- */

/* Checks the list's names and options, and keeps the rows. */
int pm_config_read_augment(struct pm_config *c, const struct pm_open_rows *rows);
/* Returns the list with all options resolved. Requires a config with augment_rows. cJSON_Delete
 * frees it. */
struct cJSON *pm_config_dump_augment(const struct pm_config *c);

/* ---- config_defaults.c: a task's own defaults --------------------------------------------- */

/* Adds the defaults of the config's task to the tree, for keys that the config does not give. */
void pm_config_apply_defaults(struct pm_config *c);

/* ---- config_check.c: checks of value combinations ---------------------------------------- */

/* Call it after all values are read. */
int pm_config_check(const struct pm_config *c);

/* ---- reference.c: a key's original names ------------------------------------------------ */

/* A key and its names in the original programs. */
struct pm_reference {
    const char *key;
    const char *slim; /* TF-Slim arguments that flags.c does not list; NULL = none */
    const char *deeplab, *detection;         /* flags or fields; NULL = none */
};
extern const struct pm_reference pm_references[]; /* ends with a NULL key */
const struct pm_reference *pm_reference_find(const char *key);
/* Whether word is one of the names in a comma-separated list. */
bool pm_reference_lists(const char *list, const char *word);
/* Returns the key that replaces this flag, or NULL. */
const struct pm_reference *pm_reference_by_flag(const char *word);

/* ---- refused.c: known names that are refused -------------------------------------------- */

/* A key that is known and refused. instead: sentences that say what to do, without the last full
 * stop. */
struct pm_refused {
    const char *key, *instead;
};
extern const struct pm_refused pm_refused_keys[]; /* ends with a NULL key */
/* Returns the row of a key, or NULL if the key is not refused. */
const struct pm_refused *pm_refused_find(const char *key);

/* ---- suggest.c: what was probably meant --------------------------------------------------- */

/* Returns the key that has this name in another section, in another program or framework; NULL:
 * none. In the arena, or constant. */
const char *pm_suggest_key(const char *word, const struct pm_open_task *task, struct pm_arena *a);
/* Returns the key of any section with the most similar name; NULL: none is similar. */
const char *pm_suggest_similar(const char *word, const struct pm_open_task *task,
                               struct pm_arena *a);
/* Returns the row's name for a name of another framework, or in another case; NULL: none. */
const char *pm_suggest_name(const char *word, const struct pm_open_rows *rows);
/* Returns the original programs' flag with this name that nothing replaces; NULL: none. */
struct pm_flag;
const struct pm_flag *pm_suggest_none(const char *word);

/* ---- flags.c: the original programs' flags, by program --------------------------------- */

struct pm_flag {
    const char *flag, *def; /* the original's; def is Markdown */
    const char *key;        /* our key, listed in reference.c or an open row; or NULL, then: */
    const char *instead;    /* the replacement in Markdown: "none" or a part of a command */
    const char *note;       /* difference in meaning; NULL = none */
};
struct pm_program {
    const char *name, *help;    /* help: one or more sentences */
    const struct pm_flag *flag; /* ends with a NULL flag */
    const char *task;           /* whose defaults are given; NULL: the keys' own */
};
extern const struct pm_program pm_programs[]; /* ends with a NULL name */
/* flags_deeplab.c: the flags of DeepLab's programs; each ends with a NULL flag. */
extern const struct pm_flag pm_flags_deeplab_model[], pm_flags_deeplab_train[],
    pm_flags_deeplab_eval[], pm_flags_deeplab_export[];

#endif
