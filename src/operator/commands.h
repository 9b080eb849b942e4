#ifndef CROUPIER_OPERATOR_COMMANDS_H
#define CROUPIER_OPERATOR_COMMANDS_H

#include "operator/command.h"

/*
 * The lists of commands, each defined in the file that is named beside it and ended by a row whose name
 * is NULL. main.c puts them into groups; several lists may stand in one group.
 */

#endif
