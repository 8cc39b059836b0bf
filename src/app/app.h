/* app: what the commands share. A command is a row in its own cmd_NAME.c and a line in
 * commands.def; nothing below src/app/ reads argv or prints results.
 *
 * Results go to standard output, everything else (log, progress, errors) to standard error. With
 * --json a command prints exactly one JSON object, by app_print_json. */
#ifndef APP_H
#define APP_H

#include <pumice/config.h>

struct app_globals {
    bool json;
    int verbosity;     /* -1 -q, 0, 1 -v */
    bool json_printed; /* set by app_print_json */
};

struct pm_command {
    const char *name, *help; /* one line, no full stop */
    const char *usage;       /* lines without "pumice NAME ", as "CONFIG.json [key=value ...]" */
    const char *details;     /* for --help: what it does, its flags, an example; or NULL */
    /* Adds to what --help prints; argv holds what stands behind the command's name. Or NULL. */
    int (*more)(int argc, char **argv, struct pm_str *text);
    /* argv holds what follows the command's name, without the global flags. Returns 0, a negative
     * PM_E... (main prints its text, exits with its code), or a positive exit code (130, 143). */
    int (*run)(int argc, char **argv, struct app_globals *g);
};

/* Takes a flag out of argv; true when it was there. */
bool app_take_flag(int *argc, char **argv, const char *flag);
/* Takes "--flag VALUE" or "--flag=VALUE" out; *value is left alone when it is absent. PM_ECONFIG
 * when the value is missing. */
int app_take_value(int *argc, char **argv, const char *flag, const char **value);

/* What is left: words, and key=value overrides. Borrowed from argv; the lists are in the arena. */
struct app_args {
    const char **words;
    int words_count;
    const char **overrides;
    size_t overrides_count;
};
/* PM_ECONFIG for a flag that nobody took. command: name for the message. */
int app_args(int argc, char **argv, const char *command, struct pm_arena *a, struct app_args *out);

/* --force, --key=value and --key value become force=true and key=value, as the originals' flags were
 * given. Texts are in the arena. */
void app_flags_to_options(int *argc, char **argv, struct pm_arena *a);
/* The overrides as an option table's text (pm_opts_parse_text). PM_ECONFIG where there are more than
 * `words` words. */
int app_options(const struct app_args *args, const char *command, int words, struct pm_arena *a,
                const char **out);
/* For --help: each option, its default and what it is. */
void app_add_options(struct pm_str *s, const struct pm_opt *opts);

/* Loads words[0] with the overrides. PM_ECONFIG when there is no word, or more than `words`. */
int app_load_config(const struct app_args *args, const char *command, int words, struct pm_arena *a,
                    struct pm_config **out);

/* One object to standard output. */
int app_print_json(struct app_globals *g, const struct cJSON *object);
/* What pumice dataset convert [FORMAT] --help adds: dataset_help.c. */
int app_dataset_help(int argc, char **argv, struct pm_str *text);
/* pumice dataset inspect: dataset_inspect.c. */
struct app_inspect {
    int records; /* shown of each split */
    const char *pictures, *maps; /* folders for their pictures and for their maps of labels, or NULL */
    bool check;  /* read every record */
};
int app_dataset_inspect(const struct app_args *args, const struct app_inspect *flags,
                        struct pm_arena *a, struct app_globals *g);
/* Text to standard output. Control characters but newlines are escaped (pm_printable); names from
 * foreign files go into the text by pm_str_name, which escapes newlines, too. */
int app_print(const char *text);
/* A text of the program's own to standard output, as it is: tabs stay. PM_EFAIL: writing failed. */
int app_print_raw(const char *text);

#endif
