#pragma once

#include <uv.h>

#include "base/log.h"

/*
 * A command asks a running server here to read its configuration again, and gets the result: a Unix
 * socket that is named after the server's process id. To connect is to ask; the server reads
 * nothing and sends its answer when the new settings are in force, or are refused.
 *
 * The socket is in a directory that only the server's user may enter, so no other user can ask, or
 * take the name first. It is $RUNTIME_DIRECTORY, which systemd sets; without that, /run/croupier or
 * croupier/ in $XDG_RUNTIME_DIR or /run/user/UID, the first that is this user's alone or can be
 * made. The command looks in the same places. A server that was killed leaves its name behind; the
 * next one with its process id replaces it.
 *
 * The server's half runs on one thread.
 */
struct reload_socket;

/* `asker` is a descriptor, to be answered exactly once. */
typedef void reload_asked(void *context, int asker);

/* The possible requests; each has its own socket. */
enum reload_question {
    RELOAD_CONFIGURATION,
    RELOAD_PROGRAM, /* hand over to the program as it is on disk now (app/handover.h) */
};

/* A command that connects before reload_socket_accept waits. A server that cannot have the socket
 * says so in its log and does without: the result is NULL, which the calls below take. */
struct reload_socket *reload_socket_create(uv_loop_t *loop, enum reload_question question,
                                           reload_asked *asked, void *context, struct log *log);
void reload_socket_accept(struct reload_socket *socket);
void reload_socket_destroy(struct reload_socket **socket);

/* The first byte of an answer. */
#define ANSWER_DONE '+'
#define ANSWER_REFUSED '-'

/* `text`: the settings that need a restart, comma-separated ("": none), the process that serves
 * now, or why nothing has changed. May come after the socket is destroyed. Ends the asker; -1 is
 * fine. */
void reload_answer(int asker, bool done, const char *text);

/* The command's half: asks the server with that process id and waits for its answer, whose text is
 * appended. */
MUST_CHECK enum status reload_ask(long process, enum reload_question question, struct buffer *text,
                                  struct error *error);
