/* Decoding what requests say in their targets; see query.h. */
#include "console/query.h"

#include <string.h>

bool console_decode(struct text encoded, bool of_query, char out[CONSOLE_VALUE_SIZE])
{
    size_t size = 0;
    for (size_t i = 0; i < encoded.size; i++) {
        char byte = of_query && encoded.at[i] == '+' ? ' ' : encoded.at[i];
        if (byte == '%') {
            int high = i + 2 < encoded.size ? hex_value(encoded.at[i + 1]) : -1;
            int low = i + 2 < encoded.size ? hex_value(encoded.at[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            byte = (char)(high * 16 + low);
            i += 2;
        }
        if (size + 1 == CONSOLE_VALUE_SIZE)
            return false;
        out[size++] = byte;
    }
    out[size] = '\0';
    return text_is_plain((struct text){out, size});
}

enum status console_parameter(struct text query, const char *name, char out[CONSOLE_VALUE_SIZE],
                              struct error *error)
{
    bool found = false;
    out[0] = '\0';
    while (query.at != NULL && query.size > 0) {
        struct text value = text_cut(&query, '&');
        struct text key = text_cut(&value, '=');
        if (!text_equals(key, text_of(name)))
            continue;
        if (found || !console_decode(value, true, out))
            return error_set(error, STATUS_INVALID, "%s: %s", name,
                             found ? "is given twice" : "is not properly encoded");
        found = true;
    }
    return STATUS_OK;
}

enum status console_number(struct text query, const char *name, uint64_t most, uint64_t otherwise,
                           uint64_t *number, struct error *error)
{
    char text[CONSOLE_VALUE_SIZE];
    enum status status = console_parameter(query, name, text, error);
    if (status != STATUS_OK)
        return status;
    if (text[0] == '\0') {
        *number = otherwise;
        return STATUS_OK;
    }
    uint64_t read = 0;
    if (text_to_u64(text_of(text), most, &read) != STATUS_OK || read == 0)
        return error_set(error, STATUS_INVALID, "%s: must be a whole number from 1 to %llu", name,
                         (unsigned long long)most);
    *number = read;
    return STATUS_OK;
}
