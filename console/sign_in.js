// The one page without a session. A link holds a secret that is good once and is in the address's
// fragment, which browsers send to no server; it is taken out of the address at once.
import { post } from "./api.js";
import { fill, h, newId } from "./dom.js";
import { problem } from "./parts.js";

export async function signInPage(link, welcome) {
    const main = h("main", { class: "alone" }, h("h1", { tabindex: -1 }, "croupier"));
    const said = h("div");
    document.title = "Sign in · croupier";
    history.replaceState(null, "", "#/sign-in");
    main.append(said, explanation(said, welcome));
    fill(document.body, main);
    if (link) {
        await signIn(link, said, welcome);
    }
}

async function signIn(link, said, welcome) {
    fill(said, h("p", { role: "status" }, "Signing in…"));
    try {
        welcome(await post("session", { link }));
    } catch (error) {
        fill(said, problem(error));
    }
}

function explanation(said, welcome) {
    const id = newId();
    const field = h("input", { id, type: "text", autocomplete: "off", spellcheck: "false", placeholder: "https://…/#/sign-in/lnk_…" });
    return h("form", { novalidate: true, onsubmit: (event) => {
        event.preventDefault();
        const secret = /lnk_[0-9A-Za-z]+/.exec(field.value);
        if (secret === null) {
            fill(said, problem({ message: "There is no sign-in link in this." }));
            field.focus();
        } else {
            signIn(secret[0], said, welcome);
        }
    } }, h("p", null, "You sign in with a link that works once. An owner makes one on the page Operators, or the server's administrator with"),
    h("p", null, h("code", null, "croupier operator link NAME")),
    h("div", { class: "field" }, h("label", { for: id, class: "name" }, "Your link"), h("div", null, field)),
    h("div", { class: "buttons" }, h("button", { class: "main" }, "Sign in")));
}
