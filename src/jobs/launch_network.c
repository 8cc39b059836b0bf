/* launch_network: the networks of this machine. */
#include "jobs/launch.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads "192.168.1.0/24" as a network and a mask, in the order of bytes of this machine. */
static bool read_network(const char *text, uint32_t *network, uint32_t *mask)
{
    const char *slash = strchr(text, '/');
    struct in_addr address;
    char number[16], *end;
    long bits;

    if (!slash || (size_t)(slash - text) >= sizeof number)
        return false;
    memcpy(number, text, (size_t)(slash - text));
    number[slash - text] = '\0';
    bits = strtol(slash + 1, &end, 10);
    if (inet_pton(AF_INET, number, &address) != 1 || end == slash + 1 || *end || bits < 0 ||
        bits > 32)
        return false;
    *mask = bits == 0 ? 0 : UINT32_MAX << (32 - bits);
    *network = ntohl(address.s_addr) & *mask;
    return true;
}

static bool is_interface_name(const char *text)
{
    const size_t n = strlen(text);

    return n > 0 && n < IF_NAMESIZE &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == n;
}

static uint32_t ipv4_of(const struct sockaddr *address)
{
    struct sockaddr_in in;

    memcpy(&in, address, sizeof in);
    return ntohl(in.sin_addr.s_addr);
}

static bool is_ipv4(const struct ifaddrs *i)
{
    return i->ifa_addr && i->ifa_addr->sa_family == AF_INET;
}

/* Whether this machine has an interface of that name, or with an address in that network. */
static bool has_interface(const struct ifaddrs *list, const char *text)
{
    uint32_t network = 0, mask = 0;
    const bool by_number = read_network(text, &network, &mask);

    for (const struct ifaddrs *i = list; i; i = i->ifa_next)
        if (by_number ? is_ipv4(i) && (ipv4_of(i->ifa_addr) & mask) == network
                      : strcmp(i->ifa_name, text) == 0)
            return true;
    return false;
}

/* Adds "lo (127.0.0.1/8), eth0 (192.168.1.4/24)". */
static void list_interfaces(const struct ifaddrs *list, struct pm_str *out)
{
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        char address[INET_ADDRSTRLEN] = "";
        struct in_addr in;
        int bits = 0;

        if (!is_ipv4(i) || !i->ifa_netmask)
            continue;
        in.s_addr = htonl(ipv4_of(i->ifa_addr));
        inet_ntop(AF_INET, &in, address, sizeof address);
        for (uint32_t mask = ipv4_of(i->ifa_netmask); mask; mask <<= 1)
            bits++;
        pm_str_add(out, "%s%s (%s/%d)", out->length ? ", " : "", i->ifa_name, address, bits);
    }
}

static int check_one(const struct ifaddrs *list, const char *text)
{
    uint32_t network, mask;
    struct pm_str have = { 0 };
    int err = PM_OK;

    if (!is_interface_name(text) && !read_network(text, &network, &mask))
        return pm_fail(PM_ECONFIG, "command line: --interface: '%s' is neither the name of an "
                       "interface, such as eth0, nor a network, such as 192.168.1.0/24", text);
    if (!has_interface(list, text)) {
        list_interfaces(list, &have);
        err = pm_fail(PM_ECONFIG, "command line: --interface: this machine has no interface %s: it "
                      "has %s", text, have.text ? have.text : "none with an IPv4 address");
    }
    pm_str_free(&have);
    return err;
}

int pm_launch_check_interface(const char *text)
{
    struct pm_arena *a = pm_arena_create();
    struct ifaddrs *list = NULL;
    int err = PM_OK;

    if (getifaddrs(&list) != 0)
        list = NULL;
    for (bool more = true; more;) {
        const size_t n = strcspn(text, ",");

        PM_TRY(check_one(list, pm_arena_printf(a, "%.*s", (int)n, text)));
        more = text[n] == ',';
        text += n + more;
    }
out:
    if (list)
        freeifaddrs(list);
    pm_arena_destroy(&a);
    return err;
}

/* Only addresses of this machine can be bound. */
static bool is_own_address(const struct addrinfo *a)
{
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool bound = fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0;

    if (fd >= 0)
        close(fd);
    return bound;
}

bool pm_launch_is_here(const char *host)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    char own[256] = "";
    bool here = false;

    if (gethostname(own, sizeof own - 1) == 0 && strcmp(own, host) == 0)
        return true;
    if (getaddrinfo(host, NULL, &hints, &list) != 0)
        return false;
    for (const struct addrinfo *a = list; a && !here; a = a->ai_next)
        here = is_own_address(a);
    freeaddrinfo(list);
    return here;
}
