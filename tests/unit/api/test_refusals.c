/* api/refusals: who was refused in the last hour, in bounded room. */
#include "api/refusals.h"

#include "admission/error_rows.h"
#include "sports/errors.h"
#include "tests.h"

#define MINUTE_MS INT64_C(60000)
#define NOW_MS (INT64_C(1795395600000)) /* a whole hour */
#define ROOM 8

static int set_up(void **state)
{
    *state = refusals_create();
    return 0;
}

static int tear_down(void **state)
{
    struct refusals *refusals = *state;
    refusals_destroy(&refusals);
    return 0;
}

static void note(struct refusals *refusals, const char *customer, enum admission_denial denial,
                 const char *key, const char *from, int64_t now_ms)
{
    struct address address;
    assert_int_equal(address_parse(text_of(from), &address), STATUS_OK);
    refusals_note(refusals, customer, admission_error_of(denial), key, &address, now_ms);
}

TEST_WITH(a_row_is_of_a_customer_a_reason_and_a_key, set_up, tear_down)
{
    struct refused list[ROOM];
    char address[ADDRESS_TEXT_SIZE];
    note(*state, "cus_a", DENIAL_REVOKED_KEY, "crk_1", "192.0.2.1", NOW_MS);
    note(*state, "cus_b", DENIAL_REVOKED_KEY, "crk_1", "192.0.2.1", NOW_MS);
    note(*state, "cus_a", DENIAL_EXPIRED_KEY, "crk_2", "192.0.2.1", NOW_MS);
    note(*state, "cus_a", DENIAL_REVOKED_KEY, "crk_2", "192.0.2.1", NOW_MS);
    note(*state, "cus_a", DENIAL_REVOKED_KEY, "crk_1", "192.0.2.7", NOW_MS + 1);
    assert_int_equal(refusals_list(*state, "cus_a", NOW_MS + 1, list, ROOM), 3);
    assert_string_equal(list[0].key, "crk_1");
    assert_ptr_equal(list[0].error, admission_error_of(DENIAL_REVOKED_KEY));
    assert_int_equal(list[0].count, 2);
    assert_int_equal(list[0].last_ms, NOW_MS + 1);
    address_format(&list[0].address, address);
    assert_string_equal(address, "192.0.2.7");
    assert_string_equal(list[2].key, "crk_2");
    assert_ptr_equal(list[2].error, admission_error_of(DENIAL_EXPIRED_KEY));
    assert_int_equal(refusals_list(*state, "cus_a", NOW_MS + 1, list, 2), 2);
    assert_int_equal(refusals_list(*state, "cus_c", NOW_MS + 1, list, ROOM), 0);
    assert_int_equal(refusals_list(*state, NULL, NOW_MS + 1, list, ROOM), 4);
    assert_string_equal(list[3].customer_id, "cus_b");
}

TEST_WITH(what_was_let_in_or_failed_is_none, set_up, tear_down)
{
    struct refused list[ROOM];
    struct address address;
    assert_int_equal(address_parse(TEXT("192.0.2.1"), &address), STATUS_OK);
    const struct http_error *errors[] = {&error_rate_limited, &error_invalid_sport,
                                         &error_event_not_found, &error_policies_unconfirmed};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        refusals_note(*state, "cus_a", errors[i], "crk_1", &address, NOW_MS);
    assert_int_equal(refusals_list(*state, NULL, NOW_MS, list, ROOM), 1);
    assert_ptr_equal(list[0].error, &error_rate_limited);
}

TEST_WITH(what_is_an_hour_ago_counts_no_more, set_up, tear_down)
{
    struct refused list[ROOM];
    for (int64_t minute = 0; minute < 60; minute++)
        note(*state, "cus_a", DENIAL_NO_POLICY, "", "192.0.2.1", NOW_MS + minute * MINUTE_MS);
    assert_int_equal(refusals_list(*state, "cus_a", NOW_MS + 59 * MINUTE_MS, list, ROOM), 1);
    assert_int_equal(list[0].count, 60);
    assert_int_equal(refusals_list(*state, "cus_a", NOW_MS + 60 * MINUTE_MS, list, ROOM), 1);
    assert_int_equal(list[0].count, 55);
    assert_int_equal(refusals_list(*state, "cus_a", NOW_MS + 30 * MINUTE_MS, list, ROOM), 1);
    assert_int_equal(list[0].count, 55); /* the clock was set back */
    assert_int_equal(refusals_list(*state, "cus_a", NOW_MS + 119 * MINUTE_MS, list, ROOM), 0);
    note(*state, "cus_a", DENIAL_NO_POLICY, "", "192.0.2.1", NOW_MS + 300 * MINUTE_MS);
    assert_int_equal(refusals_list(*state, "cus_a", NOW_MS + 300 * MINUTE_MS, list, ROOM), 1);
    assert_int_equal(list[0].count, 1);
}

TEST_WITH(the_oldest_row_gives_way, set_up, tear_down)
{
    struct refused list[ROOM];
    for (int i = 0; i < REFUSALS_MAX + 1; i++) {
        char customer[CUSTOMER_ID_SIZE];
        (void)snprintf(customer, sizeof customer, "cus_%d", i);
        note(*state, customer, DENIAL_CUSTOMER_DISABLED, "crk_1", "192.0.2.1", NOW_MS);
        note(*state, "cus_always", DENIAL_CUSTOMER_DISABLED, "crk_1", "192.0.2.1", NOW_MS);
    }
    assert_int_equal(refusals_list(*state, "cus_1", NOW_MS, list, ROOM), 0);
    assert_int_equal(refusals_list(*state, "cus_2", NOW_MS, list, ROOM), 1);
    assert_int_equal(refusals_list(*state, "cus_4096", NOW_MS, list, ROOM), 1);
    assert_int_equal(refusals_list(*state, "cus_always", NOW_MS, list, ROOM), 1);
    assert_int_equal(list[0].count, REFUSALS_MAX + 1);
}
