/* The file that stores a driver's compiled pipelines. The first byte chooses: a whole file, or
 * the contents after a corrected header. The second byte is added to the byte of the header that
 * the first one selects. A driver must get the contents only after a valid header, and then
 * completely. */
#include <pumice/base.h>

#include <string.h>

#include "device/pipelines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pm_str file = { 0 };
    size_t body_size = 0;

    if (size < 2)
        return 0;
    const bool whole = data[0] & 1;
    if (!whole)
        pm_pipeline_cache_wrap(&file, data + 2, size - 2);
    else
        pm_str_bytes(&file, data + 2, size - 2);
    const size_t header = whole ? 0 : file.length - (size - 2);
    if (!whole)
        file.text[data[0] / 2 % header] = (char)(file.text[data[0] / 2 % header] + data[1]);
    const char *body = pm_pipeline_cache_body(file.text, file.length, &body_size);
    if (body && (body <= file.text || body + body_size != file.text + file.length))
        __builtin_trap();
    if (!whole && size > 2 && (body != NULL) != (data[1] == 0))
        __builtin_trap(); /* a changed header is refused, a valid one is not */
    pm_str_free(&file);
    return 0;
}
