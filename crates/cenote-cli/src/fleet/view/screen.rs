//! The full-screen view of a fleet: its members, what was granted over time, and the last changes.

use cenote_fleet::engine::Engine;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table};
use tokio::task::spawn_blocking;

use super::data::{Member, TITLES};
use super::reader::Reader;
use super::watch::{PACE, Watch};
use crate::failure::Failure;
use crate::target::without_password;
use crate::top::screen::{Key, Screen, last_line, next_key};

struct View {
    place: String,
    watch: Watch,
    /// The last error of a read. The numbers before it stay on the screen.
    trouble: Option<String>,
}

/// Shows the fleet until the user ends it.
pub(super) async fn run<E: Engine>(
    url: &str,
    mut reader: Reader<E>,
    watch: Watch,
) -> Result<(), Failure> {
    let mut view = View {
        place: without_password(url),
        watch,
        trouble: None,
    };
    let mut screen = Screen::open()?;
    loop {
        screen.0.draw(|frame| view.draw(frame))?;
        match spawn_blocking(|| next_key(PACE)).await?? {
            Some(Key::End) => return Ok(()),
            Some(_) => {}
            None => match reader.read().await {
                Ok(fleet) => {
                    view.watch.add(fleet);
                    view.trouble = None;
                }
                Err(error) => view.trouble = Some(error.to_string()),
            },
        }
    }
}

impl View {
    fn draw(&self, frame: &mut Frame<'_>) {
        let fleet = &self.watch.fleet;
        let height = u16::try_from(fleet.members.len()).unwrap_or(u16::MAX);
        let parts = [
            Constraint::Max(height.saturating_add(3)),
            Constraint::Length(6),
            Constraint::Min(3),
            Constraint::Length(1),
        ];
        let [above, middle, below, last] = Layout::vertical(parts).areas(frame.area());
        frame.render_widget(self.members(), above);
        let granted = self.watch.history.iter().rev();
        let granted: Vec<u64> = granted
            .take(usize::from(middle.width))
            .map(|look| look.granted.into())
            .collect();
        let history = Sparkline::default()
            .block(Block::bordered().title(fleet.summary()))
            .direction(ratatui::widgets::RenderDirection::RightToLeft)
            .max(fleet.capacity.into())
            .data(granted);
        frame.render_widget(history, middle);
        frame.render_widget(self.changes(), below);
        frame.render_widget(last_line(self.trouble.as_deref(), "q: end"), last);
    }

    fn members(&self) -> Table<'_> {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let titles = TITLES.map(|title| title.trim_start_matches('>'));
        let row = |member: &Member| {
            let colour = match (member.fenced, member.wants > member.has) {
                (true, _) => Color::Red,
                (false, true) => Color::Yellow,
                (false, false) => Color::Green,
            };
            Row::new(member.cells()).style(Style::new().fg(colour))
        };
        let widths = TITLES.map(|title| match title {
            "member" => Constraint::Length(16),
            "name" => Constraint::Min(24),
            "state" => Constraint::Min(14),
            title => Constraint::Length(u16::try_from(title.len()).unwrap_or(12).max(6)),
        });
        Table::new(self.watch.fleet.members.iter().map(row), widths)
            .header(Row::new(titles).style(bold))
            .block(Block::bordered().title(format!("cenote fleet {}", self.place)))
    }

    /// The last changes, the newest first.
    fn changes(&self) -> Paragraph<'_> {
        let lines = self.watch.changes.iter().rev();
        let lines: Vec<Line<'_>> = lines.map(|told| told.to_string().into()).collect();
        Paragraph::new(lines).block(Block::bordered().title("changes"))
    }
}
