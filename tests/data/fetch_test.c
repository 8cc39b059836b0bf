/* Downloads from servers that work and from servers with faults. */
#include "../base/unit.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "data/download/download.h"
#include "http_server.h"

enum { SIZE = 100000 };

static char *folder;
static uint8_t right[SIZE], wrong[SIZE];
static char sum[65];

enum {
    PLAIN,
    FIXED,
    CUTS,
    CUTWHOLE,
    LONGER,
    SAYLONG,
    SHORTER,
    RANGES,
    TOTAL,
    BUSY_TWICE,
    GONE,
    WENT,
    ROUND,
    DIFFERENT,
    ALWAYS_BUSY,
    LITTLE,
    FOR_EVER,
    PAGES
};
static struct page pages[PAGES + 1] = {
    [PLAIN] = { "/plain", right, SIZE, GOOD },
    [FIXED] = { "/fixed", right, SIZE, NO_RANGES },
    [CUTS] = { "/cuts", right, SIZE, CUT, 30000 },
    [CUTWHOLE] = { "/cutwhole", right, SIZE, CUT_WHOLE, 30000 },
    [LONGER] = { "/longer", right, SIZE, TOO_LONG, 10 },
    [SAYLONG] = { "/saylong", right, SIZE, SAYS_LONGER, 10 },
    [SHORTER] = { "/shorter", right, SIZE, SAYS_SHORTER, 60000 },
    [RANGES] = { "/ranges", right, SIZE, OTHER_RANGE },
    [TOTAL] = { "/total", right, SIZE, OTHER_TOTAL },
    [BUSY_TWICE] = { "/busy", right, SIZE, BUSY, 2 },
    [GONE] = { "/gone", right, SIZE, MISSING },
    [WENT] = { "/went", NULL, 0, MOVED, 0, "/plain" },
    [ROUND] = { "/round", NULL, 0, MOVED, 0, "/round" },
    [DIFFERENT] = { "/different", wrong, SIZE, GOOD },
    [LITTLE] = { "/little", right, 500, GOOD },
    [FOR_EVER] = { "/forever", right, SIZE, ENDLESS },
    [ALWAYS_BUSY] = { "/always", right, SIZE, BUSY, 1000000 },
};
static struct server server;
static uint64_t most = 1000000, disk_free = UINT64_MAX; /* limits of the next download */

/* Replaces the C library's function: reports disk_free before the file is written. */
int fstatvfs(int fd, struct statvfs *v)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    *v = (struct statvfs){ .f_frsize = 1, .f_bavail = disk_free - (uint64_t)st.st_size };
    return 0;
}

static const char *in(const char *name)
{
    static char text[8][512];
    static int next;

    next = (next + 1) % 8;
    snprintf(text[next], sizeof text[next], "%s/%s", folder, name);
    return text[next];
}

/* Downloads FOLDER/x from one or two pages (the second may be below 0), continuing a part with
 * these bytes. */
static int fetch(int first, int second, const void *part, size_t part_size, bool known_size)
{
    char address[2][128];
    const char *list[3] = { address[0], second < 0 ? NULL : address[1], NULL };

    snprintf(address[0], 128, "http://127.0.0.1:%d%s", server.port, pages[first].path);
    if (second >= 0)
        snprintf(address[1], 128, "http://127.0.0.1:%d%s", server.port, pages[second].path);
    for (int i = 0; i < PAGES; i++)
        pages[i].requests = 0;
    unlink(in("x"));
    unlink(in("x.part"));
    if (part)
        assert_int_equal(pm_file_write(in("x.part"), part, part_size), 0);
    return pm_fetch(&(struct pm_fetch){ .name = "x",
                                        .addresses = list,
                                        .path = in("x"),
                                        .size = known_size ? SIZE : 0,
                                        .most = most,
                                        .sha256 = sum }, NULL);
}

static void is_right(int err)
{
    char *data = NULL;
    size_t size = 0;

    if (err < 0)
        fail_msg("%s", pm_error_text());
    assert_int_equal(pm_file_read(in("x"), &data, &size), 0);
    assert_int_equal(size, SIZE);
    assert_memory_equal(data, right, SIZE);
    pm_free(data);
    assert_false(pm_file_exists(in("x.part")));
}

static void fails(int err, int code, const char *text)
{
    assert_int_equal(err, code);
    assert_contains(pm_error_text(), text);
    assert_false(pm_file_exists(in("x")));
}

static void whole(void **state)
{
    (void)state;
    is_right(fetch(PLAIN, -1, NULL, 0, true));
    assert_int_equal(pages[PLAIN].requests, 1);
    assert_string_equal(pages[PLAIN].range, "");
    is_right(fetch(PLAIN, -1, NULL, 0, false));
    is_right(fetch(WENT, -1, NULL, 0, true));
    is_right(fetch(BUSY_TWICE, -1, NULL, 0, true));
    assert_int_equal(pages[BUSY_TWICE].requests, 3);
    is_right(fetch(GONE, PLAIN, NULL, 0, true));
    assert_int_equal(pages[GONE].requests, 1);
    is_right(fetch(DIFFERENT, PLAIN, NULL, 0, true));
}

/* An existing correct file is not downloaded. A wrong one is left to the user. */
static void there(void **state)
{
    const char *const list[] = { "http://127.0.0.1:1/x", NULL };
    const struct pm_fetch f = { .name = "x", .addresses = list, .path = in("x"), .size = SIZE,
                                .sha256 = sum };
    (void)state;

    is_right(fetch(PLAIN, -1, NULL, 0, true));
    is_right(pm_fetch(&f, NULL));
    assert_int_equal(pm_file_write(in("x"), wrong, SIZE), 0);
    assert_int_equal(pm_fetch(&f, NULL), PM_EDATA);
    assert_contains(pm_error_text(), "remove it");
}

/* Only the first digits of the checksum are known, or none. */
static void few_digits(void **state)
{
    char first[9], address[128], hex[65] = "";
    const char *const list[] = { address, NULL };
    struct pm_fetch f = { .name = "x", .addresses = list, .path = in("x"), .most = most,
                          .sha256 = first };
    (void)state;

    snprintf(first, sizeof first, "%.8s", sum);
    snprintf(address, sizeof address, "http://127.0.0.1:%d/plain", server.port);
    unlink(in("x"));
    is_right(pm_fetch(&f, hex));
    assert_string_equal(hex, sum);
    hex[0] = '\0';
    is_right(pm_fetch(&f, hex)); /* it exists */
    assert_string_equal(hex, sum);
    first[7] = first[7] == '0' ? '1' : '0';
    assert_int_equal(pm_fetch(&f, hex), PM_EDATA);
    assert_contains(pm_error_text(), ", which does not begin with ");
    assert_contains(pm_error_text(), first);
    unlink(in("x"));
    fails(pm_fetch(&f, hex), PM_EDATA, ", which does not begin with ");
    f.sha256 = "";
    is_right(pm_fetch(&f, hex));
    assert_string_equal(hex, sum);
}

/* The caller's advice replaces that of dataset download. */
static void advice(void **state)
{
    char address[128];
    const char *const list[] = { address, NULL };
    struct pm_fetch f = { .name = "x", .addresses = list, .path = in("x"), .most = 1000,
                          .sha256 = sum, .on_failure = "ask Ann", .on_full = "call Bob",
                          .on_longer = "" };
    (void)state;

    unlink(in("x"));
    snprintf(address, sizeof address, "http://127.0.0.1:%d/plain", server.port);
    fails(pm_fetch(&f, NULL), PM_EDATA, "the limit for a file of unknown size. Try again later, "
                                        "ask Ann, or put the file there yourself: ");
    f.size = SIZE;
    disk_free = 1000;
    fails(pm_fetch(&f, NULL), PM_EFAIL, "Free some space, or call Bob");
    disk_free = UINT64_MAX;
}

static void resumed(void **state)
{
    (void)state;
    is_right(fetch(PLAIN, -1, right, 40000, true));
    assert_string_equal(pages[PLAIN].range, "40000-");
    is_right(fetch(PLAIN, -1, right, 40000, false));
    is_right(fetch(PLAIN, -1, right, SIZE, true)); /* complete, only not renamed yet */
    assert_int_equal(pages[PLAIN].requests, 0);
    is_right(fetch(PLAIN, -1, right, SIZE, false)); /* 416: the server has no more bytes, perhaps */
    is_right(fetch(CUTS, -1, NULL, 0, true));
    assert_int_equal(pages[CUTS].requests, 4);
    assert_string_equal(pages[CUTS].range, "90000-");
    is_right(fetch(SHORTER, -1, NULL, 0, true));
    is_right(fetch(SAYLONG, -1, NULL, 0, true)); /* an answer cut short, after which no bytes
                                                  * remain */
    is_right(fetch(SAYLONG, -1, NULL, 0, false));
    /* Without ranges the download starts again. */
    is_right(fetch(FIXED, -1, right, 40000, true));
    is_right(fetch(CUTWHOLE, -1, NULL, 0, true));
    /* A part of another file: the checksum finds it, and the file is downloaded once more. */
    is_right(fetch(PLAIN, -1, wrong, 40000, true));
    is_right(fetch(PLAIN, -1, wrong, SIZE, true));
    assert_int_equal(pages[PLAIN].requests, 1);
    is_right(fetch(WENT, -1, right, 50000, true));
    assert_string_equal(pages[PLAIN].range, "50000-");
}

static void refused(void **state)
{
    (void)state;
    fails(fetch(GONE, -1, NULL, 0, true), PM_EFAIL,
          "/gone: the server answers 404. Try again "
          "later, give another server with --from, or put the file there");
    fails(fetch(DIFFERENT, -1, NULL, 0, true), PM_EDATA,
          "/different: the SHA-256 of its file is ");
    fails(fetch(LONGER, -1, NULL, 0, true), PM_EDATA,
          "longer there than the expected 100000 bytes");
    fails(fetch(RANGES, -1, right, 40000, true), PM_EDATA,
          "it did not send the file from byte 40000 on");
    fails(fetch(TOTAL, -1, right, 40000, true), PM_EDATA,
          "has 100005 bytes there instead of 100000");
    fails(fetch(LITTLE, -1, NULL, 0, true), PM_EDATA,
          "has fewer than 501 bytes there instead of 100000");
    fails(fetch(ROUND, -1, NULL, 0, true), PM_EFAIL, "/round: ");
}

/* A body of unknown size is read up to the limit or until the disk is full. No file remains. */
static void without_end(void **state)
{
    enum { MIB = 1 << 20 };
    (void)state;

    fails(fetch(FOR_EVER, -1, NULL, 0, false), PM_EDATA,
          "longer there than 976.6 KiB, the limit for a file of unknown size");
    assert_false(pm_file_exists(in("x.part")));
    fails(fetch(FOR_EVER, -1, wrong, SIZE, false), PM_EDATA, "longer there than 976.6 KiB");
    assert_false(pm_file_exists(in("x.part")));
    most = UINT64_C(1) << 40;
    disk_free = (256 + 100) * (uint64_t)MIB;
    fails(fetch(FOR_EVER, -1, NULL, 0, false), PM_EFAIL,
          "of a file of unknown size the disk has only 2");
    assert_contains(pm_error_text(), "Free some space, or give a --raw folder on another disk");
    assert_false(pm_file_exists(in("x.part")));
    most = 1000000;
    disk_free = 256 * (uint64_t)MIB + SIZE - 1;
    fails(fetch(PLAIN, -1, NULL, 0, true), PM_EFAIL, "97.7 KiB remain, but the disk has 256.1 MiB");
    disk_free++;
    is_right(fetch(PLAIN, -1, NULL, 0, true));
    disk_free = SIZE; /* the disk is full, but no byte is missing */
    is_right(fetch(PLAIN, -1, right, SIZE, true));
    disk_free = UINT64_MAX;
    is_right(fetch(PLAIN, -1, NULL, 0, false));
}

static void unreachable(void **state)
{
    const char *const nobody[] = { "http://127.0.0.1:1/x", "http://no.such.name.invalid/x",
                                   "gopher://127.0.0.1/x", NULL };
    (void)state;

    unlink(in("x"));
    assert_int_equal(pm_fetch(&(struct pm_fetch){ .name = "x", .addresses = nobody, .path = in("x"),
                                                  .size = SIZE, .sha256 = sum }, NULL),
                     PM_EFAIL);
    assert_contains(pm_error_text(), "x cannot be downloaded: http://127.0.0.1:1/x: ");
    assert_contains(pm_error_text(), "; http://no.such.name.invalid/x: ");
    assert_contains(pm_error_text(), "; gopher://127.0.0.1/x: ");
    assert_contains(pm_error_text(), "put the file there yourself: ");
    assert_false(pm_file_exists(in("x.part"))); /* no byte arrived */
    fails(fetch(ALWAYS_BUSY, -1, NULL, 0, true), PM_EFAIL, "the server answers 503");
    assert_int_equal(pages[ALWAYS_BUSY].requests, 5);
}

/* An address can also be a folder, for example on an external disk. */
static void from_disk(void **state)
{
    char address[600];
    const char *const list[] = { address, NULL };
    (void)state;

    unlink(in("x"));
    assert_int_equal(pm_file_write(in("x.part"), right, 1000), 0);
    assert_int_equal(pm_file_write(in("brought"), right, SIZE), 0);
    snprintf(address, sizeof address, "file://%s", in("brought"));
    is_right(pm_fetch(&(struct pm_fetch){ .name = "x", .addresses = list, .path = in("x"),
                                          .size = SIZE, .sha256 = sum }, NULL));
}

static int set_up(void **state)
{
    struct pm_sha256 s;
    uint32_t x = 1;
    (void)state;

    for (int i = 0; i < SIZE; i++) {
        x = x * 1664525 + 1013904223;
        right[i] = (uint8_t)(x >> 24);
        wrong[i] = (uint8_t)(x >> 16);
    }
    pm_sha256_start(&s);
    pm_sha256_add(&s, right, SIZE);
    pm_sha256_end(&s, sum);
    setenv("no_proxy", "*", 1);
    folder = make_folder();
    server_start(&server, pages);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    server_stop(&server);
    drop_folder(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),   cmocka_unit_test(there),       cmocka_unit_test(few_digits),
        cmocka_unit_test(advice),  cmocka_unit_test(resumed),
        cmocka_unit_test(refused), cmocka_unit_test(unreachable), cmocka_unit_test(from_disk),
        cmocka_unit_test(without_end),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
