/* A TFRecord file in memory. The first byte chooses: the bytes unchanged, or cut into records
 * with correct checksums whose lengths come from the input. */
#include "formats/tfrecord.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int fd, const void *bytes, size_t size)
{
    if (write(fd, bytes, size) != (ssize_t)size)
        __builtin_trap();
}

/* Writes these length bytes, their correct checksum, and the contents. */
static void put_record(int fd, const uint8_t *length, const uint8_t *body, size_t size)
{
    uint32_t crc = pm_crc32c_masked(length, 8);

    put(fd, length, 8);
    put(fd, &crc, 4);
    put(fd, body, size);
    crc = pm_crc32c_masked(body, size);
    put(fd, &crc, 4);
}

static void walk(int fd, uint64_t file_size)
{
    struct pm_record_place place = { .path = "fuzz" };
    uint64_t length;

    while (place.offset < file_size &&
           pm_tfrecord_length(fd, file_size, place, &length) >= 0) {
        if (length > file_size)
            __builtin_trap(); /* the whole record must lie inside the file */
        uint8_t *buf = pm_malloc((size_t)length + 4);
        int err = pm_tfrecord_data(fd, place, buf, length);
        pm_free(buf);
        if (err < 0)
            return;
        place.offset += PM_TFRECORD_HEAD + length + PM_TFRECORD_TAIL;
        place.number++;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd;

    if (size < 1 || (fd = memfd_create("fuzz", 0)) < 0)
        return 0;
    if (data[0] & 1)
        put(fd, data + 1, size - 1);
    else
        for (size_t at = 1; at + 9 <= size;) {
            size_t body = data[at + 8] < size - at - 9 ? data[at + 8] : size - at - 9;
            put_record(fd, data + at, data + at + 9, body);
            at += 9 + body;
        }
    walk(fd, (uint64_t)lseek(fd, 0, SEEK_END));
    close(fd);
    return 0;
}
