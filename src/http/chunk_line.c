/* The grammar of a chunk's line as a state machine: see chunk_line.h. */
#include "http/chunk_line.h"

#include "base/status.h"
#include "http/characters.h"

/* The state after a complete part of the line: another extension or the end of the line follows. */
static enum chunk_line after_part(char byte)
{
    return byte == ';' ? CHUNK_LINE_NAME_START : byte == '\r' ? CHUNK_LINE_CR : CHUNK_LINE_BAD;
}

static enum chunk_line in_quotes(char byte)
{
    bool is_text = byte == '\t' || ((unsigned char)byte >= ' ' && byte != 0x7F);
    return byte == '"'    ? CHUNK_LINE_QUOTED_END
           : byte == '\\' ? CHUNK_LINE_QUOTED_PAIR
           : is_text      ? CHUNK_LINE_QUOTED
                          : CHUNK_LINE_BAD;
}

enum chunk_line chunk_line_step(enum chunk_line before, char byte)
{
    switch (before) {
    case CHUNK_LINE_START:
        return hex_value(byte) >= 0 ? CHUNK_LINE_SIZE : CHUNK_LINE_BAD;
    case CHUNK_LINE_SIZE:
        return hex_value(byte) >= 0 ? CHUNK_LINE_SIZE : after_part(byte);
    case CHUNK_LINE_NAME_START:
        return is_token_character(byte) ? CHUNK_LINE_NAME : CHUNK_LINE_BAD;
    case CHUNK_LINE_NAME:
        if (byte == '=')
            return CHUNK_LINE_VALUE_START;
        return is_token_character(byte) ? CHUNK_LINE_NAME : after_part(byte);
    case CHUNK_LINE_VALUE_START:
        if (byte == '"')
            return CHUNK_LINE_QUOTED;
        return is_token_character(byte) ? CHUNK_LINE_TOKEN : CHUNK_LINE_BAD;
    case CHUNK_LINE_TOKEN:
        return is_token_character(byte) ? CHUNK_LINE_TOKEN : after_part(byte);
    case CHUNK_LINE_QUOTED:
        return in_quotes(byte);
    case CHUNK_LINE_QUOTED_PAIR: /* any text byte may be escaped, also '"' and '\\' */
        return in_quotes(byte == '"' || byte == '\\' ? ' ' : byte);
    case CHUNK_LINE_QUOTED_END:
        return after_part(byte);
    case CHUNK_LINE_CR:
        return byte == '\n' ? CHUNK_LINE_END : CHUNK_LINE_BAD;
    case CHUNK_LINE_END:
    case CHUNK_LINE_BAD:
        break;
    }
    CHECK(before != CHUNK_LINE_END && before != CHUNK_LINE_BAD);
    return CHUNK_LINE_BAD;
}
