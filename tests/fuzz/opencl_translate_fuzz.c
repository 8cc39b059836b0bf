/* The translation of shaders to OpenCL C. The first byte chooses: a whole module, or one of the
 * program's shaders with changed words. Then the second byte is the shader's number, and every 7
 * bytes are a change: what to do, a position and a value. A translation fails with PM_EDEVICE or
 * returns a whole program. */
#include <pumice/base.h>

#include <stdlib.h>
#include <string.h>

#include "device/opencl/translate.h"
#include "device/shader_table.h"
#include "device/spirv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_SHADERS = 256, CHANGE = 7 };

/* The words of shader `number`, with frozen constants; they are made once. */
static const uint32_t *shader_words(size_t number, size_t *count)
{
    static uint32_t *words[MOST_SHADERS];
    static size_t counts[MOST_SHADERS];
    struct pm_module_info info;
    size_t shaders = 0;

    while (pm_shader_table[shaders].name)
        shaders++;
    number %= shaders;
    if (!words[number]) {
        const struct pm_shader *s = &pm_shader_table[number];

        if (pm_spirv_freeze(s->words, s->bytes / 4, NULL, 0, UINT32_MAX, &words[number],
                            &counts[number], &info) < 0)
            abort();
    }
    *count = counts[number];
    return words[number];
}

/* Applies one change; returns the new number of words. */
static size_t change(uint32_t *words, size_t count, const uint8_t *c)
{
    const size_t at = ((size_t)c[1] | (size_t)c[2] << 8) % count;
    const uint32_t value = c[3] | (uint32_t)c[4] << 8 | (uint32_t)c[5] << 16 |
                           (uint32_t)c[6] << 24;

    switch (c[0] % 5) {
    case 0: words[at] = value; return count;
    case 1: words[at] = words[value % count]; return count;
    case 2: words[at] += value; return count;
    case 3: words[at] = (words[at] & 0xffff0000) | (value & 0xffff); return count;
    default: return at ? at : count; /* truncates it */
    }
}

static void translate(const uint32_t *words, size_t count, bool fma)
{
    const struct pm_cl_dialect dialect = { .fma = fma };
    struct pm_str text = { 0 };
    struct pm_cl_kernel kernel;
    const int err = pm_cl_translate("fuzz", words, count, &dialect, &text, &kernel);

    if (err == PM_OK ? text.length < 2 || strcmp(text.text + text.length - 2, "}\n") != 0
                     : err != PM_EDEVICE || !pm_is_line(pm_error_text()))
        __builtin_trap();
    pm_str_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint32_t *from = NULL;
    const bool whole = size > 0 && data[0] & 1;
    size_t count;
    uint32_t *words;

    if (size < 2)
        return 0;
    if (!whole)
        from = shader_words(data[1], &count);
    else
        count = (size - 1) / 4;
    words = pm_malloc(count * 4 + 4);
    memcpy(words, whole ? (const void *)(data + 1) : from, count * 4);
    for (size_t i = 2; !whole && i + CHANGE <= size; i += CHANGE)
        count = change(words, count, data + i);
    words = pm_realloc(words, count * 4 + (count == 0)); /* so that a read beyond it is found */
    translate(words, count, data[0] & 2);
    pm_free(words);
    return 0;
}
