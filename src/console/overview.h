#pragma once

#include "console/call.h"

/* The house at a glance: figures now and over time, refusals by reason, the age of the feed. */
console_handler console_overview;

/* A customer's denials of the last hour. */
console_handler console_denials;

/* Nothing of a sport was published for so long: it is stale, as the alarm CroupierFeedStopped has
 * it. */
#define OVERVIEW_FEED_STOPPED_S 120
