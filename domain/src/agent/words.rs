//! The words by which bots, and programs that are none, are told.

/// Parts of names that only bots have, in lower case. Compiled by hand from the agents that their operators publish.
#[rustfmt::skip]
pub(super) const BOT_WORDS: &[&str] = &[
    // Kinds.
    "bot", "crawl", "spider", "slurp", "scrapy", "scraper", "archiver", "indexer", "monitor", "uptime", "preview",
    "feedfetcher", "feed fetcher", "feedparser", "feed parser", "feedburner", "rss", "validator", "linkcheck", "link check",
    "checklink", "sitemap", "favicon", "imageproxy", "imgproxy", "lighthouse", "healthcheck", "health check", "health-check",
    // Previewers.
    "facebookexternalhit", "facebookcatalog", "meta-externalagent", "meta-externalfetcher", "embedly", "whatsapp/",
    "flipboardproxy", "iframely", "vkshare", "pinterest/0.", "outbrain", "snap url",
    // Search and answer engines, and their helpers, whose names say nothing.
    "mediapartners-google", "google-inspectiontool", "google-read-aloud", "google-site-verification", "googleother",
    "google-extended", "google-safety", "apis-google", "google desktop", "google-adwords",
    "baidu.com/search", "yandeximages", "yandexdirect", "yahoo pipes", "heritrix", "nutch", "sogou web",
    "daumoa", "teoma", "ezooms", "spinn3r", "perplexity-user", "chatgpt-user", "claude-user", "claude-web", "anthropic-ai",
    "cohere-ai", "mistralai-user", "dataprovider", "censysinspect", "zgrab", "masscan", "nmap", "internet-measurement",
    "netcraft", "httrack", "xenu link", "screaming frog", "sitesucker", "siteexplorer", "builtwith", "wappalyzer",
    "panscient", "binlar", "brandwatch", "magpie-", "genieo",
    // Monitors.
    "pingdom", "statuscake", "site24x7", "newrelicpinger", "datadogsynthetics", "gtmetrix", "pagespeed", "webpagetest",
    "ptst/", "catchpoint", "dynatrace", "check_http", "nagios", "zabbix", "blackbox-exporter", "blackbox_exporter",
    "googlehc/", "kube-probe", "checkly", "hyperping", "better stack", "freshping", "hetrixtools",
    "alertsite", "gomezagent", "changedetection", "visualping", "speedcurve",
    // Feed readers that fetch for many.
    "feedbin", "feedly", "feedspot", "feedwrangler", "newsblur", "theoldreader", "inoreader", "commafeed", "netvibes",
    "bazqux", "miniflux", "livejournal.com", "superfeedr", "blogtrottr", "liferea",
];

/// What the agents of programs and libraries that speak HTTP start with, in lower case.
#[rustfmt::skip]
pub(super) const HTTP_PROGRAMS: &[&str] = &[
    "aiohttp", "apache-httpasyncclient", "apache-httpclient", "axios", "bun/", "cpp-httplib", "curl", "dart", "deno", "ecto",
    "elixir", "faraday", "fasthttp", "finch", "go-http-client", "go-resty", "google-http-java-client", "got ", "got/",
    "grpc", "guzzlehttp", "hackney", "http.rb", "http_request", "httpclient", "httpie", "httparty", "httpx", "hyper",
    "insomnia", "jakarta", "java-http-client", "java/", "jersey", "k6/", "ky/", "libcurl", "libwww-perl", "lua-resty", "lwp",
    "mechanize", "mint/", "needle", "node", "okhttp", "pear http", "perl", "php", "postman", "powershell", "pycurl", "python",
    "reactornetty", "req/", "reqwest", "requests", "rest-client", "restsharp", "ruby", "spring", "superagent", "symfony",
    "typhoeus", "undici", "unirest", "ureq", "urllib", "vegeta", "vert.x", "wget", "winhttp", "wrk", "zend",
];
