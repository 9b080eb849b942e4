#ifndef CROUPIER_DEMO_WALLET_CALL_H
#define CROUPIER_DEMO_WALLET_CALL_H

#include "demo/casino.h"

/*
 * The demo's provider calls POST /provider/v1/wallet: signed, and sent again with the same ids
 * while there is no answer (docs/wallet.md, "After a time-out"). Blocks, 8 seconds at most.
 * Threads: any.
 */
struct wallet_answer {
    long status; /* of HTTP; 0: croupier did not answer, and the outcome is not known */
    struct buffer body;
};

/* `url` is of POST /provider/v1/wallet, `document` the operation, JSON. `answer` is zeros before;
 * buffer_free its body. */
void wallet_call(const char *url, const struct demo_secret *secret, struct text document,
                 struct wallet_answer *answer);

#endif
