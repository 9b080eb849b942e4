/* croupier key issue | list | find | revoke. */
#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>

#include "base/clock.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/platform.h"
#include "commands/resource.h"
#include "operator/customers.h"
#include "operator/keys.h"

const struct resource_commands key_subject = {&key_resource, "customer", NULL};

/* ---- issue ----------------------------------------------------------------------------------- */

static void print_issued(const struct command_line *line, const char *key,
                         const struct key_record *record)
{
    struct json_writer *json = command_object(line, JSON_INDENTED);
    if (json == NULL) {
        (void)puts(key);
        return;
    }
    json_string(json, "key", key);
    fields_write(key_resource.fields, record, json);
    command_print_document(line);
}

/* A key that did not get out is lost: it cannot be shown again. */
static int confirm_printed(const struct command_line *line, const struct key_record *record)
{
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return EXIT_DONE;
    int reason = errno;
    return command_refuse(line,
                          "the key was made but could not be written (%s), so it is of no use: %s "
                          "key revoke %s",
                          reason != 0 ? strerror(reason) : "output error", command_program(line),
                          record->id);
}

static void note_missing_rights(const struct command_line *line,
                                const struct customer_record *owner)
{
    const char *program = command_program(line);
    if (!owner->enabled)
        command_note(line, "%s is disabled, so the key opens nothing until: %s customer enable %s",
                     owner->id, program, owner->id);
    if (owner->cidr_count == 0)
        command_note(line,
                     "%s has no CIDR block, so the key opens nothing until: %s customer set %s "
                     "--cidr CIDR",
                     owner->id, program, owner->id);
}

/* Makes, adds and prints the key of a record that is filled. */
static int issue(const struct command_line *line, struct key_record *record)
{
    struct customer_view owner;
    struct platform_store *store = command_platform(line);
    struct error error = {0};
    char key[KEY_SIZE] = "";
    if (store == NULL)
        return EXIT_REFUSED;
    enum status status =
        resource_get(&customer_resource, store, record->customer_id, &owner, &error);
    if (status == STATUS_OK)
        status = keys_issue(store, record, key, &error);
    if (status != STATUS_OK)
        return command_end_verb(line, status, &error);
    print_issued(line, key, record);
    int code = confirm_printed(line, record);
    OPENSSL_cleanse(key, sizeof key);
    if (code == EXIT_DONE) {
        command_note(line, "the key is shown this once; its id is %s", record->id);
        note_missing_rights(line, &owner.record);
    }
    return code;
}

static int run_issue(const struct command_line *line)
{
    struct key_record record;
    int code = resource_make_of_line(line, &record);
    return code == EXIT_DONE ? issue(line, &record) : code;
}

/* ---- find ------------------------------------------------------------------------------------ */

static int run_find(const struct command_line *line)
{
    struct error error = {0};
    enum status status = keys_check(command_argument(line, 0), &error);
    return status == STATUS_OK
               ? resource_run_list_of(line, &found_key_resource, "no key has that prefix or id")
               : command_end_verb(line, status, &error);
}

/* ---- revoke ---------------------------------------------------------------------------------- */

static int run_revoke(const struct command_line *line)
{
    const char *wanted = command_argument(line, 0);
    int64_t now_ms = clock_wall_ms();
    struct key_record record;
    struct platform_store *store = NULL;
    struct error error = {0};
    enum status status = keys_check(wanted, &error);
    if (status == STATUS_OK && (store = command_platform(line)) == NULL)
        return EXIT_REFUSED;
    if (status == STATUS_OK)
        status = keys_revoke(store, wanted, now_ms, &record, &error);
    if (status != STATUS_OK)
        return command_end_verb(line, status, &error);
    char when[CLOCK_TEXT_SIZE];
    clock_format_rfc3339(record.revoked_ms, when);
    if (command_json(line))
        resource_print(line, &key_resource, &record);
    else if (record.revoked_ms != now_ms)
        (void)printf("%s was revoked before, at %s.\n", record.id, when);
    else
        (void)printf("%s is revoked.\n", record.id);
    return EXIT_DONE;
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct command key_commands[] = {
    {"issue", "CUSTOMER", &help_key_issue, .make_options = resource_add_options, .run = run_issue},
    {"list", "CUSTOMER", &help_key_list, .run = resource_run_list},
    {"find", "KEY", &help_key_find, .run = run_find},
    {"revoke", "KEY", &help_key_revoke, .run = run_revoke},
    {0},
};
