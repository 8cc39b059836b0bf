/* Manual pages in the man(7) format, from the help texts.
 *
 * Blanks lay out the help texts for terminals. Lines that begin in column 0 are prose and are
 * filled. "term   text", or an indented "--flag VALUE text", begins a list item; deeper lines
 * belong to it. Other indented lines are examples and stay unchanged. */
#include "app/manual.h"
#include "app/usage.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- roff ------------------------------------------------------------------------------ */

/* Escapes characters that roff would treat as its own or replace with typographic ones. */
static void add_escaped(struct pm_str *s, const char *text, size_t length)
{
    if (length && (text[0] == '.' || text[0] == '\''))
        pm_str_add(s, "\\&");
    for (size_t i = 0; i < length; i++)
        switch (text[i]) {
        case '\\': pm_str_add(s, "\\e"); break;
        case '-': pm_str_add(s, "\\-"); break;
        case '\'': pm_str_add(s, "\\(aq"); break;
        case '^': pm_str_add(s, "\\(ha"); break;
        case '`': pm_str_add(s, "\\(ga"); break;
        case '~': pm_str_add(s, "\\(ti"); break;
        default: pm_str_bytes(s, text + i, 1);
        }
}

static void add_line(struct pm_str *s, const char *text, size_t length)
{
    add_escaped(s, text, length);
    pm_str_add(s, "\n");
}

static void add_bold(struct pm_str *s, const char *text, size_t length)
{
    pm_str_add(s, "\\fB");
    add_escaped(s, text, length);
    pm_str_add(s, "\\fR");
}

/* ---- help texts ------------------------------------------------------------------------ */

/* One line of a help text. */
struct line {
    const char *text; /* after the indent */
    size_t indent, length; /* length: of the text */
    size_t term; /* bytes of the term if the line begins an item, else 0 */
    const char *rest; /* after the term */
};

/* Returns the bytes of "--flag VALUE"; one blank may end it. */
static size_t flag_length(const char *text, size_t length)
{
    size_t n = 0;

    while (n < length && text[n] != ' ')
        n++;
    while (n < length && n + 1 < length && text[n] == ' ') {
        size_t m = n + 1;
        while (m < length && (isupper((unsigned char)text[m]) || text[m] == '|'))
            m++;
        if (m == n + 1 || (m < length && text[m] != ' ' && text[m] != ':'))
            break;
        n = m;
    }
    return n;
}

static struct line read_line(const char *text)
{
    const size_t whole = strcspn(text, "\n");
    size_t indent = 0;

    while (indent < whole && text[indent] == ' ')
        indent++;
    struct line l = { .text = text + indent, .indent = indent, .length = whole - indent };
    for (size_t i = 0; i + 1 < l.length && !l.term; i++)
        if (l.text[i] == ' ' && l.text[i + 1] == ' ')
            l.term = i;
    if (!l.term && indent && l.length > 1 && l.text[0] == '-')
        l.term = flag_length(l.text, l.length);
    size_t rest = l.term;
    while (rest < l.length && (l.text[rest] == ' ' || l.text[rest] == ':'))
        rest++;
    l.rest = l.text + rest;
    return l;
}

/* The kind of the previous lines, so that the next line continues it. */
enum block { BLOCK_HEADING, BLOCK_NONE, BLOCK_PROSE, BLOCK_ITEM, BLOCK_EXAMPLE };

struct roff {
    struct pm_str *s;
    enum block block;
    size_t indent; /* of the item */
};

static void change(struct roff *r, enum block to)
{
    if (r->block == BLOCK_EXAMPLE && to != BLOCK_EXAMPLE)
        pm_str_add(r->s, ".EE\n");
    if ((to == BLOCK_EXAMPLE || to == BLOCK_PROSE) && r->block != to && r->block != BLOCK_HEADING)
        pm_str_add(r->s, ".PP\n");
    if (to == BLOCK_EXAMPLE && r->block != BLOCK_EXAMPLE)
        pm_str_add(r->s, ".EX\n");
    r->block = to;
}

static void add_item(struct roff *r, const struct line *l, size_t term)
{
    const char *end = l->text + l->length, *rest = l->rest;

    if (term != l->term)
        for (rest = l->text + term; rest < end && *rest == ' ';)
            rest++;
    change(r, BLOCK_ITEM);
    r->indent = l->indent;
    pm_str_add(r->s, ".TP\n");
    add_bold(r->s, l->text, term);
    pm_str_add(r->s, "\n");
    if (rest < end)
        add_line(r->s, rest, (size_t)(end - rest));
}

/* Adds a line. deeper: the next line has a larger indent. */
static void add_text_line(struct roff *r, const struct line *l, bool deeper)
{
    const bool begins = l->term && (l->indent || isalpha((unsigned char)l->text[0]));

    if (r->block == BLOCK_ITEM && l->indent > r->indent) {
        add_line(r->s, l->text, l->length);
    } else if (begins) {
        add_item(r, l, l->term);
    } else if (l->indent && deeper) {
        add_item(r, l, l->length);
    } else if (r->block == BLOCK_ITEM && l->indent && l->indent == r->indent) {
        add_item(r, l, strcspn(l->text, " \n"));
    } else if (l->indent) {
        change(r, BLOCK_EXAMPLE);
        add_line(r->s, l->text, l->length);
    } else {
        change(r, BLOCK_PROSE);
        add_line(r->s, l->text, l->length);
    }
}

/* Adds a text after a heading. */
static void add_text(struct pm_str *s, const char *text)
{
    struct roff r = { .s = s };

    while (text && *text) {
        const struct line l = read_line(text);
        text += strcspn(text, "\n");
        text += *text == '\n';
        if (l.length)
            add_text_line(&r, &l, read_line(text).indent > l.indent);
        else if (r.block != BLOCK_HEADING)
            change(&r, BLOCK_NONE);
    }
    change(&r, BLOCK_NONE);
}

/* ---- pages ----------------------------------------------------------------------------- */

/* Adds the title. Its date is the current day, such as 2026-11-22, or the day of
 * SOURCE_DATE_EPOCH. */
static void add_title(struct pm_str *s, const char *name, const char *help)
{
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    const time_t now = epoch ? (time_t)strtoll(epoch, NULL, 10) : time(NULL);
    char day[16] = "";
    struct tm tm;

    if (gmtime_r(&now, &tm))
        strftime(day, sizeof day, "%Y-%m-%d", &tm);
    pm_str_add(s, ".\\\" Made by pumice help --man from the texts of --help.\n.TH ");
    for (const char *c = name; *c; c++)
        pm_str_add(s, "%c", toupper((unsigned char)*c));
    pm_str_add(s, " 1 %s \"pumice " PUMICE_VERSION "\" \"User Commands\"\n.SH NAME\n", day);
    add_escaped(s, name, strlen(name));
    pm_str_add(s, " \\- ");
    add_line(s, help, strlen(help));
}

static void add_synopsis(struct pm_str *s, const struct pm_command *c)
{
    pm_str_add(s, ".SH SYNOPSIS\n.nf\n");
    for (const char *line = c->usage; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (*line != ' ')
            pm_str_add(s, "\\fBpumice %s\\fR ", c->name);
        add_line(s, line, strcspn(line, "\n"));
    }
    pm_str_add(s, ".fi\n");
}

/* Adds the text that --help adds, for the command and for each of its parts. */
static int add_more(struct pm_str *s, const struct pm_command *c, struct pm_arena *a)
{
    const struct app_usage u = app_usage_read(c, a);
    struct pm_str plain = { 0 }, own = { 0 };
    int err = c->more(0, NULL, &plain);

    if (plain.length) {
        pm_str_add(s, ".SS Also\n");
        add_text(s, plain.text);
    }
    for (size_t i = 0; err == PM_OK && i < u.parts_count; i++) {
        char *part = pm_arena_strdup(a, u.parts[i]);
        own.length = 0;
        err = c->more(1, &part, &own);
        if (err == PM_OK && own.length > plain.length) {
            pm_str_add(s, ".SS %s\n", part);
            add_text(s, own.text + plain.length);
        }
    }
    pm_str_free(&plain);
    pm_str_free(&own);
    return err;
}

static int command_page(const struct pm_command *c, struct pm_arena *a, struct pm_str *s)
{
    add_title(s, pm_arena_printf(a, "pumice-%s", c->name), c->help);
    add_synopsis(s, c);
    pm_str_add(s, ".SH DESCRIPTION\n");
    add_text(s, c->details);
    const int err = c->more ? add_more(s, c, a) : PM_OK;
    pm_str_add(s, ".SH SEE ALSO\n.BR pumice (1)\n");
    return err;
}

static void program_page(const struct app_program *p, struct pm_str *s)
{
    add_title(s, "pumice", p->help);
    pm_str_add(s, ".SH SYNOPSIS\n.nf\n\\fBpumice\\fR COMMAND [CONFIG.json] [ARGS] [key=value ...] "
                  "[\\-\\-json] [\\-v|\\-q]\n.fi\n.SH COMMANDS\n");
    for (size_t i = 0; i < p->count; i++) {
        pm_str_add(s, ".TP\n.BR pumice\\-%s (1)\n", p->commands[i]->name);
        add_line(s, p->commands[i]->help, strlen(p->commands[i]->help));
    }
    pm_str_add(s, ".SH OPTIONS\n");
    add_text(s, p->closing);
    pm_str_add(s, ".SH SEE ALSO\n");
    for (size_t i = 0; i < p->count; i++)
        pm_str_add(s, ".BR pumice\\-%s (1)%s\n", p->commands[i]->name, i + 1 < p->count ? "," : "");
}

static int write_page(const char *folder, const char *name, const struct pm_str *s,
                      struct pm_arena *a)
{
    return pm_file_write(pm_arena_printf(a, "%s/%s.1", folder, name), s->text, s->length);
}

int app_manual_write(const struct app_program *p, const char *folder)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_str s = { 0 };
    int err = PM_OK;

    program_page(p, &s);
    PM_TRY(write_page(folder, "pumice", &s, a));
    for (size_t i = 0; i < p->count; i++) {
        s.length = 0;
        PM_TRY(command_page(p->commands[i], a, &s));
        PM_TRY(write_page(folder, pm_arena_printf(a, "pumice-%s", p->commands[i]->name), &s, a));
    }
out:
    pm_str_free(&s);
    pm_arena_destroy(&a);
    return err;
}
