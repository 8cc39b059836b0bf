/* A run folder's small files. The first byte chooses: a checkpoint's .json (where "@" stands for
 * the tensors' right checksum), best.json, keep.json or metrics.jsonl, which is cut back as a
 * resumed run does. */
#include "fuzz.h"

#include <pumice/checkpoint.h>
#include <pumice/formats.h>
#include <pumice/report.h>

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
    if (pm_make_folders(fuzz_path("checkpoints")) < 0)
        abort();
    write_tensors("checkpoints/step-000001.safetensors");
    write_tensors("checkpoints/best-000001.safetensors");
}

/* The input with the checksum in its place. */
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

static void open_checkpoints(const char *value)
{
    struct pm_checkpoint *c = NULL;
    float w[2];

    if (pm_checkpoint_open(fuzz_folder, value, "fuzz", &c) == PM_OK &&
        pm_checkpoint_read(c, "w", PM_SHAPE1(2), w) == PM_OK && w[1] != 2)
        __builtin_trap();
    pm_checkpoint_close(&c);
    pm_checkpoint_newest_step(fuzz_folder);
}

static void save(void)
{
    static const float values[2] = { 1, 2 };
    const struct pm_state_tensor t = { "w", PM_SHAPE1(2), (float *)(void *)values };
    const struct pm_keep keep = { .newest = 1, .every_hours = 1 };

    pm_checkpoint_save(fuzz_folder, 2, &t, 1, "{}", &keep);
    pm_checkpoint_keep_best(fuzz_folder, 2, "accuracy", 0.5, true, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "checkpoints/step-000001.json", "checkpoints/best.json",
                                         "checkpoints/keep.json", "metrics.jsonl" };
    struct pm_metrics *m = NULL;

    if (size == 0)
        return 0;
    fuzz_begin();
    pm_remove_tree(fuzz_folder);
    make_run();
    const int which = data[0] % 4;
    put_json(fuzz_path(names[which]), data + 1, size - 1);
    if (which == 3) {
        if (pm_metrics_open(fuzz_folder, data[0] / 4, &m) == PM_OK)
            pm_metrics_add(m, "train", 70, NULL, 0);
        pm_metrics_close(&m);
        return 0;
    }
    open_checkpoints(which == 0 ? "latest" : "best");
    save();
    return 0;
}
