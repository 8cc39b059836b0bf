/* A library that stands for another one with the same name. Its constructor creates the file
 * that PUMICE_PLANTED names. executables_test.c copies it. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void leave_mark(void)
{
    const char *path = getenv("PUMICE_PLANTED");

    if (path)
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}
