#pragma once

#include "console/call.h"

/* What is published: the sports, the events of one, and what a customer gets for an event. */
console_handler console_feed, console_feed_sport, console_feed_event;
