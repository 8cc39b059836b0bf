/* The orientation of a picture, from its EXIF data: tag 0x0112 of the first directory. EXIF data is
 * a TIFF file inside the picture. In a JPEG it is the first APP1 segment that starts with "Exif";
 * in a PNG it is the chunk eXIf, in a WebP the chunk EXIF. A TIFF picture has the tag in its own
 * first directory. Damaged or missing data means 1, upright, as in other readers. */
#include <string.h>
#include <zlib.h>

#include "data/picture.h"

static uint64_t number(const uint8_t *p, int bytes, bool big)
{
    uint64_t v = 0;

    for (int i = 0; i < bytes; i++)
        v = v << 8 | p[big ? i : bytes - 1 - i];
    return v;
}

/* The directory is a count, then entries: tag, type (3: 16 bits), count of values, the value. */
static int of_directory(const uint8_t *p, size_t size, uint64_t at, bool big, bool large)
{
    const int wide = large ? 8 : 4;                             /* bytes of an entry's count */
    const size_t start = large ? 8 : 2, step = large ? 20 : 12; /* of the count, of an entry */

    if (at > size - start)
        return 1;
    const uint64_t count = number(p + at, (int)start, big), room = (size - at - start) / step;
    for (size_t i = 0; i < count && i < room; i++) {
        const uint8_t *entry = p + at + start + step * i;
        const uint64_t value = number(entry + 4 + wide, 2, big);

        if (number(entry, 2, big) == 0x0112)
            return number(entry + 2, 2, big) == 3 && number(entry + 4, wide, big) == 1 &&
                   value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* TIFF layout: byte order, 42, offset of the first directory. BigTIFF: byte order, 43, 8, 0, the
 * offset; its offsets and counts have 64 bits. */
int pm_exif_of_tiff(const uint8_t *p, size_t size)
{
    if (size < 16 || (memcmp(p, "II", 2) && memcmp(p, "MM", 2)))
        return 1;
    const bool big = p[0] == 'M';
    const uint64_t version = number(p + 2, 2, big);

    if (version == 42)
        return of_directory(p, size, number(p + 4, 4, big), big, false);
    return version == 43 ? of_directory(p, size, number(p + 8, 8, big), big, true) : 1;
}

int pm_exif_of_jpeg(const uint8_t *p, size_t size)
{
    for (size_t at = 2; at + 4 <= size;) {
        const uint8_t marker = p[at + 1];
        if (p[at] != 0xff || marker == 0xff) {
            at++;
            continue;
        }
        if (marker <= 1 || (marker >= 0xd0 && marker <= 0xd8)) { /* no length follows */
            at += 2;
            continue;
        }
        const size_t length = number(p + at + 2, 2, true);
        if (marker == 0xda || marker == 0xd9 || length < 2 || length > size - at - 2)
            return 1;
        if (marker == 0xe1 && length >= 8 && !memcmp(p + at + 4, "Exif\0", 6))
            return pm_exif_of_tiff(p + at + 10, length - 8);
        at += 2 + length;
    }
    return 1;
}

int pm_exif_of_png(const uint8_t *p, size_t size)
{
    for (size_t at = 8; size - at >= 12;) {
        const size_t length = number(p + at, 4, true);
        if (length > size - at - 12)
            return 1;
        if (!memcmp(p + at + 4, "eXIf", 4))
            return crc32(0, p + at + 4, (uInt)length + 4) == number(p + at + 8 + length, 4, true)
                       ? pm_exif_of_tiff(p + at + 8, length) : 1;
        at += 12 + length;
    }
    return 1;
}

/* "RIFF", size, "WEBP", then chunks: name, size of the contents, contents, padded to an even size.
 * Some programs write "Exif\0\0" before the TIFF data, as in a JPEG. */
int pm_exif_of_webp(const uint8_t *p, size_t size)
{
    for (size_t at = 12; at + 8 <= size;) {
        const size_t length = number(p + at + 4, 4, false);
        const uint8_t *contents = p + at + 8;
        if (length > size - at - 8)
            return 1;
        if (!memcmp(p + at, "EXIF", 4)) {
            const size_t skip = length >= 6 && !memcmp(contents, "Exif\0", 6) ? 6 : 0;
            return pm_exif_of_tiff(contents + skip, length - skip);
        }
        at += 8 + length + length % 2;
    }
    return 1;
}
