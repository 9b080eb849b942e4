/* api/routes: which path is which route. */
#include "api/routes.h"
#include "tests.h"

#define CATALOG "/api/v1/{sport}/events"
#define EVENT "/api/v1/{sport}/events/{eventId}"
#define LAUNCH "/api/v1/casino/games/{gameId}/launch"
#define WALLET "/api/v1/casino/wallet"
#define HEALTH "/api/v1/health"
#define PROVIDER "/provider/v1/wallet"

/* The row of a number, by its path, which it fits itself. NULL: beyond the last. */
static const struct route *route_at(size_t number)
{
    const char *path = route_label(ROUTE_FIRST + number);
    if (path == NULL)
        return NULL;
    const struct route *route = route_find(text_of(path)).route;
    return route != NULL ? route : route_find_of_provider(text_of(path)).route;
}

static void assert_route(const char *path, const char *wanted)
{
    struct route_match match = route_find(text_of(path));
    assert_non_null(match.route);
    assert_string_equal(match.route->path, wanted);
}

static void assert_no_route(const char *path)
{
    struct route_match match = route_find(text_of(path));
    if (match.route != NULL)
        fail_msg("'%s' matched %s", path, match.route->path);
    assert_null(match.values[0].at);
}

TEST(every_path_of_the_interface_has_its_route)
{
    assert_route("/api/v1/health", HEALTH);
    assert_route("/api/v1/sports", "/api/v1/sports");
    assert_route("/api/v1/cricket/events", CATALOG);
    assert_route("/api/v1/cricket/events/34000001", EVENT);
    assert_route("/api/v1/casino/wallet", WALLET);
}

TEST(values_are_what_stands_in_the_path)
{
    struct route_match match = route_find(TEXT("/api/v1/Chess/events/abc"));
    assert_string_equal(match.route->path, EVENT);
    assert_true(text_equals(match.values[0], TEXT("Chess")));
    assert_true(text_equals(match.values[1], TEXT("abc")));
}

TEST(any_words_make_a_sports_path)
{
    assert_route("/api/v1/health/events", CATALOG);
    assert_route("/api/v1/sports/events/1", EVENT);
    assert_route("/api/v1/x/events/events", EVENT);
}

TEST(casino_is_never_a_sport)
{
    assert_no_route("/api/v1/casino/events");
    assert_no_route("/api/v1/casino/events/1");
    assert_route("/api/v1/Casino/events", CATALOG);
    assert_true(route_is_casino(TEXT("/api/v1/casino/events")));
    assert_false(route_is_casino(TEXT("/api/v1/casino")));
    assert_false(route_is_casino(TEXT("/api/v1/Casino/events")));
}

TEST(routes_are_read_only_but_for_launch_wallet_and_account)
{
    const struct route *route;
    size_t count = 0;
    for (; (route = route_at(count)) != NULL; count++) {
        if (route->account != NULL || strcmp(route->path, WALLET) == 0 ||
            strcmp(route->path, LAUNCH) == 0 || strcmp(route->path, PROVIDER) == 0)
            continue;
        assert_true(route_allows(route, METHOD_GET));
        assert_true(route_allows(route, METHOD_HEAD));
        assert_true(text_equals(route_methods(route), TEXT("GET, HEAD")));
        for (int method = METHOD_POST; method <= METHOD_CONNECT; method++)
            assert_false(route_allows(route, (enum http_method)method));
    }
    assert_true(count >= 4);
}

TEST(launch_and_wallet_take_posts_alone)
{
    const struct route *wallet = route_find(TEXT("/api/v1/casino/wallet")).route;
    for (int method = METHOD_GET; method <= METHOD_CONNECT; method++)
        assert_int_equal(route_allows(wallet, (enum http_method)method), method == METHOD_POST);
    const struct route *launch = route_find(TEXT("/api/v1/casino/games/a-1/launch")).route;
    assert_string_equal(launch->path, LAUNCH);
    assert_true(text_equals(route_methods(launch), TEXT("POST")));
    for (int method = METHOD_GET; method <= METHOD_CONNECT; method++)
        assert_int_equal(route_allows(launch, (enum http_method)method), method == METHOD_POST);
}

TEST(only_health_is_free_of_admission_and_casino_of_limits)
{
    const struct route *route;
    for (size_t i = 0; (route = route_at(i)) != NULL; i++) {
        bool health = strcmp(route->path, HEALTH) == 0;
        assert_int_equal(route->admission, !health);
        assert_int_equal(route->rate_limited, !health && !route_is_casino(text_of(route->path)) &&
                                                  strcmp(route->path, PROVIDER) != 0);
    }
}

TEST(every_number_has_a_label_of_its_own)
{
    const struct route *route;
    assert_string_equal(route_label(ROUTE_OTHER), "other");
    assert_string_equal(route_label(ROUTE_REFUSED), "refused");
    assert_int_equal(route_number(NULL), ROUTE_OTHER);
    for (size_t i = 0; (route = route_at(i)) != NULL; i++) {
        assert_int_equal(route_number(route), ROUTE_FIRST + i);
        assert_ptr_equal(route_label(ROUTE_FIRST + i), route->path);
    }
}
