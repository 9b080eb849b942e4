/* Which URIs of a Redis server are understood, and as what. */
#include "stores/odds/redis/location.h"
#include "tests.h"

static struct redis_location *parse(const char *uri)
{
    struct redis_location *location = NULL;
    struct error error = {{0}};
    if (redis_location_parse(&location, uri, &error) != STATUS_OK)
        fail_msg("%s: %s", uri, error.text);
    return location;
}

TEST(a_host_a_port_and_a_database)
{
    static const struct {
        const char *uri, *name;
        uint16_t port;
        uint32_t database;
        const char *shown;
    } cases[] = {
        {"redis://localhost", "localhost", 6379, 0, "redis://localhost:6379/0"},
        {"redis://localhost/", "localhost", 6379, 0, "redis://localhost:6379/0"},
        {"redis://10.0.0.7:1/15", "10.0.0.7", 1, 15, "redis://10.0.0.7:1/15"},
        {"redis://[::1]", "::1", 6379, 0, "redis://[::1]:6379/0"},
        {"redis://[2001:db8::7]:65535/3", "2001:db8::7", 65535, 3, "redis://[2001:db8::7]:65535/3"},
        {"redis://a-b_c.example:7000", "a-b_c.example", 7000, 0, "redis://a-b_c.example:7000/0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct redis_location *location = parse(cases[i].uri);
        assert_int_equal(location->way, REDIS_BY_TCP);
        assert_false(location->tls);
        assert_int_equal(location->host_count, 1);
        assert_string_equal(location->hosts[0].name, cases[i].name);
        assert_int_equal(location->hosts[0].port, cases[i].port);
        assert_int_equal(location->database, cases[i].database);
        assert_null(location->user);
        assert_null(location->password);
        assert_string_equal(buffer_string(&location->shown), cases[i].shown);
        redis_location_destroy(&location);
    }
}

TEST(a_user_and_a_password_are_decoded_and_never_shown)
{
    static const struct {
        const char *uri, *user, *password;
    } cases[] = {
        {"redis://:secret@h/0", NULL, "secret"},
        {"redis://feed:secret@h:7", "feed", "secret"},
        {"rediss://f%40%3A:%25%2f%2F%3F%C3%A9@h", "f@:", "%//?\xC3\xA9"},
        {"redis+sentinel://feed:secret@h1,h2/s/0", "feed", "secret"},
        {"unix://feed:secret@/run/redis.sock", "feed", "secret"},
        {"unix://:secret@/run/redis.sock?db=2", NULL, "secret"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct redis_location *location = parse(cases[i].uri);
        if (cases[i].user == NULL)
            assert_null(location->user);
        else
            assert_string_equal(location->user, cases[i].user);
        assert_string_equal(location->password, cases[i].password);
        assert_null(strstr(buffer_string(&location->shown), "secret"));
        assert_null(strchr(buffer_string(&location->shown), '@'));
        redis_location_destroy(&location);
    }
}

TEST(a_socket)
{
    struct redis_location *location = parse("unix:/run/redis.sock");
    assert_int_equal(location->way, REDIS_BY_UNIX);
    assert_string_equal(location->path, "/run/redis.sock");
    assert_int_equal(location->database, 0);
    redis_location_destroy(&location);
    location = parse("unix:redis.sock?db=7");
    assert_string_equal(location->path, "redis.sock");
    assert_int_equal(location->database, 7);
    assert_string_equal(buffer_string(&location->shown), "unix:redis.sock?db=7");
    redis_location_destroy(&location);
    location = parse("unix:///run/redis.sock");
    assert_string_equal(location->path, "/run/redis.sock");
    redis_location_destroy(&location);
}

TEST(sentinels)
{
    struct redis_location *location = parse("redis+sentinel://h1,10.0.0.8:7,[::1]/my-service/2");
    assert_int_equal(location->way, REDIS_BY_SENTINEL);
    assert_int_equal(location->host_count, 3);
    assert_string_equal(location->hosts[0].name, "h1");
    assert_int_equal(location->hosts[0].port, 26379);
    assert_int_equal(location->hosts[1].port, 7);
    assert_string_equal(location->hosts[2].name, "::1");
    assert_string_equal(location->service, "my-service");
    assert_int_equal(location->database, 2);
    assert_string_equal(buffer_string(&location->shown),
                        "redis+sentinel://h1:26379,10.0.0.8:7,[::1]:26379/my-service/2");
    redis_location_destroy(&location);
    location = parse("redis+sentinel://h/s");
    assert_int_equal(location->database, 0);
    redis_location_destroy(&location);
}

TEST(tls)
{
    struct redis_location *location = parse("rediss://h:7?tls_ca=/etc/ca%20one.pem");
    assert_true(location->tls);
    assert_string_equal(location->tls_ca, "/etc/ca one.pem");
    redis_location_destroy(&location);
    location = parse("rediss+sentinel://:secret@h1,h2:7/s/3?tls_ca=/ca.pem");
    assert_true(location->tls);
    assert_int_equal(location->way, REDIS_BY_SENTINEL);
    assert_int_equal(location->host_count, 2);
    assert_string_equal(location->tls_ca, "/ca.pem");
    assert_string_equal(location->shown.data, "rediss+sentinel://h1:26379,h2:7/s/3");
    redis_location_destroy(&location);
}

TEST(what_is_not_understood_is_refused_and_no_secret_told)
{
    static const char *const wrong[] = {
        "redis:h",
        "redis:/h",
        "redis://",
        "redis:///0",
        "redis://h:",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:6379x",
        "redis://h:-1",
        "redis://h:+1",
        "redis://h:1:2",
        "redis://h/x",
        "redis://h/-1",
        "redis://h/1/2",
        "redis://h/1000000",
        "redis://h/99999999999999999999",
        "redis://h,/0",
        "redis://h,i/0/1",
        "redis://h h/0",
        "redis://h\t/0",
        "redis://[::1",
        "redis://[]/0",
        "redis://[::1]x",
        "redis://::1/0",
        "redis://h?db=1",
        "redis://h?",
        "redis://h?tls_ca=/x",
        "rediss://h?tls_ca=",
        "rediss://h?other=hunter2",
        "redis://hunter2@h",
        "redis://hunter2:@h",
        "redis://:@h",
        "redis://u:hun:ter2@h",
        "redis://u:hun@ter2@h",
        "redis://u:hunter2%@h",
        "redis://u:hunter2%4@h",
        "redis://u:hunter2%zz@h",
        "redis://u:hunter2%00@h",
        "redis://u:hunter2/x@h",
        "redis://u:hunter2?x@h",
        "redis+sentinel://h",
        "redis+sentinel://h/",
        "redis+sentinel:///s/0",
        "redis+sentinel://h,/s/0",
        "redis+sentinel://,h/s",
        "redis+sentinel://h/s/0/1",
        "redis+sentinel://h/s s/0",
        "redis+sentinel://h/s/x",
        "redis+sentinel://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17/s/0",
        "unix:",
        "unix:?db=1",
        "unix://",
        "unix://run/redis.sock",
        "unix:/s?db=",
        "unix:/s?db=x",
        "unix:/s?db",
        "unix:/s?tls_ca=/x",
        "unix://hunter2@/s",
        "unix:/s\n",
        "http://h",
        "REDIS://h",
        "",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct redis_location *location = NULL;
        struct error error = {{0}};
        if (redis_location_parse(&location, wrong[i], &error) != STATUS_INVALID)
            fail_msg("accepted: %s", wrong[i]);
        assert_null(location);
        assert_true(error.text[0] != '\0');
        assert_null(strstr(error.text, "hunter2"));
        assert_null(strstr(error.text, "ter2"));
    }
}

TEST(a_path_has_room_for_107_bytes)
{
    struct redis_location *location = NULL;
    struct error error = {{0}};
    char uri[128];
    (void)snprintf(uri, sizeof uri, "unix:/%0106d", 0);
    assert_int_equal(redis_location_parse(&location, uri, &error), STATUS_OK);
    redis_location_destroy(&location);
    (void)snprintf(uri, sizeof uri, "unix:/%0107d", 0);
    assert_int_equal(redis_location_parse(&location, uri, &error), STATUS_INVALID);
}
