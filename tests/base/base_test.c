/* Errors, log, memory, strings, files, sha256, parallel loops. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>

#include <pumice/thread.h>

static void errors(void **state)
{
    (void)state;

    assert_int_equal(pm_fail(PM_ECONFIG, "x.json: %s", "line\nbreak"), PM_ECONFIG);
    assert_string_equal(pm_error_text(), "x.json: line\\x0Abreak");
    /* A message may contain the previous message. */
    pm_fail(PM_EDATA, "a: %s", pm_error_text());
    assert_string_equal(pm_error_text(), "a: x.json: line\\x0Abreak");
    assert_int_equal(pm_exit_code(PM_OK), 0);
    assert_int_equal(pm_exit_code(PM_EFAIL), 1);
    assert_int_equal(pm_exit_code(PM_ECONFIG), 2);
    assert_int_equal(pm_exit_code(PM_EDATA), 3);
    assert_int_equal(pm_exit_code(PM_EDEVICE), 4);
    assert_int_equal(pm_exit_code(PM_ELOST), 4);
}

static void *other_thread(void *arg)
{
    bool *clean = arg;

    *clean = pm_error_text()[0] == '\0';
    pm_fail(PM_EFAIL, "theirs");
    return NULL;
}

static void errors_per_thread(void **state)
{
    pthread_t t;
    bool clean = false;
    (void)state;

    pm_fail(PM_EFAIL, "mine");
    assert_int_equal(pthread_create(&t, NULL, other_thread, &clean), 0);
    pthread_join(t, NULL);
    assert_true(clean);
    assert_string_equal(pm_error_text(), "mine");
}

static void log_filter(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    (void)state;

    pm_log_set_level(PM_LEVEL_WARN);
    pm_log_file(f);
    PM_INFO("test", "not shown");
    PM_WARN("test", "shown %d", 7);
    pm_log_file(NULL);
    PM_WARN("test", "only on standard error");
    fclose(f);
    pm_log_set_level(PM_LEVEL_INFO);
    assert_contains(text, "Z warning: test: shown 7\n");
    assert_null(strstr(text, "not shown"));
    assert_null(strstr(text, "only"));
    assert_true(pm_log_enabled(PM_LEVEL_INFO, "test"));
    assert_false(pm_log_enabled(PM_LEVEL_DEBUG, "test"));
    free(text);
}

static void arena(void **state)
{
    struct pm_arena *a = pm_arena_create();
    (void)state;

    for (size_t size = 0; size < 3000; size += 7) {
        uint8_t *p = pm_arena_alloc(a, size);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, size);
    }
    uint8_t *large = pm_arena_alloc(a, 5 << 20);
    large[(5 << 20) - 1] = 1;
    assert_string_equal(pm_arena_printf(a, "%d-%s", 12, "x"), "12-x");
    assert_string_equal(pm_arena_strdup(a, ""), "");
    pm_arena_destroy(&a);
    assert_null(a);
    pm_arena_destroy(&a);
}

static void counting(void **state)
{
    uint64_t before = pm_alloc_count();
    (void)state;

    pm_free(pm_malloc(0));
    pm_free(pm_calloc(0, 5));
    pm_free(pm_realloc(NULL, 3));
    pm_free(pm_strdup("x"));
    assert_int_equal(pm_alloc_count() - before, 4);
}

static void strings(void **state)
{
    struct pm_str s = { 0 };
    char buf[24];
    (void)state;

    for (int i = 0; i < 100; i++)
        pm_str_add(&s, "%d,", i % 10);
    assert_int_equal(s.length, 200);
    pm_str_bytes(&s, "\0x", 2);
    assert_int_equal(s.length, 202);
    assert_int_equal(s.text[201], 'x');
    assert_int_equal(s.text[202], '\0');
    pm_str_free(&s);
    assert_null(s.text);

    assert_string_equal(pm_bytes_text(0, buf), "0 B");
    assert_string_equal(pm_bytes_text(1023, buf), "1023 B");
    assert_string_equal(pm_bytes_text(12288, buf), "12 KiB");
    assert_string_equal(pm_bytes_text(UINT64_C(3) << 29, buf), "1.5 GiB");
    assert_string_equal(pm_bytes_text(UINT64_MAX, buf), "16 EiB");
    /* FNV-1a's published vectors. */
    assert_true(pm_hash("") == UINT64_C(0xcbf29ce484222325));
    assert_true(pm_hash("a") == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(pm_hash("foobar") == UINT64_C(0x85944171f73967e8));
}

static void plural(void **state)
{
    (void)state;
    assert_string_equal(pm_plural(1, "class", "classes"), "class");
    assert_string_equal(pm_plural(0, "class", "classes"), "classes");
    assert_string_equal(pm_plural(2, "class", "classes"), "classes");
    assert_string_equal(pm_plural((double)NAN, "class", "classes"), "classes");
}

static void nearest(void **state)
{
    static const char *const names[] = { "momentum", "adam", "adagrad", "rmsprop", "lr" };
    static const char *const one[] = { "batch_size" };
    (void)state;

    assert_string_equal(pm_nearest("momentun", names, 5), "momentum");
    assert_string_equal(pm_nearest("rmspropp", names, 5), "rmsprop");
    assert_string_equal(pm_nearest("amdam", names, 5), "adam");
    assert_string_equal(pm_nearest("adma", names, 5), "adam"); /* a swap of two letters is one
                                                                * edit */
    assert_string_equal(pm_nearest("Batch_Size", one, 1), "batch_size");
    assert_null(pm_nearest("xyz", names, 5));
    assert_null(pm_nearest("", names, 5));
    assert_null(pm_nearest("adam", names, 0));
}

static void sha256(void **state)
{
    static const struct {
        const char *text, *hex;
    } cases[] = {
        /* examples of FIPS 180-4, and the empty message */
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };
    struct pm_sha256 s;
    char hex[65], part[65];
    (void)state;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        pm_sha256_start(&s);
        pm_sha256_add(&s, cases[i].text, strlen(cases[i].text));
        pm_sha256_end(&s, hex);
        assert_string_equal(hex, cases[i].hex);
    }
    /* A million 'a', the standard's long example, in pieces that cross block boundaries. */
    char a[997];
    memset(a, 'a', sizeof a);
    pm_sha256_start(&s);
    for (size_t left = 1000000; left > 0;) {
        size_t n = left < sizeof a ? left : sizeof a;
        pm_sha256_add(&s, a, n);
        left -= n;
    }
    pm_sha256_end(&s, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    /* The result does not depend on the sizes of the pieces, for lengths around the block size. */
    for (size_t n = 50; n < 140; n++) {
        pm_sha256_start(&s);
        pm_sha256_add(&s, a, n);
        pm_sha256_end(&s, hex);
        pm_sha256_start(&s);
        for (size_t i = 0; i < n; i++)
            pm_sha256_add(&s, a, 1);
        pm_sha256_end(&s, part);
        assert_string_equal(hex, part);
    }
}

static void files(void **state)
{
    char *folder = make_folder(), *text = NULL;
    struct pm_arena *a = pm_arena_create();
    const char *path = pm_arena_printf(a, "%s/a/b/c.txt", folder);
    size_t size = 0, count = 0;
    char **names = NULL;
    (void)state;

    assert_int_equal(pm_make_folders(pm_arena_printf(a, "%s/a//b/", folder)), 0);
    assert_true(pm_is_folder(pm_arena_printf(a, "%s/a/b", folder)));
    assert_int_equal(pm_file_write(path, "a\0b", 3), 0);
    assert_int_equal(pm_file_write(path, "c\0de", 4), 0);
    assert_int_equal(pm_file_read(path, &text, &size), 0);
    assert_int_equal(size, 4);
    assert_memory_equal(text, "c\0de", 5);
    assert_true(pm_file_exists(path));
    assert_false(pm_file_exists(folder));
    pm_free(text);

    assert_int_equal(pm_file_write(pm_arena_printf(a, "%s/a/b/B", folder), "", 0), 0);
    assert_int_equal(pm_list_folder(a, pm_arena_printf(a, "%s/a/b", folder), &names, &count), 0);
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "B");
    assert_string_equal(names[1], "c.txt");
    assert_int_equal(pm_glob(a, pm_arena_printf(a, "%s/a/*/c*", folder), &names, &count), 0);
    assert_int_equal(count, 1);
    assert_string_equal(names[0], path);
    assert_int_equal(pm_glob(a, pm_arena_printf(a, "%s/z*", folder), &names, &count), 0);
    assert_int_equal(count, 0);

    assert_int_equal(pm_file_read(pm_arena_printf(a, "%s/none", folder), &text, NULL), PM_EDATA);
    assert_contains(pm_error_text(), "/none: cannot be opened: No such file");
    assert_int_equal(pm_file_read(folder, &text, NULL), PM_EDATA);
    assert_contains(pm_error_text(), "is a folder");
    assert_int_equal(pm_make_folders(pm_arena_printf(a, "%s/x", path)), PM_EFAIL);
    assert_int_equal(pm_remove_tree(pm_arena_printf(a, "%s/a", folder)), 0);
    assert_false(pm_is_folder(pm_arena_printf(a, "%s/a", folder)));
    assert_int_equal(pm_remove_tree(pm_arena_printf(a, "%s/a", folder)), 0);
    pm_arena_destroy(&a);
    drop_folder(folder);
}

/* A write that fails leaves the old content and no temporary file. The mode follows the umask. */
static void atomic_write(void **state)
{
    char *folder = make_folder(), *text = NULL;
    struct pm_arena *a = pm_arena_create();
    const char *path = pm_arena_printf(a, "%s/keep", folder);
    struct rlimit old, tiny;
    struct stat st;
    size_t count = 0;
    char **names = NULL, *large = pm_calloc(1, 1 << 20);
    (void)state;

    assert_int_equal(pm_file_write(path, "old", 3), 0);
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0666 & ~mask);

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    tiny = old;
    tiny.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &tiny);
    int err = pm_file_write(path, large, 1 << 20);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(err, PM_EFAIL);
    assert_contains(pm_error_text(), "/keep: writing failed: ");
    assert_int_equal(pm_file_read(path, &text, NULL), 0);
    assert_string_equal(text, "old");
    assert_int_equal(pm_list_folder(a, folder, &names, &count), 0);
    assert_int_equal(count, 1);
    pm_free(text);
    pm_free(large);
    pm_arena_destroy(&a);
    drop_folder(folder);
}

struct visits {
    uint8_t seen[10007];
    size_t grain;
    int bad; /* atomic count of ranges that break the contract */
};

static void visit(void *ctx, size_t begin, size_t end)
{
    struct visits *v = ctx;

    if (begin >= end || begin % v->grain || (end % v->grain && end != sizeof v->seen))
        __atomic_fetch_add(&v->bad, 1, __ATOMIC_RELAXED);
    for (size_t i = begin; i < end; i++)
        v->seen[i]++;
}

static void visit_nested(void *ctx, size_t begin, size_t end)
{
    struct visits *v = ctx;

    for (size_t i = begin; i < end; i++)
        pm_parallel(1, 1, visit, &v[i]);
}

static void parallel(void **state)
{
    static struct visits v, many[64];
    int before = pm_threads();
    (void)state;

    assert_true(before >= 1);
    for (int threads = 1; threads <= 9; threads += 4) {
        pm_threads_set(threads);
        assert_int_equal(pm_threads(), threads);
        for (size_t grain = 1; grain < 30000; grain *= 6) {
            v = (struct visits){ .grain = grain };
            pm_parallel(sizeof v.seen, grain, visit, &v);
            assert_int_equal(v.bad, 0);
            for (size_t i = 0; i < sizeof v.seen; i++)
                assert_int_equal(v.seen[i], 1);
        }
    }
    for (size_t i = 0; i < 64; i++)
        many[i].grain = 1;
    pm_parallel(64, 1, visit_nested, many);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(many[i].seen[0], 1);
    pm_parallel(0, 1, visit, NULL);
    pm_threads_set(0);
    assert_int_equal(pm_threads(), 1);
    pm_threads_set(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors),     cmocka_unit_test(errors_per_thread),
        cmocka_unit_test(log_filter), cmocka_unit_test(arena),
        cmocka_unit_test(counting),   cmocka_unit_test(strings),
        cmocka_unit_test(plural), cmocka_unit_test(nearest),    cmocka_unit_test(sha256),
        cmocka_unit_test(files),      cmocka_unit_test(atomic_write),
        cmocka_unit_test(parallel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
