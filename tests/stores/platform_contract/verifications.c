/*
 * The contract of the last proofs of the ledger: one of each scope is kept.
 */
#include "platform_contract/contract.h"

static struct verification_record record(enum verification_scope scope, int64_t started_ms,
                                         const char *reason)
{
    struct verification_record made = {.scope = scope,
                                       .started_ms = started_ms,
                                       .ended_ms = started_ms + 10,
                                       .since_ms = scope == VERIFICATION_RECENT ? 5 : 0,
                                       .sound = reason[0] == '\0',
                                       .entries = 10000000000,
                                       .players = 7};
    verification_set_reason(&made, reason);
    return made;
}

static void put(struct fixture *fixture, const struct verification_record *made)
{
    OK(platform_verification_put(fixture->store, made, &fixture->error));
}

static struct verifications found(struct fixture *fixture)
{
    struct verifications last;
    struct platform_store *other = open_store(fixture, false);
    OK(platform_verifications(other, &last, &fixture->error));
    platform_store_close(&other);
    return last;
}

static uint64_t revision(struct fixture *fixture)
{
    uint64_t number;
    OK(platform_verifications_revision(fixture->store, &number, &fixture->error));
    return number;
}

static void expect_same(const struct verification_record *one,
                        const struct verification_record *other)
{
    assert_int_equal(one->scope, other->scope);
    assert_int_equal(one->started_ms, other->started_ms);
    assert_int_equal(one->ended_ms, other->ended_ms);
    assert_int_equal(one->since_ms, other->since_ms);
    assert_int_equal(one->sound, other->sound);
    assert_int_equal(one->entries, other->entries);
    assert_int_equal(one->players, other->players);
    assert_string_equal(one->reason, other->reason);
}

TEST_OF(fixture, the_last_verification_of_each_scope_is_kept)
{
    assert_int_equal(revision(fixture), 0);
    for (int scope = 0; scope < VERIFICATION_SCOPE_COUNT; scope++)
        assert_int_equal(found(fixture).of[scope].started_ms, 0);
    struct verification_record broken = record(VERIFICATION_WHOLE, 1000, "entry 3 of ply_X: gap");
    struct verification_record recent = record(VERIFICATION_RECENT, 2000, "");
    put(fixture, &broken);
    uint64_t first = revision(fixture);
    put(fixture, &recent);
    assert_int_not_equal(revision(fixture), first);
    struct verifications last = found(fixture);
    expect_same(&last.of[VERIFICATION_WHOLE], &broken);
    expect_same(&last.of[VERIFICATION_RECENT], &recent);
    recent = record(VERIFICATION_RECENT, 3000, "an entry");
    put(fixture, &recent);
    last = found(fixture);
    expect_same(&last.of[VERIFICATION_WHOLE],
                &broken); /* what is recent says nothing of the rest */
    expect_same(&last.of[VERIFICATION_RECENT], &recent);
}

TEST_OF(fixture, a_sound_whole_does_away_with_an_earlier_recent_one)
{
    struct verification_record recent = record(VERIFICATION_RECENT, 1000, "an entry");
    struct verification_record whole = record(VERIFICATION_WHOLE, 1005, "");
    put(fixture, &recent);
    put(fixture, &whole); /* it began before the other had ended */
    assert_int_equal(found(fixture).of[VERIFICATION_RECENT].started_ms, 1000);
    whole = record(VERIFICATION_WHOLE, 2000, "another entry");
    put(fixture, &whole); /* which came to no good end */
    assert_int_equal(found(fixture).of[VERIFICATION_RECENT].started_ms, 1000);
    whole = record(VERIFICATION_WHOLE, 3000, "");
    put(fixture, &whole);
    assert_int_equal(found(fixture).of[VERIFICATION_RECENT].started_ms, 0);
    assert_true(found(fixture).of[VERIFICATION_WHOLE].sound);
}

/* An error may quote what someone wrote into a row. */
TEST_OF(fixture, a_reason_is_printable_and_fits)
{
    char reason[VERIFICATION_REASON_SIZE + 50];
    memset(reason, 'x', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    memcpy(reason, "a\xFF\n\x7F~ ", 6);
    struct verification_record whole = record(VERIFICATION_WHOLE, 1000, reason);
    put(fixture, &whole);
    struct verifications last = found(fixture);
    const char *kept = last.of[VERIFICATION_WHOLE].reason;
    assert_int_equal(strlen(kept), VERIFICATION_REASON_SIZE - 1);
    assert_memory_equal(kept, "a???~ xx", 8);
}

static bool see_trail(void *context, const void *row)
{
    const struct trail_record *record = row;
    struct buffer *seen = context;
    buffer_append_format(seen, "%s|%s|%s|%s|%.*s|%.*s\n", record->who, record->command,
                         record->kind, record->object, (int)record->before.size, record->before.at,
                         (int)record->after.size, record->after.at);
    return true;
}

TEST_OF(fixture, each_is_a_row_of_the_audit_trail)
{
    const struct trail_search search = {.object = "recent", .who = "", .limit = 10};
    struct verification_record recent = record(VERIFICATION_RECENT, 1000, "a gap");
    struct buffer seen = {0};
    platform_store_act_as(fixture->store, "anna", "wallet verify");
    put(fixture, &recent);
    OK(platform_trail_search(fixture->store, &search, see_trail, &seen, &fixture->error));
    assert_string_equal(buffer_string(&seen),
                        "anna|wallet verify|verification|recent||{\"sound\":false,"
                        "\"entries\":10000000000,\"players\":7,\"reason\":\"a gap\"}\n");
    buffer_free(&seen);
}

static void raise_flag(void *context, const char *what, uint64_t done, uint64_t total)
{
    (void)what;
    (void)done;
    (void)total;
    atomic_store((atomic_bool *)context, true);
}

/* What takes long ends when nobody waits for it any more, and so does all that follows. */
TEST_OF(fixture, a_handle_that_is_stopped_answers_no_more)
{
    struct platform_store *store = open_store(fixture, false);
    const char *how = NULL;
    atomic_bool stop;
    atomic_init(&stop, false);
    store->stop = &stop;
    OK(store->ledger->snapshot_begin(store, &fixture->error));
    const struct progress_watch watch = {raise_flag, &stop};
    store->watch = &watch;
    assert_int_equal(store->ledger->integrity(store, &how, &fixture->error), STATUS_UNAVAILABLE);
    assert_non_null(strstr(fixture->error.text, "not waited for"));
    assert_int_equal(store->ledger->counterparts(store, &fixture->error), STATUS_UNAVAILABLE);
    store->ledger->snapshot_end(store);
    atomic_store(&stop, false);
    OK(platform_store_ping(store, &fixture->error));
    platform_store_close(&store);
}
