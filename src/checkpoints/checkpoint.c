/* checkpoint: saves checkpoints. checkpoint_open.c opens them, checkpoint_keep.c decides which ones
 * stay, checkpoint_files.c handles the folder's files. */
#include "checkpoints/checkpoint_files.h"

#include <pumice/report.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether a tensors' file has no .json, or a .json that names another file. If the .json is
 * unreadable, the tensors stay: they may be all that is left of the state. */
static bool is_orphan(const char *folder, const char *name)
{
    struct pm_str json = { 0 }, path = { 0 };
    struct record r;
    bool orphan = false;
    const char *dot = strstr(name, ".safetensors");

    if (!dot || (strcmp(dot, ".safetensors") != 0 && strcmp(dot, ".safetensors.before") != 0))
        return false;
    pm_str_add(&json, "%.*s.json", (int)(dot - name), name);
    if (!pm_file_exists(pm_ckpt_path(&path, folder, json.text))) {
        orphan = true;
    } else {
        if (pm_ckpt_record_read(folder, json.text, &r) < 0)
            PM_DEBUG("checkpoint", "%s is not removed: %s", name, pm_error_text());
        else
            orphan = strcmp(r.file, name) != 0;
        pm_ckpt_record_free(&r);
    }
    pm_str_free(&json);
    pm_str_free(&path);
    return orphan;
}

static bool is_leftover(const char *folder, const char *name)
{
    return strstr(name, ".tmp-") || is_orphan(folder, name);
}

/* Whether the process that made the temporary file NAME.tmp-PID-... has ended. mark: the part of
 * name from ".tmp-". */
static bool is_maker_gone(const char *folder, const char *name, const char *mark)
{
    const long pid = strtol(mark + strlen(".tmp-"), NULL, 10);
    struct pm_str path = { 0 };
    const bool gone = pid > 0 && pm_temporary_is_left(pm_ckpt_path(&path, folder, name), pid);

    pm_str_free(&path);
    return gone;
}

/* Whether a file is left over in RUN itself or its eval folder. Temporary files of earlier
 * trainings are left over. Files that an evaluation, or another thread of this process, may be
 * writing there are left over only if their maker has ended. */
static bool is_leftover_of_run(const char *folder, const char *name)
{
    static const struct {
        const char *name;
        bool shared;
    } files[] = {
        { "latest", false },      { "metrics.jsonl", false }, { "config.json", false },
        { "shares.json", false }, { "run.json", false },      { "per_class.csv", false },
        { "init.json", false },
        { "evaluation.json", true }, { "report.html", true },
    };
    const char *mark = strstr(name, ".tmp-");

    for (size_t i = 0; mark && i < PM_COUNT(files); i++)
        if ((size_t)(mark - name) == strlen(files[i].name) &&
            strncmp(name, files[i].name, strlen(files[i].name)) == 0)
            return (!files[i].shared && strtol(mark + strlen(".tmp-"), NULL, 10) != getpid()) ||
                   is_maker_gone(folder, name, mark);
    return false;
}

/* Whether a file is left over in RUN/eval_SPLIT: any temporary file whose process has ended. Other
 * processes may be evaluating. */
static bool is_leftover_of_evaluation(const char *folder, const char *name)
{
    const char *mark = strstr(name, ".tmp-");

    return mark && is_maker_gone(folder, name, mark) &&
           (strncmp(name, PM_EVALUATION_NAME, strlen(PM_EVALUATION_NAME)) == 0 ||
            is_leftover_of_run(folder, name));
}

static int clean_folder(const char *folder, bool (*leftover)(const char *folder, const char *name))
{
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    struct pm_str path = { 0 };
    char **names;
    size_t count = 0;

    if (pm_is_folder(folder))
        PM_TRY(pm_list_folder(a, folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        if (!leftover(folder, names[i]))
            continue;
        PM_DEBUG("checkpoint", "%s: removing %s, which an interrupted save left", folder, names[i]);
        if (unlink(pm_ckpt_path(&path, folder, names[i])) != 0)
            PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be removed: %s", path.text, strerror(errno)));
    }
out:
    pm_str_free(&path);
    pm_arena_destroy(&a);
    return err;
}

/* Cleans the evaluations' folders, one per split. */
static int clean_evaluations(const char *run)
{
    static const char start[] = PM_EVALUATIONS_OF;
    int err = PM_OK;
    struct pm_arena *a = pm_arena_create();
    char **names;
    size_t count = 0;

    if (pm_is_folder(run))
        PM_TRY(pm_list_folder(a, run, &names, &count));
    for (size_t i = 0; i < count; i++)
        if (strncmp(names[i], start, strlen(start)) == 0)
            PM_TRY(clean_folder(pm_arena_printf(a, "%s/%s", run, names[i]),
                                is_leftover_of_evaluation));
out:
    pm_arena_destroy(&a);
    return err;
}

int pm_checkpoint_clean(const char *run)
{
    int err = PM_OK;
    struct pm_str folder = { 0 };

    PM_TRY(clean_folder(run, is_leftover_of_run));
    PM_TRY(clean_evaluations(run));
    PM_TRY(clean_folder(pm_ckpt_path(&folder, run, "eval"), is_leftover_of_run));
    PM_TRY(clean_folder(pm_ckpt_path(&folder, run, "checkpoints"), is_leftover));
    pm_ckpt_best_clean(folder.text);
out:
    pm_str_free(&folder);
    return err;
}

/* If an earlier process saved the same step, gives its tensors a second link and makes its .json
 * name that link. So the old checkpoint stays complete while the file is replaced. */
static int set_aside(const char *folder, const char *json_name, const char *file)
{
    int err = PM_OK;
    struct pm_str path = { 0 }, before = { 0 };
    struct record r = { 0 };

    if (!pm_file_exists(pm_ckpt_path(&path, folder, json_name)))
        goto out;
    if (pm_ckpt_record_read(folder, json_name, &r) < 0 || strcmp(r.file, file) != 0)
        goto out; /* damaged, or set aside already */
    pm_ckpt_path(&path, folder, file);
    pm_str_add(&before, "%s.before", path.text);
    if (link(path.text, before.text) == 0)
        PM_TRY(pm_ckpt_record_write_as(&r, folder, json_name, strrchr(before.text, '/') + 1));
    else
        PM_DEBUG("checkpoint", "%s: cannot be linked: %s", path.text, strerror(errno));
out:
    pm_ckpt_record_free(&r);
    pm_str_free(&path);
    pm_str_free(&before);
    return err;
}

/* state: the caller's members; its list "betas", of Adam and its kin, becomes the notes beta1 and
 * beta2, from which checkpoint convert computes TensorFlow's beta1_power and beta2_power. */
static int write_tensors(const char *path, uint64_t step, const struct pm_state_tensor *tensors,
                         size_t count, const cJSON *state, char sha256[65])
{
    static const char *const names[] = { PM_BETA1_NOTE, PM_BETA2_NOTE };
    struct pm_file_tensor *list = pm_calloc(count + 1, sizeof *list);
    const cJSON *betas = cJSON_GetObjectItemCaseSensitive(state, "betas");
    char number[32], beta[2][32];
    const char *meta[9] = { "format", "pumice", "step", number };
    size_t n = 4;

    snprintf(number, sizeof number, "%llu", (unsigned long long)step);
    for (int k = 0; k < 2 && cJSON_GetArraySize(betas) == 2; k++) {
        snprintf(beta[k], sizeof beta[k], "%.9g", cJSON_GetArrayItem(betas, k)->valuedouble);
        meta[n++] = names[k];
        meta[n++] = beta[k];
    }
    for (size_t i = 0; i < count; i++) {
        list[i] = (struct pm_file_tensor){ .name = tensors[i].name, .type = PM_DTYPE_F32,
                                          .rank = tensors[i].shape.rank, .data = tensors[i].data };
        for (int k = 0; k < list[i].rank; k++)
            list[i].dim[k] = tensors[i].shape.dim[k];
    }
    int err = pm_safetensors_write(path, list, count, meta, sha256);
    pm_free(list);
    return err;
}

/* Writes the name of the step's tensors to RUN/latest, only if it differs. */
static int write_latest(const char *run, const char *file)
{
    int err = PM_OK;
    struct pm_str path = { 0 }, text = { 0 };
    char *now = NULL;

    pm_str_add(&text, "checkpoints/%s\n", file);
    pm_ckpt_path(&path, run, "latest");
    if (pm_file_exists(path.text) && pm_file_read(path.text, &now, NULL) < 0)
        PM_DEBUG("checkpoint", "%s; the file is written again", pm_error_text());
    if (!now || strcmp(now, text.text) != 0)
        PM_TRY(pm_file_write(path.text, text.text, text.length));
out:
    pm_free(now);
    pm_str_free(&path);
    pm_str_free(&text);
    return err;
}

static int save(const char *run, const char *folder, uint64_t step,
                const struct pm_state_tensor *tensors, size_t count, cJSON *state)
{
    int err = PM_OK;
    struct pm_str path = { 0 }, text = { 0 };
    static const char *const own[] = { "step", "file", "sha256" };
    char file[64], json_name[64], sha256[65];
    bool orphan = false;

    pm_ckpt_step_name(step, ".safetensors", file);
    pm_ckpt_step_name(step, ".json", json_name);
    PM_TRY(pm_make_folder(folder));
    PM_TRY(pm_checkpoint_clean(run));
    PM_TRY(set_aside(folder, json_name, file));
    PM_TRY(write_tensors(pm_ckpt_path(&path, folder, file), step, tensors, count, state, sha256));
    orphan = true;
    for (size_t i = 0; i < PM_COUNT(own); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(state, own[i]);
    cJSON_AddNumberToObject(state, "step", (double)step);
    cJSON_AddStringToObject(state, "file", file);
    cJSON_AddStringToObject(state, "sha256", sha256);
    PM_TRY(pm_ckpt_write_json(folder, json_name, state));
    orphan = false;
    PM_TRY(write_latest(run, file));
    pm_ckpt_path(&text, folder, file);
    pm_str_add(&text, ".before");
    unlink(text.text);
out:
    if (orphan)
        unlink(path.text);
    pm_str_free(&path);
    pm_str_free(&text);
    return err;
}

int pm_checkpoint_save(const char *run, uint64_t step, const struct pm_state_tensor *tensors,
                       size_t count, const char *state, const struct pm_keep *keep)
{
    int err = PM_OK;
    struct pm_str folder = { 0 };
    cJSON *json = cJSON_Parse(state);

    if (!cJSON_IsObject(json))
        PM_TRY(pm_fail(PM_EFAIL, "checkpoint of step %llu: its state is not a JSON object",
                       (unsigned long long)step));
    pm_ckpt_path(&folder, run, "checkpoints");
    if ((err = save(run, folder.text, step, tensors, count, json)) < 0) {
        int64_t good = pm_checkpoint_newest_step(run);
        char name[64];
        pm_fail(err, "the checkpoint of step %llu was not saved: %s; %s%s",
                (unsigned long long)step, pm_error_text(),
                good < 0 ? "there is no earlier one" : pm_ckpt_step_name((uint64_t)good, "", name),
                good < 0 ? "" : " is still good");
        goto out;
    }
    pm_ckpt_keep_apply(folder.text, step, keep);
out:
    cJSON_Delete(json);
    pm_str_free(&folder);
    return err;
}

int pm_checkpoint_settle(const char *run, uint64_t step, const struct pm_keep *keep)
{
    int err = PM_OK;
    struct pm_str folder = { 0 };
    char file[64];

    if (pm_checkpoint_newest_step(run) != (int64_t)step)
        goto out; /* newer checkpoints are damaged: they stay until the next save */
    PM_TRY(pm_checkpoint_clean(run));
    PM_TRY(write_latest(run, pm_ckpt_step_name(step, ".safetensors", file)));
    pm_ckpt_keep_apply(pm_ckpt_path(&folder, run, "checkpoints"), step, keep);
out:
    pm_str_free(&folder);
    return err;
}
