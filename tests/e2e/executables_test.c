/* Every executable of the build, as the loader reads it: no library is loaded from the working
 * directory, at the start or by dlopen, and the hardening that the build turned on is in the
 * file.
 *
 * CMake lists the executables in the file PUMICE_EXECUTABLES, one on each line, and defines
 * HARDENED_... for each measure of third_party/Hardening.cmake that is on. */
#include "e2e/program.h"

#include "data/archives.h"
#include "data/http_server.h"
#include "e2e/elf.h"

static struct pm_arena *arena;
static char **executables; /* in the arena */
static size_t executables_count;
static char *installed; /* the program after cmake --install */

/* Libraries that the program opens by itself when it needs them. */
static const char *const opened[] = { "libvulkan.so.1", "libcurl.so.4", "libcurl-gnutls.so.4",
                                      "libarchive.so.13" };

static int read_executables(void **state)
{
    char *text = NULL, *rest;
    size_t capacity = 0;
    char **list = NULL;

    (void)state;
    arena = pm_arena_create();
    if (!getenv("PUMICE_EXECUTABLES") ||
        pm_file_read(getenv("PUMICE_EXECUTABLES"), &text, NULL) < 0)
        return -1;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        PM_GROW(list, executables_count, capacity);
        list[executables_count++] = pm_arena_strdup(arena, line);
    }
    executables = pm_arena_copy(arena, list, executables_count * sizeof *list);
    pm_free(list);
    pm_free(text);
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("LD_PRELOAD");
    return make_world(false);
}

static int drop_executables(void **state)
{
    pm_arena_destroy(&arena);
    return drop_world(state);
}

/* Runs a shell command, which must end with 0. */
PM_PRINTF(1, 2) static void shell(const char *format, ...)
{
    struct pm_str command = { 0 };
    va_list ap;

    va_start(ap, format);
    pm_str_add_args(&command, format, ap);
    va_end(ap);
    const int status = system(command.text);
    if (status != 0)
        fail_msg("%s: status %d", command.text, status);
    pm_str_free(&command);
}

static void install_program(void **state)
{
    (void)state;
    shell("'%s' --install '%s' --prefix '%s' >'%s' 2>&1", getenv("CMAKE_COMMAND"),
          getenv("PUMICE_BUILD"), in("installed"), in("install.log"));
    installed = pm_arena_strdup(arena, in("installed/bin/pumice"));
    assert_true(pm_file_exists(installed));
}

/* ---- run paths --------------------------------------------------------------------------- */

/* An empty entry, "." and entries that do not begin with / or $ORIGIN depend on the working
 * directory. */
static void check_run_path(const struct elf *e, const char *path)
{
    for (const char *entry = path;; entry++) {
        const size_t n = strcspn(entry, ":");
        const bool origin = strncmp(entry, "$ORIGIN", 7) == 0 && (n == 7 || entry[7] == '/');
        if (entry[0] != '/' && !origin)
            fail_msg("%s: the run path \"%s\" has the entry \"%.*s\", which depends on the working "
                     "directory", e->path, path, (int)n, entry);
        entry += n;
        if (!*entry)
            return;
    }
}

static void check_run_paths(const char *file)
{
    static const int64_t tags[] = { DT_RPATH, DT_RUNPATH };
    struct elf e = elf_open(file);

    for (size_t i = 0; i < PM_COUNT(tags); i++) {
        const char *path = elf_dynamic_text(&e, tags[i], 0);
        if (path)
            check_run_path(&e, path);
    }
    elf_close(&e);
}

static void run_paths_are_absolute(void **state)
{
    (void)state;
    assert_true(executables_count > 50);
    for (size_t i = 0; i < executables_count; i++)
        check_run_paths(executables[i]);
    check_run_paths(installed);
}

/* ---- planted libraries ------------------------------------------------------------------- */

/* Makes a folder that holds the planted library under each of these names. */
static const char *plant(const char *name, const char *const *names, size_t count)
{
    const char *to = pm_arena_strdup(arena, in("%s", name));

    assert_int_equal(pm_make_folders(to), 0);
    for (size_t i = 0; i < count; i++)
        shell("cp '%s' '%s/%s'", getenv("PUMICE_PLANTED_LIBRARY"), to, names[i]);
    return to;
}

/* The same for the libraries of all executables and for those that the program opens by itself. */
static const char *plant_all(void)
{
    const char *to = plant("planted", opened, PM_COUNT(opened));

    for (size_t i = 0; i < executables_count; i++) {
        struct elf e = elf_open(executables[i]);
        const char *name;
        for (int k = 0; (name = elf_dynamic_text(&e, DT_NEEDED, k)); k++)
            if (!strchr(name, '/') && strncmp(name, "ld-linux", 8) != 0 &&
                !pm_file_exists(pm_arena_printf(arena, "%s/%s", to, name)))
                plant("planted", &name, 1);
        elf_close(&e);
    }
    return to;
}

/* Starts a program in a folder. Returns true when the constructor of a planted library ran. */
static bool ran_planted(const char *program, const char *where, const char *environment,
                        const char *arguments, int *code)
{
    struct pm_str command = { 0 };
    const char *mark = in("mark");

    unlink(mark);
    pm_str_add(&command, "cd '%s' && env PUMICE_PLANTED='%s' %s '%s' %s >'%s' 2>&1 </dev/null",
               where, mark, environment, program, arguments, in("started"));
    const int status = system(command.text);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    pm_str_free(&command);
    return pm_file_exists(mark);
}

/* The loader lists the libraries that it would load, with their paths, and starts nothing. */
static void check_trace(const char *program, const char *where)
{
    int code;
    char *text;

    ran_planted(program, where, "LD_TRACE_LOADED_OBJECTS=1", "", &code);
    text = get_text(in("started"));
    assert_int_equal(code, 0);
    assert_contains(text, "libc.so.6 => /");
    for (const char *arrow = text; (arrow = strstr(arrow, " => ")); arrow += 4)
        if (arrow[4] != '/' || strncmp(arrow + 4, where, strlen(where)) == 0)
            fail_msg("%s, started in %s: %.*s", program, where, (int)strcspn(arrow, "\n"), arrow);
    pm_free(text);
}

static void linked_libraries(void **state)
{
    const char *where = plant_all();
    const char *cjson = "libcjson.so.1", *control = plant("control", &cjson, 1);
    int code;

    (void)state;
    for (size_t i = 0; i < executables_count; i++)
        check_trace(executables[i], where);
    check_trace(installed, where);
    assert_false(ran_planted(getenv("PUMICE_PROGRAM"), where, "", "--version", &code));
    assert_int_equal(code, 0);
    assert_false(ran_planted(installed, where, "", "--version", &code));
    assert_int_equal(code, 0);
    /* The trap works: with LD_LIBRARY_PATH the loader loads the planted library, which lacks
     * every function. */
    ran_planted(installed, control, "LD_LIBRARY_PATH=.", "--version", &code);
    assert_int_not_equal(code, 0);
}

/* Writes FOLDER/sums with the output of sha256sum for the archive. */
static void write_sums(const struct pm_str *archive)
{
    struct pm_sha256 s;
    char hex[65];

    pm_sha256_start(&s);
    pm_sha256_add(&s, archive->text, archive->length);
    pm_sha256_end(&s, hex);
    put_text(in("sums"), pm_arena_printf(arena, "%s  cifar-10-binary.tar.gz\n", hex));
}

/* Arguments of a download into a new folder, because existing data is not downloaded again. */
static const char *download(const struct server *server, const char *name)
{
    return pm_arena_printf(arena,
                           "dataset download cifar10 '%s' --from http://127.0.0.1:%d/m --sums '%s'",
                           in("%s", name), server->port, in("sums"));
}

/* `devices` opens libvulkan. A download opens libcurl and libarchive; its archive holds no
 * pictures. */
static void opened_libraries(void **state)
{
    struct pm_str tar = { 0 };
    tar_file(&tar, "cifar-10-batches-bin/readme", "none", 4);
    tar_end(&tar);
    struct pm_str archive = gzipped(&tar);
    struct page pages[] = {
        { .path = "/m/cifar-10-binary.tar.gz", .data = archive.text, .size = archive.length },
        { 0 },
    };
    struct server server;
    const char *programs[] = { getenv("PUMICE_PROGRAM"), installed };
    const char *where = pm_arena_strdup(arena, in("planted"));
    char *text;
    int code;

    (void)state;
    server_start(&server, pages);
    write_sums(&archive);
    for (size_t i = 0; i < PM_COUNT(programs); i++) {
        assert_false(ran_planted(programs[i], where, "", "devices", &code));
        assert_false(ran_planted(programs[i], where, "",
                                 download(&server, i ? "fetched1" : "fetched0"), &code));
        text = get_text(in("started"));
        /* The archive was downloaded and unpacked, so both libraries were used. */
        assert_contains(text, "unpacked/cifar-10-batches-bin: it has neither");
        pm_free(text);
    }
    /* The trap works: the program opens libraries by these names. */
    assert_true(ran_planted(installed, plant("vulkan", &opened[0], 1), "LD_LIBRARY_PATH=.",
                            "devices", &code));
    assert_true(ran_planted(installed, plant("curl", &opened[1], 1), "LD_LIBRARY_PATH=.",
                            download(&server, "fetched2"), &code));
    assert_true(ran_planted(installed, plant("archive", &opened[3], 1), "LD_LIBRARY_PATH=.",
                            download(&server, "fetched3"), &code));
    server_stop(&server);
    pm_str_free(&archive);
}

/* ---- hardening --------------------------------------------------------------------------- */

static void check_layout(const char *file)
{
    struct elf e = elf_open(file);
    const ElfW(Phdr) *stack = elf_segment(&e, PT_GNU_STACK);

    if (!stack || stack->p_flags & PF_X)
        fail_msg("%s: its stack is executable", file);
#ifdef HARDENED_PIE
    if (e.head->e_type != ET_DYN || !(elf_flags(&e, DT_FLAGS_1) & DF_1_PIE))
        fail_msg("%s: is no position-independent executable", file);
#endif
#ifdef HARDENED_RELRO
    if (!elf_segment(&e, PT_GNU_RELRO))
        fail_msg("%s: no PT_GNU_RELRO", file);
    if (!(elf_flags(&e, DT_FLAGS) & DF_BIND_NOW) && !(elf_flags(&e, DT_FLAGS_1) & DF_1_NOW))
        fail_msg("%s: functions are not bound at the start (-z now)", file);
#endif
    elf_close(&e);
}

static void layout_is_hardened(void **state)
{
    (void)state;
#ifndef HARDENED_PIE
    print_message("not looked for: PIE, which CMake does not know here\n");
#endif
#ifndef HARDENED_RELRO
    print_message("not looked for: RELRO, as PUMICE_HARDEN is off\n");
#endif
    for (size_t i = 0; i < executables_count; i++)
        check_layout(executables[i]);
    check_layout(installed);
}

static void code_is_hardened(void **state)
{
    struct elf e = elf_open(installed);

    (void)state;
#ifdef HARDENED_STACK
    assert_non_null(elf_symbol(&e, SHT_DYNSYM, "__stack_chk_fail", ""));
#else
    print_message("not looked for: the stack protector, which the build does not use\n");
#endif
#ifdef HARDENED_FORTIFY
    assert_non_null(elf_symbol(&e, SHT_DYNSYM, "__memcpy", "_chk"));
    assert_non_null(elf_symbol(&e, SHT_DYNSYM, "__snprintf", "_chk"));
#else
    print_message("not looked for: checked libc calls, which the build does not use\n");
#endif
#ifdef HARDENED_BRANCHES
    const ElfW(Sym) *entry = elf_symbol(&e, SHT_SYMTAB, "main", "main");
    assert_non_null(entry);
    assert_memory_equal(elf_address(&e, entry->st_value, 4), "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
#else
    print_message("not looked for: marks of indirect branches, which the build does not use\n");
#endif
    elf_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(install_program),     cmocka_unit_test(run_paths_are_absolute),
        cmocka_unit_test(linked_libraries),    cmocka_unit_test(opened_libraries),
        cmocka_unit_test(layout_is_hardened),  cmocka_unit_test(code_is_hardened),
    };

    return cmocka_run_group_tests(tests, read_executables, drop_executables);
}
