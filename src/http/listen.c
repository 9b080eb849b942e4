/* Listening sockets; see http_listen in http.h. */

#include "base/file.h"
#include "http/http.h"

#define BACKLOG 4096 /* the kernel limits it to net.core.somaxconn */

static enum status read_address(const char *host, uint16_t port, struct sockaddr_storage *address,
                                struct error *error)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    memset(address, 0, sizeof *address);
    if (uv_ip4_addr(host, port, v4) == 0 || uv_ip6_addr(host, port, v6) == 0)
        return STATUS_OK;
    return error_invalid(error, "cannot listen on '%s': not an address", host);
}

static enum status fail(struct error *error, const char *host, uint16_t port, int reason)
{
    bool v6 = strchr(host, ':') != NULL;
    const char *hint = "";
    if (reason == EADDRINUSE)
        hint = " (another process is listening there)";
    else if (reason == EACCES && port < 1024)
        hint = " (ports below 1024 need CAP_NET_BIND_SERVICE)";
    else if (reason == EADDRNOTAVAIL)
        hint = " (this machine has no such address)";
    return error_unavailable(error, "cannot listen on %s%s%s:%u: %s%s", v6 ? "[" : "", host,
                             v6 ? "]" : "", (unsigned)port, strerror(reason), hint);
}

/* A bound socket, or -1 with errno. */
static int bind_socket(const struct sockaddr_storage *address, bool share)
{
    const int on = 1;
    const int off = 0;
    int descriptor = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -1;
    /* "::" takes IPv4 clients too, whatever net.ipv6.bindv6only says. */
    if (setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        (address->ss_family != AF_INET6 ||
         setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0) &&
        (!share || setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0) &&
        bind(descriptor, (const struct sockaddr *)address, sizeof *address) == 0)
        return descriptor;
    file_close(&descriptor);
    return descriptor;
}

static uint16_t bound_port(int descriptor)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    memset(&address, 0, sizeof address);
    CHECK(getsockname(descriptor, (struct sockaddr *)&address, &size) == 0);
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

enum status http_listen(const char *host, uint16_t port, bool share, int *descriptor,
                        uint16_t *bound, struct error *error)
{
    struct sockaddr_storage address;
    bool first = *bound == 0;
    enum status status = read_address(host, first ? port : *bound, &address, error);
    if (status != STATUS_OK)
        return status;
    if (share && first && port != 0) {
        /* SO_REUSEPORT would silently let a second croupier of the same user share the port. */
        int probe = bind_socket(&address, false);
        if (probe < 0)
            return fail(error, host, port, errno);
        (void)close(probe);
    }
    int opened = bind_socket(&address, share);
    if (opened < 0 || listen(opened, BACKLOG) != 0) {
        file_close(&opened);
        return fail(error, host, port, errno);
    }
    *bound = bound_port(opened);
    *descriptor = opened;
    return STATUS_OK;
}

int http_listen_try(const char *host, uint16_t port)
{
    struct sockaddr_storage address;
    CHECK(read_address(host, port, &address, NULL) == STATUS_OK); /* of a configuration */
    int descriptor = bind_socket(&address, false);
    int reason = descriptor < 0 || listen(descriptor, 1) != 0 ? errno : 0;
    file_close(&descriptor);
    return reason;
}

static bool is_same(const struct sockaddr_storage *one, const struct sockaddr_storage *other)
{
    struct address a, b;
    return address_from_sockaddr((const struct sockaddr *)one, &a) == STATUS_OK &&
           address_from_sockaddr((const struct sockaddr *)other, &b) == STATUS_OK &&
           address_equals(&a, &b);
}

enum status http_listen_check(const char *host, uint16_t port, int descriptor, uint16_t *bound,
                              struct error *error)
{
    struct sockaddr_storage wanted;
    struct sockaddr_storage found;
    socklen_t size = sizeof found;
    int listens = 0;
    socklen_t listens_size = sizeof listens;
    enum status status = read_address(host, port, &wanted, error);
    if (status != STATUS_OK)
        return status;
    memset(&found, 0, sizeof found);
    if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_size) != 0 ||
        listens == 0 || getsockname(descriptor, (struct sockaddr *)&found, &size) != 0 ||
        !is_same(&wanted, &found) || (port != 0 && bound_port(descriptor) != port))
        return error_invalid(error, "%s:%u is not where the running server listens", host,
                             (unsigned)port);
    *bound = bound_port(descriptor);
    return STATUS_OK;
}
