/* Downloads one file with libcurl.
 *
 * The bytes are written to PATH.part, which is renamed when its checksum matches. Each attempt
 * requests the bytes after the end of the part. If a server sends the whole file instead, the part
 * starts again. Attempts that make progress are repeated without limit; others a few times with
 * growing pauses, and then the next address is tried. The part does not record its server: if two
 * servers had different files, the checksum fails and the file is downloaded once more from the
 * beginning. */
#include "data/download/download.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <pumice/progress.h>

#include "data/download/libraries.h"

enum { TRIES = 5, TRIES_UNRESOLVED = 2, MEGA = 1000000 };
static const double first_pause = 0.5; /* seconds; doubled each time */
static const uint64_t spare = (uint64_t)256 << 20; /* bytes of the disk that stay free */
static const uint64_t check_every = (uint64_t)16 << 20; /* bytes written between two checks of the
                                                         * free space */

struct transfer {
    const struct pm_fetch *f;
    const struct pm_curl *c;
    CURL *handle;
    const char *part, *address;
    int fd;                 /* of the part, locked */
    uint64_t offset;        /* bytes in the part */
    uint64_t best;          /* largest size reached with this address */
    uint64_t received;      /* bytes of all attempts */
    uint64_t checked;       /* offset of the last check of the free space */
    bool answered;          /* this attempt's first bytes have come */
    bool ranged;            /* Content-Range of this answer: from, total (0 = not said) */
    uint64_t from, total;
    bool damaged;           /* some address had a different file */
    int err;                /* error of writing; the error text describes it */
    char reason[512];       /* why the last attempt ended */
    struct pm_progress *bar;
};

static bool stopped(const struct pm_fetch *f)
{
    return f->stop && *f->stop;
}

static int restart(struct transfer *t)
{
    if (ftruncate(t->fd, 0) != 0)
        return pm_fail(PM_EFAIL, "%s: cannot be emptied: %s", t->part, strerror(errno));
    t->offset = t->checked = 0;
    return PM_OK;
}

/* ---- what curl calls -------------------------------------------------------------------- */

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
    struct transfer *t = ctx;
    const size_t n = size * count;
    char text[256];

    snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text - 1), line);
    if (strncasecmp(text, "HTTP/", 5) == 0)
        t->ranged = false;
    if (strncasecmp(text, "Content-Range:", 14) == 0) {
        t->total = 0;
        t->ranged = sscanf(text + 14, " bytes %" SCNu64 "-%*u/%" SCNu64, &t->from, &t->total) >= 1;
    }
    return n;
}

/* Continues the part, or starts it again if the server sends the whole file. */
static int begin_answer(struct transfer *t)
{
    long status = 0;

    t->answered = true;
    t->c->easy_getinfo(t->handle, CURLINFO_RESPONSE_CODE, &status);
    if (status == 206 && (!t->ranged || t->from != t->offset))
        return pm_fail(PM_EDATA, "it did not send the file from byte %" PRIu64 " on",
                       t->offset);
    if (status == 206 && t->f->size && t->total && t->total != t->f->size)
        return pm_fail(PM_EDATA, "the file has %" PRIu64 " bytes there instead of %" PRIu64,
                       t->total, t->f->size);
    if (status == 200 && t->offset > 0) {
        PM_INFO("data", "%s: the server cannot resume; starting from the beginning", t->f->name);
        return restart(t);
    }
    return PM_OK;
}

/* Checks that the disk has room for the remaining bytes, as far as they are known, and a reserve. A
 * complete part needs none. */
static int check_space(struct transfer *t)
{
    struct statvfs v;
    char wanted[24], free[24];
    const uint64_t need = t->f->size > t->offset ? t->f->size - t->offset : 0;

    t->checked = t->offset;
    if (t->f->size && need == 0)
        return PM_OK;
    if (fstatvfs(t->fd, &v) != 0 || need + spare <= (uint64_t)v.f_bavail * v.f_frsize)
        return PM_OK;
    pm_bytes_text((uint64_t)v.f_bavail * v.f_frsize, free);
    const char *advice = t->f->on_full ? t->f->on_full : "give a --raw folder on another disk";
    if (need > 0)
        return pm_fail(PM_EFAIL,
                       "%s: %s remain, but the disk has %s free, and 256 MiB must "
                       "stay free. Free some space, or %s",
                       t->part, pm_bytes_text(need, wanted), free, advice);
    return pm_fail(PM_EFAIL,
                   "%s: after %s of a file of unknown size the disk has only %s free. Free some "
                   "space, or %s", t->part, pm_bytes_text(t->offset, wanted), free, advice);
}

/* Called before n more bytes are written. On an error, the part of a file of unknown size is
 * emptied, because nobody knows how much of it would follow. */
static int check_more(struct transfer *t, uint64_t n)
{
    const char *advice = t->f->on_longer ? t->f->on_longer : "--max-megabytes allows more";
    char most[24];
    int err = PM_OK;

    if (t->f->size && t->offset + n > t->f->size)
        return pm_fail(PM_EDATA, "the file is longer there than the expected %" PRIu64 " bytes",
                       t->f->size);
    if (!t->f->size && t->offset + n > t->f->most)
        err = pm_fail(PM_EDATA, "the file is longer there than %s, the limit for a file of unknown "
                                "size%s%s",
                      pm_bytes_text(t->f->most, most), *advice ? ": " : "", advice);
    else if (t->offset + n >= t->checked + check_every)
        err = check_space(t);
    if (err < 0 && !t->f->size && ftruncate(t->fd, 0) == 0)
        t->offset = t->checked = 0;
    return err;
}

static size_t on_bytes(char *data, size_t size, size_t count, void *ctx)
{
    struct transfer *t = ctx;
    const size_t n = size * count;

    if (!t->answered && (t->err = begin_answer(t)) < 0)
        return 0;
    if ((t->err = check_more(t, n)) < 0)
        return 0;
    for (size_t done = 0; done < n;) {
        const ssize_t w = pwrite(t->fd, data + done, n - done, (off_t)(t->offset + done));
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0) {
            t->err = pm_fail(PM_EFAIL, "%s: cannot be written: %s", t->part, pm_write_error(errno));
            return 0;
        }
        done += (size_t)w;
    }
    t->offset += n;
    t->received += n;
    pm_progress_count(t->bar, t->offset / MEGA, t->received / MEGA, -1);
    return n;
}

static int on_progress(void *ctx, curl_off_t total, curl_off_t now, curl_off_t up, curl_off_t sent)
{
    const struct transfer *t = ctx;

    (void)total, (void)now, (void)up, (void)sent;
    return stopped(t->f);
}

/* ---- one attempt ------------------------------------------------------------------------ */

enum outcome { WHOLE, AGAIN, ELSEWHERE, GIVE_UP };

static void set_options(struct transfer *t, char range[32])
{
    const struct pm_curl *c = t->c;

    snprintf(range, 32, "%" PRIu64 "-", t->offset);
    c->easy_setopt(t->handle, CURLOPT_URL, t->address);
    c->easy_setopt(t->handle, CURLOPT_RANGE, t->offset ? range : NULL);
    c->easy_setopt(t->handle, CURLOPT_PROTOCOLS_STR, "http,https,file");
    c->easy_setopt(t->handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    c->easy_setopt(t->handle, CURLOPT_FOLLOWLOCATION, 1L);
    c->easy_setopt(t->handle, CURLOPT_MAXREDIRS, 10L);
    c->easy_setopt(t->handle, CURLOPT_FAILONERROR, 1L);
    c->easy_setopt(t->handle, CURLOPT_NOSIGNAL, 1L);
    c->easy_setopt(t->handle, CURLOPT_CONNECTTIMEOUT, 30L);
    c->easy_setopt(t->handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    c->easy_setopt(t->handle, CURLOPT_LOW_SPEED_TIME, 60L);
    c->easy_setopt(t->handle, CURLOPT_USERAGENT, "pumice/" PUMICE_VERSION);
    c->easy_setopt(t->handle, CURLOPT_HEADERFUNCTION, on_header);
    c->easy_setopt(t->handle, CURLOPT_HEADERDATA, t);
    c->easy_setopt(t->handle, CURLOPT_WRITEFUNCTION, on_bytes);
    c->easy_setopt(t->handle, CURLOPT_WRITEDATA, t);
    c->easy_setopt(t->handle, CURLOPT_NOPROGRESS, 0L);
    c->easy_setopt(t->handle, CURLOPT_XFERINFOFUNCTION, on_progress);
    c->easy_setopt(t->handle, CURLOPT_XFERINFODATA, t);
}

/* Interprets an HTTP error. 416 means that there are no bytes after the part's end. */
static enum outcome refused(struct transfer *t)
{
    long status = 0;

    t->c->easy_getinfo(t->handle, CURLINFO_RESPONSE_CODE, &status);
    snprintf(t->reason, sizeof t->reason, "the server answers %ld", status);
    if (status == 416 && t->offset > 0) {
        if (t->f->size == 0 || t->offset == t->f->size)
            return WHOLE; /* the checksum decides */
        snprintf(t->reason, sizeof t->reason,
                 "the file has fewer than %" PRIu64 " bytes there instead of %" PRIu64,
                 t->offset + 1, t->f->size);
        t->damaged = true;
        return restart(t) < 0 ? GIVE_UP : ELSEWHERE;
    }
    return status == 408 || status == 429 || status >= 500 ? AGAIN : ELSEWHERE;
}

static enum outcome judge(struct transfer *t, CURLcode code)
{
    snprintf(t->reason, sizeof t->reason, "%s", t->c->easy_strerror(code));
    if (stopped(t->f))
        return GIVE_UP;
    if (t->err < 0) {
        snprintf(t->reason, sizeof t->reason, "%s", pm_error_text());
        t->damaged |= t->err == PM_EDATA;
        return t->err == PM_EDATA ? ELSEWHERE : GIVE_UP;
    }
    switch (code) {
    case CURLE_OK:
        snprintf(t->reason, sizeof t->reason, "it ends after %" PRIu64 " of %" PRIu64 " bytes",
                 t->offset, t->f->size);
        return t->f->size && t->offset < t->f->size ? AGAIN : WHOLE;
    case CURLE_HTTP_RETURNED_ERROR:
        return refused(t);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_FILE_COULDNT_READ_FILE:
        return ELSEWHERE;
    default:
        return AGAIN;
    }
}

static enum outcome attempt(struct transfer *t, CURLcode *code)
{
    char range[32];

    if (t->f->size && t->offset == t->f->size)
        return WHOLE;
    t->handle = t->c->easy_init();
    t->answered = t->ranged = false;
    t->err = PM_OK;
    set_options(t, range);
    *code = t->c->easy_perform(t->handle);
    const enum outcome o = judge(t, *code);
    t->c->easy_cleanup(t->handle);
    t->handle = NULL;
    return o;
}

static void pause_for(const struct pm_fetch *f, double seconds)
{
    const double end = pm_seconds() + seconds;

    while (!stopped(f) && pm_seconds() < end)
        usleep(20000);
}

/* Tries one address until the part is complete or attempts make no progress. */
static enum outcome repeat(struct transfer *t)
{
    double pause = first_pause;

    t->best = t->offset;
    for (int tries = 1;; tries++) {
        CURLcode code = CURLE_OK;
        const enum outcome o = attempt(t, &code);
        const int most = code == CURLE_COULDNT_RESOLVE_HOST ||
                                 code == CURLE_COULDNT_RESOLVE_PROXY
                             ? TRIES_UNRESOLVED
                             : TRIES;
        if (o != AGAIN)
            return o;
        if (t->offset > t->best) {
            t->best = t->offset;
            tries = 0;
            pause = first_pause;
        }
        if (tries >= most)
            return ELSEWHERE;
        PM_INFO("data", "%s: %s; retrying in %.1f s", t->address, t->reason, pause);
        pause_for(t->f, pause);
        pause *= 2;
    }
}

/* ---- the checksum ----------------------------------------------------------------------- */

int pm_fetch_sum(const char *path, const volatile sig_atomic_t *stop, char hex[65])
{
    int err = PM_OK;
    struct pm_sha256 s;
    uint8_t *block = pm_malloc(1 << 20);
    ssize_t n = 0;
    int fd = -1;

    PM_TRY(pm_file_open(path, &fd, NULL));
    pm_sha256_start(&s);
    while ((n = read(fd, block, 1 << 20)) > 0) {
        pm_sha256_add(&s, block, (size_t)n);
        if (stop && *stop)
            PM_TRY(pm_fail(PM_EFAIL, "%s: stopped while its checksum was computed", path));
    }
    if (n < 0)
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be read: %s", path, strerror(errno)));
    pm_sha256_end(&s, hex);
out:
    if (fd >= 0)
        close(fd);
    pm_free(block);
    return err;
}

/* Whether a file with this SHA-256 is the right one, as far as its digits are known. */
static bool is_right(const struct pm_fetch *f, const char *hex)
{
    return strncasecmp(hex, f->sha256, strlen(f->sha256)) == 0;
}

/* The words between a wrong SHA-256 and the known digits. */
static const char *instead(const struct pm_fetch *f)
{
    return strlen(f->sha256) < 64 ? ", which does not begin with" : " instead of";
}

/* ---- the whole -------------------------------------------------------------------------- */

/* Downloads from one address and checks the result; *out tells the outcome. A resumed part with a
 * wrong checksum is downloaded once more from the beginning. */
static int from_address(struct transfer *t, char hex[65], enum outcome *out)
{
    int err = PM_OK;

    for (;;) {
        const bool continued = t->offset > 0;
        const uint64_t before = t->received;
        *out = repeat(t);
        if (*out != WHOLE)
            return PM_OK;
        PM_TRY(pm_fetch_sum(t->part, t->f->stop, hex));
        if (is_right(t->f, hex))
            return PM_OK;
        snprintf(t->reason, sizeof t->reason, "the SHA-256 of its file is %s%s %s", hex,
                 instead(t->f), t->f->sha256);
        *out = ELSEWHERE;
        t->damaged = true;
        PM_TRY(restart(t));
        if (!continued)
            return PM_OK;
        PM_WARN("data",
                "%s: the checksum of the resumed file%s is wrong; starting from the beginning",
                t->f->name, t->received > before ? " and the new bytes" : "");
    }
out:
    return err;
}

static int open_part(struct transfer *t)
{
    struct stat st;

    t->fd = open(t->part, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (t->fd < 0)
        return pm_fail(PM_EFAIL, "%s: cannot be written: %s", t->part, pm_write_error(errno));
    if (flock(t->fd, LOCK_EX | LOCK_NB) != 0) {
        close(t->fd), t->fd = -1; /* the other's */
        return pm_fail(PM_EFAIL, "%s: another process is fetching this file", t->part);
    }
    if (fstat(t->fd, &st) != 0)
        return pm_fail(PM_EFAIL, "%s: cannot be read: %s", t->part, strerror(errno));
    t->offset = (uint64_t)st.st_size;
    if (t->offset > (t->f->size ? t->f->size : t->f->most))
        return restart(t);
    if (t->offset)
        PM_INFO("data", "%s: resuming after %" PRIu64 " bytes", t->f->name, t->offset);
    return PM_OK;
}

static int give_name(struct transfer *t)
{
    if (fsync(t->fd) != 0 || rename(t->part, t->f->path) != 0)
        return pm_fail(PM_EFAIL, "%s: cannot be renamed: %s", t->part, strerror(errno));
    return PM_OK;
}

static int fail_stopped(const struct transfer *t)
{
    return pm_fail(PM_EFAIL,
                   "%s: stopped; %" PRIu64 " bytes are in %s, and the same command resumes "
                   "from there",
                   t->f->name, t->offset, t->part);
}

static int from_addresses(struct transfer *t, char hex[65])
{
    int err = PM_OK;
    struct pm_str why = { 0 };

    for (const char *const *a = t->f->addresses; *a; a++) {
        enum outcome o = ELSEWHERE;
        t->address = *a;
        PM_TRY(from_address(t, hex, &o));
        if (o == WHOLE)
            goto out;
        if (stopped(t->f))
            PM_TRY(fail_stopped(t));
        if (o == GIVE_UP)
            PM_TRY(pm_fail(PM_EFAIL, "%s", t->reason));
        pm_str_add(&why, "%s%s: %s", why.length ? "; " : "", *a, t->reason);
    }
    PM_TRY(pm_fail(
        t->damaged ? PM_EDATA : PM_EFAIL,
        "%s cannot be downloaded: %s. Try again later, %s, or put the file there yourself: %s",
        t->f->name, why.text,
        t->f->on_failure ? t->f->on_failure : "give another server with --from", t->f->path));
out:
    pm_str_free(&why);
    return err;
}

/* Returns 1 if the finished file exists with the right checksum. */
static int is_there(const struct pm_fetch *f, char hex[65])
{
    if (!pm_file_exists(f->path))
        return 0;
    const int err = pm_fetch_sum(f->path, f->stop, hex);
    if (err < 0)
        return err;
    if (is_right(f, hex)) {
        PM_INFO("data", "%s: already downloaded", f->path);
        return 1;
    }
    return pm_fail(PM_EDATA,
                   "%s: its SHA-256 is %s%s %s: remove it, and it will be downloaded",
                   f->path, hex, instead(f), f->sha256);
}

static bool is_empty(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_size == 0;
}

int pm_fetch(const struct pm_fetch *f, char hex[65])
{
    int err = PM_OK;
    char own[65];
    struct transfer t = { .f = f, .fd = -1 };
    struct pm_str part = { 0 };
    char unit[96];

    hex = hex ? hex : own;
    PM_TRY(is_there(f, hex));
    if (err == 1)
        return PM_OK;
    PM_TRY(pm_curl_load(&t.c));
    pm_str_add(&part, "%s.part", f->path);
    t.part = part.text;
    PM_TRY(open_part(&t));
    PM_TRY(check_space(&t));
    snprintf(unit, sizeof unit, "%.80s, MB", f->name);
    t.bar = pm_progress_start(&(struct pm_progress_options){ .what = "data",
                                                             .unit = unit,
                                                             .speed = "MB",
                                                             .first = t.offset / MEGA,
                                                             .last = f->size / MEGA });
    PM_TRY(from_addresses(&t, hex));
    PM_TRY(give_name(&t));
out:
    pm_progress_end(&t.bar);
    if (err < 0 && t.fd >= 0 && is_empty(t.fd))
        unlink(t.part); /* it is empty */
    if (t.fd >= 0)
        close(t.fd);
    pm_str_free(&part);
    return err;
}
