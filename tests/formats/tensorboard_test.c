/* Event files: the bytes of the first record, values read back through TFRecord and protobuf,
 * the bucket limits, tags, pictures, failing writes, and files of other programs. tests/report/
 * tests what TensorBoard itself reads. */
#include "../data/data_common.h"
#include "event.pb-c.h"
#include "formats/tensorboard.h"
#include "formats/tfrecord.h"

#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* ---- a small reader --------------------------------------------------------------------- */

enum { MOST = 512 };
static Pm__Event *event[MOST];
static int events;

static void forget_events(void)
{
    while (events > 0)
        pm__event__free_unpacked(event[--events], NULL);
}

static void read_events(const char *path)
{
    struct pm_record_place at = { .path = path };
    int fd = open(path, O_RDONLY);
    struct stat st;
    uint64_t length;

    forget_events();
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    for (; at.offset < (uint64_t)st.st_size; at.number++) {
        if (pm_tfrecord_length(fd, (uint64_t)st.st_size, at, &length) < 0)
            fail_msg("%s", pm_error_text());
        uint8_t *buf = pm_malloc(length + PM_TFRECORD_TAIL);
        assert_int_equal(pm_tfrecord_data(fd, at, buf, length), PM_OK);
        assert_true(events < MOST);
        event[events] = pm__event__unpack(NULL, length, buf);
        assert_non_null(event[events++]);
        pm_free(buf);
        at.offset += PM_TFRECORD_HEAD + length + PM_TFRECORD_TAIL;
    }
    close(fd);
}

static struct pm_events *make(void)
{
    struct pm_events *e = NULL;

    scratch_make();
    assert_int_equal(pm_events_create_at(in_scratch("run"), 1500000000, &e), PM_OK);
    return e;
}

static void end(struct pm_events **e)
{
    pm_events_close(e);
    assert_null(*e);
    forget_events();
    scratch_remove();
}

/* ---- files ------------------------------------------------------------------------------ */

static void first_record(void **state)
{
    static const uint8_t golden[] = {
        0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22, 0x09, 0, 0, 0, 0xc0, 0x0b, 0x5a, 0xd6,
        0x41, 0x1a, 0x0d, 0x62, 0x72, 0x61, 0x69, 0x6e, 0x2e, 0x45, 0x76, 0x65, 0x6e, 0x74, 0x3a,
        0x32, 0x4c, 0xa9, 0xa4, 0x64,
    };
    struct pm_events *e = make();
    char *text, host[256] = "", want[400];
    size_t size;

    (void)state;
    assert_int_equal(pm_file_read(pm_events_path(e), &text, &size), PM_OK);
    assert_int_equal(size, sizeof golden);
    assert_memory_equal(text, golden, sizeof golden);
    gethostname(host, sizeof host - 1);
    snprintf(want, sizeof want, "run/events.out.tfevents.1500000000.%s", host);
    assert_string_equal(pm_events_path(e), in_scratch(want));
    pm_free(text);
    end(&e);
}

static void a_second_file_of_the_second(void **state)
{
    struct pm_events *e = make(), *other = NULL;
    char want[400];

    (void)state;
    assert_int_equal(pm_events_create_at(in_scratch("run"), 1500000000, &other), PM_OK);
    snprintf(want, sizeof want, "%s.1", pm_events_path(e));
    assert_string_equal(pm_events_path(other), want);
    pm_events_close(&other);
    assert_int_equal(pm_events_create(in_scratch("run"), &other), PM_OK);
    pm_events_close(&other);
    assert_int_equal(pm_file_write(in_scratch("file"), "", 0), PM_OK);
    assert_int_equal(pm_events_create(in_scratch("file"), &other), PM_EFAIL);
    assert_null(other);
    end(&e);
}

static void scalars_and_sessions(void **state)
{
    struct pm_events *e = make();

    (void)state;
    assert_int_equal(pm_events_session(e, PM_EVENTS_START, 8, NULL), PM_OK);
    assert_int_equal(pm_events_write(e, 8), PM_OK); /* nothing was added: no record */
    pm_events_scalar(e, "total_loss", 0.1);
    pm_events_scalar(e, "learning_rate", 0);
    assert_int_equal(pm_events_write(e, 8), PM_OK);
    pm_events_scalar(e, "total_loss", NAN);
    assert_int_equal(pm_events_write(e, (uint64_t)1 << 40), PM_OK);
    assert_int_equal(pm_events_session(e, PM_EVENTS_CHECKPOINT, 9, "a/b"), PM_OK);
    assert_int_equal(pm_events_session(e, PM_EVENTS_STOP, 10, NULL), PM_OK);
    read_events(pm_events_path(e)); /* before closing, the file is complete */
    assert_int_equal(events, 6);
    assert_string_equal(event[0]->file_version, "brain.Event:2");
    assert_int_equal(event[1]->what_case, PM__EVENT__WHAT_SESSION_LOG);
    assert_int_equal(event[1]->session_log->status, 1);
    assert_int_equal(event[1]->step, 8);
    assert_int_equal(event[2]->step, 8);
    assert_int_equal(event[2]->summary->n_value, 2);
    assert_string_equal(event[2]->summary->value[0]->tag, "total_loss");
    assert_true(event[2]->summary->value[0]->simple_value == 0.1f);
    assert_int_equal(event[2]->summary->value[1]->value_case,
                     PM__SUMMARY_VALUE__VALUE_SIMPLE_VALUE);
    assert_true(event[2]->summary->value[1]->simple_value == 0);
    assert_true(isnan(event[3]->summary->value[0]->simple_value));
    assert_true(event[3]->step == (int64_t)1 << 40);
    assert_int_equal(event[4]->session_log->status, 3);
    assert_string_equal(event[4]->session_log->checkpoint_path, "a/b");
    assert_int_equal(event[5]->session_log->status, 2);
    end(&e);
}

static void tags(void **state)
{
    static const char *const pairs[][2] = {
        { "a", "a" },           { "a", "a_1" },          { "a", "a_2" },
        { "//x y/z", "x_y/z" }, { "x_y/z", "x_y/z_1" }, { "conv1/weights:0", "conv1/weights_0" },
        { "a_1", "a_1_1" },     { "A-Z.9", "A-Z.9" },   { "\xc3\xa9", "__" },
    };
    struct pm_events *e = make();

    (void)state;
    for (size_t i = 0; i < PM_COUNT(pairs); i++)
        pm_events_scalar(e, pairs[i][0], 1);
    assert_int_equal(pm_events_write(e, 1), PM_OK);
    pm_events_scalar(e, "a", 1); /* in another step the tag may be used again */
    assert_int_equal(pm_events_write(e, 2), PM_OK);
    read_events(pm_events_path(e));
    for (size_t i = 0; i < PM_COUNT(pairs); i++)
        assert_string_equal(event[1]->summary->value[i]->tag, pairs[i][1]);
    assert_string_equal(event[2]->summary->value[0]->tag, "a");
    end(&e);
}

/* The file may grow by 100 bytes only: a record that does not fit leaves no partial data. */
static void full_disk(void **state)
{
    struct pm_events *e = make();
    struct rlimit before, small;
    char long_tag[400];

    (void)state;
    memset(long_tag, 'x', sizeof long_tag - 1);
    long_tag[sizeof long_tag - 1] = 0;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 140;
    setrlimit(RLIMIT_FSIZE, &small);
    pm_events_scalar(e, long_tag, 1);
    int first = pm_events_write(e, 1);
    pm_events_scalar(e, "fits", 2);
    int second = pm_events_write(e, 2);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(first, PM_EFAIL);
    assert_non_null(strstr(pm_error_text(), "cannot write"));
    assert_int_equal(second, PM_OK);
    read_events(pm_events_path(e));
    assert_int_equal(events, 2);
    assert_int_equal(event[1]->step, 2);
    end(&e);
}

/* ---- histograms ------------------------------------------------------------------------- */

static double limit[PM_HISTOGRAM_BUCKETS];

/* Writes the bucket limits by TensorBoard's rule, without tables. */
static void write_out_limits(void)
{
    double positive[775], x = 1e-12;
    int n = 0;

    for (; x < 1e20; x *= 1.1)
        positive[n++] = x;
    assert_int_equal(n, 774);
    positive[n] = DBL_MAX;
    for (int i = 0; i < 775; i++) {
        limit[i] = -positive[774 - i];
        limit[776 + i] = positive[i];
    }
    limit[775] = 0;
}

static void check_bucket(float v)
{
    struct pm_histogram h;
    int want = 0;

    while (!(limit[want] > (double)v))
        want++;
    pm_histogram_start(&h);
    assert_int_equal(pm_histogram_add(&h, &v, 1), PM_OK);
    if (h.bucket[want] != 1)
        fail_msg("%.9g is not in bucket %d (below %.17g)", (double)v, want, limit[want]);
}

static void buckets(void **state)
{
    static const float special[] = { 0, -0.0f, FLT_MIN, -FLT_MIN, FLT_MAX, -FLT_MAX, 1e-45f,
                                     -1e-45f, 1e20f, -1e20f, 1e-12f, -1e-12f, 1, -1, 0.5f, -0.5f };

    (void)state;
    write_out_limits();
    for (int i = 0; i < PM_HISTOGRAM_BUCKETS; i++)
        assert_true(pm_histogram_limit(i) == limit[i]);
    for (size_t i = 0; i < PM_COUNT(special); i++)
        check_bucket(special[i]);
    for (int i = 0; i < PM_HISTOGRAM_BUCKETS; i++)
        if (fabs(limit[i]) < FLT_MAX) { /* the neighbouring floats of each limit */
            check_bucket((float)limit[i]);
            check_bucket(nextafterf((float)limit[i], INFINITY));
            check_bucket(nextafterf((float)limit[i], -INFINITY));
        }
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += 32749) {
        float v;
        memcpy(&v, &bits, sizeof v);
        check_bucket(v);
        check_bucket(-v);
    }
}

static void histograms(void **state)
{
    static const float v[] = { -2, 0, 0, 0.5f, 3 };
    struct pm_events *e = make();
    struct pm_histogram h;
    const float bad = INFINITY;

    (void)state;
    write_out_limits();
    pm_histogram_start(&h);
    pm_events_histogram(e, "empty", &h);
    assert_int_equal(pm_histogram_add(&h, v, PM_COUNT(v)), PM_OK);
    pm_events_histogram(e, "five", &h);
    assert_int_equal(pm_histogram_add(&h, &bad, 1), PM_EDATA);
    assert_int_equal(pm_events_write(e, 1), PM_OK);
    read_events(pm_events_path(e));

    const Pm__HistogramProto *p = event[1]->summary->value[0]->histo;
    assert_int_equal(p->n_bucket, 1);
    assert_true(p->bucket_limit[0] == DBL_MAX && p->bucket[0] == 0 && p->num == 0);
    assert_true(p->min == DBL_MAX && p->max == -DBL_MAX);

    p = event[1]->summary->value[1]->histo;
    assert_true(p->min == -2 && p->max == 3 && p->num == 5 && p->sum == 1.5 &&
                p->sum_squares == 13.25);
    /* empty, -2, empty, 0 (below 1e-12), empty, 0.5, empty, 3, empty */
    assert_int_equal(p->n_bucket, 9);
    assert_int_equal(p->n_bucket_limit, 9);
    static const double counts[] = { 0, 1, 0, 2, 0, 1, 0, 1, 0 };
    for (int i = 0; i < 9; i++)
        assert_true(p->bucket[i] == counts[i]);
    assert_true(p->bucket_limit[2] == 0 && p->bucket_limit[3] == 1e-12);
    assert_true(p->bucket_limit[8] == DBL_MAX);
    assert_true(p->bucket_limit[0] <= -2 && p->bucket_limit[1] > -2);
    assert_true(p->bucket_limit[6] <= 3 && p->bucket_limit[7] > 3);
    end(&e);
}

/* ---- pictures --------------------------------------------------------------------------- */

static void pictures(void **state)
{
    static const float positive[] = { 0, 0.5f, 1, 2 }, centred[] = { -1, 0, 0.5f, 1 };
    static const float small[] = { 1e-7f, -1e-7f }, none[] = { 0, 0 };
    static const float rgb[] = { 1, NAN, 0, 0.5f, 0.25f, 1 };
    uint8_t out[8];

    (void)state;
    pm_picture_bytes(positive, 1, 4, 1, out);
    assert_memory_equal(out, ((uint8_t[]){ 0, 63, 127, 255 }), 4);
    pm_picture_bytes(centred, 2, 2, 1, out);
    assert_memory_equal(out, ((uint8_t[]){ 1, 128, 191, 255 }), 4);
    pm_picture_bytes(small, 1, 2, 1, out);
    assert_memory_equal(out, ((uint8_t[]){ 128, 128 }), 2);
    pm_picture_bytes(none, 1, 2, 1, out);
    assert_memory_equal(out, ((uint8_t[]){ 0, 0 }), 2);
    pm_picture_bytes(rgb, 1, 2, 3, out);
    assert_memory_equal(out, ((uint8_t[]){ 255, 0, 0, 127, 63, 255 }), 6);
}

static void images(void **state)
{
    uint8_t pixels[2 * 3 * 3], *png;
    struct pm_image8 im = { 2, 3, 3, pixels }, back;
    struct pm_events *e = make();
    size_t size;

    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 14);
    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    pm_events_image(e, "images/image/0", 2, 3, 3, png, size);
    pm_free(png);
    assert_int_equal(pm_events_write(e, 5), PM_OK);
    read_events(pm_events_path(e));
    const Pm__SummaryImage *p = event[1]->summary->value[0]->image;
    assert_true(p->height == 2 && p->width == 3 && p->colorspace == 3);
    assert_int_equal(pm_image_decode(p->encoded_image_string.data, p->encoded_image_string.len, 0,
                                     0, "image", &back), PM_OK);
    assert_memory_equal(back.pixels, pixels, sizeof pixels);
    pm_image_free(&back);
    end(&e);
}

/* ---- files of other programs ------------------------------------------------------------ */

static void check_foreign(const char *path, const char *tag, int count, int last_step, double sum)
{
    int found = 0, step = -1;
    double total = 0;

    read_events(path);
    assert_string_equal(event[0]->file_version, "brain.Event:2");
    for (int i = 1; i < events; i++)
        for (size_t k = 0; k < event[i]->summary->n_value; k++) {
            const Pm__SummaryValue *v = event[i]->summary->value[k];
            assert_int_equal(v->value_case, PM__SUMMARY_VALUE__VALUE_SIMPLE_VALUE);
            if (strcmp(v->tag, tag) != 0)
                continue;
            found++;
            step = (int)event[i]->step;
            total += (double)v->simple_value;
        }
    assert_int_equal(found, count);
    assert_int_equal(step, last_step);
    assert_true(fabs(total - sum) < 1e-9);
    forget_events();
}

/* The expected sums were read by TensorBoard from the same files. */
static void foreign(void **state)
{
    (void)state;
    check_foreign(shared_data("tensorboard-events/strict/run_1/"
                              "events.out.tfevents.1622543341.janoshs-mbp.lan.86862.0"),
                  "strict/foo", 100, 495, 148.84195291996002);
    check_foreign(shared_data("tensorboard-events/lax/run_1/"
                              "events.out.tfevents.1622543341.janoshs-mbp.lan.86862.3"),
                  "lax/bar_2", 110, 109, 164.76469123363495);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_record), cmocka_unit_test(a_second_file_of_the_second),
        cmocka_unit_test(scalars_and_sessions), cmocka_unit_test(tags), cmocka_unit_test(full_disk),
        cmocka_unit_test(buckets), cmocka_unit_test(histograms), cmocka_unit_test(pictures),
        cmocka_unit_test(images), cmocka_unit_test(foreign),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
