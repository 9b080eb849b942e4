#pragma once

#include "base/log.h"
#include "base/mailbox.h"
#include "metrics/metrics.h"
#include "stores/platform_ledger.h"
#include "wallet/decision.h"

/*
 * The ledger: durable answers to wallet requests (docs/decisions/ledger.md).
 *
 * One thread writes. It takes all queued requests, at most LEDGER_BATCH_MAX, as one transaction of
 * the platform store. It loads their players and ids, decides each request in its turn with
 * wallet_decide (a later one sees the effect of an earlier one), writes, commits, and answers all.
 * So one durable commit carries many operations, and a request never waits for a batch to fill.
 * Another thread, with its own handle, answers all queued BALANCEs from the last commit with one
 * look-up, and waits for no commit.
 *
 * Several instances may write to one store, if it is a server. A batch that conflicts with another
 * instance is loaded and decided again, a bounded number of times; then its requests get
 * WALLET_ANSWER_UNAVAILABLE.
 *
 * A submitted operation is done even if its request has gone. When a commit fails, the content of
 * the disk is not known. The ledger answers that batch with WALLET_ANSWER_UNKNOWN and closes the
 * handle. It acknowledges nothing before it has opened the store again and the store has checked
 * itself.
 */

enum wallet_answer_kind {
    WALLET_ANSWER_BALANCE,     /* `account` */
    WALLET_ANSWER_TRANSACTION, /* `transaction`, durable; `replayed` */
    WALLET_ANSWER_REFUSED,     /* `verdict` says why; nothing is kept */
    WALLET_ANSWER_UNAVAILABLE, /* not applied, for certain */
    WALLET_ANSWER_UNKNOWN,     /* applied or not: ask again with the same id */
};

struct wallet_answer {
    enum wallet_answer_kind kind;
    bool replayed;
    enum wallet_verdict verdict;
    enum status trouble; /* of the store: of WALLET_ANSWER_UNAVAILABLE */
    struct ledger_transaction transaction;
    struct ledger_account account;
};

/*
 * A provider's request names a player by the provider's own id, and a launch. The ledger looks up
 * the player before the batch, because one batch may hold the same player under both
 * names.
 */

/* One request on its way. The caller fills in the request, the game, the mailbox and mail.deliver,
 * and has the job back with its answer when the mail is delivered. From submit until then it is the
 * ledger's. The answers of one batch come to a mailbox together. */
struct ledger_job {
    struct mail mail; /* first */
    struct mailbox *mailbox;
    struct wallet_request request;
    enum wallet_game game; /* named by the request */
    bool launched;         /* by the ledger: this player's launch, named by a provider */
    int64_t launched_ms;   /* its time */
    struct wallet_answer answer;
    TAILQ_ENTRY(ledger_job) in_lane; /* the ledger's, as all below */
    bool queued;
    size_t player, id, reference;
};

struct ledger;

/* Each thread opens its own `store`, whose `uri` and `log` are borrowed, and logs where it does.
 *
 *   queue_limit   of requests that wait for a batch, and of BALANCEs
 *   batch_max     operations that one commit carries, up to LEDGER_BATCH_MAX
 *   session_ms    for so long after a launch a provider may take stakes in it */
struct ledger *ledger_create(const struct platform_store_options *store, size_t queue_limit,
                             size_t batch_max, int64_t session_ms);

/* Answers the queued jobs, then ends the threads. No submit may follow; mailboxes must still be
 * there. */
void ledger_destroy(struct ledger **ledger);

/* Any thread. Takes many jobs, chained by their mails, in one go: the ledger is woken once, when
 * all are in its queue. Jobs that find the queue full stay in the list and belong to the caller. */
void ledger_submit(struct ledger *ledger, struct mail_list *jobs);

/* Takes back a job that waits too long. True: it was still queued, so it is not applied, and is the
 * caller's again. False: a batch has it, so its mail will come. */
MUST_CHECK bool ledger_withdraw(struct ledger *ledger, struct ledger_job *job);

/* For the metrics. Any thread. A bucket counts values up to its bound; the last has none. */
#define LEDGER_BATCH_BUCKETS 6  /* 1, 4, 16, 64, 256 operations */
#define LEDGER_COMMIT_BUCKETS 8 /* 1, 2, 5, 10, 50, 250, 1000 ms */
enum ledger_counted {           /* beyond the outcomes of ledger_entry.h */
                      LEDGER_COUNTED_REPLAYED = LEDGER_OUTCOME_COUNT,
                      LEDGER_COUNTED_REFUSED,
                      LEDGER_COUNTED_UNAVAILABLE,
                      LEDGER_COUNTED_UNKNOWN,
};
#define LEDGER_COUNTED_COUNT (LEDGER_COUNTED_UNKNOWN + 1)

struct ledger_facts {
    uint64_t operations[WALLET_OPERATION_COUNT][LEDGER_COUNTED_COUNT];
    uint64_t batches[LEDGER_BATCH_BUCKETS];
    uint64_t batched; /* operations in all batches */
    uint64_t commits[LEDGER_COMMIT_BUCKETS];
    uint64_t commit_ns; /* in all */
    uint64_t reopened;
    uint64_t conflicts;              /* batches begun again: see docs/metrics.md */
    uint64_t depth;                  /* waiting now, BALANCEs too */
    struct ledger_index_facts index; /* as of the last batch; zeros where the store has none */
};
void ledger_facts(struct ledger *ledger, struct ledger_facts *facts);
/* Has it tried to open and prepare its store? Where that failed, requests try again. */
bool ledger_has_tried(struct ledger *ledger);
/* Has its store been open and prepared once? From then on requests are answered at once. */
bool ledger_has_begun(struct ledger *ledger);
extern const struct metric ledger_metrics[];
/* The time within which `percent` of the batches were committed, in ms; negative: none was. */
double ledger_commit_ms(const uint64_t commits[LEDGER_COMMIT_BUCKETS], unsigned percent);
