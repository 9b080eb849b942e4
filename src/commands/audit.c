/* croupier audit list. */
#include "base/clock.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/platform.h"
#include "commands/resource.h"
#include "operator/times.h"
#include "operator/trail.h"

#define ROWS 100U
#define ROWS_MAX 100000U

const struct resource_commands audit_subject = {&trail_resource, NULL, NULL};

static const struct command_option list_options[] = {
    {"object", "ID",
     "only changes of this customer, key, address, provider, game, player or operator", false},
    {"who", "NAME", "only changes that NAME made", false},
    {"since", "TIME", "only changes since 2027-01-31, 2027-01-31T18:00:00Z, or 12h ago", false},
    {"before", "NUMBER", "only rows before this one: the page that follows", false},
    {"limit", "N", "at most so many rows (100)", false},
    {0},
};

struct listing {
    struct resource_listing rows;
    size_t count;
    uint64_t last; /* the number of the last row */
};

static bool see(void *context, const void *record)
{
    struct listing *listing = context;
    listing->count++;
    listing->last = ((const struct trail_record *)record)->number;
    return resource_listing_see(&listing->rows, record);
}

static const char *option_or(const struct command_line *line, const char *name, const char *none)
{
    const char *given = command_option(line, name);
    return given == NULL ? none : given;
}

static int read_search(const struct command_line *line, struct trail_search *search)
{
    uint64_t limit = ROWS;
    struct error error = {0};
    const char *since = command_option(line, "since");
    *search = (struct trail_search){.object = option_or(line, "object", ""),
                                    .who = option_or(line, "who", ""),
                                    .operators = true};
    int code = command_read_number(line, "before", 1, INT64_MAX, &search->before);
    if (code == EXIT_DONE)
        code = command_read_number(line, "limit", 1, ROWS_MAX, &limit);
    search->limit = limit;
    if (code != EXIT_DONE || since == NULL)
        return code;
    return command_end_verb(
        line, time_parse_past(text_of(since), clock_wall_ms(), &search->since_ms, &error), &error);
}

static int run_list(const struct command_line *line)
{
    struct trail_search search;
    struct error error = {0};
    struct listing listing = {.count = 0};
    int code = read_search(line, &search);
    if (code != EXIT_DONE)
        return code;
    struct platform_store *store = command_platform(line);
    if (store == NULL)
        return EXIT_REFUSED;
    resource_listing_begin(&listing.rows, line, &trail_resource);
    enum status status = platform_trail_search(store, &search, see, &listing, &error);
    code = resource_listing_end(&listing.rows, line, status, &error);
    if (code == EXIT_DONE && listing.count == search.limit && listing.last > 1)
        command_note(line, "there may be more: --before %llu", (unsigned long long)listing.last);
    return code;
}

const struct command audit_commands[] = {
    {"list", "", &help_audit_list, .options = list_options, .run = run_list},
    {0},
};
