/* croupier key issue | list | revoke. */
#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>

#include "commands/commands.h"
#include "commands/platform.h"
#include "operator/customers.h"
#include "operator/keys.h"

/* ---- issue ----------------------------------------------------------------------------------- */

/* {"key": …} and then what `list` says of it. */
static void print_issued_json(const char *key, const struct key_record *record)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "key", key);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "id", record->id);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "prefix", record->prefix);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "customer", record->customer_id);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "label", record->label);
    (void)yyjson_mut_obj_add_val(doc, object, "created_at", time_json(doc, record->created_ms));
    (void)yyjson_mut_obj_add_val(doc, object, "expires_at", time_json(doc, record->expires_ms));
    command_print_value(doc, object);
}

/* A key that did not get out is lost: nobody can show it again. */
static int confirm_printed(const struct command_line *line, const struct key_record *record)
{
    char program[PROGRAM_TEXT_SIZE];
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return EXIT_DONE;
    int reason = errno;
    command_program(line, program);
    return command_refuse(line,
                          "the key was made but could not be written (%s), so it is of no use: %s "
                          "key revoke %s",
                          reason != 0 ? strerror(reason) : "output error", program, record->id);
}

static void note_what_is_missing(const struct command_line *line,
                                 const struct customer_record *owner)
{
    char program[PROGRAM_TEXT_SIZE];
    command_program(line, program);
    if (!owner->enabled)
        command_note(line, "%s is disabled, so the key opens nothing until: %s customer enable %s",
                     owner->id, program, owner->id);
    if (owner->cidr_count == 0)
        command_note(line,
                     "%s has no CIDR block, so the key opens nothing until: %s customer set %s "
                     "--cidr CIDR",
                     owner->id, program, owner->id);
}

static int run_issue(const struct command_line *line)
{
    const struct key_settings settings = {.customer_id = command_argument(line, 0),
                                          .label = command_option(line, "label"),
                                          .expires = command_option(line, "expires")};
    struct customer_record owner = {0};
    struct key_record record = {0};
    struct platform_store *store = NULL;
    struct error error = {0};
    char key[KEY_SIZE] = "";
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = customers_get(store, settings.customer_id, &owner, &error);
    if (status == STATUS_OK)
        status = keys_issue(store, &settings, clock_wall_ms(), key, &record, &error);
    platform_store_close(&store);
    int code;
    if (status != STATUS_OK) {
        code = command_fail(line, status, &error);
    } else {
        if (command_json(line))
            print_issued_json(key, &record);
        else
            (void)puts(key);
        code = confirm_printed(line, &record);
    }
    OPENSSL_cleanse(key, sizeof key);
    if (code == EXIT_DONE) {
        command_note(line, "the key is shown this once; its id is %s", record.id);
        note_what_is_missing(line, &owner);
    }
    customer_record_free(&owner);
    return code;
}

/* ---- list ------------------------------------------------------------------------------------ */

struct key_listing {
    struct listing listing;
    int64_t now_ms;
};

static bool list_key(void *context, const struct key_record *record)
{
    struct key_listing *keys = context;
    struct listing *listing = &keys->listing;
    if (listing->doc != NULL) {
        listing_add(listing, key_json(listing->doc, record));
        return true;
    }
    table_cell(listing->table, "%s", record->id);
    table_cell(listing->table, "%s…", record->prefix);
    table_cell(listing->table, "%s", record->label[0] != '\0' ? record->label : "-");
    table_cell(listing->table, "%s",
               key_is_live(record, keys->now_ms) ? "live"
               : record->revoked_ms != 0         ? "revoked"
                                                 : "expired");
    table_time(listing->table, record->created_ms);
    table_time(listing->table, record->expires_ms);
    table_time(listing->table, record->last_used_ms);
    table_time(listing->table, record->revoked_ms);
    return true;
}

static int run_list(const struct command_line *line)
{
    static const char *const headers[] = {
        "ID", "KEY", "LABEL", "STATE", "CREATED (UTC)", "EXPIRES", "LAST USED", "REVOKED", NULL};
    struct key_listing keys = {.now_ms = clock_wall_ms()};
    struct customer_record owner = {0};
    struct platform_store *store = NULL;
    struct error error = {0};
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status = customers_get(store, command_argument(line, 0), &owner, &error);
    listing_begin(&keys.listing, line, headers);
    if (status == STATUS_OK)
        status = platform_key_list(store, owner.id, list_key, &keys, &error);
    platform_store_close(&store);
    customer_record_free(&owner);
    return listing_end(&keys.listing, line, status, &error);
}

/* ---- revoke ---------------------------------------------------------------------------------- */

static int run_revoke(const struct command_line *line)
{
    struct key_record record = {0};
    struct platform_store *store = NULL;
    struct error error = {0};
    bool before = false;
    if (!command_open_platform(line, false, &store))
        return EXIT_REFUSED;
    enum status status =
        keys_revoke(store, command_argument(line, 0), clock_wall_ms(), &record, &before, &error);
    platform_store_close(&store);
    if (status != STATUS_OK)
        return command_fail(line, status, &error);
    if (command_json(line)) {
        yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
        command_print_value(doc, key_json(doc, &record));
        return EXIT_DONE;
    }
    char when[CLOCK_TEXT_SIZE];
    clock_format_rfc3339(record.revoked_ms, when);
    if (before)
        (void)printf("%s was revoked before, at %s.\n", record.id, when);
    else
        (void)printf("%s is revoked.\n", record.id);
    return EXIT_DONE;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct command_option issue_options[] = {
    {"label", "LABEL", "what it is for, up to 64 bytes", false},
    {"expires", "TIME", "when it ends: 2027-01-31, 2027-01-31T18:00:00Z, or 90d from now", false},
    {0},
};

const struct command key_commands[] = {
    {.name = "issue",
     .arguments = "CUSTOMER",
     .least = 1,
     .most = 1,
     .summary = "make a key for a customer; prints it, once",
     .details =
         "The key is printed alone on standard output, this once: what is stored cannot be turned\n"
         "back into it. CUSTOMER is the customer's id (cus_…). A customer may have several live\n"
         "keys, so that a new one can be in use before the old one is revoked.\n"
         "\n"
         "TIME is RFC 3339, a date (midnight UTC), or a time from now in seconds, minutes, hours,\n"
         "days or weeks: 3600s, 30m, 12h, 90d, 2w. Without --expires a key lasts until it is "
         "revoked.\n"
         "\n"
         "--json prints key, id, prefix, customer, label, created_at and expires_at.",
     .examples = "croupier key issue cus_7Qm2Zt0aXw9Lk3Rb\n"
                 "croupier key issue cus_7Qm2Zt0aXw9Lk3Rb --label production --expires 90d\n"
                 "KEY=$(croupier key issue cus_7Qm2Zt0aXw9Lk3Rb)",
     .options = issue_options,
     .run = run_issue},
    {.name = "list",
     .arguments = "CUSTOMER",
     .least = 1,
     .most = 1,
     .summary = "a customer's keys, revoked ones too",
     .details = "Keys are shown by their first 8 characters. LAST USED is about a minute behind.",
     .examples = "croupier key list cus_7Qm2Zt0aXw9Lk3Rb\n"
                 "croupier key list cus_7Qm2Zt0aXw9Lk3Rb --json",
     .run = run_list},
    {.name = "revoke",
     .arguments = "KEY",
     .least = 1,
     .most = 1,
     .summary = "end a key, for good",
     .details =
         "KEY is the key's id (key_…), its first 8 characters when they belong to one live key, "
         "or\n"
         "the whole key. A running server refuses it within a second. A revoked key cannot be\n"
         "brought back; revoking it again changes nothing.",
     .examples = "croupier key revoke key_b3Wc8Yh1Ns6Fd0Pq\n"
                 "croupier key revoke crk_4fT9",
     .run = run_revoke},
    {0},
};
