// A customer of croupier in one file: polls odds, launches a game, and moves a player's money so that nothing is lost or done
// twice, even when this program or the server is killed in between. README.md shows how to run it.

import java.io.*;
import java.net.URI;
import java.net.http.*;
import java.net.http.HttpResponse.BodySubscribers;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.regex.*;
import java.util.zip.GZIPInputStream;

public final class Customer {
    static final int WAIT_S = 55; // how long a poll may wait for a change
    static final String BASE = setting("BASE", "http://127.0.0.1:8080").replaceFirst("(/api/v1)?/*$", "");
    static final String KEY = setting("KEY", "");
    static final Path JOURNAL = Path.of(setting("JOURNAL", "wallet.journal"));
    static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(5)).build();

    static String setting(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }

    static HttpRequest.Builder request(String path, int timeoutSeconds) {
        return HttpRequest.newBuilder(URI.create(BASE + path)).timeout(Duration.ofSeconds(timeoutSeconds))
                .header("Authorization", "Bearer " + KEY).header("Content-Type", "application/json");
    }

    /** An answer; throws when there is none. */
    static HttpResponse<String> ask(HttpRequest request) throws IOException, InterruptedException {
        return CLIENT.send(request, info -> BodySubscribers.mapping(BodySubscribers.ofByteArray(), body -> decoded(info, body)));
    }

    static String decoded(HttpResponse.ResponseInfo info, byte[] body) {
        boolean zipped = info.headers().firstValue("Content-Encoding").orElse("").equals("gzip");
        try (InputStream whole = new ByteArrayInputStream(body); InputStream text = zipped ? new GZIPInputStream(whole) : whole) {
            return new String(text.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException damaged) {
            throw new UncheckedIOException(damaged);
        }
    }

    static HttpResponse<String> post(String path, String body) throws IOException, InterruptedException {
        return ask(request(path, 15).POST(HttpRequest.BodyPublishers.ofString(body)).build());
    }

    /** Ends the program with a sentence. */
    static void fail(String sentence) {
        System.err.println("Customer: " + sentence);
        System.exit(1);
    }

    /** Ends it with the sentence of an error document. */
    static void refuse(HttpResponse<String> answer) {
        Matcher message = Pattern.compile("\"message\":\"([^\"]*)\"").matcher(answer.body());
        fail(message.find() ? message.group(1) + " (" + answer.statusCode() + ")" : "the server answered " + answer.statusCode() + ": " + answer.body());
    }

    /** How long to wait before the next attempt: Retry-After, where the answer has it. */
    static long pauseMs(HttpResponse<String> answer, long otherwise) {
        return answer.headers().firstValue("Retry-After").map(seconds -> 1000 * Long.parseLong(seconds)).orElse(otherwise);
    }

    /** As JSON; what comes from the command line may hold any character. */
    static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray())
            out.append(c == '"' || c == '\\' || c < ' ' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        return out.append('"').toString();
    }

    // ---- odds --------------------------------------------------------------------------------

    /** Sends a poll. Differences.java has one that knows one more coding. */
    interface Poller { HttpResponse<String> ask(HttpRequest.Builder poll) throws IOException, InterruptedException; }
    static Poller poller = poll -> ask(poll.header("Accept-Encoding", "gzip").build());

    /** Prints an event's document, and again whenever it changes. Read it with your JSON library. */
    static void poll(String sport, String event, long changes) throws InterruptedException {
        for (String tag = null, before = null; changes > 0;) {
            HttpRequest.Builder asked = request("/api/v1/" + sport + "/events/" + event, WAIT_S + 5).GET();
            if (tag != null)
                asked.header("If-None-Match", tag).header("Prefer", "wait=" + WAIT_S);
            HttpResponse<String> answer;
            try {
                answer = poller.ask(asked);
            } catch (IOException failed) {
                System.err.println("no answer from " + BASE + " (" + failed + "); the same again");
                Thread.sleep(1000);
                continue;
            }
            tag = answer.headers().firstValue("ETag").orElse(tag);
            if (answer.statusCode() == 200 && !answer.body().equals(before)) {
                changes--;
                System.out.println(before = answer.body());
            } else if (answer.statusCode() == 200 || answer.statusCode() == 304) { // no change; one that did not wait is not asked for again at once
                Thread.sleep(answer.headers().firstValue("Preference-Applied").isPresent() ? 0 : 1000);
            } else if (answer.statusCode() == 429 || answer.statusCode() >= 500 || answer.body().contains("odds_not_found")) {
                System.err.println(answer.statusCode() + " " + answer.body()); // asking again tells the feed that odds are wanted
                Thread.sleep(pauseMs(answer, 1000));
            } else {
                refuse(answer);
            }
        }
    }

    // ---- the wallet --------------------------------------------------------------------------

    /** Into the journal, and on the disk before this returns: "send ID BODY", "done ID ANSWER". */
    static void note(String what, String id, String text) throws IOException {
        String encoded = Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
        ByteBuffer line = StandardCharsets.UTF_8.encode(what + " " + id + " " + encoded + "\n");
        try (FileChannel journal = FileChannel.open(JOURNAL, StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
            while (line.hasRemaining())
                journal.write(line);
            journal.force(true);
        }
    }

    static final Pattern LINE = Pattern.compile("(send|done) (\\S+) (\\S*)\n");

    /** The bodies that were to be sent and have no answer yet, in their order. What a kill left of a
     * line is cut off: it was not sent, and the next one begins a line. */
    static Map<String, String> unanswered() throws IOException {
        Map<String, String> waiting = new LinkedHashMap<>();
        if (!Files.exists(JOURNAL))
            return waiting;
        String text = Files.readString(JOURNAL, StandardCharsets.US_ASCII);
        String whole = text.substring(0, text.lastIndexOf('\n') + 1);
        try (FileChannel journal = FileChannel.open(JOURNAL, StandardOpenOption.WRITE)) {
            journal.truncate(whole.length());
        }
        for (Matcher line = LINE.matcher(whole); line.find();) {
            if (line.group(1).equals("send"))
                waiting.put(line.group(2), new String(Base64.getDecoder().decode(line.group(3)), StandardCharsets.UTF_8));
            else
                waiting.remove(line.group(2));
        }
        return waiting;
    }

    /** Answers that decide. player_not_found decides about a first attempt alone: the key may be another customer's now. */
    static final Pattern DECIDES = Pattern.compile("^(200|409|422) |\"(player_blocked|reference_not_found|game_not_found|invalid_request|unknown_field)\"");

    /** Sends the same bytes until there is an answer, which is kept: whether it was applied. first: nobody has sent them yet. */
    static boolean settle(String id, String body, boolean first) throws IOException, InterruptedException {
        for (long growingMs = 100;; growingMs = Math.min(2 * growingMs, 10000), first = false) {
            String failure;
            long pauseMs = growingMs;
            try {
                HttpResponse<String> answer = post("/api/v1/casino/wallet", body);
                failure = answer.statusCode() + " " + answer.body();
                pauseMs = pauseMs(answer, growingMs);
                int status = answer.statusCode();
                if (DECIDES.matcher(failure).find() || first && failure.contains("\"player_not_found\"")) {
                    note("done", id, failure);
                    System.out.println(failure);
                    return status == 200;
                }
                if (status >= 400 && status < 500 && status != 408 && status != 429)
                    refuse(answer); // of the key, the address or the HTTP: the operation stays in the journal, applied before or not
            } catch (IOException failed) {
                failure = failed.toString();
            }
            System.err.println("no answer yet (" + failure + "); the same again");
            Thread.sleep(pauseMs);
        }
    }

    /** What a command takes. A stake names its game and round, and so does its win, which also names the stake's transaction_id.
     * A DEBIT that names neither game nor round is money out: a blocked player's is not refused. */
    static final List<String> NAMES = List.of("player_id", "amount_minor", "currency", "game_id", "round_id", "reference_transaction_id");
    static final Map<String, Integer> TAKES = Map.of("poll", 3, "launch", 3, "settle", 0, "deposit", 3, "withdraw", 3, "bet", 5, "win", 6);

    static boolean move(String[] words) throws IOException, InterruptedException {
        String id = UUID.randomUUID().toString();
        StringBuilder body = new StringBuilder(String.format("{\"operation\":\"%s\",\"transaction_id\":\"%s\"",
                words[0].equals("bet") || words[0].equals("withdraw") ? "DEBIT" : "CREDIT", id));
        for (int at = 1; at < words.length; at++)
            body.append(String.format(",\"%s\":%s", NAMES.get(at - 1), at == 2 ? Long.valueOf(words[at]) : quoted(words[at])));
        note("send", id, body.append('}').toString());
        return settle(id, body.toString(), true);
    }

    public static void main(String[] words) throws IOException, InterruptedException {
        Thread.setDefaultUncaughtExceptionHandler((thread, failed) -> fail("with the server " + BASE + " or the journal: " + failed));
        String command = words.length == 0 ? "" : words[0];
        boolean applied = true;
        if (KEY.isEmpty())
            fail("set KEY to the key that the operator gave you (crk_…)");
        boolean moves = !List.of("poll", "launch", "settle").contains(command);
        boolean right = words.length == 1 + TAKES.getOrDefault(command, words.length);
        if (!right || (moves || command.equals("poll")) && !words[moves ? 2 : 3].matches("[0-9]{1,13}")) { // amounts go to 10^12
            System.err.println("Customer poll SPORT EVENT CHANGES | launch GAME REFERENCE CURRENCY | "
                    + "deposit|withdraw PLAYER AMOUNT_MINOR CURRENCY | bet PLAYER AMOUNT_MINOR CURRENCY GAME ROUND | "
                    + "win PLAYER AMOUNT_MINOR CURRENCY GAME ROUND BET | settle; an amount is in digits: 250 is 2.50 EUR");
            System.exit(2);
        }
        if (moves || command.equals("settle"))
            for (Map.Entry<String, String> open : unanswered().entrySet()) // first what was left open
                applied &= settle(open.getKey(), open.getValue(), false);
        if (moves) {
            applied &= move(words);
        } else if (command.equals("poll")) {
            poll(words[1], words[2], Long.parseLong(words[3]));
        } else if (command.equals("launch")) {
            HttpResponse<String> answer = post("/api/v1/casino/games/" + words[1] + "/launch", String.format(
                    "{\"mode\":\"real\",\"player_reference\":%s,\"currency\":%s}", quoted(words[2]), quoted(words[3])));
            if (answer.statusCode() != 200)
                refuse(answer);
            System.out.println(answer.body());
        }
        System.exit(applied ? 0 : 1);
    }
}
