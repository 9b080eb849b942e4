/* Setting lists of countries; see field.h. */
#include "operator/field.h"

enum status field_set_countries(const struct field *field, struct text text, void *record,
                                struct error *error)
{
    struct buffer list = {0};
    while (text.at != NULL && text.size > 0) {
        struct text code = text_trim(text_cut(&text, ','));
        if (!country_is_known(code)) {
            buffer_free(&list);
            return error_invalid(error,
                                 "%s: '%.*s' is no code of ISO 3166-1: two capitals, such as GB",
                                 field->name, code.size < 8 ? (int)code.size : 8, code.at);
        }
        if (game_list_has(buffer_text(&list), code))
            continue;
        if (list.size > 0)
            buffer_append_char(&list, '\n');
        buffer_append_text(&list, code);
    }
    CHECK(list.size < field->room); /* it has all codes */
    memcpy(field_value_to_set(field, record), buffer_string(&list), list.size + 1);
    buffer_free(&list);
    return STATUS_OK;
}
