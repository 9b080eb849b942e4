/* The table of visible games and what is asked of it; see table.h. */
#include "games/table.h"

#include "base/base64url.h"
#include "base/digest.h"
#include "base/memory.h"
#include "games/document.h"
#include "sealing/provider_secret.h"

#define SUBJECT_BYTES 16 /* 22 characters of base64url */

/* A customer that has a list. */
struct policy {
    char customer_id[CUSTOMER_ID_SIZE];
    bool every_game;
    uint64_t *allowed; /* a bit a game, by its number */
};

struct games_table {
    const struct secrets *secrets; /* this and the next: while it is built */
    struct log *log;
    uint8_t cursor_key[SECRETS_KEY_SIZE];
    uint8_t subject_key[SECRETS_KEY_SIZE];
    struct games_provider **providers; /* by id; pointers, so that games may point to them */
    size_t provider_count, provider_room;
    struct games_game *games; /* by id */
    size_t game_count, game_room;
    struct policy *policies; /* by customer */
    size_t policy_count, policy_room;
};

/* ---- building -------------------------------------------------------------------------------- */

/* Room for one more item of `size` bytes. */
static void *grow(void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    *room = *room == 0 ? 64 : *room * 2;
    return memory_resize(items, *room * size);
}

struct games_table *games_table_create(const struct secrets *secrets, struct log *log)
{
    struct games_table *table = memory_alloc_zeroed(1, sizeof *table);
    table->secrets = secrets;
    table->log = log;
    secrets_derive(secrets, "games cursor", table->cursor_key);
    secrets_derive(secrets, GAMES_SUBJECT_PURPOSE, table->subject_key);
    return table;
}

/* False: one was sealed under another key. Those before it can be used. */
static bool unseal_all(const struct games_table *table, struct games_provider *provider)
{
    const struct provider_record *record = &provider->record;
    for (size_t i = 0; i < PROVIDER_SECRETS_MAX && record->secrets[i].size > 0; i++) {
        struct games_secret *secret = &provider->secrets[i];
        buffer_reserve(&secret->bytes, SECRETS_PLAIN_MAX); /* at once: growing leaves copies */
        if (provider_secret_unseal(table->secrets, record, i, &secret->bytes) != STATUS_OK)
            return false;
        memcpy(secret->kid, record->secrets[i].kid, sizeof secret->kid);
        provider->secret_count++;
    }
    return true;
}

bool games_table_add_provider(void *context, const void *object)
{
    const struct provider_record *record = object;
    struct games_table *table = context;
    if (!record->usable)
        return true;
    struct games_provider *provider = memory_alloc_zeroed(1, sizeof *provider);
    provider->record = *record;
    if (record->enabled && !unseal_all(table, provider))
        log_event(table->log, LOG_ERROR,
                  "a provider's secret was stored under another key; copy the right key file",
                  LOG_STRING("provider", record->id));
    table->providers = grow(table->providers, table->provider_count, &table->provider_room,
                            sizeof(struct games_provider *));
    table->providers[table->provider_count++] = provider;
    return true;
}

static int compare_provider(const void *id, const void *provider)
{
    return strcmp(id, (*(const struct games_provider *const *)provider)->record.id);
}

const struct games_provider *games_table_provider(const struct games_table *table, const char *id)
{
    struct games_provider *const *provider =
        table->provider_count == 0 ? NULL
                                   : bsearch(id, table->providers, table->provider_count,
                                             sizeof(struct games_provider *), compare_provider);
    return provider == NULL ? NULL : *provider;
}

static struct text make_json(const struct game_record *record,
                             const struct games_provider *provider)
{
    struct buffer out = {0};
    struct json_writer json = {.out = &out};
    json_object(&json, NULL);
    json_string(&json, "id", record->id);
    json_string(&json, "name", record->name);
    json_object(&json, "provider");
    json_string(&json, "id", provider->record.id);
    json_string(&json, "name", provider->record.name);
    json_end(&json);
    game_record_write_offer(&json, record);
    json_time(&json, "updated_at", record->updated_ms);
    json_end(&json);
    struct text made = {memory_copy(out.data, out.size), out.size};
    buffer_free(&out);
    return made;
}

bool games_table_add_game(void *context, const void *object)
{
    const struct game_record *record = object;
    struct games_table *table = context;
    if (!record->enabled || !record->usable)
        return true;
    const struct games_provider *provider = games_table_provider(table, record->provider_id);
    if (provider == NULL || !provider->record.enabled)
        return true;
    table->games = grow(table->games, table->game_count, &table->game_room, sizeof table->games[0]);
    CHECK(table->game_count == 0 || strcmp(table->games[table->game_count - 1].id, record->id) < 0);
    table->games[table->game_count] = (struct games_game){
        .id = memory_copy_string(record->id),
        .name = memory_copy_string(record->name),
        .category = memory_copy_string(record->category),
        .features = memory_copy_string(record->features),
        .currencies = memory_copy_string(record->currencies),
        .languages = memory_copy_string(record->languages),
        .devices = memory_copy_string(record->devices),
        .blocked_countries = memory_copy_string(record->blocked_countries),
        .demo = record->demo,
        .provider = provider,
        .json = make_json(record, provider),
        .number = table->game_count,
    };
    table->game_count++;
    return true;
}

/* The number of games whose id is before `id`, or with `also_equal`, not behind it. */
static size_t rank(const struct games_table *table, struct text id, bool also_equal)
{
    size_t low = 0;
    size_t high = table->game_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct text there = text_of(table->games[middle].id);
        size_t common = there.size < id.size ? there.size : id.size;
        int order = common == 0 ? 0 : memcmp(there.at, id.at, common);
        if (order == 0)
            order = (there.size > id.size) - (there.size < id.size);
        if (order < 0 || (also_equal && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct games_game *find(const struct games_table *table, struct text id)
{
    size_t at = rank(table, id, false);
    return at < table->game_count && text_equals(text_of(table->games[at].id), id)
               ? &table->games[at]
               : NULL;
}

bool games_table_add_policy(void *context, const void *object)
{
    const struct game_policy_record *record = object;
    struct games_table *table = context;
    struct text rest = record->games;
    table->policies =
        grow(table->policies, table->policy_count, &table->policy_room, sizeof table->policies[0]);
    struct policy *policy = &table->policies[table->policy_count++];
    *policy = (struct policy){.every_game = record->every_game};
    memcpy(policy->customer_id, record->customer_id, sizeof policy->customer_id);
    if (policy->every_game)
        return true;
    policy->allowed = memory_alloc_zeroed(table->game_count / 64 + 1, sizeof policy->allowed[0]);
    while (rest.size > 0) {
        const struct games_game *game = find(table, text_cut(&rest, '\n'));
        if (game != NULL)
            policy->allowed[game->number / 64] |= (uint64_t)1 << (game->number % 64);
    }
    return true;
}

static void destroy_provider(struct games_provider *provider)
{
    for (size_t i = 0; i < PROVIDER_SECRETS_MAX; i++)
        buffer_wipe(&provider->secrets[i].bytes);
    memory_free(provider);
}

static void clear_game(struct games_game *game)
{
    memory_free(game->id);
    memory_free(game->name);
    memory_free(game->category);
    memory_free(game->features);
    memory_free(game->currencies);
    memory_free(game->languages);
    memory_free(game->devices);
    memory_free(game->blocked_countries);
    memory_free((void *)(uintptr_t)game->json.at);
}

void games_table_destroy(struct games_table **at)
{
    struct games_table *table = memory_take(at);
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->provider_count; i++)
        destroy_provider(table->providers[i]);
    for (size_t i = 0; i < table->game_count; i++)
        clear_game(&table->games[i]);
    for (size_t i = 0; i < table->policy_count; i++)
        memory_free(table->policies[i].allowed);
    memory_free(table->providers);
    memory_free(table->games);
    memory_free(table->policies);
    explicit_bzero(table, sizeof *table);
    memory_free(table);
}

/* ---- who sees what --------------------------------------------------------------------------- */

static int compare_customer(const void *customer_id, const void *policy)
{
    return strcmp(customer_id, ((const struct policy *)policy)->customer_id);
}

/* NULL: every game. */
static const uint64_t *allowed_of(const struct games_table *table, const char *customer_id)
{
    if (table->policy_count == 0)
        return NULL;
    const struct policy *policy = bsearch(customer_id, table->policies, table->policy_count,
                                          sizeof table->policies[0], compare_customer);
    return policy == NULL || policy->every_game ? NULL : policy->allowed;
}

static bool is_seen(const struct games_game *game, const uint64_t *allowed, bool sandbox)
{
    return game->provider->record.sandbox == sandbox &&
           (allowed == NULL || ((allowed[game->number / 64] >> (game->number % 64)) & 1) != 0);
}

const struct games_game *games_table_find(const struct games_table *table, const char *customer_id,
                                          bool sandbox, struct text id)
{
    const struct games_game *game = find(table, id);
    return game != NULL && is_seen(game, allowed_of(table, customer_id), sandbox) ? game : NULL;
}

const struct games_game *games_table_find_of_provider(const struct games_table *table,
                                                      const char *provider_id, struct text id)
{
    const struct games_game *game = find(table, id);
    return game != NULL && strcmp(game->provider->record.id, provider_id) == 0 ? game : NULL;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static bool equals_if_wanted(const char *value, const char *wanted)
{
    return wanted[0] == '\0' || strcmp(value, wanted) == 0;
}

static bool matches(const struct games_game *game, const struct games_query *query)
{
    return equals_if_wanted(game->provider->record.id, query->provider) &&
           equals_if_wanted(game->category, query->category) &&
           (query->demo == GAMES_DEMO_ANY || game->demo == (query->demo == GAMES_DEMO_TRUE)) &&
           game_list_offers(game->features, query->feature) &&
           game_list_offers(game->devices, query->device) &&
           game_list_offers(game->currencies, query->currency) &&
           game_list_offers(game->languages, query->language) &&
           strcasestr(game->name, query->q) !=
               NULL /* of ASCII letters: the locale is always "C" */;
}

bool games_table_page(const struct games_table *table, const char *customer_id, bool sandbox,
                      const struct games_query *query, struct buffer *body)
{
    char after[GAME_ID_SIZE];
    char cursor[GAMES_CURSOR_SIZE];
    const uint64_t *allowed = allowed_of(table, customer_id);
    const struct games_game *last = NULL;
    uint32_t count = 0;
    bool more = false;
    if (!games_cursor_read(table->cursor_key, customer_id, query, after))
        return false;
    struct json_writer json = {.out = body};
    json_object(&json, NULL);
    json_array(&json, "games");
    size_t first = after[0] == '\0' ? 0 : rank(table, text_of(after), true);
    for (size_t i = first; i < table->game_count; i++) {
        if (!is_seen(&table->games[i], allowed, sandbox) || !matches(&table->games[i], query))
            continue;
        more = count++ == query->limit;
        if (more)
            break;
        last = &table->games[i];
        json_raw(&json, NULL, last->json);
    }
    json_end(&json);
    if (more) {
        CHECK(last != NULL); /* a limit is at least 1 */
        games_cursor_write(table->cursor_key, customer_id, query, text_of(last->id), cursor);
        json_string(&json, "next_cursor", cursor);
    } else {
        json_null(&json, "next_cursor");
    }
    json_end(&json);
    return true;
}

/* ---- players, as providers know them --------------------------------------------------------- */

void games_subject(const uint8_t key[SECRETS_KEY_SIZE], const char *provider_id,
                   const char *player_id, char out[GAMES_SUBJECT_SIZE])
{
    uint8_t tag[DIGEST_SIZE];
    struct buffer data = {0};
    struct buffer text = {0};
    buffer_append(&data, provider_id, strlen(provider_id) + 1);
    buffer_append_string(&data, player_id);
    digest_hmac_sha256((struct text){(const char *)key, SECRETS_KEY_SIZE}, buffer_text(&data), tag);
    buffer_append_base64url(&text, tag, SUBJECT_BYTES);
    CHECK(text.size < GAMES_SUBJECT_SIZE);
    memcpy(out, buffer_string(&text), text.size + 1);
    buffer_free(&data);
    buffer_free(&text);
}

void games_table_subject_key(const struct games_table *table, uint8_t out[SECRETS_KEY_SIZE])
{
    memcpy(out, table->subject_key, SECRETS_KEY_SIZE);
}
