/* PyTorch files made by this test: invalid calls, views, archives and lengths are refused with
 * one line. Claimed sizes are not allocated. Large strided views give the right values. */
#include <pumice/rng.h>
#include <pumice/tensor_file.h>
#include <sys/resource.h>

#include "formats/torch_common.h"

/* ---- files made by this test ----------------------------------------------------------- */

struct file {
    struct pm_str bytes, directory;
    int entries;
};

static void little(struct pm_str *s, uint64_t v, int bytes)
{
    for (; bytes > 0; bytes--, v >>= 8)
        pm_str_bytes(s, &(uint8_t){ (uint8_t)v }, 1);
}

struct entry {
    const char *name;
    const void *data;
    size_t size;
    int method, flags;
    uint32_t crc;
    uint64_t claimed; /* 0: the real size; else the size in the directory, in 64 bits */
};

static void add_entry(struct file *f, struct entry e)
{
    size_t at = f->bytes.length, name = strlen(e.name);

    pm_str_bytes(&f->bytes, "PK\3\4\0\0\0\0\0\0\0\0\0\0", 14);
    little(&f->bytes, e.crc, 4), little(&f->bytes, e.size, 4), little(&f->bytes, e.size, 4);
    little(&f->bytes, name, 2), little(&f->bytes, 0, 2);
    pm_str_bytes(&f->bytes, e.name, name);
    pm_str_bytes(&f->bytes, e.data, e.size);

    pm_str_bytes(&f->directory, "PK\1\2\0\0\0\0", 8);
    little(&f->directory, (uint64_t)e.flags, 2), little(&f->directory, (uint64_t)e.method, 2);
    little(&f->directory, 0, 4), little(&f->directory, e.crc, 4);
    for (int i = 0; i < 2; i++)
        little(&f->directory, e.claimed ? UINT32_MAX : e.size, 4);
    little(&f->directory, name, 2), little(&f->directory, e.claimed ? 20 : 0, 2);
    little(&f->directory, 0, 10), little(&f->directory, at, 4);
    pm_str_bytes(&f->directory, e.name, name);
    if (e.claimed)
        little(&f->directory, 1, 2), little(&f->directory, 16, 2),
        little(&f->directory, e.claimed, 8), little(&f->directory, e.claimed, 8);
    f->entries++;
}

static void end_file(struct file *f, bool wide)
{
    size_t at = f->bytes.length, size = f->directory.length;

    pm_str_bytes(&f->bytes, f->directory.text ? f->directory.text : "", size);
    if (wide) { /* the 64-bit end record, to which the other one refers */
        size_t end = f->bytes.length;
        pm_str_bytes(&f->bytes, "PK\6\6", 4);
        little(&f->bytes, 44, 8), little(&f->bytes, 45, 2), little(&f->bytes, 45, 2);
        little(&f->bytes, 0, 8), little(&f->bytes, (uint64_t)f->entries, 8);
        little(&f->bytes, (uint64_t)f->entries, 8), little(&f->bytes, size, 8);
        little(&f->bytes, at, 8);
        pm_str_bytes(&f->bytes, "PK\6\7\0\0\0\0", 8);
        little(&f->bytes, end, 8), little(&f->bytes, 1, 4);
    }
    pm_str_bytes(&f->bytes, "PK\5\6\0\0\0\0", 8);
    for (int i = 0; i < 2; i++)
        little(&f->bytes, wide ? 0xffff : (uint64_t)f->entries, 2);
    little(&f->bytes, wide ? UINT32_MAX : size, 4), little(&f->bytes, wide ? UINT32_MAX : at, 4);
    little(&f->bytes, 0, 2);
}

static int open_file(struct file *f, struct pm_tensor_file **out)
{
    char *exact = pm_malloc(f->bytes.length); /* exact size, so that the sanitizer detects a
                                               * read beyond the end */
    int err;

    memcpy(exact, f->bytes.text, f->bytes.length);
    err = pm_torch_open_memory("made", exact, f->bytes.length, out);
    if (err < 0)
        assert_null(*out);
    if (err == 0) { /* readable tensors are read while the bytes exist */
        for (size_t i = 0; i < pm_tensor_file_count(*out); i++) {
            const struct pm_file_tensor *t = pm_tensor_file_get(*out, i);
            double v[64];
            if (t->type != PM_DTYPE_OTHER)
                assert_int_equal(
                    pm_tensor_file_doubles(*out, t, 0, t->count < 64 ? (size_t)t->count : 64, v),
                    0);
        }
    }
    pm_free(exact);
    pm_str_free(&f->bytes);
    pm_str_free(&f->directory);
    return err;
}

/* An archive of a pickle and a storage "0" of 16 bytes. */
static int open_pickle(const void *pickle, size_t size)
{
    struct file f = { 0 };
    struct pm_tensor_file *out = NULL;
    int err;

    add_entry(&f, (struct entry){ .name = "x/data.pkl", .data = pickle, .size = size });
    add_entry(&f, (struct entry){ .name = "x/data/0", .data = "0123456789abcdef", .size = 16 });
    end_file(&f, false);
    err = open_file(&f, &out);
    pm_tensor_file_close(&out);
    return err;
}

#define PICKLE(bytes) open_pickle(bytes, sizeof(bytes) - 1)
#define STORAGE(type, count)                                                                       \
    "(X\7\0\0\0storagectorch\n" type "\nX\1\0\0\0" "0X\3\0\0\0cpu" count "tQ"
#define TENSOR(type, count, first, size, stride)                                                   \
    "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE(type, count) first size stride "\x89" "}tR"

static void pickles_that_are_read(void **state)
{
    (void)state;
    assert_int_equal(
        PICKLE("\x80\2" TENSOR("FloatStorage", "K\4", "K\0", "K\2K\2\x86", "K\2K\1\x86") "."), 0);
    assert_int_equal(PICKLE("\x80\2]q\0h\0a."), 0); /* a list that contains itself: no tensors */
    assert_int_equal(PICKLE("\x80\2}."), 0);
    assert_int_equal(PICKLE("\x80\2}X\1\0\0\0ec__torch__\nFormat\nK\1Rs."), 0); /* an enumeration */
    /* One tensor under several names. */
    assert_int_equal(PICKLE("\x80\2" TENSOR("ByteStorage", "K\x10", "K\0", "K\2\x85", "K\1\x85")
                            "q\0" "0]h\0ah\0ah\0a."), 0);
}

static void calls_are_not_made(void **state)
{
    (void)state;
    assert_fails(PICKLE("\x80\2" "cposix\nsystem\nX\2\0\0\0ls\x85R."), "'posix.system'",
                 "would run code", "offset");
    assert_fails(PICKLE("\x80\4\x8c\2os\x8c\6system\x93\x8c\2ls\x85R."), "'os.system'");
    assert_fails(PICKLE("\x80\2" "c__builtin__\neval\nX\1\0\0\0" "1\x85R."), "'__builtin__.eval'");
    assert_fails(PICKLE("\x80\2"
                        "ctorch.storage\n_load_from_bytes\nC\1x\x85R."),
                 "_load_from_bytes");
    /* An unknown function beside valid tensors; it is never called. */
    assert_fails(PICKLE("\x80\2}X\1\0\0\0w" TENSOR("FloatStorage", "K\4", "K\0", "K\4\x85",
                                                   "K\1\x85") "sX\1\0\0\0xcsubprocess\nPopen\ns."),
                 "'subprocess.Popen'");
    /* An unknown function makes the only tensor. */
    assert_fails(
        PICKLE("\x80\2"
               "cmine\nmake\n" TENSOR("FloatStorage", "K\4", "K\0", "K\4\x85", "K\1\x85") "\x85R."),
        "'mine.make'", "not run");
    assert_fails(PICKLE("\x80\2" "cmine\nThing\n)\x81."), "no tensors", "mine.Thing");
    assert_fails(PICKLE("\x80\2K\1."), "no tensors");
}

static void odd_pickles(void **state)
{
    (void)state;
    assert_fails(PICKLE("\x80\2"), "cut short");
    assert_fails(PICKLE("\x80\6N."), "protocol 6");
    assert_fails(PICKLE("\x80\1N."), "protocol 1");
    assert_fails(PICKLE("I1\n."), "opcode 0x49");
    assert_fails(PICKLE("\x80\2."), "stack is empty");
    assert_fails(PICKLE("\x80\2(."), "within a mark");
    assert_fails(PICKLE("\x80\2t."), "mark");
    assert_fails(PICKLE("\x80\2K\1K\2s."), "stack is empty");
    assert_fails(PICKLE("\x80\2K\1K\2K\3s."), "not a dict");
    assert_fails(PICKLE("\x80\2}(K\1u."), "not a dict");
    assert_fails(PICKLE("\x80\2K\1K\2a."), "not a list");
    assert_fails(PICKLE("\x80\2h\5."), "memo number 5");
    assert_fails(PICKLE("\x80\2K\1K\1R."), "no tensors");
    assert_fails(PICKLE("\x80\2K\1Q."), "persistent id");
    assert_fails(PICKLE("\x80\2" "cno\nend"), "cut short");
    assert_fails(PICKLE("\x80\2K\1\x86."), "fewer");
    assert_fails(PICKLE("\x80\2" STORAGE("StringStorage", "K\4") "."), "torch.StringStorage");
    assert_fails(PICKLE("\x80\2" STORAGE("FloatStorage", "J\xff\xff\xff\xff") "."), "count");
}

static void views_beyond_their_storage(void **state)
{
    (void)state;
#define VIEW(count, first, size, stride) \
    PICKLE("\x80\2}X\1\0\0\0w" TENSOR("FloatStorage", count, first, size, stride) "s.")
    assert_int_equal(VIEW("K\4", "K\1", "K\3\x85", "K\1\x85"), 0);
    assert_int_equal(VIEW("K\4", "K\3", "K\5\x85", "K\0\x85"), 0);
    assert_int_equal(VIEW("K\4", "K\x09", "K\0\x85", "K\1\x85"), 0); /* no elements: anywhere */
    assert_fails(VIEW("K\4", "K\2", "K\3\x85", "K\1\x85"), "'w'", "beyond the 16 bytes");
    assert_fails(VIEW("K\4", "K\4", "K\1\x85", "K\1\x85"), "'w'", "beyond");
    assert_fails(VIEW("K\4", "K\0", "K\2\x85", "K\4\x85"), "'w'", "beyond");
    assert_fails(VIEW("K\4", "K\0", "K\2\x85", "\x8a\x08\0\0\0\0\0\0\0\x40\x85"), "'w'", "beyond");
    assert_fails(VIEW("K\4", "K\0", "K\2\x85", "J\xff\xff\xff\xff\x85"), "'w'", "below zero");
    assert_fails(VIEW("K\4", "K\0", "J\xff\xff\xff\xff\x85", "K\1\x85"), "'w'", "below zero");
    assert_fails(VIEW("K\4", "K\0", "K\2\x85", ")"), "one length");
    assert_fails(VIEW("K\4", "J\xff\xff\xff\xff", "K\1\x85", "K\1\x85"), "bad offset");
    assert_fails(
        VIEW("K\4", "K\0", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t"), "'w'",
        "more than 8");
    assert_fails(VIEW("K\5", "K\0", "K\4\x85", "K\1\x85"), "'x/data/0' has 16 bytes", "need 5");
#undef VIEW
}

/* ---- lengths, depths, bombs ------------------------------------------------------------ */

/* A huge number in every place where a file states a length. */
static void lengths_are_not_believed(void **state)
{
    struct pm_tensor_file *out = NULL;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct rlimit before, small;
    unsigned long long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");

    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%llu", &pages), 1);
    fclose(statm);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    small = before;
    small.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (64 << 20);
    assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
#endif
    (void)state;
    assert_fails(PICKLE("\x80\4\x8d\0\0\0\0\3\0\0\0."), "cut short");
    assert_fails(PICKLE("\x80\4\x8e\0\0\0\0\3\0\0\0."), "cut short");
    assert_fails(PICKLE("\x80\4\x96\0\0\0\0\3\0\0\0."), "cut short");
    assert_fails(PICKLE("\x80\4\x95\0\0\0\0\3\0\0\0N."), "cut short");
    assert_fails(PICKLE("\x80\2X\xff\xff\xff\xff."), "cut short");
    assert_fails(PICKLE("\x80\2\x8b\xff\xff\xff\x7f."), "cut short");
    assert_fails(PICKLE("\x80\2Nr\xff\xff\xff\xff."), "memo number 4294967295");
    assert_fails(PICKLE("\x80\2" TENSOR("FloatStorage", "\x8a\6\0\0\0\0\0\3", "K\0", "K\1\x85",
                                        "K\1\x85") "."),
                 "has 16 bytes", "need 3298534883328");
    assert_fails(PICKLE("\x80\2" TENSOR("FloatStorage", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
                                        "K\0", "K\1\x85", "K\1\x85") "."),
                 "has 16 bytes");
    assert_fails(PICKLE("\x80\2" TENSOR("FloatStorage", "K\4", "K\0", "\x8a\6\0\0\0\0\0\3\x85",
                                        "K\0\x85") "."),
                 "'tensor'", "expanded");
    assert_fails(
        PICKLE("\x80\2" TENSOR("FloatStorage", "K\4", "K\0",
                               "\x8a\6\0\0\0\0\0\3\x8a\6\0\0\0\0\0\3\x86", "K\0K\0\x86") "."),
        "larger than any file");
    struct file f = { 0 };
    add_entry(&f, (struct entry){ .name = "x/data.pkl", .data = "\x80\2N.", .size = 4,
                                  .claimed = UINT64_C(10) << 30 });
    end_file(&f, false);
    assert_fails(open_file(&f, &out), "'x/data.pkl' of 10737418240 bytes", "damaged");
    f = (struct file){ 0 };
    pm_str_bytes(&f.bytes, "PK\3\4PK\6\6", 8);
    little(&f.bytes, 0, 20);
    for (int i = 0; i < 4; i++)
        little(&f.bytes, UINT64_C(10) << 30, 8);
    pm_str_bytes(&f.bytes, "PK\6\7\0\0\0\0", 8);
    little(&f.bytes, 4, 12);
    pm_str_bytes(&f.bytes, "PK\5\6", 4);
    little(&f.bytes, 0, 18);
    assert_fails(open_file(&f, &out), "10737418240 entries");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
#endif
}

static void repeat(struct pm_str *s, const char *text, size_t size, int times)
{
    for (int i = 0; i < times; i++)
        pm_str_bytes(s, text, size);
}

static int open_text(struct pm_str *s)
{
    int err = open_pickle(s->text, s->length);

    pm_str_free(s);
    return err;
}

static void depth_and_sharing_are_bounded(void **state)
{
    static const char tensor[] = TENSOR("FloatStorage", "K\4", "K\0", "K\4\x85", "K\1\x85");
    struct pm_str s = { 0 };

    (void)state;
    for (int depth = 200; depth <= 100000; depth += 99800) { /* nested lists */
        pm_str_bytes(&s, "\x80\2", 2);
        repeat(&s, "]", 1, depth);
        pm_str_bytes(&s, tensor, sizeof tensor - 1);
        repeat(&s, "a", 1, depth);
        pm_str_bytes(&s, ".", 1);
        if (depth == 200)
            assert_int_equal(open_text(&s), 0);
        else
            assert_fails(open_text(&s), "256 levels");
    }
    pm_str_bytes(&s, "\x80\2", 2); /* nested marks */
    repeat(&s, "(", 1, 100000);
    assert_fails(open_text(&s), "marks");
    /* Each list contains the previous one twice: 2^60 names of one tensor. */
    for (int with = 0; with < 2; with++) {
        pm_str_bytes(&s, "\x80\2", 2);
        if (with)
            pm_str_bytes(&s, tensor, sizeof tensor - 1);
        else
            pm_str_bytes(&s, "N", 1);
        for (int i = 0; i < 60; i++) {
            char step[] = "q?0](h?h?e";
            step[1] = step[6] = step[8] = (char)i;
            pm_str_bytes(&s, step, sizeof step - 1);
        }
        pm_str_bytes(&s, ".", 1);
        assert_fails(open_text(&s), "give endless names");
    }
    pm_str_bytes(&s, "\x80\2", 2); /* an ordered dict made from the same list many times */
    pm_str_bytes(&s, "ccollections\nOrderedDict\nq\0" "0](", 30);
    repeat(&s, "K\1K\1\x86", 5, 3000);
    pm_str_bytes(&s, "e\x85q\1" "0", 5);
    repeat(&s, "h\0h\1R0", 6, 3000);
    pm_str_bytes(&s, "N.", 2);
    assert_fails(open_text(&s), "more than 4194304 values");
    pm_str_bytes(&s, "\x80\2}", 3); /* a key longer than any name may be */
    pm_str_bytes(&s, "X\x88\x13\0\0", 5);
    repeat(&s, "k", 1, 5000);
    pm_str_bytes(&s, tensor, sizeof tensor - 1);
    pm_str_bytes(&s, "s.", 2);
    assert_fails(open_text(&s), "not a text of at most 4096 bytes");
    assert_fails(PICKLE("\x80\2}X\3\0\0\0a\0b" TENSOR("FloatStorage", "K\4", "K\0", "K\4\x85",
                                                      "K\1\x85") "s."),
                 "not a text");
}

/* ---- large views ----------------------------------------------------------------------- */

static uint8_t number_at(uint64_t place)
{
    return (uint8_t)(place * UINT64_C(2654435761) >> 16);
}

/* More than one piece of gathering: a view of a storage of 18,008,500 bytes. Each element is a
 * function of its place. Elements are read at random places and in order across the pieces. */
static void large_views(void **state)
{
    static const char pickle[] = "\x80\2(" /* dims 2 x 4500 x 4000, strides 1, 1, 4500; 3500 x 2 x
                                              2570, strides 1, 8995000, 3500 */
        TENSOR("ByteStorage", "J\xb4\xc9\x12\1", "K\x0b", "K\2M\x94\x11M\xa0\x0f\x87",
               "K\1K\1M\x94\x11\x87")
            TENSOR("ByteStorage", "J\xb4\xc9\x12\1", "K\x0b", "M\xac\x0dK\2M\x0a\x0a\x87",
                   "K\1J\xb8\x40\x89\0M\xac\x0d\x87") "t.";
    enum { SIZE = 0x112c9b4 };
    static const int64_t stride[2][3] = { { 1, 1, 4500 }, { 1, 0x8940b8, 3500 } };
    uint8_t *storage = pm_malloc(SIZE), *line = pm_malloc(1 << 16);
    struct pm_rng r = pm_rng_make(7, pm_hash("views"), 0, 0);
    struct file made = { 0 };
    struct pm_tensor_file *f = NULL;

    (void)state;
    for (uint64_t i = 0; i < SIZE; i++)
        storage[i] = number_at(i);
    add_entry(&made,
              (struct entry){ .name = "x/data.pkl", .data = pickle, .size = sizeof pickle - 1 });
    add_entry(&made, (struct entry){ .name = "x/data/0", .data = storage, .size = SIZE });
    end_file(&made, false);
    assert_int_equal(pm_torch_open_memory("made", made.bytes.text, made.bytes.length, &f), 0);
    assert_int_equal(pm_tensor_file_count(f), 2);
    for (size_t which = 0; which < 2; which++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(f, which);
        assert_true(t->bytes > (16 << 20));
        for (int trial = 0; trial < 40; trial++) {
            uint64_t n = trial % 2 ? 1 << 16 : 100,
                     at = (uint64_t)pm_rng_int(&r, 0, (int64_t)(t->bytes - n));
            if (trial < 20) /* in order */
                at = (t->bytes - n) / 19 * (uint64_t)trial;
            assert_int_equal(pm_tensor_file_bytes(f, t, at, (size_t)n, line), 0);
            for (uint64_t i = 0; i < n; i++) {
                uint64_t rest = at + i, place = 11;
                for (int d = 3; d-- > 0; rest /= (uint64_t)t->dim[d])
                    place += rest % (uint64_t)t->dim[d] * (uint64_t)stride[which][d];
                if (line[i] != number_at(place))
                    fail_msg("tensor %zu differs at %llu", which, (unsigned long long)(at + i));
            }
        }
    }
    pm_tensor_file_close(&f);
    pm_str_free(&made.bytes);
    pm_str_free(&made.directory);
    pm_free(storage);
    pm_free(line);
}

/* ---- archives -------------------------------------------------------------------------- */

static const char tensor_pickle[] =
    "\x80\2" TENSOR("FloatStorage", "K\4", "K\0", "K\4\x85", "K\1\x85") ".";
static const struct entry good[] = {
    { .name = "x/data.pkl", .data = tensor_pickle, .size = sizeof tensor_pickle - 1 },
    { .name = "x/data/0", .data = "0123456789abcdef", .size = 16 },
};

/* The valid archive with entry `at` changed, and one more entry. */
static int open_changed(int at, struct entry change, const struct entry *more, bool wide)
{
    struct file f = { 0 };
    struct pm_tensor_file *out = NULL;
    int err;

    for (int i = 0; i < 2; i++)
        add_entry(&f, i == at ? change : good[i]);
    if (more)
        add_entry(&f, *more);
    end_file(&f, wide);
    err = open_file(&f, &out);
    pm_tensor_file_close(&out);
    return err;
}

static struct entry changed(int at, struct entry with)
{
    struct entry e = good[at];

    e.method = with.method, e.flags = with.flags, e.crc = with.crc;
    return e;
}

static void archives(void **state)
{
    struct entry more = { .name = "x/byteorder", .data = "little", .size = 6 };

    (void)state;
    assert_int_equal(open_changed(-1, good[0], &more, false), 0);
    assert_int_equal(open_changed(-1, good[0], &more, true), 0);
    struct entry full = good[1]; /* sizes in their 64-bit form */
    full.claimed = full.size;
    assert_int_equal(open_changed(1, full, &more, true), 0);
    full.claimed = UINT64_C(1) << 40;
    assert_fails(open_changed(1, full, &more, true), "'x/data/0' of 1099511627776 bytes",
                 "damaged");
    more.data = "big", more.size = 3;
    assert_fails(open_changed(-1, good[0], &more, false), "'big'", "'little'");
    more = (struct entry){ .name = "x/version", .data = "3\n", .size = 2 };
    assert_int_equal(open_changed(-1, good[0], &more, false), 0);
    more.data = "99";
    assert_fails(open_changed(-1, good[0], &more, false), "version 99", "1 to 10");
    more = good[1];
    assert_fails(open_changed(-1, good[0], &more, false), "'x/data/0' twice");
    assert_fails(open_changed(1, changed(1, (struct entry){ .method = 8 }), NULL, false),
                 "'x/data/0'", "compressed", "method 8");
    assert_fails(open_changed(0, changed(0, (struct entry){ .flags = 1 }), NULL, false),
                 "'x/data.pkl'", "encrypted");
    assert_fails(open_changed(0, changed(0, (struct entry){ .crc = 1 }), NULL, false),
                 "'x/data.pkl'", "crc32", "00000001");
    more = good[1], more.name = "x/data/1";
    assert_fails(open_changed(1, more, NULL, false), "no 'x/data/0'");
    more = good[0], more.name = "x/model.json";
    assert_fails(open_changed(0, more, NULL, false), "without data.pkl", "x/data/0");
    struct file f = { 0 };
    struct pm_tensor_file *out = NULL;
    end_file(&f, false);
    assert_fails(open_file(&f, &out), "empty");
}

static void no_files_of_pytorch(void **state)
{
    char tar[600] = "pickle";
    struct pm_tensor_file *out = NULL;
    static const char big[] = "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
                              "\x80\2M\xe9\3.\x80\2}X\x0d\0\0\0little_endian\x89s.";
    static const char version[] =
        "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\2M\xe8\3.";

    (void)state;
    memcpy(tar + 257, "ustar", 5);
    assert_fails(pm_torch_open_memory("a.pt", tar, sizeof tar, &out), "a.pt", "tar archive");
    assert_fails(pm_torch_open_memory("a.pt", "abc", 3, &out), "a.pt", "neither a zip archive");
    assert_fails(pm_torch_open_memory("a.pt", "\x80\2}.", 4, &out), "torch.save did not write it");
    assert_fails(pm_torch_open_memory("a.pt", big, sizeof big - 1, &out), "low byte first");
    assert_fails(pm_torch_open_memory("a.pt", version, sizeof version - 1, &out),
                 "its version is not 1001");
    assert_null(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pickles_that_are_read),
        cmocka_unit_test(calls_are_not_made),
        cmocka_unit_test(odd_pickles),
        cmocka_unit_test(views_beyond_their_storage),
        cmocka_unit_test(lengths_are_not_believed),
        cmocka_unit_test(depth_and_sharing_are_bounded),
        cmocka_unit_test(large_views),
        cmocka_unit_test(archives),
        cmocka_unit_test(no_files_of_pytorch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
