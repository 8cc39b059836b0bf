/* DOTA's submission files: tiles become pictures, an object in four tiles counts once, names. */
#include "base/unit.h"

#include "tasks/detection/box_given.h"

static void add(struct pm_box_metrics *m, uint64_t record, const char *file, int count,
                const struct pm_box_detection *found)
{
    pm_box_metrics_add(m, &(struct pm_box_picture){ .record = record, .file = file,
                                                    .detection = found, .detections = count });
}

/* Writes the files and compares one. Destroys the metrics. */
static void check(struct pm_box_metrics **m, const char *const *names, const char *file,
                  const char *want)
{
    char *folder = make_folder(), path[1024], *text = NULL;

    assert_int_equal(pm_box_metrics_write_dota(*m, names, folder), PM_OK);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (pm_file_read(path, &text, NULL) < 0)
        fail_msg("%s", pm_error_text());
    assert_string_equal(text, want);
    pm_free(text);
    drop_folder(folder);
    pm_box_metrics_destroy(m);
}

/* ---- whole pictures ------------------------------------------------------------------------- */

/* Corners come in the order of pm_rectangle_corners: LT, RT, RB, LB. Whole pictures are not merged,
 * and the scores fall within a picture. */
static void whole_pictures(void **state)
{
    static const char *const names[] = { "plane", "ship" };
    const struct pm_box_detection first[] = {
        rotated_found(0, 0.25, 20, 30, 10, 40, 0), rotated_found(0, 0.5, 20, 30, 10, 40, 0),
        rotated_found(1, 0.75, 50, 60, 20, 40, 1.5707963267948966),
    };
    const struct pm_box_detection second = rotated_found(0, NAN, 20.5, 30.25, 10, 40, 0);
    struct pm_box_metrics *m = rotated_metrics(2);

    (void)state;
    add(m, 5, "b/P0002.png", 3, first);
    add(m, 4, "P0001.v2.jpg", 1, &second);
    check(&m, names, "Task1_plane.txt",
          "P0001.v2 0 10.25 15.50 50.25 15.50 50.25 25.50 10.25 25.50\n"
          "P0002 0.5 10.00 15.00 50.00 15.00 50.00 25.00 10.00 25.00\n"
          "P0002 0.25 10.00 15.00 50.00 15.00 50.00 25.00 10.00 25.00\n");
    m = rotated_metrics(2);
    add(m, 5, "b/P0002.png", 3, first);
    check(&m, names, "Task1_ship.txt",
          "P0002 0.75 70.00 30.00 70.00 70.00 50.00 70.00 50.00 30.00\n");
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* An object at (500, 500) of the picture P7, which four tiles show; a second one beside it that
 * does not overlap; a detection of another picture with the same numbers; one of another class.
 * Tiles begin at 0 and 256 on each axis. */
static void four_tiles(void **state)
{
    static const char *const names[] = { "plane", "ship" };
    struct pm_box_metrics *m = rotated_metrics(2);

    (void)state;
    for (int k = 0; k < 4; k++) {
        const int y = 256 * (k / 2), x = 256 * (k % 2);
        const struct pm_box_detection found[] = {
            rotated_found(0, 0.5 + 0.125 * k, 500 - y, 500 - x, 10, 40, 0),
            rotated_found(0, 0.25, 520 - y, 500 - x, 10, 40, 0),
            rotated_found(1, 0.875, 500 - y, 500 - x, 10, 40, 0),
        };
        char file[64];

        snprintf(file, sizeof file, "P7__768__%d___%d.png", x, y);
        add(m, 10 - (uint64_t)k, file, k == 3 ? 3 : 2, found);
        if (k == 0)
            add(m, 20, "P8__768__0___0.png", 1, found);
    }
    check(&m, names, "Task1_plane.txt",
          "P7 0.875 480.00 495.00 520.00 495.00 520.00 505.00 480.00 505.00\n"
          "P7 0.25 480.00 515.00 520.00 515.00 520.00 525.00 480.00 525.00\n"
          "P8 0.5 480.00 495.00 520.00 495.00 520.00 505.00 480.00 505.00\n");
}

/* The limit is an IoU of 0.1 of the rotated boxes: bars of 10 x 40 shifted across by 8 have 2 / 18,
 * by 8.5 they have 1.5 / 18.5; crossed ones, whose upright boxes are equal, have 1 / 7. */
static void limit(void **state)
{
    static const char *const names[] = { "plane" };
    static const struct { double move, turn; int lines; } cases[] = {
        { 8, 0, 1 }, { 8.5, 0, 2 }, { 0, 1.5707963267948966, 1 }, { 7.9, 0, 1 }, { 12, 0, 2 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        const double angle = 0.7, s = sin(angle), c = cos(angle);
        const struct pm_box_detection found[] = {
            rotated_found(0, 0.9, 50, 50, 10, 40, angle),
            rotated_found(0, 0.8, 50 + cases[i].move * c, 50 - cases[i].move * s, 10, 40,
                          angle + cases[i].turn),
        };
        struct pm_box_metrics *m = rotated_metrics(1);
        char *folder = make_folder(), path[1024], *text = NULL;
        int lines = 0;

        add(m, 0, "a__768__0___0.png", 1, found);
        add(m, 1, "a__768__512___0.png", 1, &(struct pm_box_detection){
            .score = 0.8, .rotated = { found[1].rotated[0], found[1].rotated[1] - 512, 10, 40,
                                       found[1].rotated[4] } });
        assert_int_equal(pm_box_metrics_write_dota(m, names, folder), PM_OK);
        snprintf(path, sizeof path, "%s/Task1_plane.txt", folder);
        assert_int_equal(pm_file_read(path, &text, NULL), PM_OK);
        for (const char *p = text; *p; p++)
            lines += *p == '\n';
        assert_int_equal(lines, cases[i].lines);
        pm_free(text);
        drop_folder(folder);
        pm_box_metrics_destroy(&m);
    }
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Ids with the characters of a tile's name, names that are almost one, blanks, no name. */
static void ids(void **state)
{
    static const struct { const char *file, *id; int y, x; } cases[] = {
        { "a__1__2__768__5___7.png", "a__1__2", 7, 5 },
        { "a__768__5___7", "a", 7, 5 },
        { "a__768__5__7.png", "a__768__5__7", 0, 0 },
        { "a__0.5__5___7.png", "a__0.5__5___7", 0, 0 },
        { "__768__5___7.png", "__768__5___7", 0, 0 },
        { "a__768__5___99999999999999999999.png", "a__768__5___99999999999999999999", 0, 0 },
        { "a b\n.png", "a_b\\x0A", 0, 0 },
        { "", "3", 0, 0 },
        { NULL, "3", 0, 0 },
    };
    static const char *const names[] = { "plane" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        const struct pm_box_detection found = rotated_found(0, 1, 10, 20, 4, 6, 0);
        const int y = cases[i].y, x = cases[i].x;
        struct pm_box_metrics *m = rotated_metrics(1);
        char want[256];

        snprintf(want, sizeof want, "%s 1 %d.00 %d.00 %d.00 %d.00 %d.00 %d.00 %d.00 %d.00\n",
                 cases[i].id, x + 17, y + 8, x + 23, y + 8, x + 23, y + 12, x + 17, y + 12);
        add(m, 3, cases[i].file, 1, &found);
        check(&m, names, "Task1_plane.txt", want);
    }
}

/* Each class has a file, also one without detections. */
static void class_names(void **state)
{
    static const char *const names[] = { "a/b", NULL, "ship", "ship", "x\ny", "large vehicle" };
    static const char *const files[] = { "Task1_1.txt", "Task1_2.txt", "Task1_ship.txt",
                                         "Task1_4.txt", "Task1_5.txt",
                                         "Task1_large vehicle.txt" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(files); i++) {
        const struct pm_box_detection found = rotated_found((int)i, 1, 10, 20, 4, 6, 0);
        struct pm_box_metrics *m = rotated_metrics(PM_COUNT(names));

        add(m, 0, "p.png", 1, &found);
        check(&m, names, files[i], "p 1 17.00 8.00 23.00 8.00 23.00 12.00 17.00 12.00\n");
        m = rotated_metrics(PM_COUNT(names));
        check(&m, names, files[i], "");
    }
}

static void no_folder(void **state)
{
    static const char *const names[] = { "plane" };
    struct pm_box_metrics *m = rotated_metrics(1);

    (void)state;
    assert_int_equal(pm_box_metrics_write_dota(m, names, "/nowhere/at/all"), PM_EFAIL);
    assert_true(pm_is_line(pm_error_text()));
    pm_box_metrics_destroy(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_pictures), cmocka_unit_test(four_tiles), cmocka_unit_test(limit),
        cmocka_unit_test(ids),            cmocka_unit_test(class_names),
        cmocka_unit_test(no_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
