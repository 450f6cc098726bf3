// The button for files is named by the text in it, also where gradio draws it again.
() => {
  const name = () => document.querySelector("#upload button[aria-label]")?.removeAttribute("aria-label");
  new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
  name();
}
