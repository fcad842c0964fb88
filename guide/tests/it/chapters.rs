//! The chapters are complete: each is in the index, is compiled, and links to what is there.

use std::fs;

use crate::names::{read, root};

fn chapters() -> Vec<String> {
    let mut chapters: Vec<String> = names_in("guide")
        .into_iter()
        .filter(|name| name.ends_with(".md") && name.starts_with(|it: char| it.is_ascii_digit()))
        .collect();
    chapters.sort();
    chapters
}

fn names_in(folder: &str) -> Vec<String> {
    let files = fs::read_dir(root(folder)).expect("a folder of the guide");
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    names.collect()
}

#[test]
fn each_chapter_is_in_the_index_and_is_compiled() {
    let (index, code) = (read("guide/README.md"), read("guide/src/lib.rs"));

    for chapter in chapters() {
        assert!(index.contains(&format!("({chapter})")), "{chapter}");
        assert!(code.contains(&format!("\"../{chapter}\"")), "{chapter}");
    }
}

#[test]
fn each_link_and_each_picture_leads_to_a_file() {
    let index = "README.md".to_owned();

    for page in chapters().into_iter().chain([index]) {
        let text = read(&format!("guide/{page}"));
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap();
            let is_there = target.contains("://") || root("guide").join(target).exists();
            assert!(is_there, "{page} links to {target}");
        }
    }
}

#[test]
fn each_picture_is_shown() {
    let pages: String = chapters()
        .into_iter()
        .map(|page| read(&format!("guide/{page}")))
        .collect();

    for name in names_in("guide/pictures") {
        assert!(pages.contains(&format!("(pictures/{name})")), "{name}");
    }
}
