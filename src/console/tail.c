/*
 * A request that waits keeps its tail, and is asked again every second. So the horizon of the
 * ledger moves on from look to look, and each look reads what is new.
 */
#include "console/handlers.h"

#include "base/clock.h"
#include "base/memory.h"
#include "operator/tail.h"

/* Looks for the first row of an answer: at the batches that were open at the first one, which take
 * milliseconds, and at pages of rows that are not asked for. */
#define LOOKS_MAX 20
#define PAUSE_NS (10 * UINT64_C(1000000))

/* `after`, "0" or as console_number, and the hash that the row of that number must have. */
static void read_place(struct console_query *query, struct tail *asked)
{
    if (strcmp(console_parameter(query, "after"), "0") != 0)
        asked->place = console_number(query, "after", INT64_MAX, 0);
    const char *hash = console_parameter(query, "hash");
    asked->ledger.known = hash[0] != '\0';
    if (asked->ledger.known && (asked->place == 0 || !hex_read(text_of(hash), asked->ledger.hash,
                                                               sizeof asked->ledger.hash)))
        console_refuse_parameter(query, "hash",
                                 "must be the 64 hexadecimal digits of the row that "
                                 "`after` names");
}

static enum status read_rows(struct console_call *call, struct tail *tail, int looks,
                             struct error *error)
{
    enum status status = tail_read(tail, call->store, error);
    while (--looks > 0 && status == STATUS_OK && tail->rows == 0 &&
           (tail->ledger.more || !tail->ledger.whole)) {
        if (!tail->ledger.more)
            clock_pause_ns(PAUSE_NS);
        status = tail_read(tail, call->store, error);
    }
    return status;
}

/* Reads on from where the last look ended, for the first one from `after`. */
static enum status answer(struct console_call *call, struct tail *asked, struct error *error)
{
    const bool is_first = call->tail == NULL;
    read_place(&call->query, asked);
    if (call->query.status != STATUS_OK)
        return call->query.status;
    if (is_first) {
        call->tail = memory_alloc_zeroed(1, sizeof *call->tail);
        *call->tail = *asked;
    }
    struct tail *tail = call->tail;
    tail->customer_id = asked->customer_id;
    tail->trail = asked->trail;
    tail->array = &call->json;
    json_object(&call->json, NULL);
    json_array(&call->json, "items");
    enum status status = read_rows(call, tail, is_first ? LOOKS_MAX : 1, error);
    json_end(&call->json);
    json_unsigned(&call->json, "next", tail->place);
    if (tail->ledger.known)
        json_hex(&call->json, "next_hash", tail->ledger.hash, sizeof tail->ledger.hash);
    else
        json_null(&call->json, "next_hash");
    json_bool(&call->json, "more", tail->ledger.more);
    call->is_empty = status == STATUS_OK && tail->rows == 0 && !tail->ledger.more;
    return status;
}

enum status console_ledger_tail(struct console_call *call, struct error *error)
{
    struct tail asked = {.of = TAIL_LEDGER,
                         .customer_id = console_parameter(&call->query, "customer")};
    return answer(call, &asked, error);
}

enum status console_audit_tail(struct console_call *call, struct error *error)
{
    struct tail asked = {.of = TAIL_AUDIT,
                         .trail = {.object = console_parameter(&call->query, "object"),
                                   .who = console_parameter(&call->query, "who"),
                                   .operators = call->signed_in.who.role == ROLE_OWNER}};
    return answer(call, &asked, error);
}
