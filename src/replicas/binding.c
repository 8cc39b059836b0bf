/* binding: whether mpirun has bound this process. mpirun 4.1 binds each of two processes to one
 * core, and each of more to a part of the cores. This process's parent is mpirun or its daemon,
 * which is not bound. So the parent's cores are those that this process could have: limits of a
 * container, of taskset or of a batch system hold for both. */
#include <pumice/replicas.h>

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

/* pid 0: this process. Returns 0 if its cores are not known. */
static int cores_of(pid_t pid)
{
    cpu_set_t set;

    return sched_getaffinity(pid, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

bool pm_replicas_bound(int *cores, int *of)
{
    *cores = cores_of(0);
    *of = cores_of(getppid());
    return getenv("OMPI_COMM_WORLD_SIZE") && *cores > 0 && *cores < *of;
}
