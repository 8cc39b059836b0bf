/* libcurl and libarchive, loaded on demand: linking them would load some thirty libraries and
 * double the start-up time of every command. */
#ifndef PM_LIBRARIES_H
#define PM_LIBRARIES_H

#include <archive.h>
#include <archive_entry.h>
#include <curl/curl.h>

struct pm_curl {
    __typeof__(&curl_global_init) global_init;
    __typeof__(&curl_easy_init) easy_init;
    __typeof__(&curl_easy_cleanup) easy_cleanup;
    __typeof__(&curl_easy_setopt) easy_setopt;
    __typeof__(&curl_easy_perform) easy_perform;
    __typeof__(&curl_easy_getinfo) easy_getinfo;
    __typeof__(&curl_easy_strerror) easy_strerror;
};

struct pm_libarchive {
    __typeof__(&archive_read_new) read_new;
    __typeof__(&archive_read_free) read_free;
    __typeof__(&archive_read_support_filter_gzip) read_support_filter_gzip;
    __typeof__(&archive_read_support_format_tar) read_support_format_tar;
    __typeof__(&archive_read_support_format_zip) read_support_format_zip;
    __typeof__(&archive_read_open_filename) read_open_filename;
    __typeof__(&archive_read_next_header) read_next_header;
    __typeof__(&archive_read_data) read_data;
    __typeof__(&archive_error_string) error_string;
    __typeof__(&archive_filter_bytes) filter_bytes;
    __typeof__(&archive_entry_pathname) entry_pathname;
    __typeof__(&archive_entry_pathname_utf8) entry_pathname_utf8;
    __typeof__(&archive_entry_filetype) entry_filetype;
    __typeof__(&archive_entry_hardlink) entry_hardlink;
    __typeof__(&archive_entry_size) entry_size;
    __typeof__(&archive_entry_size_is_set) entry_size_is_set;
};

/* Loads the library at the first call, for the rest of the process. PM_EFAIL names the missing
 * package. */
int pm_curl_load(const struct pm_curl **out);
int pm_libarchive_load(const struct pm_libarchive **out);

#endif
