/* A configuration with base files. The input holds main.json, a.json, b.json and sub/c.json in
 * this order, separated by the byte 30; an empty part leaves no file. The printed form of an
 * accepted configuration needs no base and prints the same again. */
#include "fuzz.h"
#include "fuzz_config.h"

/* Names outside the folder would read files of the machine. */
static bool leads_out(const char *text)
{
    return strstr(text, "..") || strstr(text, "\"/") || strchr(text, '\\');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = { "main.json", "a.json", "b.json", "sub/c.json" };
    struct pm_config *c = NULL;
    size_t at = 0;

    if (fuzz_begin() && pm_make_folders(fuzz_path("sub")) < 0)
        abort();
    char *text = pm_malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    const bool skip = strlen(text) != size || leads_out(text);
    pm_free(text);
    if (skip)
        return 0;
    fuzz_put_parts(names, PM_COUNT(names), data, size, &at);
    pm_config_load(fuzz_path("main.json"), NULL, 0, fuzz_open_sections(), &c);
    fuzz_check_config(fuzz_print_config(&c));
    return 0;
}
