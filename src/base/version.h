#pragma once

/*
 * Which program this is. The version is meson.build's; the commit is what `git describe` said when
 * the program was built ("1e96643", with "-dirty" behind it when files were changed), or when its
 * source package was made; "unknown" when it was built outside of both. Threads: any.
 */
#define CROUPIER_VERSION_TEXT "croupier " CROUPIER_VERSION /* "croupier 0.2.0" */
extern const char croupier_commit[];
