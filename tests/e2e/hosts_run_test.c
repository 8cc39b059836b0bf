/* Training on two hosts, which are namespaces of this machine (replicas/hosts.sh). mpirun runs on
 * hosta and starts the process of hostb as it would do by ssh.
 *
 * - Two hosts have the bits of one process with two devices, at both rates of the network.
 * - The hosts need no common disk.
 * - A data folder that is missing on one host is one line of error.
 * - If a cable is pulled or a host loses its power, each survivor saves the last whole step and
 *   ends with an error that names the lost host. mpirun may not notice, so the test ends it;
 *   `pumice launch` does that itself.
 *
 * Skipped where namespaces are not permitted. */
#include "e2e/program.h"

static const char *const two_cpus =
    "devices='[{\"name\":\"cpu\",\"threads\":1},{\"name\":\"cpu\",\"threads\":1}]'";
static const char *const one_cpu = "devices='[{\"name\":\"cpu\",\"threads\":1}]'";
static const char *const both[] = { "hosta", "hostb" };
static const double hang_seconds = 3; /* run.hang_seconds of runs that lose a host */
static char script[1024], disks[256]; /* hosts.sh; the folder with the disks of the hosts */

/* Runs hosts.sh and returns its exit code. */
static int hosts(const char *arguments)
{
    char command[4096];

    snprintf(command, sizeof command, "%s %s", script, arguments);
    const int status = system(command);

    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Returns a path below FOLDER/own on the disk of a host. */
static const char *on(const char *host, const char *path)
{
    static char text[4][2048];
    static int next;

    next = (next + 1) % 4;
    snprintf(text[next], sizeof text[next], "%s/disk-%s%s/%s", disks, host, in("own"), path);
    return text[next];
}

/* Returns the command that starts a process on each host. Rank r leaves its exit code in
 * FOLDER/code-r. */
static const char *launcher(void)
{
    static char text[8192];

    for (int rank = 0; rank < 2; rank++)
        unlink(in("code-%d", rank));
    snprintf(text, sizeof text,
             "timeout -s KILL 100 %s run hosta env OMPI_ALLOW_RUN_AS_ROOT=1 "
             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 2 --host hosta,hostb --map-by node "
             "--bind-to none --mca plm_rsh_agent '%s rsh' sh %s",
             script, script, in("rank.sh"));
    return text;
}

static struct result train(const char *name, const char *more)
{
    return run(&(struct how){ .environment = launcher() }, "train %s run.folder=%s %s %s",
               in("net.json"), in("%s", name), one_cpu, more);
}

/* Trains one process with two devices and compares its checkpoint. */
static void same_as_alone(const char *checkpoint, int step)
{
    char name[64];

    snprintf(name, sizeof name, "alone-%d", step);
    check(run(NULL, "train %s run.folder=%s run.steps=%d %s", in("net.json"), in("%s", name), step,
              two_cpus), 0);
    same_bytes(checkpoint, in("%s/checkpoints/step-%06d.safetensors", name, step));
}

static void two_hosts_have_the_bits_of_one_process(void **state)
{
    static const char *const rates[] = { "1gbit", "100mbit" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(rates); i++) {
        char up[64];

        snprintf(up, sizeof up, "up %s", rates[i]);
        assert_int_equal(hosts(up), 0);
        check(train(rates[i], "run.steps=20"), 0, "rank 0 (hosta) 4, rank 1 (hostb) 4");
        same_as_alone(in("%s/checkpoints/step-000020.safetensors", rates[i]), 20);
        same_losses("alone-20", rates[i], 1, 20, 0);
    }
}

/* Only hosta has the data, under a path that both hosts have. */
static void a_missing_data_folder_is_one_error(void **state)
{
    char command[1900], more[1100];

    (void)state;
    assert_int_equal(hosts("up 1gbit"), 0);
    snprintf(command, sizeof command, "run hosta cp -r %s %s", in("data"), in("own/data"));
    assert_int_equal(hosts(command), 0);
    snprintf(more, sizeof more, "data.folder=%s", in("own/data"));
    check(train("missing", more), 3, "rank 1 (hostb)", "own/data: no such folder");
}

/* ---- lost hosts -------------------------------------------------------------------------- */

/* Starts a long run whose folder each host has for itself, and waits until it trains. by_launch: by
 * `pumice launch` instead of mpirun. */
static pid_t start_long(bool by_launch)
{
    char arguments[4096], environment[4096];
    pid_t pid;

    snprintf(environment, sizeof environment,
             "timeout -s KILL 100 %s run hosta env OMPI_ALLOW_RUN_AS_ROOT=1 "
             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent='%s rsh'", script, script);
    snprintf(arguments, sizeof arguments,
             "%s train %s run.folder=%s run.steps=1000000 run.log_every_steps=20 "
             "run.hang_seconds=%g %s", by_launch ? "launch --hosts hosta,hostb" : "",
             in("net.json"), in("own/run"), hang_seconds, one_cpu);
    pid = start(&(struct how){ .environment = by_launch ? environment : launcher() }, in("long"),
                arguments);
    for (int i = 0; i < 600; i++) {
        struct stat s;

        if (stat(on("hosta", "run/metrics.jsonl"), &s) == 0 && s.st_size > 2000)
            return pid;
        usleep(50000);
    }
    fail_msg("the hosts do not train");
    return pid;
}

/* Waits until a rank has ended, and checks its exit code. It may take as long as the limit, the
 * time until states are due, and the time to save and to leave. */
static void await_code(int rank, int code)
{
    const double until = pm_seconds() + hang_seconds + 10;
    char *text;

    while (!pm_file_exists(in("code-%d", rank)) && pm_seconds() < until)
        usleep(50000);
    if (!pm_file_exists(in("code-%d", rank)))
        fail_msg("rank %d does not end", rank);
    text = get_text(in("code-%d", rank));
    assert_int_equal(atoi(text), code);
    pm_free(text);
}

/* Returns the step of the checkpoint that a host has on its disk. */
static int saved_on(const char *host)
{
    char *text = get_text(on(host, "run/latest"));
    int step = 0;

    sscanf(text, "checkpoints/step-%d", &step);
    pm_free(text);
    return step;
}

static void saved_like_alone(const char *host)
{
    const int step = saved_on(host);
    char path[128];

    assert_true(step > 0);
    snprintf(path, sizeof path, "run/checkpoints/step-%06d.safetensors", step);
    same_as_alone(on(host, path), step);
}

/* The file is read while mpirun runs. */
static void printed(const char *text)
{
    char *err = get_text(in("long.err"));

    assert_contains(err, text);
    pm_free(err);
}

/* Ends what is left on the hosts, and mpirun with it. */
static void end(pid_t pid)
{
    int status;

    for (size_t i = 0; i < PM_COUNT(both); i++) {
        char kill_host[64];

        snprintf(kill_host, sizeof kill_host, "kill %s", both[i]);
        hosts(kill_host);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* Each host takes the other one for lost. */
static void a_pulled_cable_is_noticed(void **state)
{
    pid_t pid;

    (void)state;
    assert_int_equal(hosts("up 1gbit"), 0);
    pid = start_long(false);
    assert_int_equal(hosts("link-down hostb"), 0);
    await_code(0, 4);
    await_code(1, 4);
    printed("error: rank 1 (hostb): ");
    printed("(run.hang_seconds): its process, its host or the network is down");
    saved_like_alone("hosta");
    saved_like_alone("hostb");
    end(pid);
}

static void a_host_without_power_is_noticed(void **state)
{
    pid_t pid;

    (void)state;
    assert_int_equal(hosts("up 1gbit"), 0);
    pid = start_long(false);
    assert_int_equal(hosts("kill hostb"), 0);
    await_code(0, 4);
    printed("error: rank 1 (hostb): ");
    saved_like_alone("hosta");
    end(pid);
}

static void launch_ends_when_a_host_is_gone(void **state)
{
    struct result r;
    pid_t pid;

    (void)state;
    assert_int_equal(hosts("up 1gbit"), 0);
    pid = start_long(true);
    assert_int_equal(hosts("kill hostb"), 0);
    r = finish(pid, in("long"));
    assert_int_equal(r.code, 4);
    assert_contains(r.err, "rank 1 (hostb): ");
    drop(&r);
    saved_like_alone("hosta");
}

/* The host of the chief is lost. Rank 1 saves the step on its own disk. Later both hosts start
 * again; the chief gets this checkpoint. */
static void a_lost_chief_is_replaced_and_comes_back(void **state)
{
    char more[1024], path[128];
    pid_t pid;
    int step;

    (void)state;
    assert_int_equal(hosts("up 1gbit"), 0);
    pid = start_long(false);
    assert_int_equal(hosts("kill hosta"), 0);
    await_code(1, 4);
    assert_false(pm_file_exists(on("hosta", "run/latest")));
    saved_like_alone("hostb");
    step = saved_on("hostb");
    end(pid);
    assert_int_equal(hosts("link-up hosta"), 0);
    assert_int_equal(hosts("link-up hostb"), 0);
    snprintf(more, sizeof more, "run.steps=%d run.folder=%s", step + 5, in("own/run"));
    check(train("unused", more), 0, "comes from rank 1 (hostb)");
    snprintf(path, sizeof path, "run/checkpoints/step-%06d.safetensors", step + 5);
    same_as_alone(on("hosta", path), step + 5);
}

/* ------------------------------------------------------------------------------------------ */

static int set_up(void **state)
{
    char text[2048];

    (void)state;
    if (make_world(true) < 0)
        return -1;
    snprintf(text, sizeof text, "\"$@\"\ncode=$?\necho $code >%s-$OMPI_COMM_WORLD_RANK.new\n"
             "mv %s-$OMPI_COMM_WORLD_RANK.new %s-$OMPI_COMM_WORLD_RANK\nexit $code\n",
             in("code"), in("code"), in("code"));
    put_text(in("rank.sh"), text);
    setenv("HOSTS_PRIVATE", in("own"), 1);
    return pm_make_folders(in("own"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_hosts_have_the_bits_of_one_process),
        cmocka_unit_test(a_missing_data_folder_is_one_error),
        cmocka_unit_test(a_pulled_cable_is_noticed),
        cmocka_unit_test(a_host_without_power_is_noticed),
        cmocka_unit_test(launch_ends_when_a_host_is_gone),
        cmocka_unit_test(a_lost_chief_is_replaced_and_comes_back),
    };
    char name[64];
    int code;

    if (system("command -v mpirun >/dev/null") != 0) {
        print_message("skipped: mpirun (package openmpi-bin) is not installed\n");
        return 77;
    }
    snprintf(name, sizeof name, "test-%d", (int)getpid());
    setenv("HOSTS_NAME", name, 1);
    snprintf(disks, sizeof disks, "/run/pumice-hosts/%s", name);
    snprintf(script, sizeof script, "%s/tests/replicas/hosts.sh", getenv("PUMICE_SOURCE"));
    code = hosts("up");
    if (code == 0)
        code = cmocka_run_group_tests(tests, set_up, drop_world);
    else if (code != 77) /* then it has printed why */
        print_message("hosts.sh up: exit code %d\n", code);
    hosts("down");
    return code;
}
