import { render } from "preact";
import "./style.css";
import { followLinks } from "./lib/router";
import { restoreTheme } from "./lib/theme";
import { App } from "./App";

restoreTheme();
followLinks();
render(<App />, document.getElementById("page")!);
