/* Names that cannot stand in a line of a file: each converter refuses them, prints the name
 * escaped, and leaves no data folder. */
#include "pairs_common.h"

/* The conversion of the folder raw must fail with the code and a message that contains the part. */
static void refused(int code, const char *format, const char *dst, const char *options,
                    const char *part)
{
    char src[300], path[300];

    snprintf(src, sizeof src, "%s", in_scratch("raw"));
    snprintf(path, sizeof path, "%s", in_scratch(dst));
    assert_int_equal(pm_dataset_convert(format, src, path, options), code);
    assert_says(pm_error_text(), part);
    assert_false(pm_is_folder(path));
    pm_remove_tree(in_scratch("raw"));
    assert_only(0);
}

static void class_folders(void **state)
{
    (void)state;
    scratch_make();
    make_class("raw/ants", 0, 20);
    make_class("raw/b\n1:evil", 0, 20);
    refused(PM_EDATA, "folder", "d", "", "class 1 is named \"b\\x0A1:evil\"");
    make_class("raw/train/a\rb", 0, 3);
    refused(PM_EDATA, "folder", "d", "", "class 0 is named \"a\\x0Db\"");
    make_class("raw/a\033[2J", 0, 20);
    make_class("raw/b", 0, 20);
    refused(PM_EDATA, "flowers", "d", "validation=5", "\"a\\x1B[2J\"");
    make_class("raw/a\xc2\x85", 0, 20);
    refused(PM_EDATA, "folder", "d", "", "\"a\\u{85}\"");
    scratch_remove();
}

/* Letters of every script, blanks and punctuation are allowed in names. */
static void other_names_stay(void **state)
{
    char src[300], dst[300];
    struct pm_dataset *d;

    (void)state;
    scratch_make();
    make_class("raw/train/Stra\xc3\x9f" "e: 1, \"2\" \\n", 0, 2);
    make_class("raw/train/\xe9\xb8\x9f", 0, 2);
    snprintf(src, sizeof src, "%s", in_scratch("raw"));
    snprintf(dst, sizeof dst, "%s", in_scratch("d"));
    if (pm_dataset_convert("folder", src, dst, "") < 0)
        fail_msg("%s", pm_error_text());
    d = opened(dst, "train", 4);
    assert_string_equal(pm_dataset_get_info(d)->labels[0], "Stra\xc3\x9f" "e: 1, \"2\" \\n");
    assert_string_equal(pm_dataset_get_info(d)->labels[1], "\xe9\xb8\x9f");
    pm_dataset_close(&d);
    scratch_remove();
}

static void lists(void **state)
{
    char options[400];

    (void)state;
    scratch_make();
    make_class("raw/train/a", 0, 3);
    put_text("raw/labels.txt", "a\tb\n");
    refused(PM_EDATA, "build_image_data", "d", "", "a\\x09b");
    make_class("raw/train/a", 0, 3);
    assert_int_equal(pm_file_write(in_scratch("raw/labels.txt"), "a\0b\n", 4), PM_OK);
    refused(PM_EDATA, "build_image_data", "d", "",
            "labels.txt: this is not a text file: it has a zero byte at offset 1");
    put_picture("raw/images/a.png", 7);
    put_map("raw/labels/a.png", 8, 0, (const uint8_t[]){ 0, 1, 0, 1, 1, 1 });
    put_text("raw/names.txt", "ground\nbu\033sh\n");
    snprintf(options, sizeof options, "classes=%s", in_scratch("raw/names.txt"));
    refused(PM_EDATA, "pairs", "d", options, "class 1 is named \"bu\\x1Bsh\"");
    scratch_remove();
}

static void data_folder(void **state)
{
    (void)state;
    scratch_make();
    make_class("raw/a", 0, 20);
    refused(PM_ECONFIG, "folder", "d\ne", "", "the data folder is named \"d\\x0Ae\"");
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(class_folders),
        cmocka_unit_test(other_names_stay),
        cmocka_unit_test(lists),
        cmocka_unit_test(data_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
