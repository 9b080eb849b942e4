#ifndef CROUPIER_DEMO_DEMO_H
#define CROUPIER_DEMO_DEMO_H

#include <stdint.h>

#include "admission/key.h"
#include "base/status.h"
#include "config/config.h"
#include "demo/casino.h"
#include "operator/credentials.h"

/*
 * `croupier demo` begins here: it takes a directory, and adds sample customers to the platform
 * store. Making it again changes nothing. The store has keys only
 * as digests, so the demo's own are kept beside it, in a file for its user alone; where that is
 * gone or a key of it no longer works, a fresh one is issued and those before it are revoked.
 * Blocks.
 */

#define DEMO_KEY_LABEL "croupier demo" /* marks the keys that a start may revoke */
#define DEMO_KEYS_FILE "demo.keys"     /* in the directory: a key a line, as in struct demo_keys */
#define DEMO_TOUR_FILE "tour.txt"
#define DEMO_CUSTOMER "Demo Sportsbook"
#define DEMO_LIMITED_CUSTOMER "Weekend Picks"
#define DEMO_DISABLED_CUSTOMER "Closed Account"
#define DEMO_OPERATOR "demo" /* of the console; an owner */
#define DEMO_LEGACY_ADDRESS "127.0.0.2"
#define DEMO_LIMITED_REQUESTS 5U /* in DEMO_LIMITED_SECONDS */
#define DEMO_LIMITED_SECONDS 10U

/* Makes the directory when it is not there, and takes it for this process: a second demo in the
 * same directory is refused. `path` is its absolute path (memory_free it), `lock` a descriptor to
 * close at the end. */
MUST_CHECK enum status demo_take_directory(const char *directory, char **path, int *lock,
                                           struct error *error);

/* Writes DIRECTORY/croupier.conf, which names the stores, unless there is one: the demo reads it,
 * and other commands can (`croupier customer list -c demo-data/croupier.conf`). `file` is its path
 * (memory_free it). */
MUST_CHECK enum status demo_write_config(const char *directory, char **file, struct error *error);

/* Writes a file of this name into the directory, which only its user may read (mode 0600). */
MUST_CHECK enum status demo_write_private(const char *directory, const char *name, struct text text,
                                          struct error *error);

/* Texts that the caller wipes (OPENSSL_cleanse). */
struct demo_keys {
    char all_sports[KEY_SIZE]; /* of DEMO_CUSTOMER */
    char limited[KEY_SIZE]; /* of DEMO_LIMITED_CUSTOMER: cricket and football, a low rate limit */
    char link[CREDENTIAL_SIZE]; /* signs in DEMO_OPERATOR, once; "": somebody has disabled it */
};

/* Makes or upgrades the platform store and the key of secrets, and sees to the sample customers,
 * the legacy address, the keys, the operator, and the casino's provider and games. */
MUST_CHECK enum status demo_prepare_platform(const char *directory, const struct config *config,
                                             struct demo_keys *keys, struct demo_casino *casino,
                                             struct error *error);

#endif
