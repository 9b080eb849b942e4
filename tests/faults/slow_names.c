/*
 * Names that resolve as a test says, for a program that is started with this in LD_PRELOAD. The
 * file that CROUPIER_TEST_SLOW_NAMES names has lines "NAME SECONDS ADDRESS…"; no address: the name
 * cannot be found. Beside it, in the file FILE.log, a line "+NAME" tells of a lookup that begins
 * and "-NAME" of one that ends. Other names are left alone.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int lookup_function(const char *name, const char *service, const struct addrinfo *hints,
                            struct addrinfo **list);

static void tell(const char *file, char what, const char *name)
{
    char path[512];
    char line[512];
    (void)snprintf(path, sizeof path, "%s.log", file);
    int size = snprintf(line, sizeof line, "%c%s\n", what, name);
    int descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0 || write(descriptor, line, (size_t)size) != size)
        abort();
    (void)close(descriptor);
}

/* What stands after the name in its line; 0: there is none. */
static int find_line(const char *file, const char *name, char *rest, int size)
{
    FILE *lines = fopen(file, "re");
    size_t length = strlen(name);
    int found = 0;
    while (lines != NULL && !found && fgets(rest, size, lines) != NULL)
        found = strncmp(rest, name, length) == 0 && rest[length] == ' ';
    if (lines != NULL)
        (void)fclose(lines);
    if (found)
        memmove(rest, rest + length + 1, strlen(rest + length + 1) + 1);
    return found;
}

static int find_all(lookup_function *real, char *addresses, const char *service,
                    const struct addrinfo *hints, struct addrinfo **list)
{
    struct addrinfo **end = list;
    char *left = NULL;
    *list = NULL;
    for (char *one = strtok_r(addresses, " \n", &left); one != NULL;
         one = strtok_r(NULL, " \n", &left)) {
        int result = real(one, service, hints, end);
        if (result != 0)
            return result;
        while (*end != NULL)
            end = &(*end)->ai_next;
    }
    return *list == NULL ? EAI_NONAME : 0;
}

int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict list)
{
    char rest[1024];
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    lookup_function *real = NULL;
    memcpy(&real, &symbol, sizeof real);
    const char *file = getenv("CROUPIER_TEST_SLOW_NAMES");
    if (file == NULL || name == NULL || !find_line(file, name, rest, sizeof rest))
        return real(name, service, hints, list);
    char *addresses = NULL;
    double seconds = strtod(rest, &addresses);
    struct timespec wait = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    tell(file, '+', name);
    (void)nanosleep(&wait, NULL);
    int result = find_all(real, addresses, service, hints, list);
    tell(file, '-', name);
    return result;
}
