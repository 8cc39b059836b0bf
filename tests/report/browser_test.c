/* report.html in a real browser. Headless Chromium opens pages of invented runs in a frame of a
 * harness page, which clicks every control and records the result. Chromium's log shows whether
 * a script failed. Skipped when there is no Chromium. */
#include "report/run_folder.h"

#include "report/page.h"

#include <stdio.h>
#include <sys/wait.h>

static char *top;            /* a folder for all files */
static const char *browser;

static const char *find_browser(void)
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

static char *read_pipe(const char *command)
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
static char *visit(const struct visit *v, char **log)
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
static void expect(const struct visit *v, const char *const *words)
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

/* ---- pages ------------------------------------------------------------------------------- */

static void write_page(const char *name, struct pm_report *const *runs, int count)
{
    struct pm_str html = { 0 };

    pm_report_page(runs, count, &html);
    put(top, name, html.text);
    pm_str_free(&html);
}

/* Writes pages of runs with different numbers of classes. */
static void write_matrices(void)
{
    static const int classes[] = { 2, 11, 12, 40 };
    char folder[512], name[32];

    for (size_t i = 0; i < PM_COUNT(classes); i++) {
        snprintf(name, sizeof name, "m%d.html", classes[i]);
        snprintf(folder, sizeof folder, "%s/m%d", top, classes[i]);
        assert_int_equal(pm_make_folders(folder), 0);
        put_run(folder, "finished", 0.1);
        put_evaluation(folder, classes[i], "a class with a rather long name");
        struct pm_report *run = pm_report_open(folder, false);
        write_page(name, &run, 1);
        pm_report_close(&run);
    }
}

static int setup(void **state)
{
    char folder[3][512];
    struct pm_report *runs[3];

    (void)state;
    top = make_folder();
    for (int i = 0; i < 3; i++) {
        snprintf(folder[i], sizeof folder[i], "%s/a_run_with_a_rather_long_name_number_%d", top, i);
        put_whole_run(folder[i], i == 2 ? 200 : 10, 2 + i, i == 1 ? 0.5 : 0.25);
        runs[i] = pm_report_open(folder[i], false);
    }
    write_page("one.html", runs, 1);
    write_page("many.html", runs + 2, 1);
    write_page("three.html", runs, 3);
    for (int i = 0; i < 3; i++)
        pm_report_close(&runs[i]);
    snprintf(folder[0], sizeof folder[0], "%s/new", top);
    assert_int_equal(pm_make_folders(folder[0]), 0);
    put_run(folder[0], "running", 0.1);
    runs[0] = pm_report_open(folder[0], true);
    write_page("new.html", runs, 1);
    pm_report_close(&runs[0]);
    snprintf(folder[0], sizeof folder[0], "%s/boxes", top);
    assert_int_equal(pm_make_folders(folder[0]), 0);
    put_run(folder[0], "finished", 0.1);
    put_boxes_evaluation(folder[0]);
    runs[0] = pm_report_open(folder[0], false);
    write_page("boxes.html", runs, 1);
    pm_report_close(&runs[0]);
    snprintf(folder[0], sizeof folder[0], "%s/stages", top);
    assert_int_equal(pm_make_folders(folder[0]), 0);
    put_run(folder[0], "finished", 0.1);
    put_stages_evaluation(folder[0], STAGES);
    runs[0] = pm_report_open(folder[0], false);
    write_page("stages.html", runs, 1);
    pm_report_close(&runs[0]);
    snprintf(folder[0], sizeof folder[0], "%s/rotated", top);
    assert_int_equal(pm_make_folders(folder[0]), 0);
    put_run(folder[0], "finished", 0.1);
    put_rotated_evaluation(folder[0]);
    runs[0] = pm_report_open(folder[0], false);
    write_page("rotated.html", runs, 1);
    pm_report_close(&runs[0]);
    write_matrices();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    drop_folder(top);
    return 0;
}

/* ---- tests ------------------------------------------------------------------------------- */

/* A failing script on a page is detected. */
static void notices_complaints(void **state)
{
    char *log = NULL, *dom;

    (void)state;
    put(top, "bad.html",
        "<!doctype html><html><body><script>undefined_function();</script></body></html>");
    dom = visit(&(struct visit){ .page = "bad.html", .width = 400 }, &log);
    assert_contains(dom, "curves=0;");
    assert_contains(log, "CONSOLE");
    assert_contains(log, "undefined_function");
    pm_free(dom);
    pm_free(log);
}

static const char press[] =
    "    say('lin', shown(one('#loss .lin')));\n"
    "    one('#loss-log').click();\n"
    "    say('lin_after', shown(one('#loss .lin'))); say('log_after', shown(one('#loss .log')));\n"
    "    one('#loss-raw').click();\n"
    "    say('raw_after', w.getComputedStyle(one('#loss .raw')).display);\n"
    "    const rows = () => all('#settings tbody tr').filter(shown).length;\n"
    "    say('set', rows()); one('#only-set').click(); say('settings', rows());\n"
    "    for (const theme of ['light', 'dark']) {\n"
    "      one('#theme-' + theme).click();\n"
    "      say(theme, light(w.getComputedStyle(d.body).backgroundColor) > .5 ? 'bright' : 'dim');\n"
    "      const card = one('.card'), good = [['.note', card], ['.tile small', one('.tile')],\n"
    "        ['.eyebrow', d.body], ['.wrong .verdict', one('.sample')], "
    "['.right .verdict', one('.sample')],\n"
    "        ['nav a', d.body], ['.plot .y', card], ['.state', one('.state')], "
    "['.journal .warning', one('.journal')],\n"
    "        ['.matrix td', one('.matrix td')]];\n"
    "      for (const [text, ground] of good)\n"
    "        if (contrast(one(text), ground) < 4.5) say('faint', theme + ' ' + text);\n"
    "    }\n";

static void pressing_works(void **state)
{
    static const int widths[] = { 1280, 390 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(widths); i++)
        expect(&(struct visit){ .page = "one.html", .width = widths[i], .check = press },
               WORDS("overflow=false;", "curves=15;", "lin=true;", "lin_after=false;",
                     "log_after=true;", "raw_after=none;", "set=2;", "settings=5;", "light=bright;",
                     "dark=dim;"));
}

static void nothing_is_faint(void **state)
{
    char *log = NULL,
         *dom = visit(&(struct visit){ .page = "one.html", .width = 1280, .check = press }, &log);

    (void)state;
    assert_contains(dom, "dark=dim;");
    if (strstr(dom, "faint="))
        fail_msg("contrast below 4.5: %s", strstr(dom, "faint="));
    pm_free(dom);
    pm_free(log);
}

/* Without scripts the toggles work, because they are elements of HTML, and curves are shown. */
static void works_without_scripts(void **state)
{
    (void)state;
    expect(
        &(struct visit){ .page = "one.html", .width = 390, .sandbox = true, .check = press },
        WORDS("overflow=false;", "curves=15;", "lin_after=false;", "log_after=true;", "dark=dim;"));
}

static const char read_values[] =
    "    const plot = one('#loss .plot'), box = plot.getBoundingClientRect(), tip = one('#tip');\n"
    "    const key = k => plot.dispatchEvent("
    "new w.KeyboardEvent('keydown', { key: k, bubbles: true }));\n"
    "    plot.dispatchEvent(new w.PointerEvent('pointermove',\n"
    "      { clientX: box.left + box.width / 2, clientY: box.top + 20, bubbles: true }));\n"
    "    say('tip', !tip.hidden); say('at', tip.querySelector('b').textContent);\n"
    "    say('values', tip.querySelectorAll('em').length); "
    "say('marks', all('#loss .mark').length);\n"
    "    plot.dispatchEvent(new w.PointerEvent('pointerleave'));\n"
    "    say('gone', tip.hidden); plot.focus(); say('focus', d.activeElement === plot);\n"
    "    key('Home'); say('home', tip.textContent.split('training')[0]);\n"
    "    key('ArrowRight'); say('next', tip.textContent.split('training')[0]);\n"
    "    key('End'); say('end', tip.textContent.split('training')[0]);\n"
    "    const t = tip.getBoundingClientRect();\n"
    "    say('inside', t.left >= 0 && t.right <= frame.clientWidth && t.top >= 0);\n"
    "    key('Escape'); say('closed', tip.hidden);\n";

static void values_can_be_read(void **state)
{
    (void)state;
    expect(&(struct visit){ .page = "one.html", .width = 390, .check = read_values },
           WORDS("tip=true;", "at=step 500;", "values=3;", "marks=2;", "gone=true;", "focus=true;",
                 "home=step 5;", "next=step 10;", "end=step 1,000;", "inside=true;",
                 "closed=true;"));
}

static const char compare[] =
    "    say('seen', w.getComputedStyle(one('#loss path.line.r1')).display);\n"
    "    one('#run-1').click();\n"
    "    say('hidden', w.getComputedStyle(one('#loss path.line.r1')).display);\n"
    "    say('others', w.getComputedStyle(one('#loss path.line.r0')).display);\n"
    "    const plot = one('#loss .plot'), box = plot.getBoundingClientRect();\n"
    "    plot.dispatchEvent(new w.PointerEvent('pointermove', "
    "{ clientX: box.left + 50, clientY: box.top, bubbles: true }));\n"
    "    say('named', one('#tip').textContent.includes('number_1'));\n"
    "    say('other_named', one('#tip').textContent.includes('number_2'));\n"
    "    say('keys', all('.settings th[scope]').map(e => e.textContent).join());\n";

static void runs_can_be_hidden(void **state)
{
    static const int widths[] = { 1280, 390 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(widths); i++)
        expect(&(struct visit){ .page = "three.html", .width = widths[i], .check = compare },
               WORDS("overflow=false;", "seen=inline;", "hidden=none;", "others=inline;",
                     "named=false;", "other_named=true;", "keys=schedule.base_lr;"));
}

static const char sorting[] =
    "    const names = () => all('.compare tbody tr').map(r => r.dataset.run).join('');\n"
    "    const legends = () => new Set(all('.chart .legend').map(l => "
    "Array.from(l.children).map(i => i.dataset.run).join(''))).size;\n"
    "    const head = name => all('.compare thead th').find(h => h.textContent === name);\n"
    "    say('before', names() + ',' + head('best loss').getAttribute('aria-sort'));\n"
    "    say('reachable', all('.compare thead button').every(b => b.tabIndex === 0 && shown(b)));\n"
    "    const press = name => { const b = head(name).querySelector('button'); b.focus(); "
    "say('focus', d.activeElement === b); b.click(); };\n"
    "    press('best loss'); "
    "say('first', names() + ',' + head('best loss').getAttribute('aria-sort'));\n"
    "    press('best loss'); "
    "say('second', names() + ',' + head('best loss').getAttribute('aria-sort'));\n"
    "    say('legends', legends() + ',' + "
    "all('#loss .legend li').map(l => l.dataset.run).join(''));\n"
    "    press('run'); say('by_name', names());\n"
    "    say('sorted', all('[aria-sort=ascending],[aria-sort=descending]').length);\n"
    "    const key = one('#loss .legend li.r1 i'), line = one('#loss path.line.r1');\n"
    "    say('colour', w.getComputedStyle(line).stroke === "
    "w.getComputedStyle(one('#run-1 + i').parentElement).getPropertyValue('--k') || "
    "w.getComputedStyle(key).backgroundImage.includes(w.getComputedStyle(line).stroke));\n"
    "    one('#run-1').click(); say('legend_hidden', !shown(one('#loss .legend li.r1')));\n"
    "    say('legend_kept', shown(one('#loss .legend li.r0')));\n"
    "    const right = Math.max(...all('.compare td, .compare th, .sides td')"
    ".map(e => e.getBoundingClientRect().right));\n"
    "    say('inside', right <= frame.clientWidth);\n";

/* Losses rise from run 0 to run 2. On a telephone no value is beyond the right edge. */
static void runs_can_be_sorted(void **state)
{
    static const int widths[] = { 1280, 390 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(widths); i++)
        expect(&(struct visit){ .page = "three.html", .width = widths[i], .check = sorting },
               WORDS("overflow=false;", "before=012,none;", "reachable=true;", "focus=true;",
                     "first=012,ascending;", "second=210,descending;", "legends=1,210;",
                     "by_name=012;", "sorted=1;", "colour=true;", "legend_hidden=true;",
                     "legend_kept=true;", "inside=true;"));
    expect(&(struct visit){ .page = "three.html", .width = 390, .sandbox = true,
                            .check = "say('buttons', all('.compare button').length);"
                                     "say('head', shown(one('.compare thead')));" },
           WORDS("overflow=false;", "buttons=0;", "head=false;"));
}

static const char matrix[] =
    "    const box = one('[data-matrix]'), sheet = one('.sheet'), before = sheet.offsetWidth;\n"
    "    const key = k => box.dispatchEvent("
    "new w.KeyboardEvent('keydown', { key: k, bubbles: true }));\n"
    "    say('picture', one('.sheet img').naturalWidth);\n"
    "    key('ArrowRight'); key('ArrowRight'); key('ArrowRight'); key('ArrowRight');\n"
    "    say('cell', one('.cell').textContent);\n"
    "    key('ArrowDown'); say('below', one('.cell').textContent);\n"
    "    key('ArrowLeft'); key('ArrowLeft'); say('own', one('.cell').textContent);\n"
    "    one('[data-zoom=\"1\"]').click(); say('zoom', Math.round(sheet.offsetWidth / before));\n"
    "    const find = one('.filter'); find.value = 'class 17'; "
    "find.dispatchEvent(new w.Event('input'));\n"
    "    say('found', all('.classes tbody tr').filter(shown).length);\n"
    "    say('wide', d.documentElement.scrollWidth > frame.clientWidth);\n";

static void many_classes(void **state)
{
    (void)state;
    expect(&(struct visit){ .page = "many.html", .width = 390, .check = matrix },
           WORDS("overflow=false;", "picture=200;",
                 "cell=true: class 0, predicted: class 3: 0 of 10 (0",
                 "below=true: class 1, predicted: class 3: 0 of 10",
                 "own=true: class 1, predicted: class 1: 9 of 10 (90.00", "zoom=2;", "found=11;",
                 "wide=false;"));
}

/* At 1,280 pixels the matrix shows every column, and no cell cuts off its number. */
static void matrix_is_whole(void **state)
{
    static const char *const pages[] = { "m2.html", "m11.html", "m12.html", "m40.html" };
    static const char check[] =
        "    const box = one('.matrix').parentElement, r = box.getBoundingClientRect();\n"
        "    const cells = all('.matrix td');\n"
        "    say('cells', cells.length);\n"
        "    say('outside', "
        "cells.filter(c => c.getBoundingClientRect().right > r.right + .5).length);\n"
        "    say('cut', cells.filter(c => c.scrollWidth > c.clientWidth).length);\n";
    static const char *const counts[] = { "cells=4;", "cells=121;", "cells=144;", "cells=1600;" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(pages); i++)
        expect(&(struct visit){ .page = pages[i], .width = 1280, .check = check },
               WORDS("overflow=false;", counts[i], "outside=0;", "cut=0;"));
    expect(&(struct visit){ .page = "m40.html", .width = 390, .check = check },
           WORDS("overflow=false;"));
}

static void new_run_is_followed(void **state)
{
    (void)state;
    expect(
        &(struct visit){
            .page = "new.html",
            .width = 390,
            .dark = true,
            .check = "    say('live', shown(one('.live')));\n"
                     "    say('auto', light(w.getComputedStyle(d.body).backgroundColor) < .1);\n"
                     "    say('words', one('#loss .empty').textContent);\n" },
        WORDS("overflow=false;", "curves=0;", "live=true;", "auto=true;", "words=No values yet"));
}

static const char boxes[] =
    "    const panel = one('.boxed').getBoundingClientRect();\n"
    "    const box = one('.boxed .bad').getBoundingClientRect();\n"
    "    say('shape', (panel.width / panel.height).toFixed(2));\n"
    "    say('left', ((box.left - panel.left) / panel.width).toFixed(2));\n"
    "    say('height', (box.height / panel.height).toFixed(2));\n"
    "    const style = w.getComputedStyle(one('.boxed'));\n"
    "    say('picture', style.backgroundImage.startsWith('url(\"data:'));\n"
    "    const plot = one('#precision-recall-0 .plot'), tip = one('#tip');\n"
    "    plot.focus();\n"
    "    plot.dispatchEvent(new w.KeyboardEvent('keydown', { key: 'Home', bubbles: true }));\n"
    "    say('at', tip.querySelector('b').textContent); say('curves', all('#tip em').length);\n"
    "    for (const theme of ['light', 'dark']) {\n"
    "      one('#theme-' + theme).click();\n"
    "      for (const b of all('.boxed b'))\n"
    "        if (contrast(b, b) < 4.5) say('faint', b.textContent);\n"
    "    }\n";

/* Boxes lie where their numbers say, over the picture. */
static void boxes_over_pictures(void **state)
{
    static const int widths[] = { 1280, 390 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(widths); i++) {
        char *log = NULL, *dom = visit(&(struct visit){ .page = "boxes.html", .width = widths[i],
                                                        .check = boxes }, &log);

        assert_null(strstr(dom, "faint="));
        pm_free(dom);
        pm_free(log);
        expect(&(struct visit){ .page = "boxes.html", .width = widths[i], .check = boxes },
               WORDS("overflow=false;", "shape=1.33;", "left=0.50;", "height=0.50;",
                     "picture=true;", "at=recall 0&nbsp;%;", "curves=3;"));
    }
}

/* The browser turns a rotated box so that it fits into the upright box around it, also if that box
 * is clipped by the picture. Its front edge is thick. */
static void rotated_boxes(void **state)
{
    static const int widths[] = { 1280, 390 };
    static const char check[] =
        "    const panel = one('.boxed').getBoundingClientRect();\n"
        "    const bar = one('.bad u').getBoundingClientRect();\n"
        "    const around = one('.bad.turned').getBoundingClientRect();\n"
        "    say('shape', (panel.width / panel.height).toFixed(2));\n"
        "    say('fits', ['left', 'top', 'right', 'bottom'].every(\n"
        "      k => Math.abs(bar[k] - around[k]) < 1));\n"
        "    const second = all('.boxed')[1].getBoundingClientRect();\n"
        "    const upright = one('.good u').getBoundingClientRect();\n"
        "    say('top', ((upright.top - second.top) / second.height).toFixed(2));\n"
        "    say('left', ((upright.left - second.left) / second.width).toFixed(2));\n"
        "    say('height', (upright.height / second.height).toFixed(2));\n"
        "    say('width', (upright.width / second.width).toFixed(2));\n"
        "    const style = w.getComputedStyle(one('.bad u'));\n"
        "    say('front', style.borderRightWidth); say('back', style.borderLeftWidth);\n"
        "    say('side', style.borderLeftColor == style.borderRightColor);\n";

    (void)state;
    for (size_t i = 0; i < PM_COUNT(widths); i++)
        expect(&(struct visit){ .page = "rotated.html", .width = widths[i], .check = check },
               WORDS("overflow=false;", "shape=1.33;", "fits=true;", "top=-0.10;", "left=0.40;",
                     "height=0.40;", "width=0.10;", "front=5px;", "back=2px;", "side=true;"));
}

/* The table of lost objects fits, or scrolls in its card, and can be read. */
static void lost_objects(void **state)
{
    static const int widths[] = { 1280, 390 };
    static const char check[] =
        "    const table = one('#stages-0'), ground = table.closest('.card');\n"
        "    say('rows', table.tBodies[0].rows.length);\n"
        "    say('total', table.tBodies[0].rows[0].cells[2].textContent.replace(/\\s/g, ''));\n"
        "    say('shown', shown(table));\n"
        "    for (const theme of ['light', 'dark']) {\n"
        "      one('#theme-' + theme).click();\n"
        "      say('clear', all('#stages-0 td').every(c => contrast(c, ground) >= 4.5));\n"
        "    }\n";

    (void)state;
    for (size_t i = 0; i < PM_COUNT(widths); i++)
        expect(&(struct visit){ .page = "stages.html", .width = widths[i], .check = check },
               WORDS("overflow=false;", "rows=3;", "total=75%(912);", "shown=true;",
                     "clear=true; clear=true;"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_over_pictures), cmocka_unit_test(rotated_boxes),
        cmocka_unit_test(lost_objects),
        cmocka_unit_test(notices_complaints),  cmocka_unit_test(pressing_works),
        cmocka_unit_test(nothing_is_faint),    cmocka_unit_test(works_without_scripts),
        cmocka_unit_test(values_can_be_read),  cmocka_unit_test(runs_can_be_hidden),
        cmocka_unit_test(runs_can_be_sorted),
        cmocka_unit_test(many_classes),        cmocka_unit_test(matrix_is_whole),
        cmocka_unit_test(new_run_is_followed),
    };

    browser = find_browser();
    if (!browser) {
        puts("skipped: no chromium, chromium-browser or google-chrome to open report.html with");
        return 77;
    }
    return cmocka_run_group_tests_name("browser", tests, setup, teardown);
}
