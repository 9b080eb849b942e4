/* croupier ip add | list | set | enable | disable | remove. */
#include "commands/commands.h"
#include "commands/platform.h"
#include "operator/addresses.h"

/* What the options say, for `add` and `set` alike. */
static struct address_settings read_options(const struct command_line *line)
{
    return (struct address_settings){.sports = command_option(line, "sports"),
                                     .rate = command_option(line, "rate")};
}

/* The outcome of a change: the object, or "192.0.2.1 is DONE." */
static int report(const struct command_line *line, const struct legacy_record *record,
                  const char *done)
{
    if (command_json(line)) {
        yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        command_print_value(doc, address_json(doc, record));
        return EXIT_DONE;
    }
    char text[ADDRESS_TEXT_SIZE];
    address_format(&record->address, text);
    (void)printf("%s is %s.\n", text, done);
    return EXIT_DONE;
}

static int run_add(const struct command_line *line)
{
    const struct address_settings settings = read_options(line);
    struct legacy_record record = {0};
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = addresses_add(store, command_argument(line, 0), &settings, clock_wall_ms(),
                                       &record, &error);
    platform_store_close(&store);
    if (status != STATUS_OK)
        return command_fail(line, status, &error);
    return report(line, &record, "added");
}

static int change(const struct command_line *line, const struct address_settings *settings,
                  const char *done)
{
    struct legacy_record record = {0};
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status =
        addresses_change(store, command_argument(line, 0), settings, &record, &error);
    platform_store_close(&store);
    if (status != STATUS_OK)
        return command_fail(line, status, &error);
    return report(line, &record, done);
}

static int run_set(const struct command_line *line)
{
    const struct address_settings settings = read_options(line);
    if (settings.sports == NULL && settings.rate == NULL)
        return command_usage(line, "nothing to set");
    return change(line, &settings, "changed");
}

static int run_enable(const struct command_line *line)
{
    const struct address_settings settings = {.enabled = SETTING_ON};
    return change(line, &settings, "enabled");
}

static int run_disable(const struct command_line *line)
{
    const struct address_settings settings = {.enabled = SETTING_OFF};
    return change(line, &settings, "disabled");
}

static int run_remove(const struct command_line *line)
{
    struct legacy_record record = {0};
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = addresses_remove(store, command_argument(line, 0), &record, &error);
    platform_store_close(&store);
    if (status != STATUS_OK)
        return command_fail(line, status, &error);
    return report(line, &record, "removed");
}

static bool list_address(void *context, const struct legacy_record *record)
{
    struct listing *listing = context;
    if (listing->doc != NULL) {
        listing_add(listing, address_json(listing->doc, record));
        return true;
    }
    char text[ADDRESS_TEXT_SIZE];
    address_format(&record->address, text);
    table_cell(listing->table, "%s", text);
    table_cell(listing->table, "%s", !record->usable ? "unusable" : record->enabled ? "yes" : "no");
    table_sports(listing->table, record->sports);
    table_rate(listing->table, &record->rate);
    table_time(listing->table, record->created_ms);
    return true;
}

static int run_list(const struct command_line *line)
{
    static const char *const headers[] = {"ADDRESS", "ENABLED",       "SPORTS",
                                          "RATE",    "CREATED (UTC)", NULL};
    struct listing listing;
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    listing_begin(&listing, line, headers);
    enum status status = platform_legacy_list(store, list_address, &listing, &error);
    platform_store_close(&store);
    return listing_end(&listing, line, status, &error);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct command_option policy_options[] = {
    {"sports", "LIST", "all (the default of 'add'), none, or names: cricket,tennis", false},
    {"rate", "N/SECONDS", "at most N sports requests in SECONDS; off (the default of 'add')",
     false},
    {0},
};

const struct command ip_commands[] = {
    {.name = "add",
     .arguments = "ADDRESS",
     .least = 1,
     .most = 1,
     .summary = "admit one address to sports without a key",
     .details =
         "For legacy clients that send no key: ADDRESS is exactly the address that the service "
         "sees\n"
         "for them, v4 or v6. It opens the sports routes and never the casino. New clients should\n"
         "be customers with keys ('croupier customer add').\n"
         "\n"
         "The rate is the address's own: N is 1 to 1000000000, SECONDS 1 to 86400. A running "
         "server\n"
         "knows of every change within a second.",
     .examples = "croupier ip add 203.0.113.9\n"
                 "croupier ip add 2001:db8::9 --sports cricket,tennis --rate 60/60",
     .options = policy_options,
     .run = run_add},
    {.name = "list",
     .arguments = "",
     .summary = "all such addresses",
     .details = "In the order of their addresses. --json prints an array of objects.",
     .examples = "croupier ip list\n"
                 "croupier ip list --json",
     .run = run_list},
    {.name = "set",
     .arguments = "ADDRESS",
     .least = 1,
     .most = 1,
     .summary = "change what an address may do",
     .details = "Changes what is given and leaves the rest.",
     .examples = "croupier ip set 203.0.113.9 --rate 600/60\n"
                 "croupier ip set 203.0.113.9 --sports all --rate off",
     .options = policy_options,
     .run = run_set},
    {.name = "enable",
     .arguments = "ADDRESS",
     .least = 1,
     .most = 1,
     .summary = "admit a disabled address again",
     .details = "Its sports and rate are as they were.",
     .examples = "croupier ip enable 203.0.113.9",
     .run = run_enable},
    {.name = "disable",
     .arguments = "ADDRESS",
     .least = 1,
     .most = 1,
     .summary = "stop admitting an address, keeping its policy",
     .details = "It is refused within a second.",
     .examples = "croupier ip disable 203.0.113.9",
     .run = run_disable},
    {.name = "remove",
     .arguments = "ADDRESS",
     .least = 1,
     .most = 1,
     .summary = "stop admitting an address and forget its policy",
     .details = "It is refused within a second. Adding it again starts afresh.",
     .examples = "croupier ip remove 203.0.113.9",
     .run = run_remove},
    {0},
};
