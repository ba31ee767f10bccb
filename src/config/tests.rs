use super::*;

fn none(_: &str) -> Option<String> {
    None
}

#[test]
fn flags_win_over_variables_over_the_file_over_defaults() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("headcount.toml");
    std::fs::write(&path, "listen = \"0.0.0.0:1\"\nworkers = 3\nshards = 5\ntrusted_proxies = [\"10.0.0.0/8\", \"::1\"]\n")
        .unwrap();
    let flags = Flags { config: Some(path.clone()), listen: Some("127.0.0.1:9".into()), ..Flags::default() };
    let variable = |name: &str| match name {
        "HEADCOUNT_LISTEN" => Some("127.0.0.1:8".to_owned()),
        "HEADCOUNT_WORKERS" => Some("4".to_owned()),
        _ => None,
    };
    let settings = Settings::resolve(&flags, variable).unwrap();
    assert_eq!(settings.listen, "127.0.0.1:9");
    assert_eq!((settings.workers, settings.shards), (Some(4), Some(5)));
    assert_eq!(settings.trusted_proxies.len(), 2);
    assert_eq!(settings.min_free_bytes, 256 << 20);
    let sources: BTreeMap<_, _> = settings.in_force().into_iter().map(|(name, it)| (name, it.source)).collect();
    let expected = [
        ("listen", "--listen".to_owned()),
        ("workers", "HEADCOUNT_WORKERS".to_owned()),
        ("shards", path.display().to_string()),
        ("log", "default".to_owned()),
    ];
    for (name, source) in expected {
        assert_eq!(sources[name], source, "{name}");
    }
}

#[test]
fn the_file_may_be_named_by_a_variable() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("headcount.toml");
    std::fs::write(&path, "checkpoint_interval = \"2m\"").unwrap();
    let variable = |name: &str| (name == CONFIG_VARIABLE).then(|| path.display().to_string());
    let settings = Settings::resolve(&Flags::default(), variable).unwrap();
    assert_eq!(settings.checkpoint_interval, Duration::from_secs(120));
}

#[test]
fn unknown_keys_of_the_file_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("headcount.toml");
    std::fs::write(&path, "listne = \"0.0.0.0:1\"\nworkers = 3\n[extra]\n").unwrap();
    let flags = Flags { config: Some(path), ..Flags::default() };
    let error = Settings::resolve(&flags, none).unwrap_err().to_string();
    assert!(error.contains("unknown keys: extra, listne; known keys: data_dir, listen"), "{error}");
}

#[test]
fn a_limit_of_the_disk_below_the_largest_append_is_raised() {
    let resolved = |value: &str| {
        let flags = Flags { min_free_bytes: Some(value.to_owned()), ..Flags::default() };
        Settings::resolve(&flags, none).unwrap()
    };
    for (value, expected, warnings) in [("1", 64 << 20, 1), ("64MiB", 64 << 20, 0), ("65MiB", 65 << 20, 0), ("0", 0, 0)] {
        let settings = resolved(value);
        assert_eq!((settings.engine().min_free_bytes, settings.warnings().len()), (expected, warnings), "{value}");
    }
}

#[test]
fn variables_that_mean_nothing_are_named() {
    let known = ["HEADCOUNT_MEMORY", "HEADCOUNT_TOKEN", "HEADCOUNT_OPERATOR_TOKEN", "HEADCOUNT_CONFIG", "PATH"];
    let variables = known.iter().chain(&["HEADCOUNT_MEMROY"]).map(ToString::to_string);
    assert_eq!(unknown_variables(variables), ["HEADCOUNT_MEMROY"]);
}

#[test]
fn what_is_not_allowed_is_refused_with_its_source() {
    let table: [(&str, &str, bool); 45] = [
        ("HEADCOUNT_LISTEN", "8080", false),
        ("HEADCOUNT_LISTEN", "127.0.0.1:65536", false),
        ("HEADCOUNT_LISTEN", "[::1]:0", true),
        ("HEADCOUNT_WORKERS", "0", false),
        ("HEADCOUNT_WORKERS", "auto", true),
        ("HEADCOUNT_SHARDS", "65", false),
        ("HEADCOUNT_ADMISSION_BYTES", "8MiB", true),
        ("HEADCOUNT_ADMISSION_BYTES", "1KiB", false),
        ("HEADCOUNT_ADMISSION_BYTES", "64 megabytes", false),
        ("HEADCOUNT_MIN_FREE_BYTES", "99999999999TiB", false),
        ("HEADCOUNT_MIN_FREE_BYTES", "0", true),
        ("HEADCOUNT_MEMORY", "512MB", true),
        ("HEADCOUNT_MEMORY", "512 MiB", true),
        ("HEADCOUNT_MEMORY", "67MB", false),
        ("HEADCOUNT_MEMORY", "0.5GB", false),
        ("HEADCOUNT_TRUSTED_PROXIES", "10.0.0.0/8, 127.0.0.1", true),
        ("HEADCOUNT_TRUSTED_PROXIES", "localhost", false),
        ("HEADCOUNT_GEO_DB", "", true),
        ("HEADCOUNT_GEO_DB", "countries.mmdb", true),
        ("HEADCOUNT_GEO_HEADER", "CF-IPCountry", true),
        ("HEADCOUNT_GEO_HEADER", "CF IPCountry", false),
        ("HEADCOUNT_PUBLIC_URL", "", true),
        ("HEADCOUNT_PUBLIC_URL", "http://localhost:8080", true),
        ("HEADCOUNT_PUBLIC_URL", "https://stats.example/a", false),
        ("HEADCOUNT_PUBLIC_URL", "ftp://stats.example", false),
        ("HEADCOUNT_PUBLIC_URL", "stats.example", false),
        ("HEADCOUNT_SCRIPT_PATH", "", true),
        ("HEADCOUNT_SCRIPT_PATH", "/stats/app-1.js", true),
        ("HEADCOUNT_SCRIPT_PATH", "app.js", false),
        ("HEADCOUNT_COLLECT_PATH", "/", false),
        ("HEADCOUNT_COLLECT_PATH", "/a//b", false),
        ("HEADCOUNT_COLLECT_PATH", "/{any}", false),
        ("HEADCOUNT_QUESTION_TIMEOUT", "1h", true),
        ("HEADCOUNT_QUESTION_TIMEOUT", "0s", false),
        ("HEADCOUNT_QUESTION_TIMEOUT", "61m", false),
        ("HEADCOUNT_CHECKPOINT_INTERVAL", "5m", true),
        ("HEADCOUNT_CHECKPOINT_INTERVAL", "10ms", false),
        ("HEADCOUNT_LOG", "info,headcount=debug", true),
        ("HEADCOUNT_LOG", "a=b=c", false),
        ("HEADCOUNT_LOG", "verbose", false),
        ("HEADCOUNT_LOG", "info,headcount=loud", false),
        ("HEADCOUNT_LOG", "OFF", true),
        ("HEADCOUNT_LOG_FORMAT", "json", true),
        ("HEADCOUNT_LOG_FORMAT", "xml", false),
        ("HEADCOUNT_DATA_DIR", "", false),
    ];
    for (name, value, fine) in table {
        let variable = |asked: &str| (asked == name).then(|| value.to_owned());
        let result = Settings::resolve(&Flags::default(), variable);
        assert_eq!(result.is_ok(), fine, "{name}={value}: {result:?}");
        if let Err(error) = result {
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

#[test]
fn nodes_have_an_address_and_certificates_or_neither() {
    for (listen, tls, fine) in [
        ("", "", true),
        ("10.0.1.1:8443", "/tls", true),
        ("10.0.1.1", "/tls", false),
        ("10.0.1.1:8443", "", false),
        ("", "/tls", false),
    ] {
        let flags = Flags { node_listen: Some(listen.to_owned()), node_tls: Some(tls.to_owned()), ..Flags::default() };
        let settings = Settings::resolve(&flags, none);
        assert_eq!(settings.is_ok(), fine, "{listen} {tls}: {settings:?}");
    }
    let flags = Flags { node_listen: Some("10.0.1.1:8443".into()), node_tls: Some("/nowhere".into()), ..Flags::default() };
    let why = Settings::resolve(&flags, none).unwrap().nodes().unwrap_err().to_string();
    assert!(why.starts_with("/nowhere/tls.crt: "), "{why}");
}

#[test]
fn the_public_address_is_spelled_in_one_way() {
    for (given, expected) in [
        ("https://Stats.Example:443/", Some("https://stats.example")),
        ("http://[::1]:8080", Some("http://[::1]:8080")),
        ("", None),
    ] {
        let flags = Flags { public_url: Some(given.to_owned()), ..Flags::default() };
        let settings = Settings::resolve(&flags, none).unwrap();
        assert_eq!((settings.public_url.as_deref(), settings.http().public_url.as_deref()), (expected, expected), "{given}");
    }
}

/// A build without clusters asks `no_cluster` first.
#[test]
fn only_a_build_with_clusters_takes_their_settings() {
    let with = |name: &str| -> Vec<Entry> {
        let text = |key: &Key| if key.name == name { "nats://10.0.0.1:4222" } else { key.default }.to_owned();
        KEYS.iter().map(|key| Entry { key, text: text(key), source: Source::Variable(key.variable) }).collect()
    };
    Reader { entries: &with("listen") }.no_cluster().unwrap();
    for name in OF_CLUSTERS {
        let refused = Reader { entries: &with(name) }.no_cluster().unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains("needs a build with `--features cluster`"), "{refused}");
    }
    assert_eq!(Settings::parse(with("cluster")).is_ok(), cfg!(feature = "cluster"));
}
