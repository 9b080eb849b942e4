/*
 * The contract of operators and of what they sign in with (operator/credentials.h), which is the
 * same in every engine: a link is good once, for its operator, for as long as it says.
 */
#include "operator/credentials.h"
#include "operator/tokens.h"
#include "platform_contract/contract.h"

#define NOW_MS 1763700000000

static void add_operator(struct fixture *fixture, const char *name, const char *role)
{
    struct operator_record record;
    OK(resource_add(&operator_resource, fixture->store, EDIT({"name", name}, {"role", role}),
                    NOW_MS, &record, &fixture->error));
}

static void change(struct fixture *fixture, const char *name, const char *field, const char *text)
{
    struct operator_record record;
    OK(resource_change(&operator_resource, fixture->store, name, EDIT({field, text}), &record,
                       &fixture->error));
}

static void take_away(struct fixture *fixture, const char *name)
{
    const struct resource_edit edit = {.remove = true};
    struct operator_record record;
    OK(resource_change(&operator_resource, fixture->store, name, &edit, &record, &fixture->error));
}

static struct credential make_link(struct fixture *fixture, const char *name)
{
    struct credential link;
    OK(credential_make_link(fixture->store, name, NOW_MS, &link, &fixture->error));
    return link;
}

static enum status sign_in(struct fixture *fixture, const char *link, int64_t now_ms,
                           struct credential *session)
{
    struct signed_in signed_in;
    return credential_sign_in(fixture->store, text_of(link), "192.0.2.7", now_ms, session,
                              &signed_in, &fixture->error);
}

static enum status look_up(struct fixture *fixture, const char *session, int64_t now_ms)
{
    struct signed_in signed_in;
    return credential_find_session(fixture->store, text_of(session), now_ms, &signed_in,
                                   &fixture->error);
}

static struct credential signed_in_session(struct fixture *fixture, const char *name)
{
    struct credential link = make_link(fixture, name);
    struct credential session;
    OK(sign_in(fixture, link.secret, NOW_MS + 1, &session));
    OK(look_up(fixture, session.secret, NOW_MS + 1));
    return session;
}

TEST_OF(fixture, an_operator_is_added_changed_removed_and_added_again)
{
    struct operator_record record;
    bool exist = true;
    OK(operators_exist(fixture->store, &exist, &fixture->error));
    assert_false(exist);
    add_operator(fixture, "anna", "owner");
    OK(operators_exist(fixture->store, &exist, &fixture->error));
    assert_true(exist);
    assert_int_equal(resource_add(&operator_resource, fixture->store, EDIT({"name", "anna"}),
                                  NOW_MS, &record, &fixture->error),
                     STATUS_EXISTS);
    change(fixture, "anna", "role", "reader");
    OK(resource_get(&operator_resource, fixture->store, "anna", &record, &fixture->error));
    assert_int_equal(record.role, ROLE_READER);
    assert_true(record.enabled && record.usable);
    take_away(fixture, "anna");
    OK(operators_exist(fixture->store, &exist, &fixture->error));
    assert_false(exist);
    assert_int_equal(
        resource_get(&operator_resource, fixture->store, "anna", &record, &fixture->error),
        STATUS_NOT_FOUND);
    add_operator(fixture, "anna", "operator");
    OK(resource_get(&operator_resource, fixture->store, "anna", &record, &fixture->error));
    assert_int_equal(record.role, ROLE_OPERATOR);
}

TEST_OF(fixture, a_name_and_a_role_are_what_they_must_be)
{
    struct operator_record record;
    static const char *const wrong[] = {
        "", "a b", "<b>", "anna\n", "a/b", "\xC3\xA9", "12345678901234567890123456789012x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(resource_add(&operator_resource, fixture->store, EDIT({"name", wrong[i]}),
                                      NOW_MS, &record, &fixture->error),
                         STATUS_INVALID);
    assert_int_equal(resource_add(&operator_resource, fixture->store,
                                  EDIT({"name", "a"}, {"role", "root"}), NOW_MS, &record,
                                  &fixture->error),
                     STATUS_INVALID);
}

TEST_OF(fixture, a_link_signs_in_once)
{
    struct credential session;
    struct signed_in found;
    add_operator(fixture, "anna", "owner");
    struct credential link = make_link(fixture, "anna");
    assert_int_equal(strlen(link.secret), CREDENTIAL_LENGTH);
    OK(credential_sign_in(fixture->store, text_of(link.secret), "192.0.2.7", NOW_MS + 1, &session,
                          &found, &fixture->error));
    assert_string_equal(found.who.name, "anna");
    assert_int_equal(found.who.role, ROLE_OWNER);
    assert_string_equal(found.session.address, "192.0.2.7");
    assert_true(found.session.expires_ms == NOW_MS + 1 + CREDENTIAL_SESSION_MS);
    assert_int_equal(sign_in(fixture, link.secret, NOW_MS + 2, &session), STATUS_NOT_FOUND);
    OK(look_up(fixture, session.secret, NOW_MS + 2));
}

TEST_OF(fixture, a_secret_is_good_for_its_time_and_for_what_it_is)
{
    struct credential session;
    add_operator(fixture, "anna", "owner");
    struct credential link = make_link(fixture, "anna");
    assert_int_equal(sign_in(fixture, link.secret, NOW_MS + CREDENTIAL_LINK_MS, &session),
                     STATUS_NOT_FOUND);
    assert_int_equal(look_up(fixture, link.secret, NOW_MS), STATUS_NOT_FOUND); /* no session */
    OK(sign_in(fixture, link.secret, NOW_MS + CREDENTIAL_LINK_MS - 1, &session));
    int64_t begun_ms = NOW_MS + CREDENTIAL_LINK_MS - 1;
    OK(look_up(fixture, session.secret, begun_ms + CREDENTIAL_SESSION_MS - 1));
    assert_int_equal(look_up(fixture, session.secret, begun_ms + CREDENTIAL_SESSION_MS),
                     STATUS_NOT_FOUND);
    assert_int_equal(sign_in(fixture, session.secret, begun_ms, &session), STATUS_NOT_FOUND);
}

TEST_OF(fixture, another_secret_opens_nothing)
{
    add_operator(fixture, "anna", "owner");
    struct credential session = signed_in_session(fixture, "anna");
    for (size_t i = 0; i < CREDENTIAL_LENGTH; i++) {
        char wrong[CREDENTIAL_SIZE + 1];
        memcpy(wrong, session.secret, CREDENTIAL_SIZE);
        wrong[i] = wrong[i] == 'x' ? 'y' : 'x';
        assert_int_equal(look_up(fixture, wrong, NOW_MS + 1), STATUS_NOT_FOUND);
    }
    char longer[CREDENTIAL_SIZE + 1];
    (void)snprintf(longer, sizeof longer, "%sx", session.secret);
    assert_int_equal(look_up(fixture, longer, NOW_MS + 1), STATUS_NOT_FOUND);
    assert_int_equal(look_up(fixture, "", NOW_MS + 1), STATUS_NOT_FOUND);
    assert_int_equal(look_up(fixture, session.record.id, NOW_MS + 1), STATUS_NOT_FOUND);
}

TEST_OF(fixture, what_becomes_of_an_operator_becomes_of_the_sessions)
{
    struct credential link;
    add_operator(fixture, "anna", "owner");
    struct credential session = signed_in_session(fixture, "anna");
    struct credential unused = make_link(fixture, "anna");
    change(fixture, "anna", "enabled", "no");
    assert_int_equal(look_up(fixture, session.secret, NOW_MS + 1), STATUS_NOT_FOUND);
    assert_int_equal(credential_make_link(fixture->store, "anna", NOW_MS, &link, &fixture->error),
                     STATUS_CONFLICT);
    change(fixture, "anna", "enabled", "yes");
    OK(look_up(fixture, session.secret, NOW_MS + 1));
    take_away(fixture, "anna");
    struct operator_record again;
    OK(resource_add(&operator_resource, fixture->store, EDIT({"name", "anna"}), NOW_MS + 2, &again,
                    &fixture->error));
    assert_int_equal(look_up(fixture, session.secret, NOW_MS + 3), STATUS_NOT_FOUND);
    assert_int_equal(sign_in(fixture, unused.secret, NOW_MS + 3, &session), STATUS_NOT_FOUND);
    assert_int_equal(credential_make_link(fixture->store, "bert", NOW_MS, &link, &fixture->error),
                     STATUS_NOT_FOUND);
}

TEST_OF(fixture, a_session_is_ended_once_and_for_all)
{
    add_operator(fixture, "anna", "owner");
    struct credential session = signed_in_session(fixture, "anna");
    OK(credential_end(fixture->store, session.record.id, NOW_MS + 2, &fixture->error));
    assert_int_equal(look_up(fixture, session.secret, NOW_MS + 2), STATUS_NOT_FOUND);
    OK(credential_end(fixture->store, session.record.id, NOW_MS + 3, &fixture->error));
    assert_int_equal(credential_end(fixture->store, "ses_x", NOW_MS, &fixture->error),
                     STATUS_NOT_FOUND);
}

struct trail_seen {
    size_t rows;
    char last_who[TRAIL_WHO_SIZE];
    bool digest_shown;
};

static bool see_trail(void *context, const void *visited)
{
    const struct trail_record *record = visited;
    struct trail_seen *seen = context;
    char after[1024];
    (void)snprintf(after, sizeof after, "%.*s", (int)record->after.size, record->after.at);
    seen->rows++;
    memcpy(seen->last_who, record->who, sizeof seen->last_who);
    if (strstr(after, "digest") != NULL && strstr(after, "\"digest\":\"not shown\"") == NULL)
        seen->digest_shown = true;
    return true;
}

TEST_OF(fixture, all_of_it_is_in_the_trail_and_no_secret)
{
    struct trail_seen seen = {0};
    add_operator(fixture, "anna", "owner");   /* a row, */
    (void)signed_in_session(fixture, "anna"); /* the link, its use, the session */
    OK(platform_list(fixture->store, &trail_table, NULL, see_trail, &seen, &fixture->error));
    assert_int_equal(seen.rows, 4);
    assert_string_equal(seen.last_who, "console anna");
    assert_false(seen.digest_shown);
}

static bool count_one(void *context, const void *record)
{
    size_t *count = context;
    return ++*count < 2;
}

static size_t live_sessions(struct fixture *fixture, int64_t now_ms)
{
    size_t count = 0;
    OK(platform_sessions_list(fixture->store, now_ms, count_one, &count, &fixture->error));
    return count;
}

TEST_OF(fixture, live_sessions_are_listed_as_far_as_they_are_wanted)
{
    struct credential session;
    add_operator(fixture, "anna", "owner");
    (void)make_link(fixture, "anna");
    assert_int_equal(live_sessions(fixture, NOW_MS), 0); /* a link is none */
    for (size_t i = 0; i < 3; i++)
        session = signed_in_session(fixture, "anna");
    assert_int_equal(live_sessions(fixture, NOW_MS), 2); /* no more was wanted */
    OK(credential_end(fixture->store, session.record.id, NOW_MS + 1, &fixture->error));
    assert_int_equal(live_sessions(fixture, session.record.expires_ms - 1), 2);
    assert_int_equal(live_sessions(fixture, session.record.expires_ms), 0);
}

static bool is_stored(struct fixture *fixture, const struct credential *credential)
{
    struct credential_record record;
    enum status status = platform_get(fixture->store, &credential_table, credential->record.id,
                                      &record, &fixture->error);
    assert_true(status == STATUS_OK || status == STATUS_NOT_FOUND);
    return status == STATUS_OK;
}

TEST_OF(fixture, what_is_over_is_deleted_after_its_time)
{
    struct credential later;
    struct trail_seen seen = {0};
    add_operator(fixture, "anna", "owner");
    struct credential link = make_link(fixture, "anna");
    struct credential session = signed_in_session(fixture, "anna");
    int64_t kept_ms = link.record.expires_ms + CREDENTIAL_KEPT_MS;
    OK(credential_make_link(fixture->store, "anna", kept_ms, &later, &fixture->error));
    assert_true(is_stored(fixture, &link));
    OK(credential_make_link(fixture->store, "anna", kept_ms + 1, &later, &fixture->error));
    assert_false(is_stored(fixture, &link));
    assert_true(is_stored(fixture, &session)); /* which was good for longer */
    kept_ms = session.record.expires_ms + CREDENTIAL_KEPT_MS;
    OK(credential_make_link(fixture->store, "anna", kept_ms + 1, &later, &fixture->error));
    assert_false(is_stored(fixture, &session));
    assert_true(is_stored(fixture, &later));
    OK(platform_list(fixture->store, &trail_table, NULL, see_trail, &seen, &fixture->error));
    assert_int_equal(seen.rows, 8); /* what was done stays in the trail */
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static enum status issue(struct fixture *fixture, const char *name, const char *cidrs,
                         struct token_record *record, char token[CREDENTIAL_SIZE])
{
    const struct setting settings[] = {
        {"name", name}, {"role", "operator"}, {cidrs != NULL ? "cidrs" : NULL, cidrs}, {0}};
    const struct resource_edit edit = {.settings = settings};
    OK(resource_make(&token_resource, &edit, NOW_MS, record, &fixture->error));
    record->expires_ms = NOW_MS + 1000;
    return tokens_issue(fixture->store, record, token, &fixture->error);
}

static enum status call(struct fixture *fixture, const char *token, const char *from,
                        int64_t now_ms)
{
    struct address address;
    struct signed_in signed_in;
    OK(address_parse(text_of(from), &address));
    enum status status =
        tokens_admit(fixture->store, text_of(token), &address, now_ms, &signed_in, &fixture->error);
    if (status == STATUS_OK) {
        assert_true(signed_in.by == BY_TOKEN && signed_in.who.role == ROLE_OPERATOR);
        assert_memory_equal(signed_in.session.id, token, strlen(signed_in.session.id));
    }
    return status;
}

TEST_OF(fixture, a_token_admits_until_it_ends)
{
    struct token_record record;
    struct token_record again;
    char token[CREDENTIAL_SIZE];
    char other[CREDENTIAL_SIZE];
    OK(issue(fixture, "ci", "192.0.2.0/24,2001:db8::/32", &record, token));
    OK(call(fixture, token, "192.0.2.7", NOW_MS));
    OK(call(fixture, token, "2001:db8::1", NOW_MS + 999));
    assert_int_equal(call(fixture, token, "198.51.100.1", NOW_MS), STATUS_CONFLICT);
    assert_int_equal(call(fixture, token, "192.0.2.7", NOW_MS + 1000), STATUS_NOT_FOUND);
    memcpy(other, token, sizeof other);
    other[CREDENTIAL_LENGTH - 1] = other[CREDENTIAL_LENGTH - 1] == 'a' ? 'b' : 'a';
    assert_int_equal(call(fixture, other, "192.0.2.7", NOW_MS), STATUS_NOT_FOUND);
    assert_int_equal(call(fixture, record.id, "192.0.2.7", NOW_MS), STATUS_NOT_FOUND);
    assert_int_equal(issue(fixture, "ci", NULL, &again, other), STATUS_EXISTS);
    OK(tokens_revoke(fixture->store, "ci", NOW_MS + 1, &again, &fixture->error));
    assert_string_equal(again.id, record.id);
    assert_int_equal(call(fixture, token, "192.0.2.7", NOW_MS), STATUS_NOT_FOUND);
    OK(tokens_revoke(fixture->store, token, NOW_MS + 2, &again, &fixture->error));
    assert_true(again.revoked_ms == NOW_MS + 1);   /* the first time */
    OK(issue(fixture, "ci", NULL, &again, other)); /* the name is free */
    OK(call(fixture, other, "198.51.100.1", NOW_MS));
}

TEST_OF(fixture, the_use_of_a_token_is_noted_once_a_minute_and_is_no_change)
{
    struct token_record record;
    char token[CREDENTIAL_SIZE];
    struct trail_seen seen = {0};
    bool exist = false;
    uint64_t revision;
    OK(issue(fixture, "ci", NULL, &record, token));
    OK(platform_get(fixture->store, &token_table, record.id, &record, &fixture->error));
    revision = record.revision;
    assert_true(record.last_used_ms == 0);
    OK(call(fixture, token, "192.0.2.7", NOW_MS + 5));
    OK(call(fixture, token, "192.0.2.7", NOW_MS + 500));
    OK(platform_get(fixture->store, &token_table, record.id, &record, &fixture->error));
    assert_true(record.last_used_ms == NOW_MS + 5 && record.revision == revision);
    OK(platform_list(fixture->store, &trail_table, NULL, see_trail, &seen, &fixture->error));
    assert_int_equal(seen.rows, 1);
    OK(operators_exist(fixture->store, &exist, &fixture->error));
    assert_false(exist); /* it has ended by the clock of this machine */
}
