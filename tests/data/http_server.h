/* A small web server in a thread of the test, with faults that the test selects. */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum manner {
    GOOD,         /* supports ranges */
    NO_RANGES,    /* always sends the whole file */
    CUT,          /* closes after `amount` bytes of each answer */
    CUT_WHOLE,    /* cuts the first answer and does not support ranges */
    TOO_LONG,     /* announces and sends `amount` bytes too many */
    SAYS_LONGER,  /* announces `amount` bytes too many, and closes */
    SAYS_SHORTER, /* announces and sends only the first `amount` requested bytes */
    OTHER_RANGE,  /* answers with another range */
    OTHER_TOTAL,  /* answers with another total length */
    BUSY,         /* 503 for the first `amount` requests */
    MISSING,      /* 404 */
    MOVED,        /* redirects to `target` */
    SLOW,         /* 1,000 bytes, then nothing for a minute */
    ENDLESS,      /* announces no length and repeats the file until the client closes */
};
struct page {
    const char *path;
    const void *data;
    size_t size;
    _Atomic enum manner manner;
    size_t amount;
    const char *target;
    atomic_int requests;
    char range[64]; /* of the last request; "" = none */
};
struct server {
    struct page *pages; /* ends with a NULL path */
    int fd, port;
    pthread_t thread;
    atomic_bool stop;
    atomic_int turns;
};

/* The server and the test take turns with the pages. A client in another process orders them,
 * which the thread sanitizer cannot see. */
static inline void server_turn(struct server *s)
{
    atomic_fetch_add(&s->turns, 1);
}

static inline void send_all(int fd, const void *data, size_t size)
{
    const char *p = data;

    while (size > 0) {
        const ssize_t n = send(fd, p, size, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        p += n;
        size -= (size_t)n;
    }
}

static inline void send_line(int fd, const char *format, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, format);
    const int n = vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    send_all(fd, text, (size_t)n);
}

static inline void send_endless(struct server *s, int fd, const struct page *p)
{
    send_line(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    while (!s->stop && send(fd, p->data, p->size, MSG_NOSIGNAL) > 0)
        continue;
}

/* Sends the status line, the length, and the bytes from `from` on. */
static inline void send_file(struct server *s, int fd, struct page *p, size_t from)
{
    size_t length = p->size - from, sent = length;
    const size_t says_from = p->manner == OTHER_RANGE ? from / 2 : from;

    if (p->manner == TOO_LONG || p->manner == SAYS_LONGER)
        length += p->amount;
    if (p->manner == TOO_LONG)
        sent = length;
    if (p->manner == SAYS_SHORTER && length > p->amount)
        sent = length = p->amount;
    if ((p->manner == CUT || (p->manner == CUT_WHOLE && p->requests == 1)) && sent > p->amount)
        sent = p->amount;
    if (p->manner == SLOW)
        sent = 1000;
    if (from > 0)
        send_line(fd, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %zu-%zu/%zu\r\n",
                  says_from, p->size - 1, p->size + (p->manner == OTHER_TOTAL ? 5 : 0));
    else
        send_line(fd, "HTTP/1.1 200 OK\r\n");
    send_line(fd, "Content-Length: %zu\r\nConnection: close\r\n\r\n", length);
    char *bytes = calloc(1, length + 1);
    memcpy(bytes, (const char *)p->data + from, length < p->size - from ? length : p->size - from);
    server_turn(s);
    send_all(fd, bytes, sent);
    free(bytes);
    for (int i = 0; p->manner == SLOW && i < 600 && !s->stop; i++)
        usleep(100000);
}

static inline void answer(struct server *s, int fd, const char *request)
{
    char path[256] = "";
    struct page *p = s->pages;
    const char *range = strstr(request, "Range: bytes=");
    size_t from = 0;

    server_turn(s);
    sscanf(request, "GET %255s", path);
    while (p->path && strcmp(p->path, path) != 0)
        p++;
    if (!p->path || p->manner == MISSING) {
        if (p->path)
            p->requests++;
        send_line(fd,
                  "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nConnection: close\r\n\r\nnone\n");
        return;
    }
    p->requests++;
    p->range[0] = '\0';
    if (range)
        sscanf(range + 13, "%63[^\r]", p->range);
    server_turn(s);
    if (range && p->manner != NO_RANGES && p->manner != CUT_WHOLE)
        from = strtoul(range + 13, NULL, 10);
    if (p->manner == BUSY && (size_t)p->requests <= p->amount)
        send_line(fd, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    else if (p->manner == ENDLESS)
        send_endless(s, fd, p);
    else if (p->manner == MOVED)
        send_line(fd, "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n"
                      "Connection: close\r\n\r\n", p->target);
    else if (from > 0 && from >= p->size)
        send_line(fd, "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n"
                      "Connection: close\r\n\r\n");
    else
        send_file(s, fd, p, from);
}

static void *serve(void *ctx)
{
    struct server *s = ctx;

    while (!s->stop) {
        char request[4096];
        size_t n = 0;
        const int fd = accept(s->fd, NULL, NULL);
        if (fd < 0)
            continue;
        do {
            const ssize_t got = recv(fd, request + n, sizeof request - 1 - n, 0);
            if (got <= 0)
                break;
            n += (size_t)got;
            request[n] = '\0';
        } while (!strstr(request, "\r\n\r\n") && n < sizeof request - 1);
        request[n] = '\0';
        if (n > 0 && !s->stop)
            answer(s, fd, request);
        shutdown(fd, SHUT_RDWR);
        close(fd);
    }
    return NULL;
}

static inline void server_start(struct server *s, struct page *pages)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t length = sizeof at;

    *s = (struct server){ .pages = pages };
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->fd >= 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->fd, 16), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &length), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static inline void server_stop(struct server *s)
{
    s->stop = true;
    shutdown(s->fd, SHUT_RDWR); /* accept returns */
    pthread_join(s->thread, NULL);
    close(s->fd);
}

#endif
