/* check_finding_buckets: the sizes of training pictures (input.buckets) against the pictures. Every
 * record is read once, but no picture is decoded. A picture has one frame for each entry of
 * input.min_dimensions, so these are all checked. Rows of input.augment make one draw for each
 * picture, so if they change sizes, training may see others. */
#include "jobs/check_findings.h"

#include "data/frames.h"

#include <pumice/task.h>

#include <limits.h>

/* The pictures of the training split by the sizes that they need. */
struct sizes {
    const struct pm_experiment *e;
    int each;                      /* sizes of every picture */
    struct pm_frame_groups groups; /* owned; of all sizes: number k of record r is r * each + k */
};

static const char *name_of(const struct sizes *s, size_t group, char *buf, size_t size)
{
    const struct pm_frame_groups *g = &s->groups;

    return pm_dataset_where(s->e->train, g->order[g->list[group].first] / (uint64_t)s->each, buf,
                            size);
}

/* Returns the largest group that none of the sizes holds, the first of equal ones, or the number of
 * groups. */
static size_t largest_outside(const struct sizes *s, const struct pm_frame *sizes, int count)
{
    const struct pm_frame_group *list = s->groups.list;
    size_t found = s->groups.count;

    for (size_t i = 0; i < s->groups.count; i++)
        if (!pm_frame_find(sizes, count, list[i].frame) &&
            (found == s->groups.count || pm_frame_area(list[i].frame) >
                                             pm_frame_area(list[found].frame)))
            found = i;
    return found;
}

/* The place of the list in the config. */
static void place_of(const struct pm_check *k, char *buf, size_t size)
{
    snprintf(buf, size, "%s: input.buckets: ", pm_config_source(k->config, "input.buckets"));
}

/* Every picture must fit into a size. */
static int check_pictures(struct pm_check *k, const struct sizes *s)
{
    const size_t i = largest_outside(s, s->e->frames, s->e->frames_count);
    char name[512], place[512];

    if (i == s->groups.count)
        return PM_OK;
    place_of(k, place, sizeof place);
    return pm_frame_fail_record(PM_ECONFIG, place, s->e->frames, s->e->frames_count,
                                &(struct pm_frame_need){ name_of(s, i, name, sizeof name),
                                                         s->groups.list[i].frame });
}

/* Returns the frame of all pictures that fit into `most`, and sets the groups of the tallest and of
 * the widest one. Height 0: no picture fits. */
static struct pm_frame union_in(const struct sizes *s, struct pm_frame most, size_t widest[2])
{
    struct pm_frame all = { 0, 0 };

    for (size_t i = 0; i < s->groups.count; i++) {
        const struct pm_frame f = s->groups.list[i].frame;

        if (!pm_frame_holds(most, f))
            continue;
        if (f.height > all.height)
            all.height = f.height, widest[0] = i;
        if (f.width > all.width)
            all.width = f.width, widest[1] = i;
    }
    return all;
}

/* Two pictures that a shuffled batch has sooner or later must fit into one size. */
static int check_pairs(struct pm_check *k, const struct sizes *s)
{
    size_t at[2] = { 0, 0 };
    const struct pm_frame all = union_in(s, (struct pm_frame){ INT_MAX, INT_MAX }, at);
    char tallest[512], widest[512], place[512];

    if (k->config->run.batch_size == 1 || !k->config->data.shuffle ||
        pm_frame_find(s->e->frames, s->e->frames_count, all))
        return PM_OK;
    const struct pm_frame_need tall = { name_of(s, at[0], tallest, sizeof tallest),
                                        s->groups.list[at[0]].frame };
    const struct pm_frame_need wide = { name_of(s, at[1], widest, sizeof widest),
                                        s->groups.list[at[1]].frame };
    place_of(k, place, sizeof place);
    return pm_frame_fail_pair(PM_ECONFIG, place, s->e->frames, s->e->frames_count, &tall, &wide);
}

/* Whether a batch of pictures that fit into this size can have it. all: of the tallest and the
 * widest of these pictures: a batch of several has the size only if these two have. */
static bool is_used(const struct pm_check *k, const struct sizes *s, const struct pm_frame *size,
                    struct pm_frame all)
{
    const struct pm_experiment *e = s->e;

    if (k->config->run.batch_size != 1)
        return pm_frame_find(e->frames, e->frames_count, all) == size;
    for (size_t i = 0; i < s->groups.count; i++)
        if (pm_frame_find(e->frames, e->frames_count, s->groups.list[i].frame) == size)
            return true;
    return false;
}

static void check_size(struct pm_check *k, const struct sizes *s, const struct pm_frame *size)
{
    size_t at[2];
    const struct pm_frame all = union_in(s, *size, at);

    if (all.height == 0)
        pm_check_add(k, PM_CHECK_WARNING, "input.buckets",
                     "input.buckets: %d x %d holds no picture of the training split. Remove it",
                     size->height, size->width);
    else if (!is_used(k, s, size, all))
        pm_check_add(k, PM_CHECK_WARNING, "input.buckets",
                     "input.buckets: no batch has the size %d x %d, because smaller ones hold all "
                     "pictures of the training split that it holds. Remove it", size->height,
                     size->width);
}

/* Warns if evaluation in one size would fail at a picture like one of the training split. */
static void check_evaluation(struct pm_check *k, const struct sizes *s)
{
    const struct pm_frame eval = pm_experiment_frame(s->e, false);
    const size_t i = largest_outside(s, &eval, 1);
    char name[512];

    if (s->e->facts.own_sizes || i == s->groups.count)
        return;
    const struct pm_frame f = s->groups.list[i].frame;
    pm_check_add(k, PM_CHECK_WARNING, "input.eval_size",
                 "input.eval_size: evaluation pads pictures to %d x %d and fails at larger "
                 "ones, such as %s, which is %d x %d when resized. Set input.eval_size to the "
                 "size of the largest picture, or eval.resize=false", eval.height, eval.width,
                 name_of(s, i, name, sizeof name), f.height, f.width);
}

/* Finds all sizes of all pictures. */
static int read_sizes(struct sizes *s)
{
    const struct pm_experiment *e = s->e;
    struct pm_sampler sampler = { e->task, true, e->task_row };
    const size_t count = pm_dataset_get_info(e->train)->count;
    struct pm_frame *frames = NULL;
    struct pm_normal normal = { 0 };
    int err = PM_OK;

    PM_TRY(e->facts.preprocessing->normal(e->facts.preprocessing_cfg, e->facts.channels, &normal));
    s->each = normal.choices ? normal.choices : 1;
    frames = pm_calloc(count * (size_t)s->each + 1, sizeof *frames);
    pm_frames_read(e->train, pm_record_frame, &sampler, normal.choices, frames);
    pm_frame_groups_of(frames, count * (size_t)s->each, e->frames[0], &s->groups);
out:
    pm_free(frames);
    return err;
}

static int check_buckets(struct pm_check *k)
{
    const struct pm_experiment *e = k->e;
    struct sizes s = { .e = e };
    int err = PM_OK;

    if (k->config->buckets_count == 0 || !e->task_row->need)
        return PM_OK;
    PM_TRY(read_sizes(&s));
    PM_TRY(check_pictures(k, &s));
    PM_TRY(check_pairs(k, &s));
    for (int i = 0; i < e->frames_count; i++)
        check_size(k, &s, &e->frames[i]);
    check_evaluation(k, &s);
out:
    pm_frame_groups_free(&s.groups);
    return err;
}
const struct pm_check_finding pm_check_finding_buckets = { true, check_buckets };
