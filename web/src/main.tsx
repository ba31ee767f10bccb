import { render } from "preact";
import "./style.css";
import { followLinks } from "./lib/router";
import { App } from "./App";

followLinks();
render(<App />, document.getElementById("page")!);
