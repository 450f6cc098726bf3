// The button for files is named by the text in it, also where gradio draws it again; a result that
// appears below the window is scrolled to.
() => {
  let last = null;
  const look = () => {
    document.querySelector("#upload button[aria-label]")?.removeAttribute("aria-label");
    const result = document.querySelector("#report iframe");
    if (result && result !== last) result.closest("#result").scrollIntoView();
    last = result;
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  look();
}
