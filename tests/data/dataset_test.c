/* Datasets: the files of a split, the cached index, labels, and reading from several threads. */
#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>

#include "data_common.h"
#include "data/shards.h"

static void put(const char *name, int records)
{
    struct pm_tfrecord_writer *w = NULL;
    char text[320];

    assert_int_equal(pm_tfrecord_create(in_scratch(name), &w), PM_OK);
    for (int i = 0; i < records; i++) {
        snprintf(text, sizeof text, "%s#%d", name, i);
        assert_int_equal(pm_tfrecord_write(w, text, strlen(text)), PM_OK);
    }
    assert_int_equal(pm_tfrecord_finish(w), PM_OK);
    pm_tfrecord_destroy(&w);
}

static void put_text(const char *name, const char *text)
{
    assert_int_equal(pm_file_write(in_scratch(name), text, strlen(text)), PM_OK);
}

/* Record i of the split must be `want`. */
static void assert_record(struct pm_dataset *d, size_t i, const char *want)
{
    uint8_t *buf = NULL;
    size_t capacity = 0, size = 0;

    assert_int_equal(pm_dataset_read(d, i, &buf, &capacity, &size), PM_OK);
    assert_int_equal(size, strlen(want));
    assert_memory_equal(buf, want, size);
    pm_free(buf);
}

/* Every third record of three files with four records each. Messages give the places in the
 * files. */
static void sampled(void **state)
{
    struct pm_dataset *d = NULL;
    char where[512];

    (void)state;
    scratch_make();
    put("x_train_00000-of-00003.tfrecord", 4);
    put("x_train_00001-of-00003.tfrecord", 4);
    put("x_train_00002-of-00003.tfrecord", 4);
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    pm_dataset_sample(d, 3);
    assert_int_equal(pm_dataset_get_info(d)->count, 4);
    assert_record(d, 0, "x_train_00000-of-00003.tfrecord#0");
    assert_record(d, 1, "x_train_00000-of-00003.tfrecord#3");
    assert_record(d, 2, "x_train_00001-of-00003.tfrecord#2");
    assert_record(d, 3, "x_train_00002-of-00003.tfrecord#1");
    assert_non_null(strstr(pm_dataset_where(d, 2, where, sizeof where),
                           "x_train_00001-of-00003.tfrecord record 2 "));
    pm_dataset_close(&d);
    scratch_remove();
}

static void shard_names(void **state)
{
    static const struct {
        const char *name, *stem;
        int index, total;
    } good[] = {
        { "mnist_train.tfrecord", "mnist_train", 0, 0 },
        { "flowers_train_00003-of-00005.tfrecord", "flowers_train", 3, 5 },
        { "train-00017-of-01024", "train", 17, 1024 },
        { "train.record-00000-of-00100", "train", 0, 100 },
        { "pascal_voc_seg-val-00000-of-00001.tfrecord", "pascal_voc_seg-val", 0, 1 },
        { "val.tfrecord-00001-of-00002", "val", 1, 2 },
        { "pets.record", "pets", 0, 0 },
        { "a.tfrecords", "a", 0, 0 },
    };
    static const char *const bad[] = { "labels.txt",       "train",
                                       "dataset.json",     "-00000-of-00001",
                                       ".hidden.tfrecord", "train-of-3",
                                       "x-1-of-0",         ".tfrecord" };
    struct pm_shard_name s;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(good); i++) {
        assert_true(pm_shard_parse(good[i].name, &s));
        assert_string_equal(s.stem, good[i].stem);
        assert_int_equal(s.index, good[i].index);
        assert_int_equal(s.total, good[i].total);
    }
    for (size_t i = 0; i < PM_COUNT(bad); i++)
        assert_false(pm_shard_parse(bad[i], &s));
}

static void sharded(void **state)
{
    struct pm_dataset *d = NULL;
    char where[600];

    (void)state;
    scratch_make();
    put("f_train_00002-of-00003.tfrecord", 2);
    put("f_train_00000-of-00003.tfrecord", 3);
    put("f_train_00001-of-00003.tfrecord", 0); /* an empty shard is allowed */
    put("f_validation_00000-of-00001.tfrecord", 1);
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    assert_int_equal(pm_dataset_get_info(d)->count, 5);
    assert_int_equal(pm_dataset_get_info(d)->files, 3);
    assert_record(d, 0, "f_train_00000-of-00003.tfrecord#0");
    assert_record(d, 2, "f_train_00000-of-00003.tfrecord#2");
    assert_record(d, 3, "f_train_00002-of-00003.tfrecord#0");
    assert_record(d, 4, "f_train_00002-of-00003.tfrecord#1");
    pm_dataset_where(d, 4, where, sizeof where);
    assert_non_null(strstr(where, "f_train_00002-of-00003.tfrecord record 1 (offset 49)"));
    pm_dataset_close(&d);
    /* Opened by a pattern, by a whole stem, and as a file. */
    assert_int_equal(pm_dataset_open(scratch, "f_*", &d), PM_OK);
    assert_int_equal(pm_dataset_get_info(d)->count, 6);
    pm_dataset_close(&d);
    assert_int_equal(pm_dataset_open(scratch, "f_train", &d), PM_OK);
    assert_int_equal(pm_dataset_get_info(d)->count, 5);
    pm_dataset_close(&d);
    assert_int_equal(pm_dataset_open(scratch, "f_train_00002-of-00003.tfrecord", &d), PM_OK);
    assert_int_equal(pm_dataset_get_info(d)->count, 2);
    pm_dataset_close(&d);
    assert_fails(pm_dataset_open(scratch, "test", &d), PM_EDATA, scratch, "test",
                 "the splits are: train, validation");
    assert_fails(pm_dataset_open(scratch, "rain", &d), PM_EDATA, "no split rain");
    assert_fails(pm_dataset_open(scratch, "g_*", &d), PM_EDATA, "g_*", "train, validation");
    unlink(in_scratch("f_train_00001-of-00003.tfrecord"));
    assert_fails(pm_dataset_open(scratch, "train", &d), PM_EDATA, "shard 1 of 3", "missing");
    put("g-train.tfrecord", 1);
    assert_fails(pm_dataset_open(scratch, "train", &d), PM_EDATA, "two data sets", "f_train",
                 "g-train");
    put("train.record", 4);
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK); /* the whole stem wins */
    assert_int_equal(pm_dataset_get_info(d)->count, 4);
    pm_dataset_close(&d);
    assert_fails(pm_dataset_open(in_scratch("nowhere"), "train", &d), PM_EDATA, "nowhere",
                 "no such folder");
    scratch_remove();
}

/* More shards than files are kept open, read in both directions. */
static void many_shards(void **state)
{
    struct pm_dataset *d = NULL;
    char name[64], want[64];

    (void)state;
    scratch_make();
    for (int i = 0; i < 150; i++) {
        snprintf(name, sizeof name, "train-%05d-of-00150", i);
        put(name, 2);
    }
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    assert_int_equal(pm_dataset_get_info(d)->count, 300);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 300; i++) {
            const int k = (i * 7) % 300;
            snprintf(want, sizeof want, "train-%05d-of-00150#%d", k / 2, k % 2);
            assert_record(d, (size_t)k, want);
        }
    int open_files = 0;
    struct dirent *entry;
    DIR *fds = opendir("/proc/self/fd");
    while (fds && (entry = readdir(fds)))
        open_files += entry->d_name[0] != '.';
    if (fds)
        closedir(fds);
    assert_true(open_files < 140);
    pm_dataset_close(&d);
    scratch_remove();
}

static size_t index_files(char *path, size_t size)
{
    struct pm_arena *a = pm_arena_create();
    char **found = NULL, pattern[600];
    size_t count = 0;

    snprintf(pattern, sizeof pattern, "%s/.pumice-*.index", scratch);
    assert_int_equal(pm_glob(a, pattern, &found, &count), PM_OK);
    if (count)
        snprintf(path, size, "%s", found[0]);
    pm_arena_destroy(&a);
    return count;
}

/* The index is stored, used while it matches, and rebuilt when files change or it is damaged. */
static void cached_index(void **state)
{
    struct pm_dataset *d = NULL;
    char path[600], *text = NULL;
    size_t size = 0;
    struct stat before, after;

    (void)state;
    scratch_make();
    put("a_train.tfrecord", 5);
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    pm_dataset_close(&d);
    assert_int_equal(index_files(path, sizeof path), 1);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    assert_record(d, 4, "a_train.tfrecord#4");
    pm_dataset_close(&d);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* a rebuilt index would be another file */
    /* Damage at every byte and cuts at every length: the five records are still read. */
    assert_int_equal(pm_file_read(path, &text, &size), PM_OK);
    for (size_t i = 0; i < size; i++) {
        text[i] ^= 1 << i % 8;
        assert_int_equal(pm_file_write(path, text, i % 3 ? size : i), PM_OK);
        text[i] ^= 1 << i % 8;
        assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
        assert_int_equal(pm_dataset_get_info(d)->count, 5);
        assert_record(d, 3, "a_train.tfrecord#3");
        pm_dataset_close(&d);
    }
    pm_free(text);
    put("a_train.tfrecord", 7);
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    assert_int_equal(pm_dataset_get_info(d)->count, 7);
    pm_dataset_close(&d);
    scratch_remove();
}

static void read_only_folder(void **state)
{
    struct pm_dataset *d = NULL;
    char path[600];
    const uid_t nobody = 65534, me = geteuid();

    (void)state;
    scratch_make();
    put("a_train.tfrecord", 5);
    assert_int_equal(chmod(scratch, 0555), 0);
    if (me == 0 && setresuid(nobody, nobody, 0) != 0) { /* root can write everywhere */
        scratch_remove();
        print_message("skipped: root, and there is no other user to become\n");
        skip();
    }
    assert_int_equal(access(scratch, W_OK), -1);
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    assert_int_equal(pm_dataset_get_info(d)->count, 5);
    pm_dataset_close(&d);
    assert_int_equal(index_files(path, sizeof path), 0);
    if (me == 0)
        assert_int_equal(setresuid(0, 0, 0), 0);
    assert_int_equal(chmod(scratch, 0755), 0);
    scratch_remove();
}

static void described(void **state)
{
    struct pm_dataset *d = NULL;

    (void)state;
    scratch_make();
    put("x_train.tfrecord", 3);
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    const struct pm_dataset_info *info = pm_dataset_get_info(d);
    assert_string_equal(info->name, strrchr(scratch, '/') + 1);
    assert_int_equal(info->num_classes, 0);
    assert_int_equal(info->height, 0);
    pm_dataset_close(&d);
    put_text("labels.txt", "0:background\r\n3:cat: the small one\n1:dog\n");
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    info = pm_dataset_get_info(d);
    assert_int_equal(info->num_classes, 4);
    assert_string_equal(info->labels[0], "background");
    assert_string_equal(info->labels[1], "dog");
    assert_null(info->labels[2]);
    assert_string_equal(info->labels[3], "cat: the small one");
    pm_dataset_close(&d);
    put_text("dataset.json",
             "{\"name\": \"pets\", \"num_classes\": 6, \"height\": 28, \"width\": 30,"
             " \"channels\": 3, \"splits\": {\"train\": 3, \"test\": 9}}");
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    info = pm_dataset_get_info(d);
    assert_string_equal(info->name, "pets");
    assert_int_equal(info->num_classes, 6);
    assert_int_equal(info->height, 28);
    assert_int_equal(info->width, 30);
    assert_int_equal(info->channels, 3);
    assert_null(info->labels[5]);
    pm_dataset_close(&d);
    put_text("dataset.json", "{\"splits\": {\"train\": 4}}");
    assert_fails(pm_dataset_open(scratch, "train", &d), PM_EDATA, "3 records",
                 "dataset.json lists 4");
    put_text("dataset.json", "{\"num_classes\": -1}");
    assert_fails(pm_dataset_open(scratch, "train", &d), PM_EDATA, "dataset.json", "num_classes");
    put_text("dataset.json", "{\"num_classes\": 5e9}"); /* more than an int holds */
    assert_fails(pm_dataset_open(scratch, "train", &d), PM_EDATA, "dataset.json", "num_classes");
    put_text("dataset.json", "{\"num_classes\": ");
    assert_fails(pm_dataset_open(scratch, "train", &d), PM_EDATA, "dataset.json");
    put_text("dataset.json", "{}");
    put_text("labels.txt", "0:a\nb\n");
    assert_fails(pm_dataset_open(scratch, "train", &d), PM_EDATA, "labels.txt:2", "\"b\"");
    assert_null(d);
    scratch_remove();
}

static void *read_all(void *arg)
{
    struct pm_dataset *d = arg;
    uint8_t *buf = NULL;
    size_t capacity = 0, size = 0, bad = 0;
    char want[64];

    for (int pass = 0; pass < 20; pass++)
        for (size_t i = 0; i < pm_dataset_get_info(d)->count; i++) {
            snprintf(want, sizeof want, "train-%05zu-of-00004#%zu", i / 10, i % 10);
            if (pm_dataset_read(d, i, &buf, &capacity, &size) < 0 || size != strlen(want) ||
                memcmp(buf, want, size))
                bad++;
        }
    pm_free(buf);
    return (void *)bad;
}

static void many_threads(void **state)
{
    struct pm_dataset *d = NULL;
    pthread_t thread[4];
    char name[64];

    (void)state;
    scratch_make();
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "train-%05d-of-00004", i);
        put(name, 10);
    }
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_all, d), 0);
    for (int i = 0; i < 4; i++) {
        void *bad = NULL;
        pthread_join(thread[i], &bad);
        assert_null(bad);
    }
    pm_dataset_close(&d);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shard_names),      cmocka_unit_test(sharded),
        cmocka_unit_test(many_shards),      cmocka_unit_test(cached_index),
        cmocka_unit_test(read_only_folder), cmocka_unit_test(described),
        cmocka_unit_test(many_threads),     cmocka_unit_test(sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
