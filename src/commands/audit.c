/* croupier audit list; audit tail is in tail.c. */
#include "base/clock.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/resource.h"
#include "commands/stores.h"
#include "operator/tables.h"
#include "operator/times.h"

#define ROWS 100U
#define ROWS_MAX 100000U

struct listing {
    struct resource_listing rows;
    uint64_t last; /* the number of the last row */
};

static bool see(void *context, const void *record)
{
    struct listing *listing = context;
    listing->last = ((const struct trail_record *)record)->number;
    return resource_listing_see(&listing->rows, record);
}

static struct trail_search read_search(const struct command_line *line)
{
    const char *since = command_option(line, "since");
    struct trail_search search = {.object = command_option_or(line, "object", ""),
                                  .who = command_option_or(line, "who", ""),
                                  .before = command_number(line, "before", 1, INT64_MAX, 0),
                                  .limit = command_number(line, "limit", 1, ROWS_MAX, ROWS),
                                  .operators = true};
    if (since != NULL)
        command_require_verb(line, time_parse_past(text_of(since), clock_wall_ms(),
                                                   &search.since_ms, command_error(line)));
    return search;
}

static void run_list(const struct command_line *line)
{
    const struct trail_search search = read_search(line);
    struct listing listing = {.last = 0};
    struct platform_store *store = command_platform(line);
    resource_listing_begin(&listing.rows, line, &trail_resource);
    resource_listing_end(&listing.rows, line,
                         platform_trail_search(store, &search, see, &listing, command_error(line)));
    if (listing.rows.count == search.limit && listing.last > 1)
        command_note(line, "there may be more: --before %llu", (unsigned long long)listing.last);
}

const struct command audit_commands[] = {
    {"list", "", &help_audit_list, .run = run_list},
    {"tail", "", &help_audit_tail, .run = run_audit_tail},
    {0},
};
