/* Connections of ranks are measured, with threads as ranks: every pair, all ranks get the result. A
 * process that is bound to fewer cores than its launcher is found. */
#include "replicas/places.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3 };

/* Measures all pairs. last: [RANKS] of the last pair. */
static void measure(struct place *p)
{
    struct pm_replica_link *last = &((struct pm_replica_link *)p->ctx)[p->rank];

    p->right = true;
    for (int a = 0; a < RANKS && p->err == PM_OK; a++)
        for (int b = 0; b < RANKS && p->err == PM_OK; b++) {
            if (a == b)
                continue;
            p->err = pm_replicas_measure(p->r, a, b, last);
            p->right &= last->latency > 0 && last->latency < 10 && last->bytes_per_second > 0;
        }
}

static void connections_are_measured(void **state)
{
    struct wires *w = wires_create(RANKS, 3);
    struct pm_replica_link last[RANKS];
    struct place p[RANKS];

    (void)state;
    run_places(w, p, measure, last);
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(p[i].err, PM_OK);
        assert_true(p[i].right);
        assert_memory_equal(&last[i], &last[0], sizeof last[0]);
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
    if (CPU_COUNT(&all) < 2) {
        print_message("skipped: there is one core\n");
        skip();
    }
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
