/* sports/event_table: found by event, let go in order of use. */
#include "sports/event_table.h"
#include "tests.h"

#define NODES 5000

static struct event_id id_of(unsigned number)
{
    char digits[16];
    struct event_id id;
    (void)snprintf(digits, sizeof digits, "%u", number);
    assert_int_equal(event_id_parse(text_of(digits), &id), STATUS_OK);
    return id;
}

TEST(every_event_is_found_until_it_is_removed)
{
    static struct event_node nodes[NODES];
    struct event_table table;
    event_table_init(&table);
    for (unsigned i = 0; i < NODES; i++) {
        struct event_id id = id_of(i + 1);
        event_table_add(&table, &nodes[i], (enum sport)(i % 2), &id, i);
    }
    for (unsigned i = 0; i < NODES; i++) {
        struct event_id id = id_of(i + 1);
        assert_ptr_equal(event_table_find(&table, (enum sport)(i % 2), &id), &nodes[i]);
        assert_null(event_table_find(&table, (enum sport)(1 - i % 2), &id));
    }
    for (unsigned i = 0; i < NODES; i += 2)
        event_table_remove(&table, &nodes[i]);
    assert_int_equal(table.count, NODES / 2);
    for (unsigned i = 0; i < NODES; i++) {
        struct event_id id = id_of(i + 1);
        struct event_node *found = event_table_find(&table, (enum sport)(i % 2), &id);
        assert_ptr_equal(found, i % 2 == 0 ? NULL : &nodes[i]);
    }
    while (event_table_oldest(&table) != NULL)
        event_table_remove(&table, event_table_oldest(&table));
    event_table_free(&table);
}

TEST(the_oldest_is_the_one_used_longest_ago)
{
    struct event_node nodes[3];
    struct event_table table;
    event_table_init(&table);
    for (unsigned i = 0; i < 3; i++) {
        struct event_id id = id_of(i + 1);
        event_table_add(&table, &nodes[i], SPORT_CRICKET, &id, 1000);
    }
    assert_ptr_equal(event_table_oldest(&table), &nodes[0]);
    event_table_touch(&table, &nodes[0], 1500); /* within the second: costs nothing */
    assert_ptr_equal(event_table_oldest(&table), &nodes[0]);
    event_table_touch(&table, &nodes[0], 2000);
    assert_ptr_equal(event_table_oldest(&table), &nodes[1]);
    assert_ptr_equal(TAILQ_LAST(&table.order, event_order), &nodes[0]);
    event_table_touch(&table, &nodes[2], 5000);
    assert_ptr_equal(event_table_oldest(&table), &nodes[1]);
    assert_ptr_equal(TAILQ_LAST(&table.order, event_order), &nodes[2]);
    event_table_remove(&table, &nodes[1]);
    assert_ptr_equal(event_table_oldest(&table), &nodes[0]);
    event_table_remove(&table, &nodes[2]);
    assert_ptr_equal(TAILQ_LAST(&table.order, event_order), &nodes[0]);
    event_table_remove(&table, &nodes[0]);
    event_table_free(&table);
}
