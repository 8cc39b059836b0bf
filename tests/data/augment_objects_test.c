/* Rows that crop, pad and mirror objects, compared with a reference that reads the draws of an
 * example and follows the rows' rules by itself. Objects near a threshold, where float32 may decide
 * otherwise, are not used. */
#include "augment_world.h"

/* ---- crops ----------------------------------------------------------------------------------- */

static const double table[7] = { 0, 0.1, 0.3, 0.5, 0.7, 0.9, 1 };

/* The crop of an example contains min_object_covered of an object, has an allowed area and
 * aspect, or is the whole picture. Coordinates are pixels, as the sampler truncates them. */
static void check_crop(const struct scene *s, const int box[4], double covered,
                       const double area[2], const double aspect[2])
{
    const double share = (double)box[2] * box[3] / (HEIGHT * WIDTH);
    bool ok = s->sample.objects == 0;

    if (box[2] == HEIGHT && box[3] == WIDTH)
        return;
    assert_true(box[0] >= 0 && box[0] + box[2] <= HEIGHT);
    assert_true(box[1] >= 0 && box[1] + box[3] <= WIDTH);
    assert_true(share >= area[0] - 1e-6 && share <= area[1] + 1e-6);
    assert_true((box[3] + 0.51) / box[2] >= aspect[0] && (box[3] - 0.51) / box[2] <= aspect[1]);
    for (size_t i = 0; i < s->sample.objects && !ok; i++) {
        double b[4], part[4];

        for (int k = 0; k < 4; k++)
            b[k] = (int)(s->boxes[4 * i + (size_t)k] * (float)(k % 2 ? WIDTH : HEIGHT));
        part[0] = fmax(b[0], box[0]), part[1] = fmax(b[1], box[1]);
        part[2] = fmin(b[2], box[0] + box[2]), part[3] = fmin(b[3], box[1] + box[3]);
        ok = sides(b) >= 1 && sides(part) / sides(b) >= covered - 1e-6;
    }
    assert_true(ok);
}

static void crop_image(void **state)
{
    static const double area[2] = { 0.1, 1 }, aspect[2] = { 0.75, 1.33 };
    struct scene s;
    size_t lost = 0;

    (void)state;
    open_scene(&s, "[{\"name\": \"random_crop_image\", \"min_object_covered\": 0.4}]");
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        struct world w;

        place_objects(&s, 1, i % (MOST + 1), i);
        const int *box = s.placed.rows.draws[0].box;
        check_crop(&s, box, 0.4, area, aspect);
        start(&w, &s);
        enter(&w, box);
        keep(&w, (double)0.3f, true);
        if (w.doubtful)
            continue;
        compare(&s, &w);
        lost += s.sample.objects && !s.out.objects;
        if (i % 10 == 0)
            compare_picture(&s, &w, &w, (const double[3]){ 0 });
    }
    close_scene(&s);
    /* A crop may keep a share of an object that is below overlap_thresh: the picture then has no
     * object, and stays. */
    open_scene(&s, "[{\"name\": \"random_crop_image\", \"min_object_covered\": 0.05,"
                   " \"overlap_thresh\": 0.9, \"clip_boxes\": false}]");
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        struct world w;

        place_objects(&s, 1, 2, i);
        start(&w, &s);
        enter(&w, s.placed.rows.draws[0].box);
        keep(&w, (double)0.9f, false);
        if (w.doubtful)
            continue;
        compare(&s, &w);
        lost += s.out.objects == 0;
    }
    assert_true(lost > EXAMPLES / 20);
    close_scene(&s);
}

/* All rules are chosen alike often, and 15 % of the pictures are kept whole. Four standard
 * deviations. */
static void ssd_crop(void **state)
{
    static const double area[2] = { 0.1, 1 }, aspect[2] = { 0.5, 2 };
    int chosen[7] = { 0 }, whole = 0;
    enum { MANY = 4000 };
    struct scene s;

    (void)state;
    open_scene(&s, "[{\"name\": \"ssd_random_crop\"}]");
    for (uint32_t i = 0; i < MANY; i++) {
        struct world w;

        place_objects(&s, 1, i % (MOST + 1), i);
        const struct pm_draws *d = &s.placed.rows.draws[0];
        chosen[d->which]++;
        whole += d->box[2] == 0;
        start(&w, &s);
        if (d->box[2]) {
            check_crop(&s, d->box, table[d->which], area, aspect);
            enter(&w, d->box);
            keep(&w, (double)(float)table[d->which], true);
        }
        if (w.doubtful)
            continue;
        compare(&s, &w);
    }
    for (int k = 0; k < 7; k++)
        assert_true(fabs(chosen[k] - MANY / 7.0) < 4 * sqrt(MANY / 7.0));
    assert_true(fabs(whole - 0.15 * MANY) < 4 * sqrt(0.15 * 0.85 * MANY));
    close_scene(&s);
}

static void fixed_aspect(void **state)
{
    struct scene s;

    (void)state;
    open_scene(&s, "[{\"name\": \"ssd_random_crop_fixed_aspect_ratio\", \"aspect_ratio\": 1.5,"
                   " \"operations\": [{\"min_object_covered\": 0.5, \"overlap_thresh\": 0.2}]},"
                   " {\"name\": \"random_crop_to_aspect_ratio\", \"overlap_thresh\": 0.5}]");
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        struct world w;

        place_objects(&s, 5, MOST, i);
        const struct pm_draws *d = s.placed.rows.draws;
        start(&w, &s);
        if (d->box[2]) {
            enter(&w, d->box);
            keep(&w, (double)0.2f, true);
        }
        enter(&w, d->window);
        keep(&w, (double)0.3f, true);
        assert_true(fabs(w.width / w.height - 1.5) < 1.6 / w.height);
        const double height = w.height, width = w.width;
        enter(&w, d[1].window);
        keep(&w, 0.5, true);
        assert_true(w.height == w.width && w.width == fmin(height, width));
        if (w.doubtful)
            continue;
        compare(&s, &w);
        if (i % 20 == 0)
            compare_picture(&s, &w, &w, (const double[3]){ 0 });
    }
    close_scene(&s);
}

/* ---- padding --------------------------------------------------------------------------------- */

/* Mean of the picture's part that a world shows. */
static void mean_of(const struct world *w, double out[3])
{
    out[0] = w->y + (w->height - 1) / 2, out[1] = w->x + (w->width - 1) / 2, out[2] = 200;
}

static void check_padding(const int window[4], const double sides_[2], const double most[2])
{
    for (int k = 0; k < 2; k++) {
        assert_true(window[2 + k] >= sides_[k] && window[2 + k] <= fmax(most[k], sides_[k]));
        assert_true(window[k] <= 0 && -window[k] <= window[2 + k] - sides_[k]);
    }
}

static void padding(void **state)
{
    struct scene s;
    double pad[3];

    (void)state;
    open_scene(&s, "[{\"name\": \"random_pad_image\", \"max_image_width\": 100},"
                   " {\"name\": \"random_absolute_pad_image\", \"max_height_padding\": 20,"
                   " \"pad_color\": [10, 20, 30]}]");
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        struct world w, inner, shown;

        place_objects(&s, 1, i % (MOST + 1), i);
        const struct pm_draws *d = s.placed.rows.draws;
        start(&w, &s);
        shown = w;
        mean_of(&w, pad);
        check_padding(d[0].window, (const double[2]){ HEIGHT, WIDTH },
                      (const double[2]){ 2 * HEIGHT - 1, 99 });
        enter(&w, d[0].window);
        inner = w;
        check_padding(d[1].window, (const double[2]){ w.height, w.width },
                      (const double[2]){ w.height + 19, w.width });
        enter(&w, d[1].window);
        compare(&s, &w);
        if (i % 20 || inner.height != w.height)
            continue;
        compare_picture(&s, &inner, &shown, pad);
    }
    close_scene(&s);
}

static void crop_and_pad(void **state)
{
    static const char *const lists[] = {
        "[{\"name\": \"ssd_random_crop_pad\"}]",
        "[{\"name\": \"random_crop_pad_image\", \"min_object_covered\": 0.5,"
        " \"overlap_thresh\": 0.25}]",
        "[{\"name\": \"ssd_random_crop_pad_fixed_aspect_ratio\", \"aspect_ratio\": 0.8}]",
    };

    (void)state;
    for (int list = 0; list < 3; list++) {
        struct scene s;

        open_scene(&s, lists[list]);
        for (uint32_t i = 0; i < EXAMPLES; i++) {
            double pad[3] = { 0 };
            struct world w, shown;

            place_objects(&s, 6, i % (MOST + 1), i);
            const struct pm_draws *d = s.placed.rows.draws;
            start(&w, &s);
            if (d->box[2]) {
                enter(&w, d->box);
                keep(&w, list == 1 ? 0.25 : (double)(float)table[d->which + (list == 0)], true);
            }
            shown = w;
            if (list < 2) {
                mean_of(&w, pad);
                check_padding(d->window, (const double[2]){ w.height, w.width },
                              (const double[2]){ 2 * HEIGHT - 1, 2 * WIDTH - 1 });
                assert_true(d->window[2] >= HEIGHT && d->window[3] >= WIDTH);
            } else {
                assert_true(d->window[0] == 0 && d->window[1] == 0);
                assert_true(fabs(d->window[3] / (double)d->window[2] - 0.8) <
                            1.5 / d->window[2]);
                check_padding(d->window, (const double[2]){ w.height, w.width },
                              (const double[2]){ 3 * HEIGHT, 3 * WIDTH });
            }
            enter(&w, d->window);
            if (w.doubtful)
                continue;
            compare(&s, &w);
            if (i % 20 == 0)
                compare_picture(&s, &w, &shown, pad);
        }
        close_scene(&s);
    }
}

/* ---- order, emptiness, refusals ------------------------------------------------------------ */

/* A row after a crop draws from the objects that are left, in the frame of the crop. */
static void in_order(void **state)
{
    static const double area[2] = { 0.1, 1 }, aspect[2] = { 0.75, 1.33 };
    struct scene s;

    (void)state;
    open_scene(&s, "[{\"name\": \"random_crop_image\", \"min_object_covered\": 0.2,"
                   " \"max_area\": 0.6, \"overlap_thresh\": 0.5},"
                   " {\"name\": \"random_flip\"},"
                   " {\"name\": \"random_crop_image\", \"min_object_covered\": 0.9}]");
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        struct world w;

        place_objects(&s, 9, 3, i);
        const struct pm_draws *d = s.placed.rows.draws;
        const int *in = d[2].box;
        start(&w, &s);
        check_crop(&s, d[0].box, 0.2, area, aspect);
        enter(&w, d[0].box);
        keep(&w, 0.5, true);
        if (d[1].flip) /* the second window, seen in the picture that is not mirrored */
            enter(&w, (const int[4]){ in[0], (int)w.width - in[1] - in[3], in[2], in[3] });
        else
            enter(&w, in);
        bool covered = w.count == 0 || (in[2] == d[0].box[2] && in[3] == d[0].box[3]);
        for (size_t k = 0; k < w.count; k++) {
            const double *b = w.at[k].box;
            const double part[4] = { fmax(b[0], w.y), fmax(b[1], w.x),
                                     fmin(b[2], w.y + w.height), fmin(b[3], w.x + w.width) };

            covered |= sides(part) / sides(b) >= 0.8; /* the sampler's boxes are whole pixels */
        }
        assert_true(covered);
        keep(&w, (double)0.3f, true);
        if (w.doubtful || d[1].flip)
            continue;
        compare(&s, &w);
    }
    close_scene(&s);
}

/* Every row accepts a picture without objects, and one of a single pixel. */
static void nothing(void **state)
{
    size_t count;
    const struct pm_augmentation *const *all = pm_augmentations(&count);

    (void)state;
    for (size_t k = 0; k < count; k++) {
        char list[128];
        struct scene s;

        if (!strcmp(all[k]->name, "drop_label_probabilistically") ||
            !strcmp(all[k]->name, "remap_labels"))
            continue; /* they need options */
        snprintf(list, sizeof list, "[{\"name\": \"%s\"}]", all[k]->name);
        open_scene(&s, list);
        for (int small = 0; small < 2; small++)
            for (uint32_t i = 0; i < 20; i++) {
                static float picture[256 * 256 * 3];
                const struct pm_occasion o = { .height = 256, .width = 256, .channels = 3,
                                               .train = true, .seed = 3, .example = i,
                                               .where = "x" };

                if (small)
                    s.im.height = s.im.width = 1;
                s.sample.points = 0;
                if (pm_place(&s.input, &s.sample, &o, &s.placed) == PM_EDATA)
                    continue; /* resized to more than the input */
                pm_placed_objects(&s.placed, &s.sample, s.arena, &s.out);
                pm_placed_picture(&s.placed, &s.im, picture);
                assert_int_equal(s.out.objects, 0);
                for (int v = 0; v < 256 * 256 * 3; v++)
                    assert_true(isfinite(picture[v]));
            }
        close_scene(&s);
    }
}

/* No crop of at most a fifth of the picture contains the object: after 100 attempts the picture
 * stays whole. */
static void failed_crops(void **state)
{
    struct scene s;

    (void)state;
    open_scene(&s, "[{\"name\": \"random_crop_image\", \"max_area\": 0.2}]");
    memcpy(s.boxes, (const float[]){ 0.25f, 0.25f, 0.75f, 0.75f }, 4 * sizeof *s.boxes);
    s.sample.objects = 1;
    for (uint32_t i = 0; i < 50; i++) {
        struct world w;

        place_scene(&s, i);
        assert_memory_equal(s.placed.rows.draws[0].box, ((const int[]){ 0, 0, HEIGHT, WIDTH }),
                            4 * sizeof(int));
        start(&w, &s);
        compare(&s, &w);
    }
    close_scene(&s);
}

/* A crop contains exactly half of a box: with an overlap_thresh of 0.5 the half stays, above it the
 * object goes. */
static void half_a_box(void **state)
{
    static const char *const lists[] = {
        "[{\"name\": \"random_crop_image\", \"overlap_thresh\": 0.5}]",
        "[{\"name\": \"random_crop_image\", \"overlap_thresh\": 0.5001}]",
    };
    const struct pm_occasion o = { .height = 3 * HEIGHT, .width = 3 * WIDTH, .channels = 3,
                                   .train = true, .where = "x" };
    const struct pm_draws draws = { .box = { 0, 0, HEIGHT, WIDTH / 2 } };

    (void)state;
    for (size_t k = 0; k < PM_COUNT(lists); k++) {
        struct scene s;
        struct world w;

        open_scene(&s, lists[k]);
        memcpy(s.boxes, (const float[]){ 0.25f, 0.25f, 0.5f, 0.75f }, 4 * sizeof *s.boxes);
        s.sample.objects = 1;
        assert_int_equal(pm_place_list(&s.input, &draws, &s.sample, &o, &s.placed), PM_OK);
        pm_placed_objects(&s.placed, &s.sample, s.arena, &s.out);
        start(&w, &s);
        enter(&w, draws.box);
        keep(&w, k ? 0.5001 : 0.5, true);
        assert_int_equal(w.count, 1 - k);
        compare(&s, &w);
        close_scene(&s);
    }
}

static void flips(void **state)
{
    struct scene s;
    int kinds = 0;

    (void)state;
    open_scene(&s, "[{\"name\": \"random_vertical_flip\"}, {\"name\": \"random_rotation90\","
                   " \"keypoint_rot_permutation\": [2, 0, 1]}, {\"name\": \"random_flip\","
                   " \"keypoint_flip_permutation\": [0, 2, 1]}]");
    for (uint32_t i = 0; i < 64; i++) {
        place_objects(&s, 9, 1, i);
        const struct pm_draws *d = s.placed.rows.draws;
        double y0 = s.boxes[0], x0 = s.boxes[1], y1 = s.boxes[2], x1 = s.boxes[3];
        double height = HEIGHT, width = WIDTH;
        int name[POINTS] = { 0, 1, 2 };

        kinds |= 1 << (4 * d[0].flip + 2 * d[1].flip + d[2].flip);
        if (d[0].flip) {
            const double top = 1 - y1;
            y1 = 1 - y0, y0 = top;
            name[0] = 1, name[1] = 0;
        }
        if (d[1].flip) {
            const double top = 1 - x1, bottom = 1 - x0;
            const int was[POINTS] = { name[0], name[1], name[2] };
            x0 = y0, x1 = y1, y0 = top, y1 = bottom;
            height = WIDTH, width = HEIGHT;
            name[0] = was[2], name[1] = was[0], name[2] = was[1];
        }
        if (d[2].flip) {
            const double left = 1 - x1;
            const int was = name[1];
            x1 = 1 - x0, x0 = left;
            name[1] = name[2], name[2] = was;
        }
        const double down = height / (3 * HEIGHT), right = width / (3 * WIDTH);
        near("top", s.out.boxes[0], y0 * down);
        near("left", s.out.boxes[1], x0 * right);
        near("bottom", s.out.boxes[2], y1 * down);
        near("right", s.out.boxes[3], x1 * right);
        for (int k = 0; k < POINTS; k++) {
            double y = s.points[2 * name[k]], x = s.points[2 * name[k] + 1];

            y = d[0].flip ? 1 - y : y;
            if (d[1].flip) {
                const double was = y;
                y = 1 - x, x = was;
            }
            x = d[2].flip ? 1 - x : x;
            near("keypoint y", s.out.keypoints[2 * k], y * down);
            near("keypoint x", s.out.keypoints[2 * k + 1], x * right);
        }
    }
    assert_int_equal(kinds, 255);
    close_scene(&s);
}

static void refusals(void **state)
{
    const struct pm_occasion o = { .height = 300, .width = 300, .channels = 3, .train = true,
                                   .where = "photo 7" };
    struct scene s;

    (void)state;
    refuse_list("[{\"name\": \"random_crop_image\", \"min_area\": 0.5, \"max_area\": 0.4}]", 0,
                "augment.0.min_area: 0.5 is above");
    refuse_list("[{\"name\": \"ssd_random_crop\", \"operations\": []}]", 0,
                "operations: a list of 1 to 32");
    refuse_list("[{\"name\": \"ssd_random_crop\", \"operations\": [{\"min_overlap\": 1}]}]", 0,
                "augment.0.operations.0");
    refuse_list("[{\"name\": \"ssd_random_crop\", \"operations\": [{},"
                " {\"min_aspect_ratio\": 3}]}]", 0, "operations.1.min_aspect_ratio: 3 is above");
    refuse_list("[{\"name\": \"ssd_random_crop_fixed_aspect_ratio\", \"operations\":"
                " [{\"min_aspect_ratio\": 3}]}]", 0, "operations.0");
    refuse_list("[{\"name\": \"random_crop_pad_image\", \"max_padded_size_ratio\": [0.5, 0.5]}]", 0,
                "min_padded_size_ratio: 1 is above");
    refuse_list("[{\"name\": \"random_pad_image\", \"pad_color\": [1, 2]}]", 0,
                "pad_color: 2 numbers");
    refuse_list("[{\"name\": \"random_flip\", \"keypoint_flip_permutation\": [0, 2]}]", 0,
                "keypoint_flip_permutation: the 2 numbers must be 0..1");
    open_scene(&s, "[{\"name\": \"random_flip\"}]");
    s.sample.mirrored = NULL;
    s.sample.objects = 1;
    assert_fails(pm_place(&s.input, &s.sample, &o, &s.placed), PM_ECONFIG, "photo 7", "3 keypoints",
                 "keypoint_flip_permutation");
    close_scene(&s);
    open_scene(&s, "[{\"name\": \"random_flip\", \"keypoint_flip_permutation\": [1, 0]}]");
    assert_fails(pm_place(&s.input, &s.sample, &o, &s.placed), PM_ECONFIG, "3 keypoints",
                 "2 numbers");
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crop_image), cmocka_unit_test(ssd_crop), cmocka_unit_test(fixed_aspect),
        cmocka_unit_test(padding),    cmocka_unit_test(crop_and_pad), cmocka_unit_test(in_order),
        cmocka_unit_test(nothing),    cmocka_unit_test(flips),    cmocka_unit_test(refusals),
        cmocka_unit_test(failed_crops), cmocka_unit_test(half_a_box),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
