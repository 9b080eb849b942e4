/*
 * The current policy table, which a refresher keeps fresh, and the thread that writes the times at
 * which keys were used; see admission.h.
 *
 * Only the refresher thread uses the editor. Tables share all rows that did not change, so an old
 * table that a serving thread still holds costs only the rows changed since. The refresher thread
 * destroys tables.
 */
#include "admission/policy_table.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "metrics/metrics.h"
#include "stores/refresher.h"

#define USES_PERIOD_MS 60000U
#define USES_BATCH 256U

struct policies {
    struct platform_store_options store;
    struct policy_editor *editor;
    struct refresher *refresher;
    struct background use_writer;
};

/* ---- reading --------------------------------------------------------------------------------- */

/* If a read fails half-way, its rows stay in the editor, unpublished; the next read brings them
 * again. */
static enum status read_changes(void *context, struct platform_store *store, bool all,
                                uint64_t *revision, void **table, struct error *error)
{
    struct policies *policies = context;
    const struct record_visitor visit = {.see[RECORD_CUSTOMER] = policy_editor_customer,
                                         .see[RECORD_KEY] = policy_editor_key,
                                         .see[RECORD_ADDRESS] = policy_editor_legacy,
                                         .context = policies->editor};
    if (all)
        policy_editor_restart(policies->editor);
    enum status status =
        platform_changes_since(store, all ? 0 : *revision, &visit, revision, error);
    if (status == STATUS_OK)
        *table = policy_editor_publish(policies->editor, *revision);
    return status;
}

static void recovered(void *context, const void *table, bool first, uint64_t took_ms)
{
    struct policies *policies = context;
    struct policies_facts facts;
    policy_table_facts(table, &facts);
    log_event(policies->store.log, LOG_INFO, first ? "policies loaded" : "policies refreshed again",
              LOG_INTEGER("customers", facts.customers), LOG_INTEGER("keys", facts.keys),
              LOG_INTEGER("addresses", facts.addresses), LOG_INTEGER("revision", facts.revision),
              LOG_INTEGER("took_ms", took_ms));
}

static void destroy_table(void *table)
{
    struct policy_table *gone = table;
    policy_table_destroy(&gone);
}

/* ---- writing uses ---------------------------------------------------------------------------- */

/* Writes one batch; opens the store first if it is not open. */
static enum status write_batch(struct policies *policies, struct platform_store **store,
                               const struct policy_table *table, const struct key_use *uses,
                               size_t count, struct error *error)
{
    enum status status = platform_store_open(store, &policies->store, error);
    if (status == STATUS_OK)
        status = platform_key_touch(*store, uses, count, error);
    if (status == STATUS_OK)
        policy_table_mark_written(table, uses, count);
    return status;
}

/* A use that cannot be written stays noted with its key; the next round tries again. */
static void write_uses(struct policies *policies)
{
    struct key_use uses[USES_BATCH];
    struct error error = {.text = ""};
    enum status status = STATUS_OK;
    struct platform_store *store = NULL;
    struct table_hold hold = {0};
    const struct policy_table *table = refresher_newest(policies->refresher, &hold);
    uint32_t cursor = table == NULL ? POLICY_USES_END : 0;
    while (cursor != POLICY_USES_END && status == STATUS_OK) {
        size_t count = policy_table_collect_uses(table, &cursor, uses, USES_BATCH);
        if (count > 0)
            status = write_batch(policies, &store, table, uses, count, &error);
    }
    if (status != STATUS_OK)
        log_event(policies->store.log, LOG_WARNING, "last use of keys cannot be written",
                  LOG_STRING("reason", error.text), LOG_STRING("status", status_name(status)));
    platform_store_close(&store);
    refresher_release(policies->refresher, &hold);
}

static void run_use_writer(void *argument)
{
    struct policies *policies = argument;
    while (!background_sleep(&policies->use_writer,
                             clock_monotonic_ns() + USES_PERIOD_MS * UINT64_C(1000000)))
        write_uses(policies);
    write_uses(policies);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct policies *policies_create(const struct platform_store_options *store, uint32_t refresh_ms)
{
    struct policies *policies = memory_alloc_zeroed(1, sizeof *policies);
    policies->store = *store;
    policies->editor = policy_editor_create();
    const struct refresher_options refresher = {
        .name = "policies",
        .failing = "policies cannot be refreshed",
        .store = *store,
        .refresh_ms = refresh_ms,
        .revision = platform_revision,
        .read = read_changes,
        .recovered = recovered,
        .destroy = destroy_table,
        .context = policies,
    };
    policies->refresher = refresher_create(&refresher);
    background_start(&policies->use_writer, "key-uses", run_use_writer, policies);
    return policies;
}

void policies_destroy(struct policies **at)
{
    struct policies *policies = memory_take(at);
    if (policies == NULL)
        return;
    background_stop(&policies->use_writer);
    refresher_destroy(&policies->refresher);
    policy_editor_destroy(&policies->editor);
    memory_free(policies);
}

struct refresher *policies_refresher(struct policies *policies)
{
    return policies->refresher;
}

void policies_facts(struct policies *policies, struct policies_facts *facts)
{
    struct table_hold hold = {0};
    const struct policy_table *newest = refresher_newest(policies->refresher, &hold);
    *facts = (struct policies_facts){.age_ms = refresher_age_ms(policies->refresher),
                                     .errors = refresher_errors(policies->refresher)};
    if (newest != NULL)
        policy_table_facts(newest, facts);
    refresher_release(policies->refresher, &hold);
}

/* ---- metrics --------------------------------------------------------------------------------- */

const struct metric policies_metrics[] = {
    METRIC_AGE("croupier_policy_age_seconds", struct policies_facts, age_ms, "+Inf"),
    METRIC_FACT("croupier_policy_customers", struct policies_facts, customers),
    METRIC_FACT("croupier_policy_keys", struct policies_facts, keys),
    METRIC_FACT("croupier_policy_addresses", struct policies_facts, addresses),
    {.name = "croupier_store_failures_total",
     .labels = "{store=\"platform\"}",
     .offset = offsetof(struct policies_facts, errors)},
    {0},
};
