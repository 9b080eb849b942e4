#ifndef CROUPIER_SPORTS_DESK_H
#define CROUPIER_SPORTS_DESK_H

#include "sports/sports.h"

/*
 * What a desk does for a request whose path makes sense: it replies, at once or later. Private to
 * src/sports; on the desk's thread.
 */
void sports_desk_answer_sports(struct sports_desk *desk, struct http_request *request,
                               sport_set allowed);
void sports_desk_answer_catalog(struct sports_desk *desk, struct http_request *request,
                                enum sport sport);
void sports_desk_answer_event(struct sports_desk *desk, struct http_request *request,
                              enum sport sport, const struct event_id *id);

#endif
