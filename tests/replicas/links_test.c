/* Connections of ranks are measured, with threads as ranks: every pair, all ranks get the result. A
 * process that is bound to fewer cores than its launcher is found. */
#include "replicas/threads_transport.h"

#include <pumice/replicas.h>

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 3 };

struct place {
    pthread_t thread;
    struct wires *wires;
    int err;
    bool right;
    struct pm_replica_link last; /* of the last pair */
};

/* Measures all pairs. */
static void *run_place(void *arg)
{
    struct place *p = arg;
    struct pm_replicas *r = NULL;
    int err = PM_OK;

    p->right = true;
    PM_TRY(pm_replicas_open(&threads_transport, p->wires, &r));
    for (int a = 0; a < RANKS; a++)
        for (int b = 0; b < RANKS; b++) {
            if (a == b)
                continue;
            PM_TRY(pm_replicas_measure(r, a, b, &p->last));
            p->right &= p->last.latency > 0 && p->last.latency < 10 &&
                        p->last.bytes_per_second > 0;
        }
out:
    p->err = pm_replicas_leave(&r, err);
    return NULL;
}

static void connections_are_measured(void **state)
{
    struct wires *w = wires_create(RANKS, 3);
    struct place p[RANKS];

    (void)state;
    for (int i = 0; i < RANKS; i++) {
        p[i] = (struct place){ .wires = w };
        assert_int_equal(pthread_create(&p[i].thread, NULL, run_place, &p[i]), 0);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(p[i].thread, NULL);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(p[i].err, PM_OK);
        assert_true(p[i].right);
        assert_memory_equal(&p[i].last, &p[0].last, sizeof p[0].last);
    }
    wires_destroy(&w);
}

/* A child with fewer cores than this process, its parent, as mpirun's children may have. */
static void a_bound_process_is_found(void **state)
{
    cpu_set_t all, one;
    int status;
    pid_t pid;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2)
        skip();
    pid = fork();
    if (pid == 0) {
        int cores, of;
        bool right;

        unsetenv("OMPI_COMM_WORLD_SIZE");
        right = !pm_replicas_bound(&cores, &of) && cores == CPU_COUNT(&all) && of == cores;
        setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
        right &= !pm_replicas_bound(&cores, &of);
        CPU_ZERO(&one);
        for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
            if (CPU_ISSET(i, &all))
                CPU_SET(i, &one);
        right &= sched_setaffinity(0, sizeof one, &one) == 0;
        right &= pm_replicas_bound(&cores, &of) && cores == 1 && of == CPU_COUNT(&all);
        unsetenv("OMPI_COMM_WORLD_SIZE"); /* something else has bound it */
        right &= !pm_replicas_bound(&cores, &of);
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_are_measured),
        cmocka_unit_test(a_bound_process_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
