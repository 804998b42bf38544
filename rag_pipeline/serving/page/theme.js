// Runs before anything is painted, so that a page that was set to dark does not flash in white.
(() => {
  const chosen = (() => {
    try {
      return localStorage.getItem("rag-theme");
    } catch {
      return null; // storage may be forbidden
    }
  })();
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
