/*
 * Fuzzes what reads the URIs of stores, which may hold a password.
 *
 * The input is a user and a rest, on a line each; between them goes a password. Holds for every
 * one: neither what may be shown of a URI nor the complaint about it has the password in it, and
 * only what is refused has a complaint.
 */
#include <string.h>

#include "config/config.h"
#include "stores/odds/redis/location.h"
#include "stores/platform/postgres/uri.h"

#define PASSWORD "zQ7wXk9vLm"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_text(const char *shown)
{
    CHECK(strstr(shown, PASSWORD) == NULL);
}

static void check_redis(const char *uri)
{
    struct redis_location *location = NULL;
    struct error error = {.text = ""};
    if (redis_location_parse(&location, uri, &error) != STATUS_OK) {
        CHECK(location == NULL && error.text[0] != '\0');
        check_text(error.text);
        return;
    }
    CHECK(error.text[0] == '\0' && location->host_count <= REDIS_HOSTS_MAX);
    CHECK((location->way == REDIS_BY_UNIX) == (location->path != NULL));
    CHECK((location->way == REDIS_BY_SENTINEL) == (location->service != NULL));
    for (size_t i = 0; i < location->host_count; i++)
        CHECK(location->hosts[i].name[0] != '\0' && location->hosts[i].port != 0);
    check_text(buffer_string(&location->shown));
    redis_location_destroy(&location);
}

static void check_postgres(const char *uri)
{
    struct postgres_target *target = NULL;
    struct error error = {.text = ""};
    if (postgres_target_create(&target, uri, 1000, &error) != STATUS_OK) {
        CHECK(target == NULL && error.text[0] != '\0');
        check_text(error.text);
        return;
    }
    CHECK(error.text[0] == '\0');
    CHECK(target->host_count >= 1 && target->host_count <= POSTGRES_HOSTS_MAX);
    CHECK(postgres_option(target, "client_encoding") != NULL);
    check_text(target->location);
    postgres_target_destroy(&target);
}

static void check_redaction(const char *uri)
{
    struct buffer shown = {0};
    config_redact_uri(uri, &shown);
    check_text(buffer_string(&shown));
    buffer_free(&shown);
}

/* The scheme, the user, the password, and what the input has to say of the rest. */
static void build(struct buffer *uri, const char *scheme, struct text user, struct text rest)
{
    buffer_clear(uri);
    buffer_append_string(uri, scheme);
    buffer_append_text(uri, user);
    buffer_append_string(uri, ":" PASSWORD "@");
    buffer_append_text(uri, rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const redis[] = {"redis://", "rediss://", "redis+sentinel://",
                                        "rediss+sentinel://", "unix://"};
    static const char *const postgres[] = {"postgresql://", "postgres://"};
    struct text rest = {(const char *)bytes, size};
    struct text user = text_cut(&rest, '\n');
    struct buffer uri = {0};
    if (memchr(bytes, '\0', size) != NULL || size > 4096)
        return 0; /* a URI is a string, and the configuration has bounds of its own */
    if (memmem(bytes, size, PASSWORD, strlen(PASSWORD)) != NULL)
        return 0; /* where it is no password */
    for (size_t i = 0; i < user.size; i++)
        if (strchr("/?#@[", user.at[i]) != NULL)
            return 0; /* there what follows is no password */
    for (size_t i = 0; i < sizeof redis / sizeof redis[0]; i++) {
        build(&uri, redis[i], user, rest);
        check_redis(buffer_string(&uri));
        check_redaction(buffer_string(&uri));
    }
    for (size_t i = 0; i < sizeof postgres / sizeof postgres[0]; i++) {
        build(&uri, postgres[i], user, rest);
        check_postgres(buffer_string(&uri));
        check_redaction(buffer_string(&uri));
    }
    buffer_clear(&uri);
    buffer_append_text(&uri, rest);
    check_redis(buffer_string(&uri)); /* and as it stands */
    check_postgres(buffer_string(&uri));
    check_redaction(buffer_string(&uri));
    buffer_free(&uri);
    return 0;
}
