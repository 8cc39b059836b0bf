/* Messages of TensorBoard's HParams plugin. The expected bytes were written by the classes of
 * TensorBoard 2.21. tests/report/hparams_check.py asks a running TensorBoard. */
#include "../data/data_common.h"
#include "event.pb-c.h"
#include "formats/tensorboard.h"
#include "formats/tfrecord.h"

static const uint8_t experiment_message[] = {
    0x12, 0x49, 0x19, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, 0x22, 0x11, 0x0a, 0x02,
    0x6c, 0x72, 0x20, 0x03, 0x32, 0x09, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xe0, 0x3f,
    0x22, 0x1b, 0x0a, 0x05, 0x6f, 0x70, 0x74, 0x69, 0x6d, 0x20, 0x01, 0x2a, 0x10, 0x0a, 0x05,
    0x1a, 0x03, 0x73, 0x67, 0x64, 0x0a, 0x07, 0x1a, 0x05, 0x61, 0x64, 0x61, 0x6d, 0x77, 0x2a,
    0x0e, 0x0a, 0x0a, 0x12, 0x08, 0x61, 0x63, 0x63, 0x75, 0x72, 0x61, 0x63, 0x79, 0x28, 0x02,
};
static const uint8_t number_message[] = {
    0x1a, 0x20, 0x0a, 0x0f, 0x0a, 0x02, 0x6c, 0x72, 0x12, 0x09, 0x11, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x22, 0x04, 0x6c, 0x72, 0x3d, 0x30, 0x29, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x40,
};
static const uint8_t text_message[] = {
    0x1a, 0x1c, 0x0a, 0x0e, 0x0a, 0x05, 0x6f, 0x70, 0x74, 0x69, 0x6d, 0x12, 0x05, 0x1a, 0x03,
    0x73, 0x67, 0x64, 0x22, 0x01, 0x67, 0x29, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40,
};
static const uint8_t end_message[] = {
    0x22, 0x0b, 0x08, 0x02, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x12, 0x40,
};

/* The second event of the file: the first one has the version. */
static Pm__Event *second_event(struct pm_events *e)
{
    char *text;
    size_t size;
    uint64_t first, length;

    assert_int_equal(pm_file_read(pm_events_path(e), &text, &size), PM_OK);
    memcpy(&first, text, sizeof first);
    const size_t at = PM_TFRECORD_HEAD + first + PM_TFRECORD_TAIL;
    assert_true(size > at + PM_TFRECORD_HEAD);
    memcpy(&length, text + at, sizeof length);
    assert_int_equal(size, at + PM_TFRECORD_HEAD + length + PM_TFRECORD_TAIL);
    Pm__Event *event =
        pm__event__unpack(NULL, length, (const uint8_t *)text + at + PM_TFRECORD_HEAD);
    assert_non_null(event);
    assert_int_equal(event->what_case, PM__EVENT__WHAT_SUMMARY);
    pm_free(text);
    return event;
}

static void check_value(const Pm__Event *event, size_t i, const char *tag, const uint8_t *content,
                        size_t size)
{
    assert_true(i < event->summary->n_value);
    const Pm__SummaryValue *v = event->summary->value[i];

    assert_string_equal(v->tag, tag);
    assert_int_equal(v->value_case, PM__SUMMARY_VALUE__VALUE__NOT_SET);
    assert_non_null(v->metadata);
    assert_string_equal(v->metadata->plugin_data->plugin_name, "hparams");
    assert_int_equal(v->metadata->plugin_data->content.len, size);
    assert_memory_equal(v->metadata->plugin_data->content.data, content, size);
}

static struct pm_events *make(void)
{
    struct pm_events *e = NULL;

    scratch_make();
    assert_int_equal(pm_events_create(in_scratch("run"), &e), PM_OK);
    return e;
}

static void end(struct pm_events **e, Pm__Event *event)
{
    pm__event__free_unpacked(event, NULL);
    pm_events_close(e);
    scratch_remove();
}

static void experiment(void **state)
{
    static const char *const names[] = { "sgd", "adamw" };
    const struct pm_hparam_key keys[] = {
        { .name = "lr", .low = 0, .high = 0.5 },
        { .name = "optim", .texts = names, .count = 2 },
    };
    struct pm_events *e = make();

    (void)state;
    pm_events_experiment(e, keys, 2, "accuracy", 1.5);
    assert_int_equal(pm_events_write(e, 0), PM_OK);
    Pm__Event *event = second_event(e);
    assert_int_equal(event->summary->n_value, 1);
    check_value(event, 0, "_hparams_/experiment", experiment_message, sizeof experiment_message);
    end(&e, event);
}

static void runs(void **state)
{
    const struct {
        struct pm_hparam value;
        const char *group;
        const uint8_t *message;
        size_t size;
    } rows[] = {
        { { .name = "lr", .number = 0 }, "lr=0", number_message, sizeof number_message },
        { { .name = "optim", .text = "sgd" }, "g", text_message, sizeof text_message },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(rows); i++) {
        struct pm_events *e = make();

        pm_events_run(e, &rows[i].value, 1, rows[i].group, 2, 4.5, true);
        assert_int_equal(pm_events_write(e, 0), PM_OK);
        Pm__Event *event = second_event(e);
        assert_int_equal(event->summary->n_value, 2);
        check_value(event, 0, "_hparams_/session_start_info", rows[i].message, rows[i].size);
        check_value(event, 1, "_hparams_/session_end_info", end_message, sizeof end_message);
        end(&e, event);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experiment),
        cmocka_unit_test(runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
