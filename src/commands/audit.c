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

/* Reads a number from 1 to `most` where it is given. False: it is none, which was printed. */
static bool read_number(const struct command_line *line, const char *name, uint64_t most,
                        uint64_t *number)
{
    const char *given = command_option(line, name);
    if (given == NULL || (text_to_u64(text_of(given), most, number) == STATUS_OK && *number > 0))
        return true;
    (void)command_usage(line, "--%s is a number from 1 to %llu", name, (unsigned long long)most);
    return false;
}

static bool read_search(const struct command_line *line, struct trail_search *search)
{
    uint64_t limit = ROWS;
    struct error error = {0};
    const char *since = command_option(line, "since");
    *search = (struct trail_search){.object = option_or(line, "object", ""),
                                    .who = option_or(line, "who", ""),
                                    .operators = true};
    if (!read_number(line, "before", INT64_MAX, &search->before) ||
        !read_number(line, "limit", ROWS_MAX, &limit))
        return false;
    search->limit = limit;
    if (since == NULL ||
        time_parse_past(text_of(since), clock_wall_ms(), &search->since_ms, &error) == STATUS_OK)
        return true;
    (void)command_usage(line, "%s", error.text);
    return false;
}

static int run_list(const struct command_line *line)
{
    struct trail_search search;
    struct error error = {0};
    struct listing listing = {.count = 0};
    if (!read_search(line, &search))
        return EXIT_USAGE;
    struct platform_store *store = command_platform(line);
    if (store == NULL)
        return EXIT_REFUSED;
    resource_listing_begin(&listing.rows, line, &trail_resource);
    enum status status = platform_trail_search(store, &search, see, &listing, &error);
    int code = resource_listing_end(&listing.rows, line, status, &error);
    if (code == EXIT_DONE && listing.count == search.limit && listing.last > 1)
        command_note(line, "there may be more: --before %llu", (unsigned long long)listing.last);
    return code;
}

const struct command audit_commands[] = {
    {"list", "", &help_audit_list, .options = list_options, .run = run_list},
    {0},
};
