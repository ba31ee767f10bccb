//! Words that identify bots, and the agents of programs that are not bots.

/// Words that crawlers, monitors and previewers use, in lower case; matched in any case.
#[rustfmt::skip]
pub(super) const BOT_WORDS: &[&str] = &[
    "bot", "crawl", "spider", "slurp", "scrap", "archiver", "indexer", "monitor", "uptime", "preview", "headless",
    "fetcher", "feedparser", "feed parser", "feedburner", "rss", "validator", "scanner", "probe",
    "linkcheck", "link check", "checklink", "sitemap", "favicon", "imageproxy", "imgproxy", "lighthouse",
    "healthcheck", "health check", "health-check",
    // Names that the maintained list lacks or spells in another case.
    "feedbin", "feedwrangler", "theoldreader", "googlehc/", "visualping", "hyperping", "gomezagent", "ezooms", "daumoa",
    "mediapartners-google", "whatsapp/",
];

/// Prefixes of the agents of HTTP programs and libraries, in lower case.
#[rustfmt::skip]
pub(super) const HTTP_PROGRAMS: &[&str] = &[
    "aiohttp", "apache-httpasyncclient", "apache-httpclient", "axios", "bun/", "cpp-httplib", "curl", "dart", "deno", "ecto",
    "elixir", "faraday", "fasthttp", "finch", "go-http-client", "go-resty", "google-http-java-client", "got ", "got/",
    "grpc", "guzzlehttp", "hackney", "http.rb", "http_request", "httpclient", "httpie", "httparty", "httpx", "hyper",
    "insomnia", "jakarta", "java-http-client", "java/", "jersey", "k6/", "ky/", "libcurl", "libwww-perl", "lua-resty", "lwp",
    "mechanize", "mint/", "needle", "node-fetch", "node/", "node.js", "okhttp", "pear http", "perl", "php", "postman", "powershell", "pycurl", "python",
    "reactornetty", "req/", "reqwest", "requests", "rest-client", "restsharp", "ruby", "spring", "superagent", "symfony",
    "typhoeus", "undici", "unirest", "ureq", "urllib", "vegeta", "vert.x", "wget", "winhttp", "wrk", "zend_", "zend\\",
];
