// Customer, whose polls are answered with the difference from the body before (RFC 9842, dcz). It
// needs a library; Customer alone needs none, and its polls are answered in gzip.

import com.github.luben.zstd.ZstdInputStream;
import java.io.*;
import java.net.URI;
import java.net.http.*;
import java.net.http.HttpResponse.BodySubscribers;
import java.nio.charset.StandardCharsets;
import java.security.*;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;

public final class Differences {
    static final byte[] MAGIC = {0x5e, '*', 'M', 0x18, ' ', 0, 0, 0};
    static final Map<URI, byte[]> HELD = new ConcurrentHashMap<>(); // the last body of each address

    static byte[] digest(byte[] body) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(body);
        } catch (NoSuchAlgorithmException never) {
            throw new IllegalStateException(never);
        }
    }

    static HttpResponse<String> ask(HttpRequest.Builder poll) throws IOException, InterruptedException {
        URI address = poll.setHeader("Accept-Encoding", "gzip, dcz").build().uri();
        byte[] before = HELD.remove(address); // where the difference is damaged, the next answer is whole
        if (before != null)
            poll.setHeader("Available-Dictionary", ":" + Base64.getEncoder().encodeToString(digest(before)) + ":");
        HttpResponse<String> answer = Customer.CLIENT.send(poll.build(),
                info -> BodySubscribers.mapping(BodySubscribers.ofByteArray(), body -> decoded(info, body, before)));
        if (answer.statusCode() == 200)
            HELD.put(address, answer.body().getBytes(StandardCharsets.UTF_8));
        else if (before != null)
            HELD.put(address, before);
        return answer;
    }

    /** The body of an answer. A difference begins with the digest of the body that it is from. */
    static String decoded(HttpResponse.ResponseInfo info, byte[] body, byte[] before) {
        if (!info.headers().firstValue("Content-Encoding").orElse("").equals("dcz"))
            return Customer.decoded(info, body);
        try (InputStream answer = new ByteArrayInputStream(body)) {
            if (before == null || !Arrays.equals(answer.readNBytes(8), MAGIC) || !Arrays.equals(answer.readNBytes(32), digest(before)))
                throw new IOException("a difference from another body");
            try (InputStream difference = new ZstdInputStream(answer).setDict(before)) {
                return new String(difference.readAllBytes(), StandardCharsets.UTF_8);
            }
        } catch (IOException damaged) {
            throw new UncheckedIOException(damaged);
        }
    }

    public static void main(String[] words) throws Exception {
        Customer.poller = Differences::ask;
        Customer.main(words);
    }
}
