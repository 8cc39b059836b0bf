/* config_changes: compares the config of a run that resumes with the one that the run folder
 * stores. key_classes.def says for each key whether it may change. */
#ifndef PM_CONFIG_CHANGES_H
#define PM_CONFIG_CHANGES_H

#include <pumice/options.h>

enum pm_key_class {
    PM_KEY_FREE,   /* does not change the values that training computes */
    PM_KEY_WHOLE,  /* changes them, or how they are measured, but not in a run that resumes */
    PM_KEY_RESULT, /* changes them; the run may resume */
    PM_KEY_RUN,    /* another value means another run */
};
/* Returns the class of a key such as "run.steps". Returns -1 if neither the key nor its section has
 * a row. */
int pm_key_class(const char *key);

/* A key whose value changed. */
struct pm_config_change {
    char *key;              /* owned */
    enum pm_key_class class;
    struct cJSON *was, *is; /* owned */
};
/* Zeros are an empty list; free it with pm_config_changes_free. */
struct pm_config_changes {
    struct pm_config_change *list;
    size_t count, capacity;
};
void pm_config_changes_free(struct pm_config_changes *l);
/* Appends a change; the values are copied. NULL counts as null. */
void pm_config_changes_add(struct pm_config_changes *l, const char *key, enum pm_key_class class,
                           const struct cJSON *was, const struct cJSON *is);
/* Appends the changes of RESULT and RUN keys between two results of pm_config_dump, in the order of
 * `is`. Objects and lists of objects are compared member by member: "model.layers.0.filters". Keys
 * that one of them lacks are not compared: config.json of an older version lacks newer keys. A key
 * without a class counts as RESULT. */
void pm_config_compare(const struct cJSON *was, const struct cJSON *is,
                       struct pm_config_changes *out);
enum { PM_IDENTITY = 17 };
/* Writes 16 hexadecimal digits of the SHA-256 of all keys that are not FREE. They are equal for two
 * results of pm_config_dump that train and measure the same values from the start to the end. A
 * later version of the program with other keys has other digits. */
void pm_config_identity(const struct cJSON *dump, char out[PM_IDENTITY]);
/* Appends a value as text for messages, shortened to about 60 characters. */
void pm_config_value_text(const struct cJSON *value, struct pm_str *out);

#endif
