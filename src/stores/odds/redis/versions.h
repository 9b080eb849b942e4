#pragma once

#include "base/digest.h"
#include "stores/odds_read.h"

/*
 * The versions of stored values: the version of each at its last read, and whether a change was
 * reported since. The table is bounded; other values have no known version. Any thread may look.
 * All else is for the I/O thread, unless a comment says otherwise.
 */
struct redis_versions;

struct redis_versions *redis_versions_create(void);
void redis_versions_destroy(struct redis_versions **versions);

uint64_t redis_versions_stamp(const struct redis_versions *versions);
/* Was it of the wrong type or too large when it was read last? */
bool redis_versions_is_unreadable(struct redis_versions *versions,
                                  const struct odds_subject *subject);
/* The version, or ODDS_VERSION_UNKNOWN. To be right under a stamp, the stamp is read first. */
uint64_t redis_versions_find(struct redis_versions *versions, const struct odds_subject *subject);

/* The server ends the connection over it: it is not to be read before `until_ns`. A value that is
 * noted is refused no more. redis_versions_refused: that time; 0: it is not refused. */
void redis_versions_refuse(struct redis_versions *versions, const struct odds_subject *subject,
                           uint64_t until_ns);
uint64_t redis_versions_refused(struct redis_versions *versions,
                                const struct odds_subject *subject);

/* Wall clock: when the last publication of the value was reported; 0: not known, or when it was
 * read last it was not stored. */
int64_t redis_versions_published_ms(struct redis_versions *versions,
                                    const struct odds_subject *subject);

/* Was it stored when it was read last, for a time that is over at `now_ns`? */
bool redis_versions_is_over(struct redis_versions *versions, const struct odds_subject *subject,
                            uint64_t now_ns);

/* Each moves the stamp. redis_versions_forget may be called by any thread. */
void redis_versions_forget(struct redis_versions *versions, const struct odds_subject *subject);
void redis_versions_forget_all(struct redis_versions *versions);
/* Has a value expired at `now_ns` that is not forgotten yet, because the I/O thread is late? Then
 * no version may be used. Any thread. */
bool redis_versions_is_overdue(const struct redis_versions *versions, uint64_t now_ns);
/* Forgets what expires within a quarter of a second from `now_ns`, so that it is done in time when
 * it is called several times in that time. True: the stamp has moved. */
bool redis_versions_expire(struct redis_versions *versions, uint64_t now_ns);

/* Notes a value that was read. Returns its version: the former one if the digest is the former one.
 * `current`: the value is stored from now on, until `expires_ns` (0: for good). `asked`: changes
 * are not reported, so other bytes, or a later end, are a publication of now. */
struct redis_seen {
    bool stored;
    bool readable; /* false: of the wrong type or too large; it has a version, but no digest */
    uint8_t digest[DIGEST_SIZE];
    bool current;
    bool asked;
    bool published; /* out: `asked`, and it was published or withdrawn since it was read last */
    uint64_t expires_ns;
};
/* A value that has not changed since it was read last has no more time than it had then: the
 * server's clock was set back. True: `seen` got the earlier end. */
bool redis_versions_limit(struct redis_versions *versions, const struct odds_subject *subject,
                          struct redis_seen *seen);
uint64_t redis_versions_note(struct redis_versions *versions, const struct odds_subject *subject,
                             struct redis_seen *seen);
