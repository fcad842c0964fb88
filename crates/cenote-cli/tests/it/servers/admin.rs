//! The hands of an administrator: one statement or command, and the first value of its answer.

/// Returns the first value, or nothing if there is no row.
pub(crate) fn postgres(url: &str, sql: &str) -> Option<String> {
    use cenote_postgres::tokio_postgres::SimpleQueryMessage;

    block_on(async {
        let pool = cenote_postgres::Pool::from_url(url).build().unwrap();
        let answer = pool.acquire().await.unwrap().simple_query(sql).await;
        answer.unwrap().iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
    })
}

/// Returns the first value, or nothing if there is no row.
pub(crate) fn mysql(url: &str, sql: &str) -> Option<String> {
    use cenote_mysql::mysql_async::prelude::Queryable;

    block_on(async {
        let pool = cenote_mysql::Pool::from_url(url).build().unwrap();
        let mut lease = pool.acquire().await.unwrap();
        lease.query_first(sql).await.unwrap()
    })
}

/// Returns the first line of the answer, such as `+OK`.
pub(crate) fn redis(url: &str, command: &str) -> String {
    use std::io::{BufRead, BufReader, Write};

    let address = url.rsplit(['@', '/']).next().unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "{command}\r\n").unwrap();
    BufReader::new(stream).lines().next().unwrap().unwrap()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work)
}
