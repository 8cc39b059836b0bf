/* Asynchronous training in several processes, started by mpirun.
 *
 * - One worker with a server has the bits of one process alone. With the order PM_ORDER, two
 *   workers have the same bits in every run, with and without servers.
 * - The processes together read each record once. Metrics have the staleness. A checkpoint has the
 *   values that were evaluated. Runs go on with other numbers of processes and in the other mode.
 * - A late worker begins at run.startup_delay_steps.
 * - A signal at any process stops all, and the chief saves. If a process is killed or fails, all
 *   end, and the last values that the chief has collected are saved.
 * - Keys that do not fit are one line of error.
 * - With backups (run.replicas_to_aggregate), gradients of a slow process are dropped. */
#include "e2e/replicas_run.h"

#include <pumice/options.h>

/* A net without moving averages, whose sums would have other roundings. */
#define PLAIN "model.layers='[{\"name\":\"conv1\",\"layer\":\"conv2d\",\"filters\":4}," \
              "{\"name\":\"drop\",\"layer\":\"dropout\",\"keep\":0.8}," \
              "{\"name\":\"logits\",\"layer\":\"fully_connected\",\"units\":4}]'"
#define ASYNC "run.sync_replicas=false devices='[\"cpu\"]'"
/* The chief collects nothing before the end, because that reads values at other moments. */
#define UNDISTURBED "run.summary_every_steps=0 run.save_every_secs=0 eval.every_steps=0 " \
                    "run.save_every_steps=0"

static void one_worker_has_the_bits_of_one_process(void **state)
{
    static const char *const kinds[] = {
        "optim.weight_decay=0.01 optim.clip_norm=2",
        "optim.name=adam schedule.base_lr=0.001 optim.clip_variable_norm=0.5",
    };
    char more[1024];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(kinds); i++) {
        char alone[32], served[32];

        snprintf(alone, sizeof alone, "alone-%zu", i);
        snprintf(served, sizeof served, "served-%zu", i);
        snprintf(more, sizeof more, "%s %s %s", PLAIN, kinds[i], cpus(1));
        check(train(0, "", alone, more), 0);
        snprintf(more, sizeof more, "%s %s %s run.sync_replicas=false run.parameter_servers=1",
                 PLAIN, kinds[i], cpus(1));
        check(train(2, "", served, more), 0, "1 process trains");
        same_bytes(in("%s/checkpoints/step-000010.safetensors", alone),
                   in("%s/checkpoints/step-000010.safetensors", served));
        same_bytes(in("%s/checkpoints/step-000020.safetensors", alone),
                   in("%s/checkpoints/step-000020.safetensors", served));
        same_losses(alone, served, 1, 20, 0);
    }
}

static void an_order_gives_the_same_bits(void **state)
{
    (void)state;
    check(train(2, "-x PM_ORDER=0,1,1,0", "order-a", UNDISTURBED " " ASYNC), 0);
    check(train(4, "-x PM_ORDER=0,1,1,0", "order-b", UNDISTURBED " run.parameter_servers=2 " ASYNC),
          0, "2 others hold the variables");
    check(train(2, "-x PM_ORDER=0,1", "order-c", UNDISTURBED " " ASYNC), 0);
    same_bytes(in("order-a/checkpoints/step-000020.safetensors"),
               in("order-b/checkpoints/step-000020.safetensors"));
    assert_false(are_same(in("order-a/checkpoints/step-000020.safetensors"),
                          in("order-c/checkpoints/step-000020.safetensors")));
}

/* Returns a number in a checkpoint's .json. */
static double state_of(const char *name, int step, const char *key)
{
    char *text = get_text(in("%s/checkpoints/step-%06d.json", name, step));
    cJSON *o = cJSON_Parse(text), *found = cJSON_GetObjectItem(o, "state");
    const double value = number_of(found ? found : o, key);

    cJSON_Delete(o);
    pm_free(text);
    return value;
}

/* 30 batches of 4 are three epochs of 40 records. A damaged record is counted where it is read. */
static void records_are_read_once(void **state)
{
    char more[2048];

    (void)state;
    make_damaged();
    snprintf(more, sizeof more, "data.folder=%s data.on_corrupt=skip run.batch_size=4 run.steps=30 "
             "run.save_every_steps=0 devices='[\"cpu\"]'", in("damaged"));
    check(train(0, "", "skip-1", more), 0);
    snprintf(more + strlen(more), sizeof more - strlen(more), " run.sync_replicas=false");
    check(train(3, "", "skip-n", more), 0);
    assert_true(state_of("skip-1", 30, "skipped") >= 15);
    assert_true(state_of("skip-n", 30, "skipped") == state_of("skip-1", 30, "skipped"));
}

/* The largest staleness in metrics.jsonl. */
static double stalest(const char *name)
{
    char *text = get_text(in("%s/metrics.jsonl", name)), *save = NULL;
    double most = -1;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        cJSON *o = cJSON_Parse(line);
        const double v = cJSON_GetNumberValue(cJSON_GetObjectItem(o, "staleness_max"));

        most = fmax(most, v); /* NAN: the line has none */
        cJSON_Delete(o);
    }
    pm_free(text);
    return most;
}

/* The checkpoint of the step that was evaluated last gives the figures of that evaluation. */
static void same_as_evaluated(const char *name, int step)
{
    char *text = get_text(in("%s/evaluation.json", name)), *before, *now, path[1024];
    cJSON *was = cJSON_Parse(text), *is;
    struct result r;

    snprintf(path, sizeof path, "%s",
             in("%s/checkpoints/step-%06d.safetensors", name, step));
    r = run(NULL, "eval %s --json eval.checkpoint=%s", in("%s", name), path);
    assert_int_equal(r.code, 0);
    is = cJSON_Parse(r.out);
    assert_true(number_of(was, "step") == step);
    before = pm_json_print(cJSON_GetObjectItem(was, "metrics"));
    now = pm_json_print(cJSON_GetObjectItem(is, "metrics"));
    assert_string_equal(before, now);
    pm_free(before);
    pm_free(now);
    cJSON_Delete(was);
    cJSON_Delete(is);
    pm_free(text);
    drop(&r);
}

static void checkpoints_have_the_evaluated_values(void **state)
{
    (void)state;
    check(train(3, "", "evaluated", "run.steps=40 run.parameter_servers=1 " ASYNC), 0,
          "2 processes train");
    assert_true(stalest("evaluated") >= 1);
    assert_true(has_tag(in("evaluated"), "updates/staleness"));
    assert_true(has_tag(in("evaluated"), "updates/staleness_max"));
    assert_false(has_tag(in("evaluated"), "updates/dropped_gradients"));
    same_as_evaluated("evaluated", 40);
}

static void a_run_goes_on_in_other_ways(void **state)
{
    (void)state;
    check(train(3, "", "more", "run.steps=10 run.parameter_servers=1 " ASYNC), 0);
    check(train(2, "", "more", "run.steps=20 " ASYNC), 0, "resuming", "at step 10");
    check(train(0, "", "more", "run.steps=24 run.sync_replicas=false"), 0, "at step 20");
    check(train(2, "", "more", "run.steps=30 run.sync_replicas=true devices='[\"cpu\"]'"), 0,
          "at step 24", "run.sync_replicas: false -> true");
    check(train(4, "", "more", "run.steps=45 run.parameter_servers=3 " ASYNC), 0, "at step 30");
    assert_int_equal(newest("more"), 45);
    assert_true(isfinite(logged("more", 45, "loss")));
}

/* A worker has waited for this step, by its log. */
static void check_delay(const char *name, int rank, int right)
{
    char *text = get_text(in("%s/log.rank-%03d.txt", name, rank)), *save = NULL;
    int step = -1, delay = -1;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        sscanf(line, "%*[^ ] debug: train: this process begins at step %d, after a delay of %d",
               &step, &delay);
    assert_int_equal(delay, right);
    assert_true(step >= delay);
    pm_free(text);
}

/* Worker 1 begins at the last step, so nothing is stale. In segmentation the delay is multiplied by
 * a worker's number. */
static void late_workers_begin_late(void **state)
{
    (void)state;
    check(train(2, "", "late", "run.steps=30 run.startup_delay_steps=100000 " ASYNC), 0);
    assert_true(stalest("late") == 0);
    check(train(3, "-x PM_LOG=train=debug", "soon",
                "run.steps=200 run.startup_delay_steps=5 eval.every_steps=0 " ASYNC), 0);
    check_delay("soon", 1, 5);
    check_delay("soon", 2, 5);
    assert_true(stalest("soon") >= 1);
    check(run(NULL, "dataset make shapes %s size=64 train=40 validation=8 test=8", in("large")), 0);
    check(run(&(struct how){ .environment = launcher(3, "-x PM_LOG=train=debug") },
              "train %s/configs/shapes_segmentation.json data.folder=%s run.folder=%s run.steps=16 "
              "run.batch_size=2 eval.every_steps=0 run.keep_best=none run.log_every_steps=1 "
              "run.startup_delay_steps=4 " ASYNC,
              getenv("PUMICE_SOURCE"), in("large"), in("delay")), 0);
    check_delay("delay", 1, 4);
    check_delay("delay", 2, 8);
}

/* ---- failures ---------------------------------------------------------------------------- */

static const char *const long_run = "run.sync_replicas=false run.parameter_servers=1 "
                                    "run.snapshot_every_steps=20 run.save_every_secs=0 "
                                    "run.hang_seconds=20";

static void a_signal_stops_all(void **state)
{
    (void)state;
    for (int rank = 0; rank < 3; rank++) { /* the chief, a worker, a server */
        char name[32], more[64];
        int step;

        snprintf(name, sizeof name, "stop-%d", rank);
        check_stop(name, 3, rank, long_run);
        step = newest(name);
        snprintf(more, sizeof more, "run.steps=%d " ASYNC, step + 20);
        check(run(&(struct how){ .environment = launcher(2, "") }, "train %s run.folder=%s %s",
                  in("net.json"), in("%s", name), more), 0, "resuming");
        assert_int_equal(newest(name), step + 20);
    }
}

/* A killed chief takes the count with it, and the run has no checkpoint yet. */
static void a_killed_process_ends_all(void **state)
{
    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        char name[32];
        struct result r;
        pid_t pid;

        snprintf(name, sizeof name, "kill-%d", rank);
        pid = start_long(name, 3, long_run);
        kill(process_of(name, rank), SIGKILL);
        r = finish(pid, in("%s.run", name));
        assert_true(r.code == 4 || r.code == 137);
        if (rank > 0) {
            assert_contains(r.err, "is saved, the last one whose values the chief has collected");
            assert_contains(r.err, rank == 1 ? "rank 1 (" : "rank 2 (");
            assert_true(newest(name) > 0);
        }
        drop(&r);
        check(run(&(struct how){ .environment = launcher(2, "") },
                  "train %s run.folder=%s run.steps=%d " ASYNC, in("net.json"), in("%s", name),
                  rank > 0 ? newest(name) + 10 : 10), 0);
    }
}

/* The device of worker 1 fails. */
static void the_failure_of_one_process_is_that_of_all(void **state)
{
    char command[4096];

    (void)state;
    snprintf(command, sizeof command, "\"$PUMICE_PROGRAM\" train %s run.folder=%s run.steps=40000 "
             "run.snapshot_every_steps=5 " ASYNC " : -n 1 env PM_LOSE=0:40", in("net.json"),
             in("lost"));
    check(run(&(struct how){ .environment = launcher(1, command) }, "train %s run.folder=%s",
              in("net.json"), in("lost")), 4, "rank 1 (", "was lost, as PM_LOSE requests");
    assert_true(newest("lost") > 0);
}

/* All numbers of the newest checkpoint are finite; they follow the file's header. */
static void check_finite(const char *name)
{
    char *bytes;
    size_t size, at;
    uint64_t header;
    float v;

    assert_int_equal(pm_file_read(in("%s/checkpoints/step-%06d.safetensors", name, newest(name)),
                                  &bytes, &size), PM_OK);
    memcpy(&header, bytes, sizeof header);
    at = sizeof header + (size_t)header;
    assert_true(at + 1000 < size);
    for (; at < size; at += sizeof v) {
        memcpy(&v, bytes + at, sizeof v);
        assert_true(isfinite(v));
    }
    pm_free(bytes);
}

/* A gradient that is not finite reaches no owner, so the values that are saved are finite. */
static void a_gradient_that_is_not_finite_ends_all(void **state)
{
    (void)state;
    check(train(2, "", "infinite", "run.steps=400 schedule.base_lr=1000 eval.every_steps=0 "
                "run.save_first_step=true " ASYNC),
          1, "the gradients are not finite");
    check_finite("infinite");
}

static void unfit_keys_are_one_error(void **state)
{
    static const char *const bad[][2] = {
        { "run.parameter_servers=2", "2 of 2 processes leave none to train" },
        { "run.exchange=bfloat16", "only available if all processes make every step" },
        { "run.balance=auto", "each process has its own" },
        { "run.replicas_to_aggregate=2", "each gradient makes an update" },
        { "run.batch_size=auto", "\"auto\" is not available" },
        { "run.sync_replicas=true run.startup_delay_steps=3", "run.startup_delay_steps: 3, but" },
        { "run.sync_replicas=true run.parameter_servers=1", "run.parameter_servers: 1, but" },
        { "run.sync_replicas=true run.replicas_to_aggregate=3", "3 is not a multiple of" },
        { "run.sync_replicas=true run.replicas_to_aggregate=8 run.batch_size=14",
          "must be a multiple of 4" },
        { "run.sync_replicas=true run.replicas_to_aggregate=1 run.balance=auto", "with backups" },
    };
    char more[512];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        snprintf(more, sizeof more, "%s %s", ASYNC, bad[i][0]);
        check(train(2, "", "bad", more), 2, bad[i][1]);
    }
    check(train(3, "", "bad", "run.replicas_to_aggregate=2 run.batch_size=13"), 2,
          "run.batch_size: 13 is not a multiple of run.replicas_to_aggregate, 2");
}

/* ---- backups ----------------------------------------------------------------------------- */

/* Adds the values of a metric in all lines of training. */
static double summed(const char *name, const char *key)
{
    char *text = get_text(in("%s/metrics.jsonl", name)), *save = NULL;
    double sum = 0;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        cJSON *o = cJSON_Parse(line);
        const cJSON *v = cJSON_GetObjectItem(o, key);

        sum += v ? v->valuedouble : 0;
        cJSON_Delete(o);
    }
    pm_free(text);
    return sum;
}

/* Two of three gradients make a step, and the device of worker 2 is slow: its gradients come late.
 * A checkpoint has the values of one step. */
static void gradients_of_a_slow_worker_are_dropped(void **state)
{
    char command[4096];

    (void)state;
    snprintf(command, sizeof command,
             "\"$PUMICE_PROGRAM\" train %s run.folder=%s run.steps=600 run.log_every_steps=10 "
             "run.replicas_to_aggregate=2 eval.every_steps=200 devices='[\"cpu\"]' : -n 1 env "
             "PM_SLOW=0:10", in("net.json"), in("slow"));
    check(run(&(struct how){ .environment = launcher(2, command) }, "train %s run.folder=%s",
              in("net.json"), in("slow")), 0, "the first 2 gradients make a step");
    assert_true(newest("slow") == 600);
    assert_true(has_tag(in("slow"), "updates/dropped_gradients"));
    assert_true(has_tag(in("slow"), "updates/rank_2_dropped_gradients"));
    assert_true(summed("slow", "rank_2_dropped_gradients") > 20);
    assert_true(summed("slow", "dropped_gradients") ==
                summed("slow", "rank_0_dropped_gradients") +
                    summed("slow", "rank_1_dropped_gradients") +
                    summed("slow", "rank_2_dropped_gradients"));
    assert_true(summed("slow", "rank_2_dropped_gradients") >
                summed("slow", "rank_0_dropped_gradients"));
    same_as_evaluated("slow", 600);
    check(train(4, "", "slow", "run.steps=620 run.replicas_to_aggregate=2 run.parameter_servers=1 "
                "devices='[\"cpu\"]'"), 0, "resuming", "1 other holds the variables");
    check(train(2, "", "slow", "run.steps=630 devices='[\"cpu\"]'"), 0, "at step 620");
    assert_int_equal(newest("slow"), 630);
}

static void backups_stop_together(void **state)
{
    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        char name[32];

        snprintf(name, sizeof name, "backed-%d", rank);
        check_stop(name, 3, rank,
                   "run.replicas_to_aggregate=2 run.batch_size=8 run.hang_seconds=20");
    }
}

/* Each of two processes computes two gradients of a step, one after the other. */
static void several_gradients_are_micro_batches(void **state)
{
    (void)state;
    check(train(2, "", "parts", "devices='[\"cpu\"]' run.micro_batches=2"), 0);
    check(train(2, "", "gradients", "devices='[\"cpu\"]' run.replicas_to_aggregate=4"), 0);
    same_bytes(in("parts/checkpoints/step-000020.safetensors"),
               in("gradients/checkpoints/step-000020.safetensors"));
}

static int set_up(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_worker_has_the_bits_of_one_process),
        cmocka_unit_test(an_order_gives_the_same_bits),
        cmocka_unit_test(records_are_read_once),
        cmocka_unit_test(checkpoints_have_the_evaluated_values),
        cmocka_unit_test(a_run_goes_on_in_other_ways),
        cmocka_unit_test(late_workers_begin_late),
        cmocka_unit_test(a_signal_stops_all),
        cmocka_unit_test(a_killed_process_ends_all),
        cmocka_unit_test(the_failure_of_one_process_is_that_of_all),
        cmocka_unit_test(a_gradient_that_is_not_finite_ends_all),
        cmocka_unit_test(unfit_keys_are_one_error),
        cmocka_unit_test(several_gradients_are_micro_batches),
        cmocka_unit_test(gradients_of_a_slow_worker_are_dropped),
        cmocka_unit_test(backups_stop_together),
    };

    if (!has_mpirun())
        return 77;
    return cmocka_run_group_tests(tests, set_up, drop_world);
}
