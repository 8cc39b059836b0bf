/* Packed numbers and texts: they come back unchanged, and a reader stops at damaged bytes. */
#include "base/pack.h"
#include "base/unit.h"

static struct pm_unpack reader_of(const struct pm_str *s)
{
    return (struct pm_unpack){ .at = (const uint8_t *)s->text, .left = s->length };
}

static void round_trip(void **state)
{
    static const uint64_t nan_bits = 0x7ff8000000001234;
    struct pm_str s = { 0 };
    double nan;
    char *text;

    (void)state;
    memcpy(&nan, &nan_bits, sizeof nan);
    pm_pack_int(&s, UINT64_MAX);
    pm_pack_double(&s, -0.0);
    pm_pack_double(&s, nan);
    pm_pack_text(&s, "a text");
    pm_pack_text(&s, "");
    pm_pack_text(&s, NULL);
    pm_pack_int(&s, 3);
    pm_pack_int(&s, 2);
    pm_str_bytes(&s, "ab", 2);

    struct pm_unpack u = reader_of(&s);
    assert_true(pm_unpack_int(&u) == UINT64_MAX);
    const double zero = pm_unpack_double(&u);
    assert_true(zero == 0 && signbit(zero));
    nan = pm_unpack_double(&u);
    assert_memory_equal(&nan, &nan_bits, sizeof nan);
    text = pm_unpack_text(&u);
    assert_string_equal(text, "a text");
    pm_free(text);
    text = pm_unpack_text(&u);
    assert_string_equal(text, "");
    pm_free(text);
    assert_null(pm_unpack_text(&u));
    assert_true(pm_unpack_below(&u, 4) == 3);
    assert_int_equal(pm_unpack_count(&u, 1), 2);
    assert_memory_equal(pm_unpack_bytes(&u, 2), "ab", 2);
    assert_true(u.left == 0 && !u.damaged);
    pm_str_free(&s);
}

/* A value outside its limits: all later reads fail, too. */
static void limits(void **state)
{
    struct pm_str s = { 0 };

    (void)state;
    pm_pack_int(&s, 2);
    pm_pack_int(&s, 7);
    struct pm_unpack u = reader_of(&s);
    assert_true(pm_unpack_below(&u, 2) == 0 && u.damaged);
    assert_true(pm_unpack_int(&u) == 0 && pm_unpack_double(&u) == 0);
    assert_null(pm_unpack_bytes(&u, 0));
    assert_null(pm_unpack_text(&u));
    u = reader_of(&s);
    assert_int_equal(pm_unpack_count(&u, 4), 2);
    u = reader_of(&s);
    assert_int_equal(pm_unpack_count(&u, 5), 0);
    assert_true(u.damaged);
    pm_str_free(&s);
}

/* Lengths beyond the end, and a text that holds a zero byte. */
static void texts(void **state)
{
    static const uint64_t lengths[] = { 9, 10, UINT64_MAX, (uint64_t)INT64_MAX + 1 };
    struct pm_str s = { 0 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(lengths); i++) {
        s.length = 0;
        pm_pack_int(&s, lengths[i]);
        pm_str_bytes(&s, "1234567", 8);
        struct pm_unpack u = reader_of(&s);
        assert_null(pm_unpack_text(&u));
        assert_true(u.damaged && u.left == 0);
    }
    pm_str_free(&s);
}

/* Reading fails at the end of every shorter pack. */
static void truncated(void **state)
{
    struct pm_str s = { 0 };

    (void)state;
    pm_pack_int(&s, 1);
    pm_pack_text(&s, "text");
    pm_pack_double(&s, 1);
    for (size_t size = 0; size <= s.length; size++) {
        struct pm_unpack u = { .at = (const uint8_t *)s.text, .left = size };

        pm_unpack_int(&u);
        pm_free(pm_unpack_text(&u));
        pm_unpack_double(&u);
        assert_int_equal(u.damaged, size < s.length);
    }
    pm_str_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(limits),
        cmocka_unit_test(texts),
        cmocka_unit_test(truncated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
