/* pumice launch and pumice replicas, with Open MPI.
 *
 * - launch gives the training's exit code and one line of error. A signal at it stops the training
 *   after a checkpoint, as a closed output does. A killed process ends it, or starts it again with
 *   --restarts. An mpirun that does not end is ended. Wrong flags, hosts and programs are one line
 *   of error.
 * - Hosts: a script in place of ssh starts processes under other host names on this machine. If one
 *   is lost and answers no more, the training goes on without it.
 * - replicas lists the processes, and measures them.
 * - A process that mpirun has bound says so. A missing plug-in is one line of error. */
#include "e2e/replicas_run.h"

static const char *const options = "run.steps=20 run.batch_size=12 run.save_every_steps=10 "
                                   "eval.every_steps=0 devices='[\"cpu\"]'";

/* The environment of every command. more: variables. mpirun gives up after 2 s, not 60. */
static const struct how *how(const char *more)
{
    static char text[4096];
    static struct how h = { .environment = text };

    snprintf(text, sizeof text,
             "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
             "OMPI_MCA_odls_base_sigkill_timeout=2 %s timeout 200", more);
    return &h;
}

static struct result launch(const char *flags, const char *name, const char *more)
{
    return run(how(""), "launch %s train %s run.folder=%s %s %s", flags, in("net.json"),
               in("%s", name), options, more);
}

static void make_script(const char *name, const char *text)
{
    put_text(in("%s", name), text);
    assert_int_equal(chmod(in("%s", name), 0700), 0);
}

/* ---- ends -------------------------------------------------------------------------------- */

static void a_training_is_started(void **state)
{
    struct result r;

    (void)state;
    check(run(NULL, "train %s run.folder=%s %s devices='[{\"name\":\"cpu\",\"threads\":1},"
              "{\"name\":\"cpu\",\"threads\":1}]'", in("net.json"), in("alone"), options), 0);
    r = launch("-n 2 --restarts 2", "launched", "");
    assert_int_equal(r.code, 0);
    assert_contains(r.err, "launch: mpirun --bind-to none --map-by node:OVERSUBSCRIBE -n 2 /");
    assert_contains(r.err, "2 processes share the batch of 12");
    assert_null(strstr(r.err, "has bound"));
    assert_null(strstr(r.err, "restart 1"));
    drop(&r);
    same_bytes(in("alone/checkpoints/step-000020.safetensors"),
               in("launched/checkpoints/step-000020.safetensors"));
    r = launch("-n=1 --interface=lo", "one", "--json");
    assert_int_equal(r.code, 0);
    cJSON_Delete(json_of(&r));
    drop(&r);
}

/* mpirun would wait for two minutes after each of them. */
static void the_exit_code_is_that_of_the_training(void **state)
{
    const double begun = pm_seconds();

    (void)state;
    check(launch("-n 2 --restarts 3", "bad", "run.nonsense=1"), 2, "run.nonsense");
    check(launch("-n 2 --restarts 3", "bad", "data.folder=/nowhere"), 3, "/nowhere");
    check(launch("-n 2 --restarts 3", "bad", "--nonsense"), 2, "'--nonsense'");
    check(launch("-n 2 --restarts 3", "bad", "devices='[\"vulkan:77\",\"vulkan:78\"]'"), 4,
          "vulkan:77");
    assert_true(pm_seconds() - begun < 60);
}

static void wrong_command_lines_are_one_error(void **state)
{
    static const struct {
        const char *arguments, *part;
    } cases[] = {
        { "", "launch needs either -n N" },
        { "train x.json", "launch needs either -n N" },
        { "-n 2 --hosts a train x.json", "launch needs either -n N" },
        { "-n 2", "launch needs a command" },
        { "-n", "-n needs a value" },
        { "-n 0 train x.json", "'0' is not a whole number of 1 to 800" },
        { "-n 2x train x.json", "'2x' is not a whole number" },
        { "-n 2 --restarts -1 train x.json", "'-1' is not a whole number of 0 to 1000" },
        { "-n 2 --interface 1.2.3/8 train x.json", "'1.2.3/8' is neither" },
        { "--hosts a:x train x.json", "host a: 'x' is not a number of processes" },
        { "--hosts 'a b' train x.json", "'a b' is not the name of a host" },
        { "--hosts -n train x.json", "'-n' is not the name of a host" },
        { "--threads 2 train x.json", "launch has no flag '--threads'" },
        { "-n 2 eval x.json", "launch starts train or replicas, not 'eval'" },
        { "-n 2 launch -n 2 train x.json", "launch starts train or replicas" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++)
        check(run(how(""), "launch %s", cases[i].arguments), 2, cases[i].part);
    check(run(how(""), "launch --hostfile %s train x.json", in("none")), 3, "none");
    check(run(how("OMPI_COMM_WORLD_SIZE=2"), "launch -n 2 train x.json"), 2, "without mpirun");
    check(run(how(""), "launch -n 1 train x.json"), 2, "x.json: cannot be opened");
}

static void a_wrong_mpirun_is_one_error(void **state)
{
    char path[1100];

    (void)state;
    assert_int_equal(mkdir(in("empty"), 0755), 0);
    /* timeout is found by env before PATH changes for the program. */
    snprintf(path, sizeof path, "env PATH=%s", in("empty"));
    check(run(&(struct how){ .environment = path }, "launch -n 2 train x.json"), 2,
          "mpirun is not in PATH", "openmpi-bin");
    assert_int_equal(mkdir(in("other"), 0755), 0);
    make_script("other/mpirun", "#!/bin/sh\necho HYDRA build details:\n");
    snprintf(path, sizeof path, "PATH=%s:$PATH", in("other"));
    check(run(how(path), "launch -n 2 train x.json"), 2, "not Open MPI's ('HYDRA build details:')");
}

/* This mpirun starts one process and never ends. */
static void an_mpirun_that_hangs_is_ended(void **state)
{
    const double begun = pm_seconds();
    char path[1100];

    (void)state;
    assert_int_equal(mkdir(in("hangs"), 0755), 0);
    make_script("hangs/mpirun",
                "#!/bin/sh\n"
                "case $1 in --version) echo 'mpirun (Open MPI) 4.1.4'; exit ;; esac\n"
                "trap '' TERM\n"
                "while case $1 in /*) false ;; esac; do shift; done\n"
                "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 \"$@\"\n"
                "while :; do sleep 1; done\n");
    snprintf(path, sizeof path, "PATH=%s:$PATH", in("hangs"));
    check(run(how(path), "launch -n 1 train %s run.folder=%s %s", in("net.json"), in("hung"),
              options), 0);
    check(run(how(path), "launch -n 1 train %s run.nonsense=1", in("net.json")), 2,
          "run.nonsense");
    assert_true(pm_seconds() - begun < 60);
}

/* ---- long runs --------------------------------------------------------------------------- */

/* Starts a run of so many steps with its environment and flags, and waits until it has trained for
 * a while. Returns the launcher's process. */
static pid_t start_launch(const char *name, const char *environment, const char *flags, int steps)
{
    static char arguments[4096], variables[2048];
    struct how h = { .environment = variables };
    pid_t pid;

    snprintf(variables, sizeof variables,
             "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
             "OMPI_MCA_odls_base_sigkill_timeout=2 %s", environment);
    snprintf(arguments, sizeof arguments, "launch %s train %s run.folder=%s %s run.steps=%d "
             "run.save_every_steps=100 run.log_every_steps=10", flags, in("net.json"),
             in("%s", name), options, steps);
    pid = start(&h, in("%s.run", name), arguments);
    for (int i = 0; i < 600; i++) {
        struct stat s;

        if (stat(in("%s/latest", name), &s) == 0)
            return pid;
        usleep(50000);
    }
    fail_msg("%s does not train", name);
    return pid;
}

/* Whether processes of a run are left. */
static bool is_left(const char *name)
{
    char command[1200];

    snprintf(command, sizeof command, "exec pgrep -f 'run.folder=%s ' >/dev/null", in("%s", name));
    return system(command) == 0;
}

static void a_signal_stops_the_training(void **state)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(signals); i++) {
        const double begun = pm_seconds();
        char name[32];
        struct result r;
        pid_t pid;

        snprintf(name, sizeof name, "signal-%zu", i);
        pid = start_launch(name, "", "-n 2 --restarts 3", 200000);
        kill(pid, signals[i]);
        r = finish(pid, in("%s.run", name));
        assert_int_equal(r.code, 128 + signals[i]);
        assert_contains(r.err, "stopped by a signal at step");
        assert_null(strstr(r.err, "restart 1"));
        assert_int_equal(newest(name), atoi(strstr(r.err, "signal at step") + 14));
        drop(&r);
        assert_false(is_left(name));
        assert_true(pm_seconds() - begun < 60);
    }
}

static void a_closed_output_stops_the_training(void **state)
{
    const char *environment = how("")->environment;
    char command[4096];
    int status;

    (void)state;
    snprintf(command, sizeof command,
             "{ env %s \"$PUMICE_PROGRAM\" launch -n 2 train %s run.folder=%s %s run.steps=200000 "
             "run.log_every_steps=10 2>&1; echo $? >%s; } | head -n 4 >/dev/null", environment,
             in("net.json"), in("pipe"), options, in("pipe.code"));
    status = system(command);
    assert_int_equal(status, 0);
    char *text = get_text(in("pipe.code"));
    assert_string_equal(text, "141\n");
    pm_free(text);
    assert_true(newest("pipe") > 0);
    assert_false(is_left("pipe"));
}

/* If the launcher is killed, the training stops. */
static void a_killed_launcher_ends_the_training(void **state)
{
    struct result r;
    pid_t pid;

    (void)state;
    pid = start_launch("orphan", "", "-n 2", 200000);
    kill(pid, SIGKILL);
    r = finish(pid, in("orphan.run"));
    assert_int_equal(r.code, -SIGKILL);
    drop(&r);
    for (int i = 0; i < 1000 && is_left("orphan"); i++)
        usleep(100000);
    assert_false(is_left("orphan"));
}

static void a_killed_process_is_a_restart(void **state)
{
    (void)state;
    check(launch("-n 2", "whole", "run.steps=1500 run.save_every_steps=100"), 0);
    for (int rank = 0; rank < 2; rank++) {
        char name[32];
        struct result r;
        pid_t pid;

        snprintf(name, sizeof name, "kill-%d", rank);
        pid = start_launch(name, "", "-n 2 --restarts 1", 1500);
        kill(process_of(name, rank), SIGKILL);
        r = finish(pid, in("%s.run", name));
        if (r.code != 0)
            fail_msg("code %d: %s", r.code, r.err);
        assert_contains(r.err, "a process or a host was lost: restart 1 of 1");
        assert_contains(r.err, "resuming");
        drop(&r);
        same_bytes(in("%s/checkpoints/step-001500.safetensors", name),
                   in("whole/checkpoints/step-001500.safetensors"));
    }
}

static void without_restarts_a_killed_process_is_the_end(void **state)
{
    struct result r;
    double begun;
    pid_t pid;

    (void)state;
    pid = start_launch("killed", "", "-n 2", 200000);
    begun = pm_seconds();
    kill(process_of("killed", 1), SIGKILL);
    r = finish(pid, in("killed.run"));
    assert_int_equal(r.code, 4);
    assert_contains(r.err, "rank 1 (");
    assert_contains(r.err, "is saved");
    drop(&r);
    assert_true(pm_seconds() - begun < 30);
    pid = start_launch("killed-alone", "", "-n 1", 200000);
    kill(process_of("killed-alone", 0), SIGKILL);
    check(finish(pid, in("killed-alone.run")), 4, "no other was left");
}

/* ---- hosts ------------------------------------------------------------------------------- */

/* Returns the variable that names a script in place of ssh: the command runs on this machine, with
 * the host's name if the system permits that. The host answers while the file HOST.down is not
 * there. As by ssh, only a few variables are passed on. */
static const char *agent(void)
{
    static char text[2048];
    struct pm_str script = { 0 };

    pm_str_add(&script,
               "#!/bin/sh\n"
               "host=$1; shift\n"
               "[ -e %s/$host.down ] && exit 255\n"
               "exec env -i PATH=\"$PATH\" HOME=\"$HOME\" OMPI_ALLOW_RUN_AS_ROOT=1 "
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 unshare -u sh -c \"hostname $host; $*\"\n",
               folder);
    make_script("agent", script.text);
    pm_str_free(&script);
    snprintf(text, sizeof text, "OMPI_MCA_plm_rsh_agent=%s", in("agent"));
    return text;
}

static void need_host_names(void)
{
    if (system("unshare -u hostname other >/dev/null 2>&1") == 0)
        return;
    print_message("skipped: a process may not have a host name of its own (unshare -u)\n");
    skip();
}

static void hosts_that_do_not_answer(void **state)
{
    (void)state;
    put_text(in("gone.down"), "");
    check(run(how(agent()), "launch --hosts localhost,gone train %s run.folder=%s %s",
              in("net.json"), in("gone-run"), options), 1, "there is no answer from gone", "ssh");
    check(run(how("OMPI_MCA_plm_rsh_agent=/bin/false"), "launch --hosts gone,far train %s "
              "run.folder=%s %s", in("net.json"), in("gone-run"), options), 1,
          "there is no answer from gone, far");
}

static void processes_on_two_hosts(void **state)
{
    struct result r;
    double begun;

    (void)state;
    need_host_names();
    r = run(how(agent()), "launch --hosts localhost,small:2 replicas %s --json", in("net.json"));
    assert_int_equal(r.code, 0);
    cJSON *o = json_of(&r), *ranks = cJSON_GetObjectItem(o, "ranks");
    int small = 0;
    for (int i = 0; i < cJSON_GetArraySize(ranks); i++)
        small += strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(ranks, i),
                                                                 "host")), "small") == 0;
    assert_int_equal(cJSON_GetArraySize(ranks), 3);
    assert_int_equal(small, 2);
    cJSON_Delete(o);
    drop(&r);
    begun = pm_seconds();
    check(run(how(agent()), "launch --hosts localhost,small train %s run.nonsense=1",
              in("net.json")), 2, "run.nonsense");
    check(run(how(agent()), "launch --hosts small,far train %s run.nonsense=1", in("net.json")), 2,
          "run.nonsense");
    assert_true(pm_seconds() - begun < 60);
}

/* Rank 1 is killed and its host answers no more: rank 0 goes on alone. */
static void a_lost_host_is_left_out(void **state)
{
    struct result r;
    pid_t pid;

    (void)state;
    need_host_names();
    pid = start_launch("host", agent(), "--hosts localhost,small --restarts 2", 1500);
    put_text(in("small.down"), "");
    kill(process_of("host", 1), SIGKILL);
    r = finish(pid, in("host.run"));
    assert_int_equal(r.code, 0);
    assert_contains(r.err, "no answer from small");
    assert_contains(r.err, "restart 1 of 2");
    assert_contains(r.err, "-n 1 --host localhost:1");
    assert_null(strstr(r.err, "restart 2"));
    drop(&r);
    assert_int_equal(newest("host"), 1500);
    assert_int_equal(unlink(in("small.down")), 0);
}

/* ---- replicas ---------------------------------------------------------------------------- */

static void one_process_is_one_row(void **state)
{
    struct result r = run(NULL, "replicas %s data.folder=/nowhere devices='[\"cpu\"]'",
                          in("net.json"));

    (void)state;
    assert_int_equal(r.code, 0);
    assert_contains(r.out, "rank  host");
    assert_contains(r.out, "/nowhere (not there)");
    assert_contains(r.out, "cpu (");
    assert_int_equal(count_text(r.out, "\n"), 2);
    drop(&r);
    r = run(NULL, "replicas %s --measure --json", in("net.json"));
    assert_int_equal(r.code, 0);
    cJSON *o = json_of(&r);
    assert_true(number_of(cJSON_GetObjectItem(o, "step"), "alone_seconds") > 0);
    assert_null(cJSON_GetObjectItem(o, "links"));
    cJSON_Delete(o);
    drop(&r);
    check(run(NULL, "replicas"), 2, "replicas needs a config");
    check(run(NULL, "replicas %s devices='[\"vulkan:77\"]'", in("net.json")), 4, "vulkan:77");
}

static void processes_are_measured(void **state)
{
    static const char *const keys[] = { "alone_seconds", "exchange_seconds", "seconds" };
    struct result r = run(how(""), "launch -n 3 replicas %s --measure --json "
                          "run.exchange=bfloat16 run.batch_size=12", in("net.json"));
    cJSON *o, *links, *step;

    (void)state;
    assert_int_equal(r.code, 0);
    o = json_of(&r);
    links = cJSON_GetObjectItem(o, "links");
    step = cJSON_GetObjectItem(o, "step");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(o, "ranks")), 3);
    assert_int_equal(cJSON_GetArraySize(links), 3);
    for (int i = 0; i < 3; i++) {
        const cJSON *link = cJSON_GetArrayItem(links, i);

        assert_true(number_of(link, "latency_us") > 0 && number_of(link, "latency_us") < 1e6);
        assert_true(number_of(link, "megabytes_per_second") > 1);
    }
    for (size_t i = 0; i < PM_COUNT(keys); i++)
        assert_true(number_of(step, keys[i]) > 0 && number_of(step, keys[i]) < 10);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(step, "wire")), "bfloat16");
    assert_true(number_of(step, "bytes") == 4 * number_of(step, "gradients"));
    cJSON_Delete(o);
    drop(&r);
    r = run(how(""), "launch -n 2 replicas %s --measure run.batch_size=12", in("net.json"));
    assert_int_equal(r.code, 0);
    assert_contains(r.out, "ranks 0 and 1: latency ");
    assert_contains(r.out, "an exchange of the net's ");
    assert_contains(r.out, "without the exchange");
    drop(&r);
    check(run(how(""), "launch -n 3 replicas %s --measure run.batch_size=2", in("net.json")), 2,
          "run.batch_size: 2");
}

/* ---- mpirun without launch --------------------------------------------------------------- */

static void a_bound_process_says_so(void **state)
{
    struct result r;
    char environment[4096];

    (void)state;
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        print_message("skipped: there is one core\n");
        skip();
    }
    snprintf(environment, sizeof environment, "%s mpirun -n 2 --bind-to core",
             how("")->environment);
    r = run(&(struct how){ .environment = environment }, "train %s run.folder=%s %s",
            in("net.json"), in("bound"), options);
    assert_int_equal(r.code, 0);
    assert_int_equal(count_text(r.err, "mpirun has bound this process to "), 2);
    assert_int_equal(count_text(r.err, "--bind-to none"), 2);
    assert_contains(r.err, "[1 ");
    drop(&r);
}

static void a_missing_plug_in_is_one_error(void **state)
{
    char environment[4096];

    (void)state;
    for (int i = 0; i < 5; i++) { /* which process ends first is chance */
        snprintf(environment, sizeof environment,
                 "%s mpirun -n 3 --oversubscribe -x PM_MPI_PLUGIN=/nowhere/x.so",
                 how("")->environment);
        check(run(&(struct how){ .environment = environment }, "train %s run.folder=%s",
                  in("net.json"), in("bad")), 2, "/nowhere/x.so", "libopenmpi-dev");
    }
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
        cmocka_unit_test(a_training_is_started),
        cmocka_unit_test(the_exit_code_is_that_of_the_training),
        cmocka_unit_test(wrong_command_lines_are_one_error),
        cmocka_unit_test(a_wrong_mpirun_is_one_error),
        cmocka_unit_test(an_mpirun_that_hangs_is_ended),
        cmocka_unit_test(a_signal_stops_the_training),
        cmocka_unit_test(a_closed_output_stops_the_training),
        cmocka_unit_test(a_killed_launcher_ends_the_training),
        cmocka_unit_test(a_killed_process_is_a_restart),
        cmocka_unit_test(without_restarts_a_killed_process_is_the_end),
        cmocka_unit_test(hosts_that_do_not_answer),
        cmocka_unit_test(processes_on_two_hosts),
        cmocka_unit_test(a_lost_host_is_left_out),
        cmocka_unit_test(one_process_is_one_row),
        cmocka_unit_test(processes_are_measured),
        cmocka_unit_test(a_bound_process_says_so),
        cmocka_unit_test(a_missing_plug_in_is_one_error),
    };

    if (system("command -v mpirun >/dev/null") != 0) {
        print_message("skipped: mpirun (package openmpi-bin) is not installed\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, set_up, drop_world);
}
