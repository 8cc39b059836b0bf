/* Text from outside the program: control characters are escaped, printable text is unchanged. */
#include "base/unit.h"

static void becomes(const char *text, const char *shown)
{
    struct pm_str s = { 0 };
    char buf[256];

    pm_str_printable(&s, text, strlen(text));
    assert_string_equal(s.text ? s.text : "", shown);
    assert_int_equal(pm_printable(buf, sizeof buf, text), strlen(shown));
    assert_string_equal(buf, shown);
    pm_str_free(&s);
    pm_str_printable(&s, shown, strlen(shown)); /* a second pass changes nothing */
    assert_string_equal(s.text ? s.text : "", shown);
    pm_str_free(&s);
}

static void visible_text_stays(void **state)
{
    (void)state;
    becomes("", "");
    becomes("plain ~ \\n \"quoted\" 'x' %s", "plain ~ \\n \"quoted\" 'x' %s");
    becomes("Stra\xc3\x9f"
            "e \xe9\xb8\x9f \xd7\x90 \xf0\x9f\x90\xa6 \xc2\xa0",
            "Stra\xc3\x9f"
            "e \xe9\xb8\x9f \xd7\x90 \xf0\x9f\x90\xa6 \xc2\xa0");
}

static void hidden_text_is_shown(void **state)
{
    (void)state;
    becomes("a\033[2Jb\nc\td\re\x7f\x01", "a\\x1B[2Jb\\x0Ac\\x09d\\x0De\\x7F\\x01");
    becomes("\xc2\x9b"
            "31m\xc2\x85",
            "\\u{9B}31m\\u{85}"); /* C1 controls: CSI and NEL, one character each */
    becomes("\xe2\x80\xae"
            "cod.exe\xe2\x81\xa9\xe2\x80\xa8",
            "\\u{202E}cod.exe\\u{2069}\\u{2028}");
    becomes("\xff\x9b \xc3", "\\xFF\\x9B \\xC3");
    becomes("\xc0\x8a \xe0\x80\x8a", "\\xC0\\x8A \\xE0\\x80\\x8A"); /* overlong newlines */
    becomes("\xed\xa0\x80 \xf4\x90\x80\x80", "\\xED\\xA0\\x80 \\xF4\\x90\\x80\\x80");
}

/* Letters, points and digits of some scripts. */
static void directions(void **state)
{
    static const uint32_t left[] = { 'a', '7', 0xe9, 0x301, 0x3a3, 0x416, 0x905, 0x6f22, 0x1f600,
                                     0x660, 0x669, 0x6f3, 0xfeff, 0x202e };
    static const uint32_t right[] = { 0x5d0, 0x5ea, 0x5b8, 0x627, 0x6cc, 0x710, 0x7ca, 0xfb2a,
                                      0xfeb1, 0x10840, 0x1e900 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(left); i++)
        assert_false(pm_is_right_to_left(left[i]));
    for (size_t i = 0; i < PM_COUNT(right); i++)
        assert_true(pm_is_right_to_left(right[i]));
}

static void cut_at_whole_characters(void **state)
{
    char buf[8];

    (void)state;
    assert_int_equal(pm_printable(buf, 6, "abc\033"), 3); /* "\x1B" does not fit */
    assert_string_equal(buf, "abc");
    assert_int_equal(pm_printable(buf, 5, "abc\xc3\xa9"), 3);
    assert_int_equal(pm_printable(buf, 6, "abc\xc3\xa9"), 5);
    assert_int_equal(pm_printable(buf, 1, "abc"), 0);
}

static void columns(void **state)
{
    struct pm_str s = { 0 };

    (void)state;
    pm_str_name(&s, "\xc3\xa9", 3);
    pm_str_name(&s, "\n", 6);
    pm_str_name(&s, "long", 2);
    assert_string_equal(s.text, "\xc3\xa9  \\x0A  long");
    pm_str_free(&s);
}

static void field(const char *text, const char *shown)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, ";");
    pm_str_csv(&s, text);
    assert_string_equal(s.text + 1, shown);
    pm_str_free(&s);
}

static void fields_of_csv(void **state)
{
    (void)state;
    field("", "");
    field("bee", "bee");
    field("a=b - c", "a=b - c");
    field("a, \"b\"", "\"a, \"\"b\"\"\"");
    field("=cmd|'/c calc'!A0", "'=cmd|'/c calc'!A0");
    field("=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\"");
    field("+1", "'+1");
    field("-1", "'-1");
    field("@x", "'@x");
    field("\t=1", "\\x09=1");
    field("\r=1", "\\x0D=1");
    field("a\nb", "a\\x0Ab");
}

/* Errors also go to JSON and into other messages, so they are escaped where they are created. */
static void errors(void **state)
{
    (void)state;
    pm_fail(PM_EDATA, "%s: not good", "a\nb\033c");
    assert_string_equal(pm_error_text(), "a\\x0Ab\\x1Bc: not good");
    pm_fail(PM_EDATA, "again: %s", pm_error_text());
    assert_string_equal(pm_error_text(), "again: a\\x0Ab\\x1Bc: not good");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(visible_text_stays),      cmocka_unit_test(hidden_text_is_shown),
        cmocka_unit_test(directions),
        cmocka_unit_test(cut_at_whole_characters), cmocka_unit_test(columns),
        cmocka_unit_test(fields_of_csv),           cmocka_unit_test(errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
