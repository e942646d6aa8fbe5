// Keeps the live part of a page up to date: on each recorded event that concerns it, the server renders it again.
const part = document.querySelector("[data-live]");

if (part) {
  const wanted = part.dataset.live;
  let waiting = false;
  let again = false;

  const renew = async () => {
    if (waiting) {
      again = true;
      return;
    }
    waiting = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-cache" });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-live]");
      if (answer.ok && fresh) {
        part.replaceChildren(...fresh.childNodes);
        part.dataset.renewed = String(Number(part.dataset.renewed || 0) + 1);
      }
    } finally {
      waiting = false;
    }
    if (again) {
      again = false;
      await renew();
    }
  };

  const source = new EventSource(`/api/v1/events?after=${part.dataset.after}`);
  source.addEventListener("recorded", (message) => {
    const event = JSON.parse(message.data);
    if (wanted === "all" || event.run === wanted || (event.payload && event.payload.run_id === wanted)) {
      renew();
    }
  });
}
