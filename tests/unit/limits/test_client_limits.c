/* Counts of what one client holds. */
#include "limits/client_limits.h"
#include "tests.h"

static struct address address(const char *text)
{
    struct address result;
    assert_int_equal(address_parse(text_of(text), &result), STATUS_OK);
    return result;
}

TEST(an_address_has_so_many_connections_more_than_it_may)
{
    static const struct {
        const char *address;
        uint32_t over;
    } turns[] = {
        {"192.0.2.1", 0},
        {"192.0.2.1", 0},
        {"192.0.2.1", 1},
        {"::ffff:192.0.2.1", 2},
        {"192.0.2.2", 0},
        {"2001:db8::1", 0},
        {"2001:db8::ffff:0:0:2", 0},
        {"2001:db8:0:1::1", 0},
        {"2001:db8::3", 1},
    };
    const size_t count = sizeof turns / sizeof turns[0];
    struct client_limits *limits = client_limits_create();
    for (int round = 0; round < 2; round++) { /* all of it is given back */
        client_limits_set(limits, CONNECTIONS_PER_ADDRESS, 2);
        for (size_t i = 0; i < count; i++) {
            struct address at = address(turns[i].address);
            assert_int_equal(client_limits_add(limits, &at), turns[i].over);
        }
        client_limits_set(limits, CONNECTIONS_PER_ADDRESS, 0);
        struct address any = address("192.0.2.1");
        assert_int_equal(client_limits_add(limits, &any), 0);
        client_limits_remove(limits, &any);
        for (size_t i = 0; i < count; i++) {
            struct address at = address(turns[i].address);
            client_limits_remove(limits, &at);
        }
    }
    client_limits_destroy(&limits);
}
