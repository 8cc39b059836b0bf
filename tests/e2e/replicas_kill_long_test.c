/* Training in two processes that is interrupted at random moments and at chosen places.
 *
 * - A process is killed. The other one ends with an error, and a checkpoint is there. The resumed
 *   run has the bits of an undisturbed one. With other numbers of processes it has its losses.
 * - A place that can fail, in the work for a checkpoint or an exchange, fails in one process
 *   (PM_FAIL_AT). All end with its exit code and one line of error. The resumed run has the bits of
 *   an undisturbed one.
 *
 * Moments and places are drawn by a seed: PUMICE_KILL_SEED (1). PUMICE_KILL_PLACES: the number of
 * places in each process (8). */
#include "e2e/replicas_run.h"

#include <pumice/rng.h>

enum { KILLS = 10, EVERY = 100, COMPARED = 20 };
static const double longest_wait = 0.7; /* seconds from the first lines of metrics to the end */

/* A run that is often at work on a checkpoint, a snapshot or an evaluation. */
#define BUSY "run.batch_size=12 optim.moving_average_decay=0.9 run.save_every_steps=10 " \
             "run.snapshot_every_steps=4 eval.every_steps=15 run.hang_seconds=20 "
/* A net whose results do not depend on the parts of the batch, except for the last bits. */
#define PLAIN "model.layers='[{\"name\":\"conv1\",\"layer\":\"conv2d\",\"filters\":4}," \
              "{\"name\":\"drop\",\"layer\":\"dropout\",\"keep\":0.8}," \
              "{\"name\":\"logits\",\"layer\":\"fully_connected\",\"units\":4}]' "

static uint64_t seed;

static struct pm_rng moments(const char *name)
{
    return pm_rng_make(seed, pm_hash(name), 0, 0);
}

/* Starts a run of two processes, and kills one of them after a drawn time. Returns the step of the
 * newest checkpoint. */
static int kill_at_random(const char *name, int rank, const char *more, struct pm_rng *rng)
{
    const double wait = longest_wait * pm_rng_uniform(rng);
    char text[2048];
    struct result r;
    pid_t pid;

    snprintf(text, sizeof text, "%s %s%s", cpus(2), BUSY, more);
    pid = start_long(name, 2, text);
    usleep((useconds_t)(1e6 * wait));
    kill(process_of(name, rank), SIGKILL);
    r = finish(pid, in("%s.run", name));
    if (r.code != 4 && r.code != 137)
        fail_msg("%s, killed after %.3f s: exit code %d: %s", name, wait, r.code, r.err);
    drop(&r);
    if (newest(name) <= 0)
        fail_msg("%s, killed after %.3f s: no checkpoint", name, wait);
    return newest(name);
}

/* Trains on in so many processes (0: one without mpirun) up to a step. */
static void train_to(const char *name, int ranks, int devices, int step, const char *more)
{
    const struct how how = { .environment = launcher(ranks, "") };

    check(run(ranks > 0 ? &how : NULL,
              "train %s run.folder=%s run.steps=%d run.log_every_steps=20 %s %s%s", in("net.json"),
              in("%s", name), step, cpus(devices), BUSY, more), 0);
}

/* Compares with a run of one process with two devices, which keeps each EVERY-th step. */
static void resumed_like_undisturbed(const char *name, int saved)
{
    const int step = (saved / EVERY + 1) * EVERY;
    char whole[1024];

    train_to(name, 2, 2, step, "");
    assert_int_equal(temporaries(in("%s", name)), 0);
    if (!pm_file_exists(in("whole/checkpoints/step-%06d.json", step)))
        train_to("whole", 0, 2, step, "run.save_every_steps=100 run.keep=0 eval.every_steps=0");
    snprintf(whole, sizeof whole, "%s", in("whole/checkpoints/step-%06d.safetensors", step));
    same_bytes(whole, in("%s/checkpoints/step-%06d.safetensors", name, step));
    same_averages("whole", name, step);
}

static void killed_at_random_moments(int rank)
{
    char name[32];
    struct pm_rng rng;

    snprintf(name, sizeof name, "rank %d", rank);
    rng = moments(name);
    for (int i = 0; i < KILLS; i++) {
        snprintf(name, sizeof name, "kill-%d-%d", rank, i);
        const int saved = kill_at_random(name, rank, "", &rng);

        print_message("rank %d was killed: step %d is saved\n", rank, saved);
        resumed_like_undisturbed(name, saved);
        pm_remove_tree(in("%s", name));
    }
}

static void a_killed_chief_loses_nothing(void **state)
{
    (void)state;
    killed_at_random_moments(0);
}

static void another_killed_process_loses_nothing(void **state)
{
    (void)state;
    killed_at_random_moments(1);
}

/* The processes add the gradients of 12 examples in another order. The losses, which are near 1,
 * then differ by a few times 12 * 2^-24 = 7e-7, and the updates add to that. */
static void other_numbers_go_on(void **state)
{
    struct pm_rng rng = moments("other numbers");

    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        char killed[32], whole[32];

        snprintf(killed, sizeof killed, "plain-%d", rank);
        const int saved = kill_at_random(killed, rank, PLAIN, &rng);

        snprintf(whole, sizeof whole, "plain-whole-%d", rank);
        train_to(whole, 0, 2, saved + COMPARED, PLAIN "run.log_every_steps=1 eval.every_steps=0");
        for (int ranks = 1; ranks <= 3; ranks++) {
            char name[32], command[2200];

            snprintf(name, sizeof name, "plain-%d-%d", rank, ranks);
            snprintf(command, sizeof command, "cd %s && cp -r %s %s", folder, killed, name);
            assert_int_equal(system(command), 0);
            train_to(name, ranks > 1 ? ranks : 0, ranks, saved + COMPARED,
                     PLAIN "run.log_every_steps=1");
            same_losses(whole, name, saved + 1, saved + COMPARED, 1e-5);
        }
    }
}

/* ---- places that fail -------------------------------------------------------------------- */

enum { MOST_PLACES = 512 };
struct place {
    char name[64]; /* "file.c:line" */
};

/* Trains 20 steps in two processes; PM_FAIL_AT has this value in one of them. */
static struct result train_with(const char *name, int rank, const char *fail_at)
{
    char command[4096];
    const char *const fault = fail_at ? fail_at : "0";

    snprintf(command, sizeof command,
             "env %s%s \"$PUMICE_PROGRAM\" train %s run.folder=%s %s %s : -n 1 env %s%s",
             rank == 0 ? "PM_FAIL_AT=" : "UNUSED=", fault, in("net.json"), in("%s", name), OPTIONS,
             cpus(2), rank == 1 ? "PM_FAIL_AT=" : "UNUSED=", fault);
    return run(&(struct how){ .environment = launcher(1, command) }, "train %s run.folder=%s",
               in("net.json"), in("%s", name));
}

/* Whether a place is in one of the files that are tested for this rank. */
static bool is_tested(const char *place, int rank)
{
    static const char *const files[2][8] = {
        { "checkpoint.c", "checkpoint_keep.c", "state.c", "safetensors_write.c", "new_file.c",
          "trainer_save.c", "trainer_write.c", "trainer_drift.c" },
        { "trainer_save.c", "trainer_snapshot.c", "trainer_drift.c", "trainer_replicas.c",
          "across.c", "exchange_host.c", "evaluator.c", "log.c" },
    };

    for (size_t i = 0; i < PM_COUNT(files[rank]); i++) {
        const size_t n = strlen(files[rank][i]);

        if (strncmp(place, files[rank][i], n) == 0 && place[n] == ':')
            return true;
    }
    return false;
}

/* Lists the places that a process reaches. */
static int list_places(int rank, struct place *out)
{
    struct result r = train_with("list", rank, "list");
    char *save = NULL;
    int count = 0;

    assert_int_equal(r.code, 0);
    for (char *line = strtok_r(r.err, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (sscanf(line, "PM_FAIL_AT=%63s", out[count].name) == 1 &&
            is_tested(out[count].name, rank) && count + 1 < MOST_PLACES)
            count++;
    drop(&r);
    pm_remove_tree(in("list"));
    return count;
}

/* A failure that is only a warning changes nothing. */
static void check_failed(const struct result *r, int rank, const char *place)
{
    const char *last;
    const int errors = error_lines(r, &last);

    if (r->code < 0 || r->code > 4 || errors != (r->code > 0) ||
        !strstr(r->code > 0 ? last : r->err, "injected fault"))
        fail_msg("rank %d, %s: exit code %d, %d lines of errors: %s", rank, place, r->code, errors,
                 r->err);
    if (r->code > 0 && rank > 0 && !strstr(last, "rank 1 ("))
        fail_msg("%s: the error names no rank: %s", place, last);
}

static void places_fail(int rank)
{
    struct place *places = pm_calloc(MOST_PLACES, sizeof *places);
    const char *text = getenv("PUMICE_KILL_PLACES");
    const int count = list_places(rank, places), tried = text ? atoi(text) : 8;
    struct pm_rng rng = moments(rank == 0 ? "places of rank 0" : "places of rank 1");

    assert_true(count >= tried);
    for (int i = 0; i < tried; i++) {
        const int drawn = (int)pm_rng_int(&rng, i, count - 1);
        const struct place other = places[i];
        char name[32];
        struct result r;

        places[i] = places[drawn]; /* each place is drawn at most once */
        places[drawn] = other;
        print_message("rank %d fails in %s\n", rank, places[i].name);
        snprintf(name, sizeof name, "fail-%d-%d", rank, i);
        r = train_with(name, rank, places[i].name);
        check_failed(&r, rank, places[i].name);
        drop(&r);
        check(train(2, "", name, cpus(2)), 0);
        assert_int_equal(temporaries(in("%s", name)), 0);
        same_saved("undisturbed", name, 20);
        pm_remove_tree(in("%s", name));
    }
    pm_free(places);
}

static void places_of_the_chief_fail(void **state)
{
    (void)state;
    places_fail(0);
}

static void places_of_another_process_fail(void **state)
{
    (void)state;
    places_fail(1);
}

/* ------------------------------------------------------------------------------------------ */

static int set_up(void **state)
{
    (void)state;
    if (make_world(true) < 0)
        return -1;
    check(train(2, "", "undisturbed", cpus(2)), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_chief_loses_nothing),
        cmocka_unit_test(another_killed_process_loses_nothing),
        cmocka_unit_test(other_numbers_go_on),
        cmocka_unit_test(places_of_the_chief_fail),
        cmocka_unit_test(places_of_another_process_fail),
    };
    const char *text = getenv("PUMICE_KILL_SEED");

    if (!has_mpirun())
        return 77;
    seed = text ? strtoull(text, NULL, 10) : 1;
    print_message("PUMICE_KILL_SEED=%llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, set_up, drop_world);
}
