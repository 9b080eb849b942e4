/*
 * The fixture and the records that the parts of the contract share; and the program that runs them.
 */
#include "platform_contract/contract.h"

static const struct factory *factory; /* the engine under test, named on the command line */
static struct place migrated;

struct platform_store *open_store(struct fixture *fixture, bool create)
{
    struct platform_store *store = NULL;
    struct platform_store_options options = {
        .uri = fixture->place.uri, .timeout_ms = 30000, .create = create};
    enum status status = platform_store_open(&store, &options, &fixture->error);
    if (status != STATUS_OK)
        fail_msg("%s", fixture->error.text);
    return store;
}

/* To migrate takes a server as long as many tests, so all but the first begin with a copy. */
static void migrate_once(struct fixture *fixture)
{
    uint32_t before = 99;
    uint32_t after = 0;
    factory->place(&fixture->place);
    fixture->store = open_store(fixture, true);
    assert_int_equal(platform_store_migrate(fixture->store, &before, &after, &fixture->error),
                     STATUS_OK);
    assert_int_equal(before, 0);
    assert_true(after >= 1);
    platform_store_close(&fixture->store);
    migrated = fixture->place;
}

int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (migrated.uri[0] == '\0')
        migrate_once(fixture);
    factory->copy(&migrated, &fixture->place);
    fixture->store = open_store(fixture, false);
    *state = fixture;
    return 0;
}

int tear_down(void **state)
{
    struct fixture *fixture = *state;
    platform_store_close(&fixture->store);
    assert_null(fixture->store);
    factory->clear(&fixture->place);
    free(fixture);
    return 0;
}

struct cidr cidr(const char *text)
{
    struct cidr block;
    assert_int_equal(cidr_parse(text_of(text), &block, NULL), STATUS_OK);
    return block;
}

struct address address(const char *text)
{
    struct address parsed;
    assert_int_equal(address_parse(text_of(text), &parsed), STATUS_OK);
    return parsed;
}

struct customer_record customer(const char *id, const char *name)
{
    struct customer_record record = {
        .enabled = true, .usable = true, .sports = SPORT_SET_ALL, .created_ms = 1763700000000};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.name, sizeof record.name, "%s", name);
    return record;
}

struct key_record key(const char *id, const char *customer_id, uint8_t digest)
{
    struct key_record record = {.created_ms = 1763700000001};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.customer_id, sizeof record.customer_id, "%s", customer_id);
    (void)snprintf(record.prefix, sizeof record.prefix, "crk_%c%c%c%c", 'a', 'b', 'c', 'd');
    memset(record.digest, digest, sizeof record.digest);
    return record;
}

struct legacy_record legacy(const char *text)
{
    return (struct legacy_record){.address = address(text),
                                  .enabled = true,
                                  .usable = true,
                                  .sports = SPORT_SET_ALL,
                                  .created_ms = 1763700000002};
}

bool see_customer(void *context, const void *visited)
{
    const struct customer_record *record = visited;
    struct seen *seen = context;
    assert_true(seen->customers < SEEN_MAX);
    seen->customer_after_key = seen->keys > 0 || seen->addresses > 0;
    seen->customer[seen->customers] = *record;
    return ++seen->customers != seen->stop_after;
}

bool see_key(void *context, const void *visited)
{
    const struct key_record *record = visited;
    struct seen *seen = context;
    assert_true(seen->keys < SEEN_MAX);
    seen->key[seen->keys] = *record;
    return ++seen->keys != seen->stop_after;
}

bool see_legacy(void *context, const void *visited)
{
    const struct legacy_record *record = visited;
    struct seen *seen = context;
    assert_true(seen->addresses < SEEN_MAX);
    seen->legacy[seen->addresses] = *record;
    return ++seen->addresses != seen->stop_after;
}

uint64_t look(struct fixture *fixture, struct platform_store *store, uint64_t since,
              struct seen *seen)
{
    uint64_t revision = 0;
    *seen = (struct seen){0};
    struct record_visitor visit = {.see[RECORD_CUSTOMER] = see_customer,
                                   .see[RECORD_KEY] = see_key,
                                   .see[RECORD_ADDRESS] = see_legacy,
                                   .context = seen};
    OK(platform_changes_since(store, since, &visit, &revision, &fixture->error));
    return revision;
}

struct player_record open_player(struct fixture *fixture, const char *customer_id,
                                 const char *reference, const char *currency, uint8_t exponent)
{
    struct player_record player = {0};
    OK(platform_player_open(fixture->store, customer_id, reference, currency, exponent, &player,
                            &fixture->error));
    return player;
}

struct provider_record provider(const char *id)
{
    struct provider_record record = {.enabled = true, .usable = true, .created_ms = 1763700000000};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.name, sizeof record.name, "Provider %s", id);
    (void)snprintf(record.launch_url, sizeof record.launch_url, "https://%s.example/play?a=1", id);
    (void)snprintf(record.return_url, sizeof record.return_url, "https://back.example/#x");
    (void)snprintf(record.audience, sizeof record.audience, "%s", id);
    record.secrets[0].size = 60;
    memset(record.secrets[0].sealed, 0xA5, record.secrets[0].size);
    return record;
}

struct game_record game(const char *id, const char *provider_id)
{
    struct game_record record = {
        .rtp_bps = 9612, .volatility = GAME_HIGH, .demo = true, .enabled = true, .usable = true};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.provider_id, sizeof record.provider_id, "%s", provider_id);
    (void)snprintf(record.name, sizeof record.name, "Game %s \xC3\xA9", id);
    (void)snprintf(record.category, sizeof record.category, "slots");
    (void)snprintf(record.features, sizeof record.features, "free spins\nbuy bonus");
    (void)snprintf(record.currencies, sizeof record.currencies, "EUR\nJPY");
    (void)snprintf(record.languages, sizeof record.languages, "en");
    (void)snprintf(record.thumbnail_url, sizeof record.thumbnail_url, "https://cdn.example/a.png");
    return record;
}

void add_two_customers(struct fixture *fixture)
{
    struct customer_record first = customer("cus_One", "One");
    struct customer_record second = customer("cus_Two", "Two");
    OK(platform_add(fixture->store, &customer_table, &first, &fixture->error));
    OK(platform_add(fixture->store, &customer_table, &second, &fixture->error));
}

int main(int argc, char **argv)
{
    factory = factory_of(argc == 2 ? argv[1] : "");
    if (factory == NULL) {
        (void)fprintf(stderr, "usage: platform_contract ENGINE\n");
        return 2;
    }
    int failed = tests_run();
    if (migrated.uri[0] != '\0')
        factory->clear(&migrated);
    return failed;
}
