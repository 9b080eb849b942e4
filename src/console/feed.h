#ifndef CROUPIER_CONSOLE_FEED_H
#define CROUPIER_CONSOLE_FEED_H

#include "console/call.h"

/* What is published: the sports, the events of one, and what a customer gets for an event. */
console_handler console_feed, console_feed_sport, console_feed_event;

#endif
