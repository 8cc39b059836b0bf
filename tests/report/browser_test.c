/* report.html in a real browser. Headless Chromium opens pages of invented runs in a frame of a
 * harness page, which clicks every control and records the result. Chromium's log shows whether
 * a script failed. Skipped when there is no Chromium. */
#include "report/browser.h"
#include "report/study_folder.h"

#include "report/page.h"

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

/* Writes the page of a study, with two run folders. */
static void write_study(void)
{
    struct pm_study_report *s = NULL;
    struct pm_str html = { 0 };
    char folder[512], run[600];

    snprintf(folder, sizeof folder, "%s/a_study", top);
    assert_int_equal(pm_make_folders(folder), 0);
    put_study(folder);
    put(folder, "best.json", "{ \"run\": { \"folder\": "
        "\"a/folder/with/a/name/that/is/longer/than/a/telephone/is/wide/and/more\" } }\n");
    for (int i = 5; i < 7; i++) {
        snprintf(run, sizeof run, "%s/lr=0.01,seed=%d", folder, i);
        put_whole_run(run, 4, i, 0.01);
    }
    assert_int_equal(pm_study_report_open(folder, &s), 0);
    pm_study_page(s, false, NULL, &html);
    put(top, "study.html", html.text);
    pm_str_free(&html);
    pm_study_report_close(&s);
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
    write_study();
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

static const char points[] =
    "    const names = () => all('.points tbody tr').map(r => r.dataset.run).join('');\n"
    "    const press = name => all('.points thead th').find(h => h.textContent === name)"
    ".querySelector('button').click();\n"
    "    const legend = () => all('#loss .legend li').map(l => l.dataset.run).join('');\n"
    "    say('first', names()); press('accuracy'); say('best', names());\n"
    "    press('schedule.base_lr'); say('rates', names()); say('legend', legend());\n"
    "    press('optim'); say('optimizers', names());\n"
    "    const plot = one('#parallel .plot').getBoundingClientRect();\n"
    "    say('lines', all('#parallel path.point').filter(p => "
    "p.getBoundingClientRect().width > .9 * plot.width).length);\n"
    "    const colour = i => w.getComputedStyle(all('#parallel path.point')[i]).stroke;\n"
    "    say('colours', new Set([colour(0), colour(1), colour(2), 'none']).size);\n"
    "    const box = one('#key-0').getBoundingClientRect();\n"
    "    say('labels', all('#key-0 .plot span').every(e => { const r = e.getBoundingClientRect(); "
    "return r.left >= box.left && r.right <= box.right; }));\n"
    "    for (const theme of ['light', 'dark']) {\n"
    "      one('#theme-' + theme).click();\n"
    "      for (const [text, ground] of [['.points .bad', one('.card')], ['.tick', one('.card')], "
    "['.key', one('.card')], ['.ramp b', one('.card')]])\n"
    "        if (contrast(one(text), ground) < 4.5) say('faint', theme + ' ' + text);\n"
    "    }\n"
    "    say('checked', 1);\n";

static void points_of_a_study(void **state)
{
    static const int widths[] = { 1280, 390 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(widths); i++) {
        const struct visit v = { .page = "study.html", .width = widths[i], .check = points };
        char *log = NULL, *dom = visit(&v, &log);

        if (strstr(dom, "faint="))
            fail_msg("contrast below 4.5: %s", strstr(dom, "faint="));
        pm_free(dom);
        pm_free(log);
        expect(&v, WORDS("overflow=false;", "first=012;", "best=102;", "rates=102;", "legend=01;",
                         "optimizers=201;", "lines=3;", "colours=4;", "labels=true;",
                         "checked=1;"));
    }
    expect(&(struct visit){ .page = "study.html", .width = 390, .sandbox = true,
                            .check = "say('rows', all('.points tbody tr').filter(shown).length);"
                                     "say('head', all('.points button').length);"
                                     "say('figures', all('.chart').filter(shown).length > 8);" },
           WORDS("overflow=false;", "rows=3;", "head=0;", "figures=true;"));
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
        cmocka_unit_test(points_of_a_study),
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
