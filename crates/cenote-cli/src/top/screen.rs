//! The full-screen view: a table of all pools, and below it who holds what in the chosen one.

use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row, Table, TableState, Wrap};
use ratatui::{DefaultTerminal, Frame};
use tokio::task::spawn_blocking;

use super::data::{Detail, Overview, TITLES};
use super::http::Site;
use crate::failure::Failure;
use crate::out::short_time;

/// How often the numbers are read.
const PACE: Duration = Duration::from_secs(1);

/// The terminal, which is as it was before when this value is dropped.
pub(crate) struct Screen(pub(crate) DefaultTerminal);

impl Screen {
    pub(crate) fn open() -> std::io::Result<Self> {
        Ok(Self(ratatui::try_init()?))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

struct View {
    place: String,
    overview: Overview,
    detail: Detail,
    chosen: usize,
    /// The last error of a read. The numbers before it stay on the screen.
    trouble: Option<String>,
}

/// Shows the pools until the user ends it.
pub(super) async fn run(site: &Site, overview: Overview) -> Result<(), Failure> {
    let mut view = View {
        place: site.shown(),
        overview,
        detail: Detail::default(),
        chosen: 0,
        trouble: None,
    };
    view.read_detail(site).await;
    let mut screen = Screen::open()?;
    loop {
        screen.0.draw(|frame| view.draw(frame))?;
        match spawn_blocking(|| next_key(PACE)).await?? {
            Some(Key::End) => return Ok(()),
            Some(Key::Up) => view.chosen = view.chosen.saturating_sub(1),
            Some(Key::Down) => view.chosen += 1,
            Some(Key::Other) => continue,
            None => view.read(site).await,
        }
        view.chosen = view.chosen.min(view.overview.pools.len().saturating_sub(1));
        view.read_detail(site).await;
    }
}

pub(crate) enum Key {
    End,
    Up,
    Down,
    Other,
}

/// Waits for a key until the numbers are to be read again.
pub(crate) fn next_key(limit: Duration) -> std::io::Result<Option<Key>> {
    if !event::poll(limit)? {
        return Ok(None);
    }
    let Event::Key(key) = event::read()? else {
        return Ok(Some(Key::Other));
    };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Ok(Some(match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Key::End,
        KeyCode::Char('c') if control => Key::End,
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        _ => Key::Other,
    }))
}

/// The last line of a view: what is wrong, or else which keys there are.
pub(crate) fn last_line<'a>(trouble: Option<&'a str>, keys: &'a str) -> Line<'a> {
    let colour = if trouble.is_some() {
        Color::Red
    } else {
        Color::DarkGray
    };
    Line::styled(trouble.unwrap_or(keys), Style::new().fg(colour))
}

impl View {
    async fn read(&mut self, site: &Site) {
        match site.read("api/pools").await {
            Ok(overview) => (self.overview, self.trouble) = (overview, None),
            Err(error) => self.trouble = Some(error.to_string()),
        }
    }

    async fn read_detail(&mut self, site: &Site) {
        let Some(pool) = self.overview.pools.get(self.chosen) else {
            return;
        };
        let path = format!("api/pools/{}", pool.number);
        // A pool that was dropped meanwhile has no details.
        self.detail = site.read(&path).await.unwrap_or_default();
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let height = u16::try_from(self.overview.pools.len()).unwrap_or(u16::MAX);
        let parts = [
            Constraint::Max(height.saturating_add(3)),
            Constraint::Min(5),
            Constraint::Length(1),
        ];
        let [above, below, last] = Layout::vertical(parts).areas(frame.area());
        let mut chosen = TableState::default().with_selected(self.chosen);
        frame.render_stateful_widget(self.table(), above, &mut chosen);
        frame.render_widget(self.holders(), below);
        let keys = "q: end   arrows: choose a pool";
        frame.render_widget(last_line(self.trouble.as_deref(), keys), last);
    }

    fn table(&self) -> Table<'_> {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let titles = TITLES.map(|title| title.trim_start_matches('>'));
        let row = |pool: &super::data::PoolRow| {
            let colour = match pool.health.verdict.as_str() {
                "healthy" | "unproven" => Color::Green,
                "busy" => Color::Yellow,
                "closed" => Color::DarkGray,
                _ => Color::Red,
            };
            Row::new(pool.cells()).style(Style::new().fg(colour))
        };
        let widths = TITLES.map(|title| match title {
            "pool" | "health" => Constraint::Min(12),
            title => Constraint::Length(u16::try_from(title.len()).unwrap_or(12).max(6)),
        });
        Table::new(self.overview.pools.iter().map(row), widths)
            .header(Row::new(titles).style(bold))
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
            .block(Block::bordered().title(format!("cenote top {}", self.place)))
    }

    fn holders(&self) -> Paragraph<'_> {
        let mut lines: Vec<Line<'_>> = Vec::new();
        for holder in &self.detail.holders {
            let site = holder.site.as_deref().unwrap_or("an unknown line");
            let label = holder
                .label
                .as_ref()
                .map_or(String::new(), |label| format!(" ({label})"));
            let longest = short_time(Duration::from_secs_f64(holder.longest_ms / 1e3));
            lines
                .push(format!("{} held at {site}{label} for up to {longest}", holder.count).into());
        }
        for advice in &self.detail.advice {
            lines.push(Line::styled(
                format!("advice: {advice}"),
                Style::new().fg(Color::Yellow),
            ));
        }
        let pool = self.overview.pools.get(self.chosen);
        let title = pool.map_or("no pool".to_owned(), |pool| {
            format!("{}: {}", pool.name, pool.health.text)
        });
        Paragraph::new(lines)
            .wrap(Wrap::default())
            .block(Block::bordered().title(title))
    }
}
