#pragma once

#include "wallet/ledger.h"

/* One job: STATUS_FULL when the queue is full. */
static inline enum status submit_job(struct ledger *ledger, struct ledger_job *job)
{
    struct mail_list jobs = STAILQ_HEAD_INITIALIZER(jobs);
    STAILQ_INSERT_TAIL(&jobs, &job->mail, link);
    ledger_submit(ledger, &jobs);
    return STAILQ_EMPTY(&jobs) ? STATUS_OK : STATUS_FULL;
}
