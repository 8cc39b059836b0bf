/* show: prints the plan and the layers of a config, and whether they fit into memory, without
 * training. */
#include <pumice/train.h>

#include "clones/clones.h"
#include "experiment/experiment.h"
#include "observers/activation_summaries.h"
#include "observers/summaries.h"

#include <cjson/cJSON.h>

/* Adds the memory and the counts for each size of pictures. */
static int describe_frames(const struct pm_clones *clones, int i, struct cJSON *list)
{
    int err = PM_OK;

    for (int k = 0; k < pm_clones_frames(clones); k++) {
        const struct pm_plan_memory m = pm_plan_memory(pm_clones_plan(clones, i, k));
        const struct pm_frame frame = pm_clones_frame(clones, k);
        struct cJSON *o = cJSON_CreateObject();

        cJSON_AddItemToObject(o, "size", cJSON_CreateIntArray((int[]){ frame.height, frame.width },
                                                              2));
        cJSON_AddNumberToObject(o, "activations", (double)m.activations);
        cJSON_AddNumberToObject(o, "peak_live", (double)m.peak_live);
        cJSON_AddNumberToObject(o, "constants", (double)m.constants);
        cJSON_AddNumberToObject(o, "staging", (double)m.staging);
        cJSON_AddNumberToObject(o, "calls", m.calls);
        cJSON_AddItemToArray(list, o);
        PM_TRY(pm_plan_counts_json(pm_clones_plan(clones, i, k), o));
    }
out:
    return err;
}

/* Adds a clone to the list. Its counts are those of the largest size. */
static int describe(const struct pm_clones *clones, int i, struct cJSON *list)
{
    struct pm_plan_memory m = pm_clones_memory(clones, i);
    struct cJSON *o = cJSON_CreateObject();
    int err = PM_OK;

    cJSON_AddItemToArray(list, o);
    cJSON_AddStringToObject(o, "device",
                            pm_device_get_info(pm_clones_device(clones, i))->address);
    cJSON_AddNumberToObject(o, "examples", pm_clones_examples(clones, i));
    cJSON_AddNumberToObject(o, "activations", (double)m.activations);
    cJSON_AddNumberToObject(o, "peak_live", (double)m.peak_live);
    cJSON_AddNumberToObject(o, "variables", (double)m.variables);
    cJSON_AddNumberToObject(o, "gradients", (double)m.gradients);
    cJSON_AddNumberToObject(o, "slots", (double)m.slots);
    cJSON_AddNumberToObject(o, "averages", (double)m.averages);
    cJSON_AddNumberToObject(o, "constants", (double)m.constants);
    cJSON_AddNumberToObject(o, "staging", (double)m.staging);
    cJSON_AddNumberToObject(o, "workspace", (double)m.workspace);
    cJSON_AddNumberToObject(o, "total", (double)m.total);
    cJSON_AddNumberToObject(o, "calls", m.calls);
    cJSON_AddNumberToObject(o, "calls_again", m.again);
    cJSON_AddNumberToObject(o, "work_again", m.again_work);
    PM_TRY(pm_plan_counts_json(pm_clones_plan(clones, i, 0), o));
    if (pm_clones_frames(clones) > 1)
        PM_TRY(describe_frames(clones, i, cJSON_AddArrayToObject(o, "sizes")));
out:
    return err;
}

/* Prints the plans of a clone, one per size of pictures. */
static void print_plans(const struct pm_clones *clones, int i, FILE *f, bool calls)
{
    const struct pm_plan_memory m = pm_clones_memory(clones, i);
    const int frames = pm_clones_frames(clones);

    for (int k = 0; k < frames; k++)
        pm_plan_print(pm_clones_plan(clones, i, k), f, calls);
    if (frames > 1)
        fprintf(f, "%d sizes share one block of activations: %.1f MiB, total %.1f MiB on the "
                "device, staging %.1f MiB on the host\n", frames, (double)m.activations / 1048576,
                (double)m.total / 1048576, (double)m.staging / 1048576);
}

/* Prints the memory and cost of the other choices of run.recompute. */
static int show_recomputed(const struct pm_clones_options *options, FILE *f, struct cJSON *list)
{
    static const struct { enum pm_recompute mode; const char *name; } modes[] = {
        { PM_RECOMPUTE_HALF, "half" }, { PM_RECOMPUTE_MOST, "most" },
    };
    struct pm_clones *clones = NULL;
    int err = PM_OK;

    for (size_t k = 0; k < PM_COUNT(modes); k++) {
        struct pm_clones_options o = *options;

        o.recompute = modes[k].mode;
        PM_TRY(pm_clones_create(&o, &clones));
        for (int i = 0; i < o.count; i++) {
            struct pm_plan_memory m = pm_clones_memory(clones, i);
            struct cJSON *shown = cJSON_GetArrayItem(list, i), *all, *one;
            char clone[32] = "";

            if (o.count > 1)
                snprintf(clone, sizeof clone, " (clone %d)", i + 1);
            all = cJSON_GetObjectItem(shown, "recompute");
            all = all ? all : cJSON_AddObjectToObject(shown, "recompute");
            one = cJSON_AddObjectToObject(all, modes[k].name);
            cJSON_AddNumberToObject(one, "activations", (double)m.activations);
            cJSON_AddNumberToObject(one, "total", (double)m.total);
            cJSON_AddNumberToObject(one, "calls_again", m.again);
            cJSON_AddNumberToObject(one, "work_again", m.again_work);
            if (f)
                fprintf(f,
                        "with run.recompute=%s%s: activations %.1f MiB, total %.1f MiB; %d calls "
                        "run again, about %.0f %% more work\n",
                        modes[k].name, clone, (double)m.activations / 1048576,
                        (double)m.total / 1048576, m.again, 100 * m.again_work);
        }
        pm_clones_destroy(&clones);
    }
out:
    pm_clones_destroy(&clones);
    return err;
}

int pm_show_plan(const struct pm_config *c, FILE *f, bool calls, struct cJSON *list)
{
    struct cJSON *own = list ? NULL : cJSON_CreateArray();
    struct pm_experiment *e = NULL;
    struct pm_clones *clones = NULL;
    struct pm_clone_spec *specs;
    struct pm_clones_options options;
    int count, err = PM_OK;

    if (c->run.batch_size == PM_WORD)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: run.batch_size: \"auto\" needs the data, which does not exist or is "
                       "not converted yet: set a number to see the plan",
                       pm_config_source(c, "run.batch_size")));
    PM_TRY(pm_experiment_open(c, pm_experiment_if_there(c, PM_OPEN_TRAIN), &e));
    PM_TRY(pm_experiment_devices(e, &specs, &count));
    PM_TRY(pm_experiment_say_devices(e));
    pm_experiment_clones(e, specs, count, &options);
    options.slots = PM_STEP_SLOTS;
    options.dry_run = true;
    if (pm_summaries_observe(c))
        PM_TRY(pm_activations_observed(e, &options.observed));
    PM_TRY(pm_clones_create(&options, &clones));
    list = list ? list : own;
    for (int i = 0; i < count; i++) {
        PM_TRY(describe(clones, i, list));
        if (f)
            print_plans(clones, i, f, calls);
    }
    if (options.recompute == PM_RECOMPUTE_OFF)
        PM_TRY(show_recomputed(&options, f, list));
out:
    cJSON_Delete(own);
    pm_clones_destroy(&clones);
    pm_experiment_close(&e);
    return err;
}

int pm_check_net(const struct pm_config *c, bool *built)
{
    struct pm_experiment *e = NULL;
    struct pm_net *net = NULL;
    const int data = pm_experiment_if_there(c, PM_OPEN_TRAIN);
    int err = PM_OK;

    *built = data || pm_experiment_unconverted(c) || (c->model.onnx && !c->model.onnx_new_head) ||
             (c->model.num_classes > 0 &&
              (c->input.size.count > 0 || c->buckets_count > 0 || c->model.name ||
               c->model.onnx));
    if (!*built)
        return PM_OK;
    PM_TRY(pm_experiment_open(c, data, &e));
    for (int i = 0; i < e->frames_count; i++) {
        const struct pm_net_want want = { PM_USE_TRAIN, 1, e->frames[i].height,
                                          e->frames[i].width };

        PM_TRY(pm_experiment_net(e, want, &net, NULL));
        pm_net_destroy(&net);
    }
out:
    pm_net_destroy(&net);
    pm_experiment_close(&e);
    return err;
}

/* Returns how many numbers training changes in the net's variables. */
static int64_t trainable(const struct pm_net *net)
{
    int64_t count = 0;

    for (int i = 0; i < net->var_count; i++)
        if (net->vars[i]->trainable)
            count += (int64_t)pm_shape_count(net->vars[i]->shape);
    return count;
}

int pm_show_layers(const struct pm_config *c, struct cJSON **out, int64_t *trainable_parameters)
{
    struct pm_experiment *e = NULL;
    struct pm_net *net = NULL, *whole = NULL;
    int err = PM_OK;

    PM_TRY(pm_experiment_open(c, pm_experiment_if_there(c, PM_OPEN_TRAIN), &e));
    e->plain = true; /* the list omits quantisation, because the config adds it again */
    PM_TRY(pm_experiment_net(e, (struct pm_net_want){ PM_USE_HEADS, 1, 0, 0 }, &net, NULL));
    if ((e->net_row && e->net_row->second) ||
        (e->task_row->net_ends && e->task_row->net_ends(e->task).sequence))
        PM_TRY(pm_experiment_net(e, (struct pm_net_want){ PM_USE_PREDICT, 1, 0, 0 }, &whole, NULL));
    *trainable_parameters = trainable(whole ? whole : net);
    *out = pm_net_to_json(net);
out:
    pm_net_destroy(&whole);
    pm_net_destroy(&net);
    pm_experiment_close(&e);
    return err;
}
