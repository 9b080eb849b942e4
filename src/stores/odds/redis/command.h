#ifndef CROUPIER_STORES_ODDS_REDIS_COMMAND_H
#define CROUPIER_STORES_ODDS_REDIS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "base/text.h"
#include "stores/odds/redis/location.h"
#include "stores/odds/redis/reply.h"

/* Begins a command of so many words, which follow by redis_command_word. */
void redis_command_begin(struct buffer *out, size_t words);
void redis_command_word(struct buffer *out, struct text word);
/* Writes a whole command; a NULL ends the list. */
void redis_command(struct buffer *out, const char *first, ...) __attribute__((sentinel));
/* AUTH with the password of the location, which has one. */
void redis_command_auth(struct buffer *out, const struct redis_location *location);

/* Is it an error because the user lacks a right? */
bool redis_reply_is_refusal(const struct redis_reply *reply);

/* Returns the status of an error reply. `error` holds `what`, which failed, and the text of the
 * server. */
enum status redis_error_of_reply(const struct redis_reply *reply, const char *what,
                                 struct error *error);

#endif
