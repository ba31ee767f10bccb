//! The report as a self-contained HTML page without scripts.

use std::fmt::Write;

use super::chart::{Axis, Chart, ChartLine, escaped, number};
use super::crowd::{IdleCounts, StreamCounts};
use super::mix::RequestKind;
use super::report::{KindReport, LoadReport, PointReport, QUANTILES};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1d2129;--soft:#5b6472;--grid:#e3e6eb;--back:#fff;--card:#f6f7f9;--bad:#b3261e;--good:#1b6e3c;\
--c0:#2457c5;--c1:#b3541e;--c2:#1b7a43;--c3:#8a2fa8;--c4:#0c7d8c;--c5:#7a6a00;--c6:#4a5568}\
@media(prefers-color-scheme:dark){:root{--ink:#e8eaee;--soft:#a2abb8;--grid:#30353d;--back:#14171b;--card:#1d2126;--bad:#ff8a80;\
--good:#7bd39b;--c0:#7da7ff;--c1:#ffab70;--c2:#6fd08f;--c3:#d79bf0;--c4:#62cfdd;--c5:#d9c24a;--c6:#a9b4c4}}\
*{box-sizing:border-box}\
body{margin:0 auto;max-width:860px;padding:24px 20px 48px;background:var(--back);color:var(--ink);\
font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}\
h1{font-size:22px;margin:0}h2{font-size:16px;margin:32px 0 8px}p{margin:4px 0}.soft{color:var(--soft)}\
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(120px,1fr));gap:10px;margin:18px 0}\
.tiles div{background:var(--card);border-radius:8px;padding:10px 12px}.tiles b{display:block;font-size:20px}\
.tiles span{color:var(--soft);font-size:13px}.bad{color:var(--bad)}.good{color:var(--good)}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}\
th,td{text-align:right;padding:5px 6px;border-bottom:1px solid var(--grid);white-space:nowrap}\
th:first-child,td:first-child,td.text{text-align:left}th{color:var(--soft);font-weight:500}\
figure{margin:26px 0 0}figcaption{font-weight:600}svg{width:100%;height:auto;display:block}\
svg text{fill:var(--soft);font-size:12px}.grid{stroke:var(--grid);fill:none}.mark{stroke:var(--ink);stroke-dasharray:3 3;fill:none}\
.line path{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}.line.dashed path{stroke-dasharray:5 4}\
.line circle{fill:var(--c)}.legend{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px;color:var(--soft)}\
.legend i{display:inline-block;width:22px;border-top:3px solid var(--c);margin-right:6px;vertical-align:middle}\
.legend .dashed i{border-top-style:dashed}\
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}.c6{--c:var(--c6)}";

/// Writes the page.
pub(crate) fn page(report: &LoadReport, at: &str) -> String {
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>headcount-load</title>\n",
    );
    let _ = write!(page, "<style>{STYLE}</style></head><body>\n<h1>headcount-load</h1>\n");
    let _ = writeln!(page, "<p class=\"soft\">{}, {:.1} s, {}</p>", escaped(&report.headline()), report.seconds, escaped(at));
    let settings = &report.settings;
    let _ = writeln!(
        page,
        "<p class=\"soft\">version {}, mix {}, events of a batch: {}, users: {}, duplicates: {} %, sending threads: {}</p>",
        escaped(&settings.version),
        escaped(&settings.mix),
        settings.batch,
        settings.users,
        settings.duplicates,
        settings.threads
    );
    if let Some(ramp) = &report.ramp {
        let knee = ramp.knee.map_or_else(|| "no step was sustained".to_owned(), |knee| format!("{} requests/s", number(knee)));
        let _ = writeln!(
            page,
            "<p>Knee of the ramp: <b>{knee}</b>. The figures are from {}.</p>",
            if ramp.knee.is_some() { "that step" } else { "the first step" }
        );
    }
    if let Some(why) = &report.ended_early {
        let _ = writeln!(page, "<p class=\"bad\">Ended early: {}</p>", escaped(why));
    }
    write_tiles(report, &mut page);
    write_kinds(report, &mut page);
    write_ramp(report, &mut page);
    percentile_chart(report).write(&mut page);
    if whole_points(report) > 1 {
        latency_chart(report).write(&mut page);
        rate_chart(report).write(&mut page);
    }
    write_rest(report, &mut page);
    page.push_str("</body></html>\n");
    page
}

fn write_tiles(report: &LoadReport, page: &mut String) {
    let all = &report.all;
    let mut tiles = vec![(number(all.requests_per_second.round()), "requests/s", "")];
    if all.events_per_second > 0.0 {
        tiles.push((number(all.events_per_second.round()), "events/s", ""));
    }
    tiles.push((format!("{:.2} ms", all.latency("p50")), "median", ""));
    tiles.push((format!("{:.2} ms", all.latency("p99")), "p99", ""));
    let failed = all.failed() * 100.0;
    tiles.push((format!("{} %", number(failed)), "failed", if failed > 0.0 { "bad" } else { "" }));
    if let Some(verified) = &report.verified {
        let (text, class) = if verified.agrees { ("as sent", "good") } else { ("not as sent", "bad") };
        tiles.push((text.to_owned(), "the server counted", class));
    }
    page.push_str("<div class=\"tiles\">");
    for (value, name, class) in tiles {
        let _ = write!(page, "<div><b class=\"{class}\">{value}</b><span>{name}</span></div>");
    }
    page.push_str("</div>\n");
}

fn write_kinds(report: &LoadReport, page: &mut String) {
    page.push_str("<div class=\"wide\"><table><tr><th>kind</th><th>requests/s</th><th>events/s</th>");
    let columns = || QUANTILES.iter().map(|(name, _)| *name).filter(|name| *name != "p95").chain(["max"]);
    columns().for_each(|name| page.push_str(&format!("<th>{name} ms</th>")));
    page.push_str("<th>failed</th></tr>\n");
    let mut row = |name: &str, kind: &KindReport| {
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{:.0}</td><td>{:.0}</td>",
            escaped(name),
            kind.requests_per_second,
            kind.events_per_second
        );
        for name in columns() {
            let _ = write!(page, "<td>{:.2}</td>", kind.latency(name));
        }
        let _ = writeln!(page, "<td>{} %</td></tr>", number(kind.failed() * 100.0));
    };
    report.kinds.iter().for_each(|(name, kind)| row(name, kind));
    if report.kinds.len() > 1 {
        row("all of the load", &report.all);
    }
    page.push_str("</table></div>\n");
}

fn colour(name: &str) -> usize {
    RequestKind::ALL.iter().position(|kind| kind.name() == name).unwrap_or(0)
}

fn percentile_chart(report: &LoadReport) -> Chart {
    let lines: Vec<ChartLine> = report
        .kinds
        .iter()
        .map(|(name, kind)| {
            let last = kind.percentiles.iter().map(|(share, _)| *share).filter(|share| *share < 1.0).fold(0.0, f64::max);
            // One request of all gives the distance of the maximum from the last percentile.
            let end = (1.0 / (1.0 - last)) * 1.3;
            let place = |share: f64| if share >= 1.0 { end } else { 1.0 / (1.0 - share) };
            let points = kind.percentiles.iter().map(|(share, ms)| (place(*share), *ms)).collect();
            ChartLine { name: name.clone(), colour: colour(name), is_dashed: false, points }
        })
        .collect();
    let values = || lines.iter().flat_map(|line| line.points.iter());
    let highest = values().map(|(x, _)| *x).fold(10.0, f64::max);
    let y = Axis::log("latency, ms", values().map(|(_, y)| *y));
    Chart { title: "Latency by percentile", x: Axis::percentiles(highest), y, lines, mark: None }
}

/// The lines of each kind over time.
fn over_time(report: &LoadReport, name_of: &str, is_dashed: bool, of: impl Fn(&PointReport) -> f64) -> Vec<ChartLine> {
    let time = &report.over_time;
    let line = |kind: &String| {
        let points = time.points.iter().take(whole_points(report)).zip(0u32..).map(|(point, at)| {
            let seconds = f64::from(at + 1) * f64::from(u32::try_from(time.seconds).unwrap_or(1));
            (seconds, point.get(kind).map_or(f64::NAN, &of))
        });
        ChartLine { name: format!("{kind}{name_of}"), colour: colour(kind), is_dashed, points: points.collect() }
    };
    let lines = report.kinds.keys().map(line);
    // Idle connections may send requests only at the end.
    lines.filter(|line| line.points.iter().any(|(_, y)| y.is_finite())).collect()
}

/// The number of points of complete intervals. Later points have only late answers.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a run")]
fn whole_points(report: &LoadReport) -> usize {
    let whole = (report.seconds as u64 / report.over_time.seconds.max(1)).max(1);
    usize::try_from(whole).unwrap_or(usize::MAX).min(report.over_time.points.len())
}

fn time_axis(report: &LoadReport) -> Axis {
    let points = u32::try_from(whole_points(report)).unwrap_or(1);
    Axis::linear("seconds", f64::from(points) * f64::from(u32::try_from(report.over_time.seconds).unwrap_or(1)))
}

fn latency_chart(report: &LoadReport) -> Chart {
    let mut lines = over_time(report, " p99", false, |point| point.p99_ms);
    lines.extend(over_time(report, " p50", true, |point| point.p50_ms));
    let y = Axis::log("latency, ms", lines.iter().flat_map(|line| line.points.iter().map(|(_, y)| *y)));
    Chart { title: "Latency over time", x: time_axis(report), y, lines, mark: None }
}

fn rate_chart(report: &LoadReport) -> Chart {
    let lines = over_time(report, "", false, |point| point.requests_per_second);
    let values = lines.iter().flat_map(|line| line.points.iter().map(|(_, y)| *y));
    let max = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
    Chart { title: "Requests per second over time", x: time_axis(report), y: Axis::linear("requests/s", max), lines, mark: None }
}

fn write_ramp(report: &LoadReport, page: &mut String) {
    let Some(ramp) = &report.ramp else { return };
    let line = |name: &str, colour, is_dashed, points| ChartLine { name: name.to_owned(), colour, is_dashed, points };
    let lines = vec![
        line("p99", 0, false, ramp.steps.iter().map(|step| (step.target_rate, step.p99_ms)).collect()),
        line("p50", 0, true, ramp.steps.iter().map(|step| (step.target_rate, step.p50_ms)).collect()),
    ];
    let max = ramp.steps.iter().map(|step| step.target_rate).fold(0.0, f64::max);
    let y = Axis::log("latency, ms", lines.iter().flat_map(|line| line.points.iter().map(|(_, y)| *y)));
    let mark = ramp.knee.map(|knee| (knee, format!("knee: {}", number(knee))));
    Chart { title: "Latency by rate", x: Axis::linear("target requests/s", max), y, lines, mark }.write(page);
    page.push_str(
        "<div class=\"wide\"><table><tr><th>target/s</th><th>answered/s</th><th>p50 ms</th><th>p99 ms</th><th></th></tr>\n",
    );
    for step in &ramp.steps {
        let verdict = step.not_sustained.as_deref().map_or("sustained".to_owned(), |why| format!("not sustained: {why}"));
        let _ = writeln!(
            page,
            "<tr><td>{:.0}</td><td>{:.0}</td><td>{:.2}</td><td>{:.2}</td><td class=\"text\">{}</td></tr>",
            step.target_rate,
            step.achieved_rate,
            step.p50_ms,
            step.p99_ms,
            escaped(&verdict)
        );
    }
    page.push_str("</table></div>\n");
}

/// The figures of the text report that no curve shows.
fn write_rest(report: &LoadReport, page: &mut String) {
    page.push_str("<h2>Answers</h2>\n");
    for (name, kind) in &report.kinds {
        let statuses = kind.by_status.iter().map(|(status, count)| format!("{status}: {count}"));
        let failures = kind.failures.iter().map(|(what, count)| format!("{what}: {count}"));
        let all: Vec<String> = statuses.chain(failures).collect();
        let _ = writeln!(page, "<p>{}: {}</p>", escaped(name), escaped(&all.join(", ")));
    }
    for (status, message) in &report.messages {
        let _ = writeln!(page, "<p class=\"bad\">{status}: {}</p>", escaped(message));
    }
    let streams = report.streams.as_ref().map(StreamCounts::describe);
    let idle = report.idle.as_ref().map(IdleCounts::describe);
    let rest = [idle, streams, report.server.as_ref().map(|it| it.describe()), report.verified.as_ref().map(|it| it.describe())];
    for text in rest.into_iter().flatten() {
        let _ = writeln!(page, "<p>{}</p>", escaped(text.trim_end()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ramp::{Ramp, RampStep};
    use crate::verify::Verified;

    fn report() -> LoadReport {
        let kind = KindReport {
            requests: 100,
            by_status: [("202".to_owned(), 100)].into(),
            percentiles: vec![(0.0, 0.5), (0.9, 2.0), (1.0, 40.0)],
            ..KindReport::default()
        };
        let point = PointReport { requests_per_second: 50.0, p50_ms: 1.0, p99_ms: 3.0, failed: 0 };
        let mut report = LoadReport { all: kind.clone(), kinds: [("single".to_owned(), kind)].into(), ..LoadReport::default() };
        report.seconds = 2.3;
        report.over_time.seconds = 1;
        report.over_time.points = vec![[("single".to_owned(), point)].into(); 3];
        report
    }

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let mut report = report();
        report.settings.mix = "<script>".into();
        report.messages.insert(429, "<b>slow</b>".into());
        report.verified = Some(Verified { agrees: false, ..Verified::default() });
        let page = page(&report, "today");
        for outside in ["<script", "http:", "https:", "src=", "href=", "url(", "@import", "<b>slow"] {
            assert!(!page.contains(outside), "{outside}");
        }
        for part in
            ["prefers-color-scheme:dark", "Latency by percentile", "Latency over time", "not as sent", "429: &lt;b&gt;slow"]
        {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("Latency by rate") && !page.contains("NaN"));
        assert_eq!(page.matches("<svg").count(), 3);
        // The third point is only a part of a second: 2 lines of 2 points, 1 of 2, and the
        // percentiles.
        assert_eq!(page.matches("<circle").count(), 4 + 2 + 3);
        for tag in ["div", "svg", "table", "figure", "g", "p", "body", "html"] {
            let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn a_ramp_has_a_curve_with_its_knee() {
        let mut report = report();
        let mut ramp = Ramp::new(None);
        let step = |rate, p99_ms| RampStep {
            target_rate: rate,
            achieved_rate: rate,
            failed: 0.0,
            p50_ms: 1.0,
            p99_ms,
            not_sustained: None,
        };
        ramp.add(step(1_000.0, 2.0));
        ramp.add(step(2_000.0, 200.0));
        report.ramp = Some(ramp);
        let page = page(&report, "today");
        assert!(
            page.contains("Latency by rate")
                && page.contains("knee: 1000")
                && page.contains("<b>1000 requests/s</b>")
                && page.contains("not sustained: p99"),
            "{page}"
        );
    }
}
