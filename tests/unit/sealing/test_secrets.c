/* What a key file is, and that sealed secrets open for their owner alone. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sealing/provider_secret.h"
#include "tests.h"

struct place {
    char directory[64];
    char path[128];
};

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    (void)snprintf(place->directory, sizeof place->directory, "/tmp/croupier-secrets-XXXXXX");
    assert_non_null(mkdtemp(place->directory));
    (void)snprintf(place->path, sizeof place->path, "%s/secrets.key", place->directory);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    (void)unlink(place->path);
    assert_int_equal(rmdir(place->directory), 0); /* nothing else is left behind */
    free(place);
    return 0;
}

static struct secrets *open_new(const struct place *place)
{
    struct secrets *secrets = NULL;
    struct error error;
    bool made = false;
    assert_int_equal(secrets_make_key(place->path, &made, &error), STATUS_OK);
    assert_int_equal(secrets_open_key(&secrets, place->path, &error), STATUS_OK);
    return secrets;
}

TEST_WITH(a_key_is_made_once_for_its_owner_alone, set_up, tear_down)
{
    const struct place *place = *state;
    struct error error;
    struct stat facts;
    bool made = false;
    char first[64] = "";
    char second[64] = "";
    assert_int_equal(secrets_make_key(place->path, &made, &error), STATUS_OK);
    assert_true(made);
    assert_int_equal(stat(place->path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
    assert_int_equal(facts.st_size, SECRETS_KEY_SIZE);
    FILE *file = fopen(place->path, "re");
    assert_int_equal(fread(first, 1, sizeof first, file), SECRETS_KEY_SIZE);
    (void)fclose(file);
    assert_int_equal(secrets_make_key(place->path, &made, &error), STATUS_OK);
    assert_false(made);
    file = fopen(place->path, "re");
    assert_int_equal(fread(second, 1, sizeof second, file), SECRETS_KEY_SIZE);
    (void)fclose(file);
    assert_memory_equal(first, second, SECRETS_KEY_SIZE);
}

/* tear_down finds the directory empty. */
TEST_WITH(a_key_that_cannot_be_written_leaves_nothing, set_up, tear_down)
{
    const struct place *place = *state;
    struct error error;
    struct rlimit limit;
    bool made = true;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct rlimit half = {SECRETS_KEY_SIZE / 2, limit.rlim_max};
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &half), 0);
    enum status status = secrets_make_key(place->path, &made, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    (void)signal(SIGXFSZ, before);
    assert_int_equal(status, STATUS_UNAVAILABLE);
    assert_non_null(strstr(error.text, "secrets.key"));
    assert_false(made);
}

TEST_WITH(a_link_to_no_file_is_no_key_that_is_there, set_up, tear_down)
{
    const struct place *place = *state;
    struct error error;
    bool made;
    assert_int_equal(symlink("/nowhere/key", place->path), 0);
    assert_int_equal(secrets_make_key(place->path, &made, &error), STATUS_INVALID);
    assert_non_null(strstr(error.text, "is a link to a file that is not there"));
    assert_int_equal(unlink(place->path), 0);
}

TEST_WITH(a_file_that_is_no_key_or_not_private_is_refused, set_up, tear_down)
{
    const struct place *place = *state;
    struct secrets *secrets = NULL;
    struct error error;
    assert_int_equal(secrets_open_key(&secrets, place->path, &error), STATUS_UNAVAILABLE);
    assert_non_null(strstr(error.text, "croupier migrate"));
    secrets = open_new(place);
    secrets_destroy(&secrets);
    assert_int_equal(chmod(place->path, 0644), 0);
    assert_int_equal(secrets_open_key(&secrets, place->path, &error), STATUS_INVALID);
    assert_non_null(strstr(error.text, "chmod 600"));
    assert_int_equal(chmod(place->path, 0600), 0);
    FILE *file = fopen(place->path, "ae");
    (void)fputc('x', file);
    (void)fclose(file);
    assert_int_equal(secrets_open_key(&secrets, place->path, &error), STATUS_MALFORMED);
    assert_null(secrets);
}

TEST_WITH(what_is_sealed_opens_with_its_context_and_not_after_any_change, set_up, tear_down)
{
    struct secrets *secrets = open_new(*state);
    struct buffer sealed = {0};
    struct buffer again = {0};
    struct buffer plain = {0};
    secrets_seal(secrets, TEXT("provider:a"), TEXT("hush"), &sealed);
    secrets_seal(secrets, TEXT("provider:a"), TEXT("hush"), &again);
    assert_int_equal(sealed.size, 4 + SECRETS_SEAL_OVERHEAD);
    assert_false(text_equals(buffer_text(&sealed), buffer_text(&again))); /* a nonce each */
    assert_int_equal(secrets_unseal(secrets, TEXT("provider:a"), buffer_text(&sealed), &plain),
                     STATUS_OK);
    assert_true(text_equals(buffer_text(&plain), TEXT("hush")));
    buffer_clear(&plain);
    assert_int_equal(secrets_unseal(secrets, TEXT("provider:b"), buffer_text(&sealed), &plain),
                     STATUS_MALFORMED);
    for (size_t i = 0; i < sealed.size; i++) {
        sealed.data[i] = (char)(sealed.data[i] ^ 1);
        assert_int_equal(secrets_unseal(secrets, TEXT("provider:a"), buffer_text(&sealed), &plain),
                         STATUS_MALFORMED);
        sealed.data[i] = (char)(sealed.data[i] ^ 1);
    }
    for (size_t size = 0; size < sealed.size; size++)
        assert_int_equal(
            secrets_unseal(secrets, TEXT("provider:a"), (struct text){sealed.data, size}, &plain),
            STATUS_MALFORMED);
    assert_int_equal(plain.size, 0);
    buffer_free(&sealed);
    buffer_free(&again);
    buffer_free(&plain);
    secrets_destroy(&secrets);
}

TEST_WITH(a_providers_secret_does_not_open_for_another_provider, set_up, tear_down)
{
    struct secrets *secrets = open_new(*state);
    struct provider_record record = {.id = "acme"};
    struct buffer plain = {0};
    provider_secret_seal(secrets, &record, TEXT("hush"), 1);
    assert_int_equal(provider_secret_unseal(secrets, &record, 0, &plain), STATUS_OK);
    assert_true(text_equals(buffer_text(&plain), TEXT("hush")));
    (void)snprintf(record.id, sizeof record.id, "sand");
    assert_int_equal(provider_secret_unseal(secrets, &record, 0, &plain), STATUS_MALFORMED);
    buffer_free(&plain);
    secrets_destroy(&secrets);
}

static void assert_holds(const struct secrets *secrets, const struct provider_record *record,
                         size_t at, const char *expected)
{
    struct buffer plain = {0};
    assert_int_equal(provider_secret_unseal(secrets, record, at, &plain), STATUS_OK);
    assert_string_equal(buffer_string(&plain), expected);
    buffer_free(&plain);
}

TEST_WITH(secrets_of_a_provider_overlap_until_one_is_retired, set_up, tear_down)
{
    struct secrets *secrets = open_new(*state);
    struct provider_record record = {.id = "acme"};
    struct error error = {0};
    char kid[PROVIDER_KID_SIZE];
    provider_secret_seal(secrets, &record, TEXT("one"), 1);
    assert_string_equal(provider_secret_name(&record.secrets[0]), "first");
    assert_string_equal(record.secrets[0].kid, "");
    assert_int_equal(provider_secret_retire(&record, "first", &error), STATUS_CONFLICT);
    assert_int_equal(provider_secret_add(secrets, &record, TEXT("two"), 2, &error), STATUS_OK);
    assert_holds(secrets, &record, 0, "two");
    assert_holds(secrets, &record, 1, "one");
    assert_int_equal(strlen(record.secrets[0].kid), PROVIDER_KID_SIZE - 1);
    assert_int_equal(record.secrets[0].added_ms, 2);
    assert_int_equal(record.secrets[1].added_ms, 1);
    assert_int_equal(provider_secret_add(secrets, &record, TEXT("three"), 3, &error),
                     STATUS_CONFLICT);
    assert_int_equal(provider_secret_retire(&record, "nothing", &error), STATUS_NOT_FOUND);
    assert_int_equal(provider_secret_retire(&record, "", &error), STATUS_NOT_FOUND);
    struct provider_record back = record;
    assert_int_equal(provider_secret_retire(&back, back.secrets[0].kid, &error), STATUS_OK);
    assert_holds(secrets, &back, 0, "one");
    assert_string_equal(back.secrets[0].kid, "");
    assert_int_equal(provider_secret_retire(&record, "first", &error), STATUS_OK);
    assert_holds(secrets, &record, 0, "two");
    assert_int_equal(record.secrets[1].size, 0);
    memcpy(kid, record.secrets[0].kid, sizeof kid);
    provider_secret_seal(secrets, &record, TEXT("other"), 4); /* never two of one kid */
    assert_holds(secrets, &record, 0, "other");
    assert_string_not_equal(record.secrets[0].kid, kid);
    assert_int_equal(strlen(record.secrets[0].kid), PROVIDER_KID_SIZE - 1);
    secrets_destroy(&secrets);
}

TEST_WITH(each_purpose_has_a_key_of_its_own, set_up, tear_down)
{
    struct secrets *secrets = open_new(*state);
    uint8_t one[32], two[32], same[32];
    secrets_derive(secrets, "one", one);
    secrets_derive(secrets, "two", two);
    secrets_derive(secrets, "one", same);
    assert_memory_not_equal(one, two, 32);
    assert_memory_equal(one, same, 32);
    secrets_destroy(&secrets);
}
