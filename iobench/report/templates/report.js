"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);

  // Colours: models carry tags such as "fill_color=c0", which name a custom property of the page.
  const views = [];
  const paint = () => {
    const style = getComputedStyle(root);
    for (const view of views) {
      for (const model of view.model.document.all_models) {
        for (const tag of model.tags || []) {
          const [property, colour] = String(tag).split("=");
          model.setv({ [property]: style.getPropertyValue(`--${colour}`).trim() });
        }
      }
    }
  };

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const themed = () => {
    byId("theme").textContent = isDark() ? "Light" : "Dark";
    paint();
  };
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    themed();
  });
  dark.addEventListener("change", themed);

  // Paper: every chart anew at a width that paper has, as a drawing whose colours are the page's
  // own, which paper makes light; short tables opened.
  const fitsPaper = (details) => {
    const rows = details.querySelectorAll("tr");
    return rows.length <= 120 && rows[0].cells.length <= 14;
  };
  const hex = (colour) => {
    const parts = /^rgba?\((\d+),\s*(\d+),\s*(\d+)/.exec(colour);
    if (!parts) return colour.toLowerCase();
    return "#" + parts.slice(1, 4).map((part) => Number(part).toString(16).padStart(2, "0")).join("");
  };
  const recoloured = (drawing, names) => {
    for (const shape of drawing.querySelectorAll("*")) {
      for (const property of ["fill", "stroke"]) {
        const name = names.get(hex(shape.getAttribute(property) || ""));
        if (name) shape.style[property] = `var(--${name})`;
      }
    }
  };
  const colourNames = () => {
    const style = getComputedStyle(root);
    const names = ["paper", "ink", "quiet", "rule", "grid", "demand", ...Array.from({ length: 8 }, (_, i) => `c${i}`)];
    return new Map(names.map((name) => [hex(style.getPropertyValue(`--${name}`).trim()), name]));
  };
  const drawnForPaper = (view, names) => {
    view.place.style.width = view.place.closest(".wide") ? "800px" : "395px";
    view.after_resize();
    const { width, height } = view.bbox;
    const drawing = view.export("svg", false).ctx.get_svg();
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    drawing.removeAttribute("width");
    drawing.removeAttribute("height");
    drawing.classList.add("paper-only");
    recoloured(drawing, names);
    view.place.append(drawing);
    view.place.style.width = "";
  };
  let before = null;
  const toPaper = () => {
    if (before) return;
    before = [...document.querySelectorAll("details:not([open])")]
      .filter(fitsPaper);
    before.forEach((details) => { details.open = true; });
    const names = colourNames();
    views.forEach((view) => drawnForPaper(view, names));
  };
  const toScreen = () => {
    if (!before) return;
    document.querySelectorAll("svg.paper-only").forEach((drawing) => drawing.remove());
    before.forEach((details) => { details.open = false; });
    before = null;
    views.forEach((view) => view.after_resize());
  };
  window.addEventListener("beforeprint", toPaper);
  window.addEventListener("afterprint", toScreen);

  // Copying: the clipboard is refused to some pages that are opened from a file.
  const copied = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      area.style.cssText = "position:fixed;top:0;left:0;opacity:0";
      document.body.append(area);
      area.select();
      try { return document.execCommand("copy"); } catch { return false; } finally { area.remove(); }
    }
  };
  const say = (button, done) => {
    const words = button.dataset.words || (button.dataset.words = button.textContent);
    button.textContent = done ? "Copied" : "Copying was refused";
    setTimeout(() => { button.textContent = words; }, 1600);
  };
  const flat = (cell) => (cell.dataset.raw ?? cell.firstChild?.textContent ?? "").replace(/[\t\r\n]+/g, " ");
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy, button.copy-code");
    if (!button) return;
    const place = button.closest(".table, .code");
    const rows = button.matches(".copy") ? [...place.querySelectorAll("tr")] : null;
    const text = rows
      ? rows.map((row) => [...row.cells].map(flat).join("\t")).join("\n")
      : place.querySelector("pre").textContent;
    say(button, await copied(text));
  });

  const unpacked = async (element) => {
    if (element.type !== "application/gzip") return element.textContent;
    const bytes = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };
  const offerResult = async () => {
    const raw = JSON.stringify(JSON.parse(await unpacked(byId("result"))), null, 1) + "\n";
    byId("download").href = URL.createObjectURL(new Blob([raw], { type: "application/json" }));
  };
  offerResult();

  const draw = async () => {
    Bokeh.set_log_level("warn");
    for (const item of JSON.parse(await unpacked(byId("charts")))) {
      const manager = await Bokeh.embed.embed_item(item);
      const view = manager.get_by_id(item.root_id);
      view.place = byId(item.target_id);
      view.place.dataset.drawn = "true";
      views.push(view);
    }
    themed();
    root.dataset.ready = "true";
  };
  draw();
})();
