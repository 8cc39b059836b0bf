/* Unpacking an archive. The first byte chooses: a whole file (tar, tar.gz, zip), or a tar file
 * built from the rest, with correct checksums. Its entries are separated by the byte 30; each
 * holds a character for the type, a name up to a newline, a link's target up to a newline, and
 * the contents. Afterwards nothing may lie outside the folder, and the folder may hold files and
 * folders only. */
#include "fuzz.h"

#include <dirent.h>
#include <ftw.h>

#include "data/download/download.h"

enum { TAR_BLOCK = 512 };

static void field(char *block, size_t at, size_t room, const uint8_t *data, size_t size)
{
    memcpy(block + at, data, size < room ? size : room);
}

/* Reads a line of the entry; *data moves past it. */
static size_t line(const uint8_t **data, size_t *size, const uint8_t **text)
{
    const uint8_t *end = *size ? memchr(*data, '\n', *size) : NULL;
    const size_t length = end ? (size_t)(end - *data) : *size, used = length + (end != NULL);

    *text = *data;
    *data += used, *size -= used;
    return length;
}

static void add_entry(struct pm_str *tar, const uint8_t *data, size_t size)
{
    char block[TAR_BLOCK] = "", zeros[TAR_BLOCK] = "";
    const uint8_t *text;
    unsigned sum = 0;
    size_t n;

    if (size == 0)
        return;
    block[156] = (char)*data++, size--;
    n = line(&data, &size, &text), field(block, 0, 100, text, n);
    n = line(&data, &size, &text), field(block, 157, 100, text, n);
    snprintf(block + 100, 8, "%07o", 0644);
    snprintf(block + 124, 12, "%011zo", size);
    memcpy(block + 257, "ustar\0" "00", 8);
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < sizeof block; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    pm_str_bytes(tar, block, sizeof block);
    pm_str_bytes(tar, data, size);
    pm_str_bytes(tar, zeros, (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

static int check_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)path, (void)ftw;
    if ((type != FTW_F && type != FTW_D) || (type == FTW_F && st->st_nlink != 1))
        __builtin_trap();
    return 0;
}

static void check_outside(void)
{
    DIR *d = opendir(fuzz_folder);
    const struct dirent *e;

    while (d && (e = readdir(d)) != NULL)
        if (e->d_name[0] != '.' && strcmp(e->d_name, "in") != 0 && strcmp(e->d_name, "out") != 0)
            __builtin_trap();
    if (!d)
        abort();
    closedir(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pm_str tar = { 0 };

    if (size == 0)
        return 0;
    fuzz_begin();
    if (data[0] & 1)
        for (size_t at = 1; at < size;) {
            const size_t begin = at, length = fuzz_part(data, size, &at);

            add_entry(&tar, data + begin, length);
        }
    else
        pm_str_bytes(&tar, data + 1, size - 1);
    fuzz_write(fuzz_path("in"), tar.text, tar.length);
    pm_str_free(&tar);
    pm_unpack(fuzz_path("in"), fuzz_path("out"), NULL);
    check_outside();
    nftw(fuzz_path("out"), check_one, 16, FTW_PHYS);
    pm_remove_tree(fuzz_path("out"));
    return 0;
}
