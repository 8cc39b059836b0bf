/* pumice devices: its JSON, the meaning of device names, and its exit codes. */
#include "device/drivers.h"

#include <cjson/cJSON.h>
#include <sys/wait.h>

/* Runs "pumice ARGS". Returns the exit code; *out gets the output, freed with pm_free. */
static int pumice(const char *args, char **out)
{
    struct pm_str command = { 0 }, text = { 0 };
    char part[4096];
    size_t n;
    FILE *f;
    int status;

    pm_str_add(&command, "%s %s 2>/dev/null", getenv("PUMICE_PROGRAM"), args);
    f = popen(command.text, "r");
    assert_non_null(f);
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        pm_str_bytes(&text, part, n);
    status = pclose(f);
    pm_str_free(&command);
    *out = text.text ? text.text : pm_strdup("");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *string(const cJSON *o, const char *key)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));

    assert_non_null(s);
    return s;
}

static void test_json(void **state)
{
    char *text;
    const cJSON *d, *limits, *units, *last = NULL;
    cJSON *o;
    int software = 0;

    (void)state;
    assert_int_equal(pumice("devices --json", &text), 0);
    o = cJSON_Parse(text);
    assert_non_null(o);
    cJSON_ArrayForEach(d, cJSON_GetObjectItemCaseSensitive(o, "devices")) {
        last = d;
        if (strcmp(string(d, "kind"), "cpu") == 0)
            continue;
        assert_int_equal(strlen(string(d, "uuid")), 36);
        limits = cJSON_GetObjectItemCaseSensitive(d, "limits");
        units = cJSON_GetObjectItemCaseSensitive(limits, "compute_units");
        assert_true(cJSON_IsNumber(units));
        assert_true((units->valuedouble == 0) == (strcmp(string(d, "kind"), "software") == 0));
        software += strcmp(string(d, "kind"), "software") == 0;
    }
    assert_string_equal(string(last, "address"), "cpu");
    if (software > 0 && getenv("PUMICE_SOFTWARE_ONLY"))
        assert_string_equal(string(o, "picked"), "cpu");
    assert_true(strlen(string(o, "why")) > 0);
    cJSON_Delete(o);
    pm_free(text);
}

static void test_names(void **state)
{
    char *text;

    (void)state;
    assert_int_equal(pumice("devices cpu", &text), 0);
    assert_contains(text, "cpu means cpu");
    pm_free(text);
    assert_int_equal(pumice("devices no-such-device", &text), 4);
    assert_string_equal(text, "");
    pm_free(text);
    assert_int_equal(pumice("devices cpu cpu", &text), 2);
    pm_free(text);
}

/* A machine without a driver still has its CPU. */
static void test_no_driver(void **state)
{
    char *text;

    (void)state;
    setenv("VK_DRIVER_FILES", "/nowhere.json", 1);
    setenv("VK_ICD_FILENAMES", "/nowhere.json", 1);
    assert_int_equal(pumice("devices", &text), 0);
    assert_contains(text, "auto means cpu");
    assert_null(strstr(text, "vulkan:"));
    pm_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_no_driver),
    };

    if (!getenv("PUMICE_PROGRAM")) {
        print_message("skipped: PUMICE_PROGRAM does not name the program\n");
        return 77;
    }
    if (!getenv("VK_DRIVER_FILES") && !getenv("VK_ICD_FILENAMES"))
        setenv("PUMICE_SOFTWARE_ONLY", "1", 1);
    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
