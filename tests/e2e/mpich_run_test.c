/* Training through MPICH, a second MPI beside Open MPI. CMakeLists.txt builds the plug-in once more
 * with MPICH's compiler; PUMICE_MPICH names it. Skipped where MPICH is not installed.
 *
 * - Processes have the bits of devices, as through Open MPI.
 * - A launcher of the other MPI than the plug-in's is one line of error. */
#include "e2e/replicas_run.h"

static const char *const mpich = "mpirun.mpich";
static const char *const open_mpi = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                                    "mpirun --oversubscribe";

/* plugin: NULL is the one that the program has, Open MPI's. */
static struct result train_by(int ranks, const char *mpirun, const char *plugin, const char *name,
                              const char *more)
{
    char text[2048];
    const struct how how = { .environment = text };

    snprintf(text, sizeof text, "%s%s %s -n %d", plugin ? "PM_MPI_PLUGIN=" : "",
             plugin ? plugin : "", mpirun, ranks);
    return run(ranks > 0 ? &how : NULL,
               "train %s run.folder=%s run.steps=20 run.batch_size=12 %s", in("net.json"),
               in("%s", name), more);
}

static void mpich_has_the_bits_of_devices(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 3; ranks++) {
        char devices[32], processes[32];

        snprintf(devices, sizeof devices, "devices-%d", ranks);
        snprintf(processes, sizeof processes, "processes-%d", ranks);
        check(train_by(0, "", NULL, devices, cpus(ranks)), 0);
        check(train_by(ranks, mpich, getenv("PUMICE_MPICH"), processes, cpus(1)), 0);
        same_bytes(in("%s/checkpoints/step-000020.safetensors", devices),
                   in("%s/checkpoints/step-000020.safetensors", processes));
        same_losses(devices, processes, 1, 20, 0);
    }
}

static void open_mpi_has_the_same_bits(void **state)
{
    (void)state;
    check(train_by(2, open_mpi, NULL, "open", cpus(1)), 0);
    same_bytes(in("open/checkpoints/step-000020.safetensors"),
               in("processes-2/checkpoints/step-000020.safetensors"));
}

static void launchers_of_another_mpi_are_refused(void **state)
{
    struct result r;

    (void)state;
    r = train_by(2, mpich, NULL, "refused", cpus(1));
    assert_int_equal(r.code, 2);
    assert_contains(r.err, "PMI_SIZE is 2, but Open MPI sees 1 process");
    drop(&r);
    r = train_by(2, open_mpi, getenv("PUMICE_MPICH"), "refused", cpus(1));
    assert_int_equal(r.code, 2);
    assert_contains(r.err, "OMPI_COMM_WORLD_SIZE is 2, but MPI sees 1 process");
    drop(&r);
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
        cmocka_unit_test(mpich_has_the_bits_of_devices),
        cmocka_unit_test(open_mpi_has_the_same_bits),
        cmocka_unit_test(launchers_of_another_mpi_are_refused),
    };

    if (!getenv("PUMICE_MPICH")) {
        print_message("skipped: MPICH (packages mpich, libmpich-dev) is not installed\n");
        return 77;
    }
    if (!has_mpirun())
        return 77;
    return cmocka_run_group_tests(tests, set_up, drop_world);
}
