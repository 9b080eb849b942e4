#pragma once

#include "console/call.h"

/* Signing in by a link, which only this uses up; who it is; signing out. */
console_handler console_sign_in, console_who_am_i, console_sign_out;
