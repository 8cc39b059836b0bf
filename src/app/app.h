/* app: declarations that the commands share. A command is a row in its own cmd_NAME.c and a line in
 * commands.def; nothing below src/app/ reads argv or prints results.
 *
 * Results go to standard output; the log, progress and errors go to standard error. With --json a
 * command prints exactly one JSON object, by app_print_json. */
#ifndef APP_H
#define APP_H

#include <pumice/config.h>

struct app_globals {
    bool json;
    int verbosity;     /* -1 -q, 0, 1 -v */
    bool json_printed; /* set by app_print_json */
    bool failure_printed; /* set by app_print_failure */
    bool lost;            /* set by app_leave: another process, or its host, was lost */
};

struct pm_command {
    const char *name, *help; /* one line, no full stop */
    const char *usage;       /* lines without "pumice NAME ", such as "CONFIG.json [key=value
                              * ...]"; at least one, "[--json]" if there are no arguments */
    const char *details;     /* for --help: purpose, flags, an example; or NULL */
    /* Adds to the text of --help. argv holds the words after the command's name. Or NULL. */
    int (*more)(int argc, char **argv, struct pm_str *text);
    /* Runs the command. argv holds the words after the command's name, without the global flags.
     * Returns 0, a negative PM_E... (main prints its text and exits with its code), or a positive
     * exit code (130, 143). */
    int (*run)(int argc, char **argv, struct app_globals *g);
};

/* Removes a flag from argv; true if it was there. */
bool app_take_flag(int *argc, char **argv, const char *flag);
/* Removes "--flag VALUE" or "--flag=VALUE" from argv. *value is unchanged if the flag is absent.
 * PM_ECONFIG if the value is missing. */
int app_take_value(int *argc, char **argv, const char *flag, const char **value);

/* The same for a number in low..high. PM_ECONFIG for another value. */
int app_take_number(int *argc, char **argv, const char *flag, double low, double high,
                    double *value);

/* The remaining arguments: words, and key=value overrides. Borrowed from argv; the lists are in the
 * arena. */
struct app_args {
    const char **words;
    int words_count;
    const char **overrides;
    size_t overrides_count;
};
/* Splits the remaining arguments. PM_ECONFIG for an unknown flag. command: name for the message. */
int app_args(int argc, char **argv, const char *command, struct pm_arena *a, struct app_args *out);

/* Replaces --force, --key=value and --key value with force=true and key=value, because the original
 * programs' flags have this form. Texts are in the arena. */
void app_flags_to_options(int *argc, char **argv, struct pm_arena *a);
/* Joins the overrides to an option table's text (pm_opts_parse_text). PM_ECONFIG if there are more
 * than `words` words. */
int app_options(const struct app_args *args, const char *command, int words, struct pm_arena *a,
                const char **out);
/* Adds lines, indented by four columns, for --help. */
void app_add_indented(struct pm_str *s, const char *lines);
/* Adds each option, its default and its description, for --help. */
void app_add_options(struct pm_str *s, const struct pm_opt *opts);

/* Loads the config words[0], or that of the run folder words[0], with the overrides. PM_ECONFIG if
 * there is no word, or more than `most`, or the folder is not that of a run. */
int app_load_config(const struct app_args *args, const char *command, int most, struct pm_arena *a,
                    struct pm_config **out);

/* Loads the config words[0] for a command that trains or plans a training: run.batch_size "auto"
 * becomes a number (pm_settle_batch). */
int app_load_training(const struct app_args *args, const char *command, struct pm_arena *a,
                      struct pm_config **out);

/* Adds what a device's step does ("675 dispatches, ...") from the counts in its JSON object. */
void app_add_counts(struct pm_str *s, const struct cJSON *device);
/* Calls the handler at the first SIGINT, SIGTERM or SIGHUP; a second one ends the process. */
void app_catch_signals(void (*handler)(int number));
/* Prints the last error, for a command that fails with err; main does it for all that have not.
 * With --json it is an object too, unless the result was already printed. */
void app_print_failure(struct app_globals *g, int err);
/* Prints one object to standard output. */
int app_print_json(struct app_globals *g, const struct cJSON *object);
/* Adds the formats to pumice dataset convert [FORMAT] --help (dataset_help.c). */
int app_dataset_help(int argc, char **argv, struct pm_str *text);
/* pumice config convert (config_convert.c). Words: pipeline configs, then the file to write. force:
 * an existing file is replaced. */
int app_config_convert(const struct app_args *args, bool force, struct app_globals *g);
/* Flags of pumice dataset inspect (dataset_inspect.c). */
struct app_inspect {
    int records; /* number of records to show per split */
    /* Folders for the records' pictures, label maps and pictures with boxes, or NULL. */
    const char *pictures, *maps, *boxes;
    bool check;  /* read every record */
};
int app_dataset_inspect(const struct app_args *args, const struct app_inspect *flags,
                        struct pm_arena *a, struct app_globals *g);
/* Prints text to standard output. Control characters except newlines are escaped (pm_printable).
 * Add names from foreign files to the text with pm_str_name, which also escapes newlines. */
int app_print(const char *text);
/* Prints the program's own text to standard output unchanged: tabs stay. PM_EFAIL: writing
 * failed. */
int app_print_raw(const char *text);

#endif
