/* Loading libcurl and libarchive by their run-time names. */
#include "data/download/libraries.h"

#include "data/library.h"

#define CURL_ENTRY(f) { "curl_" #f, offsetof(struct pm_curl, f) }
static const struct pm_library_entry curl_entries[] = {
    CURL_ENTRY(global_init),  CURL_ENTRY(easy_init),    CURL_ENTRY(easy_cleanup),
    CURL_ENTRY(easy_setopt),  CURL_ENTRY(easy_perform), CURL_ENTRY(easy_getinfo),
    CURL_ENTRY(easy_strerror),
};

#define ARCHIVE_ENTRY(f) { "archive_" #f, offsetof(struct pm_libarchive, f) }
static const struct pm_library_entry archive_entries[] = {
    ARCHIVE_ENTRY(read_new),
    ARCHIVE_ENTRY(read_free),
    ARCHIVE_ENTRY(read_support_filter_gzip),
    ARCHIVE_ENTRY(read_support_format_tar),
    ARCHIVE_ENTRY(read_support_format_zip),
    ARCHIVE_ENTRY(read_open_filename),
    ARCHIVE_ENTRY(read_next_header),
    ARCHIVE_ENTRY(read_data),
    ARCHIVE_ENTRY(error_string),
    ARCHIVE_ENTRY(filter_bytes),
    ARCHIVE_ENTRY(entry_pathname),
    ARCHIVE_ENTRY(entry_pathname_utf8),
    ARCHIVE_ENTRY(entry_filetype),
    ARCHIVE_ENTRY(entry_hardlink),
    ARCHIVE_ENTRY(entry_size),
    ARCHIVE_ENTRY(entry_size_is_set),
};

static const char user[] = "download";
static struct pm_curl curl;
static struct pm_libarchive archive;

static void start_curl(void)
{
    curl.global_init(CURL_GLOBAL_DEFAULT);
}

int pm_curl_load(const struct pm_curl **out)
{
    static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", NULL };
    static struct pm_library library = { names, "libcurl4", curl_entries, PM_COUNT(curl_entries),
                                         &curl, .start = start_curl };

    *out = &curl;
    return pm_library_load(&library, user);
}

int pm_libarchive_load(const struct pm_libarchive **out)
{
    static const char *const names[] = { "libarchive.so.13", NULL };
    static struct pm_library library = PM_LIBRARY(names, "libarchive13", archive_entries, &archive);

    *out = &archive;
    return pm_library_load(&library, user);
}
