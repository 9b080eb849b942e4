/*
 * The ledger's place in the PostgreSQL engine, until platform_postgres_ledger.c takes it: every verb
 * says that it is not there. Nothing is pretended to be kept.
 */
#include "stores/platform_postgres.h"

static enum status not_built(struct error *error)
{
    return error_set(error, STATUS_UNAVAILABLE,
                     "the ledger is not built for PostgreSQL yet; use sqlite:FILE");
}

enum status postgres_ledger_begin(struct platform_store *store, struct ledger_batch *batch,
                                  struct error *error)
{
    (void)store;
    (void)batch;
    return not_built(error);
}

enum status postgres_ledger_commit(struct platform_store *store, const struct ledger_batch *batch,
                                   bool *unknown, struct error *error)
{
    (void)store;
    (void)batch;
    (void)unknown;
    return not_built(error);
}

enum status postgres_ledger_recover(struct platform_store *store, struct error *error)
{
    (void)store;
    return not_built(error);
}

enum status postgres_ledger_balance(struct platform_store *store, const char *player_id,
                                    struct ledger_account *account, struct error *error)
{
    (void)store;
    (void)player_id;
    (void)account;
    return not_built(error);
}

enum status postgres_ledger_id(struct platform_store *store, struct ledger_fact *fact,
                               struct error *error)
{
    (void)store;
    (void)fact;
    return not_built(error);
}

enum status postgres_ledger_entries(struct platform_store *store, const char *player_id,
                                    ledger_entry_visitor *visit, void *context, struct error *error)
{
    (void)store;
    (void)player_id;
    (void)visit;
    (void)context;
    return not_built(error);
}

enum status postgres_ledger_transactions(struct platform_store *store,
                                         ledger_transaction_visitor *visit, void *context,
                                         struct error *error)
{
    (void)store;
    (void)visit;
    (void)context;
    return not_built(error);
}

enum status postgres_ledger_clearings(struct platform_store *store, ledger_clearing_visitor *visit,
                                      void *context, struct error *error)
{
    (void)store;
    (void)visit;
    (void)context;
    return not_built(error);
}

enum status postgres_ledger_strays(struct platform_store *store, uint64_t *count,
                                   struct error *error)
{
    (void)store;
    (void)count;
    return not_built(error);
}

enum status postgres_ledger_count(struct platform_store *store, uint64_t *count,
                                  struct error *error)
{
    (void)store;
    (void)count;
    return not_built(error);
}
