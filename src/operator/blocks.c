/* Blocks of players as an operator handles them; see blocks.h. */
#include "operator/blocks.h"

#include "base/clock.h"
#include "operator/customers.h"
#include "operator/option_texts.h"
#include "operator/times.h"
#include "stores/platform_players.h"

/* ---- the fields ------------------------------------------------------------------------------ */

static enum status set_until(const struct field *field, struct text text, void *record,
                             struct error *error)
{
    struct block_view *block = record;
    int64_t until_ms = 0;
    enum status status =
        text.at == NULL ? STATUS_OK : time_parse_ahead(text, block->now_ms, &until_ms, error);
    if (status == STATUS_OK)
        block->record.until_ms = until_ms;
    else
        error_prefix(error, "%s", field->name);
    return status;
}

static enum status set_reason(const struct field *field, struct text text, void *record,
                              struct error *error)
{
    if (text_trim(text).size == 0)
        return error_invalid(error, "reason: must not be empty");
    ((struct block_view *)record)->explained = true;
    return field_set_text(field, text, record, error);
}

static bool write_side(const struct field *field, const void *record,
                       const struct field_output *out)
{
    const char *side = block_is_own(record) ? "customer" : "operator";
    if (out->json != NULL)
        json_string(out->json, field->name, side);
    else
        buffer_append_string(out->text, side);
    return true;
}

static const struct field_type side_type = {write_side, NULL};
static const struct field_type early_type = {NULL, field_set_yes_no};

#define OF_RECORD(member) FIELD_OF(block_record, member)

static const struct field fields[] = {
    {"id", "block", "BLOCKED", &field_text, OF_RECORD(id)},
    {"customer", "customer", NULL, &field_text, OF_RECORD(customer_id)},
    {"player_reference", "reference", "REFERENCE", &field_text, OF_RECORD(reference)},
    {"player_id", NULL, NULL, &field_text_or_null, OF_RECORD(player_id)},
    {"by", "by", "BY", &side_type, OF_RECORD(id)},
    {"blocked", "in force", NULL, &field_yes_no, FIELD_OF(block_view, blocked)},
    {"blocked_at", "blocked", "SINCE (UTC)", &field_time, OF_RECORD(blocked_ms)},
    {"until", "until", "UNTIL", &field_time, OF_RECORD(until_ms), .set = set_until,
     .option = OPTION_PLAYER_UNTIL},
    {"early", NULL, NULL, &early_type, FIELD_OF(block_view, early), .option = OPTION_PLAYER_EARLY},
    {"reason", "reason", "REASON", &field_text, OF_RECORD(reason), .words = "-", .set = set_reason,
     .option = OPTION_PLAYER_REASON},
    {"standing", NULL, NULL, &field_text_if_any, FIELD_OF(block_view, standing)},
    {0},
};

/* ---- finding --------------------------------------------------------------------------------- */

enum status block_id_of(const char *customer_id, const char *reference, char id[BLOCK_ID_SIZE],
                        struct error *error)
{
    struct block_record record = {0};
    if (strlen(customer_id) >= sizeof record.customer_id ||
        strlen(reference) >= sizeof record.reference)
        return error_invalid(error, "no customer or player is called that");
    memcpy(record.customer_id, customer_id, strlen(customer_id));
    memcpy(record.reference, reference, strlen(reference));
    enum status status = block_table.check(&record, error);
    if (status == STATUS_OK)
        block_name(id, customer_id, reference, false);
    return status;
}

static enum status find_player(struct platform_store *store, const char *id,
                               struct block_record *named, struct error *error)
{
    struct player_record player;
    enum status status = platform_get(store, &player_table, id, &player, error);
    if (status == STATUS_NOT_FOUND)
        return error_set(error, status, "there is no player '%.64s'", id);
    if (status != STATUS_OK)
        return status;
    memcpy(named->id, player.id, sizeof player.id);
    memcpy(named->player_id, player.id, sizeof player.id);
    memcpy(named->customer_id, player.customer_id, sizeof player.customer_id);
    memcpy(named->reference, player.reference, sizeof player.reference);
    return STATUS_OK;
}

/* The customer must be there, and its player need not be. */
static enum status find_reference(struct platform_store *store, const char *id,
                                  struct block_record *named, struct error *error)
{
    const bool own = id[strcspn(id, ":/")] == '/';
    struct text reference = text_of(id);
    struct text customer_id = text_cut(&reference, own ? '/' : ':');
    struct customer_record customer;
    if (!text_copy_plain(customer_id, named->customer_id, sizeof named->customer_id) ||
        !text_copy_plain(reference, named->reference, sizeof named->reference) ||
        block_table.check(named, NULL) != STATUS_OK)
        return resource_missing(&block_resource, id, error);
    block_name(named->id, named->customer_id, named->reference, own);
    enum status status = platform_get(store, &customer_table, named->customer_id, &customer, error);
    return status == STATUS_NOT_FOUND
               ? resource_missing(&customer_resource, named->customer_id, error)
               : status;
}

/* A player is blocked while its own block, that of its reference or its customer's is in force.
 * Beside the customer's own, the blocks of its players count, too. */
static enum status find_standing(struct platform_store *store, struct block_view *block,
                                 struct error *error)
{
    const struct block_record *record = &block->record;
    struct player_record players[PLAYERS_NAMED_MAX];
    size_t count = 0;
    enum status status = STATUS_OK;
    if (block_is_own(record))
        status = platform_players_named(store, record->customer_id, record->reference, players,
                                        PLAYERS_NAMED_MAX, &count, error);
    for (size_t i = 0; i < count + 2 && status == STATUS_OK && block->standing[0] == '\0'; i++) {
        struct block_record other;
        char name[BLOCK_ID_SIZE];
        block_name(name, record->customer_id, record->reference, i == count + 1);
        const char *id = i < count ? players[i].id : name;
        if (strcmp(id, record->id) == 0)
            continue;
        status = platform_get(store, &block_table, id, &other, error);
        if (status == STATUS_OK && block_is_in_force(&other, block->now_ms))
            memcpy(block->standing, other.id, sizeof other.id);
        if (status == STATUS_NOT_FOUND)
            status = STATUS_OK;
    }
    return status;
}

static enum status get(struct platform_store *store, const char *id, void *record,
                       struct error *error)
{
    struct block_view *block = record;
    *block = (struct block_view){.now_ms = clock_wall_ms()};
    enum status status = text_starts_with(text_of(id), TEXT("ply_"))
                             ? find_player(store, id, &block->record, error)
                             : find_reference(store, id, &block->record, error);
    if (status == STATUS_OK)
        status = find_standing(store, block, error);
    if (status != STATUS_OK)
        return status;
    status = platform_get(store, &block_table, block->record.id, &block->before, error);
    block->blocked = status == STATUS_OK && block_is_in_force(&block->before, block->now_ms);
    if (block->blocked)
        block->record = block->before;
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- changing -------------------------------------------------------------------------------- */

/* Refuses a change that would let the player play earlier, by this rule. */
static enum status refuse(const struct block_view *block, const char *rule, struct error *error)
{
    char until[CLOCK_TEXT_SIZE];
    const bool ends = block->before.until_ms != 0;
    clock_format_rfc3339(block->before.until_ms, until);
    return error_conflict(error, "'%s' is blocked %s%s; %s", block->record.id,
                          ends ? "until " : "without an end", ends ? until : "", rule);
}

static enum status judge_block(const struct block_view *block, struct error *error)
{
    const int64_t until_ms = block->record.until_ms;
    if (block->early)
        return error_invalid(error, "early: is only for taking a block away");
    return block_is_in_force(&block->before, block->now_ms) && until_ms != 0 &&
                   (block->before.until_ms == 0 || until_ms < block->before.until_ms)
               ? refuse(block, "an end cannot become earlier", error)
               : STATUS_OK;
}

static enum status judge_unblock(const struct block_view *block, struct error *error)
{
    if (block->early && !block->explained)
        return error_invalid(error, "reason: is required to unblock");
    if (block->record.until_ms != 0 && block->record.until_ms != block->before.until_ms)
        return error_invalid(error, "until: is only for blocking");
    return block->early ? STATUS_OK
                        : refuse(block, "to unblock it, give early and a reason", error);
}

/* Refuses these settings of a block that is not in force and is not set now. */
static enum status judge_nothing(const struct block_view *block, struct error *error)
{
    const struct block_record *record = &block->record;
    if (record->until_ms != 0)
        return error_invalid(error, "until: is only for blocking");
    if (strchr(block->standing, '/') != NULL)
        return error_conflict(error, "'%s' is blocked by customer %s, which alone unblocks it",
                              record->id, record->customer_id);
    if (block->standing[0] != '\0')
        return error_conflict(error,
                              "'%s' is blocked by its reference; unblock %s '%s' in every currency",
                              record->id, record->customer_id, record->reference);
    return STATUS_OK;
}

static enum status put(struct platform_store *store, void *record, struct error *error)
{
    struct block_view *block = record;
    struct block_record *next = &block->record;
    const bool in_force = block_is_in_force(&block->before, block->now_ms);
    enum status status = STATUS_OK;
    if (block_is_own(next) != block->by_customer)
        return error_conflict(
            error, "'%s' is the customer's own block, which it alone sets and lifts", next->id);
    if (block->blocked) {
        status = judge_block(block, error);
        next->blocked_ms = in_force ? block->before.blocked_ms : block->now_ms;
    } else if (in_force) {
        status = judge_unblock(block, error);
        next->blocked_ms = next->until_ms = 0;
    } else {
        return judge_nothing(block, error);
    }
    return status == STATUS_OK ? platform_block_put(store, next, &block->before, error) : status;
}

/* ---- listing --------------------------------------------------------------------------------- */

struct listing {
    int64_t now_ms;
    record_function *see;
    void *context;
};

static bool see_block(void *context, const void *record)
{
    const struct listing *listing = context;
    struct block_view block = {.record = *(const struct block_record *)record, .blocked = true};
    return !block_is_in_force(&block.record, listing->now_ms) ||
           listing->see(listing->context, &block);
}

static enum status list(struct platform_store *store, const char *of, record_function *see,
                        void *context, struct error *error)
{
    struct listing listing = {clock_wall_ms(), see, context};
    struct customer_record owner;
    if (of != NULL && of[0] == '\0')
        of = NULL;
    enum status status =
        of == NULL ? STATUS_OK : platform_get(store, &customer_table, of, &owner, error);
    if (status != STATUS_OK)
        return status == STATUS_NOT_FOUND ? resource_missing(&customer_resource, of, error)
                                          : status;
    return platform_list(store, &block_table, of, see_block, &listing, error);
}

const struct resource block_resource = {
    RESOURCE(RECORD_BLOCK, block_view, fields),
    .get = get,
    .put = put,
    .list = list,
};
