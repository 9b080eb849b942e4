/*
 * What LMDB itself makes of publications: the yardstick of `croupier feed stream`.
 *
 *   bare_lmdb DIR PUBLICATIONS SIZE GROUP EVENTS
 *
 * Puts values of SIZE bytes under EVENTS keys in turn, GROUP of them a transaction, durably, with
 * nothing around them: no index, no checksum, no JSON. Prints how many a second as JSON.
 */
#include <lmdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void check(int result, const char *what)
{
    if (result == MDB_SUCCESS)
        return;
    (void)fprintf(stderr, "bare_lmdb: %s: %s\n", what, mdb_strerror(result));
    exit(1);
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    unsigned long numbers[4] = {0};
    for (int i = 2; i < argc && i < 6; i++)
        numbers[i - 2] = strtoul(argv[i], NULL, 10);
    if (argc != 6 || numbers[1] == 0 || numbers[2] == 0 || numbers[3] == 0) {
        (void)fprintf(stderr, "usage: bare_lmdb DIR PUBLICATIONS SIZE GROUP EVENTS\n");
        return 2;
    }
    unsigned long count = numbers[0], size = numbers[1], group = numbers[2], events = numbers[3];
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    check(mdb_env_create(&env), "create");
    check(mdb_env_set_mapsize(env, (size_t)1 << 32), "map size");
    check(mdb_env_open(env, argv[1], 0, 0644), "open");
    char *bytes = malloc(size);
    if (bytes == NULL)
        return 1;
    memset(bytes, 'x', size);
    check(mdb_txn_begin(env, NULL, 0, &txn), "begin");
    check(mdb_dbi_open(txn, NULL, 0, &dbi), "open database");
    check(mdb_txn_commit(txn), "commit");
    double began = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (unsigned long i = 0; i < count;) {
        check(mdb_txn_begin(env, NULL, 0, &txn), "begin");
        for (unsigned long j = 0; j < group && i < count; j++, i++) {
            char name[64];
            int length = snprintf(name, sizeof name, "odds:cricket:%lu", i % events + 1);
            MDB_val key = {(size_t)length, name}, value = {size, bytes};
            memcpy(bytes, &i, sizeof i < size ? sizeof i : size);
            check(mdb_put(txn, dbi, &key, &value, 0), "put");
        }
        check(mdb_txn_commit(txn), "commit");
    }
    printf("{\"per_second\": %.0f, \"cpu_us\": %.3f}\n",
           (double)count / (seconds(CLOCK_MONOTONIC) - began),
           (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e6 / (double)count);
    mdb_env_close(env);
    free(bytes);
    return 0;
}
