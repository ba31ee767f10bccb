//! Line charts as SVG.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 26.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;
/// The maximum number of points that get marks.
const MAX_MARKS: usize = 61;
/// The colours that the page defines.
const COLOURS: usize = 7;

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum AxisScale {
    /// Linear, from 0 to this value.
    Linear(f64),
    /// Logarithmic, from the first value to the second.
    Log(f64, f64),
}

/// An axis.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// The label, with the unit.
    pub(crate) label: &'static str,
    /// The scale.
    pub(crate) scale: AxisScale,
    /// The labelled values and their labels.
    pub(crate) ticks: Vec<(f64, String)>,
}

/// A line.
#[derive(Debug, Clone)]
pub(crate) struct ChartLine {
    /// Its name.
    pub(crate) name: String,
    /// The number of its colour.
    pub(crate) colour: usize,
    /// Whether it is dashed.
    pub(crate) is_dashed: bool,
    /// Its points. Values that are not finite interrupt the line.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A chart.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    /// The title.
    pub(crate) title: &'static str,
    /// The horizontal axis.
    pub(crate) x: Axis,
    /// The vertical axis.
    pub(crate) y: Axis,
    /// The lines.
    pub(crate) lines: Vec<ChartLine>,
    /// A marked value of the horizontal axis, and its name.
    pub(crate) mark: Option<(f64, String)>,
}

impl AxisScale {
    /// The place of a value on the axis: 0 at the beginning, 1 at the end.
    fn place(self, value: f64) -> f64 {
        let place = match self {
            Self::Linear(end) => value / end,
            Self::Log(from, to) => (value.max(from) / from).ln() / (to / from).ln(),
        };
        place.clamp(0.0, 1.0)
    }
}

impl Axis {
    /// An axis that begins at 0, with about five ticks.
    pub(crate) fn linear(label: &'static str, max: f64) -> Self {
        let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
        let power = 10f64.powf((max / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| max / step <= 5.5).unwrap_or(max);
        let count = (max / step).ceil();
        let values =
            std::iter::successors(Some(0.0), |value| Some(value + step)).take_while(|value| *value <= (count + 0.5) * step);
        Self { label, scale: AxisScale::Linear(count * step), ticks: values.map(|value| (value, number(value))).collect() }
    }

    /// An axis of whole decades that covers these values.
    pub(crate) fn log(label: &'static str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (0.1, 1.0) } else { (low, high) };
        let from = 10f64.powf(low.log10().floor());
        let to = 10f64.powf(high.log10().ceil()).max(from * 10.0);
        let decades = std::iter::successors(Some(from), |value| Some(value * 10.0)).take_while(|value| *value <= to * 1.01);
        // A single decade needs labels between its ends.
        let factors: &[f64] = if to <= from * 10.01 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let values = decades.flat_map(|decade| factors.iter().map(move |factor| decade * factor));
        let ticks = values.filter(|value| *value <= to * 1.01).map(|value| (value, number(value))).collect();
        Self { label, scale: AxisScale::Log(from, to), ticks }
    }

    /// The axis of percentiles: each further nine has the same length.
    pub(crate) fn percentiles(highest: f64) -> Self {
        let all = [(1.0, "0"), (2.0, "50"), (10.0, "90"), (100.0, "99"), (1e3, "99.9"), (1e4, "99.99"), (1e5, "99.999")];
        let ticks =
            all.into_iter().filter(|(value, _)| *value <= highest.max(10.0)).map(|(value, name)| (value, name.to_owned()));
        Self { label: "percentile of requests", scale: AxisScale::Log(1.0, highest.max(10.0)), ticks: ticks.collect() }
    }
}

/// A number in its shortest form.
pub(crate) fn number(value: f64) -> String {
    let short = |value: f64| {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match value.abs() {
        size if size >= 1e6 => format!("{}M", short(value / 1e6)),
        size if size >= 1e4 => format!("{}k", short(value / 1e3)),
        _ => short(value),
    }
}

/// Text as HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Chart {
    /// Writes the chart with its title and the names of its lines.
    pub(crate) fn write(&self, page: &mut String) {
        let _ = write!(page, "<figure><figcaption>{}</figcaption>", escaped(self.title));
        self.write_legend(page);
        let label = escaped(self.title);
        let _ = write!(page, "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{label}\">");
        self.write_axes(page);
        if let Some((value, name)) = &self.mark {
            let x = self.x_of(*value);
            let (anchor, at) = if x > WIDTH / 2.0 { ("end", x - 5.0) } else { ("start", x + 5.0) };
            let _ = write!(
                page,
                "<path class=\"mark\" d=\"M{x:.1} {TOP}V{:.1}\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                HEIGHT - BOTTOM,
                TOP + 10.0,
                escaped(name)
            );
        }
        self.lines.iter().for_each(|line| self.write_line(line, page));
        page.push_str("</svg></figure>\n");
    }

    fn write_legend(&self, page: &mut String) {
        page.push_str("<p class=\"legend\">");
        for line in &self.lines {
            let dash = if line.is_dashed { " dashed" } else { "" };
            let _ = write!(page, "<span class=\"c{}{dash}\"><i></i>{}</span>", line.colour % COLOURS, escaped(&line.name));
        }
        page.push_str("</p>");
    }

    fn x_of(&self, value: f64) -> f64 {
        LEFT + self.x.scale.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y_of(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.scale.place(value) * (HEIGHT - TOP - BOTTOM)
    }

    fn write_axes(&self, page: &mut String) {
        for (value, name) in &self.y.ticks {
            let y = self.y_of(*value);
            let _ = write!(
                page,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
                WIDTH - RIGHT,
                LEFT - 7.0,
                y + 4.0
            );
        }
        for (value, name) in &self.x.ticks {
            let x = self.x_of(*value);
            let _ = write!(
                page,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{:.1}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
                HEIGHT - BOTTOM,
                HEIGHT - BOTTOM + 16.0
            );
        }
        let middle = TOP + (HEIGHT - TOP - BOTTOM) / 2.0;
        let _ = write!(
            page,
            "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <text class=\"label\" transform=\"translate(13 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            WIDTH - RIGHT,
            HEIGHT - 8.0,
            escaped(self.x.label),
            escaped(self.y.label)
        );
    }

    fn write_line(&self, line: &ChartLine, page: &mut String) {
        let mut path = String::new();
        let mut marks = String::new();
        let mut command = 'M';
        for (x, y) in &line.points {
            if !x.is_finite() || !y.is_finite() {
                command = 'M';
                continue;
            }
            let (at_x, at_y) = (self.x_of(*x), self.y_of(*y));
            let _ = write!(path, "{command}{at_x:.1} {at_y:.1}");
            command = 'L';
            if line.points.len() <= MAX_MARKS {
                let title = format!("{}: {}", escaped(&line.name), number(*y));
                let _ = write!(marks, "<circle cx=\"{at_x:.1}\" cy=\"{at_y:.1}\" r=\"2.5\"><title>{title}</title></circle>");
            }
        }
        let dash = if line.is_dashed { " dashed" } else { "" };
        let _ = write!(page, "<g class=\"line c{}{dash}\"><path d=\"{path}\"/>{marks}</g>", line.colour % COLOURS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn axes_hold_their_values() {
        assert_eq!(values(&Axis::linear("", 43_210.0)), ["0", "10k", "20k", "30k", "40k", "50k"]);
        assert_eq!(values(&Axis::linear("", 7.0)), ["0", "2", "4", "6", "8"]);
        assert_eq!(Axis::linear("", 0.0).scale, AxisScale::Linear(1.0));
        assert_eq!(Axis::linear("", f64::NAN).scale, AxisScale::Linear(1.0));
        assert_eq!(values(&Axis::log("", [0.3, f64::NAN, 250.0, 0.0].into_iter())), ["0.1", "1", "10", "100", "1000"]);
        assert_eq!(values(&Axis::log("", std::iter::empty())), ["0.1", "0.2", "0.5", "1"]);
        assert_eq!(values(&Axis::percentiles(2_000.0)), ["0", "50", "90", "99", "99.9"]);
    }

    #[test]
    fn a_chart_is_svg_with_its_names_escaped() {
        let chart = Chart {
            title: "Latency <now>",
            x: Axis::linear("seconds", 10.0),
            y: Axis::log("ms", [1.0, 10.0].into_iter()),
            lines: vec![ChartLine {
                name: "a & b".into(),
                colour: 9,
                is_dashed: true,
                points: vec![(0.0, 1.0), (5.0, f64::NAN), (10.0, 10.0)],
            }],
            mark: Some((5.0, "knee".into())),
        };
        let mut page = String::new();
        chart.write(&mut page);
        assert!(page.contains("Latency &lt;now&gt;") && page.contains("a &amp; b") && page.contains("knee"), "{page}");
        // The gap begins a new part of the line.
        assert!(page.contains("<path d=\"M64.0 256.0M734.0 12.0\"/>"), "{page}");
        assert!(!page.contains("NaN"), "{page}");
        assert!(page.contains("class=\"line c2 dashed\""), "{page}");
    }
}
