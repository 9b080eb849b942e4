#pragma once

#include "console/call.h"

/* Documents that are no records: games that a customer may use, an import, a player's statement,
 * rounds, the audit trail, usage, the settings in force and the health of the stores. */
console_handler console_allowed_games, console_allow_games, console_import_games, console_statement,
    console_rounds, console_audit, console_usage, console_settings, console_health;
