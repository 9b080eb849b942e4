#pragma once

#include "console/call.h"

/*
 * The handlers of the admin API, by the file that has them; routes.c has the route of each.
 */

/* resources.c: the handlers that every resource has, by the resource of the call's route. */
console_handler console_list, console_show, console_add, console_change, console_remove;
/* Also there, of one resource each: they issue and revoke keys and tokens, block players, give
 * links to operators, and end sessions. */
console_handler console_issue_key, console_revoke_key, console_list_players, console_block_player,
    console_add_operator, console_link_operator, console_end_session, console_issue_token,
    console_revoke_token, console_reset_conduct;

/* feed.c: the sports, the events of one, and what a customer gets for an event. */
console_handler console_feed, console_feed_sport, console_feed_event;

/* ledger.c: the ledger's work, the results of the last verifications, and a verification from the
 * console. */
console_handler console_ledger, console_verify;

/* overview.c: the house at a glance (figures now and over time, refusals by reason, the age of the
 * feed), the refusals of the last hour, and what the customer sees. */
console_handler console_overview, console_refusals, console_account;

/* providers.c: a provider's secrets, which come in or are made here and are shown once at most, and
 * a trial launch. */
console_handler console_add_provider, console_add_secret, console_retire_secret,
    console_try_provider;

/* signing.c: signing in by a link, which only this uses up; who it is; signing out. */
console_handler console_sign_in, console_who_am_i, console_sign_out;

/* tail.c: tails of the ledger and of the audit trail (operator/tail.h), which may wait for the next
 * row. */
console_handler console_ledger_tail, console_audit_tail;

/* views.c: documents that are no records: games that a customer may use, an import, a player's
 * statement, rounds, the audit trail, usage, money, the settings in force and the health of the
 * stores. */
console_handler console_allowed_games, console_allow_games, console_import_games, console_statement,
    console_rounds, console_audit, console_usage, console_report, console_entries, console_settings,
    console_health;
