/*
 * Puts bytes into an odds store as they are, for tests: `croupier feed` refuses what is not a
 * proper document, and a server must stand whatever another writer has put there.
 *
 *   put_odds URI SPORT EVENT|- < DOCUMENT      (- is the catalog)
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "stores/odds_feed.h"

static void read_all(FILE *in, struct buffer *document)
{
    size_t size = 0;
    do {
        buffer_reserve(document, 65536);
        size = fread(document->data + document->size, 1, 65536, in);
        document->size += size;
    } while (size > 0);
}

static enum status put(const char *uri, const char *sport, const char *event, struct error *error)
{
    struct odds_store_options options = {
        .uri = uri, .timeout_ms = 10000, .create = true, .feeds = true};
    struct odds_change change = {.kind = ODDS_CATALOG};
    enum status status = sport_from_key(text_of(sport), &change.sport);
    if (status != STATUS_OK)
        return error_set(error, status, "no such sport: %s", sport);
    if (strcmp(event, "-") != 0) {
        change.kind = ODDS_MARKETS;
        status = event_id_parse(text_of(event), &change.event);
        if (status != STATUS_OK)
            return error_set(error, status, "not an event id: %s", event);
    }
    struct odds_store *store = NULL;
    status = odds_store_open(&store, &options, error);
    if (status != STATUS_OK)
        return status;
    struct buffer document = {0};
    read_all(stdin, &document);
    change.bytes = buffer_string(&document);
    change.size = document.size;
    status = odds_store_publish(store, &change, 1, error);
    buffer_free(&document);
    odds_store_close(&store);
    return status;
}

int main(int argc, char **argv)
{
    struct error error = {{0}};
    if (argc != 4) {
        (void)fputs("usage: put_odds URI SPORT EVENT|- < DOCUMENT\n", stderr);
        return 2;
    }
    if (put(argv[1], argv[2], argv[3], &error) != STATUS_OK) {
        (void)fprintf(stderr, "put_odds: %s\n", error.text);
        return 1;
    }
    return 0;
}
