/*
 * Checking a file of a tail or an export; see tail_check.h. All that a line has but its number and
 * `sandbox` is hashed, so a member that is missing or is not what the ledger wrote shows in the
 * hash.
 */
#include "operator/tail_check.h"

#include <search.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/json_text.h"
#include "base/memory.h"
#include "base/strict_json.h"
#include "operator/documents.h"

/* ---- a line ---------------------------------------------------------------------------------- */

struct line {
    struct ledger_transaction entry; /* first: its fields are the line's */
    int64_t number;
};

static const struct field number_fields[] = {
    {"number", .type = &field_amount, FIELD_OF(line, number)},
    {0},
};

/* Into a zeroed struct. A member that is null or missing stays zero. */
static bool read_member(const struct field *field, struct text value, struct line *line)
{
    char string[128];
    int64_t exponent = 0;
    void *into = field_value_to_set(field, line);
    if (value.at == NULL || json_text_kind(value) == JSON_TEXT_NULL)
        return true;
    if (field->type == &field_text || field->type == &field_text_or_null)
        return strict_json_string(value, into, field->room);
    if (field->type == &field_amount || field->type == &field_count)
        return json_text_integer(value, into);
    if (field->type == &field_exponent) {
        bool fits = json_text_integer(value, &exponent) && exponent >= 0 && exponent <= INT8_MAX;
        *(uint8_t *)into = (uint8_t)exponent;
        return fits;
    }
    if (field->type == &field_yes_no || field->type == &field_if_true) {
        *(bool *)into = text_equals(value, TEXT("true"));
        return *(bool *)into || text_equals(value, TEXT("false"));
    }
    if (!strict_json_string(value, string, sizeof string))
        return false;
    if (field->type == &field_time)
        return clock_parse_rfc3339(text_of(string), into) == STATUS_OK;
    return field->type == &field_hex ? hex_read(text_of(string), into, field->room)
                                     : enum_read(field->names, text_of(string), into);
}

#define MEMBERS_MAX 32

static enum status read_line(struct text text, struct line *line, struct error *error)
{
    const struct field *const tables[] = {number_fields, ledger_transaction_fields,
                                          ledger_entry_fields};
    const struct field *fields[MEMBERS_MAX];
    struct text names[MEMBERS_MAX];
    struct text values[MEMBERS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const struct field *field = tables[i]; field->type != NULL; field++) {
            CHECK(count < MEMBERS_MAX);
            names[count] = text_of(field->name);
            fields[count++] = field;
        }
    enum strict_json form = strict_json_object(text, names, count, values);
    if (form == STRICT_JSON_UNKNOWN_FIELD)
        return error_set(error, STATUS_MALFORMED, "has a member that entries do not have");
    if (form != STRICT_JSON_OK)
        return error_set(error, STATUS_MALFORMED, "is not a line of JSON that wallet tail writes");
    for (size_t i = 0; i < count; i++)
        if (!read_member(fields[i], values[i], line))
            return error_set(error, STATUS_MALFORMED, "the value of %s is not sound", names[i].at);
    const struct ledger_transaction *entry = &line->entry;
    bool is_entry = line->number >= 0 && entry->sequence >= 1 && entry->sequence <= INT64_MAX &&
                    entry->player_id[0] != '\0' && ledger_is_entry(entry) &&
                    entry->operation < LEDGER_OPERATION_COUNT;
    return is_entry ? STATUS_OK : error_set(error, STATUS_MALFORMED, "is not an entry");
}

/* ---- players --------------------------------------------------------------------------------- */

/* The last entry of a player; of a customer, only `sandbox`. */
struct chain {
    char id[PLAYER_ID_SIZE];
    bool sandbox;
    uint64_t sequence;
    int64_t balance_minor;
    uint8_t hash[LEDGER_HASH_SIZE];
};

struct tail_check {
    void *chains; /* of tsearch, by the player's id, or the customer's */
    struct tail_checked so_far;
    struct digest *digest;
};

static int compare_ids(const void *a, const void *b)
{
    return strcmp(((const struct chain *)a)->id, ((const struct chain *)b)->id);
}

/* `is_new`: the last entry is none yet, all zeros. */
static struct chain *chain_of(struct tail_check *check, const char *id, bool *is_new)
{
    struct chain *made = memory_alloc_zeroed(1, sizeof *made);
    memcpy(made->id, id, strlen(id) + 1);
    struct chain *const *found = tsearch(made, &check->chains, compare_ids);
    CHECK(found != NULL);
    *is_new = *found == made;
    if (!*is_new)
        memory_free(made);
    return *found;
}

struct tail_check *tail_check_create(void)
{
    struct tail_check *check = memory_alloc_zeroed(1, sizeof *check);
    check->digest = digest_begin();
    return check;
}

void tail_check_destroy(struct tail_check **at)
{
    struct tail_check *check = memory_take(at);
    if (check == NULL)
        return;
    if (check->digest != NULL) {
        uint8_t unused[DIGEST_SIZE];
        digest_end(&check->digest, unused);
    }
    tdestroy(check->chains, memory_free);
    memory_free(check);
}

/* ---- the chain ------------------------------------------------------------------------------- */

/* The fault of an entry that follows `before`; NULL: it has none. */
static const char *find_flaw(const struct ledger_transaction *entry, const struct chain *before)
{
    uint8_t hash[LEDGER_HASH_SIZE];
    int64_t balance_minor = 0;
    if (entry->sequence != before->sequence + 1)
        return entry->sequence <= before->sequence ? "comes twice, or after a later one"
                                                   : "does not follow the player's entry before it";
    ledger_entry_hash(entry, before->hash, hash);
    if (memcmp(hash, entry->hash, sizeof hash) != 0)
        return "does not fit its hash";
    if (__builtin_add_overflow(before->balance_minor, entry->movement_minor, &balance_minor) ||
        balance_minor != entry->balance_minor || balance_minor < 0)
        return "has a balance that does not follow from the one before";
    return NULL;
}

static void add_to_chain(struct tail_check *check, struct chain *chain, const struct line *line)
{
    const struct ledger_transaction *entry = &line->entry;
    chain->sequence = entry->sequence;
    chain->balance_minor = entry->balance_minor;
    memcpy(chain->hash, entry->hash, sizeof chain->hash);
    digest_add(check->digest, entry->hash, sizeof entry->hash);
    check->so_far.first = check->so_far.entries++ == 0 ? line->number : check->so_far.first;
    check->so_far.last = line->number;
}

/* The last line of an export has their head. STATUS_NOT_FOUND: it is another line. */
static enum status end_export(struct tail_check *check, struct text line, struct error *error)
{
    const struct text names[] = {TEXT("head"),     TEXT("day"),     TEXT("customer"),
                                 TEXT("provider"), TEXT("entries"), TEXT("totals")};
    struct text values[sizeof names / sizeof names[0]];
    char head[2 * LEDGER_HASH_SIZE + 1] = "";
    char said[sizeof head];
    if (strict_json_object(line, names, sizeof names / sizeof names[0], values) != STRICT_JSON_OK ||
        values[0].at == NULL)
        return STATUS_NOT_FOUND;
    check->so_far.ended = true;
    digest_end(&check->digest, check->so_far.head);
    hex_write(head, check->so_far.head, sizeof check->so_far.head);
    return strict_json_string(values[0], said, sizeof said) && strcmp(said, head) == 0
               ? STATUS_OK
               : error_set(error, STATUS_MALFORMED, "the head is not that of the entries before");
}

enum status tail_check_line(struct tail_check *check, struct text text, struct error *error)
{
    struct line line = {.number = 0};
    const char *flaw = NULL;
    if (check->so_far.ended)
        return error_set(error, STATUS_MALFORMED, "comes after the totals");
    enum status status =
        check->so_far.first == 0 ? end_export(check, text, error) : STATUS_NOT_FOUND;
    if (status == STATUS_NOT_FOUND)
        status = read_line(text, &line, error);
    if (status != STATUS_OK || check->so_far.ended)
        return status;
    bool is_new;
    struct chain *customer = chain_of(check, line.entry.customer_id, &is_new);
    customer->sandbox = is_new ? line.entry.sandbox : customer->sandbox;
    struct chain *chain = chain_of(check, line.entry.player_id, &is_new);
    bool numbered = check->so_far.entries == 0 ? line.number > 0 : check->so_far.first > 0;
    if (numbered ? line.number <= check->so_far.last : line.number > 0)
        flaw = "has a number that is not higher than the one before";
    else if (line.entry.sandbox != customer->sandbox)
        flaw = "is of a sandbox, or not, and the customer's entries before it say otherwise";
    else if (!is_new || line.entry.sequence == 1)
        flaw = find_flaw(&line.entry, chain);
    if (flaw != NULL)
        return error_set(error, STATUS_MALFORMED, "entry %" PRIu64 " of player %s %s",
                         line.entry.sequence, line.entry.player_id, flaw);
    check->so_far.players += is_new;
    check->so_far.begun_before += is_new && line.entry.sequence > 1;
    add_to_chain(check, chain, &line);
    return STATUS_OK;
}

void tail_check_end(struct tail_check *check, struct tail_checked *checked)
{
    if (!check->so_far.ended)
        digest_end(&check->digest, check->so_far.head);
    *checked = check->so_far;
}
