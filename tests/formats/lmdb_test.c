/* LMDB files: keys in several leaves, large values, another machine's files, and damage. */
#include "base/shared_data.h"
#include "lmdb_made.h"

#include "formats/lmdb.h"

static char large[1200];
static const struct made_entry entries[] = {
    { "a", "first", 5 }, { "aa", "", 0 },     { "b", "with\0nul", 8 }, { "ba", large, 1200 },
    { "c", "x", 1 },     { "cc", large, 151 }, { "z", "last", 4 },
};

static struct made_lmdb made;
static char *folder;
static struct pm_str path;

static int begin(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (char)(i * 7);
    folder = make_folder();
    path = (struct pm_str){ 0 };
    pm_str_add(&path, "%s/data.mdb", folder);
    made_lmdb(&made, entries, PM_COUNT(entries));
    return 0;
}

static int end(void **state)
{
    (void)state;
    drop_folder(folder);
    pm_str_free(&path);
    return 0;
}

static void put(size_t size)
{
    assert_int_equal(pm_file_write(path.text, made.bytes, size), PM_OK);
}

static void values(void **state)
{
    static const char *const absent[] = { "", "0", "ab", "bb", "c0", "zz" };
    struct pm_lmdb *l = NULL;
    char *value = NULL;
    size_t size = 0;

    (void)state;
    put(MADE_PAGE * made.pages);
    for (int k = 0; k < 2; k++) { /* by the folder and by the file */
        assert_int_equal(pm_lmdb_open(k ? path.text : folder, &l), PM_OK);
        assert_string_equal(pm_lmdb_path(l), path.text);
        for (size_t i = 0; i < PM_COUNT(entries); i++) {
            assert_int_equal(pm_lmdb_get(l, entries[i].key, NULL, NULL), 1);
            assert_int_equal(pm_lmdb_get(l, entries[i].key, &value, &size), 1);
            assert_int_equal(size, entries[i].size);
            assert_memory_equal(value, entries[i].value, size);
            assert_int_equal(value[size], 0);
            pm_free(value);
        }
        for (size_t i = 0; i < PM_COUNT(absent); i++)
            assert_int_equal(pm_lmdb_get(l, absent[i], &value, &size), 0);
        pm_lmdb_close(&l);
        assert_null(l);
    }
}

static void empty(void **state)
{
    struct pm_lmdb *l = NULL;

    (void)state;
    made_meta(&made, 1, UINT64_MAX, 2);
    put(MADE_PAGE * made.pages);
    assert_int_equal(pm_lmdb_open(folder, &l), PM_OK);
    assert_int_equal(pm_lmdb_get(l, "a", NULL, NULL), 0);
    pm_lmdb_close(&l);
}

static void refuses(size_t size, const char *text)
{
    struct pm_lmdb *l = NULL;

    put(size);
    assert_int_equal(pm_lmdb_open(folder, &l), PM_EDATA);
    assert_contains(pm_error_text(), text);
    assert_contains(pm_error_text(), path.text);
    assert_null(strchr(pm_error_text(), '\n'));
}

static void refused(void **state)
{
    const size_t all = MADE_PAGE * made.pages;
    uint8_t *m = made.bytes;

    (void)state;
    refuses(0, "cut short");
    refuses(100, "cut short");
    refuses(MADE_PAGE, "cut short");
    refuses(all - 1, "cut short: it has");
    memmove(m + 12, m + 16, 140); /* the header of a 32-bit machine has 12 bytes */
    refuses(all, "32-bit words");
    made_lmdb(&made, entries, PM_COUNT(entries));
    memcpy(m + 16, "\xbe\xef\xc0\xde", 4);
    refuses(all, "big-endian");
    memset(m + 16, 'x', 4);
    refuses(all, "not an LMDB file");
    made_meta(&made, 0, UINT64_MAX, 1);
    made_number(m + 20, 999, 4);
    refuses(all, "version 999");
    made_meta(&made, 0, UINT64_MAX, 1);
    made_number(m + 40, 500, 4);
    refuses(all, "pages of 500 bytes");
    made_meta(&made, 0, UINT64_MAX, 1);
    made_number(m + MADE_PAGE + 92, 4, 2);
    refuses(all, "several values share a key");
}

/* Each byte of each page is changed, one after the other: a value is right, absent or refused. */
static void damaged(void **state)
{
    size_t refusals = 0;

    (void)state;
    for (size_t at = 2 * MADE_PAGE; at < MADE_PAGE * 7; at++) {
        const uint8_t was = made.bytes[at];

        made.bytes[at] ^= 0xff;
        if (made.bytes[at] == was)
            continue;
        FILE *f = fopen(path.text, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(made.bytes, MADE_PAGE, made.pages, f), made.pages);
        assert_int_equal(fclose(f), 0);
        struct pm_lmdb *l = NULL;
        assert_int_equal(pm_lmdb_open(folder, &l), PM_OK);
        for (size_t i = 0; i < PM_COUNT(entries); i++) {
            char *value = NULL;
            size_t size = 0;
            const int found = pm_lmdb_get(l, entries[i].key, &value, &size);

            assert_true(found == 0 || found == 1 || found == PM_EDATA);
            refusals += found == PM_EDATA;
            assert_true(found == 1 || value == NULL);
            pm_free(value);
        }
        pm_lmdb_close(&l);
        made.bytes[at] = was;
    }
    assert_true(refusals > 100);
}

static void circles(void **state)
{
    struct pm_lmdb *l = NULL;

    (void)state;
    uint8_t *root = made.bytes + 2 * MADE_PAGE;
    const unsigned first = root[16] | (unsigned)root[17] << 8;

    made_number(root + first, 2, 4); /* its first child is the root */
    put(MADE_PAGE * made.pages);
    assert_int_equal(pm_lmdb_open(folder, &l), PM_OK);
    assert_int_equal(pm_lmdb_get(l, "a", NULL, NULL), PM_EDATA);
    assert_contains(pm_error_text(), "page 2 is damaged: the tree is deeper");
    pm_lmdb_close(&l);
}

/* A file of TensorFlow's tests: "0" is "a", and so on to "9". Pages of older versions are not
 * read. */
static void shared_file(void **state)
{
    const char *file = shared_data("lmdb/data.mdb");
    struct pm_lmdb *l = NULL;

    (void)state;
    assert_int_equal(pm_lmdb_open(file, &l), PM_OK);
    for (int i = 0; i < 10; i++) {
        const char key[] = { (char)('0' + i), '\0' };
        char *value = NULL;
        size_t size = 0;

        assert_int_equal(pm_lmdb_get(l, key, &value, &size), 1);
        assert_int_equal(size, 1);
        assert_int_equal(value[0], 'a' + i);
        pm_free(value);
    }
    assert_int_equal(pm_lmdb_get(l, "a", NULL, NULL), 0);
    pm_lmdb_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values, begin, end),
        cmocka_unit_test_setup_teardown(empty, begin, end),
        cmocka_unit_test_setup_teardown(refused, begin, end),
        cmocka_unit_test_setup_teardown(damaged, begin, end),
        cmocka_unit_test_setup_teardown(circles, begin, end),
        cmocka_unit_test(shared_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
