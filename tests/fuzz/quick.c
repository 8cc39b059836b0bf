/* What makes one input cheap, for every fuzz target: nothing has to survive a power cut (linked
 * with --wrap=fsync, which sends the program's calls here), and the address sanitizer keeps less of
 * freed memory and of where it was allocated. ASAN_OPTIONS=malloc_context_size=30 shows more of a
 * finding. */
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
