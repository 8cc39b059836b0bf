/* Shared by the tests of imported models: runs a model with its inputs on a device and compares
 * the outputs. */
#ifndef IMPORT_COMMON_H
#define IMPORT_COMMON_H

#include "data/data_common.h"
#include "device/drivers.h"

#include <pumice/import.h>
#include <pumice/plan.h>

/* Opens the device with this name; NULL when there is none. */
static inline struct pm_device *device_named(const char *name)
{
    struct pm_device_info *list = NULL;
    struct pm_device *d = NULL;
    size_t count, index;

    ok(pm_device_list(&list, &count));
    if (pm_device_find(list, count, name, "test", &index) == 0)
        ok(pm_device_open(&list[index], NULL, &d));
    pm_free(list);
    return d;
}

/* Reads input k or output 0 of a case folder. */
static inline float *read_tensor(const char *path, struct pm_arena *a, struct pm_onnx_tensor *t)
{
    float *v;

    ok(pm_onnx_read_tensor(path, a, t));
    v = pm_arena_alloc(a, t->count * sizeof *v + 1);
    ok(pm_onnx_floats(t, 0, t->count, v));
    return v;
}

/* A shape of the same number of elements that a node may have: surplus axes are merged. */
static inline struct pm_shape node_shape(int rank, const int64_t *dim)
{
    struct pm_shape s = { .rank = rank < 1 ? 1 : rank < PM_MAX_RANK ? rank : PM_MAX_RANK };

    for (int i = 0; i < s.rank; i++)
        s.dim[i] = 1;
    for (int i = 0; i < rank; i++)
        s.dim[i < s.rank ? i : s.rank - 1] *= (int)dim[i];
    return s;
}

/* Runs the net on the device with these inputs. Returns the output's values; the caller frees
 * them. */
static inline float *run_net(struct pm_device *d, struct pm_net *net, const struct pm_node *out,
                             char (*names)[16], float *const *inputs, int count)
{
    const char *outputs[] = { out->name, NULL };
    const size_t bytes = pm_shape_count(out->out_shape) * sizeof(float);
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;
    float *result = pm_malloc(bytes);

    ok(pm_variables_create(d, net, false, NULL, &v));
    ok(pm_variables_allocate(v));
    ok(pm_variables_init(v, 1, NULL));
    ok(pm_plan_create(net, d, v, &(struct pm_plan_options){ .loss_share = 1, .micro_batches = 1,
                                                            .outputs = outputs, .slots = 1,
                                                            .name = "case" }, &plan));
    ok(pm_plan_load(plan));
    for (int i = 0; i < count; i++)
        memcpy(pm_plan_input(plan, 0, names[i], 0), inputs[i],
               pm_shape_count(pm_net_find(net, names[i])->out_shape) * sizeof(float));
    ok(pm_plan_submit(plan, 0));
    ok(pm_plan_wait(plan, 0));
    memcpy(result, pm_plan_output(plan, 0, out->name, 0), bytes);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    return result;
}

/* Imports and runs model.onnx in a folder and compares with the stored output. */
static inline void run_case(struct pm_device *device, const char *folder)
{
    struct pm_import *import = NULL;
    const struct pm_import_options options = { .whole = true };
    struct pm_arena *a = pm_arena_create();
    struct pm_net *net = pm_net_create();
    struct pm_node *inputs[8] = { NULL }, *out = NULL;
    struct pm_onnx_tensor t;
    float *values[8];
    char names[8][16];
    double worst = 0;
    int count = 0;

    ok(pm_import_open(pm_arena_printf(a, "%s/model.onnx", folder), &import));
    const struct pm_onnx_model *model = pm_import_model(import);
    for (; count < (int)model->input_count; count++) {
        const char *path = pm_arena_printf(a, "%s/test_data_set_0/input_%d.pb", folder, count);

        values[count] = read_tensor(path, a, &t);
        snprintf(names[count], sizeof names[count], "input%d", count);
        inputs[count] = pm_net_input(net, names[count], node_shape(t.rank, t.dim), PM_F32);
    }
    ok(pm_import_graph(import, net, inputs, &options, &out));
    float *y = run_net(device, net, out, names, values, count);
    const float *expected = read_tensor(
        pm_arena_printf(a, "%s/test_data_set_0/output_0.pb", folder), a, &t);
    assert_int_equal(pm_shape_count(out->out_shape), t.count);
    for (size_t i = 0; i < t.count; i++)
        worst = fmax(worst,
                     fabs((double)y[i] - (double)expected[i]) / fmax(1, fabs((double)expected[i])));
    if (!(worst < 1e-5))
        fail_msg("%s: differs by %g", folder, worst);
    pm_free(y);
    pm_net_destroy(&net);
    pm_import_close(&import);
    pm_arena_destroy(&a);
}

#endif
