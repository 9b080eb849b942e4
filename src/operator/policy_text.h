#ifndef CROUPIER_OPERATOR_POLICY_TEXT_H
#define CROUPIER_OPERATOR_POLICY_TEXT_H

#include <yyjson.h>

#include "stores/platform.h"

/*
 * What customers and legacy addresses have in common when an operator writes or reads them: sports,
 * rate limits and times, as texts and as JSON. Pure. Threads: any.
 */

/* "100/60" (requests/seconds), "off" or "none". */
MUST_CHECK enum status rate_parse(struct text text, struct rate_limit *rate, struct error *error);
void rate_append(struct buffer *buffer, const struct rate_limit *rate);

yyjson_mut_val *sports_json(yyjson_mut_doc *doc, sport_set sports); /* "all" or ["cricket", …] */
yyjson_mut_val *rate_json(yyjson_mut_doc *doc, const struct rate_limit *rate); /* or null */
yyjson_mut_val *time_json(yyjson_mut_doc *doc, int64_t time_ms); /* RFC 3339; 0 is null */

/* A switch in what an operator gives: a change leaves alone what is not mentioned. */
enum setting_switch { SETTING_LEAVE, SETTING_ON, SETTING_OFF };
void switch_apply(enum setting_switch setting, bool *value);

#endif
