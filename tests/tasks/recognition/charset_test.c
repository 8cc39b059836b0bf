/* Charsets: the named ones, files, and what they refuse; texts as code points in normal form C. */
#include "base/scratch.h"

#include "tasks/recognition/charset.h"

static const struct pm_charset *opened(const char *name, struct pm_arena *a)
{
    const struct pm_charset *c = NULL;

    if (pm_charset_open(name, "x.json: data.charset", a, &c) < 0)
        fail_msg("%s", pm_error_text());
    return c;
}

/* Digits come first, then small letters, capitals and symbols; every letter is found. */
static void named_charsets(void **state)
{
    static const struct {
        const char *name;
        int count;
    } cases[] = { { "lowercase", 36 }, { "allcases", 62 }, { "allcases_symbols", 94 } };
    struct pm_arena *a = pm_arena_create();

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        const struct pm_charset *c = opened(cases[i].name, a);
        bool seen[128] = { false };

        assert_int_equal(c->count, cases[i].count);
        for (int k = 0; k < c->count; k++) {
            assert_true(c->letters[k] > ' ' && c->letters[k] < 0x7f && !seen[c->letters[k]]);
            seen[c->letters[k]] = true;
            assert_int_equal(pm_charset_find(c, c->letters[k]), k);
        }
        assert_int_equal(pm_charset_find(c, '7'), 7);
        assert_int_equal(pm_charset_find(c, 'c'), 12);
        assert_int_equal(pm_charset_find(c, 'A'), i > 0 ? 36 : -1);
        assert_int_equal(pm_charset_find(c, ' '), -1);
        assert_int_equal(pm_charset_find(c, 0x1f600), -1);
    }
    pm_arena_destroy(&a);
}

static const char *file_of(const char *text)
{
    static int number;
    const char *path = in("charset-%d.txt", number++);

    assert_int_equal(pm_file_write(path, text, strlen(text)), PM_OK);
    return path;
}

/* Letters keep the order of the lines; a combining mark belongs to the letter before it, and a byte
 * order mark is no letter. */
static void files(void **state)
{
    struct pm_arena *a = pm_arena_create();
    const struct pm_charset *c =
        opened(file_of("\xef\xbb\xbf" "z\r\n\xc3\xa4\n\ne\xcc\x81\n \n"), a);
    struct pm_str text = { 0 };

    (void)state;
    assert_int_equal(c->count, 4);
    assert_int_equal(pm_charset_find(c, 'z'), 0);
    assert_int_equal(pm_charset_find(c, 0xe4), 1);
    assert_int_equal(pm_charset_find(c, 0xe9), 2);
    assert_int_equal(pm_charset_find(c, ' '), 3);
    pm_charset_text(c, (const int32_t[]){ 2, 0, 3, 1 }, 4, &text);
    assert_string_equal(text.text, "\xc3\xa9z \xc3\xa4");
    pm_str_free(&text);
    pm_arena_destroy(&a);
}

static void refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "a\nbc\n", "entry 2, \"bc\", has 2 letters: write one letter in each line" },
        { "a\nb\na\n", "the letter a is in it twice" },
        { "\xc3\xa4\na\xcc\x88\n", "the letter \xc3\xa4 is in it twice" },
        { "\n\n", "there is no letter in it" },
        { "a\n\xff\n", "is not UTF-8 at its byte 0" },
        { "a\n\x01\n", "has a control character at its byte 0" },
    };
    struct pm_arena *a = pm_arena_create();
    const struct pm_charset *c = NULL;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        assert_int_equal(pm_charset_open(file_of(cases[i].text), "data.charset", a, &c), PM_EDATA);
        assert_contains(pm_error_text(), cases[i].message);
        assert_contains(pm_error_text(), "charset-");
    }
    assert_int_equal(pm_charset_open("lowercases", "x.json: data.charset", a, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "x.json: data.charset: \"lowercases\" is neither lowercase, "
                    "allcases or allcases_symbols nor a file");
    pm_arena_destroy(&a);
}

static void check_letters(const char *text, bool lower, const uint32_t *expected, int count)
{
    struct pm_letters l = { 0 };

    if (pm_letters_read(text, strlen(text), lower, "test", &l) < 0)
        fail_msg("%s", pm_error_text());
    assert_int_equal(l.count, count);
    for (int i = 0; i < count; i++)
        assert_int_equal(l.code[i], expected[i]);
    pm_letters_free(&l);
}

/* Values of Unicode's table of normalisation. */
static void normal_form(void **state)
{
    (void)state;
    check_letters("", true, NULL, 0);
    check_letters("aZ9", false, (const uint32_t[]){ 'a', 'Z', '9' }, 3);
    check_letters("aZ9", true, (const uint32_t[]){ 'a', 'z', '9' }, 3);
    check_letters("e\xcc\x81", false, (const uint32_t[]){ 0xe9 }, 1);
    check_letters("\xc3\x89", true, (const uint32_t[]){ 0xe9 }, 1);          /* capital */
    check_letters("\xe1\x84\x80\xe1\x85\xa1", false, (const uint32_t[]){ 0xac00 }, 1); /* Hangul */
    check_letters("\xe2\x84\xab", false, (const uint32_t[]){ 0xc5 }, 1);     /* Angstrom sign */
    check_letters("q\xcc\x87\xcc\xa3", false, (const uint32_t[]){ 'q', 0x323, 0x307 }, 3);
    check_letters("\xef\xac\x81", false, (const uint32_t[]){ 0xfb01 }, 1);   /* ligature: kept */
    check_letters("\xf0\x9f\x98\x80z", false, (const uint32_t[]){ 0x1f600, 'z' }, 2);
    /* Marks that belong to no composed letter stay behind theirs, in Unicode's order. */
    check_letters("\xd7\xa9\xd7\x81\xd6\xb8", false, (const uint32_t[]){ 0x5e9, 0x5b8, 0x5c1 },
                  3);
    check_letters("\xef\xac\xaa", false, (const uint32_t[]){ 0x5e9, 0x5c1 }, 2); /* excluded */
    /* The first letter of a text from right to left is the first one that is read. */
    check_letters("\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d 1", false,
                  (const uint32_t[]){ 0x5e9, 0x5dc, 0x5d5, 0x5dd, ' ', '1' }, 6);
    /* Folding is letter by letter, so a text keeps its length. */
    check_letters("\xce\xa3\xce\x9f\xce\xa3", true, (const uint32_t[]){ 0x3c3, 0x3bf, 0x3c3 }, 3);
    check_letters("\xe1\xba\x9e\xc3\x9f", true, (const uint32_t[]){ 0xdf, 0xdf }, 2);
    check_letters("\xc4\xb0I", true, (const uint32_t[]){ 'i', 'i' }, 2);
}

/* Texts are not ended by a zero byte. */
static void texts_have_a_size(void **state)
{
    struct pm_letters l = { 0 };

    (void)state;
    assert_int_equal(pm_letters_read("\xc3\xa4\xc3\xb6", 2, false, "test", &l), PM_OK);
    assert_int_equal(l.count, 1);
    pm_letters_free(&l);
    assert_int_equal(pm_letters_read("a\xc3\xa4", 2, false, "r: image/transcript", &l), PM_EDATA);
    assert_contains(pm_error_text(), "r: image/transcript: the text \"a");
    assert_contains(pm_error_text(), "is not UTF-8 at its byte 1");
    assert_int_equal(pm_letters_read("a\0b", 3, false, "r", &l), PM_EDATA);
    assert_contains(pm_error_text(), "control character at its byte 1");
    assert_null(l.code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_charsets), cmocka_unit_test(files), cmocka_unit_test(refused),
        cmocka_unit_test(normal_form), cmocka_unit_test(texts_have_a_size),
    };
    return cmocka_run_group_tests(tests, scratch_set_up, scratch_tear_down);
}
