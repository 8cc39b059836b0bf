/* The small files of a run folder. The first byte modulo 8 chooses the file that the rest of the
 * input becomes:
 *   0 a checkpoint's .json ("@" stands for the correct checksum of the tensors)
 *   1 best.json
 *   2 keep.json
 *   3 metrics.jsonl, which is cut as on a resume; byte / 8 is the step
 *   4 shares.json
 *   5 to 7 as 0 to 2; in addition a checkpoint is saved and becomes the best. Then the folder is
 *     made anew, otherwise only that file changes. */
#include "fuzz.h"

#include <pumice/checkpoint.h>
#include <pumice/data.h>
#include <pumice/formats.h>
#include <pumice/report.h>

#include <cjson/cJSON.h>

#include "clones/balancer.h"
#include "observers/loss_averages.h"

static char sha[65];

static void write_tensors(const char *name)
{
    static const float values[2] = { 1, 2 };
    const struct pm_file_tensor t = { .name = "w", .type = PM_DTYPE_F32, .rank = 1, .dim = { 2 },
                                     .data = values };

    if (pm_safetensors_write(fuzz_path(name), &t, 1, NULL, sha) < 0)
        abort();
}

static void make_run(void)
{
    pm_remove_tree(fuzz_folder);
    if (pm_make_folders(fuzz_path("checkpoints")) < 0)
        abort();
    write_tensors("checkpoints/step-000001.safetensors");
    write_tensors("checkpoints/best-000001.safetensors");
}

/* Writes the input with the checksum inserted. */
static void put_json(const char *path, const uint8_t *data, size_t size)
{
    struct pm_str s = { 0 };

    for (size_t i = 0; i < size; i++)
        if (data[i] == '@')
            pm_str_add(&s, "%s", sha);
        else
            pm_str_bytes(&s, data + i, 1);
    fuzz_write(path, s.text, s.length);
    pm_str_free(&s);
}

/* Reads what a resumed run reads from a checkpoint's .json. */
static void read_state(const struct pm_checkpoint *c)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_dataset_info info = { 0 };
    struct pm_loss_averages averages = { 0 };
    cJSON *state = cJSON_Parse(c->state);
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(state, "data");

    pm_loss_averages_read(&averages, cJSON_GetObjectItem(state, "loss_averages"));
    for (int i = 0; i < averages.count; i++)
        if (averages.list[i].value != averages.list[i].value || strlen(averages.list[i].name) > 63)
            __builtin_trap();
    if (data && pm_dataset_info_parse(a, data, "fuzz", &info) == PM_OK)
        for (int i = 0; i < info.num_classes; i++)
            if (info.labels && info.labels[i] && strlen(info.labels[i]) > 1 << 20)
                __builtin_trap();
    pm_loss_averages_free(&averages);
    cJSON_Delete(state);
    pm_arena_destroy(&a);
}

static void open_checkpoints(const char *value)
{
    struct pm_checkpoint *c = NULL;
    float w[2];

    if (pm_checkpoint_open(fuzz_folder, value, "fuzz", &c) == PM_OK) {
        if (pm_checkpoint_read(c, "w", PM_SHAPE1(2), w) == PM_OK && w[1] != 2)
            __builtin_trap();
        if (c->state)
            read_state(c);
    }
    pm_checkpoint_close(&c);
    pm_checkpoint_newest_step(fuzz_folder);
}

static void save(void)
{
    static const float values[2] = { 1, 2 };
    const struct pm_state_tensor t = { "w", PM_SHAPE1(2), (float *)(void *)values };
    const struct pm_keep keep = { .newest = 1, .every_hours = 1 };

    pm_checkpoint_settle(fuzz_folder, 1, &keep);
    pm_checkpoint_save(fuzz_folder, 2, &t, 1, "{}", &keep);
    pm_checkpoint_keep_best(fuzz_folder, 2, "accuracy", 0.5, true, NULL);
}

static void read_metrics(uint64_t step)
{
    struct pm_metrics *m = NULL;

    if (pm_metrics_open(fuzz_folder, step, &m) == PM_OK)
        pm_metrics_add(m, "train", 70, NULL, 0);
    pm_metrics_close(&m);
}

static void read_shares(void)
{
    struct pm_balanced clones[] = { { .device = "CPU", .share = 1 },
                                    { .host = "big", .device = "GPU", .share = 1 } };

    for (int count = 1; count <= 2; count++) {
        const bool taken = pm_balancer_load(fuzz_folder, clones, count);

        for (int i = 0; i < count; i++)
            if (!(clones[i].share > 0) || (!taken && count == 1 && clones[i].share != 1))
                __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "checkpoints/step-000001.json", "checkpoints/best.json",
                                         "checkpoints/keep.json", "metrics.jsonl", "shares.json" };

    if (size == 0)
        return 0;
    if (fuzz_begin())
        make_run();
    const int which = data[0] % 8 % 5;
    const bool saves = data[0] % 8 >= 5;
    const char *path = fuzz_path(names[which]);

    if (saves)
        make_run();
    put_json(path, data + 1, size - 1);
    if (which == 3)
        read_metrics(data[0] / 8);
    else if (which == 4)
        read_shares();
    else
        open_checkpoints(which == 0 ? "latest" : "best");
    if (saves) {
        save();
        make_run();
    } else {
        remove(path);
    }
    return 0;
}
