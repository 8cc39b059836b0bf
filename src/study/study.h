/* study: many runs of one config. A study is the section "study" of a config file: which keys vary,
 * how their values are chosen, and which metric is compared. Each choice is a point, and a point is
 * trained once for each repeat, in a run folder of its own inside study.folder.
 *
 * What the points are depends on the file alone: on study.vary, study.method, study.runs and
 * study.seed. Not thread-safe. */
#ifndef PM_STUDY_H
#define PM_STUDY_H

#include <pumice/config.h>

struct cJSON;

/* ---- what varies: study_vary.c ----------------------------------------------------------- */

enum pm_study_range { PM_RANGE_UNIFORM, PM_RANGE_LOG_UNIFORM, PM_RANGE_INT };
/* A number or a list from which a point takes one value. Each has one coordinate in 0..1. */
struct pm_study_part {
    const struct cJSON *spec; /* borrowed: the list, or the object with the range */
    const char *path;         /* "schedule.base_lr", "optim.1.beta1": for messages */
    int count;                /* entries of the list; 0: a range */
    enum pm_study_range range;
    double low, high;         /* of the range; both included for PM_RANGE_INT */
};
struct pm_study_key {
    const char *key;          /* of the config: "schedule.base_lr" */
    const char *name;         /* short: "lr"; no other key of the study has it */
    int part;                 /* its first part */
};
enum pm_study_method { PM_STUDY_GRID, PM_STUDY_RANDOM, PM_STUDY_SOBOL };
enum { PM_STUDY_PARTS = 21 }; /* most lists and ranges of a study: dimensions of sobol.c */

/* One choice. */
struct pm_study_point {
    const char *name;         /* "lr=0.01,optim=adamw"; no other point has it */
    struct cJSON **values;    /* [keys]; owned by the study */
    const char *identity;     /* of its config (config_changes.h), with the first seed */
};
/* The runs of a study that is stopped early by successive halving: rung r trains to steps[r]. */
struct pm_study_halving {
    double factor;            /* of the runs, one in so many goes on; 0: all train to the end */
    int64_t first_steps;
};
struct pm_study_worker {
    struct cJSON *devices;    /* owned: list, as the config's; NULL: the config's own */
    int threads;              /* of a CPU device that sets none; 0: chosen from the machine */
    int data_threads;         /* that read data; 0: as the config says */
};

struct pm_study {
    struct pm_arena *arena;   /* owned; everything below lives in it, except the values */
    struct pm_config *config; /* owned: the file without a point's values; options of nets and
                               * optimizers are not read */
    const char *path;         /* of the file */
    const char *folder, *metric;
    bool higher_is_better;    /* of the metric */
    int64_t seed;             /* run.seed of the config: the first repeat's */
    int64_t steps;            /* run.steps of the config; 0: by epochs, or varied */
    int repeats;
    struct pm_study_part *parts;
    int parts_count;
    struct pm_study_key *keys;
    int keys_count;
    struct pm_study_point *points;
    int points_count;
    struct pm_study_halving halving;
    struct pm_study_worker *workers; /* at least one */
    int workers_count;
    struct cJSON *identity;   /* owned: what makes two studies the same one, for study.json */
};

/* Reads the study of a config file, and makes its points. Each point's config is loaded and
 * checked. many: more than PM_STUDY_MANY runs are allowed. PM_ECONFIG names the place, the value
 * and the remedy. */
enum { PM_STUDY_MANY = 1000, PM_STUDY_MOST = 10000 };
int pm_study_open(const char *path, const char *const *overrides, size_t n, bool many,
                  const struct pm_open_sections *open, struct pm_study **out);
void pm_study_close(struct pm_study **s);

/* Reads study.vary into s->parts and s->keys. */
int pm_study_read_vary(struct pm_study *s, const struct pm_config *c);
/* Makes the points. */
int pm_study_make_points(struct pm_study *s, const struct pm_config *c);
/* Loads the config of a run of a point: the file with the point's values, its seed (0 = the first
 * repeat) and its run folder. */
int pm_study_config(const struct pm_study *s, int point, int repeat, const char *const *overrides,
                    size_t n, const struct pm_open_sections *open, struct pm_config **out);
/* The name of a run, in the arena: the point's, with ",seed=N" if there are repeats. */
const char *pm_study_run_name(const struct pm_study *s, int point, int repeat);

/* ---- low discrepancy: sobol.c ------------------------------------------------------------ */

/* Coordinate of point `index` (from 0) in dimension `dim` (0..PM_STUDY_PARTS - 1) of the Sobol
 * sequence with the direction numbers of Joe and Kuo (2008), in 32 bits. */
uint32_t pm_sobol(uint32_t index, int dim);

#endif
