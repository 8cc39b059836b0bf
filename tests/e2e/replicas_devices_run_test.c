/* Training in several processes with devices that are several, unlike, or lost.
 *
 * - Two processes with two devices each add as one process with PM_SUM_GROUPS=2,2 does.
 * - The list `replicas` gives processes own devices, shares and data folders.
 * - run.balance "auto" gives a slow process less of the batch, and a resumed run keeps the shares.
 * - The speed of each process is reported.
 * - A disk that is full for a checkpoint ends all processes.
 * - A process opens a lost device again, or leaves it out: the training goes on without a repeated
 *   step. This also holds if the device is lost between a step and an evaluation. */
#include "e2e/replicas_run.h"

/* Four CPUs. Two processes take two of them each: entries 0 and 2, and entries 1 and 3. */
static const char *const four =
    "devices='[{\"name\":\"cpu\",\"threads\":1},{\"name\":\"cpu\",\"threads\":1},"
    "{\"name\":\"cpu\",\"threads\":1},{\"name\":\"cpu\",\"threads\":1}]'";

static void two_by_two_add_in_groups(void **state)
{
    const struct how groups = { .environment = "PM_SUM_GROUPS=2,2" };
    const struct how wrong = { .environment = "PM_SUM_GROUPS=2,1" };

    (void)state;
    check(train(2, "", "two-by-two", four), 0);
    check(run(&groups, "train %s run.folder=%s %s %s", in("net.json"), in("groups"), OPTIONS,
              four), 0);
    same_saved("two-by-two", "groups", 20);
    same_losses("two-by-two", "groups", 1, 20, 0);
    check(run(&wrong, "train %s run.folder=%s %s %s", in("net.json"), in("wrong"), OPTIONS, four),
          2, "PM_SUM_GROUPS=2,1", "4 devices");
}

/* The folder of rank 1 is a copy. It gets a quarter of the batch. */
static void the_list_of_replicas_sets_devices_and_folders(void **state)
{
    char command[2048], more[4096];

    (void)state;
    snprintf(command, sizeof command, "cp -r %s", in("data"));
    assert_int_equal(system(strcat(strcat(command, " "), in("copy"))), 0);
    check(train(0, "", "one-list", "devices='[{\"name\":\"cpu\",\"threads\":1,\"share\":3},"
                "{\"name\":\"cpu\",\"threads\":1,\"share\":1}]'"), 0);
    snprintf(more, sizeof more,
             "devices='[\"cpu\"]' replicas='[{\"rank\":1,\"data_folder\":\"%s\","
             "\"devices\":[{\"name\":\"cpu\",\"threads\":1}]},"
             "{\"host\":\"*\",\"share\":3,\"threads\":1}]'", in("copy"));
    check(train(2, "", "own-lists", more), 0, ") 9, rank 1 (");
    same_bytes(in("one-list/checkpoints/step-000020.safetensors"),
               in("own-lists/checkpoints/step-000020.safetensors"));
    check(train(2, "", "no-copy", "replicas='[{\"rank\":1,\"data_folder\":\"/nowhere\"}]'"), 3,
          "rank 1 (", "/nowhere");
    check(train(2, "", "neither", "replicas='[{\"share\":2}]'"), 2,
          "replicas.0: set host, a pattern of host names, or rank");
}

/* The share of rank 1 in shares.json. */
static double share_of_rank_1(const char *name)
{
    char *text = get_text(in("%s/shares.json", name));
    cJSON *list = cJSON_Parse(text);
    double shares[2];

    assert_int_equal(cJSON_GetArraySize(list), 2);
    for (int i = 0; i < 2; i++) {
        const cJSON *entry = cJSON_GetArrayItem(list, i);

        assert_non_null(cJSON_GetStringValue(cJSON_GetObjectItem(entry, "host")));
        shares[i] = cJSON_GetNumberValue(cJSON_GetObjectItem(entry, "share"));
    }
    cJSON_Delete(list);
    pm_free(text);
    return shares[1] / (shares[0] + shares[1]);
}

/* The device of rank 1 takes ten times as long. The exact share depends on what else runs on the
 * machine. */
static void a_slow_process_gets_less(void **state)
{
    static const char *const slow = "-x PM_SLOW=1:10";
    char more[1024];

    (void)state;
    snprintf(more, sizeof more, "%s run.balance=auto run.batch_size=48", cpus(2));
    check(train(2, slow, "balance", more), 0, "images/s alone");
    assert_true(share_of_rank_1("balance") < 0.4);
    snprintf(more, sizeof more, "%s run.balance=auto run.batch_size=48 run.steps=10", cpus(2));
    check(train(2, slow, "kept", more), 0);
    snprintf(more, sizeof more, "cp %s", in("balance/shares.json"));
    assert_int_equal(system(strcat(strcat(more, " "), in("kept/shares.json"))), 0);
    snprintf(more, sizeof more, "%s run.balance=auto run.batch_size=48", cpus(2));
    check(train(2, slow, "kept", more), 0);
    assert_true(share_of_rank_1("kept") == share_of_rank_1("balance"));
}

static void the_speed_of_each_process_is_reported(void **state)
{
    const struct how how = { .environment = launcher(3, "") };
    struct result r = run(&how, "train %s run.folder=%s %s %s --json", in("net.json"),
                          in("speeds"), OPTIONS, "devices='[\"cpu\"]'");
    cJSON *json = cJSON_Parse(r.out), *list = cJSON_GetObjectItem(json, "replicas");
    cJSON *run_json;
    char *text;

    (void)state;
    assert_int_equal(r.code, 0);
    assert_int_equal(cJSON_GetArraySize(list), 3);
    for (int k = 0; k < 3; k++) {
        const cJSON *o = cJSON_GetArrayItem(list, k);
        char name[64];

        assert_int_equal((int)number_of(o, "rank"), k);
        assert_int_equal((int)number_of(o, "examples"), 4);
        assert_true(number_of(o, "images_per_second") > 0);
        assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(o, "devices")), 1);
        snprintf(name, sizeof name, "rank_%d_images_per_second", k);
        assert_true(logged("speeds", 20, name) > 0);
    }
    assert_in_range((int)logged("speeds", 20, "slowest_rank"), 0, 2);
    text = get_text(in("speeds/run.json"));
    run_json = cJSON_Parse(text);
    pm_free(text);
    /* A third of the gradients, and a third of the sums, go to each of the two others. A rank's
     * part of a small piece may be a few floats smaller than a third. */
    assert_true(logged("speeds", 20, "exchanged_bytes") >
                0.9 * 4. / 3 * sizeof(float) * number_of(run_json, "parameters"));
    cJSON_Delete(run_json);
    text = get_text(in("speeds/report.html"));
    assert_contains(text, "<h2>Processes</h2>");
    assert_contains(text, "Images per second of each process");
    pm_free(text);
    cJSON_Delete(json);
    drop(&r);
}

/* Each process loses its device once, at another step. Every step is made once. */
static void a_lost_device_is_opened_again(void **state)
{
    (void)state;
    check(train(0, "", "alone", cpus(2)), 0);
    for (int rank = 0; rank < 2; rank++) {
        char name[32], mpi[64];

        snprintf(name, sizeof name, "again-%d", rank);
        snprintf(mpi, sizeof mpi, "-x PM_LOSE=%d:%d", rank, 6 + 7 * rank);
        check(train(2, mpi, name, cpus(2)), 0, "opening devices[", "again, from step");
        same_saved("alone", name, 20);
        same_losses("alone", name, 1, 20, 0);
    }
}

/* A device of each process is lost after step 10, before the evaluation of that step. All processes
 * find it before they evaluate. Every step is made once, and every evaluation. */
static void a_device_lost_after_its_step_is_opened_again(void **state)
{
    (void)state;
    for (int rank = 0; rank < 2; rank++)
        for (int step = 10; step <= 20; step += 10) {
            char name[32], mpi[64];

            snprintf(name, sizeof name, "after-%d-%d", rank, step);
            snprintf(mpi, sizeof mpi, "-x PM_LOSE_AFTER=%d:%d", rank, step);
            check(train(2, mpi, name, cpus(2)), 0, "opening devices[", "again, from step");
            same_saved("alone", name, 20);
            same_lines("alone", name);
        }
}

/* Rank 0 has two devices and leaves one out after the second loss. */
static void a_device_is_left_out(void **state)
{
    char *text;

    (void)state;
    check(train(2, "-x PM_LOSE=2:5:9", "out", cpus(3)), 0, "is left out from now on: 2 devices",
          "2 processes share the batch of 12: rank 0 (", ") 6, rank 1 (");
    same_losses("alone", "out", 12, 20, 0.5); /* three devices made the first steps */
    text = get_text(in("out/checkpoints/step-000020.json"));
    assert_contains(text, "devices[2] (cpu) at step 8 of rank 0 (");
    pm_free(text);
}

/* Each process reads the model file in its own folder. Both files have the same variables. */
static void unlike_model_files_are_refused(void **state)
{
    char command[4096];

    (void)state;
    check(train(0, "", "short", "run.steps=10"), 0);
    for (int rank = 0; rank < 2; rank++) {
        snprintf(command, sizeof command, "%s", in("place-%d", rank));
        assert_int_equal(mkdir(command, 0755), 0);
        check(run(NULL, "export %s export.file=%s/m.onnx", rank ? in("short") : in("alone"),
                  command), 0);
    }
    snprintf(command, sizeof command, "sh -c 'cd %s/place-$OMPI_COMM_WORLD_RANK; "
             "exec \"$0\" \"$@\"'", folder);
    check(run(&(struct how){ .environment = launcher(2, command) },
              "train %s run.folder=%s model='{\"onnx\":\"m.onnx\"}' devices='[\"cpu\"]'",
              in("net.json"), in("models")), 2, "m.onnx: rank 0 (", "has SHA-256 ",
          "use the same model file on all hosts");
}

/* The thread that writes the chief's checkpoints fails: all end, and the last good one stays. By
 * TCP, because shared memory needs files, too. The limit is in units of 512 bytes. */
static void a_full_disk_ends_all(void **state)
{
    static const char *const wide = "model.layers.0.filters=4000";
    const struct how how = { .environment = launcher(
        2, "--mca btl tcp,self sh -c 'ulimit -f 200; exec \"$0\" \"$@\"'") };

    (void)state;
    check(run(&how, "train %s run.folder=%s %s %s %s", in("net.json"), in("full"), OPTIONS,
              cpus(2), wide), 1, "checkpoint of step 10 was not saved", "File too large");
    assert_false(pm_file_exists(in("full/checkpoints/step-000010.safetensors")));
    check(train(2, "", "full", "model.layers.0.filters=4000 devices='[\"cpu\"]'"), 0);
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
        cmocka_unit_test(two_by_two_add_in_groups),
        cmocka_unit_test(the_list_of_replicas_sets_devices_and_folders),
        cmocka_unit_test(a_slow_process_gets_less),
        cmocka_unit_test(the_speed_of_each_process_is_reported),
        cmocka_unit_test(a_lost_device_is_opened_again),
        cmocka_unit_test(a_device_lost_after_its_step_is_opened_again),
        cmocka_unit_test(a_device_is_left_out),
        cmocka_unit_test(unlike_model_files_are_refused),
        cmocka_unit_test(a_full_disk_ends_all),
    };

    if (!has_mpirun())
        return 77;
    return cmocka_run_group_tests(tests, set_up, drop_world);
}
