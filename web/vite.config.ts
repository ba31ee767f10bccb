import { defineConfig } from "vite";

// The names of the files are always the same, so that the repository keeps few of them. The server puts the hash of all in the place of `_`.
/** Nothing is painted before the script has chosen the theme, where browsers know how to wait. */
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
