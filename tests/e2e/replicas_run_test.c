/* Training with several processes, started by mpirun.
 *
 * - N processes with one device each have the bits of one process with N devices: by shared memory,
 *   by TCP, with unequal shares, with micro-batches, for each source of batch norm's moving
 *   averages, for every task. Evaluations have its figures and samples.
 * - A run can be resumed with another number of processes, and without a shared disk.
 * - A signal at one process stops all processes after the same step. If a process is killed or
 *   fails, all end, and the last whole step is saved. A paused process changes nothing. A flipped
 *   bit is found.
 * - Wrong starts are one line of error. */
#include "e2e/replicas_run.h"

/* The last evaluations differ only in the time of writing. */
static void same_evaluation(const char *a, const char *b)
{
    const char *const names[] = { a, b };
    char *text[2];

    for (int i = 0; i < 2; i++) {
        char *read = get_text(in("%s/evaluation.json", names[i]));
        cJSON *o = cJSON_Parse(read);

        assert_non_null(cJSON_GetObjectItem(o, "written"));
        cJSON_DeleteItemFromObject(o, "written");
        text[i] = cJSON_PrintUnformatted(o);
        cJSON_Delete(o);
        pm_free(read);
    }
    assert_string_equal(text[0], text[1]);
    free(text[0]);
    free(text[1]);
}

/* Compares one process with `ranks` devices and `ranks` processes with one device each. */
static void compare(const char *name, int ranks, const char *mpi, const char *more)
{
    char alone[64], together[64], both[1024];

    snprintf(alone, sizeof alone, "%s-1", name);
    snprintf(together, sizeof together, "%s-n", name);
    snprintf(both, sizeof both, "%s %s", cpus(ranks), more);
    check(train(0, "", alone, both), 0);
    check(train(ranks, mpi, together, both), 0);
    same_saved(alone, together, 10);
    same_saved(alone, together, 20);
    same_lines(alone, together);
    same_evaluation(alone, together);
}

static void processes_have_the_bits_of_devices(void **state)
{
    (void)state;
    compare("two", 2, "", "");
    compare("tcp", 2, "--mca btl tcp,self", "optim.name=adam schedule.base_lr=0.001");
    compare("three", 3, "", "run.batch_norm_update=all run.batch_size=13 run.log_loss=sum");
    compare("last", 2, "", "run.batch_norm_update=last run.micro_batches=2 run.batch_size=16");
    compare("unequal", 2, "", "devices.0.share=3 devices.1.share=1");
    compare("per-clone", 2, "",
            "schedule.policy=exponential schedule.epoch_count=per_clone "
            "schedule.num_epochs_per_decay=0.5");
}

/* The same with what only the chief writes, where its part of the batch is smaller than the number
 * of pictures that it shows, and with an early end. */
static void the_chief_reports(void **state)
{
    char *text;

    (void)state;
    compare("shown", 3, "",
            "run.batch_size=3 run.summary_every_steps=2 run.summary_activations=3 "
            "run.save_first_step=true run.trace_steps=[3,5]");
    text = get_text(in("shown-n/trace-000003.json"));
    assert_contains(text, "\"name\":\"host: optimizer\"");
    assert_contains(text, "\"name\":\"rank 1 (");
    assert_contains(text, "\"name\":\"rank 2 (");
    pm_free(text);
    compare("observed", 2, "", "run.summary_every_steps=2 run.summary_activations=training");
    compare("early", 2, "", "run.steps=40 schedule.base_lr=0 run.early_stop='{\"patience\":1}'");
}

/* A detector's losses are divided by a sum over the whole batch. Metrics of training batches, too,
 * count the whole batch. */
static void every_task_has_the_bits_of_devices(void **state)
{
    static const char *const tasks[] = { "shapes_detection", "shapes_segmentation" };

    (void)state;
    check(run(NULL, "dataset make shapes %s size=64 train=40 validation=8 test=8", in("large")), 0);
    for (size_t i = 0; i < PM_COUNT(tasks); i++)
        for (int ranks = 0; ranks <= 2; ranks += 2) {
            const struct how how = { .environment = launcher(ranks, "") };

            check(run(ranks ? &how : NULL,
                      "train %s/configs/%s.json data.folder=%s run.folder=%s-%d run.steps=4 "
                      "run.batch_size=5 run.summary_every_steps=2 run.log_every_steps=1 "
                      "run.train_metrics=true eval.every_steps=0 run.keep_best=none %s",
                      getenv("PUMICE_SOURCE"), tasks[i], in("large"), in("%s", tasks[i]), ranks,
                      cpus(2)),
                  0);
        }
    for (size_t i = 0; i < PM_COUNT(tasks); i++) {
        char alone[64], together[64];

        snprintf(alone, sizeof alone, "%s-0", tasks[i]);
        snprintf(together, sizeof together, "%s-2", tasks[i]);
        same_saved(alone, together, 4);
        same_lines(alone, together);
    }
}

/* Each process reads the sizes of the whole batch, so all take the same one of input.buckets. The
 * crops have many sizes. If no size holds a batch, every process ends. */
static void pictures_of_several_sizes(void **state)
{
    static const char more[] = "run.steps=8 run.batch_size=3 run.log_every_steps=1 "
                               "eval.every_steps=0 run.keep_best=none input.eval_size=64 "
                               "input.resizer=keep_aspect_ratio input.min_dimension=40 "
                               "input.max_dimension=64 'input.augment=[{\"name\":"
                               "\"random_crop_image\",\"min_aspect_ratio\":0.5,"
                               "\"max_aspect_ratio\":2}]'";

    (void)state;
    for (int ranks = 0; ranks <= 2; ranks += 2) {
        const struct how how = { .environment = launcher(ranks, "") };

        check(run(ranks ? &how : NULL,
                  "train %s/configs/shapes_detection.json data.folder=%s run.folder=%s %s %s "
                  "'input.buckets=[64,[40,64],[64,40],[48,48]]'", getenv("PUMICE_SOURCE"),
                  in("large"), in("sizes-%d", ranks), cpus(ranks ? 1 : 2), more), 0);
    }
    same_saved("sizes-0", "sizes-2", 8);
    same_lines("sizes-0", "sizes-2");
    const struct how how = { .environment = launcher(2, "") };
    struct result r = run(&how, "train %s/configs/shapes_detection.json data.folder=%s "
                          "run.folder=%s %s %s 'input.buckets=[[40,64]]'",
                          getenv("PUMICE_SOURCE"), in("large"), in("sizes-bad"), cpus(1), more);

    assert_int_equal(r.code, 3);
    assert_contains(r.err, "which no size of input.buckets holds; the largest is 40 x 64");
    drop(&r);
}

/* A damaged record is counted once, in every process. */
static void damaged_records_are_replaced(void **state)
{
    char more[2048];

    (void)state;
    make_damaged();
    snprintf(more, sizeof more, "data.folder=%s data.on_corrupt=skip", in("damaged"));
    compare("skip", 2, "", more);
}

/* All processes of a host can share one entry for the CPU. */
static void processes_share_the_cpu(void **state)
{
    (void)state;
    check(train(2, "", "shared", "devices='[\"cpu\"]'"), 0);
    same_bytes(in("two-n/checkpoints/step-000020.safetensors"),
               in("shared/checkpoints/step-000020.safetensors"));
}

static void bfloat16_changes_little(void **state)
{
    (void)state;
    check(train(2, "", "half", "run.exchange=bfloat16 devices='[\"cpu\"]'"), 0);
    same_losses("two-n", "half", 1, 1, 0); /* before the first update */
    same_losses("two-n", "half", 2, 20, 0.05);
}

static void a_run_goes_on_with_other_numbers(void **state)
{
    (void)state;
    check(train(2, "", "ten", "run.steps=10 devices='[\"cpu\"]'"), 0);
    for (int ranks = 0; ranks <= 3; ranks += ranks == 0 ? 2 : 1) {
        char name[32], command[2200];

        snprintf(name, sizeof name, "more-%d", ranks);
        snprintf(command, sizeof command, "cd %s && cp -r ten %s", folder, name);
        assert_int_equal(system(command), 0);
        check(train(ranks, "", name, cpus(ranks == 0 ? 1 : ranks)), 0);
        if (ranks == 2)
            same_saved("two-n", name, 20);
        else
            same_losses("two-n", name, 12, 20, 0.3); /* batch norm sees other parts */
    }
}

/* Without a shared disk: the chief has no checkpoint, or an old one, and rank 1 has the newest.
 * Each has a working folder of its own. */
static void the_newest_checkpoint_is_fetched(void **state)
{
    char command[4096];

    (void)state;
    snprintf(command, sizeof command, "cd %s && cp -r two-n thirty", folder);
    assert_int_equal(system(command), 0);
    check(train(2, "", "thirty", "run.steps=30 devices='[\"cpu\"]'"), 0);
    for (int old = 0; old < 2; old++) {
        snprintf(command, sizeof command,
                 "cd %s && rm -rf w0 w1 && mkdir w0 w1 && cp -r two-n w1/r%s", folder,
                 old ? " && cp -r ten w0/r" : "");
        assert_int_equal(system(command), 0);
        snprintf(command, sizeof command,
                 "-wdir %s \"$PUMICE_PROGRAM\" train %s run.folder=r %s run.steps=30 "
                 "devices='[\"cpu\"]' : -n 1 -wdir %s",
                 in("w0"), in("net.json"), OPTIONS, in("w1"));
        check(run(&(struct how){ .environment = launcher(1, command) },
                  "train %s run.folder=r", in("net.json")), 0, "step 20, comes from rank 1");
        same_bytes(in("w0/r/checkpoints/step-000030.safetensors"),
                   in("thirty/checkpoints/step-000030.safetensors"));
    }
}

/* ---- bad starts -------------------------------------------------------------------------- */

static void bad_starts_are_one_error(void **state)
{
    (void)state;
    check(train(2, "", "bad", "run.replicas=3"), 2, "run.replicas: 3, but 2 processes",
          "mpirun -n 3");
    check(train(0, "", "bad", "run.replicas=2"), 2, "run.replicas: 2, but 1 process");
    check(train(2, "", "bad", "run.batch_size=auto"), 2, "\"auto\" is not available");
    check(train(2, "", "bad", "run.nonsense=1"), 2, "run.nonsense");
    check(train(3, "", "bad", "run.batch_size=2"), 2, "run.batch_size: 2");
    /* One process needs no plug-in; the last -n counts. */
    check(run(&(struct how){ .environment = launcher(2, "-x PM_MPI_PLUGIN=/nowhere/x.so -n 1") },
              "train %s run.folder=%s", in("net.json"), in("bad")), 0);
    check(run(&(struct how){ .environment = "OMPI_COMM_WORLD_SIZE=2 PM_MPI_PLUGIN=/nowhere/x.so" },
              "train %s run.folder=%s", in("net.json"), in("bad")), 2, "/nowhere/x.so",
          "libopenmpi-dev");
    check(run(&(struct how){ .environment = "OMPI_COMM_WORLD_SIZE=2" },
              "train %s run.folder=%s", in("net.json"), in("bad")), 2,
          "OMPI_COMM_WORLD_SIZE is 2, but Open MPI sees 1 process");
    check(run(&(struct how){ .environment = "OMPI_COMM_WORLD_SIZE=2" },
              "train %s run.folder=%s --dry-run", in("net.json"), in("bad")), 2,
          "start it without mpirun");
}

/* A number on a command line is that of its process. A number in the file is that of all. */
static void numbers_of_processes_are_compared(void **state)
{
    char command[4096];

    (void)state;
    check(train(2, "", "bad", "run.task=1"), 2,
          "command line: run.task: 1, but this process has the number 0, and 2 processes were",
          "remove the key");
    check(train(2, "", "bad", "run.task=0"), 2, "rank 1 (",
          "command line: run.task: 0, but this process has the number 1");
    check(train(2, "", "bad", "run.task=800"), 2, "run.task: 800 is outside 0..799");
    for (int number = 1; number <= 2; number++) {
        snprintf(command, sizeof command,
                 "\"$PUMICE_PROGRAM\" train %s run.folder=%s run.steps=1 devices='[\"cpu\"]' "
                 "run.task=0 : -n 1", in("net.json"), in("numbered"));
        check(run(&(struct how){ .environment = launcher(1, command) },
                  "train %s run.task=%d", in("net.json"), number), number == 1 ? 0 : 2,
              number == 1 ? "" : "run.task: 2, but this process has the number 1");
    }
    snprintf(command, sizeof command, "{\"base\": [\"net.json\"], \"run\": {\"task\": 0}}");
    put_text(in("zero.json"), command);
    check(run(&(struct how){ .environment = launcher(2, "") },
              "train %s run.folder=%s devices='[\"cpu\"]'", in("zero.json"), in("bad")), 2,
          "rank 1 (", "run.task: 0, but this process has the number 1");
}

/* The built-in data are not there yet: every process draws them, and the first one to end names the
 * folder. */
static void missing_data_are_drawn(void **state)
{
    char more[1024];

    (void)state;
    snprintf(more, sizeof more, "data.folder=%s data.make=shapes data.eval_split=validation "
             "input.size=16 run.steps=2 eval.every_steps=0 devices='[\"cpu\"]'", in("drawn"));
    check(train(3, "", "drawn-run", more), 0);
}

/* Each process has its own working folder, and so its own data folder. */
static void unlike_data_is_refused(void **state)
{
    char command[4096];

    (void)state;
    check(run(NULL, "dataset make shapes %s size=16 train=40 validation=8 test=20",
              in("a/data")), 0);
    check(run(NULL, "dataset make shapes %s size=16 train=41 validation=8 test=20",
              in("b/data")), 0);
    snprintf(command, sizeof command, "-wdir %s \"$PUMICE_PROGRAM\" train %s run.folder=%s "
             "data.folder=data run.steps=2 : -n 1 -wdir %s", in("a"), in("net.json"), in("unlike"),
             in("b"));
    check(run(&(struct how){ .environment = launcher(1, command) },
              "train %s run.folder=%s data.folder=data run.steps=2", in("net.json"),
              in("unlike")), 3, "40 records", "rank 1 (", "41 records");
}

/* ---- failures ---------------------------------------------------------------------------- */

static void a_signal_stops_all_at_one_step(void **state)
{
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        char name[32];

        snprintf(name, sizeof name, "stop-%d", rank);
        check_stop(name, 2, rank, "");
    }
}

/* All processes receive the signal, and a step takes longer than they wait for each other then. The
 * last whole step is saved, and the exit code is that of the signal. */
static void a_signal_at_all_ends_a_long_step(void **state)
{
    char more[512];
    struct result r;
    pid_t pid;

    (void)state;
    snprintf(more, sizeof more, "%s run.log_every_steps=1 run.batch_size=4000 "
             "schedule.policy=fixed model.layers.0.filters=400 model.layers.0.kernel=7 "
             "model.layers.0.stride=1", cpus(2));
    pid = start_long("all", 2, more);
    for (int rank = 0; rank < 2; rank++)
        kill(process_of("all", rank), SIGTERM);
    r = finish(pid, in("all.run"));
    check_stopped("all", &r);
}

static void a_killed_process_ends_all(void **state)
{
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        char name[32], more[64];
        struct result r;
        pid_t pid;
        int step;

        snprintf(name, sizeof name, "kill-%d", rank);
        pid = start_long(name, 2, "");
        kill(process_of(name, rank), SIGKILL);
        r = finish(pid, in("%s.run", name));
        assert_true(r.code == 4 || r.code == 137);
        if (rank == 1)
            assert_contains(r.err, "rank 1 (");
        drop(&r);
        step = newest(name);
        assert_true(step > 0);
        snprintf(more, sizeof more, "run.steps=%d devices='[\"cpu\"]'", step + 5);
        check(run(&(struct how){ .environment = launcher(2, "") },
                  "train %s run.folder=%s %s", in("net.json"), in("%s", name), more), 0);
        check(run(&(struct how){ .environment = launcher(2, "") },
                  "train %s run.folder=%s %s", in("net.json"), in("whole"), more), 0);
        same_bytes(in("%s/checkpoints/step-%06d.safetensors", name, step + 5),
                   in("whole/checkpoints/step-%06d.safetensors", step + 5));
        same_averages("whole", name, step + 5);
        pm_remove_tree(in("whole"));
    }
}

static void a_stopped_process_changes_nothing(void **state)
{
    struct result r;
    pid_t pid, rank;
    int step;
    char more[64];

    (void)state;
    pid = start_long("pause", 2, "");
    rank = process_of("pause", 1);
    kill(rank, SIGSTOP);
    sleep(12); /* the warning comes after 10 s */
    kill(rank, SIGCONT);
    usleep(200000);
    kill(rank, SIGTERM);
    r = finish(pid, in("pause.run"));
    assert_contains(r.err, "waiting for rank 1 (");
    check_stopped("pause", &r);
    step = newest("pause");
    snprintf(more, sizeof more, "run.steps=%d devices='[\"cpu\"]'", step);
    check(run(&(struct how){ .environment = launcher(2, "") }, "train %s run.folder=%s %s",
              in("net.json"), in("unpaused"), more), 0);
    same_bytes(in("pause/checkpoints/step-%06d.safetensors", step),
               in("unpaused/checkpoints/step-%06d.safetensors", step));
}

/* The device of rank 1 fails at each eighth step. After the fourth loss both end with its error.
 * The steps before that are saved. */
static void the_failure_of_one_process_is_that_of_all(void **state)
{
    char command[4096];

    (void)state;
    snprintf(command, sizeof command, "\"$PUMICE_PROGRAM\" train %s run.folder=%s run.steps=40 "
             "devices='[\"cpu\"]' : -n 1 env PM_LOSE=0:8:9", in("net.json"), in("lost"));
    check(run(&(struct how){ .environment = launcher(1, command) },
              "train %s run.folder=%s", in("net.json"), in("lost")), 4, "rank 1 (",
          "was lost, as PM_LOSE requests");
    assert_int_equal(newest("lost"), 28);
}

/* A bit of rank 1's values is flipped after step 11. The snapshot of step 11 finds it. */
static void a_flipped_bit_is_mended(void **state)
{
    char command[4096];
    struct result r;

    (void)state;
    snprintf(command, sizeof command, "\"$PUMICE_PROGRAM\" train %s run.folder=%s %s "
             "run.snapshot_every_steps=11 devices='[\"cpu\"]' : -n 1 env PM_FLIP=1:11",
             in("net.json"), in("flip"), OPTIONS);
    r = run(&(struct how){ .environment = launcher(1, command) },
            "train %s run.folder=%s", in("net.json"), in("flip"));
    assert_int_equal(r.code, 0);
    assert_contains(r.err, "step 11: the values of rank 1 (");
    assert_contains(r.err, "first in conv1/weights");
    drop(&r);
    same_bytes(in("two-n/checkpoints/step-000020.safetensors"),
               in("flip/checkpoints/step-000020.safetensors"));
}

/* ------------------------------------------------------------------------------------------ */

static int set_up(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_have_the_bits_of_devices),
        cmocka_unit_test(the_chief_reports),
        cmocka_unit_test(every_task_has_the_bits_of_devices),
        cmocka_unit_test(pictures_of_several_sizes),
        cmocka_unit_test(damaged_records_are_replaced),
        cmocka_unit_test(processes_share_the_cpu),
        cmocka_unit_test(bfloat16_changes_little),
        cmocka_unit_test(a_run_goes_on_with_other_numbers),
        cmocka_unit_test(the_newest_checkpoint_is_fetched),
        cmocka_unit_test(bad_starts_are_one_error),
        cmocka_unit_test(numbers_of_processes_are_compared),
        cmocka_unit_test(missing_data_are_drawn),
        cmocka_unit_test(unlike_data_is_refused),
        cmocka_unit_test(a_signal_stops_all_at_one_step),
        cmocka_unit_test(a_signal_at_all_ends_a_long_step),
        cmocka_unit_test(a_killed_process_ends_all),
        cmocka_unit_test(a_stopped_process_changes_nothing),
        cmocka_unit_test(the_failure_of_one_process_is_that_of_all),
        cmocka_unit_test(a_flipped_bit_is_mended),
    };

    if (!has_mpirun())
        return 77;
    return cmocka_run_group_tests(tests, set_up, drop_world);
}
