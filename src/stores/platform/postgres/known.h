#pragma once

#include "records/ledger_entry.h"

/*
 * Players, and owners of ids (customers and providers), that a connection's batches have met: their
 * numbers and the facts about them that never change. So a batch asks the server for accounts and
 * ids by number, and does not ask again for these facts. Facts that can change (balances above all)
 * are not here.
 *
 * It holds for one connection: another may lead to a database that knows less (a standby that took
 * over). It is bounded: when it is full, it is emptied, and later batches fill it again.
 */

#define KNOWN_MAX 65536 /* players, and as many owners */

struct known_player {
    struct player_record record; /* first: its id is the key */
    int64_t number, customer_number;
    bool has_account; /* there is a row of ledger_account, which stays */
};

struct known_owner {
    char id[LEDGER_OWNER_SIZE];
    int64_t number; /* as ledger_transaction.owner_number has it: of a provider, it is negative */
};

struct known;

struct known *known_create(void);
void known_destroy(struct known **known);
void known_forget(struct known *known);

/* Whether `more` players and owners can be added; else known_forget makes room. */
bool known_has_room(const struct known *known, size_t more);

struct known_player *known_player(struct known *known, const char *id); /* NULL: not met */
const struct known_owner *known_owner(struct known *known, const char *id);

/* Does nothing if it was added before. There must be room. */
void known_add_player(struct known *known, const struct known_player *player);
void known_add_owner(struct known *known, const struct known_owner *owner);
