/*
 * Every rule about money is in this file and nowhere else; the order of the checks is the order in
 * decision.h. Amounts are at most 10^12 and balances at most 2^53 - 1, so no sum here can overflow.
 */
#include "wallet/decision.h"

static bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Is it the request that was kept, field by field? The amount and currency of a ROLLBACK come from
 * its reference, not from the client. */
static bool is_the_same_request(const struct ledger_transaction *kept,
                                const struct wallet_request *request)
{
    bool money = request->operation != LEDGER_ROLLBACK;
    return kept->operation == request->operation && same(kept->player_id, request->player_id) &&
           same(kept->reference, request->reference) && same(kept->game_id, request->game_id) &&
           same(kept->round_id, request->round_id) && same(kept->launch_id, request->launch_id) &&
           kept->kind == request->kind && kept->round_ended == request->round_ended &&
           (!money || (kept->amount_minor == request->amount_minor &&
                       same(kept->currency, request->currency)));
}

static struct wallet_decision refuse(enum wallet_verdict verdict)
{
    return (struct wallet_decision){.verdict = verdict};
}

static struct wallet_decision decline(const struct wallet_request *request,
                                      enum ledger_outcome outcome)
{
    return (struct wallet_decision){
        .verdict = WALLET_KEPT, .outcome = outcome, .amount_minor = request->amount_minor};
}

/* Moves money if the balances allow it, else declines. */
static struct wallet_decision move(const struct wallet_state *state,
                                   const struct wallet_request *request, int64_t movement_minor)
{
    int64_t balance = state->account->balance_minor;
    CHECK(balance >= 0 && balance <= LEDGER_BALANCE_MAX);
    CHECK(movement_minor >= -LEDGER_AMOUNT_MAX && movement_minor <= LEDGER_AMOUNT_MAX);
    if (balance + movement_minor < 0)
        return decline(request, LEDGER_INSUFFICIENT_FUNDS);
    if (balance + movement_minor > LEDGER_BALANCE_MAX)
        return decline(request, LEDGER_BALANCE_LIMIT_EXCEEDED);
    if (state->clearing_minor - movement_minor < -LEDGER_CLEARING_MAX)
        return decline(request, LEDGER_BALANCE_LIMIT_EXCEEDED);
    return (struct wallet_decision){
        .verdict = WALLET_KEPT,
        .outcome = LEDGER_APPLIED,
        .amount_minor = movement_minor < 0 ? -movement_minor : movement_minor,
        .movement_minor = movement_minor,
        .rolls_back = request->operation == LEDGER_ROLLBACK,
    };
}

/* Whether the reference concerns another player: by a transaction, or by a rollback of an unused
 * id. */
static bool is_anothers(const struct ledger_id *reference, const struct wallet_request *request)
{
    if (reference->known)
        return !same(reference->transaction.player_id, request->player_id);
    return reference->rolled_back && !same(reference->rolled_back_player, request->player_id);
}

/* A transfer, with which a customer pays money out, is none. */
static bool is_stake(const struct wallet_request *request)
{
    return request->provider_id[0] != '\0' || request->game_id[0] != '\0' ||
           request->round_id[0] != '\0';
}

static struct wallet_decision decide_debit(const struct wallet_state *state,
                                           const struct wallet_request *request)
{
    if (state->blocked && is_stake(request))
        return refuse(WALLET_PLAYER_BLOCKED);
    if (state->session == WALLET_SESSION_EXPIRED)
        return refuse(WALLET_SESSION_IS_OVER);
    switch (state->game) {
    case WALLET_GAME_VISIBLE:
        return move(state, request, -request->amount_minor);
    case WALLET_GAME_INVISIBLE:
        return refuse(WALLET_GAME_NOT_FOUND);
    case WALLET_GAME_UNKNOWN:
        break;
    }
    return refuse(WALLET_GAMES_UNAVAILABLE);
}

static struct wallet_decision decide_credit(const struct wallet_state *state,
                                            const struct wallet_request *request)
{
    const struct ledger_id *debit = state->reference;
    if (debit == NULL)
        return move(state, request, request->amount_minor);
    if (debit->rolled_back)
        return decline(request, LEDGER_TRANSACTION_ROLLED_BACK);
    if (!debit->known || debit->transaction.operation != LEDGER_DEBIT ||
        debit->transaction.outcome != LEDGER_APPLIED)
        return decline(request, LEDGER_REFERENCE_NOT_FOUND);
    return move(state, request, request->amount_minor);
}

static struct wallet_decision decide_rollback(const struct wallet_state *state,
                                              const struct wallet_request *request)
{
    const struct ledger_id *target = state->reference;
    const struct ledger_transaction *kept = &target->transaction;
    if (target->rolled_back)
        return decline(request, LEDGER_ALREADY_ROLLED_BACK);
    if (target->known && kept->operation == LEDGER_ROLLBACK)
        return decline(request, LEDGER_NOT_ROLLBACKABLE);
    if (!target->known || kept->outcome != LEDGER_APPLIED)
        return (struct wallet_decision){
            .verdict = WALLET_KEPT, .outcome = LEDGER_VOIDED, .rolls_back = true};
    if (kept->operation == LEDGER_DEBIT && target->standing_credits > 0)
        return decline(request, LEDGER_ALREADY_SETTLED);
    return move(state, request, -kept->movement_minor);
}

enum wallet_session wallet_session_at(const struct wallet_request *request, bool launched,
                                      int64_t age_ms, int64_t session_ms)
{
    if (request->provider_id[0] == '\0' || request->operation != LEDGER_DEBIT)
        return WALLET_SESSION_OPEN;
    return launched && age_ms <= session_ms ? WALLET_SESSION_OPEN : WALLET_SESSION_EXPIRED;
}

bool wallet_may_see(const struct player_record *player, const struct wallet_request *request)
{
    /* A provider sees the player to whom its own subject leads. */
    return player != NULL &&
           (request->provider_id[0] != '\0' || same(player->customer_id, request->customer_id));
}

struct wallet_decision wallet_decide(const struct wallet_state *state,
                                     const struct wallet_request *request)
{
    CHECK(request->operation != LEDGER_BALANCE);
    CHECK((state->reference != NULL) == (request->reference[0] != '\0'));
    if (state->id->known)
        return refuse(is_the_same_request(&state->id->transaction, request)
                          ? WALLET_REPLAYED
                          : WALLET_TRANSACTION_CONFLICT);
    if (!wallet_may_see(state->account != NULL ? &state->account->player : NULL, request))
        return refuse(WALLET_PLAYER_NOT_FOUND);
    if (request->operation != LEDGER_ROLLBACK &&
        !same(state->account->player.currency, request->currency))
        return refuse(WALLET_CURRENCY_MISMATCH);
    if (state->id->rolled_back)
        return decline(request, LEDGER_TRANSACTION_ROLLED_BACK);
    if (state->reference != NULL && is_anothers(state->reference, request))
        return refuse(WALLET_REFERENCE_CONFLICT);
    if (request->operation == LEDGER_DEBIT)
        return decide_debit(state, request);
    if (request->operation == LEDGER_CREDIT)
        return decide_credit(state, request);
    return decide_rollback(state, request);
}
