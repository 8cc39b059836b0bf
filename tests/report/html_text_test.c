/* Text of report.html: text from files is escaped, numbers are rounded for people, bytes become
 * base64. */
#include "report/run_folder.h"

#include "report/page.h"

static void text_is_escaped(void **state)
{
    struct pm_str s = { 0 };

    (void)state;
    PM_HTML(&s, "<a title=\"{}\">{}{}</a>", "\"><script>alert('&')</script>", "\x01gr\xc3\xbcn {}",
            NULL);
    assert_string_equal(s.text, "<a "
                                "title=\"&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/"
                                "script&gt;\">\\x01gr\xc3\xbcn {}</a>");
    pm_str_free(&s);
    pm_html_json_text(&s, "</script><!--\"\\\n\xe2\x82\xac");
    assert_string_equal(s.text,
                        "\"\\u003c/script\\u003e\\u003c!--\\u0022\\u005c\\u005cx0A\xe2\x82\xac\"");
    pm_str_free(&s);
    pm_html_json_number(&s, NAN);
    assert_string_equal(s.text, "null");
    pm_str_free(&s);
}

static void numbers_for_people(void **state)
{
    (void)state;
    assert_string_equal(PM_COUNT_TEXT(0), "0");
    assert_string_equal(PM_COUNT_TEXT(999), "999");
    assert_string_equal(PM_COUNT_TEXT(1234567), "1,234,567");
    assert_string_equal(PM_COUNT_TEXT(-1234), "-1,234");
    assert_string_equal(PM_NUMBER(0.012345), "0.01235");
    assert_string_equal(PM_NUMBER(1.25e-7), "1.25e-7");
    assert_string_equal(PM_NUMBER(2.5e10), "2.5e10");
    assert_string_equal(PM_NUMBER(12345.6), "12,346");
    assert_string_equal(PM_NUMBER(NAN), "\xe2\x80\x93");
    assert_string_equal(PM_SHARE(0.97425), "97.42\xc2\xa0%");
    assert_string_equal(PM_SHARE(0.99999), "99.99\xc2\xa0%");
    assert_string_equal(PM_SHARE(1), "100\xc2\xa0%");
    assert_string_equal(PM_PERCENT(0.7764), "77.6\xc2\xa0%");
    assert_string_equal(PM_PERCENT(0.99999), "99.9\xc2\xa0%");
    assert_string_equal(PM_SECONDS(0.0345), "34.5\xc2\xa0ms");
    assert_string_equal(PM_SECONDS(12.34), "12.3\xc2\xa0s");
    assert_string_equal(PM_SECONDS(245), "4\xc2\xa0min 05\xc2\xa0s");
    assert_string_equal(PM_SECONDS(7500), "2\xc2\xa0h 05\xc2\xa0min");
    assert_string_equal(PM_SECONDS(100000), "1\xc2\xa0" "d 3\xc2\xa0h");
}

static void base64(void **state)
{
    struct pm_str s = { 0 };

    (void)state;
    pm_str_base64(&s, "", 0);
    assert_int_equal(s.length, 0);
    pm_str_base64(&s, "f", 1), pm_str_base64(&s, "fo", 2), pm_str_base64(&s, "foobar", 6);
    pm_str_base64(&s, "\xff\xfe\xfd", 3);
    assert_string_equal(s.text, "Zg==Zm8=Zm9vYmFy//79");
    pm_str_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(numbers_for_people),
        cmocka_unit_test(base64),
    };

    return cmocka_run_group_tests_name("html text", tests, NULL, NULL);
}
