/* A file of verdicts about a driver's kernels. The first byte chooses whether the checksum in
 * the last line is corrected, so that the other lines are read. Verdicts that are read, saved
 * and read again must be the same. */
#include "fuzz.h"

#include "verify/verify_private.h"

#include <dirent.h>

static struct pm_device *device;
static char path[512];

static void save(struct pm_verdicts *k)
{
    const struct pm_verify nothing = { 0 };

    pm_verdicts_save(k, &nothing);
}

/* Makes a device and sets the name of its file. */
static void begin(void)
{
    struct pm_device_info *list = NULL;
    const struct dirent *e;
    size_t count, index;
    DIR *d;

    setenv("XDG_CACHE_HOME", fuzz_folder, 1);
    setenv("OCL_ICD_VENDORS", "/nonexistent", 1); /* drivers leak a few bytes */
    if (pm_device_list(&list, &count) < 0 ||
        pm_device_find(list, count, "cpu", "fuzz", &index) < 0 ||
        pm_device_open(&list[index], &(struct pm_device_options){ .threads = 1 }, &device) < 0)
        abort();
    pm_free(list);
    struct pm_verdicts *k = pm_verdicts_load(device);
    save(k);
    pm_verdicts_free(&k);
    d = opendir(fuzz_path("pumice"));
    while (d && (e = readdir(d)) != NULL)
        if (strncmp(e->d_name, "verified-", 9) == 0)
            snprintf(path, sizeof path, "%s/pumice/%.256s", fuzz_folder, e->d_name);
    if (!d || !path[0])
        abort();
    closedir(d);
}

static void put_file(const uint8_t *data, size_t size, bool sum)
{
    struct pm_str s = { 0 };

    if (sum)
        pm_str_add(&s, "pumice verdicts 1\n");
    pm_str_bytes(&s, data, size);
    if (sum)
        pm_str_add(&s, "sum %016llx\n", (unsigned long long)pm_hash_bytes(s.text, s.length, 1));
    fuzz_write(path, s.text, s.length);
    pm_str_free(&s);
}

static bool same(const struct pm_verified *a, const struct pm_verified *b)
{
    return strcmp(a->kernel, b->kernel) == 0 && strcmp(a->variant, b->variant) == 0 &&
           a->verdict == b->verdict && a->calls == b->calls && a->values == b->values;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct pm_verified *first, *second;
    size_t n, m;

    if (size == 0)
        return 0;
    if (fuzz_begin())
        begin();
    put_file(data + 1, size - 1, data[0] % 2);
    struct pm_verdicts *k = pm_verdicts_load(device), *again;
    first = pm_verdicts_list(k, &n);
    for (size_t i = 0; i < n; i++)
        if (pm_verdicts_find(k, first[i].kernel, first[i].variant) != &first[i])
            __builtin_trap();
    save(k);
    again = pm_verdicts_load(device);
    second = pm_verdicts_list(again, &m);
    if (n != m)
        __builtin_trap();
    for (size_t i = 0; i < n; i++)
        if (!same(&first[i], &second[i]))
            __builtin_trap();
    pm_verdicts_free(&k);
    pm_verdicts_free(&again);
    return 0;
}
