#ifndef CROUPIER_STORES_ODDS_REDIS_COMMAND_H
#define CROUPIER_STORES_ODDS_REDIS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "base/text.h"
#include "stores/odds/redis/location.h"
#include "stores/odds/redis/reply.h"

/* Writes one command: words that follow are appended with redis_command_word, exactly `words` of
 * them. */
void redis_command_begin(struct buffer *out, size_t words);
void redis_command_word(struct buffer *out, struct text word);
/* All of them at once; a NULL ends the list. */
void redis_command(struct buffer *out, const char *first, ...) __attribute__((sentinel));
/* AUTH, of a server that has a password. */
void redis_command_auth(struct buffer *out, const struct redis_location *location);

/* The user may not do it. */
bool redis_reply_is_refusal(const struct redis_reply *reply);

/* What an error reply means, and a text for people: `what` could not be done, and what the server
 * says. */
enum status redis_error_of_reply(const struct redis_reply *reply, const char *what,
                                 struct error *error);

#endif
