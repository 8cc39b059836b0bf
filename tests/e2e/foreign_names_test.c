/* Names of tensors, classes and files with terminal escape sequences, newlines, marks of writing
 * direction and formulas: no command prints them unescaped, and files for people hold them
 * escaped. */
#include "e2e/program.h"

#define ESCAPE "\033[2J"
#define C1 "\xc2\x9b"
#define REVERSED "\xe2\x80\xae"

/* The text has no control character except newlines, and no mark of writing direction. */
static void assert_plain(const char *what, const char *text)
{
    for (const char *c = text; *c; c++)
        if (((unsigned char)*c < ' ' && *c != '\n') || *c == 0x7f || strncmp(c, C1, 2) == 0 ||
            strncmp(c, REVERSED, 3) == 0)
            fail_msg("%s: byte %02x at %zu: %s", what, (unsigned char)*c, (size_t)(c - text), text);
}

/* A run that ends with this code and prints nothing unescaped. */
PM_PRINTF(2, 3) static struct result plain(int code, const char *format, ...)
{
    char arguments[2048];
    va_list ap;

    va_start(ap, format);
    vsnprintf(arguments, sizeof arguments, format, ap);
    va_end(ap);
    struct result r = run(NULL, "%s", arguments);
    if (r.code != code)
        fail_msg("%s: exit code %d: %s", arguments, r.code, r.err);
    assert_plain("standard output", r.out);
    assert_plain("standard error", r.err);
    return r;
}

static void plain_file(const char *path)
{
    char *text = get_text(path);

    assert_plain(path, text);
    pm_free(text);
}

/* ---- tensors ----------------------------------------------------------------------------- */

#define TENSOR "evil\\u001b[2J\\nrow\\u202e\\u009b"

static void put_tensors(const char *name, char value)
{
    static const char head[] =
        "{\"" TENSOR "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    struct pm_str s = { 0 };
    const char length[8] = { (char)(sizeof head - 1) }, data[4] = { 0, 0, value, 0x3f };

    pm_str_bytes(&s, length, 8);
    pm_str_bytes(&s, head, sizeof head - 1);
    pm_str_bytes(&s, data, 4);
    assert_int_equal(pm_file_write(in("%s", name), s.text, s.length), 0);
    pm_str_free(&s);
}

static void tensors(void **state)
{
    (void)state;
    put_tensors("a.safetensors", 0x20);
    put_tensors("b.safetensors", 0x40);
    struct result r = plain(0, "checkpoint inspect %s", in("a.safetensors"));
    assert_contains(r.out, "evil\\x1B[2J\\x0Arow\\u{202E}\\u{9B}  F32");
    drop(&r);
    r = plain(0, "checkpoint inspect %s --json", in("a.safetensors"));
    cJSON *json = json_of(&r);
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "tensors"), 0);
    assert_string_equal(cJSON_GetObjectItem(first, "name")->valuestring,
                        "evil" ESCAPE "\nrow" REVERSED C1); /* JSON holds the original name */
    cJSON_Delete(json);
    drop(&r);
    r = plain(1, "checkpoint diff %s %s", in("a.safetensors"), in("b.safetensors"));
    assert_contains(r.out, "evil\\x1B[2J\\x0Arow\\u{202E}\\u{9B}  values");
    drop(&r);
    r = plain(3, "eval %s eval.checkpoint=%s", in("net.json"), in("a.safetensors"));
    drop(&r);
}

/* ---- classes and files ------------------------------------------------------------------- */

static const char labels[] =
    "0:=disc\n1:box" ESCAPE "\n2:" REVERSED "ring" C1 "\n3:-tri, \"angle\"\n";

static void classes(void **state)
{
    (void)state;
    put_text(in("data/labels.txt"), labels);
    struct result r = plain(0, "train %s run.folder=%s", in("net.json"), in("run"));
    drop(&r);
    r = plain(0, "eval %s run.folder=%s", in("net.json"), in("run"));
    assert_contains(r.out, "box\\x1B[2J");
    drop(&r);
    r = plain(0, "eval %s run.folder=%s --json", in("net.json"), in("run"));
    assert_contains(r.out, "box\\u001b[2J");
    drop(&r);
    r = plain(0, "dataset inspect %s", in("data"));
    assert_contains(r.out, "\\u{202E}ring\\u{9B}");
    drop(&r);
    r = plain(0, "report %s", in("run"));
    drop(&r);
    plain_file(in("run/report.html"));
    plain_file(in("run/log.txt"));
    char *csv = get_text(in("run/eval_test/per_class.csv"));
    assert_plain("per_class.csv", csv);
    assert_contains(csv, ",0,'=disc,");
    assert_contains(csv, ",1,box\\x1B[2J,");
    assert_contains(csv, ",3,\"'-tri, \"\"angle\"\"\",");
    pm_free(csv);
}

static void pictures(void **state)
{
    const char *folder_of_pictures = in("pictures");

    (void)state;
    assert_int_equal(mkdir(folder_of_pictures, 0777), 0);
    struct result r = plain(0, "dataset inspect %s --records 1 --pictures %s", in("data"),
                            folder_of_pictures);
    drop(&r);
    assert_int_equal(
        rename(in("pictures/shapes_test_00000.png"), in("pictures/a" ESCAPE "\nb" C1 ".png")), 0);
    put_text(in("pictures/" REVERSED "\ngnp.png"), "no picture");
    r = plain(3, "predict %s %s run.folder=%s", in("net.json"), in("pictures"), in("run"));
    assert_contains(r.out, "a\\x1B[2J\\x0Ab\\u{9B}.png:");
    assert_contains(r.err, "\\u{202E}\\x0Agnp.png");
    drop(&r);
    r = plain(3, "predict %s '%s' run.folder=%s", in("net.json"), in("absent" ESCAPE "\n.png"),
              in("run"));
    drop(&r);
    r = plain(2, "'no" ESCAPE "\ncommand'");
    drop(&r);
}

static int set_up(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors),
        cmocka_unit_test(classes),
        cmocka_unit_test(pictures),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
