/* A full disk, and signals during writes: the newest complete checkpoint is kept, temporary
 * files are removed, and the run continues from the checkpoint. Where no small disk can be
 * mounted, a limit on the size of files replaces it. */
#include "e2e/program.h"

#include <errno.h>
#include <pumice/rng.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

/* Makes an undisturbed run for comparison. */
static void make_whole(void)
{
    if (!pm_is_folder(in("whole")))
        check(train_net(NULL, "whole", "run.steps=8 run.save_every_steps=1 run.keep=2"), 0);
}

/* ---- full disks -------------------------------------------------------------------------- */

/* With 64 filters a checkpoint is larger than the other files of a run. */
#define WIDE " run.steps=8 run.save_every_steps=2 model.layers.0.filters=64"

static void files_cannot_grow(void **state)
{
    (void)state;
    check(train_net(NULL, "wide", WIDE), 0);
    check(train_net(NULL, "small", WIDE " run.steps=2"), 0);
    check(train_net(&(struct how){ .largest_file = 6000 }, "small", WIDE), 1,
          "checkpoint of step 4 was not saved", "File too large", "ulimit -f",
          "step-000002 is still good");
    assert_int_equal(temporaries(in("small")), 0);
    assert_false(pm_file_exists(in("small/checkpoints/step-000004.safetensors")));
    check(run(NULL, "checkpoint inspect %s", in("small")), 0);
    check(train_net(NULL, "small", WIDE), 0);
    same_bytes(in("small/checkpoints/step-000008.safetensors"),
               in("wide/checkpoints/step-000008.safetensors"));
}

static void a_new_run_on_a_full_disk(void **state)
{
    (void)state;
    check(train_net(&(struct how){ .largest_file = 1000 }, "none", ""), 1, in("none/config.json"),
          "File too large");
    assert_int_equal(temporaries(in("none")), 0);
    check(run(&(struct how){ .largest_file = 1000 }, "dataset make shapes %s size=16 train=9",
              in("drawn")), 1, "File too large");
    assert_false(pm_is_folder(in("drawn")));
    assert_int_equal(temporaries(folder), 0);
    check(train_net(NULL, "none", ""), 0);
}

/* Mounts a disk of one MiB at FOLDER/disk, visible to this process and its children only. */
static bool mount_disk(void)
{
    if (mkdir(in("disk"), 0755) != 0)
        return false;
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", in("disk"), "tmpfs", 0, "size=1m") != 0)
        return false;
    return true;
}

/* Fills the disk until `left` bytes are free. */
static void fill(size_t left)
{
    static const char block[4096];
    FILE *f = fopen(in("disk/filler"), "wb");
    struct statvfs s;

    assert_non_null(f);
    while (statvfs(in("disk"), &s) == 0 && s.f_bavail * s.f_bsize > left &&
           fwrite(block, 1, sizeof block, f) == sizeof block && fflush(f) == 0)
        ;
    fclose(f);
}

/* Training continues when nothing can be written, with one warning for each file. A checkpoint
 * that does not fit ends the run. With free space it continues to the same bits. */
static void disk_of_one_megabyte(void **state)
{
    char arguments[2048], *text;
    char name[512];
    struct result r;
    pid_t pid;

    (void)state;
    make_whole();
    if (!mount_disk()) {
        print_message("skipped: a tmpfs cannot be mounted here (%s)\n", strerror(errno));
        skip();
    }
    check(train_net(NULL, "disk/run", "run.steps=2"), 0);
    fill(0);
    check(train_net(NULL, "disk/run", "run.steps=8 run.save_every_steps=2"), 1, in("disk/run"),
          "No space left");
    assert_int_equal(temporaries(in("disk")), 0);
    fill(3 * 4096);
    check(train_net(NULL, "disk/run", "run.steps=8 run.save_every_steps=2"), 1,
          "checkpoint of step 4 was not saved", "No space left", "step-000002 is still good");
    assert_int_equal(temporaries(in("disk")), 0);
    unlink(in("disk/filler"));

    snprintf(name, sizeof name, "%s", in("filled"));
    snprintf(arguments, sizeof arguments, "train %s run.folder=%s run.steps=0 "
             "run.log_every_steps=1 run.save_every_steps=0", in("net.json"), in("disk/run"));
    pid = start(NULL, name, arguments);
    for (int i = 0; i < 3000; i++, usleep(20000)) {
        text = pm_file_exists(in("filled.err")) ? get_text(in("filled.err")) : pm_strdup("");
        const bool warned = strstr(text, "metrics.jsonl lacks lines");
        if (strstr(text, "step 3 ") && !pm_file_exists(in("disk/filler")))
            fill(0);
        pm_free(text);
        if (warned)
            break;
    }
    usleep(200000); /* many more steps; the line of each cannot be written */
    unlink(in("disk/filler"));
    kill(pid, SIGTERM);
    r = finish(pid, name);
    assert_int_equal(r.code, 143);
    assert_int_equal(count_text(r.err, "metrics.jsonl lacks lines"), 1);
    assert_true(count_text(r.err, "warning: ") <= 3);
    drop(&r);
    text = get_text(in("disk/run/metrics.jsonl"));
    assert_int_equal(count_text(text, "{\"kind\""), count_text(text, "}\n")); /* whole lines only */
    pm_free(text);
    assert_int_equal(temporaries(in("disk")), 0);

    assert_int_equal(pm_remove_tree(in("disk/run")), PM_OK);
    check(train_net(NULL, "disk/run", "run.steps=4"), 0);
    check(train_net(NULL, "disk/run", "run.steps=8"), 0);
    same_bytes(in("disk/run/checkpoints/step-000008.safetensors"),
               in("whole/checkpoints/step-000008.safetensors"));
    umount(in("disk"));
}

/* ---- signals ----------------------------------------------------------------------------- */

static int files_below(const char *path)
{
    struct pm_arena *a = pm_arena_create();
    char **names = NULL;
    size_t n = 0;

    if (pm_list_folder(a, path, &names, &n) < 0)
        n = 0;
    pm_arena_destroy(&a);
    return (int)n;
}

/* Every step is saved, so most signals arrive during a save. The newest checkpoint can be read
 * after any signal, and the next run removes the temporary files. */
static void signals_during_saves(void **state)
{
    static const int signals[] = { SIGTERM, SIGKILL, SIGINT };
    struct pm_rng r = pm_rng_make(5, pm_hash("signals"), 0, 0);
    char name[512];
    char arguments[2048];
    int most = 0, saved = 0;

    (void)state;
    snprintf(name, sizeof name, "%s", in("signal"));
    snprintf(arguments, sizeof arguments, "train %s run.folder=%s run.steps=0 run.keep=2 "
             "run.save_every_steps=1 run.log_every_steps=1000", in("net.json"), in("torn"));
    for (int i = 0; i < 18; i++) {
        pid_t pid = start(NULL, name, arguments);
        struct result result;

        usleep((useconds_t)(100000 + 500000 * pm_rng_uniform(&r)));
        kill(pid, signals[i % 3]);
        result = finish(pid, name);
        /* Before training handles signals, they end the process as usual. */
        if (signals[i % 3] == SIGKILL || result.code < 0)
            assert_int_equal(result.code, -signals[i % 3]);
        else
            assert_int_equal(result.code, 128 + signals[i % 3]);
        drop(&result);
        if (pm_file_exists(in("torn/latest"))) {
            check(run(NULL, "checkpoint inspect %s", in("torn")), 0);
            saved++;
        }
        const int files = files_below(in("torn/checkpoints"));
        most = files > most ? files : most;
    }
    assert_true(saved > 0);
    assert_true(most <= 2 * 2 + 4); /* two checkpoints, one being written, and its temporary
                                     * files */
    check(train_net(NULL, "torn",
                "run.steps=1000000 run.keep=2 run.save_every_steps=1 "
                "schedule.base_lr=900"),
          1, "not finite", "last good checkpoint: step ");
    assert_int_equal(temporaries(in("torn")), 0);
}

/* The second signal ends a run that does not reach its end. */
static void second_signal(void **state)
{
    char name[512];
    char arguments[2048];
    struct result r;
    pid_t pid;

    (void)state;
    snprintf(name, sizeof name, "%s", in("second"));
    snprintf(arguments, sizeof arguments, "train %s run.folder=%s run.steps=0 "
             "run.save_every_steps=1 run.hang_seconds=0", in("net.json"), in("stuck"));
    pid = start(&(struct how){ .environment = "PM_HANG=0:3" }, name, arguments);
    for (int i = 0; i < 3000 && !pm_file_exists(in("stuck/checkpoints/step-000002.json")); i++)
        usleep(20000);
    usleep(100000);
    kill(pid, SIGINT);
    usleep(200000);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    kill(pid, SIGINT);
    r = finish(pid, name);
    assert_int_equal(r.code, -SIGINT);
    drop(&r);
    check(run(NULL, "checkpoint inspect %s", in("stuck")), 0);
}

static int set_up(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_cannot_grow),
        cmocka_unit_test(a_new_run_on_a_full_disk),
        cmocka_unit_test(disk_of_one_megabyte),
        cmocka_unit_test(signals_during_saves),
        cmocka_unit_test(second_signal),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
