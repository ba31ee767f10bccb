//! The length of functions.

/// The functions of a file: line, length, first words. By indentation, which rustfmt keeps.
pub fn functions(text: &str) -> Vec<(usize, usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim_start();
        let bare = ["pub ", "pub(crate) ", "pub(super) ", "const ", "async "]
            .iter()
            .fold(trimmed, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
        let bare = bare.strip_prefix("async ").unwrap_or(bare);
        match &open {
            None if bare.starts_with("fn ") && !trimmed.ends_with(';') && !trimmed.ends_with('}') => {
                open = Some((number, indent, trimmed.to_owned()));
            }
            Some((start, at, name)) if indent == *at && trimmed.starts_with('}') => {
                found.push((*start + 1, number - start + 1, name.clone()));
                open = None;
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::functions;

    #[test]
    fn functions_are_measured() {
        let short = "fn a() {\n    b();\n}\n";
        let calls = "        b();\n".repeat(80);
        let long = format!("impl X {{\n    pub async fn a(\n        b: u8,\n    ) {{\n{calls}    }}\n}}\n");
        assert_eq!(functions(short).iter().map(|f| f.1).collect::<Vec<_>>(), [3]);
        assert_eq!(functions(&long).iter().map(|f| f.1).collect::<Vec<_>>(), [84]);
    }
}
