/* admission/denials: who was denied in the last hour, in bounded room. */
#include "admission/denials.h"
#include "tests.h"

#define MINUTE_MS INT64_C(60000)
#define NOW_MS (INT64_C(1795395600000)) /* a whole hour */
#define ROOM 8

static int set_up(void **state)
{
    *state = denials_create();
    return 0;
}

static int tear_down(void **state)
{
    struct denials *denials = *state;
    denials_destroy(&denials);
    return 0;
}

static void note(struct denials *denials, const char *customer, enum admission_denial reason,
                 const char *key, const char *from, int64_t now_ms)
{
    struct address address;
    assert_int_equal(address_parse(text_of(from), &address), STATUS_OK);
    denials_note(denials, customer, reason, key, &address, now_ms);
}

TEST_WITH(a_row_is_of_a_customer_a_reason_and_a_key, set_up, tear_down)
{
    struct denied list[ROOM];
    char address[ADDRESS_TEXT_SIZE];
    note(*state, "cus_a", DENIAL_REVOKED_KEY, "crk_1", "192.0.2.1", NOW_MS);
    note(*state, "cus_b", DENIAL_REVOKED_KEY, "crk_1", "192.0.2.1", NOW_MS);
    note(*state, "cus_a", DENIAL_EXPIRED_KEY, "crk_2", "192.0.2.1", NOW_MS);
    note(*state, "cus_a", DENIAL_REVOKED_KEY, "crk_2", "192.0.2.1", NOW_MS);
    note(*state, "cus_a", DENIAL_REVOKED_KEY, "crk_1", "192.0.2.7", NOW_MS + 1);
    assert_int_equal(denials_list(*state, "cus_a", NOW_MS + 1, list, ROOM), 3);
    assert_string_equal(list[0].key, "crk_1");
    assert_int_equal(list[0].reason, DENIAL_REVOKED_KEY);
    assert_int_equal(list[0].count, 2);
    assert_int_equal(list[0].last_ms, NOW_MS + 1);
    address_format(&list[0].address, address);
    assert_string_equal(address, "192.0.2.7");
    assert_string_equal(list[2].key, "crk_2");
    assert_int_equal(list[2].reason, DENIAL_EXPIRED_KEY);
    assert_int_equal(denials_list(*state, "cus_a", NOW_MS + 1, list, 2), 2);
    assert_int_equal(denials_list(*state, "cus_c", NOW_MS + 1, list, ROOM), 0);
}

TEST_WITH(what_is_an_hour_ago_counts_no_more, set_up, tear_down)
{
    struct denied list[ROOM];
    for (int64_t minute = 0; minute < 60; minute++)
        note(*state, "cus_a", DENIAL_NO_POLICY, "", "192.0.2.1", NOW_MS + minute * MINUTE_MS);
    assert_int_equal(denials_list(*state, "cus_a", NOW_MS + 59 * MINUTE_MS, list, ROOM), 1);
    assert_int_equal(list[0].count, 60);
    assert_int_equal(denials_list(*state, "cus_a", NOW_MS + 60 * MINUTE_MS, list, ROOM), 1);
    assert_int_equal(list[0].count, 55);
    assert_int_equal(denials_list(*state, "cus_a", NOW_MS + 30 * MINUTE_MS, list, ROOM), 1);
    assert_int_equal(list[0].count, 55); /* the clock was set back */
    assert_int_equal(denials_list(*state, "cus_a", NOW_MS + 119 * MINUTE_MS, list, ROOM), 0);
    note(*state, "cus_a", DENIAL_NO_POLICY, "", "192.0.2.1", NOW_MS + 300 * MINUTE_MS);
    assert_int_equal(denials_list(*state, "cus_a", NOW_MS + 300 * MINUTE_MS, list, ROOM), 1);
    assert_int_equal(list[0].count, 1);
}

TEST_WITH(the_oldest_row_gives_way, set_up, tear_down)
{
    struct denied list[ROOM];
    for (int i = 0; i < DENIALS_MAX + 1; i++) {
        char customer[CUSTOMER_ID_SIZE];
        (void)snprintf(customer, sizeof customer, "cus_%d", i);
        note(*state, customer, DENIAL_CUSTOMER_DISABLED, "crk_1", "192.0.2.1", NOW_MS);
        note(*state, "cus_always", DENIAL_CUSTOMER_DISABLED, "crk_1", "192.0.2.1", NOW_MS);
    }
    assert_int_equal(denials_list(*state, "cus_1", NOW_MS, list, ROOM), 0);
    assert_int_equal(denials_list(*state, "cus_2", NOW_MS, list, ROOM), 1);
    assert_int_equal(denials_list(*state, "cus_4096", NOW_MS, list, ROOM), 1);
    assert_int_equal(denials_list(*state, "cus_always", NOW_MS, list, ROOM), 1);
    assert_int_equal(list[0].count, DENIALS_MAX + 1);
}
