/* Reading what a command was given; see input.h. */
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CHUNK 65536U

static enum status read_all(int descriptor, const char *name, size_t most, struct buffer *out,
                            struct error *error)
{
    while (out->size <= most) {
        size_t room = most + 1 - out->size < CHUNK ? most + 1 - out->size : CHUNK;
        buffer_reserve(out, room);
        ssize_t got = read(descriptor, out->data + out->size, room);
        if (got == 0)
            return STATUS_OK;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(error, STATUS_INVALID, "%s: %s", name, strerror(errno));
        out->size += (size_t)got;
    }
    return STATUS_OK;
}

enum status command_read_document(const char *path, size_t most, const char **name,
                                  struct buffer *out, struct error *error)
{
    if (strcmp(path, "-") == 0) {
        *name = "standard input";
        return read_all(STDIN_FILENO, *name, most, out, error);
    }
    *name = path;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return error_set(error, STATUS_INVALID, "%s: %s", path, strerror(errno));
    enum status status = read_all(descriptor, path, most, out, error);
    (void)close(descriptor);
    return status;
}
