#pragma once

#include <stddef.h>

/*
 * The longer statements of the platform store: in sql/statements/, those that both engines
 * understand, and the parts and statements of each. tools/embed_statements.py makes these structs
 * of them.
 */

/* A statement that names the first row that does not fit, and finds none in a sound ledger. */
struct ledger_check_text {
    const char *what; /* is wrong with the row that `sql` names; NULL: its second column says it */
    const char *sql;
};

/* A list of players: how many there are, those that come first, and the rest. */
struct player_list_texts {
    const char *count, *first, *rest;
};

struct sql_texts {
    /* Rows of a transaction. */
    const char *transactions;
    const char *entered; /* $1, $2: a time; $3: a customer or "" */
    /* And unless $4 is 1, of the provider $5; unless $6 is 1, of the game $7; of the figure $8 or
     * all (""); where $9 is 1 and $3 is "", of no sandbox customer. */
    const char *entered_of_report;
    const char *tail; /* entries with numbers from $1 to $2, LEDGER_PAGE and one more, by number */
    /* Of the next thousands of these: those of the customer $3, the first, which may be at $1, and
     * the last; $4 at most. */
    const char *tail_of_customer;
    /* Entries of a player ($1), with a sequence from $2 until before $3; and of a provider ($4). */
    const char *entries_of_player, *entries_of_player_and_provider;
    /* Entries of a customer ($1) or all (""), and of a provider ($2), in order of player. */
    const char *entries, *entries_of_provider;
    /* NULL where entries_of_player needs no chain. Else: the entries of a player where the chain
     * cannot be followed, with the parameters of that; and the account's last sequence ($1). */
    const char *cut_off, *last_sequence;

    /* A transaction, and the entry before it: sequence, balance and hash, NULL if there is none.
     * Then whether it is its player's first in the answer and the entry before it is not in the
     * answer. */
    const char *chained, *chained_since; /* $1: a time */
    const char *declines;                /* likewise: position, hash, the hash before */
    const char *accounts, *accounts_since;
    /* The accounts of players ($1: ids, with commas between them) in that order, and when the last
     * entry of each was made. */
    const char *listed;
    /* $1: a customer or "". Of a page: $2: the number with which the one before ended, $3: how
     * many. Of those found: $2: the words, $3: an offset, $4: how many. */
    struct player_list_texts players, players_of_customer, players_found;
    const char *newest;
    const char *sums, *sums_beside_kept, *summed,
        *keep_sum; /* and what entries add to the kept ones */
    const char *verifications, *put_verification, *delete_verification;
    const char *rounds, *rounds_of_player;
    const char *clearings;
    const char *miscounted; /* a player, and its highest sequence */

    /* The first object of the schema that differs from what the migrations make. */
    const char *difference;
    const char *make_schema; /* the table of the migrations that were applied */
    /* Other tables than the ledger's. */
    const char *add_usage, *usage, *usage_of_customer, *add_currency, *put_block, *launched;
    const char *add_conduct, *trim_conduct, *conduct; /* facts of a caller ($1) */
    const char *live_keys;                            /* the key $1 and those that it made, at $2 */
    const char *revoke_key, *touch_key, *set_game;

    /* SQLite alone has these: rows with the hashes that verify them, by their numbers; and a player
     * and an account by the player's number. */
    const char *verified_row, *verified_rows, *verified_rows_of_id;
    const char *player_of_number, *account_of_number;
    /* And these, of a batch: its beginning and its writes. */
    const char *clearing_of_customer, *last, *last_day;
    const char *insert_row, *insert_some_rows, *insert_many_rows; /* 1, 8, 32 */
    const char *insert_decline, *insert_day, *insert_account, *update_account, *put_declined;
    const char *insert_clearing, *update_clearing, *count_on;
    /* And these, of an audit of ids and of the shape of the schema. */
    const char *ids, *ids_of_number, *make_audited, *add_audited, *audited, *shape;
    /* PostgreSQL alone has these; parameters are arrays, but for those of `fact`: an owner and an
     * id. */
    const char *facts, *fact;
    const char *players_of_ids, *accounts_of_ids;
    /* And these, of a batch: its begin, its commit, and the fate of a lost commit. */
    const char *use_indexes, *owners_of_ids, *take_numbers;
    const char *lock_players, *lock_accounts, *lock_clearings;
    const char *blocks_of_players, *declines_of_players, *clearings_of_customers;
    const char *insert_kept, *insert_entries, *insert_rollbacks, *insert_declines, *write_declined;
    const char *update_accounts, *insert_accounts, *insert_clearings, *lock_sums, *add_to_clearings;
    const char *is_running, *is_kept;
    /* And these, of a tail and of an audit. */
    const char *last_number, *open_batches;
    const char *indexes, *brin_indexes, *tables, *may_use_amcheck;
    const char *check_index, *check_table, *compare_index, *compare_brin;
    const char *schema;
    /* And these, of a session and of migrations. */
    const char *greeting, *no_timeout, *waiting_commits, *has_schema, *lock_schema;
    const char *refuses_changes; /* why; no row: it takes them */

    const struct ledger_check_text *checks;
    size_t check_count;
};

extern const struct sql_texts sqlite_texts, postgres_texts;
