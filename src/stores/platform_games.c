/* The front of providers and games: checks records before an engine sees them; see
 * platform_games.h. */
#include "stores/platform_games.h"

#include <string.h>

#include "base/memory.h"
#include "stores/platform_engine.h"

/* ---- what is acceptable ---------------------------------------------------------------------- */

const char *game_volatility_name(enum game_volatility volatility)
{
    static const char *const names[] = {NULL, "low", "medium", "high"};
    CHECK((unsigned)volatility < sizeof names / sizeof names[0]);
    return names[volatility];
}

static bool is_lower_or_digit(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9');
}

bool game_id_is_sound(struct text id)
{
    if (id.size == 0 || id.size >= GAME_ID_SIZE || id.at[0] == '-')
        return false;
    for (size_t i = 0; i < id.size; i++)
        if (!is_lower_or_digit(id.at[i]) && id.at[i] != '-')
            return false;
    return true;
}

bool game_currency_is_sound(struct text currency)
{
    if (currency.size != 3)
        return false;
    for (size_t i = 0; i < 3; i++)
        if (currency.at[i] < 'A' || currency.at[i] > 'Z')
            return false;
    return true;
}

bool game_word_is_sound(struct text word)
{
    return word.size > 0 && word.size < GAME_WORD_SIZE && text_is_plain(word);
}

bool url_is_sound(struct text url)
{
    size_t scheme = text_starts_with(url, TEXT("https://"))  ? 8
                    : text_starts_with(url, TEXT("http://")) ? 7
                                                             : 0;
    if (scheme == 0 || url.size <= scheme || url.at[scheme] == '/')
        return false;
    for (size_t i = 0; i < url.size; i++)
        if (url.at[i] <= ' ' || url.at[i] >= 0x7F || strchr("\"<>\\^`{|}", url.at[i]) != NULL)
            return false;
    return true;
}

bool game_url_is_sound(struct text url)
{
    return url.size < GAME_URL_SIZE && url_is_sound(url);
}

/* "host:port" of a sound URL, with what stands before an '@'. */
static struct text authority_of(struct text url)
{
    struct text rest = url;
    size_t size = 0;
    (void)text_cut(&rest, '/');
    (void)text_cut(&rest, '/');
    while (size < rest.size && memchr("/?#", rest.at[size], 3) == NULL)
        size++;
    return (struct text){rest.at, size};
}

bool game_url_is_guarded(struct text url)
{
    static const struct text loopbacks[] = {TEXT_INIT("127.0.0.1"), TEXT_INIT("[::1]"),
                                            TEXT_INIT("localhost")};
    struct text authority = authority_of(url);
    bool guarded = text_starts_with(url, TEXT("https://"));
    if (memchr(authority.at, '@', authority.size) != NULL)
        return false;
    for (size_t i = 0; !guarded && i < sizeof loopbacks / sizeof loopbacks[0]; i++)
        guarded = text_starts_with(authority, loopbacks[i]) &&
                  (authority.size == loopbacks[i].size || authority.at[loopbacks[i].size] == ':');
    return guarded;
}

bool game_list_has(struct text list, struct text item)
{
    struct text rest = list;
    while (rest.size > 0)
        if (text_equals(text_cut(&rest, '\n'), item))
            return true;
    return false;
}

static struct text field_text(const char *field, size_t room)
{
    return (struct text){field, strnlen(field, room)};
}

static bool is_name(const char *name)
{
    struct text text = field_text(name, GAME_NAME_SIZE);
    return text.size > 0 && text.size < GAME_NAME_SIZE && text_is_plain(text);
}

static bool is_list(const char *field, bool sound(struct text item))
{
    struct text rest = field_text(field, GAME_LIST_SIZE);
    if (rest.size == GAME_LIST_SIZE)
        return false;
    for (size_t count = 0; rest.size > 0; count++) {
        struct text item = text_cut(&rest, '\n');
        bool ends_in_separator = rest.at != NULL && rest.size == 0;
        if (count == GAME_LIST_ITEMS_MAX || ends_in_separator || !sound(item))
            return false;
    }
    return true;
}

static enum status check_url(const char *what, const char *url, bool fragment, struct error *error)
{
    struct text text = field_text(url, GAME_URL_SIZE);
    if (!game_url_is_sound(text))
        return error_set(
            error, STATUS_INVALID,
            "%s: must be http:// or https:// and at most %d printable ASCII characters "
            "in all",
            what, GAME_URL_SIZE - 1);
    if (!fragment && memchr(text.at, '#', text.size) != NULL)
        return error_set(error, STATUS_INVALID, "%s: must not have a fragment (#…)", what);
    return STATUS_OK;
}

enum status provider_record_check(const struct provider_record *record, struct error *error)
{
    if (!game_id_is_sound(field_text(record->id, sizeof record->id)))
        return error_set(error, STATUS_INVALID,
                         "id: must be 1 to %d of a-z, 0-9 and '-', not beginning with '-'",
                         PROVIDER_ID_SIZE - 1);
    if (!is_name(record->name))
        return error_set(error, STATUS_INVALID,
                         "name: must be 1 to %d bytes of UTF-8 without control characters",
                         GAME_NAME_SIZE - 1);
    enum status status = check_url("launch URL", record->launch_url, false, error);
    if (status == STATUS_OK && record->launch_call &&
        !game_url_is_guarded(text_of(record->launch_url)))
        return error_set(error, STATUS_INVALID,
                         "launch endpoint: must be https:// (http:// only to 127.0.0.1, [::1] or "
                         "localhost), without a user name");
    if (status == STATUS_OK && record->return_url[0] != '\0')
        status = check_url("return URL", record->return_url, true, error);
    if (status != STATUS_OK)
        return status;
    struct text audience = field_text(record->audience, sizeof record->audience);
    if (audience.size == 0 || audience.size == sizeof record->audience || !text_is_plain(audience))
        return error_set(error, STATUS_INVALID,
                         "audience: must be 1 to %d bytes of UTF-8 without control characters",
                         PROVIDER_AUDIENCE_SIZE - 1);
    if (record->secret_size < 29 || record->secret_size > PROVIDER_SEALED_MAX)
        return error_set(error, STATUS_INVALID, "secret: is missing or too long");
    return STATUS_OK;
}

static enum status check_lists(const struct game_record *record, struct error *error)
{
    const struct {
        const char *name;
        const char *list;
        bool (*sound)(struct text item);
    } lists[] = {{"features", record->features, game_word_is_sound},
                 {"currencies", record->currencies, game_currency_is_sound},
                 {"languages", record->languages, game_word_is_sound},
                 {"devices", record->devices, game_word_is_sound}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (!is_list(lists[i].list, lists[i].sound))
            return error_set(error, STATUS_INVALID, "%s: holds something that is not acceptable",
                             lists[i].name);
    return STATUS_OK;
}

enum status game_record_check(const struct game_record *record, struct error *error)
{
    if (!game_id_is_sound(field_text(record->id, sizeof record->id)) ||
        !game_id_is_sound(field_text(record->provider_id, sizeof record->provider_id)))
        return error_set(error, STATUS_INVALID,
                         "id: must be 1 to %d of a-z, 0-9 and '-', not beginning with '-'",
                         GAME_ID_SIZE - 1);
    if (!is_name(record->name) ||
        !game_word_is_sound(field_text(record->category, sizeof record->category)))
        return error_set(error, STATUS_INVALID,
                         "name, category: must be UTF-8 without control characters");
    if (record->rtp_bps < -1 || record->rtp_bps > 10000)
        return error_set(error, STATUS_INVALID, "rtp_bps: must be 0 to 10000");
    if (record->thumbnail_url[0] != '\0') {
        enum status status = check_url("thumbnail_url", record->thumbnail_url, true, error);
        if (status != STATUS_OK)
            return status;
    }
    return check_lists(record, error);
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum status platform_provider_add(struct platform_store *store,
                                  const struct provider_record *record, struct error *error)
{
    enum status status = provider_record_check(record, error);
    return status == STATUS_OK ? store->engine->provider_add(store, record, error) : status;
}

enum status platform_provider_update(struct platform_store *store,
                                     const struct provider_record *record, struct error *error)
{
    enum status status = provider_record_check(record, error);
    return status == STATUS_OK ? store->engine->provider_update(store, record, error) : status;
}

enum status platform_provider_get(struct platform_store *store, const char *id,
                                  struct provider_record *record, struct error *error)
{
    return store->engine->provider_get(store, id, record, error);
}

enum status platform_games_put(struct platform_store *store, const struct game_record *records,
                               const bool *set_enabled, size_t count, int64_t now_ms,
                               struct games_put_result *result, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        enum status status = game_record_check(&records[i], error);
        if (status != STATUS_OK)
            return status;
    }
    return store->engine->games_put(store, records, set_enabled, count, now_ms, result, error);
}

enum status platform_game_get(struct platform_store *store, const char *id,
                              struct game_record *record, struct error *error)
{
    return store->engine->game_get(store, id, record, error);
}

enum status platform_game_enable(struct platform_store *store, const char *id, bool enabled,
                                 int64_t now_ms, struct error *error)
{
    return store->engine->game_enable(store, id, enabled, now_ms, error);
}

enum status platform_game_policy_put(struct platform_store *store,
                                     const struct game_policy_record *record, struct error *error)
{
    CHECK(!record->every_game || record->games.size == 0);
    struct text rest = record->games;
    while (rest.size > 0)
        if (!game_id_is_sound(text_cut(&rest, '\n')))
            return error_set(error, STATUS_INVALID, "the list holds something that is no game id");
    return store->engine->game_policy_put(store, record, error);
}

enum status platform_games_revision(struct platform_store *store, uint64_t *revision,
                                    struct error *error)
{
    return store->engine->games_revision(store, revision, error);
}

enum status platform_games_read(struct platform_store *store,
                                const struct platform_games_visit *visit, uint64_t *revision,
                                struct error *error)
{
    return store->engine->games_read(store, visit, revision, error);
}
