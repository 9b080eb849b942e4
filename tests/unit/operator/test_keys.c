/* operator/keys: issuing, finding and revoking keys. */
#include "platform_fixture.h"

#include "base/clock.h"
#include "operator/customers.h"
#include "operator/keys.h"

#define DAY_MS 86400000LL

static void add_customer(struct fixture *fixture, char id[CUSTOMER_ID_SIZE])
{
    struct customer_view view = {0};
    OK(resource_add(&customer_resource, fixture->store, EDIT({"name", "Acme"}), NOW_MS, &view,
                    &fixture->error));
    strcpy(id, view.record.id);
}

static enum status issue(struct fixture *fixture, const struct resource_edit *edit,
                         char key[KEY_SIZE], struct key_record *record)
{
    enum status status = resource_make(&key_resource, edit, NOW_MS, record, &fixture->error);
    return status == STATUS_OK ? keys_issue(fixture->store, record, key, &fixture->error) : status;
}

static bool keep_key(void *context, const void *visited)
{
    const struct key_record *record = visited;
    *(struct key_record *)context = *record;
    return true;
}

TEST_OF(fixture, what_is_stored_of_a_key_is_its_digest_and_prefix)
{
    char customer_id[CUSTOMER_ID_SIZE];
    char key[KEY_SIZE] = "";
    uint8_t digest[KEY_DIGEST_SIZE];
    struct key_record record = {0};
    struct key_record stored = {0};
    add_customer(fixture, customer_id);
    OK(issue(fixture, EDIT({"customer", customer_id}, {"label", "prod"}, {"expires_at", "1d"}), key,
             &record));
    assert_true(key_is_well_formed(text_of(key)));
    OK(platform_list(fixture->store, &key_table, customer_id, keep_key, &stored, &fixture->error));
    key_digest(text_of(key), digest);
    assert_memory_equal(stored.digest, digest, sizeof digest);
    assert_memory_equal(stored.prefix, key, KEY_PREFIX_SIZE - 1);
    assert_string_equal(stored.label, "prod");
    assert_string_equal(stored.id, record.id);
    assert_memory_equal(stored.id, "key_", 4);
    assert_true(stored.expires_ms == NOW_MS + DAY_MS);
}

TEST_OF(fixture, a_whole_key_is_never_repeated_in_a_refusal)
{
    char key[KEY_SIZE];
    struct key_record found;
    key_generate(key);
    REFUSED(keys_find(fixture->store, key, NOW_MS, &found, &fixture->error), STATUS_NOT_FOUND,
            "no such key");
    assert_null(strstr(fixture->error.text, key + 4));
    key[20] = key[20] == 'a' ? 'b' : 'a'; /* a typo */
    REFUSED(keys_find(fixture->store, key, NOW_MS, &found, &fixture->error), STATUS_INVALID,
            "that is no key");
    assert_null(strstr(fixture->error.text, key + 22));
}

static void add_key(struct fixture *fixture, const char *customer_id, const char *id,
                    int64_t expires_ms)
{
    struct key_record record = {.created_ms = 1, .expires_ms = expires_ms, .prefix = "crk_same"};
    strcpy(record.id, id);
    strcpy(record.customer_id, customer_id);
    memcpy(record.digest, id, strlen(id));
    OK(platform_add(fixture->store, &key_table, &record, &fixture->error));
}

TEST_OF(fixture, a_prefix_of_several_live_keys_is_refused_with_their_ids)
{
    char customer_id[CUSTOMER_ID_SIZE];
    struct key_record record;
    add_customer(fixture, customer_id);
    add_key(fixture, customer_id, "key_a", 0);
    add_key(fixture, customer_id, "key_b", NOW_MS + 1);
    add_key(fixture, customer_id, "key_expired", NOW_MS);
    REFUSED(keys_revoke(fixture->store, "crk_same", NOW_MS, &record, &fixture->error),
            STATUS_EXISTS, "key_a, key_b");
    assert_null(strstr(fixture->error.text, "key_expired"));
    OK(keys_revoke(fixture->store, "key_a", NOW_MS, &record, &fixture->error));
    OK(keys_revoke(fixture->store, "crk_same", NOW_MS, &record, &fixture->error));
    assert_string_equal(record.id, "key_b"); /* the one that was still live */
    REFUSED(keys_revoke(fixture->store, "crk_same", NOW_MS, &record, &fixture->error),
            STATUS_EXISTS, "none of them is live");
}

struct seen {
    char ids[2][CUSTOMER_ID_SIZE];
    size_t live_keys[2];
    size_t count;
};

static bool see(void *context, const void *record)
{
    struct seen *seen = context;
    const struct customer_view *view = record;
    assert_true(seen->count < 2);
    strcpy(seen->ids[seen->count], view->record.id);
    seen->live_keys[seen->count++] = view->live_keys;
    return true;
}

TEST_OF(fixture, live_keys_are_counted_for_each_customer)
{
    char first[CUSTOMER_ID_SIZE];
    char second[CUSTOMER_ID_SIZE];
    int64_t day_hence_ms = clock_wall_ms() + DAY_MS;
    struct key_record record;
    struct customer_view view;
    struct seen seen = {0};
    add_customer(fixture, first);
    add_customer(fixture, second);
    add_key(fixture, first, "key_a", 0);
    add_key(fixture, second, "key_b", day_hence_ms);
    add_key(fixture, first, "key_c", 0);
    add_key(fixture, first, "key_expired", NOW_MS);
    add_key(fixture, second, "key_revoked", 0);
    OK(keys_revoke(fixture->store, "key_revoked", NOW_MS, &record, &fixture->error));
    OK(resource_list(&customer_resource, fixture->store, NULL, see, &seen, &fixture->error));
    assert_int_equal(seen.count, 2);
    assert_string_equal(seen.ids[0], first);
    assert_int_equal(seen.live_keys[0], 2);
    assert_int_equal(seen.live_keys[1], 1);
    OK(resource_get(&customer_resource, fixture->store, first, &view, &fixture->error));
    assert_int_equal(view.live_keys, 2);
}

TEST(a_document_has_every_field_and_no_digest)
{
    const struct key_record record = {.id = "key_1",
                                      .customer_id = "cus_1",
                                      .prefix = "crk_abcd",
                                      .created_ms = NOW_MS,
                                      .revoked_ms = NOW_MS + 1};
    struct buffer text = document_of(&key_resource, &record);
    assert_string_equal(
        text.data, "{\"id\":\"key_1\",\"customer\":\"cus_1\",\"prefix\":\"crk_abcd\","
                   "\"label\":\"\",\"only\":null,\"may_issue\":null,\"made_by\":null,\"cidrs\":[],"
                   "\"created_at\":\"2025-11-21T04:40:00.000Z\","
                   "\"expires_at\":null,\"last_used_at\":null,"
                   "\"revoked_at\":\"2025-11-21T04:40:00.001Z\"}");
    buffer_free(&text);
}
