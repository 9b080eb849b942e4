/*
 * The contract of changes: what a reader is told since a revision, with several writers about.
 */
#include "platform_contract/contract.h"

TEST_OF(fixture, changes_are_what_is_above_the_revision_customers_first)
{
    struct cidr block = cidr("198.51.100.0/24");
    struct seen seen;
    struct legacy_record legacy_record = legacy("192.0.2.1");
    struct customer_record one = customer("cus_1", "One");
    struct customer_record two = customer("cus_2", "Two");
    struct key_record key_record = key("key_1", "cus_1", 1);
    two.cidrs[0] = block;
    two.cidr_count = 1;
    OK(platform_put(fixture->store, &legacy_table, &legacy_record, &fixture->error)); /* 1 */
    OK(platform_add(fixture->store, &customer_table, &one, &fixture->error));         /* 2 */
    OK(platform_add(fixture->store, &key_table, &key_record, &fixture->error));       /* 3 */
    OK(platform_add(fixture->store, &customer_table, &two, &fixture->error));         /* 4 */

    assert_int_equal(look(fixture, fixture->store, 0, &seen), 4);
    assert_int_equal(seen.customers, 2);
    assert_int_equal(seen.keys, 1);
    assert_int_equal(seen.addresses, 1);
    assert_false(seen.customer_after_key);
    assert_int_equal(seen.customer[1].cidr_count, 1);
    assert_memory_equal(&seen.customer[1].cidrs[0], &block, sizeof block);

    assert_int_equal(look(fixture, fixture->store, 3, &seen), 4);
    assert_int_equal(seen.customers, 1);
    assert_string_equal(seen.customer[0].id, "cus_2");
    assert_int_equal(seen.keys + seen.addresses, 0);

    assert_int_equal(look(fixture, fixture->store, 4, &seen), 4);
    assert_int_equal(seen.customers + seen.keys + seen.addresses, 0);
    /* A revision from the future (the store was replaced): nothing, and the lower number tells. */
    assert_int_equal(look(fixture, fixture->store, 1000, &seen), 4);
    assert_int_equal(seen.customers + seen.keys + seen.addresses, 0);

    OK(platform_update(fixture->store, &customer_table, &one, &fixture->error)); /* 5 */
    assert_int_equal(look(fixture, fixture->store, 4, &seen), 5);
    assert_int_equal(seen.customers, 1);
    assert_string_equal(seen.customer[0].id, "cus_1");
    assert_int_equal(seen.customer[0].revision, 5);
}

/* A visitor that has another handle write while the changes are being read. */
struct meddler {
    struct fixture *fixture;
    struct platform_store *writer;
    size_t customers;
    size_t keys;
};

static bool meddle(void *context, const void *visited)
{
    const struct customer_record *record = visited;
    struct meddler *meddler = context;
    struct fixture *fixture = meddler->fixture;
    struct key_record late = key("key_late", record->id, 77);
    meddler->customers++;
    OK(platform_add(meddler->writer, &key_table, &late, &fixture->error));
    return true;
}

static bool count_key(void *context, const void *record)
{
    ((struct meddler *)context)->keys++;
    return true;
}

static bool ignore_legacy(void *context, const void *record)
{
    return true;
}

TEST_OF(fixture, changes_come_from_one_snapshot_and_block_no_writer)
{
    struct meddler meddler = {.fixture = fixture, .writer = open_store(fixture, false)};
    struct customer_record record = customer("cus_1", "One");
    uint64_t revision = 0;
    OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
    struct record_visitor visit = {.see[RECORD_CUSTOMER] = meddle,
                                   .see[RECORD_KEY] = count_key,
                                   .see[RECORD_ADDRESS] = ignore_legacy,
                                   .context = &meddler};
    OK(platform_changes_since(fixture->store, 0, &visit, &revision, &fixture->error));
    assert_int_equal(meddler.customers, 1);
    assert_int_equal(meddler.keys, 0); /* written after the snapshot was taken */
    assert_int_equal(revision, 1);
    struct seen seen;
    assert_int_equal(look(fixture, fixture->store, revision, &seen), 2);
    assert_int_equal(seen.keys, 1);
    platform_store_close(&meddler.writer);
}

TEST_OF(fixture, another_handle_sees_a_change_at_once)
{
    struct platform_store *reader = open_store(fixture, false);
    struct customer_record record = customer("cus_1", "One");
    uint64_t revision = 0;
    OK(platform_revision(reader, &revision, &fixture->error));
    assert_int_equal(revision, 0);
    OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
    OK(platform_revision(reader, &revision, &fixture->error));
    assert_int_equal(revision, 1);
    struct customer_record found;
    OK(platform_get(reader, &customer_table, "cus_1", &found, &fixture->error));
    platform_store_close(&reader);
}

/* ---- several writers ------------------------------------------------------------------------- */

#define WRITERS 3
#define ROWS_EACH 20

struct writer {
    struct fixture *fixture;
    struct platform_store *store;
    unsigned number;
    enum status status; /* asserted by the main thread: cmocka's own stay there */
    struct error error;
    pthread_t thread;
};

static void *write_rows(void *context)
{
    struct writer *writer = context;
    for (unsigned i = 0; i < ROWS_EACH && writer->status == STATUS_OK; i++) {
        struct customer_record record = {.enabled = true, .created_ms = 1};
        (void)snprintf(record.id, sizeof record.id, "cus_%ux%u", writer->number, i);
        (void)snprintf(record.name, sizeof record.name, "n");
        writer->status = platform_add(writer->store, &customer_table, &record, &writer->error);
    }
    return NULL;
}

struct follower {
    uint64_t revision; /* of the last row seen */
    size_t rows;
    bool in_order;
};

static bool follow_customer(void *context, const void *visited)
{
    const struct customer_record *record = visited;
    struct follower *follower = context;
    if (record->revision <= follower->revision)
        follower->in_order = false;
    follower->revision = record->revision;
    follower->rows++;
    return true;
}

static bool ignore_key(void *context, const void *record)
{
    return true;
}

TEST_OF(fixture, a_follower_of_several_writers_sees_every_row_once)
{
    struct writer writers[WRITERS];
    struct follower follower = {.in_order = true};
    struct record_visitor visit = {.see[RECORD_CUSTOMER] = follow_customer,
                                   .see[RECORD_KEY] = ignore_key,
                                   .see[RECORD_ADDRESS] = ignore_legacy,
                                   .context = &follower};
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] =
            (struct writer){.fixture = fixture, .store = open_store(fixture, false), .number = i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_rows, &writers[i]), 0);
    }
    uint64_t revision = 0;
    enum status status = STATUS_OK;
    for (int look_count = 0; look_count < 200 && status == STATUS_OK; look_count++)
        status =
            platform_changes_since(fixture->store, revision, &visit, &revision, &fixture->error);
    for (unsigned i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
    OK(status);
    OK(platform_changes_since(fixture->store, revision, &visit, &revision, &fixture->error));
    for (unsigned i = 0; i < WRITERS; i++) {
        if (writers[i].status != STATUS_OK)
            fail_msg("%s", writers[i].error.text);
        platform_store_close(&writers[i].store);
    }
    assert_true(follower.in_order);
    assert_int_equal(follower.rows, WRITERS * ROWS_EACH);
    assert_int_equal(revision, WRITERS * ROWS_EACH);
}
