/* Opens pages in headless Chromium, in a frame of a harness page that runs a check and records its
 * words. */
#ifndef BROWSER_H
#define BROWSER_H

#include "report/run_folder.h"

#include <stdio.h>
#include <sys/wait.h>

static char *top;            /* a folder for all files */
static const char *browser;

static inline const char *find_browser(void)
{
    static const char *const names[] = { "chromium", "chromium-browser", "google-chrome" };
    char command[128];

    for (size_t i = 0; i < PM_COUNT(names); i++) {
        snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", names[i]);
        if (system(command) == 0)
            return names[i];
    }
    return NULL;
}

/* The harness. `check` is a function body with these names: frame (the iframe), w and d (its
 * window and document), one(selector), all(selector), shown(element), contrast(element, ground),
 * and say(name, value). */
static const char harness_head[] =
    "<!doctype html><meta charset=utf-8><body><script>\n"
    "const out = [];\n"
    "const say = (name, value) => out.push(name + '=' + value + ';');\n"
    "const numbers = color => {\n"
    "  const c = document.createElement('canvas').getContext('2d', { willReadFrequently: true });\n"
    "  c.fillStyle = color; c.fillRect(0, 0, 1, 1);\n"
    "  return c.getImageData(0, 0, 1, 1).data;\n"
    "};\n"
    "const light = color => {\n"
    "  const f = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;\n"
    "  const c = numbers(color);\n"
    "  return .2126 * f(c[0]) + .7152 * f(c[1]) + .0722 * f(c[2]);\n"
    "};\n"
    "const frame = document.createElement('iframe');\n"
    "frame.style.cssText = 'border:0;height:900px;width:' + WIDTH + 'px';\n"
    "if (SANDBOX) frame.sandbox = 'allow-same-origin';\n"
    "frame.onload = () => {\n"
    "  const w = frame.contentWindow, d = frame.contentDocument;\n"
    "  const one = s => d.querySelector(s), all = s => Array.from(d.querySelectorAll(s));\n"
    "  const shown = e => e && w.getComputedStyle(e).display !== 'none' && "
    "e.getBoundingClientRect().width > 0;\n"
    "  const contrast = (e, ground) => {\n"
    "    const a = light(w.getComputedStyle(e).color), "
    "b = light(w.getComputedStyle(ground).backgroundColor);\n"
    "    return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);\n"
    "  };\n"
    "  try {\n"
    "    say('overflow', d.documentElement.scrollWidth > frame.clientWidth);\n"
    "    say('curves', all('svg path.line, svg path.area')"
    ".filter(p => p.getAttribute('d').length > 20).length);\n";
static const char harness_tail[] =
    "\n  } catch (e) { say('failed', e); }\n"
    "  document.body.textContent = 'RESULT ' + out.join(' ');\n"
    "};\nframe.src = PAGE;\ndocument.body.append(frame);\n</script>";

struct visit {
    const char *page;   /* file name in top */
    int width;
    bool sandbox;       /* no scripts in the page */
    bool dark;          /* the colour scheme that the system prefers */
    const char *check;  /* or NULL */
};

static inline char *read_pipe(const char *command)
{
    FILE *f = popen(command, "r");
    struct pm_str s = { 0 };
    char buf[4096];
    size_t n;

    assert_non_null(f);
    while ((n = fread(buf, 1, sizeof buf, f)) > 0)
        pm_str_bytes(&s, buf, n);
    pclose(f);
    return s.text ? s.text : pm_strdup("");
}

/* Returns what the harness wrote, "RESULT ..."; *log gets Chromium's log. Free both with
 * pm_free. */
static inline char *visit(const struct visit *v, char **log)
{
    struct pm_str s = { 0 }, path = { 0 };
    char *dom;
    size_t size;

    pm_str_add(&s,
               "<!doctype html><script>const WIDTH = %d, SANDBOX = %s, PAGE = '%s';</script>%s%s%s",
               v->width, v->sandbox ? "true" : "false", v->page, harness_head,
               v->check ? v->check : "", harness_tail);
    put(top, "harness.html", s.text);
    pm_str_free(&s);
    pm_str_add(
        &s,
        "timeout 120 %s --headless=new --no-sandbox --disable-gpu --no-first-run "
        "--hide-scrollbars --user-data-dir=%s/profile --allow-file-access-from-files "
        "--window-size=1400,1000 --virtual-time-budget=4000 --enable-logging=stderr --v=0 "
        "--blink-settings=preferredColorScheme=%d --dump-dom file://%s/harness.html 2>%s/log",
        browser, top, v->dark ? 0 : 1, top, top);
    dom = read_pipe(s.text);
    pm_str_add(&path, "%s/log", top);
    assert_int_equal(pm_file_read(path.text, log, &size), 0);
    pm_str_free(&s);
    pm_str_free(&path);
    return dom;
}

/* Checks that the harness ran and recorded these words, and that no script failed. */
static inline void expect(const struct visit *v, const char *const *words)
{
    char *log = NULL, *dom = visit(v, &log);
    const char *complaint = strstr(log, "CONSOLE");

    if (!strstr(dom, "RESULT "))
        fail_msg("%s: no result from the browser: %.2000s", v->page, log);
    if (complaint && !v->sandbox) /* in a sandbox every blocked script is a message */
        fail_msg("%s: a script complains: %.400s", v->page, complaint);
    if (strstr(dom, "failed="))
        fail_msg("%s: %s", v->page, dom);
    for (; *words; words++)
        if (!strstr(dom, *words))
            fail_msg("%s at %d: no '%s' in: %s", v->page, v->width, *words, strstr(dom, "RESULT "));
    pm_free(dom);
    pm_free(log);
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

#endif
