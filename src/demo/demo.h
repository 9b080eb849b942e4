#pragma once

#include "admission/key.h"
#include "base/status.h"
#include "config/config.h"
#include "demo/casino.h"
#include "operator/credentials.h"
#include "records/player.h"

/*
 * The preparation of `croupier demo`: it takes a directory and adds sample customers to the
 * platform store. A second run changes nothing. The store keeps keys only as digests, so the demo
 * keeps its own keys in a file that only its user may read. If the file is missing or a key no
 * longer works, it issues a new key and revokes the earlier ones. Blocks.
 */

#define DEMO_KEY_LABEL "croupier demo" /* marks the keys that a start may revoke */
#define DEMO_KEYS_FILE "demo.keys"     /* in the directory: a key a line, as in struct demo_keys */
#define DEMO_TOUR_FILE "tour.txt"
#define DEMO_SECRET_FILE "provider.secret" /* of DEMO_PROVIDER, the one that signs */
#define DEMO_CUSTOMER "Demo Sportsbook"
#define DEMO_LIMITED_CUSTOMER "Weekend Picks"
#define DEMO_DISABLED_CUSTOMER "Closed Account"
#define DEMO_OPERATOR "demo" /* an owner of the console */
#define DEMO_LEGACY_ADDRESS "127.0.0.2"
#define DEMO_LIMITED_REQUESTS 5U /* in DEMO_LIMITED_SECONDS */
#define DEMO_LIMITED_SECONDS 10U

/* Creates the directory if it does not exist, and locks it for this process: a second demo in the
 * same directory is refused. `path` is its absolute path (memory_free it), `lock` a descriptor to
 * close at the end. */
MUST_CHECK enum status demo_take_directory(const char *directory, char **path, int *lock,
                                           struct error *error);

/* Writes DIRECTORY/croupier.conf, which names the stores, unless the file exists. The demo reads
 * it, and other commands can (`croupier customer list -c demo-data/croupier.conf`). `file` is its
 * path (memory_free it). The addresses of an earlier demo are taken out. */
MUST_CHECK enum status demo_write_config(const char *directory, char **file, struct error *error);

/* Puts the addresses of this demo at the beginning of the file, as settings, so that the commands
 * that it prints meet it. A file that has a `listen` of its user's is left as it is. */
MUST_CHECK enum status demo_write_addresses(const char *file, const char *addresses,
                                            struct error *error);

/* Writes a file into the directory that only its user may read (mode 0600). */
MUST_CHECK enum status demo_write_private(const char *directory, const char *name, struct text text,
                                          struct error *error);

/* Texts that the caller wipes (explicit_bzero). */
struct demo_keys {
    char all_sports[KEY_SIZE]; /* of DEMO_CUSTOMER */
    char limited[KEY_SIZE];  /* of DEMO_LIMITED_CUSTOMER: cricket and football, a low rate limit */
    char disabled[KEY_SIZE]; /* of DEMO_DISABLED_CUSTOMER, which is refused */
    char blocked_player[PLAYER_ID_SIZE]; /* of DEMO_CUSTOMER */
    char link[CREDENTIAL_SIZE];          /* signs in DEMO_OPERATOR once; "": it is disabled */
};

/* Creates or upgrades the platform store and the key of secrets, and ensures that the sample
 * customers, the legacy address, the keys, the operator, and the casino's provider and games
 * exist. Writes the provider's secret into its file. */
MUST_CHECK enum status demo_prepare_platform(const char *directory, const struct config *config,
                                             struct demo_keys *keys, struct demo_casino *casino,
                                             struct error *error);
