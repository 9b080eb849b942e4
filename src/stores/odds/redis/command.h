#pragma once

#include "stores/odds.h"
#include "stores/odds/redis/location.h"
#include "stores/odds/redis/reply.h"

/* Writes a command of these words. */
void redis_command_words(struct buffer *out, const struct text *words, size_t count);
/* The same of a line of words, with one space between two. So no argument has a space. At most
 * REDIS_LINE_MAX bytes. */
#define REDIS_LINE_MAX 1024
void redis_command(struct buffer *out, const char *format, ...) PRINTF_LIKE(2, 3);
/* Asks for a key that never exists, as event 0 is the id of none: one reply, in a cluster perhaps a
 * redirection, which tells where the slot is. */
void redis_command_probe(struct buffer *out, const char *prefix);
/* AUTH with the password of the location, which has one. */
void redis_command_auth(struct buffer *out, const struct redis_location *location);

/* Writes these commands for a node to which their slot is being moved: ASKING before each, or
 * before a whole transaction. `kinds` gets a byte for each reply: 1: it is the one to ASKING; else
 * 0. */
void redis_command_asking(struct buffer *out, struct buffer *kinds, struct text commands);

/* "PREFIXcatalog:SPORT", "PREFIXodds:SPORT:EVENT", "PREFIXinterest:SPORT" */
struct redis_key {
    char text[192]; /* a prefix has up to 64 */
};
struct redis_key redis_key_of_value(const char *prefix, const struct odds_subject *subject);
struct redis_key redis_key_of_interest(const char *prefix, enum sport sport);

/* Is it an error because the user lacks a right? */
bool redis_reply_is_refusal(const struct redis_reply *reply);

/* Returns the status of an error reply. `error` holds `what`, which failed, and the text of the
 * server. */
enum status redis_error_of_reply(const struct redis_reply *reply, const char *what,
                                 struct error *error);
