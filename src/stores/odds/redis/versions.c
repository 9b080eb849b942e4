/*
 * The versions of stored values; see versions.h.
 *
 * An entry holds the digest and the version that a value had when it was last read, and whether it
 * is `current`. A reported change only clears `current`: if the same bytes are read again they keep
 * their version, so a feed that repeats itself causes no work. Versions are counted up and never
 * reused for other bytes.
 *
 * A reader takes the stamp first and the versions after it. A change clears `current` first and
 * moves the stamp after it. So a version that is found is right under the stamp that was taken
 * before it.
 *
 * The table has sets of WAYS entries, and a mutex for every few sets. A full set drops one entry
 * after the other.
 */
#include "stores/odds/redis/versions.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"

#define SETS 8192U /* a power of two */
#define WAYS 8U
#define LOCKS 64U /* a power of two */
/* Two answers about one end differ by the time that they took; more than this is a clock's leap. */
#define LEAP_NS ((uint64_t)100 * 1000 * 1000)
#define EXPIRE_EARLY_NS ((uint64_t)250 * 1000 * 1000)

struct entry {
    struct odds_subject subject;
    bool used;
    bool current;
    bool stored;
    bool readable;
    uint64_t version;
    uint64_t expires_ns;
    uint64_t refused_ns;  /* redis_versions_refuse's time */
    int64_t published_ms; /* wall clock: when the last publication was reported */
    bool heard;           /* a publication was reported since the last read */
    uint8_t digest[DIGEST_SIZE];
};

struct guard {
    uv_mutex_t lock;
    uint32_t dropped; /* counts entries that made room */
    char padding[64];
};

struct redis_versions {
    atomic_uint_fast64_t stamp;
    uint64_t last_version; /* the I/O thread's */
    /* Set by the I/O thread, for any thread: no value expires before it; 0: none expires. */
    atomic_uint_fast64_t next_expiry;
    struct guard guards[LOCKS];
    struct entry sets[SETS][WAYS];
};

struct redis_versions *redis_versions_create(void)
{
    struct redis_versions *versions = memory_alloc_zeroed(1, sizeof *versions);
    atomic_init(&versions->stamp, 1);
    atomic_init(&versions->next_expiry, 0);
    for (size_t i = 0; i < LOCKS; i++)
        CHECK(uv_mutex_init(&versions->guards[i].lock) == 0);
    return versions;
}

void redis_versions_destroy(struct redis_versions **versions)
{
    if (*versions == NULL)
        return;
    for (size_t i = 0; i < LOCKS; i++)
        uv_mutex_destroy(&(*versions)->guards[i].lock);
    memory_free(*versions);
    *versions = NULL;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Returns the set of a value, with its lock taken. */
static size_t lock_set(struct redis_versions *versions, const struct odds_subject *subject)
{
    uint64_t seed = 2 * (uint64_t)subject->sport + (uint64_t)subject->kind;
    size_t set = hash_text(seed, event_id_text(&subject->event)) & (SETS - 1);
    uv_mutex_lock(&versions->guards[set & (LOCKS - 1)].lock);
    return set;
}

static void unlock_set(struct redis_versions *versions, size_t set)
{
    uv_mutex_unlock(&versions->guards[set & (LOCKS - 1)].lock);
}

/* The lock is held. */
static struct entry *find(struct redis_versions *versions, size_t set,
                          const struct odds_subject *subject)
{
    for (size_t i = 0; i < WAYS; i++) {
        struct entry *entry = &versions->sets[set][i];
        if (entry->used && entry->subject.kind == subject->kind &&
            entry->subject.sport == subject->sport &&
            event_id_equals(&entry->subject.event, &subject->event))
            return entry;
    }
    return NULL;
}

/* The lock is held. An unused one, else one after the other. */
static struct entry *make_room(struct redis_versions *versions, size_t set)
{
    for (size_t i = 0; i < WAYS; i++)
        if (!versions->sets[set][i].used)
            return &versions->sets[set][i];
    return &versions->sets[set][versions->guards[set & (LOCKS - 1)].dropped++ % WAYS];
}

/* ---- looking --------------------------------------------------------------------------------- */

uint64_t redis_versions_stamp(const struct redis_versions *versions)
{
    return atomic_load_explicit(&versions->stamp, memory_order_acquire);
}

static void move_stamp(struct redis_versions *versions)
{
    (void)atomic_fetch_add_explicit(&versions->stamp, 1, memory_order_release);
}

/* A copy of the entry of a value, for a look; zeros where there is none. */
static struct entry look(struct redis_versions *versions, const struct odds_subject *subject)
{
    size_t set = lock_set(versions, subject);
    const struct entry *found = find(versions, set, subject);
    struct entry entry = found != NULL ? *found : (struct entry){0};
    unlock_set(versions, set);
    return entry;
}

uint64_t redis_versions_find(struct redis_versions *versions, const struct odds_subject *subject)
{
    const struct entry entry = look(versions, subject);
    return !entry.current ? ODDS_VERSION_UNKNOWN : entry.stored ? entry.version : 0;
}

bool redis_versions_is_unreadable(struct redis_versions *versions,
                                  const struct odds_subject *subject)
{
    const struct entry entry = look(versions, subject);
    return entry.used && !entry.readable;
}

int64_t redis_versions_published_ms(struct redis_versions *versions,
                                    const struct odds_subject *subject)
{
    const struct entry entry = look(versions, subject);
    return entry.stored || entry.heard ? entry.published_ms : 0;
}

bool redis_versions_is_over(struct redis_versions *versions, const struct odds_subject *subject,
                            uint64_t now_ns)
{
    const struct entry entry = look(versions, subject);
    return entry.stored && entry.expires_ns != 0 && entry.expires_ns <= now_ns;
}

uint64_t redis_versions_refused(struct redis_versions *versions, const struct odds_subject *subject)
{
    return look(versions, subject).refused_ns;
}

/* ---- learning -------------------------------------------------------------------------------- */

void redis_versions_forget(struct redis_versions *versions, const struct odds_subject *subject)
{
    size_t set = lock_set(versions, subject);
    struct entry *entry = find(versions, set, subject);
    if (entry != NULL) {
        entry->current = false;
        entry->heard = true;
        entry->published_ms = clock_wall_ms();
    }
    unlock_set(versions, set);
    move_stamp(versions);
}

void redis_versions_refuse(struct redis_versions *versions, const struct odds_subject *subject,
                           uint64_t until_ns)
{
    size_t set = lock_set(versions, subject);
    struct entry *entry = find(versions, set, subject);
    if (entry == NULL) {
        entry = make_room(versions, set);
        *entry = (struct entry){.subject = *subject, .used = true, .readable = true};
    }
    entry->refused_ns = until_ns;
    unlock_set(versions, set);
}

/* Clears `current` of all that expire until `until_ns`. Returns whether there were any, and when
 * the next one expires. */
static bool forget_until(struct redis_versions *versions, uint64_t until_ns, uint64_t *next_ns)
{
    bool any = false;
    for (size_t set = 0; set < SETS; set++) {
        struct guard *guard = &versions->guards[set & (LOCKS - 1)];
        uv_mutex_lock(&guard->lock);
        for (size_t i = 0; i < WAYS; i++) {
            struct entry *entry = &versions->sets[set][i];
            if (until_ns == UINT64_MAX)
                entry->expires_ns = 0; /* changes may go unreported: a new one may hold by now */
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

void redis_versions_forget_all(struct redis_versions *versions)
{
    uint64_t next_ns = 0;
    (void)forget_until(versions, UINT64_MAX, &next_ns);
    atomic_store_explicit(&versions->next_expiry, 0, memory_order_release);
    move_stamp(versions);
}

bool redis_versions_is_overdue(const struct redis_versions *versions, uint64_t now_ns)
{
    uint64_t next_ns = atomic_load_explicit(&versions->next_expiry, memory_order_acquire);
    return next_ns != 0 && next_ns <= now_ns;
}

bool redis_versions_expire(struct redis_versions *versions, uint64_t now_ns)
{
    uint64_t next_ns = 0;
    if (!redis_versions_is_overdue(versions, now_ns + EXPIRE_EARLY_NS))
        return false;
    bool any = forget_until(versions, now_ns + EXPIRE_EARLY_NS, &next_ns);
    if (any)
        move_stamp(versions);
    /* Last, so that until the walk is done, expired values count as overdue. */
    atomic_store_explicit(&versions->next_expiry, next_ns, memory_order_release);
    return any;
}

static bool is_same(const struct entry *entry, const struct redis_seen *seen)
{
    if (entry->stored != seen->stored || entry->readable != seen->readable)
        return false;
    /* A value without a digest is the same only while no change was reported. */
    if (!seen->readable)
        return entry->current;
    return memcmp(entry->digest, seen->digest, DIGEST_SIZE) == 0;
}

/* Was the same value given a later end, which no report has shown? */
static bool is_renewed(const struct entry *entry, const struct redis_seen *seen)
{
    return seen->asked && entry->expires_ns != 0 && is_same(entry, seen) &&
           seen->expires_ns > entry->expires_ns + LEAP_NS;
}

bool redis_versions_limit(struct redis_versions *versions, const struct odds_subject *subject,
                          struct redis_seen *seen)
{
    struct entry entry = look(versions, subject);
    entry.stored = seen->stored; /* also while its time is over, and the server has it yet */
    bool limited = !entry.heard && entry.expires_ns != 0 && seen->stored && is_same(&entry, seen) &&
                   (seen->expires_ns == 0 || seen->expires_ns > entry.expires_ns + LEAP_NS);
    if (limited)
        seen->expires_ns = entry.expires_ns;
    return limited;
}

uint64_t redis_versions_note(struct redis_versions *versions, const struct odds_subject *subject,
                             struct redis_seen *seen)
{
    /* This happens before a reader can find the entry. */
    uint64_t next_ns = relaxed_load(&versions->next_expiry);
    if (seen->current && seen->expires_ns != 0 && (next_ns == 0 || seen->expires_ns < next_ns))
        atomic_store_explicit(&versions->next_expiry, seen->expires_ns, memory_order_release);
    size_t set = lock_set(versions, subject);
    struct entry *entry = find(versions, set, subject);
    bool same = entry != NULL && is_same(entry, seen);
    /* The value has changed, and the report has not come yet. */
    bool news = entry != NULL && entry->current && !same;
    seen->published = entry != NULL && seen->asked && (!same || is_renewed(entry, seen));
    if (entry == NULL) {
        entry = make_room(versions, set);
        entry->heard = false; /* the entry held another value */
        /* The expiry of the dropped value is not watched any more, so its readers have to look
         * again now. */
        news = entry->used && entry->current && entry->expires_ns != 0;
    }
    uint64_t version = same ? entry->version : seen->stored ? ++versions->last_version : 0;
    bool known = entry->heard || (same && !seen->published);
    int64_t published_ms = known ? entry->published_ms : clock_wall_ms();
    *entry = (struct entry){.subject = *subject,
                            .used = true,
                            .current = seen->current,
                            .stored = seen->stored,
                            .readable = seen->readable,
                            .version = version,
                            .expires_ns = seen->expires_ns,
                            .published_ms = published_ms};
    memcpy(entry->digest, seen->digest, DIGEST_SIZE);
    unlock_set(versions, set);
    if (news)
        move_stamp(versions);
    return version;
}
