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

TEST_OF(fixture, issuing_is_refused_without_a_customer_or_with_bad_texts)
{
    char customer_id[CUSTOMER_ID_SIZE];
    char long_label[KEY_LABEL_SIZE + 1];
    char key[KEY_SIZE] = "";
    struct key_record record = {0};
    memset(long_label, 'l', KEY_LABEL_SIZE);
    long_label[KEY_LABEL_SIZE] = '\0';
    add_customer(fixture, customer_id);
    const struct {
        const struct resource_edit *edit;
        enum status status;
        const char *words;
    } wrong[] = {
        {EDIT({"customer", "cus_nobody"}), STATUS_NOT_FOUND, "no customer 'cus_nobody'"},
        {EDIT({"customer", "cus_0123456789abcdef0123456789"}), STATUS_NOT_FOUND, "no customer"},
        {EDIT({"customer", customer_id}, {"label", long_label}), STATUS_INVALID,
         "label: must be 0 to 64 bytes"},
        {EDIT({"customer", customer_id}, {"label", "a\tb"}), STATUS_INVALID, "control characters"},
        {EDIT({"customer", customer_id}, {"expires_at", "2001-01-01"}), STATUS_INVALID,
         "not in the future"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        REFUSED(issue(fixture, wrong[i].edit, key, &record), wrong[i].status, wrong[i].words);
    assert_string_equal(key, "");
}

TEST_OF(fixture, a_key_is_found_by_id_by_all_of_it_and_by_its_prefix)
{
    char customer_id[CUSTOMER_ID_SIZE];
    char key[KEY_SIZE];
    char prefix[KEY_PREFIX_SIZE];
    struct key_record issued;
    struct key_record found;
    add_customer(fixture, customer_id);
    OK(issue(fixture, EDIT({"customer", customer_id}), key, &issued));
    key_prefix(text_of(key), prefix);
    const char *const names[] = {issued.id, key, prefix};
    for (size_t i = 0; i < 3; i++) {
        memset(&found, 0, sizeof found);
        OK(keys_find(fixture->store, names[i], NOW_MS, &found, &fixture->error));
        assert_string_equal(found.id, issued.id);
    }
    REFUSED(keys_find(fixture->store, "key_none", NOW_MS, &found, &fixture->error),
            STATUS_NOT_FOUND, "no key 'key_none'");
    REFUSED(keys_find(fixture->store, "crk_----", NOW_MS, &found, &fixture->error),
            STATUS_NOT_FOUND, "no key 'crk_----'");
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

TEST_OF(fixture, revoking_twice_keeps_the_first_time)
{
    char customer_id[CUSTOMER_ID_SIZE];
    struct key_record record;
    add_customer(fixture, customer_id);
    add_key(fixture, customer_id, "key_a", 0);
    OK(keys_revoke(fixture->store, "key_a", NOW_MS, &record, &fixture->error));
    assert_true(record.revoked_ms == NOW_MS);
    OK(keys_revoke(fixture->store, "crk_same", NOW_MS + 5, &record, &fixture->error));
    assert_true(record.revoked_ms == NOW_MS);
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
        text.data,
        "{\"id\":\"key_1\",\"customer\":\"cus_1\",\"prefix\":\"crk_abcd\","
        "\"label\":\"\",\"only\":null,\"cidrs\":[],\"created_at\":\"2025-11-21T04:40:00.000Z\","
        "\"expires_at\":null,\"last_used_at\":null,"
        "\"revoked_at\":\"2025-11-21T04:40:00.001Z\"}");
    buffer_free(&text);
}
