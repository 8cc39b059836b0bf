/* Makes each input cheap for every fuzz target. fsync does nothing, because no file has to
 * survive a power cut (the linker option --wrap=fsync redirects the program's calls here). The
 * address sanitizer keeps less freed memory and shorter allocation stacks;
 * ASAN_OPTIONS=malloc_context_size=30 shows longer ones. */
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    (void)fd;
    return 0;
}

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=4:malloc_context_size=4";
}
