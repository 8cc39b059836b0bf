/* Starts training in several processes, for the tests of it. Each test uses a part of this. */
#ifndef REPLICAS_RUN_H
#define REPLICAS_RUN_H

#include "e2e/program.h"
#include "e2e/same_run.h"

#include <signal.h>
#include <sys/stat.h>

/* The key `devices` with 1, 2 or 3 CPUs of one thread. */
static inline const char *cpus(int count)
{
    static const char *const texts[] = {
        "devices='[{\"name\":\"cpu\",\"threads\":1}]'",
        "devices='[{\"name\":\"cpu\",\"threads\":1},{\"name\":\"cpu\",\"threads\":1}]'",
        "devices='[{\"name\":\"cpu\",\"threads\":1},{\"name\":\"cpu\",\"threads\":1},"
        "{\"name\":\"cpu\",\"threads\":1}]'",
    };

    return texts[count - 1];
}

/* Checkpoints, moving averages and evaluations within 20 steps. */
#define OPTIONS "run.steps=20 run.batch_size=12 run.save_every_steps=10 " \
                "optim.moving_average_decay=0.9 eval.every_steps=10 run.log_every_steps=1"

/* Returns the command that starts processes. mpirun runs as root only with both variables. */
static inline const char *launcher(int ranks, const char *more)
{
    static char text[8192];

    snprintf(text, sizeof text,
             "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 100 mpirun -n %d "
             "--oversubscribe %s", ranks, more);
    return text;
}

/* Trains 20 steps in so many processes, or, for 0, in one without mpirun. mpi: its options. */
static inline struct result train(int ranks, const char *mpi, const char *name, const char *more)
{
    const struct how how = { .environment = launcher(ranks, mpi) };

    return run(ranks > 0 ? &how : NULL, "train %s run.folder=%s %s %s", in("net.json"),
               in("%s", name), OPTIONS, more);
}

static inline void same_saved(const char *a, const char *b, int step)
{
    char one[1024];

    snprintf(one, sizeof one, "%s", in("%s/checkpoints/step-%06d.safetensors", a, step));
    same_bytes(one, in("%s/checkpoints/step-%06d.safetensors", b, step));
    snprintf(one, sizeof one, "%s", in("%s/checkpoints/step-%06d.json", a, step));
    same_bytes(one, in("%s/checkpoints/step-%06d.json", b, step));
}

/* The averages of losses in the checkpoints of two runs are equal. */
static inline void same_averages(const char *a, const char *b, int step)
{
    const char *const names[] = { a, b };
    cJSON *state[2];

    for (int i = 0; i < 2; i++) {
        char *text = get_text(in("%s/checkpoints/step-%06d.json", names[i], step));

        state[i] = cJSON_Parse(text);
        pm_free(text);
    }
    assert_true(cJSON_GetArraySize(cJSON_GetObjectItem(state[0], "loss_averages")) > 1);
    assert_true(cJSON_Compare(cJSON_GetObjectItem(state[0], "loss_averages"),
                              cJSON_GetObjectItem(state[1], "loss_averages"), true));
    cJSON_Delete(state[0]);
    cJSON_Delete(state[1]);
}

/* The lines of metrics.jsonl are equal but for times and speeds. */
static inline void same_lines(const char *a, const char *b)
{
    char one[1024];

    snprintf(one, sizeof one, "%s", in("%s", a));
    same_metrics(one, in("%s", b));
}

static inline bool has_mpirun(void)
{
    if (system("command -v mpirun >/dev/null") == 0)
        return true;
    print_message("skipped: mpirun (package openmpi-bin) is not installed\n");
    return false;
}

/* Starts a long run, and waits until it trains. more: further arguments. Returns the process of
 * mpirun. When a process ends, mpirun kills the others after 2 s, which is too short on a busy
 * machine: they save a checkpoint. So it waits longer, as with `pumice launch`. */
static inline pid_t start_long(const char *name, int ranks, const char *more)
{
    static char arguments[8192];
    const struct how how = { .environment = launcher(ranks, "--mca odls_base_sigkill_timeout 5") };
    pid_t pid;

    snprintf(arguments, sizeof arguments,
             "train %s run.folder=%s run.steps=200000 run.log_every_steps=20 devices='[\"cpu\"]' "
             "%s", in("net.json"), in("%s", name), more);
    pid = start(&how, in("%s.run", name), arguments);
    for (int i = 0; i < 2400; i++) { /* two minutes, for machines that other work keeps busy */
        struct stat s;

        if (stat(in("%s/metrics.jsonl", name), &s) == 0 && s.st_size > 2000)
            return pid;
        usleep(50000);
    }
    fail_msg("%s does not train", name);
    return pid;
}

/* Returns the process of a rank, which has the rank in its environment. */
static inline pid_t process_of(const char *name, int rank)
{
    char line[512], command[1024];
    int pid = 0;
    FILE *f;

    snprintf(command, sizeof command,
             "for p in $(pgrep -f 'run.folder=%s '); do "
             "tr '\\0' '\\n' </proc/$p/environ 2>/dev/null | "
             "grep -q '^OMPI_COMM_WORLD_RANK=%d$' && echo $p; done",
             in("%s", name), rank);
    f = popen(command, "r");
    while (f && fgets(line, sizeof line, f))
        pid = atoi(line);
    if (f)
        pclose(f);
    assert_true(pid > 0);
    return pid;
}

static inline int newest(const char *name)
{
    char *text = get_text(in("%s/latest", name));
    int step = -1;

    sscanf(text, "checkpoints/step-%d", &step);
    pm_free(text);
    return step;
}

/* The run has ended by SIGTERM, and has saved the step that it names. */
static inline void check_stopped(const char *name, struct result *r)
{
    assert_int_equal(r->code, 143);
    assert_contains(r->err, "stopped by a signal at step");
    assert_int_equal(newest(name), atoi(strstr(r->err, "signal at step") + 14));
    assert_true(newest(name) > 0);
    drop(r);
}

/* SIGTERM at one rank of a long run stops all. more: as for start_long. */
static inline void check_stop(const char *name, int ranks, int rank, const char *more)
{
    const pid_t pid = start_long(name, ranks, more);
    struct result r;

    kill(process_of(name, rank), SIGTERM);
    r = finish(pid, in("%s.run", name));
    check_stopped(name, &r);
}

/* Makes FOLDER/damaged: 40 training records. Records 2, 11, 20, 29 and 38 are damaged. */
static inline void make_damaged(void)
{
    char *bytes, path[1024];
    size_t size, at = 0;
    uint64_t length;

    check(run(NULL, "dataset make shapes %s size=16 train=40 validation=8 test=20", in("damaged")),
          0);
    snprintf(path, sizeof path, "%s", in("damaged/shapes_train_00000-of-00001.tfrecord"));
    assert_int_equal(pm_file_read(path, &bytes, &size), PM_OK);
    for (int i = 0; at < size; i++, at += 16 + (size_t)length) {
        memcpy(&length, bytes + at, sizeof length);
        if (i % 9 == 2)
            bytes[at + 12 + length / 2] ^= 0x55;
    }
    assert_int_equal(pm_file_write(path, bytes, size), PM_OK);
    pm_free(bytes);
}

#endif
