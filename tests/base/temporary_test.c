/* Temporary files and folders: those of killed processes are removed, those in use are kept. */
#include "base/scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { NOBODY = 1999999999 }; /* larger than any process number */
static const char *of(const char *target, long pid, const char *end)
{
    static char text[8][256];
    static int next;

    next = (next + 1) % 8;
    snprintf(text[next], sizeof text[next], "%s.tmp-%ld%s", target, pid, end);
    return text[next];
}

static void put(const char *name)
{
    const int fd = open(in("%s", name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static void make_old(const char *name)
{
    const struct timespec times[2] = { { .tv_sec = time(NULL) - 100 },
                                       { .tv_sec = time(NULL) - 100 } };

    assert_int_equal(utimensat(AT_FDCWD, in("%s", name), times, 0), 0);
}

static bool is_there(const char *name)
{
    return pm_file_exists(in("%s", name)) || pm_is_folder(in("%s", name));
}

/* Starts a child that makes a temporary for the target, and kills it. Returns the child's
 * number. */
static pid_t killed(const char *target)
{
    int pipe_of[2];
    char ready;

    assert_int_equal(pipe(pipe_of), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct pm_new_file f;
        const bool made =
            pm_new_file_open(&f, in("%s", target)) == 0 && pm_new_file_add(&f, "x", 1) == 0;
        if (write(pipe_of[1], made ? "y" : "n", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(pipe_of[0], &ready, 1), 1);
    assert_int_equal(ready, 'y');
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(pipe_of[0]);
    close(pipe_of[1]);
    return child;
}

static size_t count_of(const char *pattern)
{
    struct pm_arena *a = pm_arena_create();
    char **paths;
    size_t n;

    assert_int_equal(pm_glob(a, in("%s", pattern), &paths, &n), 0);
    pm_arena_destroy(&a);
    return n;
}

static void those_of_dead_processes_go(void **state)
{
    (void)state;
    killed("a.bin");
    killed("b.bin");
    assert_int_equal(count_of("a.bin.tmp-*"), 1);
    assert_int_equal(pm_file_write(in("a.bin"), "new", 3), 0);
    assert_int_equal(count_of("a.bin.tmp-*"), 0);
    assert_int_equal(count_of("b.bin.tmp-*"), 1); /* belongs to another target */
    assert_int_equal(pm_file_write(in("b.bin"), "new", 3), 0);
    assert_int_equal(count_of("b.bin.tmp-*"), 0);
}

/* Folders are removed, too. Files whose names only resemble a temporary's are kept. */
static void names(void **state)
{
    static const char *const others[] = { "t.tmp-x", "t.tmp-", "t.tmp", "t.tmp-12x",
                                          "at.tmp-1999999999" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(others); i++)
        put(others[i]);
    put(of("t", NOBODY, ""));
    put(of("t", NOBODY, "-abcdef"));
    assert_int_equal(pm_make_folders(in("t.tmp-1999999999-folder/inner")), 0);
    pm_temporaries_clean(in("t"));
    assert_int_equal(count_of("t.tmp-1999999999*"), 0);
    for (size_t i = 0; i < PM_COUNT(others); i++) {
        assert_true(is_there(others[i]));
        unlink(in("%s", others[i]));
    }
}

static void those_of_the_living_stay(void **state)
{
    struct pm_new_file f;
    const char *fresh = of("c.bin", (long)getpid(), "-fresh"),
               *old = of("c.bin", (long)getpid(), "-old00");

    (void)state;
    put(fresh); /* the state between creating and locking */
    put(old);   /* unlocked for so long that the process number belongs to another process now */
    make_old(old);
    pm_temporaries_clean(in("c.bin"));
    assert_true(is_there(fresh));
    assert_false(is_there(old));
    unlink(in("%s", fresh));

    /* Locked by a process without a number here, for example in another container. */
    const char *far = of("c.bin", NOBODY, "-abcdef");
    put(far);
    make_old(far);
    const int fd = open(in("%s", far), O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    pm_temporaries_clean(in("c.bin"));
    assert_true(is_there(far));
    close(fd);
    pm_temporaries_clean(in("c.bin"));
    assert_false(is_there(far));

    /* A temporary of this process is kept at any age until it gets its name, also after its
     * sync. */
    assert_int_equal(pm_new_file_open(&f, in("c.bin")), 0);
    assert_int_equal(pm_new_file_add(&f, "x", 1), 0);
    assert_int_equal(pm_new_file_sync(&f), 0);
    make_old(strrchr(f.temporary, '/') + 1);
    pm_temporaries_clean(in("c.bin"));
    assert_int_equal(pm_new_file_commit(&f), 0);
    assert_true(is_there("c.bin"));
}

static void folders(void **state)
{
    char *path = NULL;
    int lock;
    struct stat st;

    (void)state;
    assert_int_equal(pm_temporary_folder(in("d"), &path, &lock), 0);
    assert_int_equal(stat(path, &st), 0);
    const mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(st.st_mode & 0777, 0777 & ~mask);
    make_old(strrchr(path, '/') + 1);
    pm_temporaries_clean(in("d"));
    assert_true(pm_is_folder(path));
    close(lock); /* as when its process dies */
    make_old(strrchr(path, '/') + 1);
    pm_temporaries_clean(in("d"));
    assert_false(pm_is_folder(path));
    pm_free(path);
}

static int set_up(void **state)
{
    scratch_set_up(state);
    put("another.tmp-0-x"); /* a folder without temporaries is listed only once */
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_of_dead_processes_go),
        cmocka_unit_test(names),
        cmocka_unit_test(those_of_the_living_stay),
        cmocka_unit_test(folders),
    };

    return cmocka_run_group_tests(tests, set_up, scratch_tear_down);
}
