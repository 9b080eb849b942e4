/*
 * The wallet's decision: every row of the error table by name, and every history of a few requests
 * by brute force against a model that keeps nothing but what happened and looks it up from the
 * start each time.
 */
#include "tests.h"
#include "wallet/decision.h"

/* ---- a ledger in memory, as the batches keep it ---------------------------------------------- */

#define KEPT_MAX 16
#define LAUNCHES_MAX 2
#define SESSION_MS 1000

struct book {
    struct ledger_account accounts[2];
    struct ledger_transaction kept[KEPT_MAX];
    size_t count;
    /* What a provider has of them, and when it is. */
    struct launched {
        const char *id, *player_id;
        int64_t at_ms;
    } launches[LAUNCHES_MAX];
    size_t launch_count;
    int64_t now_ms;
};

static const char *const players[] = {"ply_A", "ply_B"};

static void copy(char *to, const char *from)
{
    memcpy(to, from, strlen(from) + 1);
}

static struct book new_book(int64_t balance_minor)
{
    struct book book = {0};
    for (int i = 0; i < 2; i++) {
        copy(book.accounts[i].player.id, players[i]);
        copy(book.accounts[i].player.customer_id, "cus_1");
        copy(book.accounts[i].player.currency, "EUR");
        book.accounts[i].balance_minor = balance_minor;
    }
    return book;
}

static struct ledger_account *account_of(struct book *book, const char *player_id)
{
    for (int i = 0; i < 2; i++)
        if (strcmp(book->accounts[i].player.id, player_id) == 0)
            return &book->accounts[i];
    return NULL;
}

static bool reversed(const struct book *book, const char *owner, const char *id, const char **by)
{
    for (size_t i = 0; i < book->count; i++)
        if (book->kept[i].operation == LEDGER_ROLLBACK && ledger_is_entry(&book->kept[i]) &&
            strcmp(ledger_owner(&book->kept[i]), owner) == 0 &&
            strcmp(book->kept[i].reference, id) == 0) {
            *by = book->kept[i].player_id;
            return true;
        }
    return false;
}

/* An id is its owner's: the customer's, or the provider's. */
static struct ledger_id id_of(const struct book *book, const char *owner, const char *id)
{
    struct ledger_id facts = {0};
    const char *by = "";
    facts.rolled_back = reversed(book, owner, id, &by);
    copy(facts.rolled_back_player, by);
    for (size_t i = 0; i < book->count; i++) {
        const struct ledger_transaction *kept = &book->kept[i];
        if (strcmp(ledger_owner(kept), owner) != 0)
            continue;
        if (strcmp(kept->transaction_id, id) == 0) {
            facts.known = true;
            facts.transaction = *kept;
        }
        if (kept->operation == LEDGER_CREDIT && kept->outcome == LEDGER_APPLIED &&
            strcmp(kept->reference, id) == 0 && !reversed(book, owner, kept->transaction_id, &by))
            facts.standing_credits++;
    }
    return facts;
}

static const char *owner_of(const struct wallet_request *request)
{
    return request->provider_id[0] != '\0' ? request->provider_id : request->customer_id;
}

/* Of the launch that the request names, if it is one of its player. */
static enum wallet_session session_of(const struct book *book, const struct wallet_request *request)
{
    const struct launched *found = NULL;
    for (size_t i = 0; i < book->launch_count; i++)
        if (strcmp(book->launches[i].id, request->launch_id) == 0 &&
            strcmp(book->launches[i].player_id, request->player_id) == 0)
            found = &book->launches[i];
    return wallet_session_at(request, found != NULL,
                             found != NULL ? book->now_ms - found->at_ms : 0, SESSION_MS);
}

static struct wallet_decision decide(struct book *book, const struct wallet_request *request)
{
    struct ledger_id id = id_of(book, owner_of(request), request->transaction_id);
    struct ledger_id reference = id_of(book, owner_of(request), request->reference);
    const struct ledger_account *account = account_of(book, request->player_id);
    struct wallet_state state = {
        .account = account,
        .blocked = account != NULL && player_is_blocked(&account->player, 1),
        .id = &id,
        .reference = request->reference[0] == '\0' ? NULL : &reference,
        .session = session_of(book, request),
    };
    struct wallet_decision decision = wallet_decide(&state, request);
    if (decision.verdict != WALLET_KEPT)
        return decision;
    assert_true(book->count < KEPT_MAX);
    struct ledger_transaction *kept = &book->kept[book->count++];
    *kept = (struct ledger_transaction){
        .operation = (enum ledger_operation)(request->operation - LEDGER_DEBIT),
        .outcome = decision.outcome,
        .amount_minor = decision.amount_minor,
        .movement_minor = decision.movement_minor,
    };
    copy(kept->customer_id, "cus_1");
    copy(kept->provider_id, request->provider_id);
    copy(kept->launch_id, request->launch_id);
    copy(kept->player_id, request->player_id);
    copy(kept->transaction_id, request->transaction_id);
    copy(kept->reference, request->reference);
    copy(kept->currency, "EUR");
    copy(kept->game_id, request->game_id);
    copy(kept->round_id, request->round_id);
    kept->kind = request->kind;
    kept->round_ended = request->round_ended;
    account_of(book, request->player_id)->balance_minor += decision.movement_minor;
    return decision;
}

static struct wallet_request ask(enum ledger_operation operation, const char *player,
                                 const char *id, int64_t amount, const char *reference)
{
    struct wallet_request request = {.operation = operation, .amount_minor = amount};
    copy(request.customer_id, "cus_1");
    copy(request.player_id, player);
    copy(request.transaction_id, id);
    copy(request.reference, reference);
    if (operation != LEDGER_ROLLBACK)
        copy(request.currency, "EUR");
    return request;
}

static enum wallet_verdict verdict_of(struct book *book, enum ledger_operation operation,
                                      const char *player, const char *id, int64_t amount,
                                      const char *reference)
{
    struct wallet_request request = ask(operation, player, id, amount, reference);
    return decide(book, &request).verdict;
}

static enum ledger_outcome outcome_of(struct book *book, enum ledger_operation operation,
                                      const char *id, int64_t amount, const char *reference)
{
    struct wallet_request request = ask(operation, "ply_A", id, amount, reference);
    struct wallet_decision decision = decide(book, &request);
    assert_int_equal(decision.verdict, WALLET_KEPT);
    return decision.outcome;
}

#define DEBIT(id, amount) outcome_of(&book, LEDGER_DEBIT, id, amount, "")
#define CREDIT(id, amount, reference) outcome_of(&book, LEDGER_CREDIT, id, amount, reference)
#define ROLLBACK(id, reference) outcome_of(&book, LEDGER_ROLLBACK, id, 0, reference)
#define BALANCE() (book.accounts[0].balance_minor)

/* ---- the table, row by row ------------------------------------------------------------------- */

TEST(a_debit_takes_and_a_credit_gives)
{
    struct book book = new_book(100);
    assert_int_equal(DEBIT("a", 100), LEDGER_APPLIED);
    assert_int_equal(BALANCE(), 0);
    assert_int_equal(CREDIT("b", 30, ""), LEDGER_APPLIED);
    assert_int_equal(CREDIT("c", 0, "a"), LEDGER_APPLIED);
    assert_int_equal(BALANCE(), 30);
}

TEST(a_debit_over_the_balance_is_declined_and_kept)
{
    struct book book = new_book(99);
    assert_int_equal(DEBIT("a", 100), LEDGER_INSUFFICIENT_FUNDS);
    assert_int_equal(CREDIT("b", 100, ""), LEDGER_APPLIED);
    assert_int_equal(verdict_of(&book, LEDGER_DEBIT, "ply_A", "a", 100, ""), WALLET_REPLAYED);
    assert_int_equal(BALANCE(), 199);
}

TEST(no_balance_exceeds_its_limit)
{
    struct book book = new_book(LEDGER_BALANCE_MAX - 10);
    assert_int_equal(CREDIT("a", 11, ""), LEDGER_BALANCE_LIMIT_EXCEEDED);
    assert_int_equal(CREDIT("b", 10, ""), LEDGER_APPLIED);
    assert_int_equal(CREDIT("c", 1, ""), LEDGER_BALANCE_LIMIT_EXCEEDED);
    assert_int_equal(CREDIT("d", 0, ""), LEDGER_APPLIED);
    assert_int_equal(DEBIT("e", 5), LEDGER_APPLIED);
    assert_int_equal(CREDIT("f", 3, ""), LEDGER_APPLIED);
    assert_int_equal(ROLLBACK("g", "e"), LEDGER_BALANCE_LIMIT_EXCEEDED);
    assert_int_equal(BALANCE(), LEDGER_BALANCE_MAX - 2);
}

TEST(the_clearing_account_has_a_limit_too)
{
    struct book book = new_book(0);
    struct ledger_id id = {0};
    struct wallet_request request = ask(LEDGER_CREDIT, "ply_A", "a", 10, "");
    struct wallet_state facts = {
        .account = &book.accounts[0], .id = &id, .clearing_minor = -LEDGER_CLEARING_MAX + 9};
    assert_int_equal(wallet_decide(&facts, &request).outcome, LEDGER_BALANCE_LIMIT_EXCEEDED);
    facts.clearing_minor++;
    assert_int_equal(wallet_decide(&facts, &request).outcome, LEDGER_APPLIED);
}

TEST(the_same_request_is_replayed_and_another_is_a_conflict)
{
    struct book book = new_book(100);
    struct wallet_request first = ask(LEDGER_DEBIT, "ply_A", "a", 10, "");
    copy(first.game_id, "blackjack");
    copy(first.round_id, "7");
    assert_int_equal(decide(&book, &first).verdict, WALLET_KEPT);
    assert_int_equal(decide(&book, &first).verdict, WALLET_REPLAYED);
    struct wallet_request others[8];
    for (size_t i = 0; i < 8; i++)
        others[i] = first;
    others[0].amount_minor = 11;
    copy(others[1].game_id, "roulette");
    copy(others[2].round_id, "");
    copy(others[3].currency, "USD");
    copy(others[4].player_id, "ply_B");
    copy(others[5].player_id, "ply_nobody");
    others[6].operation = LEDGER_CREDIT;
    others[7] = ask(LEDGER_ROLLBACK, "ply_A", "a", 0, "z");
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(decide(&book, &others[i]).verdict, WALLET_TRANSACTION_CONFLICT);
    assert_int_equal(BALANCE(), 90);
    assert_int_equal(decide(&book, &first).verdict, WALLET_REPLAYED);
    assert_int_equal(book.count, 1);
}

TEST(another_kind_or_end_of_the_round_is_another_request)
{
    struct book book = new_book(100);
    struct wallet_request first = ask(LEDGER_CREDIT, "ply_A", "a", 10, "");
    copy(first.provider_id, "acme");
    first.kind = LEDGER_PROMO;
    assert_int_equal(decide(&book, &first).verdict, WALLET_KEPT);
    struct wallet_request other = first;
    other.kind = LEDGER_WIN;
    assert_int_equal(decide(&book, &other).verdict, WALLET_TRANSACTION_CONFLICT);
    other = first;
    other.round_ended = true;
    assert_int_equal(decide(&book, &other).verdict, WALLET_TRANSACTION_CONFLICT);
    assert_int_equal(decide(&book, &first).verdict, WALLET_REPLAYED);
    struct wallet_request undo = ask(LEDGER_ROLLBACK, "ply_A", "r", 0, "a");
    copy(undo.provider_id, "acme");
    undo.round_ended = true;
    assert_int_equal(decide(&book, &undo).verdict, WALLET_KEPT);
    undo.round_ended = false;
    assert_int_equal(decide(&book, &undo).verdict, WALLET_TRANSACTION_CONFLICT);
    assert_int_equal(BALANCE(), 100);
}

TEST(a_free_round_moves_nothing_and_is_undone_or_settled_like_any_other)
{
    struct book book = new_book(100);
    struct wallet_request free_round = ask(LEDGER_DEBIT, "ply_A", "free", 0, "");
    book.launches[book.launch_count++] = (struct launched){"lau_1", "ply_A", 0};
    copy(free_round.launch_id, "lau_1");
    copy(free_round.provider_id, "acme");
    struct wallet_decision decision = decide(&book, &free_round);
    assert_int_equal(decision.outcome, LEDGER_APPLIED);
    assert_int_equal(decision.movement_minor, 0);
    struct wallet_request won = ask(LEDGER_CREDIT, "ply_A", "won", 5, "free");
    copy(won.provider_id, "acme");
    assert_int_equal(decide(&book, &won).outcome, LEDGER_APPLIED);
    struct wallet_request undo = ask(LEDGER_ROLLBACK, "ply_A", "r", 0, "free");
    copy(undo.provider_id, "acme");
    assert_int_equal(decide(&book, &undo).outcome, LEDGER_ALREADY_SETTLED);
    assert_int_equal(BALANCE(), 105);
}

TEST(a_rollback_is_the_same_whatever_it_reversed)
{
    struct book book = new_book(100);
    (void)DEBIT("a", 10);
    assert_int_equal(ROLLBACK("r", "a"), LEDGER_APPLIED);
    assert_int_equal(book.kept[1].amount_minor, 10);
    assert_int_equal(verdict_of(&book, LEDGER_ROLLBACK, "ply_A", "r", 0, "a"), WALLET_REPLAYED);
    assert_int_equal(verdict_of(&book, LEDGER_ROLLBACK, "ply_A", "r", 0, "b"),
                     WALLET_TRANSACTION_CONFLICT);
    assert_int_equal(BALANCE(), 100);
}

TEST(players_of_others_are_not_found)
{
    struct book book = new_book(100);
    assert_int_equal(verdict_of(&book, LEDGER_DEBIT, "ply_C", "a", 1, ""), WALLET_PLAYER_NOT_FOUND);
    copy(book.accounts[1].player.customer_id, "cus_2");
    assert_int_equal(verdict_of(&book, LEDGER_DEBIT, "ply_B", "a", 1, ""), WALLET_PLAYER_NOT_FOUND);
    assert_int_equal(verdict_of(&book, LEDGER_DEBIT, "ply_A", "a", 1, ""), WALLET_KEPT);
}

TEST(a_currency_that_is_not_the_players_is_a_mismatch_and_not_kept)
{
    struct book book = new_book(100);
    struct wallet_request request = ask(LEDGER_DEBIT, "ply_A", "a", 1, "");
    copy(request.currency, "USD");
    assert_int_equal(decide(&book, &request).verdict, WALLET_CURRENCY_MISMATCH);
    copy(request.currency, "EUR");
    assert_int_equal(decide(&book, &request).verdict, WALLET_KEPT);
}

TEST(a_credit_refers_to_an_applied_debit_or_to_nothing)
{
    struct book book = new_book(100);
    assert_int_equal(CREDIT("c1", 5, "none"), LEDGER_REFERENCE_NOT_FOUND);
    assert_int_equal(CREDIT("c2", 5, "c2"), LEDGER_REFERENCE_NOT_FOUND);
    (void)DEBIT("declined", 101);
    assert_int_equal(CREDIT("c3", 5, "declined"), LEDGER_REFERENCE_NOT_FOUND);
    (void)CREDIT("credit", 1, "");
    assert_int_equal(CREDIT("c4", 5, "credit"), LEDGER_REFERENCE_NOT_FOUND);
    (void)DEBIT("debit", 10);
    (void)ROLLBACK("rollback", "debit");
    assert_int_equal(CREDIT("c5", 5, "rollback"), LEDGER_REFERENCE_NOT_FOUND);
    assert_int_equal(CREDIT("c6", 5, "debit"), LEDGER_TRANSACTION_ROLLED_BACK);
    assert_int_equal(BALANCE(), 101);
}

TEST(an_id_that_was_rolled_back_first_is_never_applied)
{
    struct book book = new_book(100);
    assert_int_equal(ROLLBACK("r", "late"), LEDGER_VOIDED);
    assert_int_equal(DEBIT("late", 10), LEDGER_TRANSACTION_ROLLED_BACK);
    assert_int_equal(verdict_of(&book, LEDGER_DEBIT, "ply_A", "late", 10, ""), WALLET_REPLAYED);
    assert_int_equal(verdict_of(&book, LEDGER_DEBIT, "ply_A", "late", 11, ""),
                     WALLET_TRANSACTION_CONFLICT);
    assert_int_equal(ROLLBACK("r2", "late"), LEDGER_ALREADY_ROLLED_BACK);
    assert_int_equal(BALANCE(), 100);
}

TEST(a_declined_id_is_voided_and_stays_declined)
{
    struct book book = new_book(100);
    (void)DEBIT("a", 101);
    assert_int_equal(ROLLBACK("r", "a"), LEDGER_VOIDED);
    assert_int_equal(verdict_of(&book, LEDGER_DEBIT, "ply_A", "a", 101, ""), WALLET_REPLAYED);
    assert_int_equal(book.kept[0].outcome, LEDGER_INSUFFICIENT_FUNDS);
    assert_int_equal(ROLLBACK("r2", "a"), LEDGER_ALREADY_ROLLED_BACK);
}

TEST(a_debit_with_a_standing_credit_is_settled)
{
    struct book book = new_book(100);
    (void)DEBIT("a", 10);
    (void)CREDIT("w1", 3, "a");
    (void)CREDIT("w2", 0, "a");
    assert_int_equal(ROLLBACK("r1", "a"), LEDGER_ALREADY_SETTLED);
    assert_int_equal(ROLLBACK("r2", "w1"), LEDGER_APPLIED);
    assert_int_equal(ROLLBACK("r3", "a"), LEDGER_ALREADY_SETTLED);
    assert_int_equal(ROLLBACK("r4", "w2"), LEDGER_APPLIED);
    assert_int_equal(ROLLBACK("r5", "a"), LEDGER_APPLIED);
    assert_int_equal(BALANCE(), 100);
}

TEST(a_credit_whose_money_is_gone_cannot_be_reversed)
{
    struct book book = new_book(0);
    (void)CREDIT("c", 10, "");
    (void)DEBIT("d", 1);
    assert_int_equal(ROLLBACK("r", "c"), LEDGER_INSUFFICIENT_FUNDS);
    assert_int_equal(BALANCE(), 9);
    (void)CREDIT("e", 1, "");
    assert_int_equal(ROLLBACK("r2", "c"), LEDGER_APPLIED);
    assert_int_equal(BALANCE(), 0);
}

TEST(a_rollback_is_not_rollbackable)
{
    struct book book = new_book(100);
    (void)DEBIT("a", 10);
    (void)ROLLBACK("r", "a");
    (void)ROLLBACK("v", "unknown");
    assert_int_equal(ROLLBACK("x", "r"), LEDGER_NOT_ROLLBACKABLE);
    assert_int_equal(ROLLBACK("y", "v"), LEDGER_NOT_ROLLBACKABLE);
}

TEST(what_belongs_to_another_player_is_a_conflict_and_not_kept)
{
    struct book book = new_book(100);
    (void)DEBIT("a", 10);
    (void)ROLLBACK("r", "tomb");
    size_t count = book.count;
    assert_int_equal(verdict_of(&book, LEDGER_CREDIT, "ply_B", "b", 1, "a"),
                     WALLET_REFERENCE_CONFLICT);
    assert_int_equal(verdict_of(&book, LEDGER_ROLLBACK, "ply_B", "c", 0, "a"),
                     WALLET_REFERENCE_CONFLICT);
    assert_int_equal(verdict_of(&book, LEDGER_ROLLBACK, "ply_B", "d", 0, "tomb"),
                     WALLET_REFERENCE_CONFLICT);
    assert_int_equal(book.count, count);
    /* The id is the customer's, so a tombstone holds whichever player comes with it. */
    assert_int_equal(verdict_of(&book, LEDGER_DEBIT, "ply_B", "tomb", 1, ""), WALLET_KEPT);
    assert_int_equal(book.kept[count].outcome, LEDGER_TRANSACTION_ROLLED_BACK);
}

static enum wallet_verdict bet(struct book *book, const char *id, int64_t amount)
{
    struct wallet_request request = ask(LEDGER_DEBIT, "ply_A", id, amount, "");
    copy(request.round_id, "round");
    return decide(book, &request).verdict;
}

TEST(a_blocked_player_bets_no_more_and_all_else_goes_on)
{
    struct book book = new_book(100);
    assert_int_equal(bet(&book, "a", 10), WALLET_KEPT);
    (void)DEBIT("b", 10);
    (void)ROLLBACK("r", "late");
    book.accounts[0].player.blocked_until_ms = PLAYER_BLOCKED_FOR_GOOD;
    size_t count = book.count;
    assert_int_equal(bet(&book, "c", 1), WALLET_PLAYER_BLOCKED);
    assert_int_equal(bet(&book, "c", 101), WALLET_PLAYER_BLOCKED); /* whatever it has */
    struct wallet_request request = ask(LEDGER_DEBIT, "ply_A", "c", 1, "");
    copy(request.game_id, "game");
    assert_int_equal(decide(&book, &request).verdict, WALLET_PLAYER_BLOCKED);
    assert_int_equal(book.count, count); /* the id stays free */
    assert_int_equal(bet(&book, "a", 10), WALLET_REPLAYED);
    assert_int_equal(bet(&book, "a", 11), WALLET_TRANSACTION_CONFLICT);
    assert_int_equal(verdict_of(&book, LEDGER_DEBIT, "ply_A", "late", 1, ""), WALLET_KEPT);
    assert_int_equal(book.kept[count].outcome, LEDGER_TRANSACTION_ROLLED_BACK);
    assert_int_equal(verdict_of(&book, LEDGER_CREDIT, "ply_A", "w", 5, "a"), WALLET_KEPT);
    assert_int_equal(verdict_of(&book, LEDGER_ROLLBACK, "ply_A", "x", 0, "b"), WALLET_KEPT);
    assert_int_equal(DEBIT("payout", 90), LEDGER_APPLIED);
    assert_int_equal(book.accounts[0].balance_minor, 5);
    assert_int_equal(verdict_of(&book, LEDGER_DEBIT, "ply_B", "d", 1, ""), WALLET_KEPT);
    book.accounts[0].player.blocked_until_ms = 1; /* over */
    assert_int_equal(bet(&book, "c", 1), WALLET_KEPT);
}

TEST(a_session_is_good_for_its_time_to_the_millisecond)
{
    struct wallet_request request = ask(LEDGER_DEBIT, "ply_A", "a", 1, "");
    assert_int_equal(wallet_session_at(&request, false, 0, 10), WALLET_SESSION_OPEN);
    copy(request.provider_id, "acme");
    assert_int_equal(wallet_session_at(&request, false, 0, 10), WALLET_SESSION_EXPIRED);
    assert_int_equal(wallet_session_at(&request, true, 0, 10), WALLET_SESSION_OPEN);
    assert_int_equal(wallet_session_at(&request, true, 10, 10), WALLET_SESSION_OPEN);
    assert_int_equal(wallet_session_at(&request, true, 11, 10), WALLET_SESSION_EXPIRED);
    assert_int_equal(wallet_session_at(&request, true, -5, 10), WALLET_SESSION_OPEN); /* clocks */
    request.operation = LEDGER_CREDIT;
    assert_int_equal(wallet_session_at(&request, false, 0, 10), WALLET_SESSION_OPEN);
    request.operation = LEDGER_ROLLBACK;
    assert_int_equal(wallet_session_at(&request, false, 0, 10), WALLET_SESSION_OPEN);
}

static struct wallet_decision decide_naming_a_game(const struct book *book, enum wallet_game game,
                                                   const struct wallet_request *request)
{
    struct ledger_id id = id_of(book, owner_of(request), request->transaction_id);
    struct ledger_id reference = id_of(book, owner_of(request), request->reference);
    const struct wallet_state state = {
        .account = &book->accounts[0],
        .id = &id,
        .reference = request->reference[0] == '\0' ? NULL : &reference,
        .game = game,
    };
    return wallet_decide(&state, request);
}

TEST(a_debit_needs_the_game_that_it_names_and_nothing_else_does)
{
    struct book book = new_book(100);
    const struct wallet_request kept = ask(LEDGER_DEBIT, "ply_A", "a", 10, "");
    const struct wallet_request voided = ask(LEDGER_DEBIT, "ply_A", "late", 10, "");
    const struct wallet_request other = ask(LEDGER_DEBIT, "ply_A", "a", 11, "");
    const struct wallet_request anew = ask(LEDGER_DEBIT, "ply_A", "b", 101, "");
    const struct wallet_request credit = ask(LEDGER_CREDIT, "ply_A", "c", 10, "a");
    const struct wallet_request rollback = ask(LEDGER_ROLLBACK, "ply_A", "d", 0, "a");
    struct wallet_request mismatch = ask(LEDGER_DEBIT, "ply_A", "e", 1, "");
    copy(mismatch.currency, "USD");
    (void)DEBIT("a", 10);
    (void)ROLLBACK("r", "late");
    static const enum wallet_game games[] = {WALLET_GAME_INVISIBLE, WALLET_GAME_UNKNOWN};
    static const enum wallet_verdict refusals[] = {WALLET_GAME_NOT_FOUND, WALLET_GAMES_UNAVAILABLE};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(decide_naming_a_game(&book, games[i], &anew).verdict, refusals[i]);
        assert_int_equal(decide_naming_a_game(&book, games[i], &kept).verdict, WALLET_REPLAYED);
        assert_int_equal(decide_naming_a_game(&book, games[i], &other).verdict,
                         WALLET_TRANSACTION_CONFLICT);
        assert_int_equal(decide_naming_a_game(&book, games[i], &mismatch).verdict,
                         WALLET_CURRENCY_MISMATCH);
        assert_int_equal(decide_naming_a_game(&book, games[i], &voided).outcome,
                         LEDGER_TRANSACTION_ROLLED_BACK);
        assert_int_equal(decide_naming_a_game(&book, games[i], &credit).outcome, LEDGER_APPLIED);
        assert_int_equal(decide_naming_a_game(&book, games[i], &rollback).outcome, LEDGER_APPLIED);
    }
    assert_int_equal(decide_naming_a_game(&book, WALLET_GAME_VISIBLE, &anew).outcome,
                     LEDGER_INSUFFICIENT_FUNDS);
}

/* ---- every short history, against a model ---------------------------------------------------- */

/*
 * The model knows what was asked and what came of it, as codes, in a list; each rule is a question
 * to that list. Ids are 'a', 'b', 'c'; players 0 and 1; every amount is 4 and every player begins
 * with 5, so that one debit fits and a second does not.
 *
 * Who asks is the customer (launch 0) or a provider, each with ids of its own. A provider names a
 * launch: 'l' and 'm' are of player 0, 'n' was never launched. 'L' is no request but a launch,
 * and 'T' time that goes by: a session is good for one of them.
 */
struct happened {
    char operation; /* D C R L T */
    int player;
    char id, reference; /* reference 0: none */
    char launch;        /* that a provider names; 0: the customer asks */
    char code;          /* A applied, V voided, else a decline; capital or not, all were kept */
};

struct model {
    struct happened list[KEPT_MAX];
    size_t count;
};

/* As whoever asked `one` means it: the customer, or the provider. */
static const struct happened *find(const struct model *model, const struct happened *one, char id)
{
    for (size_t i = 0; i < model->count; i++)
        if (model->list[i].id == id && !model->list[i].launch == !one->launch)
            return &model->list[i];
    return NULL;
}

static const struct happened *undone(const struct model *model, const struct happened *one, char id)
{
    for (size_t i = 0; i < model->count; i++)
        if (model->list[i].operation == 'R' && model->list[i].reference == id &&
            !model->list[i].launch == !one->launch &&
            (model->list[i].code == 'A' || model->list[i].code == 'V'))
            return &model->list[i];
    return NULL;
}

static int balance_of(const struct model *model, int player)
{
    int balance = 5;
    for (size_t i = 0; i < model->count; i++) {
        const struct happened *one = &model->list[i];
        if (one->player == player && one->code == 'A' && one->operation != 'R' &&
            undone(model, one, one->id) == NULL)
            balance += one->operation == 'D' ? -4 : 4;
    }
    return balance;
}

static bool settled(const struct model *model, const struct happened *debit)
{
    for (size_t i = 0; i < model->count; i++) {
        const struct happened *one = &model->list[i];
        if (one->operation == 'C' && one->reference == debit->id && one->code == 'A' &&
            !one->launch == !debit->launch && undone(model, one, one->id) == NULL)
            return true;
    }
    return false;
}

/* Whether what the provider names entitles it: launched for this player, and since then time has
 * gone by once at most. */
static bool entitled(const struct model *model, const struct happened *asked)
{
    bool launched = false;
    int gone = 0;
    for (size_t i = 0; i < model->count; i++) {
        if (model->list[i].operation == 'L' && model->list[i].launch == asked->launch)
            launched = model->list[i].player == asked->player;
        gone += launched && model->list[i].operation == 'T';
    }
    return launched && gone <= 1;
}

/* A V; r reference_not_found, t transaction_rolled_back, b already_rolled_back, s settled, n not
 * rollbackable, f funds; not kept: = replay, x conflict, e session is over. */
static char expected(const struct model *model, const struct happened *asked)
{
    const struct happened *before = find(model, asked, asked->id);
    if (before != NULL) {
        bool same = before->operation == asked->operation && before->player == asked->player &&
                    before->reference == asked->reference && before->launch == asked->launch;
        return same ? '=' : 'x';
    }
    if (undone(model, asked, asked->id) != NULL)
        return 't';
    if (asked->operation == 'D' && asked->launch != 0 && !entitled(model, asked))
        return 'e';
    bool broke = balance_of(model, asked->player) < 4;
    if (asked->reference == 0)
        return asked->operation == 'D' && broke ? 'f' : 'A';
    const struct happened *target = find(model, asked, asked->reference);
    const struct happened *undoing = undone(model, asked, asked->reference);
    if (target != NULL ? target->player != asked->player
                       : undoing != NULL && undoing->player != asked->player)
        return 'x';
    if (asked->operation == 'C') {
        if (undoing != NULL)
            return 't';
        return target != NULL && target->operation == 'D' && target->code == 'A' ? 'A' : 'r';
    }
    if (undoing != NULL)
        return 'b';
    if (target == NULL)
        return 'V';
    if (target->operation == 'R')
        return 'n';
    if (target->code != 'A')
        return 'V';
    if (target->operation == 'D')
        return settled(model, target) ? 's' : 'A';
    return broke ? 'f' : 'A';
}

static char code_of(struct wallet_decision decision)
{
    static const char codes[] = {[LEDGER_APPLIED] = 'A',
                                 [LEDGER_VOIDED] = 'V',
                                 [LEDGER_REFERENCE_NOT_FOUND] = 'r',
                                 [LEDGER_TRANSACTION_ROLLED_BACK] = 't',
                                 [LEDGER_ALREADY_ROLLED_BACK] = 'b',
                                 [LEDGER_ALREADY_SETTLED] = 's',
                                 [LEDGER_NOT_ROLLBACKABLE] = 'n',
                                 [LEDGER_INSUFFICIENT_FUNDS] = 'f',
                                 [LEDGER_BALANCE_LIMIT_EXCEEDED] = 'l'};
    if (decision.verdict == WALLET_KEPT)
        return codes[decision.outcome];
    if (decision.verdict == WALLET_SESSION_IS_OVER)
        return 'e';
    return decision.verdict == WALLET_REPLAYED ? '=' : 'x';
}

#define ASKED_MAX 64
static size_t every_request(struct happened *asked, const char *ids, int player_count)
{
    size_t count = 0;
    for (const char *id = ids; *id != '\0'; id++) {
        for (int player = 0; player < player_count; player++) {
            asked[count++] = (struct happened){'D', player, *id, 0, 0, 0};
            asked[count++] = (struct happened){'C', player, *id, 0, 0, 0};
            for (const char *reference = ids; *reference != '\0'; reference++) {
                if (reference == id)
                    continue;
                asked[count++] = (struct happened){'C', player, *id, *reference, 0, 0};
                asked[count++] = (struct happened){'R', player, *id, *reference, 0, 0};
            }
        }
    }
    assert_true(count <= ASKED_MAX);
    return count;
}

/* What is no request: a launch, or time. */
static void go_on(struct book *book, struct model *model, const struct happened *asked)
{
    static const char *const ids[] = {['l'] = "lau_l", ['m'] = "lau_m"};
    if (asked->operation == 'T')
        book->now_ms += SESSION_MS;
    else
        book->launches[book->launch_count++] = (struct launched){
            ids[(unsigned char)asked->launch], players[asked->player], book->now_ms};
    model->list[model->count++] = *asked;
}

static void step(struct book *book, struct model *model, const struct happened *asked)
{
    const char id[] = {asked->id, '\0'};
    if (asked->operation == 'L' || asked->operation == 'T') {
        go_on(book, model, asked);
        return;
    }
    const char reference[] = {asked->reference, '\0'};
    enum ledger_operation operation = asked->operation == 'D'   ? LEDGER_DEBIT
                                      : asked->operation == 'C' ? LEDGER_CREDIT
                                                                : LEDGER_ROLLBACK;
    struct wallet_request request =
        ask(operation, players[asked->player], id, operation == LEDGER_ROLLBACK ? 0 : 4, reference);
    if (asked->launch != 0) {
        memset(request.customer_id, 0, sizeof request.customer_id);
        copy(request.provider_id, "acme");
        (void)snprintf(request.launch_id, sizeof request.launch_id, "lau_%c", asked->launch);
    }
    char code = code_of(decide(book, &request));
    char wanted = expected(model, asked);
    if (code != wanted) {
        for (size_t i = 0; i < model->count; i++)
            print_message("%c %d %c %c %c -> %c\n", model->list[i].operation, model->list[i].player,
                          model->list[i].id, model->list[i].reference, model->list[i].launch,
                          model->list[i].code);
        fail_msg("then %c %d %c %c %c -> %c and not %c", asked->operation, asked->player, asked->id,
                 asked->reference, asked->launch, code, wanted);
    }
    if (code != '=' && code != 'x' && code != 'e') {
        model->list[model->count] = *asked;
        model->list[model->count++].code = code;
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(book->accounts[i].balance_minor, balance_of(model, i));
}

static void explore(const struct book *book, const struct model *model,
                    const struct happened *asked, size_t count, unsigned depth)
{
    for (size_t i = 0; depth > 0 && i < count; i++) {
        struct book next = *book;
        struct model known = *model;
        step(&next, &known, &asked[i]);
        explore(&next, &known, asked, count, depth - 1);
    }
}

TEST(every_history_of_four_requests_of_one_player_is_as_the_model_says)
{
    struct happened asked[ASKED_MAX];
    size_t count = every_request(asked, "abc", 1);
    struct book book = new_book(5);
    struct model model = {0};
    explore(&book, &model, asked, count, 4);
}

TEST(every_history_of_three_requests_of_two_players_is_as_the_model_says)
{
    struct happened asked[ASKED_MAX];
    size_t count = every_request(asked, "abc", 2);
    struct book book = new_book(5);
    struct model model = {0};
    explore(&book, &model, asked, count, 3);
}

/* A provider and the customer, at one player with one id that both have, and one more; a launch is
 * made once. */
static const struct happened at_a_table[] = {
    {'L', 0, 0, 0, 'l', 0},   {'T', 0, 0, 0, 0, 0},       {'L', 0, 0, 0, 'm', 0},
    {'D', 0, 'a', 0, 'l', 0}, {'D', 0, 'a', 0, 'm', 0},   {'D', 0, 'b', 0, 'm', 0},
    {'D', 1, 'a', 0, 'l', 0}, {'D', 0, 'a', 0, 'n', 0},   {'C', 0, 'b', 'a', 'l', 0},
    {'C', 0, 'b', 0, 'n', 0}, {'R', 0, 'b', 'a', 'n', 0}, {'D', 0, 'a', 0, 0, 0},
    {'R', 0, 'b', 'a', 0, 0},
};
#define AT_A_TABLE (sizeof at_a_table / sizeof at_a_table[0])

static void explore_sessions(const struct book *book, const struct model *model, unsigned launched,
                             unsigned depth)
{
    for (size_t i = 0; depth > 0 && i < AT_A_TABLE; i++) {
        unsigned launch = at_a_table[i].operation == 'L' ? 1U << i : 0;
        struct book next = *book;
        struct model known = *model;
        if ((launched & launch) != 0)
            continue;
        step(&next, &known, &at_a_table[i]);
        explore_sessions(&next, &known, launched | launch, depth - 1);
    }
}

TEST(every_history_of_five_launches_times_and_requests_is_as_the_model_says)
{
    struct book book = new_book(5);
    struct model model = {0};
    explore_sessions(&book, &model, 0, 5);
}

TEST(long_random_histories_are_as_the_model_says)
{
    struct happened asked[ASKED_MAX];
    size_t count = every_request(asked, "abcd", 2);
    uint32_t seed = 1;
    for (unsigned history = 0; history < 20000; history++) {
        struct book book = new_book(5);
        struct model model = {0};
        for (unsigned i = 0; i < 10; i++) {
            seed = seed * 1664525U + 1013904223U;
            step(&book, &model, &asked[(seed >> 8) % count]);
        }
    }
}
