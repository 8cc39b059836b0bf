/* tfrecord, inside the library: walking over the records of one open file, and the frame of one. */
#ifndef PUMICE_FORMATS_TFRECORD_H
#define PUMICE_FORMATS_TFRECORD_H

#include <pumice/formats.h>

enum { PM_TFRECORD_HEAD = 12, PM_TFRECORD_TAIL = 4 };

/* What stands before and after a record's data in the file. */
void pm_tfrecord_frame(const void *data, size_t size, uint8_t head[PM_TFRECORD_HEAD],
                       uint8_t tail[PM_TFRECORD_TAIL]);

/* The table's form of pm_crc32c, which takes the processor's instruction where there is one. */
uint32_t pm_crc32c_portable(const void *data, size_t size);

/* Where record `number` of the file stands, for messages. */
struct pm_record_place {
    const char *path;
    uint64_t number, offset;
};

/* Reads exactly size bytes at offset; PM_EDATA when the file ends before. */
int pm_read_at(int fd, void *buf, size_t size, uint64_t offset, const char *path);
/* Length of the record whose header starts at offset; its checksum and that the whole record lies
 * within file_size are checked. */
int pm_tfrecord_length(int fd, uint64_t file_size, struct pm_record_place place, uint64_t *length);
/* Data of `length` bytes of the record at offset into buf, which holds length + 4; CRC checked. */
int pm_tfrecord_data(int fd, struct pm_record_place place, uint8_t *buf, uint64_t length);

#endif
