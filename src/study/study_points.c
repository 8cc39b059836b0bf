/* study_points: which values the points of a study have.
 *
 *     grid     every combination of the lists; the last key varies fastest
 *     random   independent draws by (study.seed, point, part)
 *     sobol    points of the Sobol sequence, shifted by a draw for each part (Cranley and
 *              Patterson, 1976), so that another study.seed gives other points
 *
 * random and sobol leave out a point that equals an earlier one. */
#include "study/study_parts.h"

#include <cjson/cJSON.h>
#include <pumice/rng.h>

enum { TRIES = 1000 }; /* draws for each point, before the study counts as too small */

/* Returns the number of combinations of lists and whole numbers, at most `most`; that if there are
 * other ranges. */
static int64_t combinations(const struct pm_study *s, int64_t most)
{
    int64_t n = 1;

    for (int i = 0; i < s->parts_count; i++) {
        const struct pm_study_part *p = &s->parts[i];

        if (p->count > 0)
            n *= p->count;
        else
            n = p->range == PM_RANGE_INT ? n * (int64_t)(p->high - p->low + 1) : most;
        n = n < most ? n : most;
    }
    return n;
}

static const char *first_range(const struct pm_study *s)
{
    for (int i = 0; i < s->parts_count; i++)
        if (s->parts[i].count == 0)
            return s->parts[i].path;
    return NULL;
}

/* The stream of draws that no other part of the program uses. */
static double random_at(const struct pm_config *c, int64_t index, int part)
{
    struct pm_rng r = pm_rng_make((uint64_t)c->study.seed, pm_hash("study"), (uint32_t)index,
                                  (uint32_t)part);

    return pm_rng_uniform(&r);
}

static double sobol_at(const struct pm_config *c, int64_t index, int part)
{
    struct pm_rng r = pm_rng_make((uint64_t)c->study.seed, pm_hash("study shift"), 0,
                                  (uint32_t)part);

    return (double)(uint32_t)(pm_sobol((uint32_t)index, part) + pm_rng_u32(&r)) * 0x1p-32;
}

static double grid_at(const struct pm_study *s, int64_t index, int part)
{
    for (int i = s->parts_count - 1; i > part; i--)
        index /= s->parts[i].count;
    return ((double)(index % s->parts[part].count) + 0.5) / s->parts[part].count;
}

static void make(struct pm_study *s, const struct pm_config *c, int64_t index,
                 struct pm_study_point *p)
{
    double u[PM_STUDY_PARTS];

    for (int i = 0; i < s->parts_count; i++)
        u[i] = c->study.method == PM_STUDY_GRID     ? grid_at(s, index, i)
               : c->study.method == PM_STUDY_RANDOM ? random_at(c, index, i)
                                                    : sobol_at(c, index, i);
    p->values = pm_calloc((size_t)s->keys_count, sizeof *p->values);
    for (int k = 0; k < s->keys_count; k++)
        p->values[k] = pm_study_value(s, k, u);
}

static bool is_new(const struct pm_study *s, const struct pm_study_point *p)
{
    for (int i = 0; i < s->points_count; i++) {
        bool same = true;
        for (int k = 0; k < s->keys_count && same; k++)
            same = cJSON_Compare(s->points[i].values[k], p->values[k], true);
        if (same)
            return false;
    }
    return true;
}

static int make_all(struct pm_study *s, const struct pm_config *c, int count)
{
    int64_t index = 0;

    s->points = pm_arena_alloc(s->arena, (size_t)count * sizeof *s->points);
    while (s->points_count < count && index < (int64_t)TRIES * count) {
        struct pm_study_point p = { 0 };

        make(s, c, index++, &p);
        if (c->study.method == PM_STUDY_GRID || is_new(s, &p)) {
            s->points[s->points_count++] = p;
            continue;
        }
        for (int k = 0; k < s->keys_count; k++)
            cJSON_Delete(p.values[k]);
        pm_free(p.values);
    }
    if (s->points_count < count)
        return pm_fail(PM_ECONFIG, "%s: study.runs: %d, but only %d different points were found: "
                       "set it to at most that", pm_config_source(c, "study.runs"), count,
                       s->points_count);
    pm_study_name_points(s);
    return PM_OK;
}

int pm_study_make_points(struct pm_study *s, const struct pm_config *c)
{
    const int64_t all = combinations(s, PM_STUDY_MOST + 1);
    const int runs = c->study.runs;
    const char *range = first_range(s);

    if (c->study.method == PM_STUDY_GRID && range)
        return pm_fail(PM_ECONFIG, "%s: study.method: grid combines lists, but %s is a range: give "
                       "it a list of values, or set study.method to random or sobol",
                       pm_config_source(c, "study.method"), range);
    if (c->study.method == PM_STUDY_GRID && runs > 0 && runs != all)
        return pm_fail(PM_ECONFIG, "%s: study.runs: %d, but the grid has %s%lld points: remove it, "
                       "or set study.method to random", pm_config_source(c, "study.runs"), runs,
                       all > PM_STUDY_MOST ? "more than " : "",
                       (long long)(all > PM_STUDY_MOST ? PM_STUDY_MOST : all));
    if (c->study.method != PM_STUDY_GRID && runs == 0)
        return pm_fail(PM_ECONFIG, "%s: study.runs: the number of points is needed for random and "
                       "sobol, such as 24", pm_config_source(c, "study"));
    if (c->study.method != PM_STUDY_GRID && runs > all)
        return pm_fail(PM_ECONFIG, "%s: study.runs: %d, but the values have only %lld "
                       "combinations: set it to at most that", pm_config_source(c, "study.runs"),
                       runs, (long long)all);
    if (c->study.method == PM_STUDY_GRID && all > PM_STUDY_MOST)
        return pm_fail(PM_ECONFIG, "%s: study.vary: more than %d combinations: shorten the lists, "
                       "or set study.method to random", pm_config_source(c, "study.vary"),
                       PM_STUDY_MOST);
    return make_all(s, c, c->study.method == PM_STUDY_GRID ? (int)all : runs);
}
