/* JSON: errors with their places, comments, printing. */
#include "unit.h"

#include <cjson/cJSON.h>
#include <pumice/options.h>

static void refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "", "t.json:1:1: expected a value, but the text ends" },
        { "{\n  \"a\": 1,\n  \"b\": tru\n}", "t.json:3:8: expected a value, found 'tru'" },
        { "{\n\"a\": 1\n\"b\": 2}", "t.json:3:1: expected ',' or '}', found '\"b\":'" },
        { "{\"a\" 1}", "t.json:1:6: expected ':' after the key, found '1}'" },
        { "{a: 1}", "t.json:1:2: expected a key in quotes, found 'a:'" },
        { "[1, 2,\n ]", "t.json:2:2: no comma may stand before the closing mark" },
        { "[1 2]", "t.json:1:4: expected ',' or ']', found '2]'" },
        { "{} x", "t.json:1:4: expected the end of the text, found 'x'" },
        { "{\"a\": \"x\ny\"}", "t.json:1:7: this string has no closing quote on its line" },
        { "[\"a\\x\"]", "t.json:1:4: a backslash escape must be" },
        { "[\"a\\u00g0\"]", "t.json:1:4: \\u needs four hexadecimal digits" },
        { "[\"a\\u0000\"]", "t.json:1:4: \\u needs four hexadecimal digits, not all zero" },
        { "[\"\\ud800\"]", "this is not valid JSON" },
        { "[\"a\tb\"]", "t.json:1:4: a control character" },
        { "[01]", "t.json:1:2: a number starts with" },
        { "[-]", "t.json:1:2: a number starts with" },
        { "[1.]", "t.json:1:2: a digit must follow the decimal point" },
        { "[1e+]", "t.json:1:2: a digit must follow the exponent" },
        { "[1e999]", "t.json:1:2: this number is beyond double precision" },
        { "[NaN]", "t.json:1:2: expected a value, found 'NaN]'" },
        { "{\n\"seed\": 9007199254740993\n}", "t.json:2:9: integers must stay below 2^53" },
        { "[-9007199254740992]", "t.json:1:2: integers must stay below 2^53" },
        { "{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2}}",
          "t.json:2:16: key 'c' is given twice, first in line 2" },
        { "{\"a\": 1,\n\n \"\\u0061\": 2}", "t.json:3:2: key 'a' is given twice, first in line 1" },
    };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        cJSON *v = NULL;
        assert_int_equal(pm_json_parse("t.json", cases[i].text, &v), PM_ECONFIG);
        assert_null(v);
        assert_contains(pm_error_text(), cases[i].message);
    }
}

static void depth(void **state)
{
    char text[1200];
    cJSON *v = NULL;
    (void)state;

    memset(text, '[', 600);
    memset(text + 600, ']', 599);
    text[1199] = '\0';
    assert_int_equal(pm_json_parse("t.json", text, &v), PM_ECONFIG);
    assert_contains(pm_error_text(), "t.json:1:201: nested too deeply");
}

static void comments(void **state)
{
    cJSON *v = NULL;
    struct pm_json_place *places = NULL;
    const char *text =
        "\xef\xbb\xbf// first \"line\n{ // \"a\": 1,\n  \"url\": \"http://x\\\"//y\", // z\n"
        "  \"n\": [1, //\n 2, 9007199254740991]\n}//";
    (void)state;

    assert_int_equal(pm_json_parse_places("t.json", text, &v, &places), 0);
    assert_string_equal(cJSON_GetObjectItem(v, "url")->valuestring, "http://x\"//y");
    assert_int_equal(cJSON_GetArraySize(v), 2);
    static const struct pm_json_place expected[] = { { 2, 1 }, { 3, 3 }, { 4, 3 },
                                                     { 4, 9 }, { 5, 2 }, { 5, 5 } };
    for (size_t i = 0; i < PM_COUNT(expected); i++) {
        assert_int_equal(places[i].line, expected[i].line);
        assert_int_equal(places[i].column, expected[i].column);
    }
    assert_true(cJSON_GetArrayItem(cJSON_GetObjectItem(v, "n"), 2)->valuedouble ==
                9007199254740991.0);
    pm_free(places);
    cJSON_Delete(v);
}

static void print(void **state)
{
    const char *text = "{\n"
                       "  \"a\": 0.1,\n"
                       "  \"big\": 9007199254740991,\n"
                       "  \"tiny\": 1e-300,\n"
                       "  \"third\": 0.3333333333333333,\n"
                       "  \"text\": \"q\\\"b\\\\n\\nt\\tc\\u0001\xc3\xa9\",\n"
                       "  \"none\": null,\n"
                       "  \"empty\": [],\n"
                       "  \"hollow\": {},\n"
                       "  \"list\": [1, [2, 3], true],\n"
                       "  \"section\": {\n"
                       "    \"x\": false\n"
                       "  },\n"
                       "  \"layers\": [\n"
                       "    { \"type\": \"conv\", \"size\": [3, 3] },\n"
                       "    { \"type\": \"fc\" }\n"
                       "  ]\n"
                       "}";
    cJSON *v = NULL;
    (void)state;

    assert_int_equal(pm_json_parse("t.json", text, &v), 0);
    char *out = pm_json_print(v);
    assert_string_equal(out, text);
    pm_free(out);
    cJSON_Delete(v);
}

/* Long lists are printed on several lines, and the printed text reads back to the same value. */
static void print_long(void **state)
{
    cJSON *list = cJSON_CreateArray(), *again = NULL;
    (void)state;

    for (int i = 0; i < 200; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(i / 7.0));
    char *out = pm_json_print(list);
    for (const char *line = out; line; line = strchr(line + 1, '\n'))
        assert_true(strcspn(line + 1, "\n") <= 100);
    assert_int_equal(pm_json_parse("t.json", out, &again), 0);
    const cJSON *item = again->child;
    for (int i = 0; i < 200; i++, item = item->next)
        assert_true(item->valuedouble == i / 7.0);
    pm_free(out);
    cJSON_Delete(again);
    cJSON_Delete(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused), cmocka_unit_test(depth),      cmocka_unit_test(comments),
        cmocka_unit_test(print),   cmocka_unit_test(print_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
