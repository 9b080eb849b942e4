/* Output of the commands about the ledger; see wallet_output.h. */
#include "commands/wallet_output.h"

#include <inttypes.h>

#include "base/memory.h"

bool wallet_print_row(const struct command_line *line, struct json_writer *json,
                      const struct field *fields, const void *record)
{
    struct buffer text = {0};
    if (json == NULL) {
        fields_append_row(fields, record, &text);
        (void)fwrite(text.data, 1, text.size, stdout);
        buffer_free(&text);
    } else if (record != NULL) {
        json_space(json, "\n");
        fields_write_object(fields, record, json);
    }
    return command_print_so_far(line);
}

bool wallet_is_there(const struct command_line *line, struct platform_store *store,
                     const struct record_table *table, const char *id)
{
    struct error error = {0};
    if (id == NULL)
        return true;
    void *record = memory_alloc_zeroed(1, table->size);
    enum status status = platform_get(store, table, id, record, &error);
    memory_free(record);
    return command_end(line, status, &error) == EXIT_DONE;
}

void wallet_print_extent(const struct audit_result *result)
{
    (void)printf("%" PRIu64 " entr%s of %" PRIu64 " player%s", result->entries,
                 result->entries == 1 ? "y" : "ies", result->players,
                 result->players == 1 ? "" : "s");
}
