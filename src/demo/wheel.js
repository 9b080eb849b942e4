// The wheel of the demo's provider (wheel.c): a round is a POST to the page's own address.
"use strict";

const wheel = document.getElementById("wheel");

if (wheel) {
  const pays = wheel.dataset.pays.split(" ");
  const bet = document.getElementById("bet");
  const said = document.getElementById("said");
  const button = bet.querySelector("button");
  const degrees = 360 / pays.length;
  let turns = 0;

  pays.forEach((pay, at) => {
    const label = document.createElement("span");
    label.textContent = pay + "\u00d7";
    label.style.transform = `rotate(${at * degrees}deg)`;
    wheel.append(label);
  });

  const say = (text, refused) => {
    said.textContent = text;
    said.className = refused ? "refused" : "";
  };

  const spinTo = (sector) => new Promise((over) => {
    turns += 4;
    wheel.style.transform = `rotate(${turns * 360 - sector * degrees}deg)`;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    setTimeout(over, still ? 0 : 3000);
  });

  const play = async () => {
    const answer = await fetch(location.href, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ stake_minor: Number(document.getElementById("stake").value) }),
    });
    const round = await answer.json();
    if (!answer.ok) {
      say(`Refused: ${round.message} (${round.error})`, true);
      return;
    }
    await spinTo(round.sector);
    say(round.won_minor === 0 ? "Nothing this time." : `It pays ${pays[round.sector]} times the stake.`);
    if (round.balance) {
      document.getElementById("balance").textContent = round.balance;
    }
  };

  bet.addEventListener("submit", async (event) => {
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
}
