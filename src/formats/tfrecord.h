/* tfrecord, internal: iterates over the records of an open file; the framing of a record. */
#ifndef PUMICE_FORMATS_TFRECORD_H
#define PUMICE_FORMATS_TFRECORD_H

#include <pumice/formats.h>

enum { PM_TFRECORD_HEAD = 12, PM_TFRECORD_TAIL = 4 };

/* Sizes of the header before and the footer after a record's data. */
void pm_tfrecord_frame(const void *data, size_t size, uint8_t head[PM_TFRECORD_HEAD],
                       uint8_t tail[PM_TFRECORD_TAIL]);

/* pm_crc32c with tables. pm_crc32c itself uses the processor's instruction if there is one. */
uint32_t pm_crc32c_portable(const void *data, size_t size);

/* The position of a record, for messages. */
struct pm_record_place {
    const char *path;
    uint64_t number, offset;
};

/* Reads exactly size bytes at offset; PM_EDATA when the file ends before. */
int pm_read_at(int fd, void *buf, size_t size, uint64_t offset, const char *path);
/* Reads the length of the record whose header starts at offset. Checks the checksum of the length,
 * and that the whole record lies within file_size. */
int pm_tfrecord_length(int fd, uint64_t file_size, struct pm_record_place place, uint64_t *length);
/* Reads the `length` data bytes of the record at offset into buf, which has room for length + 4
 * bytes, and checks their CRC. */
int pm_tfrecord_data(int fd, struct pm_record_place place, uint8_t *buf, uint64_t length);

#endif
