/* Timelines for TensorBoard's profiler: planes, lines, spans and names read back, many names, and
 * a folder that cannot be written. tests/report/profiler_check.py tests what TensorBoard shows. */
#include "../data/data_common.h"
#include "formats/xplane.h"
#include "xplane.pb-c.h"

#include <unistd.h>

static Pm__XSpace *read_space(const char *folder, const char *name)
{
    char host[256] = "", path[1024], *bytes;
    size_t size;
    Pm__XSpace *space;

    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s/plugins/profile/%s/%s.xplane.pb", folder, name, host);
    if (pm_file_read(path, &bytes, &size) < 0)
        fail_msg("%s", pm_error_text());
    space = pm__xspace__unpack(NULL, size, (const uint8_t *)bytes);
    assert_non_null(space);
    pm_free(bytes);
    return space;
}

static const Pm__XEventMetadata *named(const Pm__XPlane *p, int64_t id)
{
    for (size_t i = 0; i < p->n_event_metadata; i++)
        if (p->event_metadata[i]->key == id) {
            assert_int_equal(p->event_metadata[i]->value->id, id);
            return p->event_metadata[i]->value;
        }
    fail_msg("no name %d", (int)id);
    return NULL;
}

static void planes_and_lines(void **state)
{
    struct pm_xplane *x = pm_xplane_create();
    Pm__XSpace *space;
    const Pm__XLine *line;
    const Pm__XEventMetadata *name;
    (void)state;

    scratch_make();
    pm_xplane_span(x, "clone 0: cpu", "calls", "conv1", "conv2d_fwd", 0.5, 0.75);
    pm_xplane_span(x, "clone 0: cpu", "calls", "conv1", NULL, 0.75, 1);
    pm_xplane_span(x, "host", "trainer", "conv1", "conv2d_fwd", 0.1, 0.2);
    pm_xplane_span(x, "clone 0: cpu", "steps", "train", NULL, -0.5, 1);
    pm_xplane_span(x, "clone 0: cpu", "calls", "conv1", "conv2d_fwd", 1, 0.9);
    assert_int_equal(pm_xplane_write(x, in_scratch("run"), "step-000005"), PM_OK);
    pm_xplane_destroy(&x);
    assert_null(x);
    space = read_space(in_scratch("run"), "step-000005");
    assert_int_equal(space->n_planes, 2);
    assert_string_equal(space->planes[0]->name, "/device:CUSTOM:clone 0: cpu");
    assert_string_equal(space->planes[1]->name, "/device:CUSTOM:host");
    assert_true(space->planes[0]->id != space->planes[1]->id);
    assert_int_equal(space->planes[0]->n_lines, 2);
    line = space->planes[0]->lines[0];
    assert_string_equal(line->name, "calls");
    assert_int_equal(line->n_events, 3);
    assert_true(line->events[0]->offset_ps == INT64_C(500000000000));
    assert_true(line->events[0]->duration_ps == INT64_C(250000000000));
    assert_true(line->events[2]->duration_ps == 0); /* an end before the begin */
    assert_true(space->planes[0]->lines[1]->events[0]->offset_ps == 0);
    name = named(space->planes[0], line->events[0]->metadata_id);
    assert_string_equal(name->name, "conv1");
    assert_string_equal(name->stats[0]->str_value, "conv2d_fwd");
    assert_true(line->events[2]->metadata_id == line->events[0]->metadata_id);
    name = named(space->planes[0], line->events[1]->metadata_id);
    assert_string_equal(name->name, "conv1");
    assert_int_equal(name->n_stats, 0);
    assert_int_equal(space->planes[0]->n_stat_metadata, 1);
    pm__xspace__free_unpacked(space, NULL);
    scratch_remove();
}

static void many_names(void **state)
{
    enum { NAMES = 1000 };
    struct pm_xplane *x = pm_xplane_create();
    char text[32];
    Pm__XSpace *space;
    (void)state;

    scratch_make();
    for (int i = 0; i < 3 * NAMES; i++) {
        snprintf(text, sizeof text, "layer %d", i % NAMES);
        pm_xplane_span(x, "g", "row", text, NULL, i, i + 1);
    }
    assert_int_equal(pm_xplane_write(x, in_scratch("run"), "step"), PM_OK);
    pm_xplane_destroy(&x);
    space = read_space(in_scratch("run"), "step");
    assert_int_equal(space->planes[0]->n_event_metadata, NAMES);
    assert_int_equal(space->planes[0]->lines[0]->n_events, 3 * NAMES);
    for (int i = 0; i < 3 * NAMES; i++) {
        snprintf(text, sizeof text, "layer %d", i % NAMES);
        assert_string_equal(
            named(space->planes[0], space->planes[0]->lines[0]->events[i]->metadata_id)->name,
            text);
    }
    pm__xspace__free_unpacked(space, NULL);
    scratch_remove();
}

static void cannot_write(void **state)
{
    struct pm_xplane *x = pm_xplane_create();
    (void)state;

    scratch_make();
    assert_int_equal(pm_file_write(in_scratch("file"), "x", 1), PM_OK);
    assert_int_equal(pm_xplane_write(x, in_scratch("file"), "step"), PM_EFAIL);
    assert_contains(pm_error_text(), "/file: the folder cannot be made");
    assert_int_equal(pm_xplane_write(x, in_scratch("empty"), "step"), PM_OK); /* no spans */
    pm_xplane_destroy(&x);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_and_lines), cmocka_unit_test(many_names),
        cmocka_unit_test(cannot_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
