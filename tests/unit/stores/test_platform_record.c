/* stores/platform_record: what a record may hold, and lists of blocks in a column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stores/platform_record.h"

static void a_list_of_blocks_is_written_and_read_back(void **state)
{
    (void)state;
    struct cidr blocks[4];
    struct cidr found[4];
    size_t count = 9;
    struct buffer text = {0};
    const char *wanted = "192.0.2.0/24 0.0.0.0/0 2001:db8::/32 ::/0";
    struct text rest = text_of(wanted);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(cidr_parse(text_cut(&rest, ' '), &blocks[i], NULL), STATUS_OK);
    cidr_list_append(&text, blocks, 4);
    assert_string_equal(buffer_string(&text), wanted);
    assert_true(cidr_list_read(buffer_text(&text), found, 4, &count));
    assert_int_equal(count, 4);
    assert_memory_equal(found, blocks, sizeof blocks);
    assert_true(cidr_list_read(TEXT(""), found, 4, &count));
    assert_int_equal(count, 0);
    buffer_free(&text);
}

static void what_is_no_list_of_blocks_is_not_read(void **state)
{
    (void)state;
    const char *wrong[] = {" ",
                           "192.0.2.0/24 ",
                           " 192.0.2.0/24",
                           "192.0.2.0/24  10.0.0.0/8",
                           "192.0.2.0/24,10.0.0.0/8",
                           "192.0.2.1/24",
                           "192.0.2.0/33",
                           "nowhere"};
    struct cidr found[4];
    size_t count = 9;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(cidr_list_read(text_of(wrong[i]), found, 4, &count));
    assert_false(cidr_list_read(TEXT("1.0.0.0/8 2.0.0.0/8 3.0.0.0/8"), found, 2, &count));
    assert_int_equal(count, 9);
}

static void a_rate_has_bounds_at_both_ends(void **state)
{
    (void)state;
    assert_true(rate_limit_is_sound(&(struct rate_limit){false, 0, 0}));
    assert_true(rate_limit_is_sound(&(struct rate_limit){true, 1, 1}));
    assert_true(rate_limit_is_sound(&(struct rate_limit){true, 1000000000, 86400}));
    assert_false(rate_limit_is_sound(&(struct rate_limit){true, 0, 1}));
    assert_false(rate_limit_is_sound(&(struct rate_limit){true, 1, 0}));
    assert_false(rate_limit_is_sound(&(struct rate_limit){true, 1000000001, 1}));
    assert_false(rate_limit_is_sound(&(struct rate_limit){true, 1, 86401}));
}

static void ids_have_their_kind_and_plain_characters(void **state)
{
    (void)state;
    struct key_record record = {.prefix = "crk_abcd"};
    const char *wrong[] = {"", "key_", "cus_1", "key_a b", "key_a-b", "KEY_1"};
    strcpy(record.customer_id, "cus_1");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        strcpy(record.id, wrong[i]);
        assert_int_equal(key_record_check(&record, NULL), STATUS_INVALID);
    }
    strcpy(record.id, "key_0123456789abcdefXYZ"); /* as long as there is room for */
    assert_int_equal(key_record_check(&record, NULL), STATUS_OK);
    memset(record.id + 4, 'a', sizeof record.id - 4); /* no NUL */
    assert_int_equal(key_record_check(&record, NULL), STATUS_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_of_blocks_is_written_and_read_back),
        cmocka_unit_test(what_is_no_list_of_blocks_is_not_read),
        cmocka_unit_test(a_rate_has_bounds_at_both_ends),
        cmocka_unit_test(ids_have_their_kind_and_plain_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
