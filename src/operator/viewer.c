/* Every function here compares the customer before it reads; see viewer.h. */
#include "operator/viewer.h"

#include "base/clock.h"
#include "base/memory.h"
#include "operator/times.h"

const struct viewer viewer_operator = {.customer_id = NULL};

/* Narrows `*customer_id` (NULL: all) to what the viewer may see. */
static enum status narrow(const struct viewer *viewer, const char **customer_id,
                          struct error *error)
{
    if (viewer->customer_id == NULL)
        return STATUS_OK;
    if (*customer_id != NULL && strcmp(*customer_id, viewer->customer_id) != 0)
        return error_not_found(error, "there is no such customer");
    *customer_id = viewer->customer_id;
    return STATUS_OK;
}

/* ---- a player -------------------------------------------------------------------------------- */

enum status viewer_account(struct platform_store *store, const struct viewer *viewer,
                           const char *player_id, struct ledger_account *account,
                           struct error *error)
{
    struct ledger_account read;
    enum status status = platform_ledger_balance(store, player_id, &read, error);
    if (status != STATUS_OK)
        return status;
    if (viewer->customer_id != NULL && strcmp(read.player.customer_id, viewer->customer_id) != 0)
        return error_not_found(error, "there is no such player");
    *account = read;
    return STATUS_OK;
}

#define LOOKS_MAX 20 /* at batches that are open */
#define LOOK_EVERY_NS ((uint64_t)5 * 1000 * 1000)

/* Clocks of instances differ and go back: an entry may be so much older than one before it. */
#define CLOCKS_DIFFER_MS CLOCK_DAY_MS
#define PAGE_WORK 2000 /* entries that a page reads to find those of a kind */

/* Lowers `before` to the first entry that was surely made after the time. */
static enum status skip_newer(struct platform_store *store, const struct viewer_statement *asked,
                              uint64_t *before, struct error *error)
{
    enum status status = STATUS_OK;
    uint64_t low = 1;
    uint64_t at = *before - 1; /* mostly there is nothing to skip */
    while (low < *before && status == STATUS_OK) {
        int64_t made_ms = 0;
        status = platform_ledger_entry_made(store, asked->player_id, at, &made_ms, error);
        if (made_ms - CLOCKS_DIFFER_MS >= asked->to_ms)
            *before = at;
        else
            low = at + 1;
        at = low + (*before - low) / 2;
    }
    return status;
}

const char *const viewer_kinds[] = {"",      "DEBIT",   "CREDIT",     "ROLLBACK", "win",
                                    "promo", "jackpot", "adjustment", NULL};

bool viewer_is_of_kind(const char *kind, const struct ledger_transaction *entry)
{
    return kind == NULL || kind[0] == '\0' ||
           strcmp(kind, ledger_operation_name(entry->operation)) == 0 ||
           strcmp(kind, ledger_kind_name(entry)) == 0;
}

/* Keeps the newest entries that are asked for, `limit` of them. */
struct page {
    const struct viewer_statement *asked;
    struct ledger_transaction *kept;
    uint64_t limit, met;
    int64_t oldest_ms; /* of all that were read */
};

static bool keep_entry(void *context, const struct ledger_transaction *entry)
{
    struct page *page = context;
    const struct viewer_statement *asked = page->asked;
    if (page->oldest_ms == 0)
        page->oldest_ms = entry->created_ms;
    if (entry->created_ms >= asked->from_ms &&
        (asked->to_ms == 0 || entry->created_ms < asked->to_ms) &&
        viewer_is_of_kind(asked->kind, entry))
        page->kept[page->met++ % page->limit] = *entry;
    return true;
}

static enum status read_page(struct platform_store *store, struct page *page, uint64_t before,
                             uint64_t *next, struct error *error)
{
    const char *kind = page->asked->kind;
    const uint64_t work = kind != NULL && kind[0] != '\0' ? PAGE_WORK : page->limit;
    const struct ledger_whose whose = {.player_id = page->asked->player_id,
                                       .from = before > work ? before - work : 1,
                                       .before = before};
    enum status status =
        before > 1 ? platform_ledger_entries(store, whose, keep_entry, page, error) : STATUS_OK;
    *next = whose.from > 1 && page->oldest_ms + CLOCKS_DIFFER_MS >= page->asked->from_ms
                ? whose.from
                : 0;
    return status;
}

enum status viewer_read_page(struct platform_store *store, const struct viewer *viewer,
                             const struct viewer_statement *asked, uint64_t limit, uint64_t *next,
                             ledger_transaction_visitor *visit, void *context, struct error *error)
{
    struct ledger_account account;
    enum status status = viewer_account(store, viewer, asked->player_id, &account, error);
    if (status != STATUS_OK)
        return status;
    CHECK(limit > 0 && limit <= VIEWER_PAGE_MAX);
    struct page page = {.asked = asked, .limit = limit};
    uint64_t before = account.sequence + 1;
    if (asked->before > 0 && asked->before < before)
        before = asked->before;
    if (asked->to_ms > 0)
        status = skip_newer(store, asked, &before, error);
    page.kept = memory_alloc_zeroed(limit, sizeof page.kept[0]);
    if (status == STATUS_OK)
        status = read_page(store, &page, before, next, error);
    if (status == STATUS_OK && page.met > limit)
        *next = page.kept[page.met % limit].sequence;
    const uint64_t first = page.met > limit ? page.met - limit : 0;
    for (uint64_t i = first; i < page.met; i++)
        if (status != STATUS_OK ||
            !visit(context,
                   &page.kept[(asked->newest_first ? first + page.met - 1 - i : i) % limit]))
            break;
    memory_free(page.kept);
    return status;
}

/* ---- transactions ---------------------------------------------------------------------------- */

enum status viewer_find_transaction(struct platform_store *store, const struct viewer *viewer,
                                    const char *owner_id, const char *id, struct ledger_fact *fact,
                                    struct error *error)
{
    struct ledger_account account;
    ledger_ask(fact, owner_id, id);
    enum status status = store->ledger->id(store, fact, error);
    const char *player_id =
        fact->id.known ? fact->id.transaction.player_id : fact->id.rolled_back_player;
    if (status == STATUS_OK) /* reads the same where the id was never used */
        status = viewer_account(store, viewer, player_id, &account, error);
    return status == STATUS_NOT_FOUND ? error_set(error, status, "there is no such transaction")
                                      : status;
}

enum status viewer_read_tail(struct platform_store *store, const struct viewer *viewer,
                             struct ledger_tail *tail, ledger_numbered_visitor *visit,
                             void *context, struct error *error)
{
    tail->customer_id = viewer->customer_id;
    enum status status = platform_ledger_tail(store, tail, visit, context, error);
    for (int look = 1; look < LOOKS_MAX && status == STATUS_OK && !tail->more && !tail->whole;
         look++) {
        clock_pause_ns(LOOK_EVERY_NS);
        status = platform_ledger_tail(store, tail, visit, context, error);
    }
    return status;
}

/* ---- usage and money ------------------------------------------------------------------------- */

static const char *or_null(const char *given)
{
    return given != NULL && given[0] != '\0' ? given : NULL;
}

static enum status read_day(const char *name, const char *given, int64_t *day, struct error *error)
{
    return or_null(given) == NULL || clock_parse_day(text_of(given), day) == STATUS_OK
               ? STATUS_OK
               : error_invalid(error, "%s: must be a date, as 2026-11-21", name);
}

enum status viewer_ask_days(const struct viewer_days *given, int64_t now_ms,
                            struct ledger_scope *scope, struct error *error)
{
    int64_t to_day = clock_day(now_ms);
    enum status status = read_day("to", given->to, &to_day, error);
    int64_t from_day = to_day - given->before;
    if (status == STATUS_OK)
        status = read_day("from", given->from, &from_day, error);
    if (status == STATUS_OK && from_day > to_day)
        status = error_invalid(error, "from: must not be after to");
    if (status == STATUS_OK && given->most > 0 && to_day - from_day >= given->most)
        status =
            error_invalid(error, "from: must be at most %d days before to", (int)given->most - 1);
    if (status == STATUS_OK)
        *scope = (struct ledger_scope){.from_ms = from_day * CLOCK_DAY_MS,
                                       .to_ms = (to_day + 1) * CLOCK_DAY_MS,
                                       .customer_id = or_null(given->customer_id),
                                       .provider_id = or_null(given->provider_id)};
    return status;
}

enum status viewer_read_requests(struct platform_store *store, const struct viewer *viewer,
                                 const struct ledger_scope *asked, usage_function *see,
                                 void *context, struct error *error)
{
    const char *customer_id = asked->customer_id;
    enum status status = narrow(viewer, &customer_id, error);
    return status == STATUS_OK
               ? platform_usage_list(store, customer_id, clock_day(asked->from_ms),
                                     clock_day(asked->to_ms) - 1, see, context, error)
               : status;
}

enum status viewer_read_sums(struct platform_store *store, const struct viewer *viewer,
                             const struct ledger_scope *asked, bool lines,
                             ledger_sum_visitor *visit, void *context, struct error *error)
{
    struct ledger_scope scope = *asked;
    enum status status = narrow(viewer, &scope.customer_id, error);
    if (status == STATUS_OK && viewer->customer_id == NULL)
        (void)platform_ledger_keep_sums(store, LEDGER_SUMS_WORTH_KEEPING);
    if (status == STATUS_OK)
        status = store->ledger->snapshot_begin(store, error);
    if (status != STATUS_OK)
        return status;
    status = platform_ledger_sums(store, &scope, (struct ledger_grouping){.by_day = true}, visit,
                                  context, error);
    if (status == STATUS_OK && lines)
        status = platform_ledger_sums(store, &scope, (struct ledger_grouping){.by_game = true},
                                      visit, context, error);
    store->ledger->snapshot_end(store);
    return status;
}

enum status viewer_read_entries(struct platform_store *store, const struct viewer *viewer,
                                const struct ledger_scope *asked, ledger_transaction_visitor *visit,
                                void *context, struct error *error)
{
    struct ledger_scope scope = *asked;
    enum status status = narrow(viewer, &scope.customer_id, error);
    return status == STATUS_OK ? platform_ledger_entered(store, &scope, visit, context, error)
                               : status;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

enum status viewer_ask_older(const char *older_than, int64_t now_ms, struct ledger_scope *scope,
                             struct error *error)
{
    int64_t before_ms = INT64_MAX;
    if (or_null(older_than) != NULL &&
        time_parse_past(text_of(older_than), now_ms, &before_ms, error) != STATUS_OK)
        return error_invalid(error, "older_than: must be how long ago, as 24h or 7d, or a time");
    if (before_ms < scope->to_ms)
        scope->to_ms = before_ms;
    return STATUS_OK;
}

enum status viewer_read_rounds(struct platform_store *store, const struct viewer *viewer,
                               const struct ledger_rounds_asked *asked, ledger_round_visitor *visit,
                               void *context, struct error *error)
{
    struct ledger_rounds_asked narrowed = *asked;
    enum status status = narrow(viewer, &narrowed.scope.customer_id, error);
    if (status == STATUS_OK)
        status = store->ledger->snapshot_begin(store, error);
    if (status != STATUS_OK)
        return status;
    status = platform_ledger_rounds(store, &narrowed, visit, context, error);
    store->ledger->snapshot_end(store);
    return status;
}
