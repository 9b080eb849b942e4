/* Output of the commands about the ledger; see wallet_output.h. */
#include "commands/wallet_output.h"

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

void wallet_require(const struct command_line *line, struct platform_store *store,
                    const struct record_table *table, const char *id)
{
    void *record = memory_alloc_zeroed(1, table->size);
    command_keep(line, memory_free, record);
    if (id != NULL)
        command_require(line, platform_get(store, table, id, record, command_error(line)));
}

void wallet_print_extent(const struct audit_result *result)
{
    (void)printf("%" PRIu64 " entr%s of %" PRIu64 " player%s", result->entries,
                 result->entries == 1 ? "y" : "ies", result->players,
                 result->players == 1 ? "" : "s");
}
