// The wheel of the demo's provider (casino.c): a POST to the page's own address opens the session, or
// plays a round.
"use strict";

const pays = [0, 2, 0, 1, 0, 3, 0, 1, 0, 2]; // what casino.c pays, sector by sector
const stakes = [100, 500, 2500, 10000];
const at = (id) => document.getElementById(id);
const degrees = 360 / pays.length;
let turns = 0;

const say = (text, refused) => {
  at("said").textContent = text;
  at("said").className = refused ? "refused" : "";
};

const post = async (body) => {
  const answer = await fetch(location.href, { method: "POST", body });
  const document = await answer.json();
  if (!answer.ok) {
    say(`Refused: ${document.message} (${document.error})`, true);
  }
  return answer.ok ? document : null;
};

const add = (parent, tag, text) => {
  const made = document.createElement(tag);
  made.textContent = text;
  parent.append(made);
  return made;
};

const amount = (minor, wallet) => {
  const digits = wallet ? wallet.currency_exponent : 0;
  return `${(minor / 10 ** digits).toFixed(digits)} ${wallet ? wallet.currency : ""}`;
};

const showBalance = (session) => {
  at("held").textContent = session.claims.mode !== "real" ? "For fun: no money moves."
    : session.wallet ? "Balance: " : "The balance cannot be read now.";
  if (session.wallet) {
    add(at("held"), "strong", amount(session.wallet.balance_minor, session.wallet)).id = "balance";
  }
};

const nameOf = async (game) => {
  const games = await (await fetch(location.pathname + ".json")).json();
  return (games.find(({ id }) => id === game) || { name: game }).name;
};

const showGame = async (session) => {
  document.title = at("game").textContent = await nameOf(session.claims.game);
  showBalance(session);
  pays.forEach((pay, sector) => {
    add(at("wheel"), "span", `${pay}\u00d7`).style.transform = `rotate(${sector * degrees}deg)`;
  });
  stakes.forEach((minor) => {
    add(at("stake"), "option", amount(minor, session.wallet)).value = minor;
  });
  Object.entries(session.claims).forEach(([name, value]) => {
    const row = add(at("claims"), "tr", "");
    add(row, "th", name);
    add(row, "td", value);
  });
  at("board").hidden = at("token").hidden = false;
};

const spinTo = (sector) => new Promise((over) => {
  turns += 4;
  at("wheel").style.transform = `rotate(${turns * 360 - sector * degrees}deg)`;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  setTimeout(over, still ? 0 : 3000);
});

const play = async () => {
  const round = await post(JSON.stringify({ stake_minor: Number(at("stake").value) }));
  if (round === null) {
    return;
  }
  await spinTo(round.sector);
  say(round.won_minor === 0 ? "Nothing this time." : `It pays ${pays[round.sector]} times the stake.`);
  if (round.wallet) {
    at("balance").textContent = amount(round.wallet.balance_minor, round.wallet);
  }
};

at("bet").addEventListener("submit", async (event) => {
  const button = at("bet").querySelector("button");
  event.preventDefault();
  button.disabled = true;
  say("The wheel spins.");
  try {
    await play();
  } catch {
    say("There was no answer. The balance says whether the stake was taken: load the page again.", true);
  }
  button.disabled = false;
});

(async () => {
  try {
    const session = await post();
    if (session === null) {
      document.title = at("game").textContent = "Not launched";
    } else {
      await showGame(session);
    }
  } catch {
    say("The provider does not answer. Load the page again.", true);
  }
})();
