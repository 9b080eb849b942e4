#pragma once

/*
 * Checks the line before a chunk byte by byte: its size and extensions (RFC 9112 section 7.1.1).
 * llhttp accepts more than the grammar allows. The white space that the grammar calls "bad" is
 * refused, as a recipient may do. Pure; private to http/.
 */
enum chunk_line {
    CHUNK_LINE_START,
    CHUNK_LINE_SIZE,
    CHUNK_LINE_NAME_START, /* after ';' */
    CHUNK_LINE_NAME,
    CHUNK_LINE_VALUE_START, /* after '=' */
    CHUNK_LINE_TOKEN,
    CHUNK_LINE_QUOTED,
    CHUNK_LINE_QUOTED_PAIR, /* after a backslash */
    CHUNK_LINE_QUOTED_END,
    CHUNK_LINE_CR,
    CHUNK_LINE_END, /* the line is whole */
    CHUNK_LINE_BAD, /* the line is malformed */
};

/* The state that follows `before` when `byte` is read. Must not be called after END or BAD. */
enum chunk_line chunk_line_step(enum chunk_line before, char byte);
