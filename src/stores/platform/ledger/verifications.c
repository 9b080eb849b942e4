/*
 * The outcomes of the ledger's last verifications: two rows at most. A process that verifies the
 * ledger writes them, and each server reads them now and then (operator/verification.h).
 */

#include "base/json_writer.h"
#include "stores/platform/ledger/reads.h"
#include "stores/platform/trail.h"
#include "stores/platform_verifications.h"

static const char *const scopes[VERIFICATION_SCOPE_COUNT] = {"whole", "recent"};
const struct enum_names verification_scopes = ENUM_NAMES(scopes);

void verification_set_reason(struct verification_record *record, const char *reason)
{
    size_t size = 0;
    /* It may quote a damaged row, whose bytes no store has to take as text. */
    for (; reason[size] != '\0' && size + 1 < sizeof record->reason; size++)
        record->reason[size] = reason[size] >= ' ' && reason[size] <= '~' ? reason[size] : '?';
    record->reason[size] = '\0';
}

/* Writes the verification for the audit trail, as a record that was added. */
static void write_after(struct buffer *after, const struct verification_record *record)
{
    struct json_writer json = {.out = after};
    json_object(&json, NULL);
    json_bool(&json, "sound", record->sound);
    json_unsigned(&json, "entries", record->entries);
    json_unsigned(&json, "players", record->players);
    json_string_or_null(&json, "reason", record->reason);
    json_end(&json);
}

static enum status put(struct sql_flight *flight, void *context, struct error *error)
{
    const struct sql_texts *texts = flight->store->engine->texts;
    const struct verification_record *record = context;
    struct trail_row row = {0};
    struct sql_parameters *values = sql_flight_add(flight, texts->put_verification)->parameters;
    SQL_ADD(values, SQL_STRING(scopes[record->scope]), SQL_INTEGER(record->started_ms),
            SQL_INTEGER(record->ended_ms), SQL_INTEGER(record->since_ms), SQL_FLAG(record->sound),
            SQL_INTEGER(record->entries), SQL_INTEGER(record->players), SQL_STRING(record->reason));
    if (record->scope == VERIFICATION_WHOLE && record->sound) {
        values = sql_flight_add(flight, texts->delete_verification)->parameters;
        SQL_ADD(values, SQL_STRING(scopes[VERIFICATION_RECENT]), SQL_INTEGER(record->started_ms));
    }
    write_after(&row.after, record);
    return trail_event(flight, &row, "verification", scopes[record->scope], error);
}

enum status platform_verification_put(struct platform_store *store,
                                      const struct verification_record *record, struct error *error)
{
    struct verification_record written = *record;
    return sql_transact(store, put, &written, error);
}

struct reading {
    struct platform_store *store;
    struct verifications found;
};

static enum status take_row(void *context, const struct sql_row *row, struct error *error)
{
    struct reading *reading = context;
    struct verification_record record = {
        .started_ms = sql_integer(row, 1),
        .ended_ms = sql_integer(row, 2),
        .since_ms = sql_integer(row, 3),
        .sound = sql_flag(row, 4),
        .entries = (uint64_t)sql_integer(row, 5),
        .players = (uint64_t)sql_integer(row, 6),
    };
    struct text reason = sql_text(row, 7);
    bool whole = text_equals(sql_text(row, 0), text_of(scopes[VERIFICATION_WHOLE]));
    record.scope = whole ? VERIFICATION_WHOLE : VERIFICATION_RECENT;
    if (record.started_ms <= 0 || reason.size >= sizeof record.reason)
        return platform_damaged(reading->store, "a verification of the ledger is malformed", error);
    if (reason.size > 0)
        memcpy(record.reason, reason.at, reason.size);
    reading->found.of[record.scope] = record;
    return STATUS_OK;
}

enum status platform_verifications(struct platform_store *store, struct verifications *found,
                                   struct error *error)
{
    struct reading reading = {.store = store};
    for (int scope = 0; scope < VERIFICATION_SCOPE_COUNT; scope++)
        reading.found.of[scope].scope = (enum verification_scope)scope;
    enum status status = ledger_read_page(store, store->engine->texts->verifications, NULL,
                                          take_row, &reading, error);
    if (status == STATUS_OK)
        *found = reading.found;
    return status;
}

enum status platform_verifications_revision(struct platform_store *store, uint64_t *revision,
                                            struct error *error)
{
    return sql_read_integer(
        store, "SELECT CAST(coalesce(sum(ended_ms), 0) AS bigint) FROM ledger_verification",
        (int64_t *)revision, error);
}
