/* Matching paths; see path.h. */
#include "http/path.h"

bool http_path_fits(const char *pattern, struct text path, struct text values[HTTP_PATH_VALUES])
{
    struct text segments = text_of(pattern);
    size_t count = 0;
    for (size_t i = 0; i < HTTP_PATH_VALUES; i++)
        values[i] = TEXT("");
    while (segments.at != NULL && path.at != NULL) {
        struct text segment = text_cut(&segments, '/');
        struct text value = text_cut(&path, '/');
        bool any = text_starts_with(segment, TEXT("{"));
        if (any ? value.size == 0 : !text_equals(segment, value))
            return false;
        CHECK(!any || count < HTTP_PATH_VALUES);
        if (any)
            values[count++] = value;
    }
    return segments.at == NULL && path.at == NULL;
}
