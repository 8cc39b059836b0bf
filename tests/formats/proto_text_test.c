/* Protobuf's text form as a tree: what is read, its lines, and what is refused. */
#include "base/unit.h"
#include "formats/proto_text.h"

static struct pm_arena *arena;
static struct pm_proto_text_error error;

static const struct pm_proto_text *parsed(const char *text)
{
    const struct pm_proto_text *root = NULL;

    if (pm_proto_text_parse(arena, text, false, &root, &error) != PM_OK)
        fail_msg("%s: line %u: %s", text, error.line, error.text);
    return root;
}

/* Prints a tree: name@line, values, { } around messages. */
static void print(const struct pm_proto_text *f, struct pm_str *out)
{
    for (; f; f = f->next) {
        pm_str_add(out, "%s@%u", f->name, f->line);
        if (f->kind == PM_PROTO_TEXT_MESSAGE) {
            pm_str_add(out, "{ ");
            print(f->first, out);
            pm_str_add(out, "} ");
        } else {
            pm_str_add(out, f->kind == PM_PROTO_TEXT_STRING ? "='%s' " : "=%s ", f->value);
        }
    }
}

static void same(const char *text, const char *wanted)
{
    struct pm_str s = { 0 };

    print(parsed(text)->first, &s);
    assert_string_equal(s.text ? s.text : "", wanted);
    pm_str_free(&s);
}

static void reads(void **state)
{
    (void)state;
    same("", "");
    same("# nothing\n", "");
    same("a: 1\nb { c: -2.5e-3, d: RELU_6; } # x\ne: <f: true>",
         "a@1=1 b@2{ c@2=-2.5e-3 d@2=RELU_6 } e@3{ f@3=true } ");
    same("a: 'x' \"y\\n\\\"\" 'z'", "a@1='xy\n\"z' ");
    same("a: [1, 2]\na: []\nb: [{c: 1}, <>]", "a@1=1 a@1=2 b@3{ c@3=1 } b@3{ } ");
    same("a: ['x', 'y'] b { c: [3] d { } }", "a@1='x' a@1='y' b@1{ c@1=3 d@1{ } } ");
    same("a {\n b {\n}\n c: 1}\n", "a@1{ b@2{ } c@4=1 } ");
}

static void escapes(void **state)
{
    const struct pm_proto_text *root = NULL;

    (void)state;
    same("a: '\\x41\\101\\t\\?'", "a@1='AA\t?' ");
    assert_int_equal(pm_proto_text_parse(arena, "a: 'C:/x\\model\\new'", true, &root, &error),
                     PM_OK);
    assert_string_equal(root->first->value, "C:/x\\model\new");
}

static void numbers(void **state)
{
    const struct pm_proto_text *f = parsed("a: 0x10 b: -7 c: 1e3 d: 0.5f e: true f: 9x g: nan "
                                           "h: 99999999999999999999 i: '1' j: False")->first;
    int64_t whole = 0;
    double number = 0;
    bool yes = false;

    (void)state;
    assert_true(pm_proto_text_int(f, &whole) && whole == 16);
    f = f->next;
    assert_true(pm_proto_text_int(f, &whole) && whole == -7);
    assert_true(pm_proto_text_number(f, &number) && number == -7);
    f = f->next;
    assert_false(pm_proto_text_int(f, &whole));
    assert_true(pm_proto_text_number(f, &number) && number == 1000);
    f = f->next;
    assert_true(pm_proto_text_number(f, &number) && number == 0.5);
    f = f->next;
    assert_false(pm_proto_text_number(f, &number));
    assert_true(pm_proto_text_bool(f, &yes) && yes);
    f = f->next;
    assert_false(pm_proto_text_number(f, &number) || pm_proto_text_bool(f, &yes));
    f = f->next;
    assert_false(pm_proto_text_number(f, &number));
    f = f->next;
    assert_false(pm_proto_text_int(f, &whole));
    f = f->next;
    assert_false(pm_proto_text_int(f, &whole) || pm_proto_text_bool(f, &yes));
    f = f->next;
    assert_true(pm_proto_text_bool(f, &yes) && !yes);
}

static void refused(const char *text, unsigned line, const char *wanted)
{
    const struct pm_proto_text *root = NULL;

    if (pm_proto_text_parse(arena, text, false, &root, &error) != PM_EDATA)
        fail_msg("not refused: %.80s", text);
    if (error.line != line || !strstr(error.text, wanted))
        fail_msg("%.80s: line %u: %s", text, error.line, error.text);
}

static void mistakes(void **state)
{
    struct pm_str deep = { 0 };

    (void)state;
    refused("a", 1, "expected '{' or ':', found: \"\" (the end of the file)");
    refused("a {\nb: }", 2, "expected a value, found: \"}\"");
    refused("a { b: 1 >", 1, "expected the name of a field, found: \">\"");
    refused("a {", 1, "expected the name of a field");
    refused("}", 1, "expected the name of a field");
    refused("a: [1 2", 1, "expected a value");
    refused("a: [[1]]", 1, "expected a value");
    refused("\n\na: 'x\n'", 3, "expected the quote that ends the text");
    refused("a: 'x\\q'", 1, "expected a valid escape, found: \"\\q'\"");
    refused("a: 'x\\000'", 1, "expected a valid escape");
    refused("[com.x.y]: 1", 1, "expected the name of a field");
    for (int i = 0; i < 1000000; i++)
        pm_str_add(&deep, "a{");
    refused(deep.text, 1, "more than 64 levels of messages");
    pm_str_free(&deep);
}

static int setup(void **state)
{
    (void)state;
    arena = pm_arena_create();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pm_arena_destroy(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads, setup, teardown),
        cmocka_unit_test_setup_teardown(escapes, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
