/*
 * Who is admitted as a provider: nothing but what a provider's own secret has signed, whole, in its
 * time. Every bit of a signed call is tried.
 */
#include <unistd.h>

#include "api/provider_admission.h"
#include "launch/document.h"
#include "sealing/provider_secret.h"
#include "test_directory.h"
#include "tests.h"

#define NOW_SECONDS 1763700000
#define DAY_SECONDS 86400
#define KID_SIZE PROVIDER_KID_SIZE

static const char *const ids[] = {"acme", "oasis", "shut"};
static const char *const firsts[] = {"the first secret of acme", "the first secret of oasis",
                                     "the first secret of shut"};
#define NEWEST "the newest secret of acme"

struct fixture {
    char directory[TEST_DIRECTORY_SIZE];
    char key_file[TEST_DIRECTORY_SIZE + 8];
    struct secrets *secrets;
    struct games_table *table; /* acme has two secrets; shut is disabled */
    char kid[KID_SIZE];        /* of the newest */
};

static int set_up(void **state)
{
    struct fixture *fixture = test_calloc(1, sizeof *fixture);
    struct error error;
    bool made;
    test_directory_make(fixture->directory);
    (void)snprintf(fixture->key_file, sizeof fixture->key_file, "%s/key", fixture->directory);
    assert_int_equal(secrets_make_key(fixture->key_file, &made, &error), STATUS_OK);
    assert_int_equal(secrets_open_key(&fixture->secrets, fixture->key_file, &error), STATUS_OK);
    fixture->table = games_table_create(fixture->secrets, NULL);
    for (size_t i = 0; i < 3; i++) {
        struct provider_record record = {.enabled = i != 2, .usable = true};
        (void)snprintf(record.id, sizeof record.id, "%s", ids[i]);
        provider_secret_seal(fixture->secrets, &record, text_of(firsts[i]), 1);
        if (i == 0)
            assert_int_equal(
                provider_secret_add(fixture->secrets, &record, TEXT(NEWEST), 2, &error), STATUS_OK);
        if (i == 0)
            memcpy(fixture->kid, record.secrets[0].kid, KID_SIZE);
        assert_true(games_table_add_provider(fixture->table, &record));
    }
    struct provider_record unread = {.id = "unread", .enabled = true, .usable = true};
    unread.secrets[0].size = sizeof unread.secrets[0].sealed; /* sealed under no key */
    assert_true(games_table_add_provider(fixture->table, &unread));
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    games_table_destroy(&fixture->table);
    secrets_destroy(&fixture->secrets);
    assert_int_equal(unlink(fixture->key_file), 0);
    assert_int_equal(rmdir(fixture->directory), 0);
    test_free(fixture);
    return 0;
}

/* A call in its parts, each of which may be altered. */
enum part { PROVIDER, TIMESTAMP, SIGNATURE, KEY_ID, BODY };
#define PART_COUNT 5

struct call {
    char part[PART_COUNT][512];
    size_t size[PART_COUNT]; /* 0: it is not sent */
};

static void set(struct call *call, enum part part, const char *text)
{
    call->size[part] = (size_t)snprintf(call->part[part], sizeof call->part[part], "%s", text);
}

static struct call sign(const char *provider, const char *secret, const char *kid, int64_t seconds,
                        const char *body)
{
    struct call call;
    char text[32];
    char signature[LAUNCH_SIGNATURE_SIZE];
    memset(&call, 0, sizeof call);
    (void)snprintf(text, sizeof text, "%lld", (long long)seconds);
    launch_document_sign(text_of(text), text_of(body), text_of(secret), signature);
    set(&call, PROVIDER, provider);
    set(&call, TIMESTAMP, text);
    set(&call, SIGNATURE, signature);
    set(&call, KEY_ID, kid);
    set(&call, BODY, body);
    return call;
}

/* `id`: of the provider that the call names; "" of one that is not there. */
static enum admission_denial judge(const struct fixture *fixture, const struct call *call,
                                   int64_t now_seconds, const char **id)
{
    static const enum http_field fields[] = {
        HTTP_FIELD_X_CROUPIER_PROVIDER, HTTP_FIELD_X_CROUPIER_TIMESTAMP,
        HTTP_FIELD_X_CROUPIER_SIGNATURE, HTTP_FIELD_X_CROUPIER_KEY_ID};
    struct http_field_line lines[BODY];
    struct http_request request = {.method = METHOD_POST, .lines = lines};
    const struct games_provider *provider = NULL;
    for (size_t i = 0; i < BODY; i++) {
        if (call->size[i] == 0)
            continue;
        lines[request.line_count++] =
            (struct http_field_line){{call->part[i], call->size[i]}, fields[i]};
        request.field_count[fields[i]]++;
    }
    request.body = (struct text){call->part[BODY], call->size[BODY]};
    enum admission_denial denial =
        provider_admit(fixture->table, &request, now_seconds * 1000, &provider);
    *id = provider == NULL ? "" : provider->record.id;
    return denial;
}

/* The id of who is admitted; NULL: no one is. */
static const char *admitted_at(const struct fixture *fixture, const struct call *call,
                               int64_t now_seconds)
{
    const char *id;
    return judge(fixture, call, now_seconds, &id) == DENIAL_NONE ? id : NULL;
}

#define PLAYER "\"player_id\":\"m52qaErTonQlsfbZ8JQx2g\""
#define OF_BET "\"reference_transaction_id\":\"bet-1\""
#define STAKE "\"launch_id\":\"lau_0123456789abcdef\",\"game_id\":\"wheel\",\"round_id\":\"r-1\""
#define BALANCE "{\"operation\":\"BALANCE\"," PLAYER "}"
#define DEBIT                          \
    "{\"operation\":\"DEBIT\"," PLAYER \
    ",\"transaction_id\":\"bet-1\",\"amount_minor\":250,\"currency\":\"EUR\"," STAKE "}"
#define CREDIT                                                                  \
    "{\"operation\":\"CREDIT\"," PLAYER ",\"transaction_id\":\"win-1\"," OF_BET \
    ",\"amount_minor\":500,\"currency\":\"EUR\",\"round_id\":\"r-1\"}"
#define ROLLBACK "{\"operation\":\"ROLLBACK\"," PLAYER ",\"transaction_id\":\"undo-1\"," OF_BET "}"

static const char *const bodies[] = {BALANCE, DEBIT, CREDIT, ROLLBACK};
#define BODY_COUNT (sizeof bodies / sizeof bodies[0])

TEST(what_a_secret_signed_is_admitted_as_its_provider)
{
    const struct fixture *fixture = *state;
    for (size_t i = 0; i < BODY_COUNT; i++) {
        const struct call calls[] = {
            sign("acme", firsts[0], "", NOW_SECONDS, bodies[i]),
            sign("acme", NEWEST, "", NOW_SECONDS, bodies[i]),
            sign("acme", NEWEST, fixture->kid, NOW_SECONDS, bodies[i]),
            sign("acme", firsts[0], "first", NOW_SECONDS, bodies[i]),
            sign("oasis", firsts[1], "", NOW_SECONDS, bodies[i]),
            sign("oasis", firsts[1], "first", NOW_SECONDS, bodies[i]),
        };
        for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++) {
            const char *admitted = admitted_at(fixture, &calls[k], NOW_SECONDS);
            assert_non_null(admitted);
            assert_string_equal(admitted, ids[k >= 4]);
        }
    }
}

TEST(each_cause_of_a_refusal_has_its_reason)
{
    const struct fixture *fixture = *state;
    const struct {
        struct call call;
        const char *id, *reason;
    } cases[] = {
        {sign("acmee", NEWEST, "", NOW_SECONDS, BALANCE), "", "unknown_provider"},
        {sign("shut", firsts[2], "", NOW_SECONDS, BALANCE), "shut", "provider_disabled"},
        {sign("shut", NEWEST, "", 0, BALANCE), "shut", "provider_disabled"},
        {sign("unread", NEWEST, "", NOW_SECONDS, BALANCE), "unread", "provider_secret_unreadable"},
        {sign("acme", NEWEST, "00000000", NOW_SECONDS, BALANCE), "acme", "unknown_key_id"},
        {sign("oasis", firsts[1], fixture->kid, NOW_SECONDS, BALANCE), "oasis", "unknown_key_id"},
        {sign("acme", firsts[0], fixture->kid, NOW_SECONDS, BALANCE), "acme", "signature"},
        {sign("acme", firsts[1], "first", NOW_SECONDS, BALANCE), "acme", "signature"},
        {sign("acme", NEWEST, "", NOW_SECONDS - 60, BALANCE), "acme", "timestamp"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *id;
        enum admission_denial denial = judge(fixture, &cases[i].call, NOW_SECONDS, &id);
        assert_int_not_equal(denial, DENIAL_NONE);
        assert_string_equal(admission_error_of(denial)->reason, cases[i].reason);
        assert_string_equal(id, cases[i].id);
    }
}

TEST(a_call_with_one_bit_changed_is_not)
{
    const struct fixture *fixture = *state;
    for (size_t i = 0; i < BODY_COUNT; i++) {
        struct call call = sign("acme", NEWEST, fixture->kid, NOW_SECONDS, bodies[i]);
        for (size_t part = 0; part < PART_COUNT; part++) {
            for (size_t bit = 0; bit < 8 * call.size[part]; bit++) {
                call.part[part][bit / 8] ^= (char)(1 << bit % 8);
                if (admitted_at(fixture, &call, NOW_SECONDS) != NULL)
                    fail_msg("body %zu, part %zu, bit %zu", i, part, bit);
                call.part[part][bit / 8] ^= (char)(1 << bit % 8);
            }
        }
        assert_non_null(admitted_at(fixture, &call, NOW_SECONDS));
    }
}

TEST(a_call_that_is_cut_or_lacks_a_part_is_not)
{
    const struct fixture *fixture = *state;
    for (size_t i = 0; i < BODY_COUNT; i++) {
        const struct call whole = sign("acme", NEWEST, fixture->kid, NOW_SECONDS, bodies[i]);
        for (size_t part = 0; part < PART_COUNT; part++) {
            struct call call = whole;
            for (call.size[part] = 0; call.size[part] < whole.size[part]; call.size[part]++) {
                bool unnamed = part == KEY_ID && call.size[part] == 0; /* which is allowed */
                assert_int_equal(admitted_at(fixture, &call, NOW_SECONDS) != NULL, unnamed);
            }
        }
    }
}

TEST(a_call_is_good_for_less_than_a_minute_either_way)
{
    const struct fixture *fixture = *state;
    static const int64_t late[] = {PROVIDER_CLOCK_SECONDS, PROVIDER_CLOCK_SECONDS + 1, 3600,
                                   DAY_SECONDS, (int64_t)365 * DAY_SECONDS};
    for (size_t i = 0; i < BODY_COUNT; i++) {
        const struct call call = sign("acme", NEWEST, "", NOW_SECONDS, bodies[i]);
        for (int sign_of = -1; sign_of <= 1; sign_of += 2) {
            const int64_t last = NOW_SECONDS + sign_of * (PROVIDER_CLOCK_SECONDS - 1);
            assert_non_null(admitted_at(fixture, &call, last));
            for (size_t k = 0; k < sizeof late / sizeof late[0]; k++)
                assert_null(admitted_at(fixture, &call, NOW_SECONDS + sign_of * late[k]));
        }
    }
}

TEST(a_provider_cannot_sign_for_another)
{
    const struct fixture *fixture = *state;
    for (size_t i = 0; i < BODY_COUNT; i++) {
        const struct call calls[] = {
            sign("oasis", firsts[0], "", NOW_SECONDS, bodies[i]),
            sign("oasis", NEWEST, "", NOW_SECONDS, bodies[i]),
            sign("oasis", NEWEST, fixture->kid, NOW_SECONDS, bodies[i]),
            sign("acme", firsts[1], "", NOW_SECONDS, bodies[i]),
            sign("acme", firsts[1], fixture->kid, NOW_SECONDS, bodies[i]),
            sign("acme", firsts[0], fixture->kid, NOW_SECONDS, bodies[i]), /* not that secret's */
            sign("nobody", firsts[0], "", NOW_SECONDS, bodies[i]),
        };
        for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++)
            assert_null(admitted_at(fixture, &calls[k], NOW_SECONDS));
    }
}

TESTS_WITH(set_up, tear_down);
