/* Functions that the commands share: arguments, configs, printing. */
#include "app/app.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <pumice/train.h>

static void take(int *argc, char **argv, int first, int count)
{
    memmove(argv + first, argv + first + count, (size_t)(*argc - first - count) * sizeof *argv);
    *argc -= count;
}

bool app_take_flag(int *argc, char **argv, const char *flag)
{
    bool found = false;

    for (int i = 0; i < *argc;) {
        bool here = strcmp(argv[i], flag) == 0;
        if (here)
            take(argc, argv, i, 1);
        else
            i++;
        found |= here;
    }
    return found;
}

int app_take_value(int *argc, char **argv, const char *flag, const char **value)
{
    size_t n = strlen(flag);

    for (int i = 0; i < *argc; i++) {
        if (strncmp(argv[i], flag, n) == 0 && argv[i][n] == '=') {
            *value = argv[i] + n + 1;
            take(argc, argv, i, 1);
            return PM_OK;
        }
        if (strcmp(argv[i], flag) != 0)
            continue;
        if (i + 1 == *argc)
            return pm_fail(PM_ECONFIG, "command line: %s needs a value after it", flag);
        *value = argv[i + 1];
        take(argc, argv, i, 2);
        return PM_OK;
    }
    return PM_OK;
}

int app_take_number(int *argc, char **argv, const char *flag, double low, double high,
                    double *value)
{
    const char *text = NULL;
    char *end;
    double v;
    int err = PM_OK;

    PM_TRY(app_take_value(argc, argv, flag, &text));
    if (!text)
        return PM_OK;
    v = strtod(text, &end);
    if (end == text || *end || !(v >= low && v <= high))
        PM_TRY(pm_fail(PM_ECONFIG, "command line: %s: '%s' is not a number of %g to %g", flag, text,
                       low, high));
    *value = v;
out:
    return err;
}

/* Whether a word is key=value with a dotted key. The name of an existing file that holds '=' is
 * not. */
static bool is_override(const char *word)
{
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$");

    return n > 0 && word[n] == '=' && !pm_file_exists(word);
}

/* Whether a word is --section.key=value. */
static bool is_dashed_key(const char *word)
{
    const char *dot = strchr(word, '.'), *equals = strchr(word, '=');

    return strncmp(word, "--", 2) == 0 && dot && equals && dot < equals && is_override(word + 2);
}

static int fail_flag(const char *command, const char *flag, struct pm_arena *a)
{
    const char *word = pm_arena_printf(a, "%.*s", (int)strcspn(flag, "="), flag);
    const char *key = pm_config_suggest(word + strspn(word, "-"), a);

    if (key && !strncmp(flag, "--", 2))
        return pm_fail(PM_ECONFIG,
                       "command line: %s has no flag '%s', did you mean the key %s=VALUE? (pumice "
                       "%s --help)",
                       command, word, key, command);
    return pm_fail(PM_ECONFIG, "command line: %s has no flag '%s' (pumice %s --help)", command,
                   flag, command);
}

int app_args(int argc, char **argv, const char *command, struct pm_arena *a, struct app_args *out)
{
    *out = (struct app_args){
        .words = pm_arena_alloc(a, (size_t)argc * sizeof *out->words),
        .overrides = pm_arena_alloc(a, (size_t)argc * sizeof *out->overrides),
    };
    for (int i = 0; i < argc; i++) {
        if (is_dashed_key(argv[i]))
            out->overrides[out->overrides_count++] = argv[i] + 2;
        else if (argv[i][0] == '-' && argv[i][1])
            return fail_flag(command, argv[i], a);
        else if (is_override(argv[i]))
            out->overrides[out->overrides_count++] = argv[i];
        else
            out->words[out->words_count++] = argv[i];
    }
    return PM_OK;
}

/* Adds a key=value word of the command line to an option table's text. A value with spaces becomes
 * JSON without spaces outside of strings. */
static void add_option(struct pm_str *s, const char *word)
{
    const char *value = strchr(word, '=') + 1;

    pm_str_add(s, "%s%.*s", s->length ? " " : "", (int)(value - word), word);
    if (strpbrk(value, " \"") && value[0] != '"') {
        cJSON *v = value[0] == '[' ? cJSON_Parse(value) : NULL;
        v = v ? v : cJSON_CreateString(value);
        char *text = cJSON_PrintUnformatted(v);
        pm_str_add(s, "%s", text);
        cJSON_free(text);
        cJSON_Delete(v);
    } else {
        pm_str_add(s, "%s", value);
    }
}

int app_options(const struct app_args *args, const char *command, int words, struct pm_arena *a,
                const char **out)
{
    struct pm_str s = { 0 };

    if (args->words_count > words)
        return pm_fail(PM_ECONFIG, "command line: %s takes no argument '%s'", command,
                       args->words[words]);
    for (size_t i = 0; i < args->overrides_count; i++)
        add_option(&s, args->overrides[i]);
    *out = pm_arena_strdup(a, s.text ? s.text : "");
    pm_str_free(&s);
    return PM_OK;
}

void app_flags_to_options(int *argc, char **argv, struct pm_arena *a)
{
    int n = 0;

    for (int i = 0; i < *argc; i++) {
        char *word = argv[i];
        if (!strncmp(word, "--", 2) && word[2]) {
            const bool whole = strchr(word, '=') != NULL;
            const bool flag = !whole && (i + 1 == *argc || !strncmp(argv[i + 1], "--", 2) ||
                                         !strcmp(word, "--force"));
            word = flag ? pm_arena_printf(a, "%s=true", word + 2)
                : whole ? word + 2 : pm_arena_printf(a, "%s=%s", word + 2, argv[++i]);
        }
        argv[n++] = word;
    }
    *argc = n;
}

void app_add_indented(struct pm_str *s, const char *lines)
{
    for (; *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n')
        pm_str_add(s, "    %.*s\n", (int)strcspn(lines, "\n"), lines);
}

void app_add_options(struct pm_str *s, const struct pm_opt *opts)
{
    for (const struct pm_opt *o = opts; o && o->type; o++) {
        cJSON *def = pm_opt_default(o);
        char *value = pm_json_print(def);
        pm_str_add(s, "    %s=%s\n        %s", o->key, value, o->help);
        if (o->choices)
            pm_str_add(s, " (%s)", o->choices);
        pm_str_add(s, "\n");
        pm_free(value);
        cJSON_Delete(def);
    }
}

/* Replaces a run folder with the config that was saved in it. */
static int name_config(struct app_args *args, struct pm_arena *a)
{
    const char *folder = args->words[0], **words, **overrides;

    if (!pm_is_folder(folder))
        return PM_OK;
    words = pm_arena_copy(a, args->words, (size_t)args->words_count * sizeof *words);
    words[0] = pm_arena_printf(a, "%s/config.json", folder);
    if (!pm_file_exists(words[0]))
        return pm_fail(PM_ECONFIG,
                       "command line: %s is a folder without config.json, so it is not the folder "
                       "of a run; name a config file or a run folder", folder);
    overrides = pm_arena_alloc(a, (args->overrides_count + 1) * sizeof *overrides);
    overrides[0] = pm_arena_printf(a, "run.folder=%s", folder);
    for (size_t i = 0; i < args->overrides_count; i++)
        overrides[i + 1] = args->overrides[i];
    args->words = words;
    args->overrides = overrides;
    args->overrides_count++;
    return PM_OK;
}

int app_load_config(const struct app_args *given, const char *command, int most, struct pm_arena *a,
                    struct pm_config **out)
{
    struct app_args args = *given;
    int err = PM_OK;

    if (args.words_count == 0)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "command line: %s needs a config file, as in pumice %s "
                       "configs/lenet_mnist.json",
                       command, command));
    if (args.words_count > most)
        PM_TRY(pm_fail(
            PM_ECONFIG, "command line: %s takes one config file and key=value arguments, but not "
            "'%s'", command, args.words[most]));
    PM_TRY(name_config(&args, a));
    const struct pm_open_sections open = pm_train_choices(a);
    err = pm_config_load(args.words[0], args.overrides, args.overrides_count, &open, out);
out:
    return err;
}

int app_load_training(const struct app_args *args, const char *command, struct pm_arena *a,
                      struct pm_config **out)
{
    int err = PM_OK;

    PM_TRY(app_load_config(args, command, 1, a, out));
    if ((*out)->study.vary)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: study.vary: the file describes many runs: start them with "
                       "pumice sweep %s, or give study=null for the config without them",
                       pm_config_source(*out, "study.vary"), args->words[0]));
    PM_TRY(pm_settle_batch(*out));
out:
    return err;
}

int app_print_raw(const char *text)
{
    if (fputs(text, stdout) < 0 || fflush(stdout) < 0)
        return pm_fail(PM_EFAIL, "standard output: writing failed: %s", pm_write_error(errno));
    return PM_OK;
}

int app_print(const char *text)
{
    struct pm_str plain = { 0 };

    pm_str_add(&plain, "%s", "");
    while (*text) {
        const size_t n = strcspn(text, "\n");
        pm_str_printable(&plain, text, n);
        pm_str_bytes(&plain, "\n", text[n] == '\n');
        text += n + (text[n] == '\n');
    }
    const int err = app_print_raw(plain.text);
    pm_str_free(&plain);
    return err;
}

/* pm_json_print has escaped every control character, but not bytes that are not valid UTF-8. JSON
 * cannot express these, so each is replaced with U+FFFD. */
static void add_valid(struct pm_str *s, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        char piece[PM_PRINTABLE];
        int used;
        const int n = pm_printable_next(text, left, piece, &used);
        const bool invalid = used == 1 && (unsigned char)*text >= 0x80;
        if (invalid)
            pm_str_add(s, "\xef\xbf\xbd");
        else
            pm_str_bytes(s, *text == '\n' ? "\n" : piece, *text == '\n' ? 1 : (size_t)n);
        text += used;
        left -= (size_t)used;
    }
}

static double number_of(const cJSON *o, const char *name)
{
    const cJSON *v = cJSON_GetObjectItem(o, name);

    return v ? v->valuedouble : 0;
}

void app_add_counts(struct pm_str *s, const cJSON *device)
{
    if (cJSON_HasObjectItem(device, "dispatches"))
        pm_str_add(s, "%.0f dispatches, %.0f barriers, %.0f segments, ",
                   number_of(device, "dispatches"), number_of(device, "barriers"),
                   number_of(device, "segments"));
    pm_str_add(s, "%.3f GB moved", number_of(device, "bytes_moved") / 1e9);
}

void app_catch_signals(void (*handler)(int number))
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = (int)SA_RESETHAND };

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

int app_print_json(struct app_globals *g, const struct cJSON *object)
{
    char *text = pm_json_print(object);
    struct pm_str line = { 0 };

    add_valid(&line, text);
    pm_str_add(&line, "\n");
    pm_free(text);
    int err = app_print_raw(line.text);
    g->json_printed = err == PM_OK;
    pm_str_free(&line);
    return err;
}
