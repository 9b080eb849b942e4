/*
 * What is known to be stored. See redis.h.
 *
 * An entry says: when this value was read last it had this digest, and was called by this version;
 * and whether that is still so (`current`). A change that is heard of only takes `current` away, so
 * that the same bytes read again keep their version, and nothing is made anew of a feed that
 * repeats itself. A version is a number that is counted up, so it is never reused for other bytes.
 *
 * Versions and stamp. A reader takes the stamp first and then the versions; whoever forgets takes
 * `current` away first and then moves the stamp. So a version that is found is right under the
 * stamp that was found before it.
 *
 * Digests are two polynomials over the field of 2^61 - 1, at points drawn at random for this
 * process: two different documents of 32 MiB meet by chance once in 2^76, whoever wrote them, as
 * nobody outside learns the points. They are computed at memory speed, which a cryptographic digest
 * is not.
 *
 * The table has sets of WAYS entries, a mutex for every few sets. What finds no room takes the
 * place of what was not looked at for longest.
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

#include <uv.h>

#include "base/hash.h"
#include "base/memory.h"
#include "stores/odds/redis/redis.h"

#define SETS 8192U /* a power of two */
#define WAYS 8U
#define LOCKS 64U /* a power of two */
#define EXPIRE_EARLY_NS ((uint64_t)5 * 1000 * 1000)

__extension__ typedef unsigned __int128 wide;

struct entry {
    struct odds_subject subject; /* event.size 0: a catalog, or nothing */
    bool used;
    bool current;
    bool stored;
    bool readable;
    uint32_t looked; /* of the lock's clock */
    uint64_t version;
    uint64_t expires_ns;
    struct redis_digest digest;
};

struct guard {
    uv_mutex_t lock;
    uint32_t clock;
    char padding[64];
};

struct redis_known {
    atomic_uint_fast64_t stamp;
    uint64_t last_version; /* the I/O thread's */
    uint64_t next_expiry;  /* the I/O thread's: none expires before; 0: none does */
    uint64_t points[2];    /* of the digests */
    struct entry catalogs[SPORT_COUNT];
    struct guard guards[LOCKS]; /* the first guards the catalogs as well */
    struct entry sets[SETS][WAYS];
};

struct redis_known *redis_known_create(void)
{
    struct redis_known *known = memory_alloc_zeroed(1, sizeof *known);
    CHECK(getrandom(known->points, sizeof known->points, 0) == (ssize_t)sizeof known->points);
    for (size_t i = 0; i < 2; i++)
        known->points[i] >>= 3; /* below 2^61 */
    atomic_init(&known->stamp, 1);
    for (size_t i = 0; i < LOCKS; i++)
        CHECK(uv_mutex_init(&known->guards[i].lock) == 0);
    return known;
}

void redis_known_destroy(struct redis_known **known)
{
    if (*known == NULL)
        return;
    for (size_t i = 0; i < LOCKS; i++)
        uv_mutex_destroy(&(*known)->guards[i].lock);
    memory_free(*known);
    *known = NULL;
}

/* ---- digests --------------------------------------------------------------------------------- */

#define FIELD (((uint64_t)1 << 61) - 1)

static uint64_t reduce(wide product)
{
    uint64_t sum = (uint64_t)(product & FIELD) + (uint64_t)(product >> 61);
    return sum >= FIELD ? sum - FIELD : sum;
}

struct redis_digest redis_known_digest(const struct redis_known *known, const char *bytes,
                                       size_t size)
{
    uint64_t a = size;
    uint64_t b = size;
    for (size_t at = 0; at < size; at += 7) {
        uint64_t word = 0;
        memcpy(&word, bytes + at, size - at < 7 ? size - at : 7);
        a = reduce((wide)a * known->points[0] + word);
        b = reduce((wide)b * known->points[1] + word);
    }
    return (struct redis_digest){{a, b}};
}

/* ---- places ---------------------------------------------------------------------------------- */

struct spot {
    struct guard *guard;
    struct entry *entries;
    size_t count;
};

static struct spot spot_of(struct redis_known *known, const struct odds_subject *subject)
{
    if (subject->kind == ODDS_CATALOG)
        return (struct spot){&known->guards[0], &known->catalogs[subject->sport], 1};
    size_t set = hash_text(subject->sport, event_id_text(&subject->event)) & (SETS - 1);
    return (struct spot){&known->guards[set & (LOCKS - 1)], known->sets[set], WAYS};
}

/* The lock is held. */
static struct entry *find(const struct spot *spot, const struct odds_subject *subject)
{
    for (size_t i = 0; i < spot->count; i++) {
        struct entry *entry = &spot->entries[i];
        if (entry->used && entry->subject.sport == subject->sport &&
            (subject->kind == ODDS_CATALOG ||
             event_id_equals(&entry->subject.event, &subject->event)))
            return entry;
    }
    return NULL;
}

/* The lock is held. An unused one, else the one that was looked at longest ago. */
static struct entry *make_room(const struct spot *spot)
{
    struct entry *oldest = &spot->entries[0];
    for (size_t i = 0; i < spot->count; i++) {
        struct entry *entry = &spot->entries[i];
        if (!entry->used)
            return entry;
        if (spot->guard->clock - entry->looked > spot->guard->clock - oldest->looked)
            oldest = entry;
    }
    return oldest;
}

/* ---- looking --------------------------------------------------------------------------------- */

uint64_t redis_known_stamp(const struct redis_known *known)
{
    return atomic_load_explicit(&known->stamp, memory_order_acquire);
}

static void move_stamp(struct redis_known *known)
{
    (void)atomic_fetch_add_explicit(&known->stamp, 1, memory_order_release);
}

uint64_t redis_known_version(struct redis_known *known, const struct odds_subject *subject)
{
    struct spot spot = spot_of(known, subject);
    uint64_t version = ODDS_VERSION_UNKNOWN;
    uv_mutex_lock(&spot.guard->lock);
    struct entry *entry = find(&spot, subject);
    if (entry != NULL && entry->current) {
        version = entry->stored ? entry->version : 0;
        entry->looked = ++spot.guard->clock;
    }
    uv_mutex_unlock(&spot.guard->lock);
    return version;
}

/* ---- learning -------------------------------------------------------------------------------- */

void redis_known_forget(struct redis_known *known, const struct odds_subject *subject)
{
    struct spot spot = spot_of(known, subject);
    uv_mutex_lock(&spot.guard->lock);
    struct entry *entry = find(&spot, subject);
    if (entry != NULL)
        entry->current = false;
    uv_mutex_unlock(&spot.guard->lock);
    move_stamp(known);
}

/* Takes `current` from all that expire until `until_ns`; returns whether there were any, and when
 * the next one does. */
static bool forget_until(struct redis_known *known, uint64_t until_ns, uint64_t *next_ns)
{
    bool any = false;
    for (size_t set = 0; set <= SETS; set++) {
        struct guard *guard =
            &known->guards[set & (LOCKS - 1)]; /* that of set 0 for the catalogs */
        struct entry *entries = set < SETS ? known->sets[set] : known->catalogs;
        size_t count = set < SETS ? WAYS : SPORT_COUNT;
        uv_mutex_lock(&guard->lock);
        for (size_t i = 0; i < count; i++) {
            struct entry *entry = &entries[i];
            if (!entry->current)
                continue;
            if (until_ns == UINT64_MAX ||
                (entry->expires_ns != 0 && entry->expires_ns <= until_ns)) {
                entry->current = false;
                any = true;
            } else if (entry->expires_ns != 0 && (*next_ns == 0 || entry->expires_ns < *next_ns)) {
                *next_ns = entry->expires_ns;
            }
        }
        uv_mutex_unlock(&guard->lock);
    }
    return any;
}

void redis_known_forget_all(struct redis_known *known)
{
    uint64_t next_ns = 0;
    (void)forget_until(known, UINT64_MAX, &next_ns);
    known->next_expiry = 0;
    move_stamp(known);
}

uint64_t redis_known_expire(struct redis_known *known, uint64_t now_ns)
{
    if (known->next_expiry == 0 || known->next_expiry > now_ns + EXPIRE_EARLY_NS)
        return known->next_expiry;
    uint64_t next_ns = 0;
    /* A little early, so that a walk serves all that expire at about the same time. */
    if (forget_until(known, now_ns + EXPIRE_EARLY_NS, &next_ns))
        move_stamp(known);
    known->next_expiry = next_ns;
    return next_ns;
}

static bool is_same(const struct entry *entry, const struct redis_seen *seen)
{
    if (entry->stored != seen->stored || entry->readable != seen->readable)
        return false;
    /* What cannot be read is the same only as long as nothing has been heard. */
    if (!seen->readable)
        return entry->current;
    return entry->digest.words[0] == seen->digest.words[0] &&
           entry->digest.words[1] == seen->digest.words[1];
}

uint64_t redis_known_see(struct redis_known *known, const struct odds_subject *subject,
                         const struct redis_seen *seen)
{
    struct spot spot = spot_of(known, subject);
    uv_mutex_lock(&spot.guard->lock);
    struct entry *entry = find(&spot, subject);
    bool same = entry != NULL && is_same(entry, seen);
    /* It has changed, and that has not been heard of yet. */
    bool news = entry != NULL && entry->current && !same;
    if (entry == NULL) {
        entry = make_room(&spot);
        /* When that expires nobody will see to it; so whoever goes by the stamp has to look now. */
        news = entry->used && entry->current && entry->expires_ns != 0;
    }
    uint64_t version = same ? entry->version : seen->stored ? ++known->last_version : 0;
    *entry = (struct entry){.subject = *subject,
                            .used = true,
                            .current = seen->current,
                            .stored = seen->stored,
                            .readable = seen->readable,
                            .looked = ++spot.guard->clock,
                            .version = version,
                            .expires_ns = seen->expires_ns,
                            .digest = seen->digest};
    uv_mutex_unlock(&spot.guard->lock);
    if (news)
        move_stamp(known);
    if (seen->current && seen->expires_ns != 0 &&
        (known->next_expiry == 0 || seen->expires_ns < known->next_expiry))
        known->next_expiry = seen->expires_ns;
    return version;
}
