#ifndef CROUPIER_STORES_PLATFORM_RECORD_H
#define CROUPIER_STORES_PLATFORM_RECORD_H

#include "stores/platform.h"

/*
 * Records of the platform store: what is acceptable in one, and how its lists are written in a
 * column. The same for every engine, so that a store can be moved from one to another. Pure.
 * Threads: any.
 */

/* STATUS_INVALID with the field and the reason. */
MUST_CHECK enum status customer_record_check(const struct customer_record *record,
                                             struct error *error);
MUST_CHECK enum status key_record_check(const struct key_record *record, struct error *error);
MUST_CHECK enum status legacy_record_check(const struct legacy_record *record, struct error *error);
MUST_CHECK enum status player_record_check(const struct player_record *record, struct error *error);

/* 1 to 64 of [A-Za-z0-9._:-]: what customers name players and transactions with. */
bool is_outside_name(struct text name);

/* "192.0.2.0/24 2001:db8::/32": canonical, one space between, "" for none. A customer's blocks in
 * one column, because reading 100,000 customers must be one scan and not a join. */
void cidr_list_append(struct buffer *buffer, const struct cidr *cidrs, size_t count);

/* False when the text is not such a list or has more than `room` blocks. */
MUST_CHECK bool cidr_list_read(struct text text, struct cidr *cidrs, size_t room, size_t *count);

/* Whether a limit is off, or within its bounds. */
bool rate_limit_is_sound(const struct rate_limit *rate);

#endif
