/* Runs the program as a user does, in a folder that belongs to the test, and reads what it
 * prints as text and as JSON. For tests of commands that report; tests/e2e/program.h serves
 * tests of failures. */
#ifndef COMMAND_H
#define COMMAND_H

#include "base/unit.h"

#include <cjson/cJSON.h>

#include <sys/wait.h>

static char *folder; /* working folder of the runs */

/* A net of two layers whose training step takes a millisecond. Its data is the folder "shapes",
 * which make_commands draws. */
static const char command_net[] =
    "{ \"model\": { \"num_classes\": 4, \"layers\": ["
    "  { \"name\": \"conv\", \"layer\": \"conv2d\", \"filters\": 8, \"activation\": \"relu\" },"
    "  { \"name\": \"logits\", \"layer\": \"fully_connected\", \"units\": 4 } ] },"
    "  \"data\": { \"folder\": \"shapes\", \"eval_split\": \"test\" },"
    "  \"input\": { \"preprocessing\": \"lenet\", \"size\": 12, \"channels\": 3 },"
    "  \"optim\": { \"name\": \"momentum\" },"
    "  \"run\": { \"folder\": \"run\", \"batch_size\": 6, \"steps\": 12 } }";

/* A path in the folder, valid until the next call. */
static inline const char *in_folder(const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* The contents of a file. *size, unless NULL, gets its length. Free with pm_free. */
static inline char *read_bytes(const char *name, size_t *size)
{
    char *data = NULL;

    if (pm_file_read(in_folder(name), &data, size) < 0)
        fail_msg("%s", pm_error_text());
    return data;
}

static inline char *read_text(const char *name)
{
    return read_bytes(name, NULL);
}

/* Runs pumice with arguments in shell syntax. Its output goes to the files out and err. Returns
 * the exit code, or -1 when a signal ended the program. */
static inline int pumice(const char *arguments)
{
    char command[1024];
    int status;

    snprintf(command, sizeof command, "cd %s && \"$PUMICE_PROGRAM\" %s > out 2> err", folder,
             arguments);
    status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The JSON that a successful run prints. Free with cJSON_Delete. */
static inline cJSON *report_of(const char *arguments)
{
    char *data;
    cJSON *report;

    if (pumice(arguments) != 0) {
        data = read_text("err");
        fail_msg("pumice %s: %s", arguments, data);
    }
    data = read_text("out");
    report = cJSON_Parse(data);
    if (!report)
        fail_msg("no JSON: %s", data);
    pm_free(data);
    return report;
}

/* Fails unless the file contains the text. */
static inline void assert_file_contains(const char *name, const char *part)
{
    char *data = read_text(name);

    assert_contains(data, part);
    pm_free(data);
}

static inline double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

    if (!cJSON_IsNumber(v))
        fail_msg("no number '%s'", key);
    return v->valuedouble;
}

static inline bool has_device(const char *name)
{
    char arguments[128];

    snprintf(arguments, sizeof arguments, "devices %s", name);
    return pumice(arguments) == 0;
}

/* Ends the test program as skipped when the device is missing. */
static inline void need_device(const char *name)
{
    if (!has_device(name)) {
        print_message("skipped: no device %s\n", name);
        skip();
    }
}

/* Runs the tests in a fresh folder that holds net.json (command_net) and, when asked, the data
 * folder shapes. Returns the exit code for main. */
static inline int run_commands(const char *group, const struct CMUnitTest *tests, size_t count,
                               bool shapes)
{
    int failed;

    if (!getenv("PUMICE_PROGRAM")) {
        print_message("PUMICE_PROGRAM must name the program, as ctest sets it\n");
        return 1;
    }
    folder = make_folder();
    if (pm_file_write(in_folder("net.json"), command_net, sizeof command_net - 1) < 0 ||
        (shapes &&
         pumice("dataset make shapes shapes size=16 train=60 validation=6 test=6") != 0)) {
        print_message("%s: cannot make %s\n", group, folder);
        return 1;
    }
    failed = _cmocka_run_group_tests(group, tests, count, NULL, NULL);
    drop_folder(folder);
    return failed;
}

#endif
