import { defineConfig } from "vite";

// The names of the files are always the same, so that the repository keeps few of them. The server puts the hash of all in the place of `_`.
export default defineConfig({
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
  css: { modules: { generateScopedName: "[name]_[local]" } },
});
