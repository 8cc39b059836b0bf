/* The files that "base" names: each is read once, and the result equals that of reading it at
 * each of its places. */
#include "base/scratch.h"

#include <cjson/cJSON.h>
#include <sys/stat.h>

#include "config/config_private.h"

static void put(const char *path, const char *text)
{
    if (pm_file_write(path, text, strlen(text)) < 0)
        fail_msg("%s", pm_error_text());
}

static int merges; /* number of files that the last merged() merged, with repetitions */

/* Merges a file with its bases. The caller deletes the result. NULL when the config is refused. */
static cJSON *merged(const char *path)
{
    cJSON *tree = cJSON_CreateObject();
    struct pm_config_origins *o = pm_calloc(1, sizeof *o);
    const int err = pm_config_merge(path, NULL, NULL, 0, tree, o);

    merges = o->ranks - 1; /* the last rank belongs to the overrides */
    pm_config_origins_destroy(&o);
    if (err == PM_OK)
        return tree;
    assert_int_equal(err, PM_ECONFIG);
    cJSON_Delete(tree);
    return NULL;
}

static void is_refused(const char *path, const char *why)
{
    assert_null(merged(path));
    assert_contains(pm_error_text(), why);
}

/* ---- compared with reading at every place ------------------------------------------------ */

/* The definition: each base in turn, each time it is named, then the file. */
static void merge_into(cJSON *to, const cJSON *from)
{
    for (const cJSON *child = from->child; child; child = child->next) {
        cJSON *old = cJSON_GetObjectItemCaseSensitive(to, child->string);
        if (cJSON_IsObject(old) && cJSON_IsObject(child)) {
            merge_into(old, child);
        } else {
            cJSON_DeleteItemFromObjectCaseSensitive(to, child->string);
            cJSON_AddItemToObject(to, child->string, cJSON_Duplicate(child, true));
        }
    }
}

static void expand(const char *path, cJSON *to)
{
    char *text = NULL;

    assert_int_equal(pm_file_read(path, &text, NULL), PM_OK);
    cJSON *v = cJSON_Parse(text), *base = cJSON_DetachItemFromObject(v, "base");
    const cJSON *name;
    cJSON_ArrayForEach(name, base)
    {
        char beside[1024];
        snprintf(beside, sizeof beside, "%s/%s", folder, name->valuestring);
        expand(beside, to);
    }
    merge_into(to, v);
    cJSON_Delete(base);
    cJSON_Delete(v);
    pm_free(text);
}

static unsigned seed;

static unsigned below(unsigned n)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 16) % n;
}

static void add_value(struct pm_str *s, int depth)
{
    static const char *const others[] = { "null", "7", "[1, 2]", "\"x\"", "{}" };

    if (depth == 0 || below(3) == 0) {
        pm_str_add(s, below(2) ? "%s" : "%.0s%u", others[below(PM_COUNT(others))], below(100));
        return;
    }
    pm_str_add(s, "{");
    bool first = true;
    for (char key = 'a'; key < 'd'; key++)
        if (below(2)) {
            pm_str_add(s, "%s\"%c\": ", first ? "" : ", ", key);
            add_value(s, depth - 1);
            first = false;
        }
    pm_str_add(s, "}");
}

/* File n names some of the later files, also twice. */
static void put_random(int n, int count)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "{\"base\": [");
    for (int i = 0, named = (int)below(4); n + 1 < count && i < named; i++)
        pm_str_add(&s, "%s\"f%d.json\"", i ? ", " : "",
                   n + 1 + (int)below((unsigned)(count - n - 1)));
    pm_str_add(&s, "], \"%c\": ", "abc"[below(3)]);
    add_value(&s, 2);
    pm_str_add(&s, ", \"d\": ");
    add_value(&s, 2);
    pm_str_add(&s, "}");
    put(in("f%d.json", n), s.text);
    pm_str_free(&s);
}

static void same_as_reading_every_place(void **state)
{
    enum { FILES = 7, TRIES = 60 };

    (void)state;
    for (int i = 0; i < TRIES; i++) {
        seed = (unsigned)i;
        for (int n = 0; n < FILES; n++)
            put_random(n, FILES);
        cJSON *got = merged(in("f%d.json", 0)), *want = cJSON_CreateObject();
        if (!got)
            fail_msg("try %d: %s", i, pm_error_text());
        expand(in("f%d.json", 0), want);
        if (!cJSON_Compare(got, want, true))
            fail_msg("try %d: %s is not %s", i, cJSON_Print(got), cJSON_Print(want));
        cJSON_Delete(got);
        cJSON_Delete(want);
    }
}

/* ---- limits ------------------------------------------------------------------------------ */

/* Each of `count` files names the next one twice: read at every place, they would be 2^count. */
static void put_diamond(int count)
{
    for (int n = 0; n < count; n++) {
        struct pm_str s = { 0 };
        pm_str_add(&s, "{\"run\": {\"k%d\": %d, \"last\": %d}", n, n, n);
        if (n + 1 < count)
            pm_str_add(&s, ", \"base\": [\"g%d.json\", \"./g%d.json\"]", n + 1, n + 1);
        pm_str_add(&s, "}");
        put(in("g%d.json", n), s.text);
        pm_str_free(&s);
    }
}

static void diamonds(void **state)
{
    (void)state;
    put_diamond(16);
    cJSON *tree = merged(in("g%d.json", 0));
    assert_non_null(tree);
    assert_int_equal(merges, 16);
    const cJSON *section = cJSON_GetObjectItem(tree, "run");
    assert_int_equal(cJSON_GetArraySize(section), 17);
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(section, "last")), 0);
    cJSON_Delete(tree);
    put_diamond(17);
    is_refused(in("g%d.json", 0),
               "/g16.json would be level 17 of files that name files, 16 are allowed");
}

static void many(void **state)
{
    struct pm_str s = { 0 };

    (void)state;
    for (int n = 0; n < 64; n++) {
        put(in("h%d.json", n), "{}");
        pm_str_add(&s, "%s\"h%d.json\"", n ? ", " : "{\"base\": [", n);
    }
    pm_str_add(&s, "]}");
    put(in("many.json"), s.text);
    is_refused(in("many.json"), "/h0.json would be file 65 of one config, 64 are allowed");
    s.length -= 2;
    pm_str_add(&s, ", \"h0.json\"]}");
    put(in("many.json"), s.text);
    is_refused(in("many.json"), "names 65 files, 64 are allowed");
    pm_str_free(&s);
}

static void no_regular_files(void **state)
{
    (void)state;
    alarm(60); /* ends a test that waits for a pipe */
    assert_int_equal(mkfifo(in("pipe"), 0600), 0);
    put(in("x.json"), "{\"base\": \"pipe\"}");
    is_refused(in("x.json"), "/pipe: is a pipe; a regular file is needed");
    put(in("x.json"), "{\"base\": \"/dev/zero\"}");
    is_refused(in("x.json"), "/dev/zero: is a device; a regular file is needed");
    is_refused("/dev/null", "/dev/null: is a device");
    put(in("large.json"), "{}");
    assert_int_equal(truncate(in("large.json"), (off_t)PM_MOST_TEXT + 1), 0);
    put(in("x.json"), "{\"base\": \"large.json\"}");
    is_refused(in("x.json"),
               "large.json: the file has 64.0 MiB, but this kind of file has at most 64 MiB");
    alarm(0);
}

/* A base is found beside the path that was given, also when that is a link. */
static void links(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in("other"), 0755), 0);
    put(in("other/l.json"), "{\"base\": \"b.json\", \"run\": {\"here\": 1}}");
    put(in("other/b.json"), "{\"run\": {\"of\": \"other\"}}");
    put(in("b.json"), "{\"run\": {\"of\": \"top\"}}");
    assert_int_equal(symlink("other/l.json", in("l.json")), 0);
    put(in("x.json"), "{\"base\": [\"other/l.json\", \"l.json\"]}");
    cJSON *tree = merged(in("x.json"));
    assert_non_null(tree);
    assert_string_equal(
        cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "run"), "of")), "top");
    cJSON_Delete(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_reading_every_place),
        cmocka_unit_test(diamonds),
        cmocka_unit_test(many),
        cmocka_unit_test(no_regular_files),
        cmocka_unit_test(links),
    };

    return cmocka_run_group_tests(tests, scratch_set_up, scratch_tear_down);
}
