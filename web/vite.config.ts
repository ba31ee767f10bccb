import { defineConfig } from "vite";

// Stable file names keep the repository small. The server replaces `_` with a hash of all files.
/** Delays painting until the script has applied the theme, so the page never flashes. */
const waitForTheme = {
  name: "wait-for-theme",
  transformIndexHtml: { order: "post" as const, handler: (html: string) => html.replace('<script type="module"', '<script type="module" blocking="render"') },
};

export default defineConfig({
  plugins: [waitForTheme],
  base: "/assets/_/",
  build: {
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    rollupOptions: {
      output: { entryFileNames: "app.js", chunkFileNames: "[name].js", assetFileNames: "app[extname]" },
    },
  },
  css: { modules: { generateScopedName: (name, file) => `${file.replace(/^.*\/|\.module\.css$/g, "")}_${name}` } },
});
