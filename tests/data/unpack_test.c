/* Unpacking: accepted entries, and hostile archives. */
#include "../base/unit.h"

#include <sys/stat.h>

#include "archives.h"
#include "data/download/download.h"

static char *folder;

static const char *in(const char *name)
{
    static char text[8][512];
    static int next;

    next = (next + 1) % 8;
    snprintf(text[next], sizeof text[next], "%s/%s", folder, name);
    return text[next];
}

/* Unpacks the bytes from a file of this name; frees them. */
static int unpack(const char *name, struct pm_str *bytes)
{
    assert_int_equal(pm_file_write(in(name), bytes->text, bytes->length), 0);
    pm_str_free(bytes);
    assert_int_equal(pm_remove_tree(in("out")), 0);
    return pm_unpack(in(name), in("out"), NULL);
}

static void holds(const char *name, const char *text)
{
    char *data = NULL;

    if (pm_file_read(in(name), &data, NULL) < 0)
        fail_msg("%s", pm_error_text());
    assert_string_equal(data, text);
    pm_free(data);
}

static void good(void **state)
{
    struct pm_str tar = { 0 };
    (void)state;

    tar_add(&tar, "flowers/", '5', NULL, NULL, 0, NULL);
    tar_file(&tar, "flowers/daisy/a..b.jpg", "daisy", 5);
    tar_file(&tar, "./flowers/LICENSE.txt", "free", 4);
    tar_file(&tar, "empty", "", 0);
    tar_end(&tar);
    struct pm_str gz = gzipped(&tar);
    if (unpack("x.tgz", &gz) < 0)
        fail_msg("%s", pm_error_text());
    holds("out/flowers/daisy/a..b.jpg", "daisy");
    holds("out/flowers/LICENSE.txt", "free");
    holds("out/empty", "");
    struct pm_str zip = { 0 };
    zip_one(&zip, "annotations/x.json", "{}", 0100644);
    if (unpack("x.zip", &zip) < 0)
        fail_msg("%s", pm_error_text());
    holds("out/annotations/x.json", "{}");
}

/* Each archive is refused with the entry's name, and nothing is written outside out/. */
static void hostile(void **state)
{
    static const struct {
        const char *name, *link, *says;
        char type;
    } cases[] = {
        { "../evil", NULL, "'../evil' would be outside", '0' },
        { "a/../../evil", NULL, "'a/../../evil' would be outside", '0' },
        { "a/..", NULL, "'a/..' would be outside", '5' },
        { "..", NULL, "'..' would be outside", '5' },
        { "/tmp/pumice-evil", NULL, "'/tmp/pumice-evil' would be outside", '0' },
        { "link", "/tmp", "'link' is a link or a device", '2' },
        { "link", "../evil", "'link' is a link or a device", '2' },
        { "hard", "/etc/passwd", "'hard' is a link or a device", '1' },
        { "pipe", NULL, "'pipe' is a link or a device", '6' },
        { "device", NULL, "'device' is a link or a device", '3' },
    };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_str tar = { 0 };
        const bool file = cases[i].type == '0';
        tar_file(&tar, "first", "1", 1);
        tar_add(&tar, cases[i].name, cases[i].type, cases[i].link, "evil", file ? 4 : 0, NULL);
        tar_file(&tar, "link/evil", "evil", 4);
        tar_end(&tar);
        assert_int_equal(unpack("x.tar", &tar), PM_EDATA);
        assert_contains(pm_error_text(), cases[i].says);
        holds("out/first", "1");
        assert_false(pm_file_exists(in("evil")));
        assert_false(pm_file_exists("/tmp/pumice-evil"));
    }
    struct pm_str zip = { 0 };
    zip_one(&zip, "../evil", "evil", 0100644);
    assert_int_equal(unpack("x.zip", &zip), PM_EDATA);
    assert_contains(pm_error_text(), "'../evil' would be outside");
    struct pm_str link = { 0 };
    zip_one(&link, "link", "/tmp", 0120777);
    assert_int_equal(unpack("x.zip", &link), PM_EDATA);
    assert_contains(pm_error_text(), "'link' is a link or a device");
    assert_false(pm_file_exists(in("evil")));
}

/* False sizes, cut files, and files that are not archives. */
static void damaged(void **state)
{
    (void)state;

    struct pm_str huge = { 0 };
    tar_add(&huge, "huge", '0', NULL, "x", 1, "77777777777"); /* 8 GiB */
    struct pm_str gz = gzipped(&huge);
    assert_true(unpack("x.tgz", &gz) < 0); /* because of the disk's space or the archive's end */
    assert_contains(pm_error_text(), "huge");

    /* A size in binary: 2^62 bytes. */
    struct pm_str vast = { 0 };
    tar_add(&vast, "vast", '0', NULL, "x", 1, NULL);
    vast.text[124] = (char)0x80;
    memset(vast.text + 125, 0, 11);
    vast.text[128] = 0x40;
    unsigned sum = 0;
    memset(vast.text + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)vast.text[i];
    snprintf(vast.text + 148, 8, "%06o", sum);
    assert_int_equal(unpack("x.tar", &vast), PM_EFAIL);
    assert_contains(pm_error_text(), "entry vast declares 4 EiB, but the disk of");

    struct pm_str cut = { 0 };
    tar_file(&cut, "cut", "0123456789", 10);
    cut.length = 515;
    assert_int_equal(unpack("x.tar", &cut), PM_EDATA);
    assert_contains(pm_error_text(), "entry cut is damaged");

    struct pm_str gzcut = { 0 };
    char noise[20000];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)(i * i * 2654435761u >> 11);
    tar_file(&gzcut, "noise", noise, sizeof noise);
    tar_end(&gzcut);
    gz = gzipped(&gzcut);
    gz.length /= 2;
    assert_int_equal(unpack("x.tgz", &gz), PM_EDATA);

    struct pm_str text = { 0 };
    pm_str_add(&text, "<html>sorry</html>");
    assert_int_equal(unpack("x.zip", &text), PM_EDATA);
    struct pm_str none = { 0 };
    tar_end(&none);
    assert_int_equal(unpack("x.tar", &none), PM_EDATA);
    assert_int_equal(pm_unpack(in("nowhere.tar"), in("out"), NULL), PM_EDATA);
    assert_contains(pm_error_text(), "nowhere.tar: cannot be read");
}

static int set_up(void **state)
{
    (void)state;
    folder = make_folder();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    drop_folder(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good),
        cmocka_unit_test(hostile),
        cmocka_unit_test(damaged),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
