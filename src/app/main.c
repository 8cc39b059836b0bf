/* The program's entry point: global flags, the table of commands, help, exit codes.
 *
 * Exit codes: 0 success; 1 failure; 2 the config or the command line is wrong; 3 data or a
 * checkpoint is bad; 4 no usable device, or a device failed; 129, 130, 141 and 143 stopped by
 * SIGHUP, SIGINT, SIGPIPE and SIGTERM after a checkpoint was written. */
#include "app/app.h"
#include "app/manual.h"
#include "app/wrap.h"
#include "jobs/launch.h"

#include <pumice/device.h>
#include <pumice/trace.h>

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PM_COMMAND(name) extern const struct pm_command pm_command_##name;
#include "app/commands.def"
#undef PM_COMMAND

static const struct pm_command *const commands[] = {
#define PM_COMMAND(name) &pm_command_##name,
#include "app/commands.def"
#undef PM_COMMAND
};

static const char purpose[] = "trains vision nets on any GPU and on the CPU, from a JSON file";

static const char introduction[] =
    "\n"
    "usage: pumice COMMAND [CONFIG.json] [ARGS] [key=value ...] [--json] [-v|-q]\n"
    "\n";

static const char closing[] =
    "\n"
    "  --json   prints one JSON object on standard output; messages go to standard error\n"
    "  -v, -q   prints more or fewer messages (PM_LOG=info,vulkan=trace selects by subsystem)\n"
    "  --help   after a command: explains the command, its arguments and examples\n"
    "  --version\n"
    "           prints the program's name and version\n"
    "  help --man FOLDER\n"
    "           writes the manual pages into the folder\n"
    "  help --completion bash|zsh|fish\n"
    "           prints the shell's completion script\n"
    "\n"
    "key=value changes the config for one run: run.steps=100, optim.name=adam,\n"
    "devices='[\"vulkan:0\",\"cpu\"]'. docs/keys.md explains every key.\n"
    "Exit codes: 0 done, 1 failed, 2 config or command line, 3 data or checkpoint, 4 device,\n"
    "128 + n stopped by signal n (129 closed terminal, 130 Ctrl-C, 141 closed pipe, 143 kill);\n"
    "training then saves a checkpoint first.\n";

static const struct pm_command *find(const char *name)
{
    for (size_t i = 0; i < PM_COUNT(commands); i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int fail_unknown(const char *name)
{
    const char *names[PM_COUNT(commands)];

    for (size_t i = 0; i < PM_COUNT(commands); i++)
        names[i] = commands[i]->name;
    const char *guess = pm_nearest(name, names, PM_COUNT(names));
    if (guess)
        return pm_fail(PM_ECONFIG, "command line: '%s' is no command, did you mean '%s'?", name,
                       guess);
    return pm_fail(PM_ECONFIG, "command line: '%s' is no command (pumice help lists them)", name);
}

/* Prints a help text in the terminal's width. */
static int print_wrapped(const char *text)
{
    struct pm_str s = { 0 };
    int err;

    app_wrap(&s, text, app_columns());
    err = app_print(s.text);
    pm_str_free(&s);
    return err;
}

static int print_overview(void)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "pumice " PUMICE_VERSION ": %s\n%s", purpose, introduction);
    for (size_t i = 0; i < PM_COUNT(commands); i++)
        pm_str_add(&s, "  %-11s%s\n", commands[i]->name, commands[i]->help);
    pm_str_add(&s, "%s", closing);
    int err = print_wrapped(s.text);
    pm_str_free(&s);
    return err;
}

static int print_help(int argc, char **argv)
{
    const struct pm_command *c = find(argv[0]);
    struct pm_str s = { 0 };

    if (!c)
        return fail_unknown(argv[0]);
    pm_str_add(&s, "pumice %s: %s\n\n", c->name, c->help);
    for (const char *line = c->usage; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (*line == ' ') /* continues the previous line */
            pm_str_add(&s, "       %.*s\n", (int)strcspn(line, "\n"), line);
        else
            pm_str_add(&s, "%s pumice %s %.*s\n", line == c->usage ? "usage:" : "      ", c->name,
                       (int)strcspn(line, "\n"), line);
    if (c->details)
        pm_str_add(&s, "\n%s", c->details);
    int err = c->more ? c->more(argc - 1, argv + 1, &s) : PM_OK;
    if (err == PM_OK)
        err = print_wrapped(s.text);
    pm_str_free(&s);
    return err;
}

/* Runs pumice help [COMMAND], --man FOLDER or --completion SHELL. */
static int run_help(int argc, char **argv)
{
    const struct app_program program = { commands, PM_COUNT(commands), purpose, closing };
    const char *folder = NULL, *shell = NULL;
    int err = PM_OK;

    PM_TRY(app_take_value(&argc, argv, "--man", &folder));
    PM_TRY(app_take_value(&argc, argv, "--completion", &shell));
    if ((folder || shell) && argc > 0)
        PM_TRY(pm_fail(PM_ECONFIG, "command line: '%s' does not belong after help %s", argv[0],
                       folder ? "--man FOLDER" : "--completion SHELL"));
    if (folder)
        PM_TRY(app_manual_write(&program, folder));
    if (shell)
        PM_TRY(app_completion_print(&program, shell));
    if (!folder && !shell)
        err = argc > 0 ? print_help(argc, argv) : print_overview();
out:
    return err;
}

static int run(int argc, char **argv, struct app_globals *g)
{
    bool help = app_take_flag(&argc, argv, "--help") | app_take_flag(&argc, argv, "-h");

    g->json = app_take_flag(&argc, argv, "--json");
    g->verbosity = app_take_flag(&argc, argv, "-v") - app_take_flag(&argc, argv, "-q");
    if (g->verbosity)
        pm_log_set_level(g->verbosity > 0 ? PM_LEVEL_DEBUG : PM_LEVEL_WARN);
    if (app_take_flag(&argc, argv, "--version"))
        return app_print("pumice " PUMICE_VERSION "\n");
    if (argc > 0 && strcmp(argv[0], "help") == 0)
        return run_help(argc - 1, argv + 1);
    if (argc == 0)
        return print_overview();
    if (help)
        return print_help(argc, argv);
    const struct pm_command *c = find(argv[0]);
    return c ? c->run(argc - 1, argv + 1, g) : fail_unknown(argv[0]);
}

void app_print_failure(struct app_globals *g, int err)
{
    if (g->failure_printed)
        return;
    g->failure_printed = true;
    fprintf(stderr, "error: %s\n", pm_error_text());
    if (!g->json || g->json_printed)
        return;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "error", pm_error_text());
    cJSON_AddNumberToObject(object, "exit_code", pm_exit_code(err));
    app_print_json(g, object);
    cJSON_Delete(object);
}

/* Restarts the program with OpenMP's threads set to sleep after a short wait. By default they spin
 * for milliseconds at the end of each loop, and the library reads these settings only when it is
 * loaded. Such spinning beside loader threads, other clones or other programs costs most of the
 * machine (measured: ten times slower with two busy cores). Sleeping at once costs two wakes of a
 * thread for each loop (measured: nasnet_mobile's step takes 1.4 to 2 times as long). 1,000 turns
 * last 15 to 50 microseconds, about as long as a wake. Beside busy cores they cost nothing that can
 * be measured. */
static void let_threads_sleep(char **argv)
{
    if (getenv("OMP_WAIT_POLICY"))
        return;
    setenv("OMP_WAIT_POLICY", "passive", 0);
    setenv("GOMP_SPINCOUNT", "1000", 0);
    execv("/proc/self/exe", argv);
}

/* Notes the exit code for pumice launch and returns it, or ends the process by _exit if a thread is
 * stuck in a library: exit would run that library's destructors. */
static int leave(int code, const struct app_globals *g)
{
    pm_launch_note_end(code, g->lost);
    if (!pm_device_caught(NULL))
        return code;
    pm_trace_finish();
    fflush(NULL);
    _exit(code);
}

int main(int argc, char **argv)
{
    struct app_globals g = { 0 };
    int err;

    let_threads_sleep(argv);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond ulimit -f then fails with the error EFBIG */

    pm_trace_start();
    pm_launch_note_start();
    err = run(argc - 1, argv + 1, &g);

    if (err < 0)
        app_print_failure(&g, err);
    return leave(err < 0 ? pm_exit_code(err) : err, &g);
}
