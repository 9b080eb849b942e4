/* A verification that runs beside other work. */
#include "operator/verification.h"

#include "base/clock.h"
#include "platform_fixture.h"
#include "stores/platform_verifications.h"

static struct verification *make(struct fixture *fixture, char uri[128])
{
    (void)snprintf(uri, 128, "sqlite:%s/p.db", fixture->directory);
    const struct platform_store_options options = {.uri = uri, .timeout_ms = 5000};
    return verification_create(&options);
}

static struct verification_state ended(struct verification *verification)
{
    struct verification_state state;
    do {
        verification_look(verification, &state);
        usleep(1000);
    } while (state.stage == VERIFICATION_RUNNING);
    return state;
}

TEST_OF(fixture, it_runs_one_at_a_time_and_is_kept)
{
    char uri[128];
    struct verification *verification = make(fixture, uri);
    struct verification_state found;
    struct verifications last;
    verification_look(verification, &found);
    assert_int_equal(found.stage, VERIFICATION_NONE);
    for (int64_t turn = 1; turn <= 2; turn++) {
        assert_int_equal(verification_start(verification, "console anna", "POST ledger",
                                            NOW_MS + turn, &fixture->error),
                         STATUS_OK);
        enum status second = verification_start(verification, "x", "x", NOW_MS, &fixture->error);
        verification_look(verification, &found);
        /* The first may have ended before. */
        assert_true(second == STATUS_CONFLICT || strcmp(found.who, "x") == 0);
        found = ended(verification);
        assert_int_equal(found.stage, VERIFICATION_SOUND);
        assert_true(found.ended_ms > 0 && found.result.how != NULL && found.message[0] == '\0');
    }
    assert_int_equal(platform_verifications(fixture->store, &last, &fixture->error), STATUS_OK);
    assert_true(last.of[VERIFICATION_WHOLE].sound);
    verification_destroy(&verification);
}

TEST_OF(fixture, it_is_stopped_while_it_runs)
{
    char uri[128];
    for (int i = 0; i < 10; i++) {
        struct verification *verification = make(fixture, uri);
        assert_int_equal(verification_start(verification, "console anna", "POST ledger", NOW_MS,
                                            &fixture->error),
                         STATUS_OK);
        verification_destroy(&verification);
    }
}

TEST_OF(fixture, a_store_that_is_away_is_said)
{
    const struct platform_store_options options = {.uri = "sqlite:/nowhere/at/all.db",
                                                   .timeout_ms = 5000};
    struct verification *verification = verification_create(&options);
    assert_int_equal(
        verification_start(verification, "console anna", "POST ledger", NOW_MS, &fixture->error),
        STATUS_OK);
    struct verification_state found = ended(verification);
    assert_int_equal(found.stage, VERIFICATION_FAILED);
    assert_non_null(strstr(found.message, "/nowhere/at/all.db"));
    verification_destroy(&verification);
}
