// The switch between the colours of the system, light and dark.

const ORDER = ["system", "light", "dark"];
const KEY = "cenote-theme";

export function startTheme(button) {
  let theme = remembered();
  const apply = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  button.addEventListener("click", () => {
    theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length];
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    apply();
  });
  apply();
}

function remembered() {
  try {
    const theme = localStorage.getItem(KEY);
    return ORDER.includes(theme) ? theme : "system";
  } catch {
    return "system";
  }
}
