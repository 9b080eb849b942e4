// Every request of the console goes through here.

/** What the server refused. `field` names the field that is wrong, when one is. */
export class ApiError extends Error {
    constructor(status, error, retryAfter) {
        super(error.message ?? "The server answered in a way that this page does not know.");
        Object.assign(this, { status, retryAfter, code: error.code ?? "unknown", field: error.field ?? null,
            fields: error.fields ?? null, line: error.line ?? null, changedBy: error.changed_by ?? null, changedAt: error.changed_at ?? null });
    }
}

const tags = new WeakMap();
/** The entity tag that an object came with, for If-Match. */
export const tagOf = (data) => tags.get(data) ?? null;

let signedOut = () => {};
/** What is done when a session is over. */
export function onSignedOut(callback) {
    signedOut = callback;
}

export function url(path, query) {
    const text = new URLSearchParams(Object.entries(query ?? {}).filter(([, value]) =>
        value !== null && value !== undefined && value !== "")).toString();
    return `/admin/v1/${path}${text ? `?${text}` : ""}`;
}

function readJson(text) {
    try {
        return JSON.parse(text);
    } catch {
        return null;
    }
}

const UNREACHABLE = { code: "unreachable", message: "The server does not answer." };
const UNANSWERED = { code: "unanswered", message: "No answer came. It may have been done: look before you try again." };
const ANSWER_SECONDS = 8; // of a server that is alive, beside what it is asked to wait
const LIVE_SECONDS = 8; // without an answer what is shown counts as old; every page asks for the health every 5 s
let answered = Date.now();

/** For how many seconds the server has not answered; 0: what is shown is live. */
export function silence() {
    const seconds = Math.floor((Date.now() - answered) / 1000);
    return seconds <= LIVE_SECONDS ? 0 : seconds;
}

/** Sends a request. `options`: query, body (an object), text (a body that is JSON already), match (If-Match), known (the
 *  tag of what is at hand: then null is answered for a 304), wait (for how many seconds the server may wait for something
 *  else than that), signal. Answers {data, text, tag}; throws ApiError. */
export async function api(method, path, { query, body, text, match, known, wait, signal } = {}) {
    const headers = { Accept: "application/json" };
    const sent = text ?? (body === undefined ? undefined : JSON.stringify(body));
    if (sent !== undefined) {
        headers["Content-Type"] = "application/json";
    }
    if (match) {
        headers["If-Match"] = match;
    }
    if (known) {
        headers["If-None-Match"] = known;
        if (wait) {
            headers.Prefer = `wait=${wait}`;
        }
    }
    let response;
    let received;
    try {
        const limit = AbortSignal.timeout(1000 * (ANSWER_SECONDS + (wait ?? 0)));
        response = await fetch(url(path, query), { method, headers, body: sent, cache: "no-store",
            signal: signal ? AbortSignal.any([signal, limit]) : limit });
        received = await response.text();
    } catch (error) {
        if (signal?.aborted) {
            throw error;
        }
        throw new ApiError(0, method === "GET" ? UNREACHABLE : UNANSWERED);
    }
    answered = Date.now();
    if (response.status === 304) {
        return null;
    }
    const data = received === "" ? null : readJson(received);
    if (!response.ok) {
        if (response.status === 401 && path !== "session") {
            signedOut();
        }
        const error = typeof data?.error === "object" ? data.error : { code: data?.error, message: data?.message };
        throw new ApiError(response.status, error ?? {}, response.headers.get("Retry-After"));
    }
    const tag = response.headers.get("ETag");
    if (data !== null && tag !== null) {
        tags.set(data, tag);
    }
    return { data, text: received, tag };
}

export const get = async (path, query, signal) => (await api("GET", path, { query, signal })).data;
export const post = async (path, body) => (await api("POST", path, { body })).data;
export const remove = async (path) => (await api("DELETE", path)).data;
/** `was`: the object as it was shown, so that nobody's change is written over unseen. */
export const patch = async (path, body, was) => (await api("PATCH", path, { body, match: tagOf(was) })).data;
export const put = async (path, body) => (await api("PUT", path, { body })).data;

/** The metrics of this process, by name and labels: "process_max_fds", "croupier_store_disk_free_bytes{store=\"odds\"}". */
export async function metrics(signal) {
    const limit = AbortSignal.timeout(1000 * ANSWER_SECONDS);
    const text = await fetch("/metrics", { cache: "no-store", signal: AbortSignal.any([signal, limit]) }).then((response) => response.text()).catch((error) => {
        throw signal.aborted ? error : new ApiError(0, UNREACHABLE);
    });
    const rows = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    return new Map(rows.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
}
