//! SVG by hand: elements, their escaping, and the colours of subjects in light and dark.

use std::fmt::{Display, Write};

use crate::memtable::{Role, Subject};

/// A picture that is finished.
#[derive(Debug)]
pub(super) struct Plot {
    /// Of its file, without extension.
    pub(super) name: String,
    /// What it shows, for those who do not see it.
    pub(super) title: String,
    width: f64,
    height: f64,
    body: String,
}

impl Plot {
    /// As a file of its own.
    pub(super) fn standalone(&self) -> String {
        let style = format!("<style>{}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>", style("svg"));
        self.element(&format!(" xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\"", self.width), &style)
    }

    /// As part of a page that has [`style`].
    pub(super) fn inline(&self) -> String {
        self.element("", "")
    }

    fn element(&self, attributes: &str, style: &str) -> String {
        let Self { width, height, title, body, .. } = self;
        let title = escaped(title);
        format!(
            "<svg{attributes} viewBox=\"0 0 {width} {height}\" role=\"img\" class=\"plot\" aria-label=\"{title}\">\n\
             {style}{body}</svg>\n"
        )
    }
}

/// A picture being drawn. Coordinates are pixels from the upper left corner.
#[derive(Debug)]
pub(super) struct Canvas {
    width: f64,
    height: f64,
    body: String,
}

/// Where a text is relative to its point.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    pub(super) fn finish(self, name: impl Into<String>, title: impl Into<String>) -> Plot {
        let Self { width, height, body } = self;
        Plot { name: name.into(), title: title.into(), width, height, body }
    }

    // Writing to a string cannot fail.
    fn push(&mut self, element: impl Display) {
        writeln!(self.body, "{element}").ok();
    }

    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.push(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        ));
    }

    pub(super) fn polyline(&mut self, points: &[(f64, f64)], class: &str) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.push(format_args!("<polyline points=\"{}\" class=\"{class}\"/>", points.join(" ")));
    }

    pub(super) fn circle(&mut self, (x, y): (f64, f64), radius: f64, class: &str, title: &str) {
        let title = escaped(title);
        self.push(format_args!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" class=\"{class}\"><title>{title}</title></circle>"
        ));
    }

    pub(super) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str) {
        self.push(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"2\" class=\"{class}\"/>"
        ));
    }
}

/// `text` as it stands between tags and in attributes.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The class that gives a subject its colour.
pub(super) fn class(subject: Subject) -> String {
    format!("s-{}", subject.name())
}

/// How a subject's line is drawn: ours stand out, floors stand back.
pub(super) fn stroke(subject: Subject) -> &'static str {
    match subject.role() {
        Role::Own => "own",
        Role::SkipListPeer | Role::OtherPeer => "peer",
        Role::Floor => "floor",
    }
}

/// Ours are blue and green, skip lists warm, trees olive and amber, floors grey: in light, then in dark.
fn colours(subject: Subject) -> [&'static str; 2] {
    match subject {
        Subject::Memtable => ["#1769e0", "#6cb0ff"],
        Subject::MemtableBatch => ["#0b3f9c", "#a9cfff"],
        Subject::Fastskip => ["#0c9484", "#3ed3bf"],
        Subject::FastskipBatch => ["#07604f", "#8ff0d9"],
        Subject::FastskipPublished => ["#d9480f", "#ff925c"],
        Subject::CrossbeamSkiplist => ["#c2255c", "#ff77a3"],
        Subject::Skl => ["#9c36b5", "#d995ee"],
        Subject::Treeindex => ["#c77700", "#ffbe55"],
        Subject::Btreemap => ["#5c8a0d", "#a9db62"],
        Subject::ShardedBtreemap => ["#8a7a1c", "#d8ca6a"],
        Subject::Hashmap => ["#868e96", "#adb5bd"],
        Subject::Vec => ["#495057", "#dee2e6"],
    }
}

/// Rules for plots inside `root`, in light and dark.
pub(super) fn style(root: &str) -> String {
    let set = |scheme: usize| {
        let subjects = Subject::ALL.map(|subject| format!(".{}{{--c:{}}}", class(subject), colours(subject)[scheme]));
        let [ink, soft, grid, paper] =
            [["#1b1f24", "#59636e", "#dfe3e8", "#ffffff"], ["#e8eaed", "#9aa4af", "#30363d", "#14181d"]][scheme];
        format!("{root}{{--ink:{ink};--soft:{soft};--grid:{grid};--paper:{paper}}}{}", subjects.concat())
    };
    let rules = "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:var(--ink)}\
        .title{font-size:18px;font-weight:650}.axis{font-size:14px;fill:var(--soft)}.label{font-size:14.5px}\
        .strong{font-weight:650}.grid{stroke:var(--grid);stroke-width:1}.base{stroke:var(--soft);stroke-width:1}\
        .paper{fill:var(--paper)}polyline{fill:none;stroke:var(--c)}\
        polyline.own{stroke-width:3}polyline.peer{stroke-width:1.8}polyline.floor{stroke-width:1.6;stroke-dasharray:5 4}\
        circle{fill:var(--c)}.bar{fill:var(--c)}.bar.peer{fill-opacity:.72}.bar.floor{fill-opacity:.5}\
        .leader{stroke:var(--c);stroke-width:1;opacity:.55}.whisker{stroke:var(--ink);stroke-width:1.3;opacity:.65}\
        .swatch{stroke:var(--c);stroke-width:4}";
    format!("{}@media(prefers-color-scheme:dark){{{}}}{rules}", set(0), set(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element() {
        // Catches a failure's message, or a processor's name, that breaks the page.
        assert_eq!(escaped("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
        let mut canvas = Canvas::new(10.0, 10.0);
        canvas.text(1.0, 2.0, "label", Anchor::Start, "</text><script>");
        let svg = canvas.finish("x", "a \"title\"").standalone();
        assert!(!svg.contains("<script>") && svg.contains("aria-label=\"a &quot;title&quot;\""), "{svg}");
    }

    #[test]
    fn subjects_have_colours_of_their_own_in_both_schemes() {
        // Catches two lines that nobody can tell apart.
        for scheme in [0, 1] {
            let distinct: std::collections::HashSet<_> = Subject::ALL.map(|subject| colours(subject)[scheme]).into();
            assert_eq!(distinct.len(), Subject::ALL.len());
        }
    }
}
